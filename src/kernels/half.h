/* half.h - IEEE half precision to float with integers only, so that no platform's conversion is involved. */
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

#endif
