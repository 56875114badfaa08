/* run_info.c - what a model is, and what running it with the given options needs. */
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/summary.h"

static void print_model(summary *out, const cli_job *job) {
  const ml_model_info *info = ml_model_get_info(job->model);
  summary_text(out, "model", "model", job->options->model);
  summary_text(out, "weight_type", "weights", info->weight_type);
  summary_uint(out, "parameters", "parameters", info->n_parameters);
  summary_uint(out, "vocab", "vocabulary", info->vocab);
  summary_uint(out, "max_seq", "longest context", info->max_seq);
  summary_uint(out, "dim", "width", info->dim);
  summary_uint(out, "hidden_dim", "feed-forward width", info->hidden_dim);
  summary_uint(out, "n_layers", "layers", info->n_layers);
  summary_uint(out, "n_linear_layers", "  of them linear", info->n_linear_layers);
  summary_uint(out, "n_window_layers", "  of them windowed", info->n_window_layers);
  if (info->n_loops) {
    summary_uint(out, "n_loops", "  the last one is run", info->n_loops);
    summary_uint(out, "embed_factor_dim", "embedding factor", info->embed_factor_dim);
  }
  summary_uint(out, "sliding_window", "sliding window", info->sliding_window);
  summary_uint(out, "n_heads", "query heads", info->n_heads);
  summary_uint(out, "n_kv_heads", "key and value heads", info->n_kv_heads);
  summary_uint(out, "head_dim", "head size", info->head_dim);
  summary_bytes(out, "file_bytes", "file, bytes", info->file_bytes);
  summary_bytes(out, "trailing_bytes", "  after the model, bytes", info->trailing_bytes);
  summary_bytes(out, "weight_bytes", "weights in memory, bytes", info->weight_bytes);
  summary_uint(out, "non_finite_weights", "weights not finite", info->n_non_finite);
}

/* The session is planned, not made: a context that does not fit in memory is worth asking about. */
int run_info(cli_job *job) {
  if (!job->options->model) return fail_usage("a model is needed: -m FILE.mlb, or -m FOLDER");
  TRY(job_open_model(job, job->options->model));
  const ml_session_options session_options = job_session_options(job);
  uint64_t session_bytes = ml_session_memory(job->model, &session_options);
  if (session_bytes == 0) return job_open_session(job, &session_options); /* refused: says why */

  summary out = summary_begin(job->options->json);
  print_model(&out, job);
  summary_uint(&out, "context", "session: context", job_context(job));
  if (ml_model_get_info(job->model)->n_loops)
    summary_uint(&out, "session_loops", "session: loops",
                 session_options.n_loops ? session_options.n_loops : ml_model_get_info(job->model)->n_loops);
  summary_bool(&out, "exact", "session: exact", session_options.exact);
  summary_bytes(&out, "session_bytes", "session: memory, bytes", session_bytes);
  summary_end(&out);
  return DONE;
}
