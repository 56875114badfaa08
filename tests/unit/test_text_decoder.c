/* Ids to text: the pieces together are the whole, each is whole characters, and no piece waits longer than it must. */
#include "test.h"
#include "test_allocator.h"
#include "text/utf8.h"
#include "tiny_tokenizer.h"

enum { MOST_IDS = 24, MOST_TEXT = 1024 };

typedef struct text {
  char bytes[MOST_TEXT];
  size_t size;
} text;

static void append(text *out, const void *bytes, size_t size) {
  if (size) memcpy(out->bytes + out->size, bytes, size);
  out->size += size;
}

static bool equal(const text *a, const text *b) {
  return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* Appends what one id gives; false if that is not whole characters. */
static bool push(ml_decoder *decoder, int32_t id, bool special, text *out) {
  const char *piece;
  size_t size;
  if (ml_decoder_push(decoder, id, special, &piece, &size, NULL) != ML_OK) return false;
  append(out, piece, size);
  return ml_utf8_valid_prefix((const uint8_t *)piece, size) == size;
}

static bool finish(ml_decoder *decoder, text *out) {
  const char *piece;
  size_t size;
  ml_decoder_finish(decoder, &piece, &size);
  append(out, piece, size);
  return ml_utf8_valid_prefix((const uint8_t *)piece, size) == size;
}

/* ---------------------------------------------------------------- the library's way, all ids at once */

typedef struct sequence {
  int32_t ids[MOST_IDS + 3];
  size_t n;
} sequence;

static void token_of(const tiny_mlt *mlt, int32_t id, uint8_t *attr, const uint8_t **bytes, uint32_t *size) {
  const uint8_t *at = mlt->tokens.data;
  for (; id > 0; id--) at += 5 + ml_read_u32(at + 1);
  *attr = at[0];
  *size = ml_read_u32(at + 1);
  *bytes = at + 5;
}

/* The ByteFallback decoder's end of a run. */
static void append_run(text *out, const uint8_t *run, size_t n) {
  bool valid = ml_utf8_valid_prefix(run, n) == n;
  for (size_t i = 0; i < n; i++)
    if (valid)
      append(out, run + i, 1);
    else
      append(out, ML_REPLACEMENT, ML_REPLACEMENT_SIZE);
}

/* Replace, ByteFallback, Fuse and, where there is a prefix, Strip. */
static void decode_sentencepiece(const tiny_mlt *mlt, const sequence *ids, text *out) {
  uint8_t run[MOST_IDS + 3] = {0};
  size_t run_size = 0;
  out->size = 0;
  for (size_t i = 0; i < ids->n; i++) {
    uint8_t attr;
    const uint8_t *bytes;
    uint32_t size;
    token_of(mlt, ids->ids[i], &attr, &bytes, &size);
    if (attr == ML_MLT_BYTE) {
      run[run_size++] = bytes[0];
      continue;
    }
    append_run(out, run, run_size);
    run_size = 0;
    for (uint32_t at = 0; at < size; at++) {
      bool space = size - at >= 3 && memcmp(bytes + at, "\u2581", 3) == 0;
      append(out, space ? (const uint8_t *)" " : bytes + at, 1);
      if (space) at += 2;
    }
  }
  append_run(out, run, run_size);
  if (!(mlt->flags & ML_MLT_NO_PREFIX) && out->size && out->bytes[0] == ' ')
    memmove(out->bytes, out->bytes + 1, --out->size);
}

static void decode_byte_level(const tiny_mlt *mlt, const sequence *ids, text *out) {
  text raw = {.size = 0};
  for (size_t i = 0; i < ids->n; i++) {
    uint8_t attr;
    const uint8_t *bytes;
    uint32_t size;
    token_of(mlt, ids->ids[i], &attr, &bytes, &size);
    append(&raw, bytes, size);
  }
  out->size = ml_utf8_repair((uint8_t *)out->bytes, (const uint8_t *)raw.bytes, raw.size);
}

static void decode_whole(const tiny_mlt *mlt, const sequence *ids, text *out) {
  if (mlt->kind == ML_MLT_SENTENCEPIECE)
    decode_sentencepiece(mlt, ids, out);
  else
    decode_byte_level(mlt, ids, out);
}

/* Cuts `size` to what `now` has in common with the text of these ids. */
static size_t shared_size(const tiny_mlt *mlt, const sequence *ids, const text *now, size_t size) {
  text later;
  decode_whole(mlt, ids, &later);
  size_t common = 0;
  while (common < size && common < later.size && now->bytes[common] == later.bytes[common]) common++;
  return common;
}

enum { FIRST_CONTINUING = 2, N_CONTINUING = 4 }; /* of some_tokens: bytes that go on with a character */

/* What is certain after some ids: the characters that the text has in common whether it ends here, goes on with any one
 * id, or with up to three bytes that may make a character whole. */
static size_t certain_size(const tiny_mlt *mlt, const sequence *ids) {
  text now;
  decode_whole(mlt, ids, &now);
  size_t size = now.size;
  sequence longer = *ids;
  longer.n = ids->n + 1;
  for (uint32_t next = 0; next < mlt->n_vocab; next++) {
    longer.ids[ids->n] = (int32_t)next;
    size = shared_size(mlt, &longer, &now, size);
  }
  for (int chain = 0; chain < N_CONTINUING * N_CONTINUING * N_CONTINUING; chain++) {
    longer.ids[ids->n] = FIRST_CONTINUING + chain % N_CONTINUING;
    longer.ids[ids->n + 1] = FIRST_CONTINUING + chain / N_CONTINUING % N_CONTINUING;
    longer.ids[ids->n + 2] = FIRST_CONTINUING + chain / N_CONTINUING / N_CONTINUING;
    for (longer.n = ids->n + 2; longer.n <= ids->n + 3; longer.n++)
      size = shared_size(mlt, &longer, &now, size);
  }
  while (size < now.size && size > 0 && (now.bytes[size] & 0xC0) == 0x80) size--;
  return size;
}

/* Bytes that begin, continue and break characters, and pieces. */
static tiny_mlt some_tokens(uint32_t kind, uint32_t flags) {
  static const char *const bytes[] = {"a",    " ",    "\xA9", "\xBD", "\xA0", "\x9F",
                                      "\xC3", "\xE4", "\xF0", "\xFF", "\xED", "\xE2"};
  static const char *const pieces[] = {"\u2581", "\u2581the", "x\u2581", "\u00e9", "\u4f60\u597d", ""};
  tiny_mlt made = tiny_mlt_new(kind, flags);
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
    tiny_mlt_token(&made, kind == ML_MLT_SENTENCEPIECE ? ML_MLT_BYTE : 0, bytes[i]);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) tiny_mlt_token(&made, 0, pieces[i]);
  return made;
}

static void check_streaming(uint32_t kind, uint32_t flags) {
  tiny_mlt made = some_tokens(kind, flags);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  ml_decoder *decoder = NULL;
  REQUIRE(tokenizer != NULL);
  REQUIRE(ml_decoder_new(&decoder, tokenizer, NULL, NULL) == ML_OK);
  for (int round = 0; round < 300; round++) {
    sequence ids = {.n = 0};
    text whole, streamed = {.size = 0};
    size_t n = test_random_below(MOST_IDS);
    while (ids.n < n) {
      int32_t id = (int32_t)test_random_below(test_random_below(3) ? made.n_vocab - 6 : made.n_vocab);
      ids.ids[ids.n++] = id;
      CHECK(push(decoder, id, true, &streamed));
      CHECK_EQ_U64(streamed.size, certain_size(&made, &ids));
    }
    CHECK(finish(decoder, &streamed));
    decode_whole(&made, &ids, &whole);
    CHECK(equal(&streamed, &whole));
  }
  ml_decoder_free(decoder);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_decoder_streams_byte_level_text) { check_streaming(ML_MLT_BYTE_LEVEL, 0); }
TEST(text_decoder_streams_sentencepiece_text) { check_streaming(ML_MLT_SENTENCEPIECE, 0); }
TEST(text_decoder_streams_sentencepiece_text_without_prefix) {
  check_streaming(ML_MLT_SENTENCEPIECE, ML_MLT_NO_PREFIX);
}

/* ---------------------------------------------------------------- added tokens */

/* Added tokens are left out on demand, unless plain text gives them too. What they stand between belongs together. */
TEST(text_decoder_leaves_control_tokens_out) {
  for (uint32_t kind = 1; kind <= 2; kind++) {
    tiny_mlt made = tiny_mlt_new(kind, ML_MLT_NO_PREFIX);
    tiny_mlt_bytes(&made);
    uint32_t marker = tiny_mlt_token(&made, ML_MLT_ADDED, "<m>");
    uint32_t newline = tiny_mlt_token(&made, ML_MLT_ADDED, "\n");
    uint32_t newlines = tiny_mlt_token(&made, ML_MLT_ADDED, "\n\n");
    tiny_mlt_merge(&made, newline, newline, newlines);
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    ml_decoder *decoder = NULL;
    REQUIRE(tokenizer != NULL);
    REQUIRE(ml_decoder_new(&decoder, tokenizer, NULL, NULL) == ML_OK);
    for (int special = 0; special < 2; special++) {
      text out = {.size = 0};
      /* Byte-level text spells a newline by its byte, SentencePiece text by the added token. */
      const int32_t ids[] = {0xC3, (int32_t)marker, 0xA9, (int32_t)newlines, 'x', (int32_t)newline};
      for (int i = 0; i < 6; i++) CHECK(push(decoder, ids[i], special != 0, &out));
      CHECK(finish(decoder, &out));
      append(&out, "", 1);
      CHECK_EQ_TEXT(out.bytes, special     ? "\uFFFD<m>\uFFFD\n\nx\n"
                               : kind == 1 ? "\u00e9\n\nx\n"
                                           : "\u00e9\n\nx");
    }
    ml_decoder_free(decoder);
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
}

TEST(text_decoder_refuses_unknown_ids_and_goes_on) {
  tiny_mlt made = some_tokens(ML_MLT_BYTE_LEVEL, 0);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  ml_decoder *decoder = NULL;
  REQUIRE(tokenizer != NULL);
  REQUIRE(ml_decoder_new(&decoder, tokenizer, NULL, NULL) == ML_OK);
  const int32_t unknown[] = {-1, INT32_MIN, (int32_t)made.n_vocab, INT32_MAX};
  text out = {.size = 0};
  CHECK(push(decoder, 6, true, &out)); /* C3 */
  for (int i = 0; i < 4; i++) {
    const char *piece;
    size_t size;
    ml_error error = {0};
    CHECK_EQ_I64(ml_decoder_push(decoder, unknown[i], true, &piece, &size, &error), ML_E_ARG);
    CHECK_EQ_I64(error.status, ML_E_ARG);
  }
  CHECK(push(decoder, 2, true, &out)); /* A9 */
  append(&out, "", 1);
  CHECK_EQ_TEXT(out.bytes, "\u00e9");
  ml_decoder_free(decoder);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_decoder_begins_anew_after_the_end) {
  tiny_mlt made = some_tokens(ML_MLT_SENTENCEPIECE, 0);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  ml_decoder *decoder = NULL;
  REQUIRE(tokenizer != NULL);
  REQUIRE(ml_decoder_new(&decoder, tokenizer, NULL, NULL) == ML_OK);
  for (int round = 0; round < 3; round++) {
    text out = {.size = 0};
    CHECK(push(decoder, 13, true, &out)); /* ▁the */
    CHECK(push(decoder, 13, true, &out));
    CHECK(push(decoder, 6, true, &out)); /* C3 */
    CHECK(finish(decoder, &out));
    append(&out, "", 1);
    CHECK_EQ_TEXT(out.bytes, "the the\uFFFD");
  }
  ml_decoder_free(decoder);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}

TEST(text_decoder_without_memory_fails_cleanly) {
  tiny_mlt made = some_tokens(ML_MLT_SENTENCEPIECE, 0);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  REQUIRE(tokenizer != NULL);
  uint32_t failures = 0;
  for (uint64_t fail_at = 1; fail_at < 12; fail_at++) {
    test_memory memory = {.fail_at = fail_at};
    ml_allocator allocator = test_allocator(&memory);
    ml_decoder *untouched = (ml_decoder *)&memory, *decoder = untouched;
    ml_error error;
    ml_status status = ml_decoder_new(&decoder, tokenizer, &allocator, &error);
    CHECK((decoder == untouched) == (status != ML_OK));
    if (status == ML_OK) {
      text out = {.size = 0};
      const char *piece;
      size_t size;
      for (int i = 0; i < 40; i++) { /* a failed push takes nothing, and can be repeated */
        ml_status pushed = ml_decoder_push(decoder, 0, true, &piece, &size, &error);
        failures += pushed == ML_E_NOMEM;
        if (pushed != ML_OK) i--;
      }
      CHECK(finish(decoder, &out));
      CHECK_EQ_U64(out.size, 40);
      ml_decoder_free(decoder);
    }
    failures += status == ML_E_NOMEM;
    CHECK_EQ_U64(memory.live, 0);
  }
  CHECK(failures >= 4);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
}
