/* rows_avx2.h - matrices that lie as in the file (mapped): four rows at a time, their four sums side by side. For every
 * x86 table; packed matrices are the fast way. */
#ifndef ML_KERNELS_ROWS_AVX2_H
#define ML_KERNELS_ROWS_AVX2_H

#include <immintrin.h>

#include "kernels/kernels.h"

/* The sums of all eight lanes of a, b, c, d as lanes of one. */
static inline __m128i rows_sum(__m256i a, __m256i b, __m256i c, __m256i d) {
  __m256i quarters = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
  return _mm_add_epi32(_mm256_castsi256_si128(quarters), _mm256_extracti128_si256(quarters, 1));
}

/* 32 products in eight 32-bit sums. */
static inline __m256i rows_dot_q8(const uint8_t *block, __m256i x) {
  __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)block);
  __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* The same with nibbles, 0 ... 15, which are 8 too large. */
static inline __m256i rows_dot_q4(const uint8_t *block, __m256i x) {
  __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)block);
  __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
  __m256i pairs = _mm256_maddubs_epi16(_mm256_and_si256(both, _mm256_set1_epi8(15)), x);
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Rows r ... r + 3 (those past the last one repeat it) against one token. */
__attribute__((always_inline)) static inline void rows_four(float out[4], const ml_matrix *w,
                                                            const ml_rows *x, uint32_t r, uint32_t t,
                                                            const bool q8) {
  size_t n_blocks = w->cols / ML_BLOCK, bytes = q8 ? 32 : 16;
  const uint8_t *quants[4];
  const float *scales[4];
  for (uint32_t i = 0; i < 4; i++) {
    size_t row = r + i < w->rows ? r + i : w->rows - 1;
    quants[i] = w->quants + row * n_blocks * bytes;
    scales[i] = w->scales + row * n_blocks;
  }
  __m128 acc = _mm_setzero_ps();
  for (size_t b = 0; b < n_blocks; b++) {
    size_t at = t * n_blocks + b;
    __m256i xs = _mm256_loadu_si256((const __m256i *)(const void *)(x->q + at * ML_BLOCK)), dot[4];
    for (int i = 0; i < 4; i++)
      dot[i] = q8 ? rows_dot_q8(quants[i] + b * bytes, xs) : rows_dot_q4(quants[i] + b * bytes, xs);
    __m128i isum = rows_sum(dot[0], dot[1], dot[2], dot[3]);
    if (!q8) isum = _mm_add_epi32(isum, _mm_set1_epi32(x->starts[at]));
    __m128 dw = _mm_setr_ps(scales[0][b], scales[1][b], scales[2][b], scales[3][b]);
    acc = _mm_add_ps(acc, _mm_mul_ps(_mm_cvtepi32_ps(isum), _mm_mul_ps(dw, _mm_set1_ps(x->d[at]))));
  }
  _mm_storeu_ps(out, acc);
}

__attribute__((always_inline)) static inline void rows_matmul(float *y, size_t y_stride, const ml_matrix *w,
                                                              const ml_rows *x, uint32_t row_begin,
                                                              uint32_t row_end, const bool q8) {
  for (uint32_t r = row_begin; r < row_end; r += 4)
    for (uint32_t t = 0; t < x->n; t++) {
      float out[4];
      rows_four(out, w, x, r, t, q8);
      for (uint32_t i = 0; i < 4 && r + i < row_end; i++) y[t * y_stride + r + i] = out[i];
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

#endif
