/* fuzz_tokenizer.h - what must hold of every tokenizer, whatever its file says. */
#ifndef FUZZ_TOKENIZER_H
#define FUZZ_TOKENIZER_H

#include <string.h>

#include "../unit/test_allocator.h"
#include "../unit/tiny_tokenizer.h"
#include "fuzz.h"
#include "text/utf8.h"

/* Encodes, with room for just what there is. Gives the ids, which the caller frees. */
static inline int32_t *must_encode(const ml_tokenizer *tokenizer, const char *text, size_t size,
                                   unsigned flags, size_t *n_ids) {
  size_t n = 0, again = 0;
  ml_error error = {0};
  MUST(ml_tokenizer_encode(tokenizer, text, size, flags, NULL, 0, &n, &error) == ML_OK);
  int32_t *ids = malloc((n + 1) * sizeof *ids);
  MUST(ids);
  ids[n] = -1;
  MUST(ml_tokenizer_encode(tokenizer, text, size, flags, ids, n, &again, &error) == ML_OK);
  MUST(again == n && ids[n] == -1);
  uint32_t n_vocab = ml_tokenizer_get_info(tokenizer)->n_vocab;
  for (size_t i = 0; i < n; i++) MUST(ids[i] >= 0 && (uint32_t)ids[i] < n_vocab);
  *n_ids = n;
  return ids;
}

static inline size_t must_be_characters(const char *text, size_t size) {
  MUST(text && ml_utf8_valid_prefix((const uint8_t *)text, size) == size);
  return size;
}

/* Streams ids back to text: each piece is whole characters. Twice, so that the end must have left nothing behind. */
static inline void must_decode(const ml_tokenizer *tokenizer, const int32_t *ids, size_t n, bool special) {
  ml_decoder *decoder = NULL;
  const char *piece;
  size_t size, total[2] = {0, 0};
  MUST(ml_decoder_new(&decoder, tokenizer, NULL, NULL) == ML_OK);
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < n; i++) {
      MUST(ml_decoder_push(decoder, ids[i], special, &piece, &size, NULL) == ML_OK);
      total[round] += must_be_characters(piece, size);
    }
    ml_decoder_finish(decoder, &piece, &size);
    total[round] += must_be_characters(piece, size);
  }
  MUST(total[0] == total[1]);
  ml_decoder_free(decoder);
}

/* All of it again, with one allocation failing: the same result, or no memory. */
static inline void use_short_of_memory(const uint8_t *file, size_t file_size, const char *text,
                                       size_t text_size, uint64_t failing, ml_status expected) {
  test_memory memory = {.fail_at = failing, .limit = 64 << 20};
  ml_allocator allocator = test_allocator(&memory);
  ml_tokenizer *untouched = (ml_tokenizer *)&memory, *tokenizer = untouched;
  ml_error error = {0};
  ml_status status = ml_tokenizer_open(&tokenizer, file, file_size, &allocator, &error);
  must_be_explained(status, &error);
  MUST(status == expected || status == ML_E_NOMEM);
  MUST((tokenizer == untouched) == (status != ML_OK));
  if (status == ML_OK) {
    size_t n;
    int32_t ids[64];
    ml_decoder *decoder = NULL;
    status = ml_tokenizer_encode(tokenizer, text, text_size, ML_ENCODE_SPECIAL, ids, 64, &n, &error);
    MUST(status == ML_OK || status == ML_E_NOMEM);
    must_be_explained(status, &error);
    if (status == ML_OK && ml_decoder_new(&decoder, tokenizer, &allocator, &error) == ML_OK) {
      const char *piece;
      size_t size;
      for (size_t i = 0; i < n && i < 64; i++) {
        status = ml_decoder_push(decoder, ids[i], true, &piece, &size, &error);
        MUST(status == ML_OK || status == ML_E_NOMEM);
      }
      ml_decoder_finish(decoder, &piece, &size);
      must_be_characters(piece, size);
      ml_decoder_free(decoder);
    }
    ml_tokenizer_free(tokenizer);
  }
  MUST(memory.live == 0);
}

#endif
