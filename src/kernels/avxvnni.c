/* avxvnni.c - x86-64 with AVX-VNNI: VPDPBUSD on 256 bits, eight rows to a vector. Everything but the packed matrices is
 * as with AVX2. */
#include "kernels/vec_avx2.h"

#include <string.h>

#include "kernels/float_kernels.h"
#include "kernels/packed_driver.h"
#include "kernels/tables.h"

#include "kernels/embed.h"
#include "kernels/rows_avx2.h"

enum { LANES = 8, TILE = 4 }; /* tokens: of 16 registers, 8 hold weights, 4 sums */

typedef __m256i vi;
typedef __m256 vf;

static inline vi vi_zero(void) { return _mm256_setzero_si256(); }
static inline vi vi_set(int32_t x) { return _mm256_set1_epi32(x); }
static inline vi vi_load(const uint8_t *p) { return _mm256_loadu_si256((const vi *)(const void *)p); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_dot(vi acc, vi u, vi s) { return _mm256_dpbusd_avx_epi32(acc, u, s); }
static inline vi vi_flip_sign(vi a) { return _mm256_xor_si256(a, _mm256_set1_epi32((int)0x80808080)); }
static inline vi vi_low_nibbles(vi a) { return _mm256_and_si256(a, _mm256_set1_epi32(0x0f0f0f0f)); }
static inline vi vi_high_nibbles(vi a) { return vi_low_nibbles(_mm256_srli_epi32(a, 4)); }
static inline vi vi_shift_right(vi a, int n) { return _mm256_srli_epi32(a, n); }
static inline vi vi_twice_codes(vi a) { return _mm256_and_si256(a, _mm256_set1_epi32(0x06060606)); }

/* Four activations to every row. */
static inline vi vi_spread(const int8_t *x) {
  int32_t word;
  memcpy(&word, x, sizeof word);
  return _mm256_set1_epi32(word);
}

static inline vf vf_zero(void) { return _mm256_setzero_ps(); }
static inline vf vf_set(float x) { return _mm256_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_from_int(vi a) { return _mm256_cvtepi32_ps(a); }
static inline void vf_store_rows(float *p, vf a, uint32_t n) {
  if (n >= 8)
    v8_store(p, a);
  else
    v8_store_part(p, a, n);
}

#include "kernels/vnni.h"

const ml_kernels ml_kernels_avxvnni = {
    "avxvnni",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
