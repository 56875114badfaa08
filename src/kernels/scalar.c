/* scalar.c - the specification: every kernel in plain C, in the order of operations that all others keep. */
#include "kernels/vec_scalar.h"

#include "kernels/dequantize.h"
#include "kernels/float_kernels.h"
#include "kernels/tables.h"

static int32_t dot_q8_0(const uint8_t *block, const int8_t *x) {
  int32_t sum = 0;
  for (int j = 0; j < ML_BLOCK; j++) sum += (int8_t)block[j] * x[j];
  return sum;
}

static int32_t dot_q4_0(const uint8_t *block, const int8_t *x) {
  int32_t sum = 0;
  for (int j = 0; j < ML_BLOCK / 2; j++)
    sum += ((block[j] & 15) - 8) * x[j] + ((block[j] >> 4) - 8) * x[j + ML_BLOCK / 2];
  return sum;
}

/* Always called with constants for `dot` and `block_bytes`, so that both kernels get a loop of their own. */
static inline void matmul(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
                          uint32_t row_end, size_t block_bytes,
                          int32_t (*dot)(const uint8_t *, const int8_t *)) {
  size_t n_blocks = w->cols / ML_BLOCK;
  for (uint32_t r = row_begin; r < row_end; r++) {
    const uint8_t *quants = w->quants + r * n_blocks * block_bytes;
    const float *scales = w->scales + r * n_blocks;
    for (uint32_t t = 0; t < x->n; t++) {
      const int8_t *q = x->q + (size_t)t * x->cols;
      const float *d = x->d + t * n_blocks;
      float sum = 0.0f;
      for (size_t b = 0; b < n_blocks; b++)
        sum += (float)dot(quants + b * block_bytes, q + b * ML_BLOCK) * (scales[b] * d[b]);
      y[t * y_stride + r] = sum;
    }
  }
}

static void k_matmul_q8_0(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
                          uint32_t row_end) {
  matmul(y, y_stride, w, x, row_begin, row_end, 32, dot_q8_0);
}

static void k_matmul_q4_0(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
                          uint32_t row_end) {
  matmul(y, y_stride, w, x, row_begin, row_end, 16, dot_q4_0);
}

static void k_embed(float *out, const ml_matrix *w, uint32_t row, float scale) {
  ml_dequantize_row(out, w, row);
  for (uint32_t c = 0; c < w->cols; c++) out[c] *= scale;
}

const ml_kernels ml_kernels_scalar = {
    "scalar",
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
