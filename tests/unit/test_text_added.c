/* Added tokens: leftmost, then longest, against a search that tries every token at every place. */
#include "test.h"
#include "test_allocator.h"
#include "text/added.h"
#include "tiny_tokenizer.h"

enum { MOST_TOKENS = 12, LONGEST = 6, TEXT_SIZE = 80 };

typedef struct added_case {
  tiny_mlt made;
  uint32_t n_tokens; /* ids of their own, before the bytes */
  char tokens[MOST_TOKENS][LONGEST + 1];
} added_case;

/* Tokens of two letters, so that they overlap, begin and contain each other. Some are empty or there twice. */
static added_case random_case(void) {
  added_case one = {.made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0),
                    .n_tokens = test_random_below(MOST_TOKENS + 1)};
  for (uint32_t id = 0; id < one.n_tokens; id++) {
    uint32_t size = test_random_below(LONGEST + 1);
    for (uint32_t i = 0; i < size; i++) one.tokens[id][i] = "ab"[test_random_below(2)];
    one.tokens[id][size] = 0;
    tiny_mlt_token(&one.made, ML_MLT_ADDED, one.tokens[id]);
  }
  tiny_mlt_bytes(&one.made);
  return one;
}

/* Some spans that rise and do not touch each other, maybe empty ones. */
static size_t random_spans(ml_span *spans, size_t most, size_t size) {
  size_t n = 0, at = 0;
  while (n < most && at <= size) {
    size_t begin = at + test_random_below(8), end = begin + test_random_below(4);
    if (end > size) break;
    spans[n++] = (ml_span){begin, end};
    at = end + 1;
  }
  return n;
}

static bool touches(size_t begin, size_t end, const ml_span *spans, size_t n_spans) {
  for (size_t i = 0; i < n_spans; i++)
    if (begin < spans[i].end ? spans[i].begin < end : begin < spans[i].begin && spans[i].begin < end)
      return true;
  return false;
}

/* The id at a place of the text: of an added token, the longest one and of equals the first, or of a byte. */
static uint32_t naive_match(const added_case *one, const char *text, size_t *size) {
  uint32_t best = one->n_tokens;
  *size = 0;
  for (uint32_t id = 0; id < one->n_tokens; id++) {
    size_t n = strlen(one->tokens[id]);
    if (n <= *size || strncmp(text, one->tokens[id], n) != 0) continue;
    best = id;
    *size = n;
  }
  if (*size) return best;
  *size = 1;
  return one->n_tokens + (uint8_t)text[0];
}

TEST(text_added_tokens_are_found_leftmost_longest) {
  for (int round = 0; round < 2000; round++) {
    added_case one = random_case();
    ml_tokenizer *tokenizer = tiny_mlt_open(&one.made);
    REQUIRE(tokenizer != NULL);
    char text[TEXT_SIZE + 1];
    size_t size = test_random_below(TEXT_SIZE + 1);
    for (size_t i = 0; i < size; i++) text[i] = "aaabbc"[test_random_below(6)];
    text[size] = 0;

    int32_t ids[TEXT_SIZE], expected[TEXT_SIZE];
    size_t n, n_expected = 0, step;
    for (size_t at = 0; at < size; at += step)
      expected[n_expected++] = (int32_t)naive_match(&one, text + at, &step);
    CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text, size, ML_ENCODE_SPECIAL, ids, TEXT_SIZE, &n, NULL),
                 ML_OK);
    if (CHECK_EQ_U64(n, n_expected))
      CHECK_EQ_BYTES((const uint8_t *)ids, (const uint8_t *)expected, n * sizeof *ids);

    CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text, size, 0, ids, TEXT_SIZE, &n, NULL), ML_OK);
    CHECK_EQ_U64(n, size); /* plain text: nothing but bytes */
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&one.made);
  }
}

TEST(text_added_tokens_are_not_found_where_they_touch_plain_spans) {
  enum { MOST_SPANS = 8 };
  for (int round = 0; round < 2000; round++) {
    added_case one = random_case();
    ml_tokenizer *tokenizer = tiny_mlt_open(&one.made);
    REQUIRE(tokenizer != NULL);
    char text[TEXT_SIZE + 1];
    size_t size = test_random_below(TEXT_SIZE + 1);
    for (size_t i = 0; i < size; i++) text[i] = "aaabbc"[test_random_below(6)];
    text[size] = 0;
    ml_span spans[MOST_SPANS];
    size_t n_spans = random_spans(spans, MOST_SPANS, size);

    int32_t ids[TEXT_SIZE], expected[TEXT_SIZE];
    size_t n, n_expected = 0, step;
    for (size_t at = 0; at < size; at += step) {
      uint32_t id = naive_match(&one, text + at, &step);
      if (id < one.n_tokens && touches(at, at + step, spans, n_spans)) {
        id = one.n_tokens + (uint8_t)text[at];
        step = 1;
      }
      expected[n_expected++] = (int32_t)id;
    }
    CHECK_EQ_I64(ml_tokenizer_encode_spans(tokenizer, text, size, spans, n_spans, ML_ENCODE_SPECIAL, ids,
                                           TEXT_SIZE, &n, NULL),
                 ML_OK);
    if (CHECK_EQ_U64(n, n_expected))
      CHECK_EQ_BYTES((const uint8_t *)ids, (const uint8_t *)expected, n * sizeof *ids);
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&one.made);
  }
}

TEST(text_plain_spans_must_rise_and_lie_in_a_text_of_utf8) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  tiny_mlt_bytes(&made);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  const ml_span wrong[][2] = {{{0, 2}, {1, 3}}, {{2, 1}, {3, 3}}, {{0, 1}, {2, 5}}, {{3, 3}, {2, 2}}};
  int32_t ids[8];
  size_t n;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    CHECK_EQ_I64(ml_tokenizer_encode_spans(tokenizer, "abcd", 4, wrong[i], 2, 0, ids, 8, &n, NULL), ML_E_ARG);
  const ml_span right[] = {{0, 1}, {1, 1}, {1, 4}};
  CHECK_EQ_I64(ml_tokenizer_encode_spans(tokenizer, "abcd", 4, right, 3, 0, ids, 8, &n, NULL), ML_OK);
  CHECK_EQ_I64(ml_tokenizer_encode_spans(tokenizer,
                                         "a\xff"
                                         "cd",
                                         4, right, 3, 0, ids, 8, &n, NULL),
               ML_E_ARG);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_controls_are_added_tokens_that_text_does_not_give) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  tiny_mlt_bytes(&made);
  tiny_mlt_token(&made, 0, "ab");
  int32_t first = (int32_t)tiny_mlt_token(&made, ML_MLT_ADDED, "<a>");
  int32_t second = (int32_t)tiny_mlt_token(&made, ML_MLT_ADDED, "<b>");
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  const char *text = NULL;
  size_t size = 0;
  CHECK_EQ_I64(ml_tokenizer_next_control(tokenizer, -1, &text, &size), first);
  if (CHECK_EQ_U64(size, 3)) CHECK_EQ_BYTES((const uint8_t *)text, (const uint8_t *)"<a>", 3);
  CHECK_EQ_I64(ml_tokenizer_next_control(tokenizer, first, &text, &size), second);
  if (CHECK_EQ_U64(size, 3)) CHECK_EQ_BYTES((const uint8_t *)text, (const uint8_t *)"<b>", 3);
  CHECK_EQ_I64(ml_tokenizer_next_control(tokenizer, second, &text, &size), -1);
  CHECK_EQ_I64(ml_tokenizer_next_control(tokenizer, INT32_MAX, &text, &size), -1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

/* A token that nearly occurs at every place of a long text. Were each place tried by itself, this would take minutes. */
TEST(text_added_tokens_take_time_by_the_length_of_the_text) {
  enum { LONG = 300000 };
  char *text = malloc(LONG + 1);
  int32_t *ids = malloc(LONG * sizeof *ids);
  REQUIRE(text && ids);
  memset(text, 'a', LONG);
  text[LONG / 2] = 'b'; /* the token: as many a as half of the text, and then a b */
  tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  tiny_mlt_bytes(&made);
  uint32_t shorter = tiny_mlt_token(&made, ML_MLT_ADDED, "aa");
  uint32_t longer = tiny_mlt_token_of(&made, ML_MLT_ADDED, text + 1, LONG / 2);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  size_t n;
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text, LONG, ML_ENCODE_SPECIAL, ids, LONG, &n, NULL), ML_OK);
  /* "aa" is found at 0, and from 2 on the long one is out of reach: a piece of it is missing. */
  CHECK_EQ_I64(ids[0], shorter);
  CHECK_EQ_U64(n, LONG / 4 + 1 + LONG / 4);
  CHECK_EQ_I64(ml_tokenizer_encode(tokenizer, text + 1, LONG - 1, ML_ENCODE_SPECIAL, ids, LONG, &n, NULL),
               ML_OK);
  CHECK_EQ_I64(ids[0], longer);
  CHECK_EQ_U64(n, 1 + (LONG / 2 - 1) / 2 + 1);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
  free(text);
  free(ids);
}
