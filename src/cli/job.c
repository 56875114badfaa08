#define _POSIX_C_SOURCE 200809L
#include "cli/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/package.h"
#include "cli/prompt.h"
#include "cli/report.h"

/* ---------------------------------------------------------------- ids */

int job_read_ids(cli_job *job) {
  if (job->options->ids && prompt_given(job->options)) return fail_usage("give --ids or a text, not both");
  if (prompt_given(job->options)) return prompt_read(job);
  if (!job->options->ids)
    return fail_usage("an input is needed: --prompt TEXT, --prompt-file FILE, or --ids LIST or FILE");
  return ids_read(&job->ids, "--ids", job->options->ids);
}

int job_open_ids_and_model(cli_job *job) {
  if (!job->options->model) return fail_usage("a model is needed: -m FILE.mlb, or -m FOLDER");
  TRY(job_read_ids(job));
  TRY(job_open_model(job, job->options->model));
  return ids_check_vocab(&job->ids, "--ids", ml_model_get_info(job->model)->vocab);
}

/* ---------------------------------------------------------------- model */

/* Reads the file in pieces, so that a pipe will do and nothing is held twice. */
static int push_all(ml_loader *loader, const input_file *input, const char *path) {
  enum { PIECE = 1 << 20 };
  uint8_t *piece = malloc(PIECE);
  if (!piece) return fail(ML_E_NOMEM, NULL, "no memory to read %s", path);
  int code = DONE;
  ml_error error;
  uint64_t done = 0;
  for (size_t got = 1; code == DONE && got > 0; done += got) {
    code = input_read(input, path, piece, PIECE, &got);
    if (code == DONE && got > 0 && ml_loader_push(loader, piece, got, &error) != ML_OK)
      code = fail_error(&error, path);
    progress("loading", done, input->size);
  }
  progress_end();
  free(piece);
  return code;
}

static int stream_model(cli_job *job, const char *path) {
  input_file input = {-1, 0};
  TRY(input_open(&input, path));
  ml_error error;
  ml_loader *loader = NULL;
  const ml_load_options load_options = {.total_size = input.size, .f16_body = job->options->f16_body};
  int code = DONE;
  if (ml_loader_new(&loader, &load_options, &error) != ML_OK) code = fail_error(&error, path);
  if (code == DONE) code = push_all(loader, &input, path);
  if (code == DONE && ml_loader_finish(loader, &job->model, &error) != ML_OK) code = fail_error(&error, path);
  ml_loader_free(loader);
  input_close(&input);
  return code;
}

static int map_model(cli_job *job, const char *path) {
  TRY(file_map(&job->file, path));
  ml_error error;
  const ml_load_options load_options = {.f16_body = job->options->f16_body};
  if (ml_model_map(&job->model, job->file.bytes, job->file.size, &load_options, &error) == ML_OK) return DONE;
  return fail_error(&error, path);
}

int job_open_model(cli_job *job, const char *path) {
  double start = now_seconds();
  char *file = NULL;
  TRY(package_model_path(path, &file));
  int code = job->options->mmap ? map_model(job, file) : stream_model(job, file);
  free(file);
  TRY(code);
  job->load_seconds = now_seconds() - start;
  ml_error error;
  if (job->tokenizer && ml_tokenizer_check_model(job->tokenizer, job->model, &error) != ML_OK)
    return fail_error(&error, path);
  return DONE;
}

/* ---------------------------------------------------------------- session */

uint32_t job_context(const cli_job *job) {
  uint32_t max_seq = ml_model_get_info(job->model)->max_seq;
  if (job->options->n_ctx) return job->options->n_ctx;
  return max_seq < 4096 ? max_seq : 4096;
}

int job_check_fits(const cli_job *job, size_t n_ids) {
  uint32_t max_seq = ml_model_get_info(job->model)->max_seq, n_ctx = job_context(job);
  if (n_ids <= n_ctx) return DONE;
  if (n_ids <= max_seq)
    return fail(ML_E_CONTEXT, "Raise --ctx, or give fewer ids.",
                "%zu ids do not fit a context of %" PRIu32 " (the model allows %" PRIu32 ")", n_ids, n_ctx,
                max_seq);
  return fail(ML_E_CONTEXT, "Give fewer ids.",
              "%zu ids do not fit a context of %" PRIu32 ", and the model allows no more than %" PRIu32,
              n_ids, n_ctx, max_seq);
}

/* 0 on the command line means one for each processor that is online. */
static uint32_t thread_count(uint32_t asked) {
  if (asked) return asked;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 ? 1 : online > 64 ? 64 : (uint32_t)online;
}

ml_session_options job_session_options(const cli_job *job) {
  const cli_options *asked = job->options;
  return (ml_session_options){.n_ctx = asked->n_ctx,
                              .n_batch = asked->n_batch,
                              .n_threads = thread_count(asked->n_threads),
                              .n_loops = asked->n_loops,
                              .kv = asked->kv,
                              .exact = asked->exact,
                              .isa = asked->isa,
                              .imatrix = job->imatrix};
}

int job_open_session(cli_job *job, const ml_session_options *session_options) {
  ml_error error;
  ml_status status = ml_session_new(&job->session, job->model, session_options, &error);
  if (status == ML_E_CONTEXT) return fail(status, "Lower --ctx, or leave it out.", "%s", error.message);
  if (status == ML_E_ARG && job->options->isa)
    return fail(status, "`ml_run --isa list` names the kernels.", "%s", error.message);
  if (status != ML_OK) return fail_error(&error, NULL);
  job->session_bytes = ml_session_memory(job->model, session_options);
  interrupt_watch();
  return DONE;
}

void job_close(cli_job *job) {
  ml_session_free(job->session);
  ml_imatrix_free(job->imatrix);
  ml_model_free(job->model);
  ml_tokenizer_free(job->tokenizer);
  file_unmap(&job->file);
  ids_free(&job->ids);
}
