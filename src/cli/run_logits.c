/* run_logits.c - the logits after every given id, as a NumPy matrix (ids, vocabulary). */
#include <inttypes.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/npy.h"
#include "cli/report.h"

typedef struct writing {
  output_file file;
  size_t vocab, rows_done, rows;
  int code; /* of a failed write */
} writing;

static bool write_row(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  writing *out = user;
  (void)position;
  if (logits_exact)
    out->code = output_write(&out->file, logits_exact, out->vocab * sizeof *logits_exact);
  else
    out->code = output_write(&out->file, logits, out->vocab * sizeof *logits);
  out->rows_done++;
  progress("logits", out->rows_done, out->rows);
  return out->code == DONE && !interrupt_requested();
}

static int write_rows(writing *out, cli_job *job) {
  TRY(npy_write_header(&out->file, job->options->exact, out->rows, out->vocab));
  ml_error error;
  if (ml_session_score(job->session, job->ids.ids, job->ids.n, write_row, out, &error) != ML_OK)
    return fail_error(&error, NULL);
  if (out->code != DONE) return out->code;
  if (out->rows_done < out->rows) return fail_interrupted("no logits were written");
  return DONE;
}

int run_logits(cli_job *job) {
  TRY(job_open_ids_and_model(job));
  TRY(job_check_fits(job, job->ids.n));
  const ml_session_options session_options = job_session_options(job);
  TRY(job_open_session(job, &session_options));
  writing out = {.vocab = ml_model_get_info(job->model)->vocab, .rows = job->ids.n};
  TRY(output_open(&out.file, job->options->mode_file));
  int code = write_rows(&out, job);
  if (code == DONE) code = output_commit(&out.file);
  output_discard(&out.file);
  if (code == DONE)
    note("wrote %s: %zu x %zu %s", job->options->mode_file, out.rows, out.vocab,
         job->options->exact ? "float64" : "float32");
  return code;
}
