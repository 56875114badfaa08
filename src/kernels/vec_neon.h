/* vec_neon.h - eight float lanes in two NEON registers (AArch64). Meanings: vec_scalar.h. */
#ifndef ML_KERNELS_VEC_NEON_H
#define ML_KERNELS_VEC_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct v8 {
  float32x4_t low, high; /* lanes 0 ... 3 and 4 ... 7 */
} v8;

static inline v8 v8_set(float x) { return (v8){vdupq_n_f32(x), vdupq_n_f32(x)}; }
static inline v8 v8_load(const float *p) { return (v8){vld1q_f32(p), vld1q_f32(p + 4)}; }
static inline void v8_store(float *p, v8 a) { vst1q_f32(p, a.low), vst1q_f32(p + 4, a.high); }

/* n < 4 floats, and nothing behind them is touched. */
static inline float32x4_t quad_load_part(const float *p, size_t n) {
  float32x4_t a = vdupq_n_f32(0.0f);
  if (n > 0) a = vld1q_lane_f32(p, a, 0);
  if (n > 1) a = vld1q_lane_f32(p + 1, a, 1);
  if (n > 2) a = vld1q_lane_f32(p + 2, a, 2);
  return a;
}
static inline void quad_store_part(float *p, float32x4_t a, size_t n) {
  if (n > 0) vst1q_lane_f32(p, a, 0);
  if (n > 1) vst1q_lane_f32(p + 1, a, 1);
  if (n > 2) vst1q_lane_f32(p + 2, a, 2);
}

static inline v8 v8_load_part(const float *p, size_t n) {
  if (n < 4) return (v8){quad_load_part(p, n), vdupq_n_f32(0.0f)};
  return (v8){vld1q_f32(p), quad_load_part(p + 4, n - 4)};
}
static inline void v8_store_part(float *p, v8 a, size_t n) {
  if (n < 4) {
    quad_store_part(p, a.low, n);
  } else {
    vst1q_f32(p, a.low);
    quad_store_part(p + 4, a.high, n - 4);
  }
}

static inline v8 v8_load_f16(const uint16_t *p) {
  float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
  return (v8){vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}

/* Never vmla or vfma: the product is rounded before it is added. */
static inline v8 v8_add(v8 a, v8 b) { return (v8){vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
static inline v8 v8_sub(v8 a, v8 b) { return (v8){vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
static inline v8 v8_mul(v8 a, v8 b) { return (v8){vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
static inline v8 v8_div(v8 a, v8 b) { return (v8){vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
static inline v8 v8_abs(v8 a) { return (v8){vabsq_f32(a.low), vabsq_f32(a.high)}; }

static inline float32x4_t quad_select(float32x4_t mask, float32x4_t yes, float32x4_t no) {
  return vbslq_f32(vreinterpretq_u32_f32(mask), yes, no);
}
static inline float32x4_t quad_less(float32x4_t a, float32x4_t b) {
  return vreinterpretq_f32_u32(vcltq_f32(a, b));
}

static inline v8 v8_select(v8 mask, v8 yes, v8 no) {
  return (v8){quad_select(mask.low, yes.low, no.low), quad_select(mask.high, yes.high, no.high)};
}
static inline v8 v8_less(v8 a, v8 b) { return (v8){quad_less(a.low, b.low), quad_less(a.high, b.high)}; }
static inline v8 v8_copysign(v8 a, v8 b) { return v8_select(v8_set(-0.0f), b, a); }
/* Not FMAX, which gives NaN when either is NaN. */
static inline v8 v8_max(v8 a, v8 b) { return v8_select(v8_less(a, b), b, a); }

static inline bool v8_all(v8 mask) {
  uint32x4_t both = vandq_u32(vreinterpretq_u32_f32(mask.low), vreinterpretq_u32_f32(mask.high));
  return vminvq_u32(both) == UINT32_MAX;
}
static inline v8 v8_swap_pairs(v8 a) { return (v8){vrev64q_f32(a.low), vrev64q_f32(a.high)}; }

static inline float32x4_t quad_pow2_of_shifted(float32x4_t a) {
  uint32x4_t bits = vaddq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(127));
  return vreinterpretq_f32_u32(vshlq_n_u32(bits, 23));
}
static inline v8 v8_pow2_of_shifted(v8 a) {
  return (v8){quad_pow2_of_shifted(a.low), quad_pow2_of_shifted(a.high)};
}

static inline float v8_sum(v8 a) {
  float32x4_t four = vaddq_f32(a.low, a.high); /* l0+l4 l1+l5 l2+l6 l3+l7 */
  float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* The same tree for two vectors at once: l0+l4+l2+l6 l1+l5+l3+l7 of each. */
static inline float32x4_t quad_sum_pair(v8 a, v8 b) {
  float64x2_t x = vreinterpretq_f64_f32(vaddq_f32(a.low, a.high));
  float64x2_t y = vreinterpretq_f64_f32(vaddq_f32(b.low, b.high));
  return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)), vreinterpretq_f32_f64(vzip2q_f64(x, y)));
}
static inline v8 v8_sum_each(const v8 a[8]) {
  return (v8){vpaddq_f32(quad_sum_pair(a[0], a[1]), quad_sum_pair(a[2], a[3])),
              vpaddq_f32(quad_sum_pair(a[4], a[5]), quad_sum_pair(a[6], a[7]))};
}

/* Of numbers: NaN would win here. */
static inline float v8_greatest(v8 a) { return vmaxvq_f32(vmaxq_f32(a.low, a.high)); }

static inline v8 v8_store_i8(int8_t *p, v8 a) {
  int32x4_t low = vcvtq_s32_f32(a.low), high = vcvtq_s32_f32(a.high);
  vst1_s8(p, vmovn_s16(vcombine_s16(vmovn_s32(low), vmovn_s32(high))));
  return (v8){vcvtq_f32_s32(low), vcvtq_f32_s32(high)};
}

static inline v8 v8_load_i8(const int8_t *p) {
  int16x8_t wide = vmovl_s8(vld1_s8(p));
  return (v8){vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), vcvtq_f32_s32(vmovl_high_s16(wide))};
}

#endif
