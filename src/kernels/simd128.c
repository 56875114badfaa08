/* simd128.c - wasm with the vectors that every browser has. Its widest product is of 16 bits: four bytes of a row become
 * two pairs, the even ones (a, c) and the odd ones (b, d), and activations are kept as i16 in that order
 * (ml_rows.wide). */
#include "kernels/vec_simd128.h"

#include "kernels/float_kernels.h"
#include "kernels/tables.h"
#include "kernels/tile_simd128.h"

#include "kernels/embed.h"

enum { TILE = 8 }; /* tokens: 8 sums and a word's 4 pairs leave 4 of 16 registers to work with */
enum { INT2_TILE = 4 };
/* Over the words of a block, with a tile's sums in registers. Written out, V8 would get all words' pairs at once and spill
 * them; docs/KERNELS.md. */
#define EACH_WORD(name, n) _Pragma("clang loop unroll(disable)") for (int name = 0; name < (n); name++)

static inline v128_t pair(v128_t weights, const int16_t *x) {
  return wasm_i32x4_dot_i16x8(weights, spread(x));
}

/* ---------------------------------------------------------------- Q4_0 */

/* A word of four rows, 0x..h3l3h2l2h1l1h0l0, as i16 pairs: l0 l2, l1 l3 (columns 4 word + ...), and h0 h2, h1 h3
 * (16 columns on). */
typedef struct q4_pairs {
  v128_t low_even, low_odd, high_even, high_odd;
} q4_pairs;

static inline q4_pairs split_q4(v128_t word, v128_t nibble) {
  return (q4_pairs){.low_even = wasm_v128_and(word, nibble),
                    .high_even = wasm_v128_and(wasm_u16x8_shr(word, 4), nibble),
                    .low_odd = wasm_v128_and(wasm_u16x8_shr(word, 8), nibble),
                    .high_odd = wasm_u16x8_shr(word, 12)};
}

static inline v128_t dot_q4(const q4_pairs *w, const int16_t *x) {
  v128_t low = wasm_i32x4_add(pair(w->low_even, x), pair(w->low_odd, x + 2));
  v128_t high = wasm_i32x4_add(pair(w->high_even, x + 16), pair(w->high_odd, x + 18));
  return wasm_i32x4_add(low, high);
}

/* The block's 32 products of four rows each, for all quarters, with one token. */
static inline void block_q4(v128_t isum[QUARTERS], const ml_tile *tile, size_t b, v128_t nibble) {
  v128_t start = spread(tile->starts + b);
#pragma clang loop unroll(full)
  for (int i = 0; i < QUARTERS; i++) isum[i] = start;
#pragma clang loop unroll(full)
  for (int word = 0; word < 4; word++)
#pragma clang loop unroll(full)
    for (int i = 0; i < QUARTERS; i++) {
      q4_pairs w = split_q4(wasm_v128_load(tile->quants + b * 256 + 64 * word + 16 * i), nibble);
      isum[i] = wasm_i32x4_add(isum[i], dot_q4(&w, tile->wide + b * ML_BLOCK + 4 * word));
    }
}

static inline void q4_quarter(const ml_tile *tile, uint32_t quarter) {
  v128_t nibble = wasm_u16x8_shr(byte_mask(15), 8), acc[TILE];
  clear(acc, TILE);
  for (size_t b = 0; b < tile->n_blocks; b++) {
    v128_t isum[TILE];
#pragma clang loop unroll(full)
    for (int t = 0; t < TILE; t++) isum[t] = spread(tile->starts + (size_t)t * tile->n_blocks + b);
    EACH_WORD(word, 4) {
      q4_pairs w = split_q4(wasm_v128_load(tile->quants + b * 256 + 64 * word + 16 * quarter), nibble);
#pragma clang loop unroll(full)
      for (int t = 0; t < TILE; t++) {
        const int16_t *x = tile->wide + ((size_t)t * tile->n_blocks + b) * ML_BLOCK + 4 * word;
        isum[t] = wasm_i32x4_add(isum[t], dot_q4(&w, x));
      }
    }
    v128_t dw = wasm_v128_load(tile->scales + b * 16 + 4 * quarter);
#pragma clang loop unroll(full)
    for (int t = 0; t < TILE; t++)
      acc[t] = add_block(acc[t], isum[t], dw, tile->d + (size_t)t * tile->n_blocks + b);
  }
  store_tokens(tile, quarter, acc, TILE);
}

static inline void q4_wide(const ml_tile *tile) { EACH_QUARTER(quarter) q4_quarter(tile, quarter); }

/* ---------------------------------------------------------------- INT2 */

/* Word `word` of four rows holds columns 4 word + 8 k ... 4 word + 8 k + 3 for k = 0 ... 3. Twice the codes of one k, as
 * i16 pairs. */
typedef struct int2_pairs {
  v128_t even, odd;
} int2_pairs;

static inline int2_pairs split_int2(v128_t word, v128_t six, int k) {
  v128_t even = k == 0 ? wasm_i16x8_shl(word, 1) : wasm_u16x8_shr(word, (uint32_t)(2 * k - 1));
  return (int2_pairs){wasm_v128_and(even, six),
                      wasm_v128_and(wasm_u16x8_shr(word, (uint32_t)(2 * k + 7)), six)};
}

static inline v128_t add_int2(v128_t isum, int2_pairs w, const int16_t *x) {
  return wasm_i32x4_add(isum, wasm_i32x4_add(pair(w.even, x), pair(w.odd, x + 2)));
}

/* Four rows and n tokens. */
__attribute__((always_inline)) static inline void int2_quarter(const ml_tile *tile, uint32_t quarter,
                                                               const int n) {
  v128_t six = wasm_u16x8_shr(byte_mask(6), 8), acc[INT2_TILE];
  clear(acc, n);
  for (size_t b = 0; b < tile->n_blocks; b++) {
    v128_t isum[INT2_TILE];
    clear(isum, n);
#pragma clang loop unroll(full)
    for (int word = 0; word < 2; word++) {
      v128_t codes = wasm_v128_load(tile->quants + b * 128 + 64 * word + 16 * quarter);
#pragma clang loop unroll(full)
      for (int k = 0; k < 4; k++) {
        int2_pairs w = split_int2(codes, six, k);
#pragma clang loop unroll(full)
        for (int t = 0; t < n; t++)
          isum[t] = add_int2(isum[t], w,
                             tile->wide + ((size_t)t * tile->n_blocks + b) * ML_BLOCK + 8 * k + 4 * word);
      }
    }
    v128_t dw = wasm_v128_load(tile->scales + b * 16 + 4 * quarter);
#pragma clang loop unroll(full)
    for (int t = 0; t < n; t++) {
      size_t at = (size_t)t * tile->n_blocks + b;
      acc[t] = add_block(acc[t], wasm_i32x4_add(isum[t], start_int2(tile->starts + at)), dw, tile->d + at);
    }
  }
  store_tokens(tile, quarter, acc, n);
}

static inline void int2_wide(const ml_tile *tile) {
  EACH_QUARTER(quarter) int2_quarter(tile, quarter, INT2_TILE);
}
static inline void int2_one(const ml_tile *tile) { EACH_QUARTER(quarter) int2_quarter(tile, quarter, 1); }

/* ---------------------------------------------------------------- Q8_0 */

static inline v128_t even_bytes(v128_t word) { return wasm_i16x8_shr(wasm_i16x8_shl(word, 8), 8); }
static inline v128_t odd_bytes(v128_t word) { return wasm_i16x8_shr(word, 8); }

static inline void block_q8(v128_t isum[QUARTERS], const ml_tile *tile, size_t b, v128_t nibble) {
  (void)nibble;
  clear(isum, QUARTERS);
#pragma clang loop unroll(full)
  for (int word = 0; word < 8; word++) {
    const int16_t *x = tile->wide + b * ML_BLOCK + 4 * word;
#pragma clang loop unroll(full)
    for (int i = 0; i < QUARTERS; i++) {
      v128_t w = wasm_v128_load(tile->quants + b * 512 + 64 * word + 16 * i);
      isum[i] = wasm_i32x4_add(isum[i], wasm_i32x4_add(pair(even_bytes(w), x), pair(odd_bytes(w), x + 2)));
    }
  }
}

static inline void q8_quarter(const ml_tile *tile, uint32_t quarter) {
  v128_t acc[TILE];
  clear(acc, TILE);
  for (size_t b = 0; b < tile->n_blocks; b++) {
    v128_t isum[TILE];
    clear(isum, TILE);
    EACH_WORD(word, 8) {
      v128_t w = wasm_v128_load(tile->quants + b * 512 + 64 * word + 16 * quarter);
      v128_t even = even_bytes(w), odd = odd_bytes(w);
#pragma clang loop unroll(full)
      for (int t = 0; t < TILE; t++) {
        const int16_t *x = tile->wide + ((size_t)t * tile->n_blocks + b) * ML_BLOCK + 4 * word;
        isum[t] = wasm_i32x4_add(isum[t], wasm_i32x4_add(pair(even, x), pair(odd, x + 2)));
      }
    }
    v128_t dw = wasm_v128_load(tile->scales + b * 16 + 4 * quarter);
#pragma clang loop unroll(full)
    for (int t = 0; t < TILE; t++)
      acc[t] = add_block(acc[t], isum[t], dw, tile->d + (size_t)t * tile->n_blocks + b);
  }
  store_tokens(tile, quarter, acc, TILE);
}

static inline void q8_wide(const ml_tile *tile) { EACH_QUARTER(quarter) q8_quarter(tile, quarter); }

/* ---------------------------------------------------------------- one token */

static inline v128_t nibble_mask(void) { return wasm_u16x8_shr(byte_mask(15), 8); }
static inline void q4_one(const ml_tile *tile) { groups_one(tile, 1, block_q4, nibble_mask()); }
static inline void q4_two(const ml_tile *tiles) { groups_one(tiles, 2, block_q4, nibble_mask()); }
static inline void q8_one(const ml_tile *tile) { groups_one(tile, 1, block_q8, nibble_mask()); }
static inline void q8_two(const ml_tile *tiles) { groups_one(tiles, 2, block_q8, nibble_mask()); }

ML_PACKED_MATMUL(k_matmul_int2_packed, 8, INT2_TILE, int2_wide, int2_one, NULL)
ML_PACKED_MATMUL(k_matmul_q4_0_packed, 16, TILE, q4_wide, q4_one, q4_two)
ML_PACKED_MATMUL(k_matmul_q8_0_packed, 32, TILE, q8_wide, q8_one, q8_two)

/* Nothing maps files here: only tests see matrices in this layout. */
#define k_matmul_q4_0_rows ml_matmul_any
#define k_matmul_q8_0_rows ml_matmul_any

const ml_kernels ml_kernels_simd128 = {
    "simd128",
    true,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
