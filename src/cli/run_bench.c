/* run_bench.c - tokens per second of the two phases that users wait for: the prompt, many ids at a time, and
 * generation, one by one. Sampling is left out. The median of several measurements counts: one that was
 * disturbed, or the first with its cold caches, does not move it. */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/summary.h"

typedef struct bench {
  cli_job *job;
  size_t n_prompt, n_generate;
  double *prompt_rates, *generate_rates; /* (repeat) ids per second */
} bench;

/* Opens the model, and settles how many ids each phase has: what was asked for, else what fits. */
static int prepare(bench *run) {
  cli_job *job = run->job;
  if (!job->options->model) return fail_usage("a model is needed: -m FILE.mlb");
  if (job->options->ids)
    TRY(job_open_ids_and_model(job));
  else
    TRY(job_open_model(job, job->options->model));
  size_t n_ctx = job_context(job);
  run->n_prompt = job->ids.n ? job->ids.n : n_ctx / 2 < 128 ? (n_ctx + 1) / 2 : 128;
  size_t room = n_ctx > run->n_prompt ? n_ctx - run->n_prompt : 0;
  run->n_generate = job->options->n_predict_given ? job->options->n_predict : room < 64 ? room : 64;
  TRY(job_check_fits(job, run->n_prompt + run->n_generate));
  if (job->ids.n == 0) return ids_make_up(&job->ids, run->n_prompt, ml_model_get_info(job->model)->vocab);
  return DONE;
}

static int open_session(bench *run) {
  ml_session_options session_options = job_session_options(run->job);
  session_options.n_ctx = (uint32_t)(run->n_prompt + run->n_generate);
  return job_open_session(run->job, &session_options);
}

static double rate(size_t n, double seconds) { return n && seconds > 0 ? (double)n / seconds : 0; }

static int measure(bench *run, uint32_t repetition) {
  cli_job *job = run->job;
  ml_error error;
  ml_session_truncate(job->session, 0);
  double start = now_seconds();
  if (ml_session_eval(job->session, job->ids.ids, run->n_prompt, &error) != ML_OK)
    return fail_error(&error, NULL);
  double middle = now_seconds();
  for (size_t i = 0; i < run->n_generate; i++)
    if (ml_session_eval(job->session, &job->ids.ids[i % run->n_prompt], 1, &error) != ML_OK)
      return fail_error(&error, NULL);
  run->prompt_rates[repetition] = rate(run->n_prompt, middle - start);
  run->generate_rates[repetition] = rate(run->n_generate, now_seconds() - middle);
  return DONE;
}

static int measure_all(bench *run) {
  uint32_t repeat = run->job->options->repeat;
  for (uint32_t i = 0; i < repeat; i++) {
    if (interrupt_requested()) return fail_interrupted("the measurements are incomplete");
    TRY(measure(run, i));
    progress("bench", i + 1, repeat);
  }
  progress_end();
  return DONE;
}

/* ---------------------------------------------------------------- report */

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of_sorted(const double *values, size_t n) {
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Bytes of weights that one id takes: all of them, and those of a shared layer once more for each further loop. */
static uint64_t bytes_per_id(const cli_job *job) {
  const ml_model_info *info = ml_model_get_info(job->model);
  uint32_t n_loops = ml_session_n_loops(job->session);
  return info->weight_bytes + (n_loops ? (n_loops - 1) * info->loop_bytes : 0);
}

static void print_result(bench *run) {
  const cli_job *job = run->job;
  size_t n = job->options->repeat;
  qsort(run->prompt_rates, n, sizeof(double), compare_doubles);
  qsort(run->generate_rates, n, sizeof(double), compare_doubles);
  double generate_rate = median_of_sorted(run->generate_rates, n);
  summary out = summary_begin(job->options->json);
  summary_text(&out, "isa", "kernels", ml_session_isa(job->session));
  summary_uint(&out, "threads", "threads", ml_session_n_threads(job->session));
  summary_text(&out, "weight_type", "weights", ml_model_get_info(job->model)->weight_type);
  summary_bytes(&out, "weight_bytes", "weights, bytes", ml_model_get_info(job->model)->weight_bytes);
  summary_bytes(&out, "session_bytes", "session, bytes", job->session_bytes);
  summary_real(&out, "load_seconds", "load, seconds", job->load_seconds, 3);
  summary_uint(&out, "repetitions", "measurements", n);
  summary_uint(&out, "prompt_ids", "prompt ids", run->n_prompt);
  summary_real(&out, "prompt_per_second", "  per second, median", median_of_sorted(run->prompt_rates, n), 1);
  summary_real(&out, "prompt_per_second_min", "  slowest", run->prompt_rates[0], 1);
  summary_real(&out, "prompt_per_second_max", "  fastest", run->prompt_rates[n - 1], 1);
  summary_uint(&out, "generated_ids", "generated ids", run->n_generate);
  summary_real(&out, "generated_per_second", "  per second, median", generate_rate, 1);
  summary_real(&out, "generated_per_second_min", "  slowest", run->generate_rates[0], 1);
  summary_real(&out, "generated_per_second_max", "  fastest", run->generate_rates[n - 1], 1);
  summary_bytes(&out, "bytes_per_id", "  weights read, bytes each", bytes_per_id(job));
  summary_real(&out, "generated_gigabytes_per_second", "  weights read, GB/s",
               generate_rate * (double)bytes_per_id(job) / 1e9, 2);
  summary_end(&out);
}

int run_bench(cli_job *job) {
  bench run = {.job = job};
  TRY(prepare(&run));
  TRY(open_session(&run));
  size_t size = job->options->repeat * sizeof(double);
  run.prompt_rates = malloc(size);
  run.generate_rates = malloc(size);
  int code = run.prompt_rates && run.generate_rates
                 ? measure_all(&run)
                 : fail(ML_E_NOMEM, NULL, "no memory for the measurements");
  if (code == DONE) print_result(&run);
  free(run.prompt_rates);
  free(run.generate_rates);
  return code;
}
