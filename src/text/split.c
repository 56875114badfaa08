#include "text/split.h"

#include "format/mlt.h"
#include "text/utf8.h"

/* A position in the text: the character there, and the place behind it. */
typedef struct spot {
  const uint8_t *at, *next;
  uint32_t character;
  ml_char_class class; /* BLANK at the end of the text, so that nothing but runs of blanks goes on there */
  bool at_end;
} spot;

static spot look(const ml_splitter *s, const uint8_t *at) {
  spot here = {at, at, 0, ML_CHAR_BLANK, true};
  if (at == s->part_end) return here;
  here.at_end = false;
  here.character = ml_utf8_next(&here.next);
  here.class = ml_unicode_class(s->unicode, here.character);
  return here;
}

static bool is_letter(const ml_splitter *s, ml_char_class class) {
  return class == ML_CHAR_LETTER || (class == ML_CHAR_MARK && (s->flags & ML_MLT_MARKS) != 0);
}

/* [^\s\p{L}\p{N}], or without marks too */
static bool is_symbol(const ml_splitter *s, ml_char_class class) {
  return class != ML_CHAR_BLANK && class != ML_CHAR_NUMBER && !is_letter(s, class);
}

static bool is_newline(uint32_t character) { return character == '\n' || character == '\r'; }

/* ---------------------------------------------------------------- runs: from a spot to the end of what matches */

static const uint8_t *skip_letters(const ml_splitter *s, spot here) {
  while (is_letter(s, here.class)) here = look(s, here.next);
  return here.at;
}

static const uint8_t *skip_numbers(const ml_splitter *s, spot here, uint32_t at_most) {
  for (uint32_t n = 0; here.class == ML_CHAR_NUMBER && n < at_most; n++) here = look(s, here.next);
  return here.at;
}

static const uint8_t *skip_symbols(const ml_splitter *s, spot here) {
  while (is_symbol(s, here.class)) here = look(s, here.next);
  return here.at;
}

/* \s+(?!\S)|\s+ - all blanks, but the last one is left to what follows, if that is not the end and one remains. */
static const uint8_t *skip_blanks(const ml_splitter *s, spot here) {
  const uint8_t *start = here.at, *last = here.at;
  for (; here.class == ML_CHAR_BLANK && !here.at_end; here = look(s, here.next)) last = here.at;
  return here.at_end || last == start ? here.at : last;
}

/* \s*[\r\n]+ - blanks up to the last newline among them; where there is none, as skip_blanks. */
static const uint8_t *skip_lines(const ml_splitter *s, spot start) {
  const uint8_t *behind_newline = NULL;
  for (spot here = start; here.class == ML_CHAR_BLANK && !here.at_end; here = look(s, here.next))
    if (is_newline(here.character)) behind_newline = here.next;
  return behind_newline ? behind_newline : skip_blanks(s, start);
}

/* 's|'t|'re|'ve|'m|'ll|'d at an apostrophe; NULL if it is none of them. Folding case lets U+017F, the long s, be an s. */
static const uint8_t *skip_contraction(const ml_splitter *s, const uint8_t *at, bool fold_case) {
  size_t left = (size_t)(s->part_end - at);
  uint8_t fold = fold_case ? 0x20 : 0;
  if (left < 2) return NULL;
  uint8_t first = at[1] | fold, second = left > 2 ? at[2] | fold : 0;
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  if (fold_case && left > 2 && at[1] == 0xC5 && at[2] == 0xBF) return at + 3;
  return NULL;
}

/* ---------------------------------------------------------------- the expressions: from a spot to the end of the piece */

static const uint8_t *match_llama3(const ml_splitter *s, spot here) {
  if (is_letter(s, here.class)) return skip_letters(s, here);
  if (here.class == ML_CHAR_NUMBER) return skip_numbers(s, here, s->flags & ML_MLT_ONE_DIGIT ? 1 : 3);
  if (here.character == '\'') {
    const uint8_t *end = skip_contraction(s, here.at, true);
    if (end) return end;
  }
  spot next = look(s, here.next);
  if (!is_newline(here.character) && is_letter(s, next.class)) return skip_letters(s, next);
  bool symbols = is_symbol(s, here.class);
  if (!symbols && !(here.character == ' ' && is_symbol(s, next.class))) return skip_lines(s, here);
  const uint8_t *end = skip_symbols(s, symbols ? here : next);
  while (end < s->part_end && is_newline(*end)) end++;
  return end;
}

static const uint8_t *match_gpt2(const ml_splitter *s, spot here) {
  if (here.character == '\'') {
    const uint8_t *end = skip_contraction(s, here.at, false);
    if (end) return end;
  }
  spot start = here.character == ' ' ? look(s, here.next) : here;
  if (start.class == ML_CHAR_BLANK) return skip_blanks(s, here);
  if (start.class == ML_CHAR_LETTER) return skip_letters(s, start);
  if (start.class == ML_CHAR_NUMBER) return skip_numbers(s, start, UINT32_MAX);
  return skip_symbols(s, start);
}

/* ---------------------------------------------------------------- parts */

static bool is_digit(ml_char_class class) { return class == ML_CHAR_NUMBER || class == ML_CHAR_LATE_NUMBER; }

/* The end of the text that the expression is to see: a number character alone, or all up to the next one. */
static const uint8_t *find_part_end(ml_splitter *s) {
  s->part_end = s->end;
  if (!(s->flags & ML_MLT_SPLIT_DIGITS)) return s->end;
  spot here = look(s, s->at);
  if (is_digit(here.class)) return here.next;
  while (!here.at_end && !is_digit(here.class)) here = look(s, here.next);
  return here.at;
}

ml_splitter ml_split_begin(const ml_unicode *unicode, uint32_t flags, const uint8_t *text, size_t size) {
  return (ml_splitter){unicode, flags, text, text + size, text};
}

bool ml_split_next(ml_splitter *s, const uint8_t **piece, size_t *size) {
  if (s->at == s->end) return false;
  if (s->at == s->part_end) s->part_end = find_part_end(s);
  spot here = look(s, s->at);
  const uint8_t *end = s->flags & ML_MLT_GPT2 ? match_gpt2(s, here) : match_llama3(s, here);
  *piece = s->at;
  *size = (size_t)(end - s->at);
  s->at = end;
  return true;
}
