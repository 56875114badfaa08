/* neon.c - AArch64 with what every such processor has: the products of bytes are 16 bits wide. */
#include "kernels/vec_neon.h"

#include "kernels/float_kernels.h"
#include "kernels/packed_driver.h"
#include "kernels/tables.h"

#include "kernels/embed.h"

/* Sums of products, a column to a lane: the four of a word for rows r and r + 1, and for rows r + 2 and r + 3. */
typedef struct products {
  int16x8_t low, high;
} products;

/* Sixteen activations, four at a time to every row. */
static inline void spread(int8x16_t to[4], const int8_t *x) {
  int32x4_t words = vreinterpretq_s32_s8(vld1q_s8(x));
  to[0] = vreinterpretq_s8_s32(vdupq_laneq_s32(words, 0));
  to[1] = vreinterpretq_s8_s32(vdupq_laneq_s32(words, 1));
  to[2] = vreinterpretq_s8_s32(vdupq_laneq_s32(words, 2));
  to[3] = vreinterpretq_s8_s32(vdupq_laneq_s32(words, 3));
}

static inline products multiply(int8x16_t w, int8x16_t x) {
  return (products){vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)};
}

static inline products multiply_add(products sum, int8x16_t w, int8x16_t x) {
  return (products){vmlal_s8(sum.low, vget_low_s8(w), vget_low_s8(x)), vmlal_high_s8(sum.high, w, x)};
}

/* Two words are added in 16 bits: a sum of two products is at most 2 * 127 * 127 = 32258. */
static inline int32x4_t dot_q8(const int8x16_t w[8], const int8_t *x) {
  int32x4_t low = vdupq_n_s32(0), high = low; /* two sums of each row */
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    const int8x16_t *words = w + 4 * half;
    int8x16_t to_rows[4];
    spread(to_rows, x + 16 * half);
#pragma GCC unroll 2
    for (int i = 0; i < 4; i += 2) {
      products pair = multiply_add(multiply(words[i], to_rows[i]), words[i + 1], to_rows[i + 1]);
      low = vpadalq_s16(low, pair.low);
      high = vpadalq_s16(high, pair.high);
    }
  }
  return vpaddq_s32(low, high);
}

/* All eight words are, and two columns more: sixteen products of at most 15 * 127 are 30480. */
static inline int32x4_t dot_small(const int8x16_t w[8], const int8_t *x, int32_t start) {
  int8x16_t to_rows[8];
  spread(to_rows, x);
  spread(to_rows + 4, x + 16);
  products all = multiply(w[0], to_rows[0]);
#pragma GCC unroll 7
  for (int i = 1; i < 8; i++) all = multiply_add(all, w[i], to_rows[i]);
  return vpadalq_s16(vdupq_n_s32(start), vpaddq_s16(all.low, all.high));
}

#include "kernels/packed_neon.h"

/* The bounds of dot_q8: two products to a lane. */
static inline int32x4_t dot_block(const int8x16_t w[2], const int8x16_t x[2]) {
  products all = multiply_add(multiply(w[0], x[0]), w[1], x[1]);
  return vpadalq_s16(vpaddlq_s16(all.low), all.high);
}

#include "kernels/rows_neon.h"

const ml_kernels ml_kernels_neon = {
    "neon",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
