/* UTF-8 against the definition: all code points, and all byte strings up to three. */
#include <string.h>

#include "test.h"
#include "text/utf8.h"

static bool is_surrogate(uint32_t c) { return c >= 0xD800 && c < 0xE000; }

TEST(text_utf8_every_code_point_goes_there_and_back) {
  uint32_t wrong = 0;
  for (uint32_t c = 0; c < 0x110000; c++) {
    if (is_surrogate(c)) continue;
    uint8_t bytes[ML_UTF8_MAX + 1] = {0};
    size_t size = ml_utf8_put(bytes, c), n;
    const uint8_t *at = bytes;
    size_t expected = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    bool valid = ml_utf8_judge(bytes, size, &n) == ML_UTF8_VALID && n == size;
    wrong += !(size == expected && valid && ml_utf8_next(&at) == c && at == bytes + size);
    for (size_t cut = 1; cut < size; cut++)
      wrong += !(ml_utf8_judge(bytes, cut, &n) == ML_UTF8_UNFINISHED && n == cut);
  }
  CHECK_EQ_U64(wrong, 0);
}

/* A character by arithmetic: its bytes spell a code point that needs them all and is no surrogate. */
static bool is_character(const uint8_t *bytes, size_t size) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (size == 1) return bytes[0] < 0x80;
  uint32_t lead_bits = 0xFFu >> (size + 1), c = bytes[0] & lead_bits;
  if ((uint8_t)~bytes[0] >> (7 - size) != 1) return false; /* size ones and a zero */
  for (size_t i = 1; i < size; i++) {
    if (bytes[i] >> 6 != 2) return false;
    c = c << 6 | (bytes[i] & 0x3F);
  }
  return c >= least[size] && c < 0x110000 && !is_surrogate(c);
}

/* Whether some continuation makes the bytes a character. */
static bool begins_character(const uint8_t *bytes, size_t size) {
  uint8_t whole[ML_UTF8_MAX];
  for (size_t length = size + 1; length <= ML_UTF8_MAX; length++)
    for (uint32_t second = 0x80; second < 0xC0; second++) {
      memset(whole, 0x80, sizeof whole);
      whole[1] = (uint8_t)second;
      memcpy(whole, bytes, size);
      if (is_character(whole, length)) return true;
    }
  return false;
}

/* The longest beginning of a character, at least one byte, is judged as one. */
static ml_utf8_kind judge_naively(const uint8_t *bytes, size_t size, size_t *n) {
  for (size_t length = 1; length <= size && length <= ML_UTF8_MAX; length++) {
    *n = length;
    if (is_character(bytes, length)) return ML_UTF8_VALID;
    if (!begins_character(bytes, length)) {
      *n = length > 1 ? length - 1 : 1;
      return ML_UTF8_BROKEN;
    }
  }
  return ML_UTF8_UNFINISHED;
}

TEST(text_utf8_judges_short_strings_by_the_definition) {
  /* Every first byte with the values around which the rules for the second and third change. */
  static const uint8_t edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F,
                                  0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xF4, 0xFF};
  uint32_t wrong = 0;
  for (uint32_t first = 0; first < 256; first++)
    for (size_t i = 0; i < sizeof edges; i++)
      for (size_t j = 0; j < sizeof edges; j++)
        for (size_t k = 0; k < sizeof edges; k++)
          for (size_t size = 1; size <= 4; size++) {
            const uint8_t bytes[] = {(uint8_t)first, edges[i], edges[j], edges[k]};
            size_t n, expected_n;
            ml_utf8_kind kind = ml_utf8_judge(bytes, size, &n);
            wrong += kind != judge_naively(bytes, size, &expected_n) || n != expected_n;
          }
  CHECK_EQ_U64(wrong, 0);
}

typedef struct repair_case {
  const char *bytes, *expected;
} repair_case;

/* Those of Unicode, table 3-8 and after: what String::from_utf8_lossy gives. */
TEST(text_utf8_repairs_as_other_decoders_do) {
  static const repair_case cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xF0\x9F\xA6\x99", "\xF0\x9F\xA6\x99"},
      {"\x80", "\uFFFD"},
      {"a\xC0\x80z", "a\uFFFD\uFFFDz"},
      {"\xE2\x82", "\uFFFD"},
      {"\xE2\x82z", "\uFFFDz"},
      {"\xF0\x9F\xA6", "\uFFFD"},
      {"\xF0\x9F\xA6\xF0\x9F\xA6\x99", "\uFFFD\xF0\x9F\xA6\x99"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"}, /* a surrogate */
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42",
       "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"
       "A\uFFFD\uFFFD"
       "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41",
       "\uFFFD\uFFFD\uFFFD\uFFFD"
       "A"},
      {"more than eight bytes \xFF of plain text", "more than eight bytes \uFFFD of plain text"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
    size_t size = strlen(cases[i].bytes);
    char out[200] = {0};
    CHECK_EQ_U64(ml_utf8_repair(NULL, bytes, size), strlen(cases[i].expected));
    CHECK_EQ_U64(ml_utf8_repair((uint8_t *)out, bytes, size), strlen(cases[i].expected));
    CHECK_EQ_TEXT(out, cases[i].expected);
  }
}

TEST(text_utf8_valid_prefix_ends_at_the_first_fault) {
  for (size_t at = 0; at < 40; at++)
    for (size_t size = at; size < 40; size++) {
      uint8_t bytes[40];
      memset(bytes, 'x', sizeof bytes);
      bytes[at] = 0xFF;
      CHECK_EQ_U64(ml_utf8_valid_prefix(bytes, size), at < size ? at : size);
    }
}
