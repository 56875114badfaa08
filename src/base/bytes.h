/* bytes.h - little-endian reads and writes at any alignment, and size arithmetic that cannot wrap. */
#ifndef ML_BASE_BYTES_H
#define ML_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t ml_read_u16(const uint8_t *bytes) {
  return (uint16_t)(bytes[0] | (uint32_t)bytes[1] << 8);
}

static inline uint32_t ml_read_u32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t ml_read_u64(const uint8_t *bytes) {
  return ml_read_u32(bytes) | (uint64_t)ml_read_u32(bytes + 4) << 32;
}

static inline float ml_read_f32(const uint8_t *bytes) {
  uint32_t bits = ml_read_u32(bytes);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline void ml_write_u32(uint8_t *bytes, uint32_t value) {
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

static inline void ml_write_u64(uint8_t *bytes, uint64_t value) {
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

/* Sizes are counted in 64 bits on every target and stick at UINT64_MAX instead of wrapping, so that one
 * comparison at the end of a sum is enough. */
static inline uint64_t ml_add_sizes(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t ml_mul_sizes(uint64_t a, uint64_t b);

static inline uint64_t ml_round_up(uint64_t size, uint64_t multiple) {
  uint64_t rest = size % multiple;
  return rest ? ml_add_sizes(size, multiple - rest) : size;
}

#endif
