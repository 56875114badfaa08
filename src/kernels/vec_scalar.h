/* vec_scalar.h - eight float lanes in plain C: the vocabulary of float_kernels.h for any machine, and the
 * meaning that every other vocabulary must have.
 *
 * A mask is a vector whose lanes are all ones or all zeros in bits. */
#ifndef ML_KERNELS_VEC_SCALAR_H
#define ML_KERNELS_VEC_SCALAR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

typedef struct v8 {
  float lane[8];
} v8;

#define V8_EACH(expression)                             \
  v8 r;                                                 \
  for (int i = 0; i < 8; i++) r.lane[i] = (expression); \
  return r

static inline uint32_t lane_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float lane_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline v8 v8_set(float x) { V8_EACH(x); }
static inline v8 v8_load(const float *p) { V8_EACH(p[i]); }
/* n < 8 floats; the missing lanes are +0 */
static inline v8 v8_load_part(const float *p, size_t n) { V8_EACH((size_t)i < n ? p[i] : 0.0f); }
static inline void v8_store(float *p, v8 a) { memcpy(p, a.lane, sizeof a.lane); }
static inline void v8_store_part(float *p, v8 a, size_t n) { memcpy(p, a.lane, n * sizeof *p); }

/* Eight halves, exactly. */
static inline v8 v8_load_f16(const uint16_t *p) { V8_EACH(ml_half_to_float(p[i])); }

static inline v8 v8_add(v8 a, v8 b) { V8_EACH(a.lane[i] + b.lane[i]); }
static inline v8 v8_sub(v8 a, v8 b) { V8_EACH(a.lane[i] - b.lane[i]); }
static inline v8 v8_mul(v8 a, v8 b) { V8_EACH(a.lane[i] * b.lane[i]); }
static inline v8 v8_div(v8 a, v8 b) { V8_EACH(a.lane[i] / b.lane[i]); }
static inline v8 v8_abs(v8 a) { V8_EACH(lane_from_bits(lane_bits(a.lane[i]) & 0x7fffffff)); }
/* |a| with the sign of b */
static inline v8 v8_copysign(v8 a, v8 b) {
  V8_EACH(lane_from_bits((lane_bits(a.lane[i]) & 0x7fffffff) | (lane_bits(b.lane[i]) & 0x80000000)));
}
/* a < b ? b : a, on every platform: NaN in either gives a */
static inline v8 v8_max(v8 a, v8 b) { V8_EACH(a.lane[i] < b.lane[i] ? b.lane[i] : a.lane[i]); }
static inline v8 v8_less(v8 a, v8 b) { V8_EACH(lane_from_bits(a.lane[i] < b.lane[i] ? 0xffffffff : 0)); }
static inline v8 v8_select(v8 mask, v8 yes, v8 no) {
  V8_EACH(lane_bits(mask.lane[i]) ? yes.lane[i] : no.lane[i]);
}
static inline bool v8_all(v8 mask) {
  bool all = true;
  for (int i = 0; i < 8; i++) all = all && lane_bits(mask.lane[i]);
  return all;
}
/* a b c d ... becomes b a d c ... */
static inline v8 v8_swap_pairs(v8 a) { V8_EACH(a.lane[i ^ 1]); }

/* 2^n from the float n + 1.5 * 2^23, whose low mantissa bits are n; -126 <= n <= 127 */
static inline v8 v8_pow2_of_shifted(v8 a) { V8_EACH(lane_from_bits((lane_bits(a.lane[i]) + 127) << 23)); }

/* The one reduction tree of the numerics contract. */
static inline float v8_sum(v8 a) {
  const float *l = a.lane;
  return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

/* v8_sum of each of eight vectors, as the lanes of one. */
static inline v8 v8_sum_each(const v8 a[8]) { V8_EACH(v8_sum(a[i])); }

static inline float v8_greatest(v8 a) {
  float m = a.lane[0];
  for (int i = 1; i < 8; i++) m = m < a.lane[i] ? a.lane[i] : m;
  return m;
}

/* Truncates towards zero, and returns what it stored; lanes are above -128 and below 128. */
static inline v8 v8_store_i8(int8_t *p, v8 a) {
  for (int i = 0; i < 8; i++) p[i] = (int8_t)(int32_t)a.lane[i];
  V8_EACH((float)p[i]);
}

static inline v8 v8_load_i8(const int8_t *p) { V8_EACH((float)p[i]); }

#undef V8_EACH

#endif
