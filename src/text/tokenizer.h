/* tokenizer.h - the tokenizer's own struct, shared by encoding and decoding. */
#ifndef ML_TEXT_TOKENIZER_H
#define ML_TEXT_TOKENIZER_H

#include "base/arena.h"
#include "text/added.h"
#include "text/merges.h"
#include "text/seams.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

/* Immutable once opened. */
struct ml_tokenizer {
  ml_arena arena;         /* holds everything, this struct too */
  ml_allocator allocator; /* for the work of a call */
  ml_tokenizer_info info;
  uint32_t longest_token; /* bytes */
  ml_vocabulary vocabulary;
  ml_merges merges;
  ml_added added;
  uint8_t *is_control; /* n_vocab: added tokens that no plain text gives */

  ml_unicode *unicode; /* byte-level only */

  ml_seams *seams;             /* SentencePiece only */
  uint32_t ascii_symbols[128]; /* " ; the symbol of a character, or ML_NO_TOKEN; that of ▁ for a space */
};

#endif
