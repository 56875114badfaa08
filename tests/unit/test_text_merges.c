/* Byte pair encoding against the plainest way to do it, with random rules; and what stays true of any rules. */
#include "test.h"
#include "test_allocator.h"
#include "text/merges.h"
#include "tiny_tokenizer.h"

/* Rules over few tokens, so that many pairs have one. Some are twice in the list, some make a token that other rules make
 * too, some make one of their own parts: a file may say such things. */
static void random_rules(tiny_mlt *mlt, uint32_t n_tokens, uint32_t n_merges) {
  for (uint32_t id = 0; id < n_tokens; id++) tiny_mlt_token(mlt, 0, "x");
  for (uint32_t rank = 0; rank < n_merges; rank++)
    tiny_mlt_merge(mlt, test_random_below(n_tokens), test_random_below(n_tokens),
                   test_random_below(n_tokens));
}

typedef struct merge_table {
  ml_arena arena;
  ml_merges merges;
} merge_table;

static bool open_table(merge_table *table, tiny_mlt *made) {
  const tiny_bytes *file = tiny_mlt_file(made);
  ml_mlt mlt;
  if (ml_mlt_read(&mlt, file->data, file->size, NULL) != ML_OK) return false;
  ml_arena measure = ml_arena_measure();
  ml_merges_place(&table->merges, &mlt, &measure);
  if (ml_arena_open(&table->arena, NULL, measure.taken, 0, "merges", NULL) != ML_OK) return false;
  ml_merges_place(&table->merges, &mlt, &table->arena);
  return true;
}

TEST(text_merges_finds_the_lowest_rank_of_each_pair) {
  for (uint32_t n_tokens = 1; n_tokens < 12; n_tokens++) {
    tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
    random_rules(&made, n_tokens, 3 * n_tokens);
    merge_table table;
    REQUIRE(open_table(&table, &made));
    for (uint32_t left = 0; left < n_tokens; left++)
      for (uint32_t right = 0; right < n_tokens; right++) {
        uint32_t expected = ML_NO_MERGE;
        for (uint32_t rank = made.n_merges; rank-- > 0;) {
          const uint8_t *rule = made.merges.data + 12 * rank;
          if (ml_read_u32(rule) == left && ml_read_u32(rule + 4) == right) expected = rank;
        }
        CHECK_EQ_U64(ml_merges_find(&table.merges, left, right), expected);
      }
    ml_arena_close(&table.arena);
    tiny_mlt_free(&made);
  }
}

/* Lengths on both sides of the one from which a heap is used. */
TEST(text_merges_equal_the_plainest_way) {
  enum { LONGEST = 120 };
  ml_allocator memory = ml_allocator_or_default(NULL);
  ml_buffer scratch = ml_buffer_new(&memory);
  for (int round = 0; round < 200; round++) {
    tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
    uint32_t n_tokens = 2 + test_random_below(12);
    random_rules(&made, n_tokens, test_random_below(3 * n_tokens));
    merge_table table;
    REQUIRE(open_table(&table, &made));
    for (uint32_t n = 0; n < LONGEST; n += 1 + test_random_below(8)) {
      uint32_t symbols[LONGEST], expected[LONGEST];
      for (uint32_t i = 0; i < n; i++) symbols[i] = expected[i] = test_random_below(n_tokens);
      size_t n_expected = tiny_merge(made.merges.data, made.n_merges, expected, n), n_out;
      CHECK_EQ_I64(ml_merges_apply(&table.merges, symbols, n, &scratch, &n_out, NULL), ML_OK);
      if (CHECK_EQ_U64(n_out, n_expected))
        CHECK_EQ_BYTES((const uint8_t *)symbols, (const uint8_t *)expected, n_out * sizeof *symbols);
    }
    ml_arena_close(&table.arena);
    tiny_mlt_free(&made);
  }
  ml_buffer_free(&scratch);
}

TEST(text_merges_of_a_long_piece_need_memory) {
  uint32_t symbols[200] = {0};
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  random_rules(&made, 4, 4);
  merge_table table;
  REQUIRE(open_table(&table, &made));
  test_memory memory = {.fail_at = 1};
  ml_allocator allocator = test_allocator(&memory);
  ml_buffer scratch = ml_buffer_new(&allocator);
  size_t n_out = 12345;
  ml_error error = {0};
  CHECK_EQ_I64(ml_merges_apply(&table.merges, symbols, 200, &scratch, &n_out, &error), ML_E_NOMEM);
  CHECK_EQ_I64(error.status, ML_E_NOMEM);
  CHECK_EQ_U64(n_out, 12345);
  CHECK_EQ_U64(memory.live, 0);
  ml_arena_close(&table.arena);
  tiny_mlt_free(&made);
}

/* ---------------------------------------------------------------- seams */

/* SentencePiece rules over a few characters of different length: built from texts (then there are seams), or with
 * merged tokens that do not fit their parts (then there must be none). */
static void random_text_rules(tiny_mlt *mlt, bool sound) {
  static const char *const characters[] = {"\u2581", "a", "b", "\u00e9", "\u4e2d", "\n"};
  char texts[40][40];
  uint32_t n = 0;
  tiny_mlt_bytes(mlt);
  for (; n < 6; n++) {
    strcpy(texts[n], characters[n]);
    if (n != 3) tiny_mlt_piece(mlt, texts[n]); /* é is spelled in bytes */
  }
  for (uint32_t rule = test_random_below(25); rule > 0; rule--) {
    uint32_t left = test_random_below(n), right = test_random_below(n);
    size_t left_size = strlen(texts[left]), right_size = strlen(texts[right]);
    if (left == 3 || right == 3 || left_size + right_size >= sizeof texts[0]) continue;
    memcpy(texts[n], texts[left], left_size);
    memcpy(texts[n] + left_size, texts[right], right_size + 1);
    tiny_mlt_rule(mlt, texts[left], texts[right]);
    n++;
  }
  if (test_random_below(2)) tiny_mlt_merge(mlt, 0xA9, 0xC3, 0x00); /* from one é to the next */
  if (!sound) tiny_mlt_merge(mlt, 'a', test_random_below(mlt->n_vocab), test_random_below(mlt->n_vocab));
}

/* The symbols of a text of these characters, as the format document has it. */
static size_t naive_symbols(const tiny_mlt *mlt, const char *text, uint32_t *symbols) {
  size_t n = 0;
  while (*text) {
    uint32_t size = *text & 0x80 ? (*text & 0x20 ? 3 : 2) : 1;
    int64_t id = *text == ' ' ? tiny_mlt_find(mlt, "\u2581", 3) : tiny_mlt_find(mlt, text, size);
    if (id >= 0)
      symbols[n++] = (uint32_t)id;
    else
      for (uint32_t i = 0; i < size; i++) symbols[n++] = (uint8_t)text[i];
    text += size;
  }
  return n;
}

TEST(text_merges_in_pieces_between_seams_equal_those_of_the_whole_text) {
  static const char *const parts[] = {" ", " ", "a", "b", "\u00e9", "\u4e2d", "\n", "ab", " a", "\u2581"};
  enum { MOST = 300 };
  for (int round = 0; round < 400; round++) {
    tiny_mlt made = tiny_mlt_new(ML_MLT_SENTENCEPIECE, ML_MLT_NO_PREFIX);
    random_text_rules(&made, round % 4 != 0);
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    char text[3 * MOST + 1] = "";
    for (uint32_t i = test_random_below(80); i > 0; i--) strcat(text, parts[test_random_below(10)]);
    uint32_t expected[3 * MOST];
    int32_t ids[3 * MOST];
    size_t n_expected = naive_symbols(&made, text, expected), n;
    n_expected = tiny_merge(made.merges.data, made.n_merges, expected, n_expected);
    CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text, strlen(text), 0, ids, 3 * MOST, &n, NULL), ML_OK);
    if (CHECK_EQ_U64(n, n_expected))
      CHECK_EQ_BYTES((const uint8_t *)ids, (const uint8_t *)expected, n * sizeof *ids);
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
}

/* Rules whose merged token does not begin, or end, as its parts do: no place can be told to be a seam by its characters. */
TEST(text_merges_trust_no_seams_when_tokens_do_not_fit_their_parts) {
  for (int at_end = 0; at_end < 2; at_end++) {
    tiny_mlt made = tiny_mlt_new(ML_MLT_SENTENCEPIECE, ML_MLT_NO_PREFIX);
    uint32_t a = tiny_mlt_token(&made, 0, "a"), b = tiny_mlt_token(&made, 0, "b"),
             c = tiny_mlt_token(&made, 0, "c");
    uint32_t odd = tiny_mlt_token(&made, 0, at_end ? "ax" : "xc"), whole = tiny_mlt_token(&made, 0, "axc");
    tiny_mlt_merge(&made, at_end ? a : b, at_end ? b : c, odd);
    tiny_mlt_merge(&made, at_end ? odd : a, at_end ? c : odd, whole);
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    int32_t ids[3] = {-1, -1, -1};
    size_t n = 0;
    CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, "abc", 3, 0, ids, 3, &n, NULL), ML_OK);
    CHECK_EQ_U64(n, 1);
    CHECK_EQ_I64(ids[0], whole);
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
}
