/* job.h - one run of the program: what was asked for, and what has been opened for it so far. */
#ifndef ML_CLI_JOB_H
#define ML_CLI_JOB_H

#include "cli/files.h"
#include "cli/ids.h"
#include "cli/options.h"

typedef struct cli_job {
  const cli_options *options;
  id_list ids;
  mapped_file file; /* of the model, unless it was read */
  ml_model *model;
  ml_tokenizer *tokenizer; /* NULL unless there is text */
  double load_seconds;
  ml_imatrix *imatrix;
  ml_session *session;
  uint64_t session_bytes;
} cli_job;

/* The ids of --ids, or of the text of --prompt. They are read before the model, so that a typing mistake costs no
 * loading. */
int job_read_ids(cli_job *job);

/* The model of `path` (a file, or the folder of a package), mapped or read as the options say, and checked to fit the
 * tokenizer if there is one. */
int job_open_model(cli_job *job, const char *path);

/* The usual beginning: ids, the model of -m, and the ids checked against its vocabulary. */
int job_open_ids_and_model(cli_job *job);

/* How many positions a session will have: --ctx, or the library's default for this model. */
uint32_t job_context(const cli_job *job);

/* ML_E_CONTEXT when that many ids do not fit; told before any work. */
int job_check_fits(const cli_job *job, size_t n_ids);

/* The options as the library takes them. */
ml_session_options job_session_options(const cli_job *job);

/* A session with these options, usually those above; from here on Ctrl-C is a request. */
int job_open_session(cli_job *job, const ml_session_options *session_options);

void job_close(cli_job *job); /* everything, opened or not */

#endif
