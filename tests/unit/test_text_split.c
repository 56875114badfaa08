/* The hand-written pre-tokenizers: pieces that the tokenizers library gives for the same regular expressions. */
#include <string.h>

#include "format/mlt.h"
#include "test.h"
#include "text/split.h"
#include "text/utf8.h"

enum {
  ONE_DIGIT = ML_MLT_ONE_DIGIT,
  GPT2 = ML_MLT_GPT2,
  SPLIT_DIGITS = ML_MLT_SPLIT_DIGITS,
  MARKS = ML_MLT_MARKS
};

typedef struct split_case {
  uint32_t flags;
  const char *pieces; /* with | between them; the text is what is left without | */
} split_case;

/* From tokenizers 0.23.3: Split(Regex(...), "isolated"), after Digits(individual_digits=True) where digits are split. */
static const split_case cases[] = {
    {0, "Hello| world"},
    {0, "I|'ll| DON|'T| we|'RE| it|'s| I|'\u017f| x|'Ve| '|m|'D| '|x"},
    {0, "123|456|7| |12"},
    {0, "a|\n\n|b"},
    {0, "hi| \n\n| | there"},
    {0, " | x|   "},
    {0, "\t|\tx"},
    {0, "\r\n\r\n"},
    {0, "!!!\n\n|x"},
    {0, " !|a| $|b| #|1"},
    {0, "a|_b|-c"},
    {0, "\u00a0x|\u00a0|\u00a0|!"},
    {0, "x|\u0301y| \u0301"},
    {0, "'"},
    {0, "''|ll"},
    {0, "\u65e5\u672c\u8a9e\u30c6\u30b9\u30c8|\u3002"},
    {0,
     "a|\x1C"
     "b"},
    {0, " |\u00b2\u00bd\u2167"},
    {0, "foo|\n| | bar"},
    {0, " \n"},
    {0, "\n| "},
    {0, "   \n| | x"},
    {0, "'\u017f|x"},
    {ONE_DIGIT, "1|2|3|4|5|6|7"},
    {ONE_DIGIT, " |1|2"},
    {ONE_DIGIT, "\u0661|\u0662"},
    {ONE_DIGIT | MARKS, "x\u0301y| \u0301"},
    {ONE_DIGIT | MARKS, "\u0928\u092e\u0938\u094d\u0924\u0947| \u094d|!\u0301"},
    {ONE_DIGIT | MARKS, "\u0301|\n"},
    {ONE_DIGIT | MARKS, ".\u0301|."},
    {ONE_DIGIT | MARKS, "1|\u0301"},
    {ONE_DIGIT | MARKS, "\n|\u0301"},
    {GPT2, "I|'ll| I|'|LL| don|'t"},
    {GPT2, "a|\n|\n|b"},
    {GPT2, "hi| \n\n | there| 123|abc"},
    {GPT2, "  | x"},
    {GPT2, "\t|\t|x"},
    {GPT2, "!!|\n\n"},
    {GPT2, "\u00a0|x"},
    {GPT2, "x|\u0301|y"},
    {GPT2, " \u00b2|x"},
    {GPT2, " '|s|'s"},
    {GPT2 | SPLIT_DIGITS, "a| |1|2| b"},
    {GPT2 | SPLIT_DIGITS, "1|2|3|4"},
    {GPT2 | SPLIT_DIGITS, " |1| |2"},
    {GPT2 | SPLIT_DIGITS, "x| |\u0661|\u00bd|!"},
    {GPT2 | SPLIT_DIGITS, "!|\U00011de0|!!"},
    {GPT2, "!\U00011de0!!"},
    {GPT2 | SPLIT_DIGITS, "a|\U00011de0|b"},
    {GPT2 | SPLIT_DIGITS, "  |9|  "},
    {SPLIT_DIGITS, "a| |1|2|\n\n|b"},
    {SPLIT_DIGITS, "1|2| !?|3"},
};

static const ml_unicode *open_tables(ml_arena *arena) {
  ml_arena measure = ml_arena_measure();
  ml_unicode_place(&measure);
  if (ml_arena_open(arena, NULL, measure.taken, 0, "tables", NULL) != ML_OK) return NULL;
  return ml_unicode_place(arena);
}

static size_t without_bars(char *out, const char *pieces) {
  size_t size = 0;
  for (; *pieces; pieces++)
    if (*pieces != '|') out[size++] = *pieces;
  return size;
}

/* The pieces of a text with | between them. */
static void join(char *out, const ml_unicode *unicode, uint32_t flags, const char *text, size_t size) {
  ml_splitter splitter = ml_split_begin(unicode, flags, (const uint8_t *)text, size);
  const uint8_t *piece;
  size_t n, at = 0;
  while (ml_split_next(&splitter, &piece, &n)) {
    if (at) out[at++] = '|';
    memcpy(out + at, piece, n);
    at += n;
  }
  out[at] = 0;
}

TEST(text_split_gives_the_pieces_of_the_library) {
  ml_arena arena;
  const ml_unicode *unicode = open_tables(&arena);
  REQUIRE(unicode != NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256], joined[256];
    size_t size = without_bars(text, cases[i].pieces);
    join(joined, unicode, cases[i].flags, text, size);
    CHECK_EQ_TEXT(joined, cases[i].pieces);
  }
  ml_arena_close(&arena);
}

/* All seven endings in both cases, for both expressions: only Llama 3's folds case. */
TEST(text_split_knows_all_contractions) {
  static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
  ml_arena arena;
  const ml_unicode *unicode = open_tables(&arena);
  REQUIRE(unicode != NULL);
  for (int e = 0; e < 7; e++)
    for (uint32_t upper = 0; upper < 4; upper++) { /* bit i: letter i is a capital */
      char text[] = "x'\0\0 y", joined[32], lower_expected[32];
      size_t n = strlen(endings[e]);
      for (size_t i = 0; i < n; i++) text[2 + i] = (char)(endings[e][i] - (upper >> i & 1 ? 'a' - 'A' : 0));
      memcpy(text + 2 + n, "x", 2);
      memcpy(lower_expected, "x|", 2);
      memcpy(lower_expected + 2, text + 1, n + 1);
      memcpy(lower_expected + n + 3, "|x", 3);
      join(joined, unicode, 0, text, n + 3);
      CHECK_EQ_TEXT(joined, lower_expected);
      join(joined, unicode, GPT2, text, n + 3);
      CHECK((strcmp(joined, lower_expected) == 0) == ((upper & (n > 1 ? 3 : 1)) == 0));
    }
  ml_arena_close(&arena);
}

/* Whatever the text: pieces are not empty, whole characters, and put together the text again. */
TEST(text_split_loses_nothing) {
  static const uint32_t some[] = {'a',  'L', '\'', 's',   ' ',    ' ',     '\n',   '\r',
                                  '\t', '7', '!',  0x301, 0x4E2D, 0x11DE0, 0x1F999};
  static const uint32_t all_flags[] = {0,    ONE_DIGIT,           ONE_DIGIT | MARKS,
                                       GPT2, GPT2 | SPLIT_DIGITS, SPLIT_DIGITS | MARKS};
  ml_arena arena;
  const ml_unicode *unicode = open_tables(&arena);
  REQUIRE(unicode != NULL);
  for (int round = 0; round < 3000; round++) {
    uint8_t text[64];
    size_t size = 0;
    while (size + ML_UTF8_MAX <= sizeof text && test_random_below(12)) {
      uint32_t c = some[test_random_below(sizeof some / sizeof *some)];
      if (test_random_below(8) == 0) c = test_random_below(0xD800);
      size += ml_utf8_put(text + size, c);
    }
    ml_splitter splitter = ml_split_begin(unicode, all_flags[round % 6], text, size);
    const uint8_t *piece, *expected = text;
    size_t n;
    while (ml_split_next(&splitter, &piece, &n)) {
      CHECK(piece == expected && n > 0 && (piece[0] & 0xC0) != 0x80);
      expected = piece + n;
    }
    CHECK(expected == text + size);
  }
  ml_arena_close(&arena);
}
