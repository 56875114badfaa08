/* vec_avx2.h - eight float lanes in one AVX register. Meanings: vec_scalar.h. */
#ifndef ML_KERNELS_VEC_AVX2_H
#define ML_KERNELS_VEC_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef __m256 v8;

static inline v8 v8_set(float x) { return _mm256_set1_ps(x); }
static inline v8 v8_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v8_store(float *p, v8 a) { _mm256_storeu_ps(p, a); }

/* Lanes below n are all ones. */
static inline __m256i v8_first(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline v8 v8_load_part(const float *p, size_t n) { return _mm256_maskload_ps(p, v8_first(n)); }
static inline void v8_store_part(float *p, v8 a, size_t n) { _mm256_maskstore_ps(p, v8_first(n), a); }

static inline v8 v8_load_f16(const uint16_t *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline v8 v8_add(v8 a, v8 b) { return _mm256_add_ps(a, b); }
static inline v8 v8_sub(v8 a, v8 b) { return _mm256_sub_ps(a, b); }
static inline v8 v8_mul(v8 a, v8 b) { return _mm256_mul_ps(a, b); }
static inline v8 v8_div(v8 a, v8 b) { return _mm256_div_ps(a, b); }

static inline v8 v8_sign_mask(void) { return _mm256_set1_ps(-0.0f); }
static inline v8 v8_abs(v8 a) { return _mm256_andnot_ps(v8_sign_mask(), a); }
static inline v8 v8_copysign(v8 a, v8 b) { return _mm256_or_ps(v8_abs(a), _mm256_and_ps(v8_sign_mask(), b)); }
/* MAXPS gives its second operand for NaN and for equal zeros: a < b ? b : a. */
static inline v8 v8_max(v8 a, v8 b) { return _mm256_max_ps(b, a); }
static inline v8 v8_less(v8 a, v8 b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline v8 v8_select(v8 mask, v8 yes, v8 no) { return _mm256_blendv_ps(no, yes, mask); }
static inline bool v8_all(v8 mask) { return _mm256_movemask_ps(mask) == 0xff; }
static inline v8 v8_swap_pairs(v8 a) { return _mm256_permute_ps(a, 0xb1); }

static inline v8 v8_pow2_of_shifted(v8 a) {
  __m256i bits = _mm256_add_epi32(_mm256_castps_si256(a), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
}

static inline float v8_sum(v8 a) {
  __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); /* l0+l4 l1+l5 l2+l6 l3+l7 */
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* The same tree for eight vectors at once: each step halves them and keeps the order of the lanes. */
static inline v8 v8_sum_each(const v8 a[8]) {
  v8 four[4], two[2];
  for (int i = 0; i < 4; i++) /* a[i] in the lower half, a[i + 4] in the upper */
    four[i] = _mm256_add_ps(_mm256_permute2f128_ps(a[i], a[i + 4], 0x20),
                            _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  for (int i = 0; i < 2; i++)
    two[i] = _mm256_add_ps(_mm256_shuffle_ps(four[2 * i], four[2 * i + 1], 0x44),
                           _mm256_shuffle_ps(four[2 * i], four[2 * i + 1], 0xee));
  return _mm256_add_ps(_mm256_shuffle_ps(two[0], two[1], 0x88), _mm256_shuffle_ps(two[0], two[1], 0xdd));
}

static inline float v8_greatest(v8 a) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline v8 v8_store_i8(int8_t *p, v8 a) {
  __m256i wide = _mm256_cvttps_epi32(a);
  __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(half, half));
  return _mm256_cvtepi32_ps(wide);
}

static inline v8 v8_load_i8(const int8_t *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

#endif
