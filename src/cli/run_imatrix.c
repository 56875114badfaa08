/* run_imatrix.c - the importance matrix of a text: sums of squared inputs of all matrices, an MLI1 file. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"

/* Logits are asked for after every id only because the classifier's input counts when they are. */
static bool keep_going(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  (void)user, (void)position, (void)logits, (void)logits_exact;
  return !interrupt_requested();
}

/* Windows of the context's length, one after the other, none knowing of the one before. */
static int gather(cli_job *job) {
  size_t n_ctx = job_context(job);
  for (size_t done = 0; done < job->ids.n;) {
    size_t n = job->ids.n - done < n_ctx ? job->ids.n - done : n_ctx;
    ml_error error;
    ml_session_truncate(job->session, 0);
    if (ml_session_score(job->session, job->ids.ids + done, n, keep_going, NULL, &error) != ML_OK)
      return fail_error(&error, NULL);
    if (interrupt_requested()) return fail_interrupted("no importance matrix was written");
    done += n;
    progress("importance matrix", done, job->ids.n);
  }
  return DONE;
}

static int write_file(const ml_imatrix *imatrix, output_file *file) {
  uint64_t size = ml_imatrix_size(imatrix);
  uint8_t *bytes = size <= SIZE_MAX ? malloc((size_t)size) : NULL;
  if (!bytes) return fail(ML_E_NOMEM, NULL, "no memory for an importance matrix of %" PRIu64 " bytes", size);
  ml_imatrix_write(imatrix, bytes);
  int code = output_write(file, bytes, (size_t)size);
  free(bytes);
  return code;
}

static int gather_and_write(cli_job *job, output_file *file) {
  TRY(gather(job));
  TRY(write_file(job->imatrix, file));
  return output_commit(file);
}

int run_imatrix(cli_job *job) {
  TRY(job_open_ids_and_model(job));
  ml_error error;
  if (ml_imatrix_new(&job->imatrix, job->model, NULL, &error) != ML_OK) return fail_error(&error, NULL);
  const ml_session_options session_options = job_session_options(job);
  TRY(job_open_session(job, &session_options));
  output_file file; /* opened before the work, so that a path that cannot be written costs none */
  TRY(output_open(&file, job->options->mode_file));
  int code = gather_and_write(job, &file);
  output_discard(&file);
  if (code == DONE) note("wrote %s: %zu ids", job->options->mode_file, job->ids.n);
  return code;
}
