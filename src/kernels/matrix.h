/* matrix.h - what kernels multiply: a quantized matrix and a batch of activation rows.
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
 */
#ifndef ML_KERNELS_MATRIX_H
#define ML_KERNELS_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#define ML_BLOCK 32

typedef enum ml_weight_type { ML_Q8_0 = 1, ML_Q4_0 = 2 } ml_weight_type;

/* Bytes of one block's quants. */
static inline size_t ml_block_bytes(ml_weight_type type) { return type == ML_Q8_0 ? 32 : 16; }

typedef struct ml_matrix {
  ml_weight_type type;
  uint32_t rows, cols;   /* y[r] = sum over c of W[r][c] x[c]; cols is a multiple of 32 */
  const uint8_t *quants; /* (rows, cols / 32) blocks */
  const float *scales;   /* (rows, cols / 32) */
} ml_matrix;

/* Rows of activations, one per token, with their quantized form (all of it: any kernel may use either). */
typedef struct ml_rows {
  uint32_t n, cols;
  const float *x;  /* (n, cols) */
  const int8_t *q; /* (n, cols), in [-127, 127] */
  const float *d;  /* (n, cols / 32) */
} ml_rows;

#endif
