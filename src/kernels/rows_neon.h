/* rows_neon.h - matrices that lie as in the file (mapped), for NEON: four rows at a time, their four sums side by side.
 * Packed matrices are the fast way. The including file defines
 *
 *   static inline int32x4_t dot_block(const int8x16_t w[2], const int8x16_t x[2]);
 *
 * 32 products in four sums, the weights being Q8_0's or nibbles, and includes this file after it. */

/* Nibbles, 0 ... 15, in the order of the columns. */
static inline void rows_load_q4(int8x16_t w[2], const uint8_t *block) {
  uint8x16_t bytes = vld1q_u8(block);
  w[0] = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
  w[1] = vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4));
}

static inline void rows_load_q8(int8x16_t w[2], const uint8_t *block) {
  w[0] = vreinterpretq_s8_u8(vld1q_u8(block));
  w[1] = vreinterpretq_s8_u8(vld1q_u8(block + 16));
}

/* Rows r ... r + 3 (those past the last one repeat it) against one token. */
__attribute__((always_inline)) static inline float32x4_t rows_four(const ml_matrix *w, const ml_rows *x,
                                                                   uint32_t r, uint32_t t, const bool q8) {
  size_t n_blocks = w->cols / ML_BLOCK, bytes = q8 ? 32 : 16;
  const uint8_t *quants[4];
  const float *scales[4];
  for (uint32_t i = 0; i < 4; i++) {
    size_t row = r + i < w->rows ? r + i : w->rows - 1;
    quants[i] = w->quants + row * n_blocks * bytes;
    scales[i] = w->scales + row * n_blocks;
  }
  float32x4_t acc = vdupq_n_f32(0.0f);
  for (size_t b = 0; b < n_blocks; b++) {
    size_t at = t * n_blocks + b;
    const int8x16_t xs[2] = {vld1q_s8(x->q + at * ML_BLOCK), vld1q_s8(x->q + at * ML_BLOCK + 16)};
    int32x4_t dot[4];
    float dw[4];
    for (int i = 0; i < 4; i++) {
      int8x16_t ws[2];
      if (q8)
        rows_load_q8(ws, quants[i] + b * bytes);
      else
        rows_load_q4(ws, quants[i] + b * bytes);
      dot[i] = dot_block(ws, xs);
      dw[i] = scales[i][b];
    }
    int32x4_t isum = vpaddq_s32(vpaddq_s32(dot[0], dot[1]), vpaddq_s32(dot[2], dot[3]));
    if (!q8) isum = vaddq_s32(isum, vdupq_n_s32(x->starts[at]));
    float32x4_t scale = vmulq_n_f32(vld1q_f32(dw), x->d[at]);
    acc = vaddq_f32(acc, vmulq_f32(vcvtq_f32_s32(isum), scale));
  }
  return acc;
}

__attribute__((always_inline)) static inline void rows_matmul(float *y, size_t y_stride, const ml_matrix *w,
                                                              const ml_rows *x, uint32_t row_begin,
                                                              uint32_t row_end, const bool q8) {
  for (uint32_t r = row_begin; r < row_end; r += 4)
    for (uint32_t t = 0; t < x->n; t++) {
      float32x4_t four = rows_four(w, x, r, t, q8);
      float *out = y + t * y_stride + r;
      if (row_end - r >= 4)
        vst1q_f32(out, four);
      else
        quad_store_part(out, four, row_end - r);
    }
}

static void k_matmul_q8_0_rows(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x,
                               uint32_t row_begin, uint32_t row_end) {
  rows_matmul(y, y_stride, w, x, row_begin, row_end, true);
}

static void k_matmul_q4_0_rows(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x,
                               uint32_t row_begin, uint32_t row_end) {
  rows_matmul(y, y_stride, w, x, row_begin, row_end, false);
}
