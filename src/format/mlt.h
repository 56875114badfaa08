/* mlt.h - the .mlt tokenizer file: bytes to a checked view of them.
 *
 *   offset 0      32                                   32 + sum of (5 + len)
 *   +------------+------------------------------------+------------------------------+- - - - - - - -
 *   | header 32  | n_vocab x                          | n_merges x                   | anything
 *   |            | u8 attr, u32 len, len bytes        | u32 left, right, merged      |
 *   +------------+------------------------------------+------------------------------+- - - - - - - -
 *
 * A token's id is its place in the list, a merge's rank its place in the other; lower ranks go first.
 * The law is the format document (".mlt tokenizer format") and docs/FORMAT-notes.md. */
#ifndef ML_FORMAT_MLT_H
#define ML_FORMAT_MLT_H

#include "ml.h"

#define ML_MLT_HEADER_SIZE 32
#define ML_MLT_MAX_VOCAB (1u << 24) /* as that of a model */

enum { ML_MLT_SENTENCEPIECE = 1, ML_MLT_BYTE_LEVEL = 2 };

enum {
  ML_MLT_ADD_BOS = 1,
  ML_MLT_IGNORE_MERGES = 2, /* byte-level: a whole piece found in the vocabulary is one token */
  ML_MLT_PREFIX_ONCE = 4,   /* SentencePiece: the prefix only at the start of the text */
  ML_MLT_NFC = 8,           /* byte-level: normalize the text between added tokens */
  ML_MLT_ONE_DIGIT = 16,    /* byte-level: \p{N} instead of \p{N}{1,3} */
  ML_MLT_GPT2 = 32,         /* byte-level: the pattern of GPT-2 instead of that of Llama 3 */
  ML_MLT_SPLIT_DIGITS = 64, /* byte-level: every number character is split off before the pattern */
  ML_MLT_NO_PREFIX = 128,   /* SentencePiece, our extension: no prefix at all */
  ML_MLT_MARKS = 256, /* byte-level, our extension: the pattern of Qwen3.5, whose letters include marks */
  ML_MLT_ALL_FLAGS = 511
};

enum { ML_MLT_ADDED = 1, ML_MLT_BYTE = 2 }; /* attr; added wins where both are set */

/* Points into the file's bytes, all of them checked. */
typedef struct ml_mlt {
  uint32_t kind, n_vocab, n_merges, flags;
  int32_t bos, eos;       /* -1: none */
  uint32_t n_added;       /* tokens with attr ML_MLT_ADDED */
  uint32_t longest_token; /* bytes */
  uint32_t token_bytes;   /* of all tokens together */
  const uint8_t *tokens, *merges;
} ml_mlt;

typedef struct ml_mlt_token {
  uint8_t attr;
  uint32_t size;
  const uint8_t *bytes;
} ml_mlt_token;

typedef struct ml_mlt_merge {
  uint32_t left, right, merged; /* token ids below n_vocab */
} ml_mlt_merge;

/* Reads and checks a whole file; bytes after the last merge are allowed. Allocates nothing. ML_E_FORMAT for all
 * that is wrong but a vocabulary over ML_MLT_MAX_VOCAB, which is ML_E_SHAPE. `mlt` is untouched on failure. */
ml_status ml_mlt_read(ml_mlt *mlt, const uint8_t *bytes, uint64_t size, ml_error *error);

/* Takes the token at `at`, which begins as mlt->tokens, and gives the place of the next one. At most n_vocab times. */
const uint8_t *ml_mlt_next_token(const uint8_t *at, ml_mlt_token *token);

ml_mlt_merge ml_mlt_get_merge(const ml_mlt *mlt, uint32_t rank); /* rank below n_merges */

#endif
