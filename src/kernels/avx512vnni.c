/* avx512vnni.c - x86-64 with AVX-512 VNNI: a group's 16 rows are one vector. Everything but the packed matrices is as
 * with AVX2. */
#include "kernels/vec_avx2.h"

#include <string.h>

#include "kernels/float_kernels.h"
#include "kernels/packed_driver.h"
#include "kernels/tables.h"

#include "kernels/embed.h"
#include "kernels/rows_avx2.h"

enum { LANES = 16, TILE = 8 }; /* tokens: of 32 registers, 8 hold weights, 8 sums */

typedef __m512i vi;
typedef __m512 vf;

static inline vi vi_zero(void) { return _mm512_setzero_si512(); }
static inline vi vi_set(int32_t x) { return _mm512_set1_epi32(x); }
static inline vi vi_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_dot(vi acc, vi u, vi s) { return _mm512_dpbusd_epi32(acc, u, s); }
static inline vi vi_flip_sign(vi a) { return _mm512_xor_si512(a, _mm512_set1_epi32((int)0x80808080)); }
static inline vi vi_low_nibbles(vi a) { return _mm512_and_si512(a, _mm512_set1_epi32(0x0f0f0f0f)); }
static inline vi vi_high_nibbles(vi a) { return vi_low_nibbles(_mm512_srli_epi32(a, 4)); }
static inline vi vi_shift_right(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
static inline vi vi_twice_codes(vi a) { return _mm512_and_si512(a, _mm512_set1_epi32(0x06060606)); }

/* Four activations to every row. */
static inline vi vi_spread(const int8_t *x) {
  int32_t word;
  memcpy(&word, x, sizeof word);
  return _mm512_set1_epi32(word);
}

static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_set(float x) { return _mm512_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_from_int(vi a) { return _mm512_cvtepi32_ps(a); }
static inline void vf_store_rows(float *p, vf a, uint32_t n) {
  _mm512_mask_storeu_ps(p, (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1), a);
}

#include "kernels/vnni.h"

const ml_kernels ml_kernels_avx512vnni = {
    "avx512vnni",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
