/* unicode.h - what the pre-tokenizers and NFC know of code points, as the tokenizers library knows it.
 *
 * The program holds the tables packed (11 KB, generated); a tokenizer that needs them unpacks them into its arena.
 * Each code point has a value of one byte:
 *
 *       7    6  5  4   3   2 1 0
 *     +-----------+---+---+-------+
 *     |    0      | C | J | class |   a class of ml_char_class, J: ML_CHAR_JOINS, C: ML_CHAR_CHANGES
 *     +-----------+---+---+-------+
 *     | 64 + rank of the          |   a non-starter: class mark, joins; the order of combining classes is all
 *     |      combining class      |   that normalization asks for
 *     +---------------------------+ */
#ifndef ML_TEXT_UNICODE_H
#define ML_TEXT_UNICODE_H

#include "base/arena.h"

typedef enum ml_char_class {
  ML_CHAR_OTHER,
  ML_CHAR_LETTER,     /* \p{L} */
  ML_CHAR_MARK,       /* \p{M} */
  ML_CHAR_NUMBER,     /* \p{N} */
  ML_CHAR_BLANK,      /* \s */
  ML_CHAR_LATE_NUMBER /* a number to the Digits pre-tokenizer, whose Unicode is newer; else as OTHER */
} ml_char_class;

enum {
  ML_CHAR_CLASS_MASK = 7,
  ML_CHAR_JOINS = 8,    /* may compose with the characters before it, or be reordered among them */
  ML_CHAR_CHANGES = 16, /* is not its own NFC */
  ML_CHAR_NON_STARTER = 64
};

/* A canonical decomposition by one step; `second` is 0 where there is just one code point. */
typedef struct ml_decomposition {
  uint32_t composite, first, second;
} ml_decomposition;

enum {
  ML_UNICODE_BLOCK = 256,
  ML_UNICODE_N_BLOCKS = 0x110000 / ML_UNICODE_BLOCK,
  ML_COMPOSITION_SLOTS = 2048
};

/* 70 KB, in the owner's arena. */
typedef struct ml_unicode {
  uint8_t block_of[ML_UNICODE_N_BLOCKS]; /* code point / 256 -> block; those all of one value are kept once */
  uint8_t (*blocks)[ML_UNICODE_BLOCK];   /* values */
  ml_decomposition *decompositions;      /* by rising composite */
  uint16_t
      composition_slots[ML_COMPOSITION_SLOTS]; /* hash of a pair -> 1 + index into decompositions; 0: empty */
} ml_unicode;

/* Takes the tables from an arena, once to measure and once for real: then they are filled in. */
ml_unicode *ml_unicode_place(ml_arena *arena);

/* The value of a code point below 0x110000. */
static inline uint32_t ml_unicode_value(const ml_unicode *unicode, uint32_t code_point) {
  return unicode->blocks[unicode->block_of[code_point / ML_UNICODE_BLOCK]][code_point % ML_UNICODE_BLOCK];
}

static inline ml_char_class ml_unicode_class(const ml_unicode *unicode, uint32_t code_point) {
  uint32_t value = ml_unicode_value(unicode, code_point);
  return value >= ML_CHAR_NON_STARTER ? ML_CHAR_MARK : (ml_char_class)(value & ML_CHAR_CLASS_MASK);
}

/* The one-step decomposition of a code point, NULL if there is none. Hangul syllables are not in the table. */
const ml_decomposition *ml_unicode_decompose(const ml_unicode *unicode, uint32_t composite);

/* The code point that a pair composes to, 0 if it does not. Hangul again excepted. */
uint32_t ml_unicode_compose(const ml_unicode *unicode, uint32_t first, uint32_t second);

#endif
