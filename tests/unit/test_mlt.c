/* Every rule of a .mlt file, at its limit and one step past it. */
#include "test.h"
#include "tiny_tokenizer.h"

/* Three tokens (6, 6 and 7 bytes in the file) and one merge. */
static tiny_mlt small_file(void) {
  tiny_mlt mlt = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  tiny_mlt_rule(&mlt, "a", "b");
  return mlt;
}

enum { TOKEN_0 = MLT_AT_TOKENS, TOKEN_2 = TOKEN_0 + 12, MERGE_0 = TOKEN_2 + 7, SMALL_SIZE = MERGE_0 + 12 };

typedef struct edit_case {
  int line;
  uint32_t at, value; /* a u32 of the small file */
  ml_status status;
  uint64_t offset; /* of the error */
} edit_case;

#define GOOD(at, value) {__LINE__, at, value, ML_OK, 0}
#define FORMAT(at, value) {__LINE__, at, value, ML_E_FORMAT, at}
#define SHORT(at, value) {__LINE__, at, value, ML_E_FORMAT, SMALL_SIZE}

static const edit_case edits[] = {
    GOOD(MLT_AT_MAGIC, 0x31544c4d),
    FORMAT(MLT_AT_MAGIC, 0x32544c4d),
    FORMAT(MLT_AT_MAGIC, 0x31424c4d), /* a model */
    FORMAT(MLT_AT_VERSION, 0),
    GOOD(MLT_AT_VERSION, 1),
    FORMAT(MLT_AT_VERSION, 2),
    FORMAT(MLT_AT_KIND, 0),
    GOOD(MLT_AT_KIND, 1),
    GOOD(MLT_AT_KIND, 2),
    FORMAT(MLT_AT_KIND, 3),
    FORMAT(MLT_AT_N_VOCAB, 0),
    SHORT(MLT_AT_N_VOCAB, 5),
    SHORT(MLT_AT_N_VOCAB, 1u << 24),
    SHORT(MLT_AT_N_VOCAB, UINT32_MAX),
    GOOD(MLT_AT_N_MERGES, 0), /* the merge is then bytes that follow */
    SHORT(MLT_AT_N_MERGES, 2),
    SHORT(MLT_AT_N_MERGES, UINT32_MAX),
    GOOD(MLT_AT_BOS, UINT32_MAX),
    FORMAT(MLT_AT_BOS, UINT32_MAX - 1),
    FORMAT(MLT_AT_BOS, 0x80000000),
    GOOD(MLT_AT_BOS, 0),
    GOOD(MLT_AT_BOS, 2),
    FORMAT(MLT_AT_BOS, 3),
    GOOD(MLT_AT_EOS, UINT32_MAX),
    FORMAT(MLT_AT_EOS, UINT32_MAX - 1),
    GOOD(MLT_AT_EOS, 2),
    FORMAT(MLT_AT_EOS, 3),
    FORMAT(MLT_AT_EOS, INT32_MAX),
    GOOD(MLT_AT_FLAGS, 0),
    GOOD(MLT_AT_FLAGS, 511 - 32),
    GOOD(MLT_AT_FLAGS, 511 - 256),
    FORMAT(MLT_AT_FLAGS, 511), /* two patterns */
    FORMAT(MLT_AT_FLAGS, 32 + 256),
    GOOD(MLT_AT_FLAGS, 4 + 128), /* of the other kind */
    FORMAT(MLT_AT_FLAGS, 512),
    FORMAT(MLT_AT_FLAGS, 0x80000000),
    GOOD(TOKEN_0 + 1, 1),
    FORMAT(TOKEN_0 + 1, SMALL_SIZE - TOKEN_0 - 5 + 1), /* one byte more than there is */
    SHORT(TOKEN_0 + 1, SMALL_SIZE - TOKEN_0 - 5),      /* which leaves nothing for the next token, */
    SHORT(TOKEN_0 + 1, SMALL_SIZE - TOKEN_0 - 5 - 4),  /* or not enough for its head */
    FORMAT(TOKEN_0 + 1, UINT32_MAX),
    FORMAT(TOKEN_2 + 1, MERGE_0 + 12 - TOKEN_2 - 5 + 1),
    GOOD(MERGE_0, 2),
    FORMAT(MERGE_0, 3),
    FORMAT(MERGE_0 + 4, 3),
    FORMAT(MERGE_0 + 8, 3),
    FORMAT(MERGE_0 + 8, UINT32_MAX),
};

static ml_status read_file(const tiny_bytes *file, ml_mlt *mlt, ml_error *error) {
  memset(error, 0, sizeof *error);
  return ml_mlt_read(mlt, file->data, file->size, error);
}

TEST(mlt_rules_of_single_numbers) {
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    tiny_mlt small = small_file();
    const tiny_bytes *file = tiny_mlt_file(&small);
    REQUIRE(file->size == SMALL_SIZE);
    ml_write_u32(file->data + edits[i].at, edits[i].value);
    ml_mlt mlt;
    ml_error error;
    bool good = CHECK_EQ_I64(read_file(file, &mlt, &error), edits[i].status);
    if (edits[i].status != ML_OK) good &= CHECK_EQ_U64(error.offset, edits[i].offset);
    if (!good) test_check(false, (test_place){__FILE__, edits[i].line}, "the edit of this line");
    tiny_mlt_free(&small);
  }
}

TEST(mlt_flags_of_sentencepiece_prefix_exclude_each_other) {
  static const struct {
    uint32_t flags;
    ml_status status;
  } cases[] = {{4, ML_OK}, {128, ML_OK}, {4 + 128, ML_E_FORMAT}, {32 + 256, ML_OK}};
  for (int i = 0; i < 4; i++) {
    tiny_mlt small = small_file();
    small.kind = ML_MLT_SENTENCEPIECE;
    small.flags = cases[i].flags;
    ml_mlt mlt;
    ml_error error;
    CHECK_EQ_I64(read_file(tiny_mlt_file(&small), &mlt, &error), cases[i].status);
    tiny_mlt_free(&small);
  }
}

TEST(mlt_attr_is_two_bits) {
  for (uint32_t attr = 0; attr < 256; attr++) {
    tiny_mlt small = small_file();
    const tiny_bytes *file = tiny_mlt_file(&small);
    file->data[TOKEN_2] = (uint8_t)attr; /* two bytes long */
    ml_mlt mlt;
    ml_error error;
    bool accepted = attr == 0 || attr == 1 || attr == 3; /* 3 counts as added, of any length */
    CHECK_EQ_I64(read_file(file, &mlt, &error), accepted ? ML_OK : ML_E_FORMAT);
    if (accepted) CHECK_EQ_U64(mlt.n_added, attr & 1);
    if (!accepted) CHECK_EQ_U64(error.offset, attr == 2 ? TOKEN_2 + 1 : TOKEN_2);
    file->data[TOKEN_2] = 0;
    file->data[TOKEN_0] = 2; /* one byte long */
    CHECK_EQ_I64(read_file(file, &mlt, &error), ML_OK);
    tiny_mlt_free(&small);
  }
}

TEST(mlt_cut_short_anywhere_is_refused) {
  tiny_mlt small = small_file();
  const tiny_bytes *file = tiny_mlt_file(&small);
  ml_mlt untouched, mlt;
  memset(&untouched, 0x55, sizeof untouched);
  for (size_t size = 0; size < file->size; size++) {
    uint8_t *exact = malloc(size + 1); /* so that sanitizers see a read past the end */
    memcpy(exact, file->data, size);
    memcpy(&mlt, &untouched, sizeof mlt);
    ml_error error;
    CHECK_EQ_I64(ml_mlt_read(&mlt, exact, size, &error), ML_E_FORMAT);
    CHECK_EQ_BYTES((const uint8_t *)&mlt, (const uint8_t *)&untouched, sizeof mlt);
    free(exact);
  }
  tiny_mlt_free(&small);
}

TEST(mlt_bytes_may_follow) {
  tiny_mlt small = small_file();
  tiny_append(&small.merges, "more", 4);
  ml_mlt mlt;
  ml_error error;
  CHECK_EQ_I64(read_file(tiny_mlt_file(&small), &mlt, &error), ML_OK);
  CHECK_EQ_U64(mlt.n_merges, 1);
  tiny_mlt_free(&small);
}

/* A vocabulary that no model can have. Five bytes for each token are the least that a file can hold them in. */
TEST(mlt_vocabulary_has_a_limit) {
  enum { MOST = 1 << 24 };
  size_t size = MLT_AT_TOKENS + (size_t)5 * (MOST + 1);
  uint8_t *bytes = calloc(size, 1);
  REQUIRE(bytes != NULL);
  tiny_mlt empty = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
  memcpy(bytes, tiny_mlt_file(&empty)->data, MLT_AT_TOKENS);
  ml_mlt mlt;
  ml_error error;
  ml_write_u32(bytes + MLT_AT_N_VOCAB, MOST + 1);
  CHECK_EQ_I64(ml_mlt_read(&mlt, bytes, size, &error), ML_E_SHAPE);
  CHECK_EQ_U64(error.offset, MLT_AT_N_VOCAB);
  ml_write_u32(bytes + MLT_AT_N_VOCAB, MOST);
  CHECK_EQ_I64(ml_mlt_read(&mlt, bytes, size, &error), ML_OK);
  tiny_mlt_free(&empty);
  free(bytes);
}

TEST(mlt_gives_what_the_file_holds) {
  tiny_mlt made = tiny_mlt_new(ML_MLT_SENTENCEPIECE, ML_MLT_ADD_BOS | ML_MLT_PREFIX_ONCE);
  tiny_mlt_bytes(&made);
  uint32_t ab = tiny_mlt_rule(&made, "a", "b");
  uint32_t added = tiny_mlt_token(&made, ML_MLT_ADDED, "<added>");
  uint32_t nothing = tiny_mlt_token(&made, 0, "");
  made.bos = (int32_t)added;
  made.eos = (int32_t)nothing;
  ml_mlt mlt;
  ml_error error;
  REQUIRE(read_file(tiny_mlt_file(&made), &mlt, &error) == ML_OK);
  CHECK_EQ_U64(mlt.kind, 1);
  CHECK_EQ_U64(mlt.flags, 5);
  CHECK_EQ_U64(mlt.n_vocab, made.n_vocab);
  CHECK_EQ_U64(mlt.n_added, 1);
  CHECK_EQ_U64(mlt.longest_token, 7);
  CHECK_EQ_U64(mlt.token_bytes, 256 + 1 + 1 + 2 + 7);
  CHECK_EQ_I64(mlt.bos, added);
  CHECK_EQ_I64(mlt.eos, nothing);
  const uint8_t *at = mlt.tokens;
  ml_mlt_token token;
  for (uint32_t id = 0; id < mlt.n_vocab; id++) {
    at = ml_mlt_next_token(at, &token);
    if (id < 256) CHECK_EQ_U64(token.attr == ML_MLT_BYTE ? token.bytes[0] : 999u, id);
    if (id == added) CHECK_EQ_BYTES(token.bytes, (const uint8_t *)"<added>", 7);
    if (id == nothing) CHECK_EQ_U64(token.size, 0);
  }
  CHECK(at == mlt.merges);
  ml_mlt_merge merge = ml_mlt_get_merge(&mlt, 0);
  CHECK_EQ_U64(merge.left, 256);
  CHECK_EQ_U64(merge.right, 257);
  CHECK_EQ_U64(merge.merged, ab);
  tiny_mlt_free(&made);
}
