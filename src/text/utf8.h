/* utf8.h - decoding of valid UTF-8, and what to do with bytes that are not.
 *
 * Invalid bytes become U+FFFD as a decoder "with replacement" has it (Unicode, chapter 3, "maximal subparts"; Rust's
 * String::from_utf8_lossy, JavaScript's TextDecoder): one for each longest beginning of a character. */
#ifndef ML_TEXT_UTF8_H
#define ML_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ML_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

enum { ML_UTF8_MAX = 4, ML_REPLACEMENT_SIZE = 3 }; /* bytes */

/* Decodes the character at `at`, of which the bytes are known to be valid, and moves past it. */
static inline uint32_t ml_utf8_next(const uint8_t **at) {
  const uint8_t *p = *at;
  uint32_t lead = p[0];
  if (lead < 0x80) {
    *at = p + 1;
    return lead;
  }
  if (lead < 0xE0) {
    *at = p + 2;
    return (lead & 0x1F) << 6 | (p[1] & 0x3Fu);
  }
  if (lead < 0xF0) {
    *at = p + 3;
    return (lead & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  }
  *at = p + 4;
  return (lead & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/* Writes a code point that is not a surrogate, 1 to 4 bytes; gives their number. */
size_t ml_utf8_put(uint8_t *out, uint32_t code_point);

typedef enum ml_utf8_kind {
  ML_UTF8_VALID,  /* the bytes are a character */
  ML_UTF8_BROKEN, /* the bytes can be no beginning of one: to be replaced */
  ML_UTF8_UNFINISHED /* the bytes are a beginning of one, and end with the text: valid with more, else to be replaced */
} ml_utf8_kind;

/* Judges the beginning of bytes of any sort; `size` is at least 1. Sets *n_bytes to how many it judged. */
ml_utf8_kind ml_utf8_judge(const uint8_t *bytes, size_t size, size_t *n_bytes);

/* How many bytes at the beginning are valid UTF-8. */
size_t ml_utf8_valid_prefix(const uint8_t *bytes, size_t size);

/* Copies with replacements. `out` has room for 3 bytes for each of `bytes`, or is NULL to count. Gives the size of
 * the copy. */
size_t ml_utf8_repair(uint8_t *out, const uint8_t *bytes, size_t size);

#endif
