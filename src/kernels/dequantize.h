/* dequantize.h - a row of a quantized matrix as floats: weight = (float)quant * d, rounded once. */
#ifndef ML_KERNELS_DEQUANTIZE_H
#define ML_KERNELS_DEQUANTIZE_H

#include "kernels/matrix.h"

static inline void ml_dequantize_row(float *out, const ml_matrix *w, uint32_t row) {
  size_t n_blocks = w->cols / ML_BLOCK, bytes = ml_block_bytes(w->type);
  const uint8_t *quants = w->quants + row * n_blocks * bytes;
  const float *scales = w->scales + row * n_blocks;
  for (size_t b = 0; b < n_blocks; b++, quants += bytes, out += ML_BLOCK) {
    if (w->type == ML_Q8_0) {
      for (int j = 0; j < ML_BLOCK; j++) out[j] = (float)(int8_t)quants[j] * scales[b];
    } else {
      for (int j = 0; j < ML_BLOCK / 2; j++) {
        out[j] = (float)((quants[j] & 15) - 8) * scales[b];
        out[j + ML_BLOCK / 2] = (float)((quants[j] >> 4) - 8) * scales[b];
      }
    }
  }
}

#endif
