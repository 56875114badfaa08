/* vnni.h - packed matrix kernels over VPDPBUSD (unsigned times signed bytes, four at a time, added to 32 bits), for
 * vectors of any width. The including file defines vi (integers) and vf (floats) of LANES rows and the functions used
 * here; it chooses TILE by its number of registers. */

/* Q4_0: nibbles are the unsigned operand, INT2: 2 * code; where the sum starts makes up for their being 8 or 3 too
 * large. Two chains, since one would wait for itself. */
__attribute__((always_inline)) static inline vi dot_small(const vi *nibbles, const int8_t *x, int32_t start) {
  vi low = vi_set(start), high = vi_zero();
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    low = vi_dot(low, nibbles[i], vi_spread(x + 4 * i));
    high = vi_dot(high, nibbles[4 + i], vi_spread(x + 16 + 4 * i));
  }
  return vi_add(low, high);
}

/* Q8_0: w + 128 is unsigned, and 16 times as much too large as Q4_0's nibbles. */
__attribute__((always_inline)) static inline vi dot_q8(const vi *shifted, const int8_t *x, int32_t start) {
  vi even = vi_set(16 * start), odd = vi_zero();
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    even = vi_dot(even, shifted[i], vi_spread(x + 4 * i));
    odd = vi_dot(odd, shifted[i + 1], vi_spread(x + 4 * i + 4));
  }
  return vi_add(even, odd);
}

/* The operands of a block, columns 4 i ... 4 i + 3 of LANES rows each. */
__attribute__((always_inline)) static inline void load_operands(vi operands[8], const uint8_t *words,
                                                                const ml_weight_type type) {
  if (type == ML_Q8_0) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) operands[i] = vi_flip_sign(vi_load(words + 64 * i));
  } else if (type == ML_Q4_0) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      vi word = vi_load(words + 64 * i);
      operands[i] = vi_low_nibbles(word);
      operands[4 + i] = vi_high_nibbles(word);
    }
  } else {
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      vi word = vi_load(words + 64 * i);
      operands[i] = vi_twice_codes(vi_add(word, word));
      operands[2 + i] = vi_twice_codes(vi_shift_right(word, 1));
      operands[4 + i] = vi_twice_codes(vi_shift_right(word, 3));
      operands[6 + i] = vi_twice_codes(vi_shift_right(word, 5));
    }
  }
}

/* acc[t] += block b of LANES rows and token t < n. */
__attribute__((always_inline)) static inline void vnni_block(vf *acc, const ml_tile *tile, uint32_t part,
                                                             size_t b, const uint32_t n,
                                                             const ml_weight_type type) {
  vi operands[8];
  load_operands(operands, tile->quants + b * 16 * ml_block_bytes(type) + part * sizeof(vi), type);
  vf dw = vf_load(tile->scales + b * 16 + part * LANES);
#pragma GCC unroll 8
  for (uint32_t t = 0; t < n; t++) {
    size_t at = t * tile->n_blocks + b;
    const int8_t *x = tile->q + at * ML_BLOCK;
    int32_t start = type == ML_INT2 ? ml_start_int2(tile->starts[at]) : tile->starts[at];
    vi isum = type == ML_Q8_0 ? dot_q8(operands, x, start) : dot_small(operands, x, start);
    acc[t] = vf_add(acc[t], vf_mul(vf_from_int(isum), vf_mul(dw, vf_set(tile->d[at]))));
  }
}

/* `part`: which LANES of the 16 rows of n_groups groups, against n tokens; n_groups * n is at most TILE. */
__attribute__((always_inline)) static inline void vnni_part(const ml_tile *tiles, const uint32_t n_groups,
                                                            uint32_t part, const uint32_t n,
                                                            const ml_weight_type type) {
  vf acc[TILE];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < n_groups * n; i++) acc[i] = vf_zero();
  for (size_t b = 0; b < tiles->n_blocks; b++)
#pragma GCC unroll 2
    for (uint32_t g = 0; g < n_groups; g++) vnni_block(acc + g * n, tiles + g, part, b, n, type);
#pragma GCC unroll 8
  for (uint32_t i = 0; i < n_groups * n; i++) {
    const ml_tile *tile = tiles + i / n;
    if (tile->n_rows > part * LANES)
      vf_store_rows(tile->y + i % n * tile->y_stride + part * LANES, acc[i], tile->n_rows - part * LANES);
  }
}

#define VNNI_TILES(name, n_groups, n, type)                                                       \
  static inline void name(const ml_tile *tiles) {                                                 \
    for (uint32_t part = 0; part < 16 / LANES; part++) vnni_part(tiles, n_groups, part, n, type); \
  }
VNNI_TILES(int2_wide, 1, TILE, ML_INT2)
VNNI_TILES(int2_one, 1, 1, ML_INT2)
VNNI_TILES(q4_wide, 1, TILE, ML_Q4_0)
VNNI_TILES(q4_one, 1, 1, ML_Q4_0)
VNNI_TILES(q4_two, 2, 1, ML_Q4_0)
VNNI_TILES(q8_wide, 1, TILE, ML_Q8_0)
VNNI_TILES(q8_one, 1, 1, ML_Q8_0)
VNNI_TILES(q8_two, 2, 1, ML_Q8_0)
#undef VNNI_TILES

ML_PACKED_MATMUL(k_matmul_int2_packed, 8, TILE, int2_wide, int2_one, NULL)
ML_PACKED_MATMUL(k_matmul_q4_0_packed, 16, TILE, q4_wide, q4_one, q4_two)
ML_PACKED_MATMUL(k_matmul_q8_0_packed, 32, TILE, q8_wide, q8_one, q8_two)
