/* run_text.c - text to ids and ids to text, with a tokenizer and without a model. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/report.h"

static int open_tokenizer(cli_job *job, ml_tokenizer **tokenizer) {
  const char *path = job->options->tokenizer;
  if (!path) return fail_usage("a tokenizer is needed: --tokenizer FILE.mlt");
  TRY(file_map(&job->file, path));
  ml_error error;
  if (ml_tokenizer_open(tokenizer, job->file.bytes, job->file.size, NULL, &error) == ML_OK) return DONE;
  return fail_error(&error, path);
}

/* ---------------------------------------------------------------- text to ids */

/* Into a block from malloc. */
static int encode(const cli_job *job, const ml_tokenizer *tokenizer, const char *text, size_t size,
                  id_list *out) {
  unsigned flags = job->options->special ? ML_ENCODE_SPECIAL : 0;
  ml_error error;
  for (size_t capacity = size + 16;;) {
    int32_t *ids = realloc(out->ids, capacity * sizeof *ids);
    if (!ids) return fail(ML_E_NOMEM, NULL, "no memory for %zu ids", capacity);
    out->ids = ids;
    if (ml_tokenizer_encode(tokenizer, text, size, flags, ids, capacity, &out->n, &error) != ML_OK)
      return fail_error(&error, NULL);
    if (out->n <= capacity) return DONE;
    capacity = out->n;
  }
}

static void print_ids(const id_list *list) {
  for (size_t i = 0; i < list->n; i++) printf(i ? " %ld" : "%ld", (long)list->ids[i]);
  putchar('\n');
}

int run_tokenize(cli_job *job) {
  ml_tokenizer *tokenizer = NULL;
  char *text = NULL;
  size_t size;
  int code = open_tokenizer(job, &tokenizer);
  if (code == DONE) code = file_read_all(job->options->mode_file, &text, &size);
  if (code == DONE) code = encode(job, tokenizer, text, size, &job->ids);
  if (code == DONE) print_ids(&job->ids);
  free(text);
  ml_tokenizer_free(tokenizer);
  return code;
}

/* ---------------------------------------------------------------- ids to text */

/* Before anything is printed. */
static int check_ids(const id_list *list, uint32_t n_vocab) {
  for (size_t i = 0; i < list->n; i++)
    if ((uint32_t)list->ids[i] >= n_vocab)
      return fail(ML_E_ARG, "The ids must come from this tokenizer.",
                  "--detokenize, item %zu: token id %ld is outside the vocabulary of %lu", i + 1,
                  (long)list->ids[i], (unsigned long)n_vocab);
  return DONE;
}

static int print_text(const cli_job *job, const ml_tokenizer *tokenizer) {
  ml_error error;
  ml_decoder *decoder;
  const char *text;
  size_t size;
  if (ml_decoder_new(&decoder, tokenizer, NULL, &error) != ML_OK) return fail_error(&error, NULL);
  for (size_t i = 0; i < job->ids.n; i++) {
    if (ml_decoder_push(decoder, job->ids.ids[i], job->options->special, &text, &size, &error) != ML_OK) {
      ml_decoder_free(decoder);
      return fail_error(&error, NULL);
    }
    fwrite(text, 1, size, stdout);
  }
  ml_decoder_finish(decoder, &text, &size);
  fwrite(text, 1, size, stdout);
  ml_decoder_free(decoder);
  return DONE;
}

int run_detokenize(cli_job *job) {
  ml_tokenizer *tokenizer = NULL;
  TRY(ids_read(&job->ids, "--detokenize", job->options->mode_file));
  int code = open_tokenizer(job, &tokenizer);
  if (code == DONE) code = check_ids(&job->ids, ml_tokenizer_get_info(tokenizer)->n_vocab);
  if (code == DONE) code = print_text(job, tokenizer);
  ml_tokenizer_free(tokenizer);
  return code;
}
