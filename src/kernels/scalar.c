/* scalar.c - the specification: every kernel in plain C, in the order of operations that all others keep. */
#include "kernels/vec_scalar.h"

#include "kernels/dequantize.h"
#include "kernels/float_kernels.h"
#include "kernels/tables.h"

#include "kernels/embed.h"

void ml_matmul_any(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
                   uint32_t row_end) {
  size_t n_blocks = w->cols / ML_BLOCK;
  for (uint32_t r = row_begin; r < row_end; r++) {
    for (uint32_t t = 0; t < x->n; t++) y[t * y_stride + r] = 0.0f;
    for (size_t b = 0; b < n_blocks; b++) {
      int8_t levels[ML_BLOCK];
      float d = ml_block_scale(w, r, b);
      ml_block_levels(levels, w, r, b);
      for (uint32_t t = 0; t < x->n; t++) {
        const int8_t *q = x->q + (size_t)t * x->cols + b * ML_BLOCK;
        int32_t isum = 0;
        for (int j = 0; j < ML_BLOCK; j++) isum += levels[j] * q[j];
        y[t * y_stride + r] += (float)isum * (d * x->d[t * n_blocks + b]);
      }
    }
  }
}

void ml_embed_any(float *out, const ml_matrix *w, uint32_t row, float scale) {
  ml_dequantize_row(out, w, row);
  for (uint32_t c = 0; c < w->cols; c++) out[c] *= scale;
}

#define k_matmul_q8_0_rows ml_matmul_any
#define k_matmul_q4_0_rows ml_matmul_any
#define k_matmul_q8_0_packed ml_matmul_any
#define k_matmul_q4_0_packed ml_matmul_any
#define k_matmul_int2_packed ml_matmul_any

const ml_kernels ml_kernels_scalar = {
    "scalar",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
