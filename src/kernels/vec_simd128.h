/* vec_simd128.h - eight float lanes in two wasm vectors. Meanings: vec_scalar.h. */
#ifndef ML_KERNELS_VEC_SIMD128_H
#define ML_KERNELS_VEC_SIMD128_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

typedef struct v8 {
  v128_t low, high; /* lanes 0 ... 3 and 4 ... 7 */
} v8;

#define V8_BOTH(operation) ((v8){operation(a.low, b.low), operation(a.high, b.high)})

static inline v8 v8_set(float x) { return (v8){wasm_f32x4_splat(x), wasm_f32x4_splat(x)}; }
static inline v8 v8_load(const float *p) { return (v8){wasm_v128_load(p), wasm_v128_load(p + 4)}; }
static inline void v8_store(float *p, v8 a) {
  wasm_v128_store(p, a.low);
  wasm_v128_store(p + 4, a.high);
}
/* Ends of vectors come once: not worth being written out in every loop. */
__attribute__((noinline)) static v8 v8_load_part(const float *p, size_t n) {
  float lanes[8] = {0};
  memcpy(lanes, p, n * sizeof *p);
  return v8_load(lanes);
}
__attribute__((noinline)) static void v8_store_part(float *p, v8 a, size_t n) {
  float lanes[8];
  v8_store(lanes, a);
  memcpy(p, lanes, n * sizeof *p);
}

/* A half's exponent and mantissa, moved to a float's places, are its value over 2^112; infinity and NaN come out as large
 * numbers, and are given all ones for an exponent. */
static inline v128_t v8_half_from_f16(v128_t a) {
  v128_t sign = wasm_v128_and(wasm_i32x4_shl(a, 16), wasm_i32x4_splat((int)0x80000000));
  v128_t size = wasm_i32x4_shl(wasm_v128_and(a, wasm_i32x4_splat(0x7fff)), 13);
  v128_t value = wasm_f32x4_mul(size, wasm_f32x4_splat(0x1p112f));
  v128_t special =
      wasm_v128_and(wasm_i32x4_gt(size, wasm_i32x4_splat((0x7c00 << 13) - 1)), wasm_i32x4_splat(0x7f800000));
  return wasm_v128_or(wasm_v128_or(value, special), sign);
}
static inline v8 v8_load_f16(const uint16_t *p) {
  v128_t a = wasm_v128_load(p);
  return (v8){v8_half_from_f16(wasm_u32x4_extend_low_u16x8(a)),
              v8_half_from_f16(wasm_u32x4_extend_high_u16x8(a))};
}

static inline v8 v8_add(v8 a, v8 b) { return V8_BOTH(wasm_f32x4_add); }
static inline v8 v8_sub(v8 a, v8 b) { return V8_BOTH(wasm_f32x4_sub); }
static inline v8 v8_mul(v8 a, v8 b) { return V8_BOTH(wasm_f32x4_mul); }
static inline v8 v8_div(v8 a, v8 b) { return V8_BOTH(wasm_f32x4_div); }
static inline v8 v8_abs(v8 a) { return (v8){wasm_f32x4_abs(a.low), wasm_f32x4_abs(a.high)}; }
static inline v8 v8_max(v8 a, v8 b) { return V8_BOTH(wasm_f32x4_pmax); } /* defined as a < b ? b : a */
static inline v8 v8_less(v8 a, v8 b) { return V8_BOTH(wasm_f32x4_lt); }

static inline v8 v8_select(v8 mask, v8 yes, v8 no) {
  return (v8){wasm_v128_bitselect(yes.low, no.low, mask.low),
              wasm_v128_bitselect(yes.high, no.high, mask.high)};
}
static inline v8 v8_copysign(v8 a, v8 b) {
  v128_t sign = wasm_f32x4_splat(-0.0f);
  return v8_select((v8){sign, sign}, b, a);
}
static inline bool v8_all(v8 mask) { return wasm_i32x4_all_true(wasm_v128_and(mask.low, mask.high)); }
static inline v8 v8_swap_pairs(v8 a) {
  return (v8){wasm_i32x4_shuffle(a.low, a.low, 1, 0, 3, 2), wasm_i32x4_shuffle(a.high, a.high, 1, 0, 3, 2)};
}

static inline v128_t v8_half_pow2(v128_t shifted) {
  return wasm_i32x4_shl(wasm_i32x4_add(shifted, wasm_i32x4_splat(127)), 23);
}
static inline v8 v8_pow2_of_shifted(v8 a) { return (v8){v8_half_pow2(a.low), v8_half_pow2(a.high)}; }

static inline float v8_sum(v8 a) {
  v128_t four = wasm_f32x4_add(a.low, a.high); /* l0+l4 l1+l5 l2+l6 l3+l7 */
  v128_t two = wasm_f32x4_add(four, wasm_i32x4_shuffle(four, four, 2, 3, 2, 3));
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

/* The same tree for eight vectors at once. */
static inline v128_t v8_sum_four(const v8 a[4]) {
  v128_t four[4], two[2];
  for (int i = 0; i < 4; i++) four[i] = wasm_f32x4_add(a[i].low, a[i].high);
  for (int i = 0; i < 2; i++)
    two[i] = wasm_f32x4_add(wasm_i32x4_shuffle(four[2 * i], four[2 * i + 1], 0, 1, 4, 5),
                            wasm_i32x4_shuffle(four[2 * i], four[2 * i + 1], 2, 3, 6, 7));
  return wasm_f32x4_add(wasm_i32x4_shuffle(two[0], two[1], 0, 2, 4, 6),
                        wasm_i32x4_shuffle(two[0], two[1], 1, 3, 5, 7));
}
static inline v8 v8_sum_each(const v8 a[8]) { return (v8){v8_sum_four(a), v8_sum_four(a + 4)}; }

static inline float v8_greatest(v8 a) {
  v128_t four = wasm_f32x4_pmax(a.low, a.high);
  v128_t two = wasm_f32x4_pmax(four, wasm_i32x4_shuffle(four, four, 2, 3, 2, 3));
  return wasm_f32x4_extract_lane(wasm_f32x4_pmax(two, wasm_i32x4_shuffle(two, two, 1, 1, 1, 1)), 0);
}

/* An integer n of few bits plus 1.5 * 2^23 has n in its low mantissa bits: cheaper than the saturating conversion,
 * which processors without one of its kind make up from nine instructions. */
static inline v128_t v8_half_to_i32(v128_t a) {
  v128_t shift = wasm_f32x4_splat(12582912.0f);
  return wasm_i32x4_sub(wasm_f32x4_add(a, shift), shift);
}
static inline v8 v8_store_i8(int8_t *p, v8 a) {
  v8 whole = {wasm_f32x4_trunc(a.low), wasm_f32x4_trunc(a.high)};
  v128_t half = wasm_i16x8_narrow_i32x4(v8_half_to_i32(whole.low), v8_half_to_i32(whole.high));
  wasm_v128_store64_lane(p, wasm_i8x16_narrow_i16x8(half, half), 0);
  return whole;
}

static inline v8 v8_load_i8(const int8_t *p) {
  v128_t wide = wasm_i16x8_load8x8(p);
  return (v8){wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(wide)),
              wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(wide))};
}

#undef V8_BOTH

#endif
