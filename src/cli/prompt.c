#include "cli/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "cli/package.h"
#include "cli/report.h"

int prompt_open_tokenizer(cli_job *job) {
  if (job->tokenizer) return DONE;
  char *path = NULL;
  TRY(package_tokenizer_path(job->options, &path));
  mapped_file file = {0};
  ml_error error;
  int code = file_map(&file, path);
  if (code == DONE && ml_tokenizer_open(&job->tokenizer, file.bytes, file.size, NULL, &error) != ML_OK)
    code = fail_error(&error, path);
  file_unmap(&file);
  free(path);
  return code;
}

/* A template writes BOS, and the tokenizer would too. */
static void drop_second_bos(const cli_job *job, id_list *list) {
  int32_t bos = ml_tokenizer_get_info(job->tokenizer)->bos;
  if (!job->options->special || bos < 0 || list->n < 2 || list->ids[0] != bos || list->ids[1] != bos) return;
  memmove(list->ids, list->ids + 1, --list->n * sizeof *list->ids);
}

int prompt_encode(const cli_job *job, const char *text, size_t size, id_list *out) {
  unsigned flags = job->options->special ? ML_ENCODE_SPECIAL : 0;
  ml_error error;
  for (size_t capacity = size + 16;;) {
    int32_t *ids = realloc(out->ids, capacity * sizeof *ids);
    if (!ids) return fail(ML_E_NOMEM, NULL, "no memory for %zu ids", capacity);
    out->ids = ids;
    if (ml_tokenizer_encode(job->tokenizer, text, size, flags, ids, capacity, &out->n, &error) != ML_OK)
      return fail_error(&error, NULL);
    if (out->n <= capacity) break;
    capacity = out->n;
  }
  drop_second_bos(job, out);
  return DONE;
}

bool prompt_given(const cli_options *options) { return options->prompt || options->prompt_file; }

int prompt_read(cli_job *job) {
  const cli_options *asked = job->options;
  TRY(prompt_open_tokenizer(job));
  char *read = NULL;
  size_t size = 0;
  if (asked->prompt)
    size = strlen(asked->prompt);
  else
    TRY(file_read_all(asked->prompt_file, &read, &size));
  int code = prompt_encode(job, asked->prompt ? asked->prompt : read, size, &job->ids);
  free(read);
  if (code == DONE && job->ids.n == 0)
    return fail(ML_E_ARG, "Give some text.", "the prompt is empty: there is nothing to begin with");
  return code;
}
