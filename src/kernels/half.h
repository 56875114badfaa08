/* half.h - IEEE half precision to float and back with integers only, so that no platform's conversion is involved. */
#ifndef ML_KERNELS_HALF_H
#define ML_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

/* Exact for all 65536 values; subnormals included, infinities and NaN stay what they are.
 *
 *   half   s eeeee mmmmmmmmmm      float   s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm
 */
static inline float ml_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 31;
  uint32_t mantissa = half & 1023;
  uint32_t bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000 | mantissa << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa == 0) {
    bits = sign;
  } else { /* subnormal: shift the leading one into its hidden place */
    uint32_t shift = 0;
    while (!(mantissa & 1024)) mantissa <<= 1, shift++;
    bits = sign | (113 - shift) << 23 | (mantissa & 1023) << 13;
  }
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* To the nearest half, ties to even; what is too large becomes infinity. */
static inline uint16_t ml_float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
  if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* from 65520 on */
  uint32_t shift = 13, mantissa = size - (112u << 23);      /* with the exponent, moved to the half's range */
  if (size < 113u << 23) { /* subnormal: the hidden one becomes visible, and moves */
    shift = 126 - (size >> 23);
    if (shift > 25) return (uint16_t)sign;
    mantissa = (size & 0x7fffff) | 0x800000;
  }
  uint32_t half = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), tie = 1u << (shift - 1);
  if (rest > tie || (rest == tie && (half & 1))) half++;
  return (uint16_t)(sign | half);
}

#endif
