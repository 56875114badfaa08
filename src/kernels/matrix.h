/* matrix.h - what kernels multiply: a matrix of weights and a batch of activation rows.
 *
 * A block is 32 consecutive weights of a row and has one scale d.
 *
 *   Q8_0: 32 bytes, weight j = (int8) byte j * d, never -128
 *         +----+----+----+-- ... --+-----+
 *         | w0 | w1 | w2 |         | w31 |
 *         +----+----+----+-- ... --+-----+
 *
 *   Q4_0: 16 bytes, byte j holds weight j in its low nibble and weight j + 16 in its high nibble,
 *         weight = (nibble - 8) * d
 *         +---------+---------+-- ... --+----------+
 *         | w16 w0  | w17 w1  |         | w31 w15  |
 *         +---------+---------+-- ... --+----------+
 *
 *   INT2: 8 bytes, byte j holds weights j, j + 8, j + 16 and j + 24, two bits each, weight = (2 * code - 3) * d
 *         +---------------+-- ... --+----------------+
 *         | w24 w16 w8 w0 |         | w31 w23 w15 w7 |
 *         +---------------+-- ... --+----------------+
 *
 *   F16: 32 half-precision floats and no scale. Its rows, packed, go side by side half by half: column c of 16 rows,
 *        then column c + 1. Activations are taken as floats, not quantized.
 *
 * In memory a matrix lies as in the file (ML_LAYOUT_ROWS: block after block of row 0, then row 1 ...) or packed for
 * vectors (ML_LAYOUT_PACKED): 16 rows go side by side, a 4-byte word of a block from each in turn, so that every
 * 32-bit lane of a vector belongs to one row and no dot product ends in a horizontal sum. `words` is 8 for Q8_0,
 * 4 for Q4_0 and 2 for INT2; rows past the last one are zeros.
 *
 *   group of 16 rows   block b         word 0                  word 1
 *                      +-------------------------------+-------------------------------+--
 *                      | row 0 | row 1 | ...  | row 15 | row 0 | row 1 | ...  | row 15 |
 *                      +-------------------------------+-------------------------------+--
 *                       64 bytes: one AVX-512, two AVX, four SSE, NEON or wasm vectors
 *
 *   scales             block 0: row 0 ... row 15, block 1: row 0 ... row 15, ...
 */
#ifndef ML_KERNELS_MATRIX_H
#define ML_KERNELS_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#define ML_BLOCK 32

/* INT2 and F16 matrices are always packed. INT4 of a .tinyloop file is Q4_0, its scales repeated for each 32 weights. */
typedef enum ml_weight_type { ML_Q8_0 = 1, ML_Q4_0, ML_INT2, ML_F16, ML_WEIGHT_TYPE_END } ml_weight_type;

#define ML_PACK_ROWS 16

typedef enum ml_layout { ML_LAYOUT_ROWS, ML_LAYOUT_PACKED } ml_layout;

/* Bytes of one block's quants, or of 32 halves. */
static inline size_t ml_block_bytes(ml_weight_type type) {
  return type == ML_F16 ? 64 : type == ML_Q8_0 ? 32 : type == ML_Q4_0 ? 16 : 8;
}

typedef struct ml_matrix {
  ml_weight_type type;
  ml_layout layout;
  uint32_t rows, cols;   /* y[r] = sum over c of W[r][c] x[c]; cols is a multiple of 32 */
  const uint8_t *quants; /* rows x cols / 32 blocks, 64-byte aligned */
  const float *scales;   /* rows x cols / 32, 64-byte aligned; NULL for F16 */
} ml_matrix;

/* Rows of activations, one per token, with their quantized form (all of it: any kernel may use any part). */
typedef struct ml_rows {
  uint32_t n, cols;
  const float *x;  /* (n, cols) */
  const int8_t *q; /* (n, cols), in [-127, 127] */
  const float *d;  /* (n, cols / 32) */
  const int32_t
      *starts;         /* (n, cols / 32): -8 * sum of the block's q, from where a sum of products with Q4_0's
                            nibbles starts, since these are 8 too large */
  const int16_t *wide; /* (n, cols): q as i16, each four elements a b c d in the order a c b d; only if the
                          implementation wants it (ml_kernels.wants_wide) */
} ml_rows;

/* ---------------------------------------------------------------- places, in either layout */

/* Rows that memory is kept for. */
static inline uint64_t ml_layout_rows(ml_layout layout, uint32_t rows) {
  return layout == ML_LAYOUT_ROWS ? rows : ((uint64_t)rows + ML_PACK_ROWS - 1) / ML_PACK_ROWS * ML_PACK_ROWS;
}

/* Index in `scales` of the scale of (row, block). */
static inline size_t ml_scale_index(ml_layout layout, size_t n_blocks, size_t row, size_t block) {
  if (layout == ML_LAYOUT_ROWS) return row * n_blocks + block;
  return (row / ML_PACK_ROWS * n_blocks + block) * ML_PACK_ROWS + row % ML_PACK_ROWS;
}

/* Byte offset in `quants` of word `word` (4 bytes) of the block (row, block). */
static inline size_t ml_word_offset(ml_layout layout, size_t n_words, size_t n_blocks, size_t row,
                                    size_t block, size_t word) {
  if (layout == ML_LAYOUT_ROWS) return ((row * n_blocks + block) * n_words + word) * 4;
  return (((row / ML_PACK_ROWS * n_blocks + block) * n_words + word) * ML_PACK_ROWS + row % ML_PACK_ROWS) * 4;
}

/* Byte offset in `quants` of element (row, col) of a packed F16 matrix. */
static inline size_t ml_half_offset(size_t n_cols, size_t row, size_t col) {
  return ((row / ML_PACK_ROWS * n_cols + col) * ML_PACK_ROWS + row % ML_PACK_ROWS) * 2;
}

#endif
