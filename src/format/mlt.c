/* mlt.c - the rules of a tokenizer file: header, then the list of tokens, then the list of merges. */
#include "format/mlt.h"

#include "base/bytes.h"
#include "base/error.h"

enum {
  VERSION_AT = 4,
  KIND_AT = 8,
  N_VOCAB_AT = 12,
  N_MERGES_AT = 16,
  BOS_AT = 20,
  EOS_AT = 24,
  FLAGS_AT = 28,
  VERSION = 1,
  TOKEN_HEAD = 5, /* attr and len */
  MERGE_SIZE = 12,
  MAX_TOKEN_BYTES = INT32_MAX /* of all tokens together, so that places among them fit 32 bits */
};

/* ---------------------------------------------------------------- header */

static ml_status check_magic(const uint8_t *bytes, uint64_t size, ml_error *error) {
  if (size < ML_MLT_HEADER_SIZE)
    return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                   "must hold the header, bytes:", ml_uint(ML_MLT_HEADER_SIZE), size);
  if (memcmp(bytes, "MLT1", 4) != 0)
    return ml_fail(error, ML_E_FORMAT, "magic", ml_uint(ml_read_u32(bytes)), "must be", ml_text("\"MLT1\""),
                   0);
  uint32_t version = ml_read_u32(bytes + VERSION_AT);
  if (version != VERSION)
    return ml_fail(error, ML_E_FORMAT, "version", ml_uint(version), "must be", ml_uint(VERSION), VERSION_AT);
  return ML_OK;
}

/* Flags of the other kind have no effect, so they cannot contradict each other. */
static ml_status check_flags(const ml_mlt *mlt, ml_error *error) {
  uint32_t flags = mlt->flags;
  if (flags > ML_MLT_ALL_FLAGS)
    return ml_fail(error, ML_E_FORMAT, "flags", ml_uint(flags), "must have no other bits than those of",
                   ml_uint(ML_MLT_ALL_FLAGS), FLAGS_AT);
  uint32_t exclusive =
      mlt->kind == ML_MLT_SENTENCEPIECE ? ML_MLT_PREFIX_ONCE | ML_MLT_NO_PREFIX : ML_MLT_GPT2 | ML_MLT_MARKS;
  if ((flags & exclusive) == exclusive)
    return ml_fail(error, ML_E_FORMAT, "flags", ml_uint(flags), "must not have all bits of",
                   ml_uint(exclusive), FLAGS_AT);
  return ML_OK;
}

static ml_status check_special_id(const ml_mlt *mlt, const char *name, int32_t id, uint64_t at,
                                  ml_error *error) {
  if (id >= -1 && id < (int64_t)mlt->n_vocab) return ML_OK;
  return ml_fail(error, ML_E_FORMAT, name, ml_int(id),
                 "must be -1 or an id below n_vocab =", ml_uint(mlt->n_vocab), at);
}

/* Before anything is counted or asked for, the file must have room for what the header promises. */
static ml_status check_size(const ml_mlt *mlt, uint64_t size, ml_error *error) {
  uint64_t least =
      ML_MLT_HEADER_SIZE + (uint64_t)TOKEN_HEAD * mlt->n_vocab + (uint64_t)MERGE_SIZE * mlt->n_merges;
  if (size < least)
    return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                   "must, for the header's n_vocab and n_merges, be at least", ml_uint(least), size);
  if (mlt->n_vocab > ML_MLT_MAX_VOCAB)
    return ml_fail(error, ML_E_SHAPE, "n_vocab", ml_uint(mlt->n_vocab), "must be at most",
                   ml_uint(ML_MLT_MAX_VOCAB), N_VOCAB_AT);
  return ML_OK;
}

static ml_status read_header(ml_mlt *mlt, const uint8_t *bytes, uint64_t size, ml_error *error) {
  ML_TRY(check_magic(bytes, size, error));
  mlt->kind = ml_read_u32(bytes + KIND_AT);
  mlt->n_vocab = ml_read_u32(bytes + N_VOCAB_AT);
  mlt->n_merges = ml_read_u32(bytes + N_MERGES_AT);
  mlt->bos = (int32_t)ml_read_u32(bytes + BOS_AT);
  mlt->eos = (int32_t)ml_read_u32(bytes + EOS_AT);
  mlt->flags = ml_read_u32(bytes + FLAGS_AT);
  if (mlt->kind != ML_MLT_SENTENCEPIECE && mlt->kind != ML_MLT_BYTE_LEVEL)
    return ml_fail(error, ML_E_FORMAT, "kind", ml_uint(mlt->kind), "must be", ml_text("1 or 2"), KIND_AT);
  if (mlt->n_vocab == 0)
    return ml_fail(error, ML_E_FORMAT, "n_vocab", ml_uint(0), "must be at least", ml_uint(1), N_VOCAB_AT);
  ML_TRY(check_special_id(mlt, "bos", mlt->bos, BOS_AT, error));
  ML_TRY(check_special_id(mlt, "eos", mlt->eos, EOS_AT, error));
  ML_TRY(check_flags(mlt, error));
  return check_size(mlt, size, error);
}

/* ---------------------------------------------------------------- tokens and merges */

static ml_status count_token(ml_mlt *mlt, const ml_mlt_token *token, uint64_t at, ml_error *error) {
  if (token->attr & ~(uint32_t)(ML_MLT_ADDED | ML_MLT_BYTE))
    return ml_fail(error, ML_E_FORMAT, "attr", ml_uint(token->attr), "must have no other bits than those of",
                   ml_uint(ML_MLT_ADDED | ML_MLT_BYTE), at);
  if (token->attr == ML_MLT_BYTE && token->size != 1)
    return ml_fail(error, ML_E_FORMAT, "len of a byte token", ml_uint(token->size), "must be", ml_uint(1),
                   at + 1);
  if (token->size > MAX_TOKEN_BYTES - mlt->token_bytes)
    return ml_fail(error, ML_E_FORMAT, "len", ml_uint(token->size), "makes all tokens together longer than",
                   ml_uint(MAX_TOKEN_BYTES), at + 1);
  mlt->token_bytes += token->size;
  mlt->n_added += token->attr & ML_MLT_ADDED;
  if (token->size > mlt->longest_token) mlt->longest_token = token->size;
  return ML_OK;
}

/* Sets *at to the offset behind the last token. */
static ml_status read_tokens(ml_mlt *mlt, const uint8_t *bytes, uint64_t size, uint64_t *at,
                             ml_error *error) {
  *at = ML_MLT_HEADER_SIZE;
  mlt->tokens = bytes + *at;
  for (uint32_t id = 0; id < mlt->n_vocab; id++) {
    if (size - *at < TOKEN_HEAD)
      return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size), "ends before token", ml_uint(id), size);
    uint32_t length = ml_read_u32(bytes + *at + 1);
    if (length > size - *at - TOKEN_HEAD)
      return ml_fail(error, ML_E_FORMAT, "len", ml_uint(length),
                     "is more than the file has left, bytes:", ml_uint(size - *at - TOKEN_HEAD), *at + 1);
    ml_mlt_token token = {bytes[*at], length, bytes + *at + TOKEN_HEAD};
    ML_TRY(count_token(mlt, &token, *at, error));
    *at += TOKEN_HEAD + (uint64_t)length;
  }
  return ML_OK;
}

static ml_status read_merges(ml_mlt *mlt, const uint8_t *bytes, uint64_t size, uint64_t at, ml_error *error) {
  if ((size - at) / MERGE_SIZE < mlt->n_merges)
    return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                   "must, for the tokens and n_merges, be at least",
                   ml_uint(at + (uint64_t)MERGE_SIZE * mlt->n_merges), size);
  static const char *const names[] = {"left token", "right token", "merged token"};
  mlt->merges = bytes + at;
  for (uint64_t i = 0; i < (uint64_t)mlt->n_merges * 3; i++) {
    uint32_t id = ml_read_u32(mlt->merges + 4 * i);
    if (id >= mlt->n_vocab)
      return ml_fail(error, ML_E_FORMAT, names[i % 3], ml_uint(id),
                     "of a merge must be below n_vocab =", ml_uint(mlt->n_vocab), at + 4 * i);
  }
  return ML_OK;
}

ml_status ml_mlt_read(ml_mlt *mlt, const uint8_t *bytes, uint64_t size, ml_error *error) {
  ml_mlt draft;
  memset(&draft, 0, sizeof draft);
  uint64_t merges_at;
  ML_TRY(read_header(&draft, bytes, size, error));
  ML_TRY(read_tokens(&draft, bytes, size, &merges_at, error));
  ML_TRY(read_merges(&draft, bytes, size, merges_at, error));
  *mlt = draft;
  return ML_OK;
}

const uint8_t *ml_mlt_next_token(const uint8_t *at, ml_mlt_token *token) {
  *token = (ml_mlt_token){at[0], ml_read_u32(at + 1), at + TOKEN_HEAD};
  return token->bytes + token->size;
}

ml_mlt_merge ml_mlt_get_merge(const ml_mlt *mlt, uint32_t rank) {
  const uint8_t *at = mlt->merges + (size_t)MERGE_SIZE * rank;
  return (ml_mlt_merge){ml_read_u32(at), ml_read_u32(at + 4), ml_read_u32(at + 8)};
}
