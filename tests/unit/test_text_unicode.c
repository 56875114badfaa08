/* The unpacked character tables, and normalization. What is right was asked of the tokenizers library when the tables were
 * made (tools/make_unicode_tables.py --check asks again); here it is checked that nothing is lost on the way. */
#include <string.h>

#include "test.h"
#include "test_allocator.h"
#include "text/nfc.h"
#include "text/utf8.h"

typedef struct tables {
  ml_arena arena;
  const ml_unicode *unicode; /* NULL: no memory */
} tables;

static tables open_tables(void) {
  ml_arena measure = ml_arena_measure();
  ml_unicode_place(&measure);
  tables opened = {.unicode = NULL};
  if (ml_arena_open(&opened.arena, NULL, measure.taken, 0, "tables", NULL) == ML_OK)
    opened.unicode = ml_unicode_place(&opened.arena);
  return opened;
}

/* The hash stands in src/text/unicode_tables.h, written there by the program that made the tables. */
TEST(text_unicode_values_survive_packing) {
  tables opened = open_tables();
  REQUIRE(opened.unicode != NULL);
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint32_t c = 0; c < 0x110000; c++)
    hash = (hash ^ ml_unicode_value(opened.unicode, c)) * 0x100000001b3u;
  CHECK_EQ_U64(hash, 0x0ca11773cef12a3bu);
  ml_arena_close(&opened.arena);
}

/* Counted by Unicode 16.0's own files; 17.0 has 13 numbers more. Surrogates, here without a class, are none of these. */
TEST(text_unicode_classes_have_the_members_of_unicode_16) {
  tables opened = open_tables();
  REQUIRE(opened.unicode != NULL);
  uint32_t count[6] = {0};
  for (uint32_t c = 0; c < 0x110000; c++) count[ml_unicode_class(opened.unicode, c)]++;
  CHECK_EQ_U64(count[ML_CHAR_LETTER], 141028);
  CHECK_EQ_U64(count[ML_CHAR_MARK], 2501);
  CHECK_EQ_U64(count[ML_CHAR_NUMBER], 1911);
  CHECK_EQ_U64(count[ML_CHAR_BLANK], 25);
  CHECK_EQ_U64(count[ML_CHAR_LATE_NUMBER], 13);
  ml_arena_close(&opened.arena);
}

TEST(text_unicode_classes_of_some_characters) {
  static const struct {
    uint32_t code_point;
    ml_char_class class;
  } cases[] = {
      {'a', ML_CHAR_LETTER},    {'_', ML_CHAR_OTHER},      {'7', ML_CHAR_NUMBER},
      {' ', ML_CHAR_BLANK},     {'\n', ML_CHAR_BLANK},     {0x1C, ML_CHAR_OTHER},
      {0x85, ML_CHAR_BLANK},    {0xA0, ML_CHAR_BLANK},     {0xB2, ML_CHAR_NUMBER},
      {0xBD, ML_CHAR_NUMBER},   {0x17F, ML_CHAR_LETTER},   {0x301, ML_CHAR_MARK},
      {0x345, ML_CHAR_MARK},    {0x661, ML_CHAR_NUMBER},   {0x200B, ML_CHAR_OTHER},
      {0x2028, ML_CHAR_BLANK},  {0x2167, ML_CHAR_NUMBER},  {0x3000, ML_CHAR_BLANK},
      {0x4E2D, ML_CHAR_LETTER}, {0xAC00, ML_CHAR_LETTER},  {0x11DE0, ML_CHAR_LATE_NUMBER},
      {0x1F999, ML_CHAR_OTHER}, {0x2FA1D, ML_CHAR_LETTER}, {0x10FFFF, ML_CHAR_OTHER},
  };
  tables opened = open_tables();
  REQUIRE(opened.unicode != NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    CHECK_EQ_U64(ml_unicode_class(opened.unicode, cases[i].code_point), cases[i].class);
  ml_arena_close(&opened.arena);
}

/* ---------------------------------------------------------------- normalization */

typedef struct normalizer {
  tables opened;
  ml_buffer scratch, out;
} normalizer;

static normalizer open_normalizer(void) {
  ml_allocator memory = ml_allocator_or_default(NULL);
  return (normalizer){open_tables(), ml_buffer_new(&memory), ml_buffer_new(&memory)};
}

static void close_normalizer(normalizer *n) {
  ml_buffer_free(&n->scratch);
  ml_buffer_free(&n->out);
  ml_arena_close(&n->opened.arena);
}

/* The result is in n->out. */
static size_t normalize(normalizer *n, const void *text, size_t size) {
  size_t out_size = 0;
  CHECK_EQ_I64(ml_nfc_normalize(n->opened.unicode, text, size, &n->scratch, &n->out, &out_size, NULL), ML_OK);
  return out_size;
}

static void check_nfc(normalizer *n, const char *text, const char *expected) {
  size_t size = normalize(n, text, strlen(text));
  if (CHECK_EQ_U64(size, strlen(expected))) CHECK_EQ_BYTES(n->out.memory, (const uint8_t *)expected, size);
}

TEST(text_nfc_of_some_texts) {
  static const char *const cases[][2] = {
      {"plain", "plain"},
      {"e\u0301", "\u00e9"},
      {"\u00e9", "\u00e9"},
      {"\u212b", "\u00c5"},        /* a singleton that composes anew */
      {"a\u0323\u0302", "\u1ead"}, /* two steps */
      {"a\u0302\u0323", "\u1ead"}, /* marks out of order */
      {"\u00e2\u0323", "\u1ead"},  /* taken apart and put together */
      {"a\u0315\u0300\u05ae"
       "b",
       "\u00e0\u05ae\u0315"
       "b"},
      {"a\u0301\u0301", "\u00e1\u0301"},  /* the second is blocked */
      {"a\u0305\u0301", "a\u0305\u0301"}, /* blocked by one of its class that does not compose */
      {"a\u0327\u0301", "\u00e1\u0327"},
      {"\u0958", "\u0915\u093c"}, /* excluded from composition */
      {"\u0915\u093c", "\u0915\u093c"},
      {"\u0344", "\u0308\u0301"},       /* a mark of two marks */
      {"\u0301e", "\u0301e"},           /* a mark without anything before it */
      {"\u1112\u1161\u11ab", "\ud55c"}, /* Hangul */
      {"\ud558\u11ab", "\ud55c"},
      {"\u1100\u1161\u1161", "\uac00\u1161"},
      {"\uac01\u11a8", "\uac01\u11a8"}, /* has its T already */
      {"\u1100\u0301\u1161", "\u1100\u0301\u1161"},
      {"\u09c7\u09be", "\u09cb"}, /* a starter that joins */
      {"\ufb1d", "\u05d9\u05b4"},
      {"\U0002f800", "\u4e3d"},
      {"\U0001d15e", "\U0001d157\U0001d165"},
  };
  normalizer n = open_normalizer();
  REQUIRE(n.opened.unicode != NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_nfc(&n, cases[i][0], cases[i][1]);
  close_normalizer(&n);
}

/* One code point at a time: the value says whether normalization changes it, and once is enough. */
TEST(text_nfc_of_every_code_point) {
  normalizer n = open_normalizer();
  REQUIRE(n.opened.unicode != NULL);
  uint32_t wrong = 0, changed = 0;
  for (uint32_t c = 0; c < 0x110000; c++) {
    if (c >= 0xD800 && c < 0xE000) continue;
    uint8_t text[ML_UTF8_MAX], once[64];
    size_t size = ml_utf8_put(text, c), once_size = 0;
    if (ml_nfc_is_plain(n.opened.unicode, text, size)) {
      uint32_t value = ml_unicode_value(n.opened.unicode, c);
      wrong += value >= ML_CHAR_NON_STARTER || (value & (ML_CHAR_JOINS | ML_CHAR_CHANGES)) != 0;
      continue;
    }
    once_size = normalize(&n, text, size);
    memcpy(once, n.out.memory, once_size);
    changed += once_size != size || memcmp(once, text, size) != 0;
    size_t twice_size = normalize(&n, once, once_size);
    wrong += twice_size != once_size || memcmp(n.out.memory, once, once_size) != 0;
  }
  CHECK_EQ_U64(wrong, 0);
  CHECK_EQ_U64(changed, 1035 + 85); /* singletons, and what is excluded from composition */
  close_normalizer(&n);
}

TEST(text_nfc_composes_every_hangul_syllable) {
  normalizer n = open_normalizer();
  REQUIRE(n.opened.unicode != NULL);
  for (uint32_t s = 0; s < 19 * 21 * 28; s++) {
    uint8_t jamo[12], whole[4];
    size_t size = ml_utf8_put(jamo, 0x1100 + s / (21 * 28));
    size += ml_utf8_put(jamo + size, 0x1161 + s / 28 % 21);
    if (s % 28) size += ml_utf8_put(jamo + size, 0x11A7 + s % 28);
    size_t whole_size = ml_utf8_put(whole, 0xAC00 + s);
    size_t out_size = normalize(&n, jamo, size);
    CHECK(out_size == whole_size && memcmp(n.out.memory, whole, whole_size) == 0);
  }
  close_normalizer(&n);
}

/* Marks of different classes may be spelled in any order. Long runs are sorted in another way than short ones. */
TEST(text_nfc_orders_runs_of_marks_of_any_length) {
  static const char *const marks[] = {"\u0334", "\u0327", "\u0323", "\u0301", "\u0345"}; /* by rising class */
  normalizer n = open_normalizer();
  REQUIRE(n.opened.unicode != NULL);
  for (uint32_t each = 1; each <= 20; each++) {
    char sorted[2 * 5 * 20 + 2] = "x", mixed[2 * 5 * 20 + 2] = "x";
    uint32_t left[5] = {each, each, each, each, each};
    for (uint32_t m = 0; m < 5; m++)
      for (uint32_t i = 0; i < each; i++) memcpy(sorted + 1 + 2 * (m * each + i), marks[m], 3);
    for (uint32_t i = 0, m; i < 5 * each; i++) {
      do m = test_random_below(5);
      while (left[m] == 0);
      left[m]--;
      memcpy(mixed + 1 + 2 * i, marks[m], 3);
    }
    check_nfc(&n, mixed, sorted);
  }
  close_normalizer(&n);
}

TEST(text_nfc_without_memory_fails_cleanly) {
  static const char text[] = "a\u0323\u0302 and \u1112\u1161\u11ab";
  tables opened = open_tables();
  REQUIRE(opened.unicode != NULL);
  uint32_t failures = 0;
  for (uint64_t fail_at = 1; fail_at < 20; fail_at++) {
    test_memory memory = {.fail_at = fail_at};
    ml_allocator allocator = test_allocator(&memory);
    ml_buffer scratch = ml_buffer_new(&allocator), out = ml_buffer_new(&allocator);
    size_t size;
    ml_error error;
    ml_status status = ml_nfc_normalize(opened.unicode, (const uint8_t *)text, sizeof text - 1, &scratch,
                                        &out, &size, &error);
    failures += status == ML_E_NOMEM;
    CHECK(status == ML_E_NOMEM || (status == ML_OK && memory.calls < fail_at));
    ml_buffer_free(&scratch);
    ml_buffer_free(&out);
    CHECK_EQ_U64(memory.live, 0);
  }
  CHECK(failures >= 2);
  ml_arena_close(&opened.arena);
}
