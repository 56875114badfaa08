/* dequantize.h - weights as integers or floats, from either layout. For tables, embeddings and proof; the matrix kernels
 * have their own ways. */
#ifndef ML_KERNELS_DEQUANTIZE_H
#define ML_KERNELS_DEQUANTIZE_H

#include <string.h>

#include "kernels/half.h"
#include "kernels/matrix.h"

/* The 32 integer weights of block (row, block): Q8_0 in [-127, 127], Q4_0 in [-8, 7], INT2 -3, -1, 1 or 3. */
static inline void ml_block_levels(int8_t levels[ML_BLOCK], const ml_matrix *w, uint32_t row, size_t block) {
  size_t n_words = w->type == ML_Q8_0 ? 8 : w->type == ML_Q4_0 ? 4 : 2, n_blocks = w->cols / ML_BLOCK;
  uint8_t bytes[ML_BLOCK];
  for (size_t word = 0; word < n_words; word++)
    memcpy(bytes + 4 * word, w->quants + ml_word_offset(w->layout, n_words, n_blocks, row, block, word), 4);
  if (w->type == ML_Q8_0) {
    memcpy(levels, bytes, ML_BLOCK);
    return;
  }
  if (w->type == ML_INT2) {
    for (int j = 0; j < ML_BLOCK; j++) levels[j] = (int8_t)(2 * (bytes[j % 8] >> j / 8 * 2 & 3) - 3);
    return;
  }
  for (int j = 0; j < ML_BLOCK / 2; j++) {
    levels[j] = (int8_t)((bytes[j] & 15) - 8);
    levels[j + ML_BLOCK / 2] = (int8_t)((bytes[j] >> 4) - 8);
  }
}

static inline float ml_block_scale(const ml_matrix *w, uint32_t row, size_t block) {
  return w->scales[ml_scale_index(w->layout, w->cols / ML_BLOCK, row, block)];
}

static inline void ml_block_halves(float out[ML_BLOCK], const ml_matrix *w, uint32_t row, size_t block) {
  for (size_t j = 0; j < ML_BLOCK; j++) {
    uint16_t half;
    memcpy(&half, w->quants + ml_half_offset(w->cols, row, block * ML_BLOCK + j), sizeof half);
    out[j] = ml_half_to_float(half);
  }
}

/* weight = (float)level * d, rounded once; a half as it is */
static inline void ml_dequantize_block(float out[ML_BLOCK], const ml_matrix *w, uint32_t row, size_t block) {
  if (w->type == ML_F16) {
    ml_block_halves(out, w, row, block);
    return;
  }
  int8_t levels[ML_BLOCK];
  float d = ml_block_scale(w, row, block);
  ml_block_levels(levels, w, row, block);
  for (int j = 0; j < ML_BLOCK; j++) out[j] = (float)levels[j] * d;
}

static inline void ml_dequantize_row(float *out, const ml_matrix *w, uint32_t row) {
  for (size_t b = 0; b < w->cols / ML_BLOCK; b++) ml_dequantize_block(out + b * ML_BLOCK, w, row, b);
}

#endif
