/* neondot.c - AArch64 with the dot product instructions: SDOT adds, to each 32-bit lane, four products of bytes. */
#include "kernels/vec_neon.h"

#include "kernels/float_kernels.h"
#include "kernels/packed_driver.h"
#include "kernels/tables.h"

#include "kernels/embed.h"

/* Four words, columns 4 i ... 4 i + 3 of four rows: x need not be spread, since a lane of it can be the operand. */
static inline int32x4_t add_words(int32x4_t acc, const int8x16_t w[4], int8x16_t x) {
  acc = vdotq_laneq_s32(acc, w[0], x, 0);
  acc = vdotq_laneq_s32(acc, w[1], x, 1);
  acc = vdotq_laneq_s32(acc, w[2], x, 2);
  return vdotq_laneq_s32(acc, w[3], x, 3);
}

/* Two chains, since one would wait for itself. */
static inline int32x4_t dot_words(int32x4_t start, const int8x16_t w[8], const int8_t *x) {
  int32x4_t low = add_words(start, w, vld1q_s8(x));
  int32x4_t high = add_words(vdupq_n_s32(0), w + 4, vld1q_s8(x + 16));
  return vaddq_s32(low, high);
}

static inline int32x4_t dot_q8(const int8x16_t w[8], const int8_t *x) {
  return dot_words(vdupq_n_s32(0), w, x);
}

static inline int32x4_t dot_small(const int8x16_t w[8], const int8_t *x, int32_t start) {
  return dot_words(vdupq_n_s32(start), w, x);
}

#include "kernels/packed_neon.h"

static inline int32x4_t dot_block(const int8x16_t w[2], const int8x16_t x[2]) {
  return vdotq_s32(vdotq_s32(vdupq_n_s32(0), w[0], x[0]), w[1], x[1]);
}

#include "kernels/rows_neon.h"

const ml_kernels ml_kernels_neondot = {
    "neondot",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
