/* vocabulary.h - the tokens: bytes by id, and ids by bytes where encoding asks for that.
 *
 * Text becomes symbols, which are then merged. A byte-level tokenizer begins with a symbol for each byte and may take a
 * whole piece for a token (ignore_merges); a SentencePiece one begins with a symbol for each character, or the byte
 * tokens of characters that it lacks. Where an added token and an ordinary one have the same bytes, text finds the
 * ordinary one; among several of a sort the first counts. */
#ifndef ML_TEXT_VOCABULARY_H
#define ML_TEXT_VOCABULARY_H

#include "base/arena.h"
#include "format/mlt.h"

#define ML_NO_TOKEN UINT32_MAX

typedef struct ml_vocabulary {
  uint32_t n_tokens;
  uint32_t *start; /* n_tokens + 1: token id is bytes[start[id]] up to bytes[start[id + 1]] */
  uint8_t *bytes;
  uint8_t *attr;         /* n_tokens, as in the file */
  uint32_t of_byte[256]; /* symbol of a byte, or ML_NO_TOKEN */

  /* Tokens that can be looked up, by a hash of their bytes; those of one bucket by their bytes. */
  uint32_t n_buckets; /* a power of two; 0: none can be */
  uint32_t *bucket;   /* n_buckets + 1: bucket b is found[bucket[b]] up to found[bucket[b + 1]] */
  uint32_t *found;    /* ids */
} ml_vocabulary;

/* Takes the arrays from an arena and, where it is a real one, fills everything in. */
void ml_vocabulary_place(ml_vocabulary *vocabulary, const ml_mlt *mlt, ml_arena *arena);

static inline const uint8_t *ml_vocabulary_get(const ml_vocabulary *vocabulary, uint32_t id, uint32_t *size) {
  *size = vocabulary->start[id + 1] - vocabulary->start[id];
  return vocabulary->bytes + vocabulary->start[id];
}

/* Byte-level: the ordinary token of these bytes, with ignore_merges. SentencePiece: the symbol of one character.
 * ML_NO_TOKEN where there is none. */
uint32_t ml_vocabulary_find(const ml_vocabulary *vocabulary, const uint8_t *bytes, size_t size);

#endif
