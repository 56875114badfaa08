/* run_text.c - text to ids and ids to text, with a tokenizer and without a model. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/prompt.h"
#include "cli/report.h"

/* ---------------------------------------------------------------- text to ids */

static void print_ids(const id_list *list) {
  for (size_t i = 0; i < list->n; i++) printf(i ? " %ld" : "%ld", (long)list->ids[i]);
  putchar('\n');
}

int run_tokenize(cli_job *job) {
  char *text = NULL;
  size_t size;
  TRY(prompt_open_tokenizer(job));
  TRY(file_read_all(job->options->mode_file, &text, &size));
  int code = prompt_encode(job, text, size, &job->ids);
  if (code == DONE) print_ids(&job->ids);
  free(text);
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

static int print_text(const cli_job *job) {
  ml_error error;
  ml_decoder *decoder;
  const char *text;
  size_t size;
  if (ml_decoder_new(&decoder, job->tokenizer, NULL, &error) != ML_OK) return fail_error(&error, NULL);
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
  TRY(ids_read(&job->ids, "--detokenize", job->options->mode_file));
  TRY(prompt_open_tokenizer(job));
  TRY(check_ids(&job->ids, ml_tokenizer_get_info(job->tokenizer)->n_vocab));
  return print_text(job);
}
