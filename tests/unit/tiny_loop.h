/* tiny_loop.h - small .tinyloop files: the header of one that is right, and a whole file for any header that is. */
#ifndef TINY_LOOP_H
#define TINY_LOOP_H

#include <stdlib.h>

#include "base/bytes.h"
#include "format/tinyloop.h"
#include "tiny_file.h"

enum {
  TL_MAGIC = 0,
  TL_VERSION = 4,
  TL_DIM = 8,
  TL_N_HEADS = 12,
  TL_FFN_DIM = 16,
  TL_VOCAB = 20,
  TL_FACTOR = 24,
  TL_PRE_BLOCKS = 28,
  TL_LOOPS = 32,
  TL_BITS = 36,
  TL_GROUP = 40
};

/* Version 3: dim 32, 2 heads, ffn 64, vocabulary of 7, E = 32, one own block, two loops, INT4 in groups of 32. */
static inline void tiny_loop_header(uint8_t header[ML_TINYLOOP_MAX_HEADER]) {
  static const uint32_t values[] = {ML_TINYLOOP_MAGIC, 3, 32, 2, 64, 7, 32, 1, 2, 4, 32};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) ml_write_u32(header + 4 * i, values[i]);
}

static inline void tiny_loop_fill(uint8_t *out, const ml_array *array, uint32_t *state) {
  for (uint64_t i = 0; i < array->size; i++) {
    uint32_t random = tiny_next(state);
    bool halves = array->element == ML_ELEMENT_D_F16 || array->element == ML_ELEMENT_F16;
    if (array->element == ML_ELEMENT_F32) {
      if (i % 4 == 0) tiny_put_f32(out, (uint32_t)i, 0.5f + (float)(random % 1024) / 1024.0f);
    } else {
      out[i] = (uint8_t)random;
      if (halves && i % 2) out[i] = (uint8_t)(0x28 + random % 12); /* 2^-5 to 2^-2 */
    }
  }
}

/* A whole file, the weights always the same; `bytes` NULL when the header is refused or there is no memory. */
static inline tiny_file tiny_loop_build(const uint8_t *header_bytes) {
  tiny_file file = {NULL, 0, NULL};
  ml_tinyloop_header header;
  if (ml_tinyloop_read_header(&header, header_bytes, ML_TINYLOOP_MAX_HEADER, NULL) != ML_OK) return file;
  uint64_t size = ml_tinyloop_file_size(&header);
  if (size > 1 << 24) return file;
  file.block = malloc((size_t)size + 64);
  if (!file.block) return file;
  file.bytes = (uint8_t *)file.block + (64 - (uintptr_t)file.block % 64);
  file.size = (size_t)size;
  memcpy(file.bytes, header_bytes, header.size);
  ml_tinyloop_walk walk = ml_tinyloop_walk_begin(&header);
  ml_array array;
  uint32_t state = 1;
  while (ml_tinyloop_walk_next(&walk, &array)) tiny_loop_fill(file.bytes + array.offset, &array, &state);
  return file;
}

#endif
