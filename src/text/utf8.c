#include "text/utf8.h"

#include <string.h>

size_t ml_utf8_put(uint8_t *out, uint32_t code_point) {
  if (code_point < 0x80) {
    out[0] = (uint8_t)code_point;
    return 1;
  }
  size_t n = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--) {
    out[i] = (uint8_t)(0x80 | (code_point & 0x3F));
    code_point >>= 6;
  }
  out[0] = (uint8_t)(0xF00u >> n | code_point); /* n ones and a zero, then the topmost bits */
  return n;
}

/* The bytes that a character with this first byte has, 0 if none has it. */
static size_t length_of(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0; /* continuation, or a second spelling of ASCII */
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0; /* nothing lies past U+10FFFF */
}

/* Unicode, table 3-7: after some first bytes the second one is confined (second spellings, surrogates, the end). */
static bool may_follow(uint8_t lead, uint8_t second) {
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

ml_utf8_kind ml_utf8_judge(const uint8_t *bytes, size_t size, size_t *n_bytes) {
  size_t length = length_of(bytes[0]);
  *n_bytes = 1;
  if (length == 0) return ML_UTF8_BROKEN;
  for (; *n_bytes < length; ++*n_bytes) {
    if (*n_bytes == size) return ML_UTF8_UNFINISHED;
    uint8_t next = bytes[*n_bytes];
    bool fits = *n_bytes == 1 ? may_follow(bytes[0], next) : (next & 0xC0) == 0x80;
    if (!fits) return ML_UTF8_BROKEN;
  }
  return ML_UTF8_VALID;
}

/* Bytes below 0x80 at the beginning, eight at a time while they last. */
static size_t ascii_prefix(const uint8_t *bytes, size_t size) {
  size_t at = 0;
  for (uint64_t word; size - at >= sizeof word; at += sizeof word) {
    memcpy(&word, bytes + at, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  while (at < size && bytes[at] < 0x80) at++;
  return at;
}

size_t ml_utf8_valid_prefix(const uint8_t *bytes, size_t size) {
  size_t at = 0, n;
  for (;;) {
    at += ascii_prefix(bytes + at, size - at);
    if (at == size || ml_utf8_judge(bytes + at, size - at, &n) != ML_UTF8_VALID) return at;
    at += n;
  }
}

size_t ml_utf8_repair(uint8_t *out, const uint8_t *bytes, size_t size) {
  size_t written = 0, at = 0, n;
  while (at < size) {
    size_t valid = ml_utf8_valid_prefix(bytes + at, size - at);
    if (out) memcpy(out + written, bytes + at, valid);
    written += valid;
    at += valid;
    if (at == size) break;
    ml_utf8_judge(bytes + at, size - at, &n);
    if (out) memcpy(out + written, ML_REPLACEMENT, ML_REPLACEMENT_SIZE);
    written += ML_REPLACEMENT_SIZE;
    at += n;
  }
  return written;
}
