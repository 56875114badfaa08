/* run_verify.c - a model's logits with those of the slow double-precision mode: a file that loads may still be wrong, and
 * so may a machine. Says how alike they are, and fails when they are less so than quantized activations explain. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/summary.h"

enum { N_MADE_UP = 32 };
static const double LEAST_COSINE = 0.99;

typedef struct verifying {
  size_t vocab, row, n;
  float *exact;   /* (n, vocab) */
  bool comparing; /* the second pass, in the normal mode */
  double least_cosine, sum_cosine;
  size_t n_same_top;
} verifying;

static size_t top(const float *logits, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

static double cosine_of(const float *a, const float *b, size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; i++) {
    ab += (double)a[i] * b[i];
    aa += (double)a[i] * a[i];
    bb += (double)b[i] * b[i];
  }
  return aa == 0 && bb == 0 ? 1 : ab / sqrt(aa * bb); /* NaN when one of them is nothing but zeros */
}

static bool take_row(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  verifying *run = user;
  (void)position, (void)logits_exact;
  float *exact = run->exact + run->row++ * run->vocab;
  if (run->comparing) {
    double cosine = cosine_of(exact, logits, run->vocab);
    if (!(cosine >= run->least_cosine)) run->least_cosine = cosine;
    run->sum_cosine += cosine;
    run->n_same_top += top(exact, run->vocab) == top(logits, run->vocab);
  } else {
    memcpy(exact, logits, run->vocab * sizeof *exact);
  }
  progress("verify", run->row + (run->comparing ? run->n : 0), 2 * run->n);
  return !interrupt_requested();
}

static int run_pass(verifying *run, cli_job *job, bool exact) {
  ml_session_options session_options = job_session_options(job);
  session_options.exact = exact;
  session_options.n_ctx = (uint32_t)run->n;
  run->row = 0;
  run->comparing = !exact;
  TRY(job_open_session(job, &session_options));
  ml_error error;
  if (ml_session_score(job->session, job->ids.ids, run->n, take_row, run, &error) != ML_OK)
    return fail_error(&error, NULL);
  if (run->row < run->n) return fail_interrupted("nothing was verified");
  ml_session_free(job->session);
  job->session = NULL;
  return DONE;
}

static int report_verified(const verifying *run, const cli_job *job) {
  summary out = summary_begin(job->options->json);
  summary_uint(&out, "positions", "positions", run->n);
  summary_real(&out, "least_cosine", "least cosine", run->least_cosine, 6);
  summary_real(&out, "mean_cosine", "mean cosine", run->sum_cosine / (double)run->n, 6);
  summary_uint(&out, "same_top", "same likeliest id", run->n_same_top);
  summary_end(&out);
  if (run->least_cosine >= LEAST_COSINE) return DONE;
  return fail(ML_E_NUMERIC, "Fetch or convert the file again; if that does not help, please report it.",
              "the logits are not those of exact arithmetic: a cosine of %.6f is below %.2f",
              run->least_cosine, LEAST_COSINE);
}

int run_verify(cli_job *job) {
  if (!job->options->model) return fail_usage("a model is needed: -m FILE.mlb, or -m FOLDER");
  if (job->options->ids)
    TRY(job_open_ids_and_model(job));
  else
    TRY(job_open_model(job, job->options->model));
  size_t vocab = ml_model_get_info(job->model)->vocab, n_ctx = job_context(job);
  if (job->ids.n == 0) TRY(ids_make_up(&job->ids, n_ctx < N_MADE_UP ? n_ctx : N_MADE_UP, (uint32_t)vocab));
  TRY(job_check_fits(job, job->ids.n));
  verifying run = {.vocab = vocab, .n = job->ids.n, .least_cosine = 1};
  run.exact = calloc(run.n, vocab * sizeof *run.exact);
  if (!run.exact) return fail(ML_E_NOMEM, "Give fewer ids.", "no memory for the logits of %zu ids", run.n);
  int code = run_pass(&run, job, true);
  if (code == DONE) code = run_pass(&run, job, false);
  if (code == DONE) code = report_verified(&run, job);
  free(run.exact);
  return code;
}
