/* packed_neon.h - packed matrix kernels over four rows to a NEON register. The including file defines how eight words
 * of a block are multiplied (see neon.c, neondot.c):
 *
 *   w[i]   16 bytes: word i (columns 4 i ... 4 i + 3) of rows r, r + 1, r + 2, r + 3
 *   x      32 activations
 *
 *   static inline int32x4_t dot_q8(const int8x16_t w[8], const int8_t *x);               |w| <= 127
 *   static inline int32x4_t dot_small(const int8x16_t w[8], const int8_t *x, int32_t start);    w: 0 ... 15
 *
 * It includes this file after them and gets the kernels. */

enum {
  QUADS = ML_PACK_ROWS / 4,
  TILE = 4 /* tokens: of 32 registers, 8 hold weights, the rest sums, activations and products */
};

/* INT2: twice the codes. */
static inline void load_int2(int8x16_t w[8], const uint8_t *block) {
  const uint8x16_t twice = vdupq_n_u8(6);
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    uint8x16_t word = vld1q_u8(block + 64 * i);
    w[i] = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(word, 1), twice));
    w[i + 2] = vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(word, 1), twice));
    w[i + 4] = vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(word, 3), twice));
    w[i + 6] = vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(word, 5), twice));
  }
}

__attribute__((always_inline)) static inline void load_words(int8x16_t w[8], const uint8_t *block,
                                                             const ml_weight_type type) {
  if (type == ML_INT2) {
    load_int2(w, block);
    return;
  }
  const bool q8 = type == ML_Q8_0;
  const uint8x16_t low = vdupq_n_u8(15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    uint8x16_t word = vld1q_u8(block + 64 * i);
    w[i] = vreinterpretq_s8_u8(q8 ? word : vandq_u8(word, low));
    w[i + 4] = vreinterpretq_s8_u8(q8 ? vld1q_u8(block + 64 * (i + 4)) : vshrq_n_u8(word, 4));
  }
}

static inline void store_quad(const ml_tile *tile, uint32_t token, uint32_t quad, float32x4_t acc) {
  float *y = tile->y + token * tile->y_stride + 4 * quad;
  if (tile->n_rows >= 4 * quad + 4)
    vst1q_f32(y, acc);
  else if (tile->n_rows > 4 * quad)
    quad_store_part(y, acc, tile->n_rows - 4 * quad);
}

/* Rows of the quads first ... first + n_quads - 1 against n tokens; n_quads * n is at most TILE. */
__attribute__((always_inline)) static inline void neon_quads(const ml_tile *tile, uint32_t first,
                                                             const uint32_t n_quads, const uint32_t n,
                                                             const ml_weight_type type) {
  float32x4_t acc[TILE];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < n_quads * n; i++) acc[i] = vdupq_n_f32(0.0f);
  for (size_t b = 0; b < tile->n_blocks; b++) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < n_quads; i++) {
      int8x16_t w[8];
      load_words(w, tile->quants + b * 16 * ml_block_bytes(type) + 16 * (first + i), type);
      float32x4_t dw = vld1q_f32(tile->scales + b * ML_PACK_ROWS + 4 * (first + i));
#pragma GCC unroll 4
      for (uint32_t t = 0; t < n; t++) {
        size_t at = t * tile->n_blocks + b;
        const int8_t *x = tile->q + at * ML_BLOCK;
        int32_t start = type == ML_INT2 ? ml_start_int2(tile->starts[at]) : tile->starts[at];
        int32x4_t dot = type == ML_Q8_0 ? dot_q8(w, x) : dot_small(w, x, start);
        float32x4_t isum = vcvtq_f32_s32(dot);
        acc[t * n_quads + i] = vaddq_f32(acc[t * n_quads + i], vmulq_f32(isum, vmulq_n_f32(dw, tile->d[at])));
      }
    }
  }
#pragma GCC unroll 4
  for (uint32_t i = 0; i < n_quads * n; i++) store_quad(tile, i / n_quads, first + i % n_quads, acc[i]);
}

/* One token meets all rows of a group before the next block is read from memory; many tokens share the words of one
 * quad in registers. */
#define NEON_TILES(name, type)                                                                \
  static inline void name##_one(const ml_tile *tile) { neon_quads(tile, 0, QUADS, 1, type); } \
  static inline void name##_wide(const ml_tile *tile) {                                       \
    for (uint32_t quad = 0; quad < QUADS; quad++) neon_quads(tile, quad, 1, TILE, type);      \
  }
NEON_TILES(int2, ML_INT2)
NEON_TILES(q4, ML_Q4_0)
NEON_TILES(q8, ML_Q8_0)
#undef NEON_TILES

ML_PACKED_MATMUL(k_matmul_int2_packed, 8, TILE, int2_wide, int2_one, NULL)
ML_PACKED_MATMUL(k_matmul_q4_0_packed, 16, TILE, q4_wide, q4_one, NULL)
ML_PACKED_MATMUL(k_matmul_q8_0_packed, 32, TILE, q8_wide, q8_one, NULL)
