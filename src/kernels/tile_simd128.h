/* tile_simd128.h - what the packed matrix kernels of both wasm tables share: a vector holds four of a group's 16 rows,
 * so a word of the group (64 bytes) is four vectors, its quarters.
 *
 * For V8, which compiles these kernels in Chrome and Node:
 * - No shift of 8-bit lanes: x86 has none, and V8 makes up for it with a mask that it builds anew each time. A shift of
 *   16-bit lanes and a mask do.
 * - No constant in an inner loop: V8 builds it anew at each use, by three instructions, rather than keep it in a
 *   register. What it does not know to be constant it keeps.
 * - The same activations go to every row by a load that spreads them. */
#ifndef ML_KERNELS_TILE_SIMD128_H
#define ML_KERNELS_TILE_SIMD128_H

#include <wasm_simd128.h>

#include "kernels/packed_driver.h"

enum { QUARTERS = ML_PACK_ROWS / 4 };
/* Around code that is large already: not written out four times. */
#define EACH_QUARTER(name) \
  _Pragma("clang loop unroll(disable)") for (uint32_t name = 0; name < QUARTERS; name++)

/* 4 bytes - four activations of 8 bits, two of 16, a scale - to each of the four rows. */
static inline v128_t spread(const void *p) { return wasm_v128_load32_splat(p); }

/* A byte in every lane, as something that only memory knows. */
static inline v128_t byte_mask(uint8_t byte) {
  volatile uint8_t unknown = byte;
  return wasm_u8x16_splat(unknown);
}

/* From where a sum of products starts whose weights are twice INT2's codes, and 3 too large: of Q4_0's nibbles, which are
 * 8 too large, it is *start. */
static inline v128_t start_int2(const int32_t *start) {
  v128_t one = wasm_i32x4_shr(spread(start), 3);
  return wasm_i32x4_add(one, wasm_i32x4_add(one, one));
}

/* acc + (float)isum * (dw * dx) */
static inline v128_t add_block(v128_t acc, v128_t isum, v128_t dw, const float *dx) {
  v128_t scale = wasm_f32x4_mul(dw, spread(dx));
  return wasm_f32x4_add(acc, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(isum), scale));
}

/* The same for all rows of a group. */
static inline void add_quarters(v128_t acc[QUARTERS], const v128_t isum[QUARTERS], const ml_tile *tile,
                                size_t b) {
#pragma clang loop unroll(full)
  for (int i = 0; i < QUARTERS; i++)
    acc[i] = add_block(acc[i], isum[i], wasm_v128_load(tile->scales + b * 16 + 4 * i), tile->d + b);
}

__attribute__((noinline)) static void store_some_rows(float *y, v128_t acc, uint32_t n) {
  float lanes[4];
  wasm_v128_store(lanes, acc);
  for (uint32_t i = 0; i < n; i++) y[i] = lanes[i];
}

static inline void store_rows(const ml_tile *tile, uint32_t token, uint32_t quarter, v128_t acc) {
  float *y = tile->y + token * tile->y_stride + 4 * quarter;
  if (tile->n_rows >= 4 * quarter + 4)
    wasm_v128_store(y, acc);
  else if (tile->n_rows > 4 * quarter)
    store_some_rows(y, acc, tile->n_rows - 4 * quarter);
}

/* Sums of `n` tokens, each of the same four rows. */
__attribute__((noinline)) static void store_sums(const ml_tile *tile, uint32_t quarter, const v128_t *sums,
                                                 uint32_t n) {
  for (uint32_t t = 0; t < n; t++) store_rows(tile, t, quarter, sums[t]);
}

/* The same by way of a copy. An array that is indexed by anything but constants, once at the end even, lies in memory, and
 * every addition to it is made there; all the same the code to store it need not be written out. n <= MAX_TILE */
enum { MAX_TILE = 8 };
__attribute__((always_inline)) static inline void store_tokens(const ml_tile *tile, uint32_t quarter,
                                                               const v128_t *acc, const int n) {
  v128_t sums[MAX_TILE];
#pragma clang loop unroll(full)
  for (int t = 0; t < n; t++) sums[t] = acc[t];
  store_sums(tile, quarter, sums, (uint32_t)n);
}

/* Sums of one token, of all rows. */
static inline void store_quarters(const ml_tile *tile, const v128_t acc[QUARTERS]) {
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < QUARTERS; i++) store_tokens(tile, i, acc + i, 1);
}

/* Only constants for an index, as above. */
__attribute__((always_inline)) static inline void clear(v128_t *acc, const int n) {
#pragma clang loop unroll(full)
  for (int i = 0; i < n; i++) acc[i] = wasm_i32x4_splat(0);
}

/* All sums of a block, of one token. `mask` is whatever they need of constants. */
typedef void block_fn(v128_t isum[QUARTERS], const ml_tile *tile, size_t b, v128_t mask);

/* One token with n <= 2 groups of one matrix. */
__attribute__((always_inline)) static inline void groups_one(const ml_tile *tiles, const int n,
                                                             block_fn *block, v128_t mask) {
  v128_t acc[2 * QUARTERS];
  clear(acc, n * QUARTERS);
  for (size_t b = 0; b < tiles->n_blocks; b++)
#pragma clang loop unroll(full)
    for (int g = 0; g < n; g++) {
      v128_t isum[QUARTERS];
      block(isum, tiles + g, b, mask);
      add_quarters(acc + g * QUARTERS, isum, tiles + g, b);
    }
#pragma clang loop unroll(full)
  for (int g = 0; g < n; g++) store_quarters(tiles + g, acc + g * QUARTERS);
}

#endif
