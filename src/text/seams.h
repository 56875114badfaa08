/* seams.h - places in SentencePiece text that no merge can cross.
 *
 * These tokenizers merge the whole text as one piece. Yet if no rule joins a token that ends in x with one that begins
 * with y, then x|y stays a seam: what is left of it and what is right of it merge without regard to each other, and in
 * short pieces that is much faster. In practice nearly every word begins at a seam, because only few rules put a ▁
 * behind anything but a ▁.
 *
 * Characters are told apart by labels of one byte. Characters that share one share their seams, so too few labels can
 * only cost speed. Whether labels can be trusted is checked: a merged token has to begin and end as its parts do. */
#ifndef ML_TEXT_SEAMS_H
#define ML_TEXT_SEAMS_H

#include "format/mlt.h"
#include "text/vocabulary.h"

#define ML_SPACE_SYMBOL_TEXT "\xE2\x96\x81" /* ▁ in UTF-8 */

enum {
  ML_SPACE_SYMBOL_SIZE = 3,
  ML_SPACE_SYMBOL = 0x2581,    /* ▁, which stands for a space */
  ML_LABEL_SPACE_SYMBOL = 128, /* below: ASCII */
  ML_LABEL_OTHER = 129,        /* and up: what a code point is hashed to */
  ML_LABEL_NONE = 254,         /* of a token that is empty, or no UTF-8 there */
  ML_LABEL_BYTE = 255          /* byte tokens */
};

typedef struct ml_seams {
  uint8_t joined[256][32]; /* bit y of row x: some rule joins ...x with y... */
} ml_seams;

/* The labels of a token's first and last character. */
typedef struct ml_seams_ends {
  uint8_t first, last;
} ml_seams_ends;

/* Takes the seams from an arena and, where it is a real one, fills them in from the vocabulary, which is. */
ml_seams *ml_seams_place(const ml_mlt *mlt, const ml_vocabulary *vocabulary, ml_arena *arena);

static inline uint8_t ml_seams_label(uint32_t code_point) {
  if (code_point < 128) return (uint8_t)code_point;
  if (code_point == ML_SPACE_SYMBOL) return ML_LABEL_SPACE_SYMBOL;
  return (uint8_t)(ML_LABEL_OTHER + code_point % (ML_LABEL_NONE - ML_LABEL_OTHER));
}

static inline bool ml_seams_between(const ml_seams *seams, uint8_t left, uint8_t right) {
  return (seams->joined[left][right / 8] >> right % 8 & 1) == 0;
}

#endif
