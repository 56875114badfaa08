/* Text to ids: what each flag does, on tokenizers small enough to see it. Real tokenizers are compared with the tokenizers
 * library by `make ids`. */
#include "test.h"
#include "test_allocator.h"
#include "tiny_tokenizer.h"

enum { MOST_IDS = 64 };

/* Checks the ids of a text; `expected` ends in -1. */
static void check_ids(const ml_tokenizer *tokenizer, const char *text, size_t size, unsigned flags,
                      const int32_t *expected) {
  int32_t ids[MOST_IDS];
  size_t n = 0, n_expected = 0;
  ml_error error = {0};
  while (expected[n_expected] >= 0) n_expected++;
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text, size, flags, ids, MOST_IDS, &n, &error), ML_OK);
  bool same = CHECK_EQ_U64(n, n_expected) &&
              CHECK_EQ_BYTES((const uint8_t *)ids, (const uint8_t *)expected, n * sizeof *ids);
  if (!same) CHECK_EQ_TEXT(text, "(the text of the ids above)");
}

#define CHECK_IDS(tokenizer, text, flags, ...) \
  check_ids(tokenizer, text, sizeof(text) - 1, flags, (const int32_t[]){__VA_ARGS__})

/* Byte-level: all bytes, " a" 256, "ab" 257, " ab" 258 (by " " and "ab"), and a token that no rule makes. */
static tiny_mlt byte_level(uint32_t flags, uint32_t *whole) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, flags);
  tiny_mlt_bytes(&made);
  tiny_mlt_rule(&made, " ", "a");
  tiny_mlt_rule(&made, "a", "b");
  tiny_mlt_rule(&made, " ", "ab");
  *whole = tiny_mlt_token(&made, 0, "whole");
  return made;
}

TEST(text_encode_merges_by_rank_then_from_the_left) {
  uint32_t whole;
  tiny_mlt made = byte_level(0, &whole);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "", 0, -1);
  CHECK_IDS(tokenizer, "abab", 0, 257, 257, -1);
  CHECK_IDS(tokenizer, " ab", 0, 256, 'b', -1); /* rank 0 takes the a before rank 1 can */
  CHECK_IDS(tokenizer, "whole", 0, 'w', 'h', 'o', 'l', 'e', -1);
  CHECK_IDS(tokenizer, "a\0b", 0, 'a', 0, 'b', -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_takes_whole_pieces_with_ignore_merges_only) {
  uint32_t whole;
  tiny_mlt made = byte_level(ML_MLT_IGNORE_MERGES, &whole);
  tiny_mlt_token(&made, 0, "whole"); /* a second one, which never counts */
  tiny_mlt_token(&made, ML_MLT_ADDED, "added");
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "whole", 0, (int32_t)whole, -1);
  CHECK_IDS(tokenizer, "whole!", 0, (int32_t)whole, '!', -1);
  CHECK_IDS(tokenizer, "wholes", 0, 'w', 'h', 'o', 'l', 'e', 's', -1);
  CHECK_IDS(tokenizer, "added", 0, 'a', 'd', 'd', 'e', 'd', -1); /* ordinary tokens only */
  CHECK_IDS(tokenizer, " ab", 0, 258, -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_prepends_bos) {
  static const struct {
    uint32_t file_flags;
    int32_t bos;
    unsigned flags;
    bool expected;
  } cases[] = {{1, 7, 0, true}, {1, 7, ML_ENCODE_NO_BOS, false}, {1, -1, 0, false}, {0, 7, 0, false}};
  for (int i = 0; i < 4; i++) {
    uint32_t whole;
    tiny_mlt made = byte_level(cases[i].file_flags, &whole);
    made.bos = cases[i].bos;
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    if (cases[i].expected) {
      CHECK_IDS(tokenizer, "", cases[i].flags, 7, -1);
      CHECK_IDS(tokenizer, "x", cases[i].flags, 7, 'x', -1);
    } else {
      CHECK_IDS(tokenizer, "", cases[i].flags, -1);
      CHECK_IDS(tokenizer, "x", cases[i].flags, 'x', -1);
    }
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
}

TEST(text_encode_normalizes_between_added_tokens_if_the_file_says_so) {
  for (uint32_t flags = 0; flags <= ML_MLT_NFC; flags += ML_MLT_NFC) {
    uint32_t whole;
    tiny_mlt made = byte_level(flags, &whole);
    int32_t added = (int32_t)tiny_mlt_token(&made, ML_MLT_ADDED, "e\u0301"); /* spelled in two */
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    if (flags) {
      CHECK_IDS(tokenizer, "e\u0301", 0, 0xC3, 0xA9, -1);
      CHECK_IDS(tokenizer, "o\u0301e\u0301", ML_ENCODE_SPECIAL, 0xC3, 0xB3, added, -1);
    } else {
      CHECK_IDS(tokenizer, "e\u0301", 0, 'e', 0xCC, 0x81, -1);
    }
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
}

TEST(text_encode_drops_bytes_without_a_token) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  tiny_mlt_token(&made, ML_MLT_ADDED, "b"); /* 0: only where there is no ordinary one */
  tiny_mlt_rule(&made, "a", "c");           /* 1, 2, 3 */
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "axcb", 0, 3, 0, -1); /* x is gone before a and c merge */
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

/* ---------------------------------------------------------------- SentencePiece */

enum { SPACE = 256, HELLO = 257, MARKER = 258 }; /* ▁ h <m> */

static tiny_mlt sentencepiece(uint32_t flags) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_SENTENCEPIECE, flags);
  tiny_mlt_bytes(&made);
  tiny_mlt_piece(&made, "\u2581");
  tiny_mlt_piece(&made, "h");
  tiny_mlt_token(&made, ML_MLT_ADDED, "<m>");
  return made;
}

TEST(text_encode_puts_a_prefix_before_each_section) {
  tiny_mlt made = sentencepiece(0);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "", 0, -1);
  CHECK_IDS(tokenizer, "h", 0, SPACE, HELLO, -1);
  CHECK_IDS(tokenizer, " h", 0, SPACE, SPACE, HELLO, -1);
  CHECK_IDS(tokenizer, "h<m>h<m>", ML_ENCODE_SPECIAL, SPACE, HELLO, MARKER, SPACE, HELLO, MARKER, -1);
  CHECK_IDS(tokenizer, "<m> h", ML_ENCODE_SPECIAL, MARKER, SPACE, SPACE, HELLO, -1);
  CHECK_IDS(tokenizer, "<m>", 0, SPACE, '<', 'm', '>', -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_puts_a_prefix_at_the_start_only) {
  tiny_mlt made = sentencepiece(ML_MLT_PREFIX_ONCE);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "", 0, -1);
  CHECK_IDS(tokenizer, "h", 0, SPACE, HELLO, -1);
  CHECK_IDS(tokenizer, " h", 0, SPACE, HELLO, -1); /* there is one already */
  CHECK_IDS(tokenizer, "\u2581h", 0, SPACE, HELLO, -1);
  CHECK_IDS(tokenizer, "\nh", 0, SPACE, '\n', HELLO, -1);
  CHECK_IDS(tokenizer, "h<m>h", ML_ENCODE_SPECIAL, SPACE, HELLO, MARKER, HELLO, -1);
  CHECK_IDS(tokenizer, "<m>h", ML_ENCODE_SPECIAL, MARKER, HELLO, -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_puts_no_prefix_at_all) {
  tiny_mlt made = sentencepiece(ML_MLT_NO_PREFIX);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "h", 0, HELLO, -1);
  CHECK_IDS(tokenizer, " h", 0, SPACE, HELLO, -1);
  CHECK_IDS(tokenizer, "<m>h", ML_ENCODE_SPECIAL, MARKER, HELLO, -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_spells_unknown_characters_in_byte_tokens) {
  tiny_mlt made = sentencepiece(ML_MLT_NO_PREFIX);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "\U0001f999", 0, 0xF0, 0x9F, 0xA6, 0x99, -1);
  CHECK_IDS(tokenizer, "h\0h", 0, HELLO, 0, HELLO, -1);
  CHECK_IDS(tokenizer, "<0x41>", 0, '<', '0', 'x', '4', '1', '>', -1); /* text, not a byte */
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

/* Without a token for one of its bytes a character goes, and what is beside it may merge. A space is ▁, whose bytes are
 * not all there either. */
TEST(text_encode_drops_characters_that_nothing_spells) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_SENTENCEPIECE, ML_MLT_NO_PREFIX);
  uint32_t byte = tiny_mlt_token(&made, ML_MLT_BYTE, "\xC3");
  uint32_t merged = tiny_mlt_rule(&made, "a", "b");
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_EQ_U64(byte, 0);
  CHECK_IDS(tokenizer, "a\u00e9 b", 0, (int32_t)merged, -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

/* A character can be an added token and a symbol at once, as Gemma's newline is. An ordinary token goes before. */
TEST(text_encode_uses_added_characters_as_symbols) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_SENTENCEPIECE, ML_MLT_NO_PREFIX);
  tiny_mlt_token(&made, ML_MLT_ADDED, "\n");
  tiny_mlt_token(&made, ML_MLT_ADDED, "x");
  tiny_mlt_token(&made, 0, "x");
  tiny_mlt_token(&made, 0, "\n\n");
  tiny_mlt_merge(&made, 0, 0, 3);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "\n\nx\n", 0, 3, 2, 0, -1);
  CHECK_IDS(tokenizer, "\n\nx\n", ML_ENCODE_SPECIAL, 0, 0, 1, 0, -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

/* ---------------------------------------------------------------- both kinds */

TEST(text_encode_replaces_what_is_not_utf8) {
  static const char *const cases[][2] = {
      {"a\xFFz", "a\uFFFDz"}, {"\xE2\x82", "\uFFFD"}, {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"}};
  for (uint32_t kind = 1; kind <= 2; kind++) {
    tiny_mlt made = tiny_mlt_new(kind, 0);
    tiny_mlt_bytes(&made);
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    for (int i = 0; i < 3; i++) {
      int32_t expected[MOST_IDS];
      size_t n;
      CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, cases[i][1], strlen(cases[i][1]), 0, expected, MOST_IDS - 1,
                                       &n, NULL),
                   ML_OK);
      expected[n] = -1;
      check_ids(tokenizer, cases[i][0], strlen(cases[i][0]), 0, expected);
    }
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
}

/* Text is made UTF-8 first, so an added token that is half a character is never found. */
TEST(text_encode_finds_added_tokens_of_whole_characters_only) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  tiny_mlt_bytes(&made);
  tiny_mlt_token(&made, ML_MLT_ADDED, "\xA9");
  tiny_mlt_token(&made, ML_MLT_ADDED, "a\xC3");
  uint32_t whole = tiny_mlt_token(&made, ML_MLT_ADDED, "\u00e9!");
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  CHECK_IDS(tokenizer, "a\u00e9", ML_ENCODE_SPECIAL, 'a', 0xC3, 0xA9, -1);
  CHECK_IDS(tokenizer, "a\u00e9!", ML_ENCODE_SPECIAL, 'a', (int32_t)whole, -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_says_how_many_ids_there_are) {
  uint32_t whole;
  tiny_mlt made = byte_level(0, &whole);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  int32_t ids[4] = {-7, -7, -7, -7};
  size_t n = 0;
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, "xyz", 3, 0, NULL, 0, &n, NULL), ML_OK);
  CHECK_EQ_U64(n, 3);
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, "xyz", 3, 0, ids, 2, &n, NULL), ML_OK);
  CHECK_EQ_U64(n, 3);
  CHECK_EQ_I64(ids[1], 'y');
  CHECK_EQ_I64(ids[2], -7);
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, NULL, 0, 0, NULL, 0, &n, NULL), ML_OK);
  CHECK_EQ_U64(n, 0);
  ml_error error;
  n = 99;
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, "xyz", 3, 4, ids, 4, &n, &error), ML_E_ARG);
  CHECK_EQ_U64(n, 99);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_encode_takes_long_runs_without_recursion) {
  static const char *const units[] = {"a", "_", " ", "\n", "!", "\u4e2d", "\u0301"};
  enum { TIMES = 100000 };
  char *text = malloc(3 * TIMES);
  REQUIRE(text != NULL);
  for (uint32_t kind = 1; kind <= 2; kind++) {
    tiny_mlt made = tiny_mlt_new(kind, kind == 2 ? ML_MLT_NFC : 0);
    tiny_mlt_bytes(&made);
    for (int u = 0; u < 4; u++) tiny_mlt_rule(&made, units[u], units[u]);
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
      size_t unit_size = strlen(units[u]), n = 0;
      for (size_t i = 0; i < TIMES; i++) memcpy(text + i * unit_size, units[u], unit_size);
      CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text, TIMES * unit_size, 0, NULL, 0, &n, NULL), ML_OK);
      CHECK(n >= TIMES / 2 && n <= 3 * TIMES + 3);
    }
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
  free(text);
}

/* ---------------------------------------------------------------- memory */

TEST(text_encode_without_memory_fails_cleanly) {
  static const char text[] =
      "broken \xFF, e\u0301, <m> and one piece that is long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  for (uint32_t kind = 1; kind <= 2; kind++) {
    tiny_mlt made = tiny_mlt_new(kind, kind == 2 ? ML_MLT_NFC : 0);
    tiny_mlt_bytes(&made);
    tiny_mlt_rule(&made, "a", "a");
    tiny_mlt_token(&made, ML_MLT_ADDED, "<m>");
    const tiny_bytes *file = tiny_mlt_file(&made);
    uint32_t failures = 0;
    for (uint64_t fail_at = 1; fail_at < 30; fail_at++) {
      test_memory memory = {.fail_at = fail_at};
      ml_allocator allocator = test_allocator(&memory);
      ml_tokenizer *untouched = (ml_tokenizer *)&memory, *tokenizer = untouched;
      ml_error error = {0};
      ml_status status = ml_tokenizer_open(&tokenizer, file->data, file->size, &allocator, &error);
      CHECK((tokenizer == untouched) == (status != ML_OK));
      size_t n;
      if (status == ML_OK) {
        status =
            ml_tokenizer_encode(tokenizer, text, sizeof text - 1, ML_ENCODE_SPECIAL, NULL, 0, &n, &error);
        ml_tokenizer_free(tokenizer);
      }
      CHECK(status == ML_OK || (status == ML_E_NOMEM && error.status == ML_E_NOMEM));
      CHECK_EQ_U64(memory.live, 0);
      failures += status != ML_OK;
    }
    CHECK(failures >= 5 && failures < 29);
    tiny_mlt_free(&made);
  }
}
