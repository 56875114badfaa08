/* tiny_tokenizer.h - .mlt files made in memory, token by token, and the plainest way to encode with them.
 *
 *   tiny_mlt file = tiny_mlt_new(ML_MLT_BYTE_LEVEL, ML_MLT_GPT2);
 *   tiny_mlt_bytes(&file);                     // tokens 0 ... 255
 *   tiny_mlt_rule(&file, "a", "b");            // token 256 "ab", rank 0
 *   tiny_mlt_token(&file, ML_MLT_ADDED, "<s>");
 *   ml_tokenizer *tokenizer = tiny_mlt_open(&file);  // NULL if it is refused
 *   ...
 *   ml_tokenizer_free(tokenizer);
 *   tiny_mlt_free(&file); */
#ifndef TINY_TOKENIZER_H
#define TINY_TOKENIZER_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/mlt.h"

/* Offsets, copied from the format document and not from the code under test. */
enum {
  MLT_AT_MAGIC = 0,
  MLT_AT_VERSION = 4,
  MLT_AT_KIND = 8,
  MLT_AT_N_VOCAB = 12,
  MLT_AT_N_MERGES = 16,
  MLT_AT_BOS = 20,
  MLT_AT_EOS = 24,
  MLT_AT_FLAGS = 28,
  MLT_AT_TOKENS = 32
};

typedef struct tiny_bytes {
  uint8_t *data;
  size_t size, capacity;
} tiny_bytes;

static inline void tiny_append(tiny_bytes *bytes, const void *data, size_t size) {
  if (bytes->size + size > bytes->capacity) {
    bytes->capacity = 2 * (bytes->size + size);
    bytes->data = realloc(bytes->data, bytes->capacity);
    if (!bytes->data) abort();
  }
  if (size) memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
}

typedef struct tiny_mlt {
  uint32_t kind, flags;
  int32_t bos, eos;
  uint32_t n_vocab, n_merges;
  tiny_bytes tokens, merges; /* as in the file */
  tiny_bytes file;           /* of tiny_mlt_file */
} tiny_mlt;

static inline tiny_mlt tiny_mlt_new(uint32_t kind, uint32_t flags) {
  tiny_mlt mlt = {.kind = kind, .flags = flags, .bos = -1, .eos = -1};
  return mlt;
}

static inline void tiny_mlt_free(tiny_mlt *mlt) {
  free(mlt->tokens.data);
  free(mlt->merges.data);
  free(mlt->file.data);
  memset(mlt, 0, sizeof *mlt);
}

/* Adds a token and gives its id. */
static inline uint32_t tiny_mlt_token_of(tiny_mlt *mlt, uint8_t attr, const void *bytes, uint32_t size) {
  uint8_t head[5] = {attr};
  ml_write_u32(head + 1, size);
  tiny_append(&mlt->tokens, head, sizeof head);
  tiny_append(&mlt->tokens, bytes, size);
  return mlt->n_vocab++;
}

static inline uint32_t tiny_mlt_token(tiny_mlt *mlt, uint8_t attr, const char *text) {
  return tiny_mlt_token_of(mlt, attr, text, (uint32_t)strlen(text));
}

/* All bytes in order: byte-level pieces, or SentencePiece's byte tokens. */
static inline void tiny_mlt_bytes(tiny_mlt *mlt) {
  uint8_t attr = mlt->kind == ML_MLT_SENTENCEPIECE ? ML_MLT_BYTE : 0;
  for (int b = 0; b < 256; b++) tiny_mlt_token_of(mlt, attr, &(uint8_t){(uint8_t)b}, 1);
}

static inline void tiny_mlt_merge(tiny_mlt *mlt, uint32_t left, uint32_t right, uint32_t merged) {
  uint8_t rule[12];
  ml_write_u32(rule, left);
  ml_write_u32(rule + 4, right);
  ml_write_u32(rule + 8, merged);
  tiny_append(&mlt->merges, rule, sizeof rule);
  mlt->n_merges++;
}

/* The first token without attr and with these bytes, or -1. */
static inline int64_t tiny_mlt_find(const tiny_mlt *mlt, const void *bytes, uint32_t size) {
  const uint8_t *at = mlt->tokens.data;
  for (uint32_t id = 0; id < mlt->n_vocab; id++) {
    uint32_t length = ml_read_u32(at + 1);
    if (at[0] == 0 && length == size && memcmp(at + 5, bytes, size) == 0) return id;
    at += 5 + length;
  }
  return -1;
}

/* The id of a token with this text, which is added if there is none. */
static inline uint32_t tiny_mlt_piece(tiny_mlt *mlt, const char *text) {
  int64_t found = tiny_mlt_find(mlt, text, (uint32_t)strlen(text));
  return found >= 0 ? (uint32_t)found : tiny_mlt_token(mlt, 0, text);
}

/* A merge rule by its texts; adds the tokens that are missing. Gives the merged one. */
static inline uint32_t tiny_mlt_rule(tiny_mlt *mlt, const char *left, const char *right) {
  char text[64];
  size_t n = strlen(left);
  memcpy(text, left, n);
  memcpy(text + n, right, strlen(right) + 1);
  uint32_t l = tiny_mlt_piece(mlt, left), r = tiny_mlt_piece(mlt, right), merged = tiny_mlt_piece(mlt, text);
  tiny_mlt_merge(mlt, l, r, merged);
  return merged;
}

/* The file; mlt->file keeps it until the next call. */
static inline const tiny_bytes *tiny_mlt_file(tiny_mlt *mlt) {
  uint8_t header[MLT_AT_TOKENS] = {'M', 'L', 'T', '1'};
  ml_write_u32(header + MLT_AT_VERSION, 1);
  ml_write_u32(header + MLT_AT_KIND, mlt->kind);
  ml_write_u32(header + MLT_AT_N_VOCAB, mlt->n_vocab);
  ml_write_u32(header + MLT_AT_N_MERGES, mlt->n_merges);
  ml_write_u32(header + MLT_AT_BOS, (uint32_t)mlt->bos);
  ml_write_u32(header + MLT_AT_EOS, (uint32_t)mlt->eos);
  ml_write_u32(header + MLT_AT_FLAGS, mlt->flags);
  mlt->file.size = 0;
  tiny_append(&mlt->file, header, sizeof header);
  tiny_append(&mlt->file, mlt->tokens.data, mlt->tokens.size);
  tiny_append(&mlt->file, mlt->merges.data, mlt->merges.size);
  return &mlt->file;
}

static inline ml_tokenizer *tiny_mlt_open(tiny_mlt *mlt) {
  ml_tokenizer *tokenizer = NULL;
  const tiny_bytes *file = tiny_mlt_file(mlt);
  return ml_tokenizer_open(&tokenizer, file->data, file->size, NULL, NULL) == ML_OK ? tokenizer : NULL;
}

/* Byte pair encoding as the format document says it, by looking at everything each time. Merges in place and gives how
 * many symbols are left. */
static inline size_t tiny_merge(const uint8_t *merges, uint32_t n_merges, uint32_t *symbols, size_t n) {
  for (;;) {
    uint32_t best_rank = n_merges;
    size_t best = 0;
    for (size_t i = 0; i + 1 < n; i++)
      for (uint32_t rank = 0; rank < best_rank; rank++)
        if (ml_read_u32(merges + 12 * rank) == symbols[i] &&
            ml_read_u32(merges + 12 * rank + 4) == symbols[i + 1]) {
          best_rank = rank;
          best = i;
        }
    if (best_rank == n_merges) return n;
    symbols[best] = ml_read_u32(merges + 12 * best_rank + 8);
    memmove(symbols + best + 1, symbols + best + 2, (n - best - 2) * sizeof *symbols);
    n--;
  }
}

#endif
