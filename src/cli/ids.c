#define _POSIX_C_SOURCE 200809L
#include "cli/ids.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/report.h"

#define SEPARATORS ", \t\r\n\v\f"

/* Where in the text the reader is. */
typedef struct text_cursor {
  const char *option, *file; /* file: NULL for a list on the command line */
  const char *at, *end;
  size_t item; /* of the word at `at`, from 1 */
  size_t line; /* from 1 */
} text_cursor;

static bool is_separator(char c) { return c != 0 && strchr(SEPARATORS, c) != NULL; }

/* Moves to the next word; false at the end. */
static bool next_word(text_cursor *cursor, size_t *length) {
  while (cursor->at < cursor->end && is_separator(*cursor->at)) cursor->line += *cursor->at++ == '\n';
  const char *word = cursor->at;
  while (word < cursor->end && !is_separator(*word)) word++;
  *length = (size_t)(word - cursor->at);
  cursor->item++;
  return *length > 0;
}

static int fail_at(const text_cursor *cursor, size_t length, const char *rule) {
  const char *advice = "Ids are whole numbers from 0 up, separated by commas, blanks or lines.";
  int shown = length < 40 ? (int)length : 40;
  const char *dots = length > 40 ? "..." : "";
  if (cursor->file)
    return fail(ML_E_ARG, advice, "%s %s, line %zu, item %zu: '%.*s%s' %s", cursor->option, cursor->file,
                cursor->line, cursor->item, shown, cursor->at, dots, rule);
  return fail(ML_E_ARG, advice, "%s, item %zu: '%.*s%s' %s", cursor->option, cursor->item, shown, cursor->at,
              dots, rule);
}

/* One word of `length` characters, which a separator or the text's terminator follows. */
static int parse_id(const text_cursor *cursor, size_t length, int32_t *id) {
  const char *digits = cursor->at + (*cursor->at == '-' || *cursor->at == '+');
  size_t n_digits = length - (size_t)(digits - cursor->at);
  if (n_digits == 0 || strspn(digits, "0123456789") != n_digits)
    return fail_at(cursor, length, "is not a whole number");
  errno = 0;
  long long value = strtoll(cursor->at, NULL, 10);
  if (value < 0) return fail_at(cursor, length, "is below 0");
  if (errno || value > INT32_MAX) return fail_at(cursor, length, "is above 2147483647, the largest id");
  *id = (int32_t)value;
  return DONE;
}

static int parse_all(text_cursor *cursor, id_list *out) {
  size_t length, capacity = 0;
  while (next_word(cursor, &length)) {
    if (out->n == capacity) {
      capacity = capacity ? capacity * 2 : 256;
      int32_t *moved = realloc(out->ids, capacity * sizeof *moved);
      if (!moved) return fail(ML_E_NOMEM, NULL, "no memory for %zu ids", capacity);
      out->ids = moved;
    }
    TRY(parse_id(cursor, length, &out->ids[out->n]));
    out->n++;
    cursor->at += length;
  }
  if (out->n) return DONE;
  return fail(ML_E_ARG, "At least one id is needed.", "%s%s%s: the list is empty", cursor->option,
              cursor->file ? " " : "", cursor->file ? cursor->file : "");
}

static int parse_text(const text_cursor *start, id_list *out) {
  text_cursor cursor = *start;
  memset(out, 0, sizeof *out);
  int code = parse_all(&cursor, out);
  if (code != DONE) ids_free(out);
  return code;
}

/* A list with a mistake in it is still a list, unless a file has that name. */
static bool is_list(const char *argument) {
  if (strspn(argument, "0123456789+-." SEPARATORS) == strlen(argument)) return true;
  return strpbrk(argument, SEPARATORS) != NULL && access(argument, F_OK) != 0;
}

int ids_read(id_list *out, const char *option, const char *argument) {
  bool standard_input = strcmp(argument, "-") == 0;
  if (!standard_input && is_list(argument))
    return parse_text(&(text_cursor){option, NULL, argument, argument + strlen(argument), 0, 1}, out);
  if (!standard_input && access(argument, F_OK) != 0)
    return fail(ML_E_ARG, "Give ids like 1,15043,29892, a file that holds them, or - for standard input.",
                "%s: '%.60s' is neither a list of ids nor an existing file", option, argument);
  char *text;
  size_t size;
  TRY(file_read_all(argument, &text, &size));
  const char *name = standard_input ? "standard input" : argument;
  int code = parse_text(&(text_cursor){option, name, text, text + size, 0, 1}, out);
  free(text);
  return code;
}

int ids_check_vocab(const id_list *list, const char *option, uint32_t vocab) {
  for (size_t i = 0; i < list->n; i++)
    if ((uint32_t)list->ids[i] >= vocab)
      return fail(ML_E_ARG, "The ids must come from this model's own tokenizer.",
                  "%s, item %zu: token id %ld is outside the model's vocabulary of %lu", option, i + 1,
                  (long)list->ids[i], (unsigned long)vocab);
  return DONE;
}

void ids_free(id_list *list) {
  free(list->ids);
  memset(list, 0, sizeof *list);
}

int ids_make_up(id_list *out, size_t n, uint32_t vocab) {
  out->ids = malloc(n * sizeof *out->ids);
  if (!out->ids) return fail(ML_E_NOMEM, NULL, "no memory for %zu ids", n);
  out->n = n;
  for (size_t i = 0; i < n; i++) out->ids[i] = (int32_t)((i * 2654435761u + 1) % vocab);
  return DONE;
}
