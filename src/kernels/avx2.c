/* avx2.c - x86-64 with AVX2 and nothing newer. */
#include "kernels/vec_avx2.h"

#include "kernels/dequantize.h"
#include "kernels/float_kernels.h"
#include "kernels/packed_driver.h"
#include "kernels/tables.h"

#include "kernels/embed.h"
#include "kernels/rows_avx2.h"

enum { TILE = 4 }; /* tokens: 8 nibble vectors, 4 sums and temporaries fill the 16 registers */

/* Eight rows' 4-byte words of x: the same four activations for every row. */
static inline __m256i spread(const int8_t *x) {
  int32_t word;
  memcpy(&word, x, sizeof word);
  return _mm256_set1_epi32(word);
}

/* acc + (float)isum * (dw * dx) */
static inline __m256 add_block(__m256 acc, __m256i isum, __m256 dw, float dx) {
  return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(dw, _mm256_set1_ps(dx))));
}

static inline void store_rows(const ml_tile *tile, uint32_t token, uint32_t half, __m256 acc) {
  float *y = tile->y + token * tile->y_stride + 8 * half;
  if (tile->n_rows >= 8 * half + 8)
    v8_store(y, acc);
  else if (tile->n_rows > 8 * half)
    v8_store_part(y, acc, tile->n_rows - 8 * half);
}

/* Eight rows: Q4_0's nibbles are the unsigned operand, or twice INT2's codes, which are 8 or 3 too large; `start` makes
 * up for it. A pair of products is at most 2 * 15 * 127, eight of them 30480: they fit 16 bits. */
static inline __m256i dot_small(const __m256i *nibbles, const int8_t *x, int32_t start) {
  __m256i total = _mm256_maddubs_epi16(nibbles[0], spread(x));
#pragma GCC unroll 8
  for (int i = 1; i < 8; i++)
    total = _mm256_add_epi16(total, _mm256_maddubs_epi16(nibbles[i], spread(x + 4 * i)));
  return _mm256_add_epi32(_mm256_madd_epi16(total, _mm256_set1_epi16(1)), _mm256_set1_epi32(start));
}

/* Columns 4 i ... 4 i + 3 of eight rows each. */
__attribute__((always_inline)) static inline void unpack(__m256i operands[8], const uint8_t *block,
                                                         const bool int2) {
  const __m256i low = _mm256_set1_epi8(15), twice = _mm256_set1_epi8(6);
  if (int2) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      __m256i word = _mm256_loadu_si256((const __m256i *)(const void *)(block + 64 * i));
      operands[i] = _mm256_and_si256(_mm256_add_epi16(word, word), twice);
      operands[2 + i] = _mm256_and_si256(_mm256_srli_epi16(word, 1), twice);
      operands[4 + i] = _mm256_and_si256(_mm256_srli_epi16(word, 3), twice);
      operands[6 + i] = _mm256_and_si256(_mm256_srli_epi16(word, 5), twice);
    }
    return;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    __m256i word = _mm256_loadu_si256((const __m256i *)(const void *)(block + 64 * i));
    operands[i] = _mm256_and_si256(word, low);
    operands[4 + i] = _mm256_and_si256(_mm256_srli_epi16(word, 4), low);
  }
}

/* acc[t] += block b of eight rows and token t < n. */
__attribute__((always_inline)) static inline void small_block(__m256 *acc, const ml_tile *tile, uint32_t half,
                                                              size_t b, const uint32_t n, const bool int2) {
  __m256i operands[8];
  unpack(operands, tile->quants + b * (int2 ? 128 : 256) + 32 * half, int2);
  __m256 dw = _mm256_loadu_ps(tile->scales + b * 16 + 8 * half);
#pragma GCC unroll 4
  for (uint32_t t = 0; t < n; t++) {
    size_t at = t * tile->n_blocks + b;
    int32_t start = int2 ? ml_start_int2(tile->starts[at]) : tile->starts[at];
    acc[t] = add_block(acc[t], dot_small(operands, tile->q + at * 32, start), dw, tile->d[at]);
  }
}

/* Q8_0, eight rows: |w| is the unsigned operand, and x takes the sign of w; a pair is at most 2 * 127 * 127. */
static inline __m256i dot_q8(const uint8_t *words, const int8_t *x) {
  __m256i total = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    __m256i word = _mm256_loadu_si256((const __m256i *)(const void *)(words + 64 * i));
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(word), _mm256_sign_epi8(spread(x + 4 * i), word));
    total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  return total;
}

__attribute__((always_inline)) static inline void q8_block(__m256 *acc, const ml_tile *tile, uint32_t half,
                                                           size_t b, const uint32_t n) {
  const uint8_t *words = tile->quants + b * 512 + 32 * half;
  __m256 dw = _mm256_loadu_ps(tile->scales + b * 16 + 8 * half);
#pragma GCC unroll 4
  for (uint32_t t = 0; t < n; t++) {
    size_t at = t * tile->n_blocks + b;
    acc[t] = add_block(acc[t], dot_q8(words, tile->q + at * 32), dw, tile->d[at]);
  }
}

/* Eight of the 16 rows of n_groups groups, against n tokens; n_groups * n is at most TILE. */
__attribute__((always_inline)) static inline void half_groups(const ml_tile *tiles, const uint32_t n_groups,
                                                              uint32_t half, const uint32_t n,
                                                              const ml_weight_type type) {
  __m256 acc[TILE];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < n_groups * n; i++) acc[i] = _mm256_setzero_ps();
  for (size_t b = 0; b < tiles->n_blocks; b++)
#pragma GCC unroll 2
    for (uint32_t g = 0; g < n_groups; g++)
      if (type == ML_Q8_0)
        q8_block(acc + g * n, tiles + g, half, b, n);
      else
        small_block(acc + g * n, tiles + g, half, b, n, type == ML_INT2);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < n_groups * n; i++) store_rows(tiles + i / n, i % n, half, acc[i]);
}

#define TILES(name, n_groups, n, type)            \
  static inline void name(const ml_tile *tiles) { \
    half_groups(tiles, n_groups, 0, n, type);     \
    half_groups(tiles, n_groups, 1, n, type);     \
  }
TILES(int2_wide, 1, TILE, ML_INT2)
TILES(int2_one, 1, 1, ML_INT2)
TILES(q4_wide, 1, TILE, ML_Q4_0)
TILES(q4_one, 1, 1, ML_Q4_0)
TILES(q4_two, 2, 1, ML_Q4_0)
TILES(q8_wide, 1, TILE, ML_Q8_0)
TILES(q8_one, 1, 1, ML_Q8_0)
TILES(q8_two, 2, 1, ML_Q8_0)
#undef TILES

ML_PACKED_MATMUL(k_matmul_int2_packed, 8, TILE, int2_wide, int2_one, NULL)
ML_PACKED_MATMUL(k_matmul_q4_0_packed, 16, TILE, q4_wide, q4_one, q4_two)
ML_PACKED_MATMUL(k_matmul_q8_0_packed, 32, TILE, q8_wide, q8_one, q8_two)

const ml_kernels ml_kernels_avx2 = {
    "avx2",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
