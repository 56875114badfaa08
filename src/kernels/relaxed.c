/* relaxed.c - wasm with relaxed SIMD, of which two instructions are used: dot products of signed bytes with bytes from 0
 * to 127. There every machine must give the same: a pair of products is at most 2 * 127 * 127 and fits 16 bits, so
 * neither the sign of the second operand nor saturation is left open. ml_cpu_relaxed tries it out.
 *
 *   relaxed        four products of each row are added to a 32-bit sum: one instruction with AVX-VNNI or ARM's dot
 *                  products, and five elsewhere on x86
 *   relaxed_pairs  two products make a 16-bit sum: one instruction on any x86, three on ARM
 *
 * Both give the same bits, so the machine may choose: ml_cpu_relaxed_pairs sees which kind it is by what it does with
 * operands above 127. */
#include "kernels/vec_simd128.h"

#include "kernels/cpu.h"
#include "kernels/float_kernels.h"
#include "kernels/tables.h"
#include "kernels/tile_simd128.h"

#include "kernels/embed.h"

enum { TILE = 8 }; /* tokens: unpacking four rows pays for itself, though not all sums stay in 16 registers */

/* `small`: 0 ... 127. */
static inline v128_t dot4(v128_t sum, v128_t x, v128_t small) {
  return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, small, sum);
}

static inline v128_t dot2(v128_t x, v128_t small) { return wasm_i16x8_relaxed_dot_i8x16_i7x16(x, small); }

/* Inlined, so that `q8` and `pairs` are constants. */
#define TEMPLATE __attribute__((always_inline)) static inline

/* ---------------------------------------------------------------- nibbles as the small operand */

/* A sum over a block of 32: of 32 bits, or in pairs of 16, which the 16 products of at most 15 * 127 fit that each of
 * them gets. */
TEMPLATE v128_t add_four(v128_t sum, v128_t x, v128_t nibbles, const bool pairs) {
  return pairs ? wasm_i16x8_add(sum, dot2(x, nibbles)) : dot4(sum, x, nibbles);
}

TEMPLATE v128_t total(v128_t sum, const bool pairs) {
  return pairs ? wasm_i32x4_extadd_pairwise_i16x8(sum) : sum;
}

/* Nibbles as they are. Two chains, since one would wait for itself. */
TEMPLATE v128_t dot_nibbles(const v128_t *nibbles, const int8_t *x, const bool pairs) {
  v128_t low = wasm_i32x4_splat(0), high = wasm_i32x4_splat(0);
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; i++) {
    low = add_four(low, spread(x + 4 * i), nibbles[2 * i], pairs);
    high = add_four(high, spread(x + 16 + 4 * i), nibbles[2 * i + 1], pairs);
  }
  return pairs ? total(wasm_i16x8_add(low, high), true) : wasm_i32x4_add(low, high);
}

TEMPLATE v128_t dot_q4(const v128_t *nibbles, const int8_t *x, const int32_t *start, const bool pairs) {
  return wasm_i32x4_add(spread(start), dot_nibbles(nibbles, x, pairs));
}

/* Q8_0: w + 128 is 16 times one nibble plus another. */
TEMPLATE v128_t dot_q8(const v128_t *nibbles, const int8_t *x, const int32_t *start, const bool pairs) {
  v128_t low = wasm_i32x4_splat(0), high = wasm_i32x4_splat(0);
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i++) {
    v128_t four = spread(x + 4 * i);
    low = add_four(low, four, nibbles[2 * i], pairs);
    high = add_four(high, four, nibbles[2 * i + 1], pairs);
  }
  v128_t above = wasm_i32x4_add(total(high, pairs), spread(start));
  return wasm_i32x4_add(total(low, pairs), wasm_i32x4_shl(above, 4));
}

/* The nibble vectors of a word of four rows: columns 4 i and 16 + 4 i of Q4_0, the two of a sum of Q8_0. */
TEMPLATE void split(v128_t nibbles[2], v128_t word, v128_t fifteen, v128_t sign, const bool q8) {
  nibbles[0] = wasm_v128_and(word, fifteen);
  nibbles[1] = wasm_v128_and(wasm_u16x8_shr(q8 ? wasm_v128_xor(word, sign) : word, 4), fifteen);
}

/* Four rows and TILE tokens. */
TEMPLATE void quarter_wide(const ml_tile *tile, uint32_t quarter, const bool q8, const bool pairs) {
  const int n_words = q8 ? 8 : 4;
  v128_t fifteen = byte_mask(15), sign = byte_mask(0x80), acc[TILE];
  clear(acc, TILE);
  for (size_t b = 0; b < tile->n_blocks; b++) {
    const uint8_t *words = tile->quants + b * 64 * (size_t)n_words + 16 * quarter;
    v128_t nibbles[16];
#pragma clang loop unroll(full)
    for (int i = 0; i < n_words; i++)
      split(nibbles + 2 * i, wasm_v128_load(words + 64 * i), fifteen, sign, q8);
    v128_t dw = wasm_v128_load(tile->scales + b * 16 + 4 * quarter);
#pragma clang loop unroll(full)
    for (int t = 0; t < TILE; t++) {
      size_t at = (size_t)t * tile->n_blocks + b;
      const int8_t *x = tile->q + at * ML_BLOCK;
      const int32_t *start = tile->starts + at;
      v128_t isum = q8 ? dot_q8(nibbles, x, start, pairs) : dot_q4(nibbles, x, start, pairs);
      acc[t] = add_block(acc[t], isum, dw, tile->d + at);
    }
  }
  store_tokens(tile, quarter, acc, TILE);
}

/* ---------------------------------------------------------------- one token, 16 or 32 rows */

/* The block's 32 products of four rows each, for all quarters: x is spread once. */
TEMPLATE void block_q4(v128_t isum[QUARTERS], const ml_tile *tile, size_t b, v128_t fifteen,
                       const bool pairs) {
  const uint8_t *words = tile->quants + b * 256;
  const int8_t *x = tile->q + b * ML_BLOCK;
  clear(isum, QUARTERS);
#pragma clang loop unroll(full)
  for (int word = 0; word < 4; word++) {
    v128_t x_low = spread(x + 4 * word), x_high = spread(x + 16 + 4 * word);
#pragma clang loop unroll(full)
    for (int i = 0; i < QUARTERS; i++) {
      v128_t nibbles[2];
      split(nibbles, wasm_v128_load(words + 64 * word + 16 * i), fifteen, fifteen, false);
      isum[i] = add_four(isum[i], x_low, nibbles[0], pairs);
      isum[i] = add_four(isum[i], x_high, nibbles[1], pairs);
    }
  }
  v128_t start = spread(tile->starts + b);
#pragma clang loop unroll(full)
  for (int i = 0; i < QUARTERS; i++) isum[i] = wasm_i32x4_add(total(isum[i], pairs), start);
}

/* x is the small operand, in two parts: what is above 0, and minus what is below. */
TEMPLATE void block_q8(v128_t isum[QUARTERS], const ml_tile *tile, size_t b, const bool pairs) {
  v128_t minus[QUARTERS];
  clear(isum, QUARTERS);
  clear(minus, QUARTERS);
#pragma clang loop unroll(full)
  for (int word = 0; word < 8; word++) {
    v128_t x = spread(tile->q + b * ML_BLOCK + 4 * word);
    v128_t positive = wasm_i8x16_max(x, wasm_i8x16_splat(0)), negative = wasm_i8x16_sub(positive, x);
#pragma clang loop unroll(full)
    for (int i = 0; i < QUARTERS; i++) {
      v128_t w = wasm_v128_load(tile->quants + b * 512 + 64 * word + 16 * i);
      if (pairs) { /* the difference of these two is a pair of products of w and x, and fits again */
        v128_t pair = wasm_i16x8_sub(dot2(w, positive), dot2(w, negative));
        isum[i] = wasm_i32x4_add(isum[i], total(pair, true));
      } else {
        isum[i] = dot4(isum[i], w, positive);
        minus[i] = dot4(minus[i], w, negative);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < QUARTERS && !pairs; i++) isum[i] = wasm_i32x4_sub(isum[i], minus[i]);
}

/* ---------------------------------------------------------------- INT2 */

/* Twice the codes of columns 4 word + 8 k ... + 3 of an INT2 block. */
TEMPLATE v128_t split_int2(v128_t word, v128_t six, const int k) {
  v128_t moved = k == 0 ? wasm_i16x8_shl(word, 1) : wasm_u16x8_shr(word, (uint32_t)(2 * k - 1));
  return wasm_v128_and(moved, six);
}

/* Four rows and n tokens, one after the other: with one kernel for both tables and no tile written out, all of it is a
 * kilobyte of what a page downloads. */
static void int2_quarter(const ml_tile *tile, uint32_t quarter, uint32_t n) {
  v128_t six = byte_mask(6), acc[TILE];
  for (uint32_t t = 0; t < n; t++) acc[t] = wasm_f32x4_splat(0);
  for (size_t b = 0; b < tile->n_blocks; b++) {
    const uint8_t *words = tile->quants + b * 128 + 16 * quarter;
    v128_t codes[8], dw = wasm_v128_load(tile->scales + b * 16 + 4 * quarter);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) /* columns 4 i ... 4 i + 3, in the order of dot_nibbles */
      codes[i < 4 ? 2 * i : 2 * i - 7] = split_int2(wasm_v128_load(words + 64 * (i % 2)), six, i / 2);
#pragma clang loop unroll(disable)
    for (uint32_t t = 0; t < n; t++) {
      size_t at = (size_t)t * tile->n_blocks + b;
      v128_t isum = dot_nibbles(codes, tile->q + at * ML_BLOCK, true);
      acc[t] = add_block(acc[t], wasm_i32x4_add(isum, start_int2(tile->starts + at)), dw, tile->d + at);
    }
  }
  store_sums(tile, quarter, acc, n);
}

__attribute__((noinline)) static void int2_tile(const ml_tile *tile, uint32_t n) {
  EACH_QUARTER(quarter) int2_quarter(tile, quarter, n);
}
static inline void int2_one(const ml_tile *tile) { int2_tile(tile, 1); }
static inline void int2_wide(const ml_tile *tile) { int2_tile(tile, TILE); }
ML_PACKED_MATMUL(k_matmul_int2_packed, 8, TILE, int2_wide, int2_one, NULL)

/* ---------------------------------------------------------------- kernels of both tables */

#define MATMUL(name, block_bytes, q8, pairs)                                                                 \
  TEMPLATE void name##_block(v128_t isum[QUARTERS], const ml_tile *tile, size_t b, v128_t fifteen) {         \
    q8 ? block_q8(isum, tile, b, pairs) : block_q4(isum, tile, b, fifteen, pairs);                           \
  }                                                                                                          \
  static inline void name##_one(const ml_tile *tile) { groups_one(tile, 1, name##_block, byte_mask(15)); }   \
  static inline void name##_two(const ml_tile *tiles) { groups_one(tiles, 2, name##_block, byte_mask(15)); } \
  static inline void name##_wide(const ml_tile *tile) {                                                      \
    EACH_QUARTER(quarter) quarter_wide(tile, quarter, q8, pairs);                                            \
  }                                                                                                          \
  ML_PACKED_MATMUL(name, block_bytes, TILE, name##_wide, name##_one, name##_two)
MATMUL(dot4_q4_0, 16, false, false)
MATMUL(dot4_q8_0, 32, true, false)
MATMUL(dot2_q4_0, 16, false, true)
MATMUL(dot2_q8_0, 32, true, true)

/* Nothing maps files here: only tests see matrices as rows. */
#define k_matmul_q4_0_rows ml_matmul_any
#define k_matmul_q8_0_rows ml_matmul_any
#define ML_KERNEL(result, name, arguments) k_##name,

#define k_matmul_q4_0_packed dot4_q4_0
#define k_matmul_q8_0_packed dot4_q8_0
const ml_kernels ml_kernels_relaxed = {
    "relaxed",
    false,
#include "kernels/kernel_list.h"
};
#undef k_matmul_q4_0_packed
#undef k_matmul_q8_0_packed

#define k_matmul_q4_0_packed dot2_q4_0
#define k_matmul_q8_0_packed dot2_q8_0
const ml_kernels ml_kernels_relaxed_pairs = {
    "relaxed_pairs",
    false,
#include "kernels/kernel_list.h"
};

/* ---------------------------------------------------------------- the machine */

/* A dot product whose operands come straight from memory, or are `kept`: needed once more afterwards. Compilers treat
 * the two differently, and one of V8's (in Node 20, behind a flag) loses `sum` when none is kept and the processor lacks
 * AVX-VNNI. results: the sum, then what was kept. */
typedef struct trial {
  int8_t x[16], small[16];
  int32_t sum[4];
  v128_t results[4];
} trial;

TEMPLATE void try_form(trial *t, const int kept, const bool pairs) {
  v128_t x = wasm_v128_load(t->x), small = wasm_v128_load(t->small), sum = wasm_v128_load(t->sum);
  t->results[0] = pairs ? wasm_i32x4_add(sum, total(dot2(x, small), true)) : dot4(sum, x, small);
  if (kept & 1) t->results[1] = x;
  if (kept & 2) t->results[2] = small;
  if (kept & 4) t->results[3] = sum;
}

#define FORM(bytes, kept) \
  static void dot##bytes##_##kept(trial *t) { try_form(t, kept, bytes == 2); }
FORM(4, 0)
FORM(4, 1)
FORM(4, 2)
FORM(4, 4)
FORM(4, 7)
FORM(2, 0)
FORM(2, 3)

/* Called by a table that may have changed, or they would be inlined, and their operands come from elsewhere. */
static const struct {
  void (*volatile run)(trial *);
  int kept;
} forms[] = {{dot4_0, 0}, {dot4_1, 1}, {dot4_2, 2}, {dot4_4, 4}, {dot4_7, 7}, {dot2_0, 0}, {dot2_3, 3}};

static bool form_works(int form, trial *t, const int32_t expected[4]) {
  memset(t->results, 0, sizeof t->results);
  forms[form].run(t);
  const void *wanted[] = {expected, t->x, t->small, t->sum};
  for (int i = 0; i < 4; i++)
    if ((i == 0 || forms[form].kept >> (i - 1) & 1) && memcmp(&t->results[i], wanted[i], 16) != 0)
      return false;
  return true;
}

/* Every pair of extremes in every place of a lane, with neighbours that carry if anything can, and all forms. The
 * operands are made at run time, so that no compiler works out the answer. */
__attribute__((minsize)) bool ml_cpu_relaxed(void) {
  static const int8_t xs[] = {-127, -126, -64, -1, 0, 1, 63, 127};
  static const int8_t smalls[] = {0, 1, 15, 64, 126, 127};
  enum { N_XS = sizeof xs, N_SMALLS = sizeof smalls, N_FORMS = sizeof forms / sizeof *forms };
  for (int round = 0; round < N_XS * N_SMALLS; round++) {
    trial t;
    int32_t expected[4];
    for (int i = 0; i < 16; i++) { /* lane 0 holds the same pair four times, the others mixtures */
      t.x[i] = xs[(round + i / 4 * i) % N_XS];
      t.small[i] = smalls[(round / N_XS + i / 4 * (i % 3)) % N_SMALLS];
    }
    for (int lane = 0; lane < 4; lane++) {
      expected[lane] = t.sum[lane] = 1 - lane * 1000;
      for (int i = 4 * lane; i < 4 * lane + 4; i++) expected[lane] += t.x[i] * t.small[i];
    }
    for (int form = 0; form < N_FORMS; form++)
      if (!form_works(form, &t, expected)) return false;
  }
  return true;
}

/* 127 * 255 twice is more than 16 bits hold: 32767, where pairs are added to 16 bits on the way to a sum of four. From
 * memory that may have changed, or Binaryen works out the answer, and stops with an error because it cannot. */
bool ml_cpu_relaxed_pairs(void) {
  volatile int8_t x = 127, large = -1;
  v128_t sum = dot4(wasm_i32x4_splat(0), wasm_i8x16_splat(x), wasm_i8x16_splat(large));
  return wasm_i32x4_extract_lane(sum, 0) == 2 * 32767 && ml_cpu_relaxed();
}
