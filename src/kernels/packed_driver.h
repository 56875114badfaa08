/* packed_driver.h - the loops around a packed matrix kernel, the same for every instruction set: groups of 16 rows,
 * and for each the tokens in tiles, so that a group's weights are read from memory once. */
#ifndef ML_KERNELS_PACKED_DRIVER_H
#define ML_KERNELS_PACKED_DRIVER_H

#include "kernels/kernels.h"

/* What a tile works on. Its results go to y[t * y_stride + r] for t below the tile's width and r below n_rows. */
typedef struct ml_tile {
  float *y;
  size_t y_stride;
  uint32_t n_rows; /* of the group's 16: fewer in a matrix's last group */
  size_t n_blocks;
  const uint8_t *quants; /* the group's: (n_blocks, words, 16) x 4 bytes */
  const float *scales;   /* (n_blocks, 16) */
  /* the first token's; the next one's are n_blocks * 32 (q, wide) or n_blocks (d, starts) further */
  const int8_t *q;
  const int16_t *wide;
  const float *d;
  const int32_t *starts;
} ml_tile;

typedef void ml_tile_fn(const ml_tile *tile);

/* Forced inline with constant functions, so that the tiles are inlined as well. */
__attribute__((always_inline)) static inline void ml_packed_matmul(
    float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin, uint32_t row_end,
    size_t block_bytes, uint32_t wide_tile, ml_tile_fn *tile_wide, ml_tile_fn *tile_one) {
  size_t n_blocks = w->cols / ML_BLOCK;
  for (uint32_t row = row_begin; row < row_end; row += ML_PACK_ROWS) {
    size_t first = (size_t)row * n_blocks;
    ml_tile tile = {.y_stride = y_stride,
                    .n_rows = row_end - row < ML_PACK_ROWS ? row_end - row : ML_PACK_ROWS,
                    .n_blocks = n_blocks,
                    .quants = w->quants + first * block_bytes,
                    .scales = w->scales + first};
    for (uint32_t t = 0; t < x->n;) {
      size_t block = (size_t)t * n_blocks;
      tile.y = y + t * y_stride + row;
      tile.q = x->q + block * ML_BLOCK;
      tile.wide = x->wide ? x->wide + block * ML_BLOCK : NULL;
      tile.d = x->d + block;
      tile.starts = x->starts + block;
      if (x->n - t >= wide_tile) {
        tile_wide(&tile);
        t += wide_tile;
      } else {
        tile_one(&tile);
        t++;
      }
    }
  }
}

/* Twice INT2's codes are 3 too large, where Q4_0's nibbles are 8. */
static inline int32_t ml_start_int2(int32_t start) { return start / 8 * 3; }

/* A matrix kernel from its tiles. */
#define ML_PACKED_MATMUL(name, block_bytes, width, tile_wide, tile_one)                                 \
  static void name(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin, \
                   uint32_t row_end) {                                                                  \
    ml_packed_matmul(y, y_stride, w, x, row_begin, row_end, block_bytes, width, tile_wide, tile_one);   \
  }

#endif
