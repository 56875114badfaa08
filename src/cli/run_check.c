/* run_check.c - loads a file of any kind that the project knows, told by its first four bytes; no more. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"

/* Opened anew, the way that the options choose. */
static int check_model(cli_job *job, const char *path) {
  file_unmap(&job->file);
  return job_open_model(job, path);
}

static int check_imatrix(cli_job *job, const char *path) {
  ml_error error;
  if (ml_imatrix_check(job->file.bytes, job->file.size, &error) == ML_OK) return DONE;
  return fail_error(&error, path);
}

static int check_tokenizer(cli_job *job, const char *path) {
  ml_error error;
  ml_tokenizer *tokenizer;
  if (ml_tokenizer_open(&tokenizer, job->file.bytes, job->file.size, NULL, &error) != ML_OK)
    return fail_error(&error, path);
  ml_tokenizer_free(tokenizer);
  return DONE;
}

/* One row for each kind of file. */
static const struct {
  const char *magic; /* the file's first four bytes */
  const char *what;
  int (*check)(cli_job *job, const char *path); /* finds the file mapped */
} kinds[] = {
    {"MLB1", "model", check_model},
    {"MLI1", "importance matrix", check_imatrix},
    {"MLT1", "tokenizer", check_tokenizer},
    {"TLLP", "TinyLoop model", check_model},
};

int run_check(cli_job *job) {
  const char *path = job->options->mode_file;
  const char *advice =
      "Known files begin with MLB1 or TLLP (models), MLI1 (importance matrix) or MLT1 (tokenizer).";
  TRY(file_map(&job->file, path));
  if (job->file.size < 4) return check_model(job, path); /* which says how short that is */
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (memcmp(job->file.bytes, kinds[i].magic, 4) != 0) continue;
    TRY(kinds[i].check(job, path));
    printf("%s: %s, good\n", path, kinds[i].what);
    return DONE;
  }
  return fail(ML_E_FORMAT, advice, "%s: its magic, the first four bytes, is of no kind of file known here",
              path);
}
