/* run_perplexity.c - how surprised a model is by given ids: exp of the mean of -ln p(id | ids before it).
 *
 * The ids are cut into windows of the context's length that begin `stride` apart. Each window scores the ids
 * that no earlier one has scored; those before them are its context. The first id of the text has no context
 * and is not scored, nor is the first of a window that shares nothing with the one before (stride = context).
 *
 *   ids       0 1 2 3 4 5 6 7 8 9         context 6, stride 4
 *   window 1  . x x x x x                 x scored, . context
 *   window 2          . . x x x x                                                                       */
#include <math.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/summary.h"

typedef struct scoring {
  cli_job *job;
  size_t vocab;
  size_t target; /* index among all ids of the next one to score */
  double sum;    /* of -ln p, nats */
  size_t n_scored, n_windows;
} scoring;

/* -ln of the softmax at `target`, in double: ln(sum of exp(x - x_max)) - (x_target - x_max). */
static double surprise(const float *logits, const double *logits_exact, size_t n, int32_t target) {
  double largest = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++) {
    double logit = logits_exact ? logits_exact[i] : (double)logits[i];
    if (logit > largest) largest = logit; /* gcc 12 for AArch64 breaks down over fmax here */
  }
  for (size_t i = 0; i < n; i++) sum += exp((logits_exact ? logits_exact[i] : (double)logits[i]) - largest);
  return log(sum) - ((logits_exact ? logits_exact[target] : (double)logits[target]) - largest);
}

static bool score_next(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  scoring *run = user;
  const cli_job *job = run->job;
  (void)position;
  run->sum += surprise(logits, logits_exact, run->vocab, job->ids.ids[run->target]);
  run->target++;
  run->n_scored++;
  progress("perplexity", run->target, job->ids.n);
  return !interrupt_requested();
}

/* Scores the ids from `target` to the window's end; the id at the very end is never evaluated. */
static int score_window(scoring *run, size_t begin, size_t end) {
  cli_job *job = run->job;
  const int32_t *ids = job->ids.ids;
  if (run->target <= begin) run->target = begin + 1;
  if (run->target >= end) return DONE;
  size_t n_context = run->target - 1 - begin;
  ml_error error;
  ml_session_truncate(job->session, 0);
  if (n_context && ml_session_eval(job->session, ids + begin, n_context, &error) != ML_OK)
    return fail_error(&error, NULL);
  if (ml_session_score(job->session, ids + begin + n_context, end - run->target, score_next, run, &error) !=
      ML_OK)
    return fail_error(&error, NULL);
  run->n_windows++;
  return DONE;
}

static int score_all(scoring *run, size_t n_ctx, size_t stride) {
  size_t n = run->job->ids.n;
  for (size_t begin = 0;; begin += stride) {
    size_t end = n - begin < n_ctx ? n : begin + n_ctx;
    TRY(score_window(run, begin, end));
    if (interrupt_requested()) return fail_interrupted("no perplexity was computed");
    if (end == n) break;
  }
  progress_end();
  if (run->n_scored) return DONE;
  return fail(ML_E_ARG, "Give at least two ids, and a --ctx of at least 2.",
              "--perplexity: there is no id to score");
}

static void print_result(const scoring *run, size_t n_ctx, size_t stride, double seconds) {
  double mean = run->sum / (double)run->n_scored;
  summary out = summary_begin(run->job->options->json);
  summary_real(&out, "perplexity", "perplexity", exp(mean), 6);
  summary_real(&out, "mean_nll", "mean -ln p, nats", mean, 6);
  summary_uint(&out, "scored_ids", "ids scored", run->n_scored);
  summary_uint(&out, "windows", "windows", run->n_windows);
  summary_uint(&out, "context", "context", n_ctx);
  summary_uint(&out, "stride", "stride", stride);
  summary_end(&out);
  note("%.3f s, %.1f ids per second", seconds, seconds > 0 ? (double)run->job->ids.n / seconds : 0);
}

int run_perplexity(cli_job *job) {
  TRY(job_open_ids_and_model(job));
  const ml_session_options session_options = job_session_options(job);
  size_t n_ctx = job_context(job), stride = job->options->stride ? job->options->stride : n_ctx;
  if (stride > n_ctx)
    return fail(ML_E_ARG, "A stride above the context would leave ids out.",
                "--stride %zu is more than the context of %zu", stride, n_ctx);
  TRY(job_open_session(job, &session_options));
  scoring run = {.job = job, .vocab = ml_model_get_info(job->model)->vocab, .target = 1};
  double start = now_seconds();
  TRY(score_all(&run, n_ctx, stride));
  print_result(&run, n_ctx, stride, now_seconds() - start);
  return DONE;
}
