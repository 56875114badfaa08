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

/* The group of rows from `row` on, and tokens from `token` on. */
static inline ml_tile ml_tile_at(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x,
                                 uint32_t row, uint32_t row_end, uint32_t token, size_t block_bytes) {
  size_t n_blocks = w->cols / ML_BLOCK, first = row * n_blocks, block = token * n_blocks;
  return (ml_tile){.y = y + token * y_stride + row,
                   .y_stride = y_stride,
                   .n_rows = row_end - row < ML_PACK_ROWS ? row_end - row : ML_PACK_ROWS,
                   .n_blocks = n_blocks,
                   .quants = w->quants + first * block_bytes,
                   .scales = w->scales + first,
                   .q = x->q + block * ML_BLOCK,
                   .wide = x->wide ? x->wide + block * ML_BLOCK : NULL,
                   .d = x->d + block,
                   .starts = x->starts + block};
}

/* A single token waits for weights from memory, and a processor fetches ahead in each of several places that are read in
 * order: so two groups at once, half of all groups apart. tile_two gets two tiles. */
__attribute__((always_inline)) static inline void ml_packed_matvec(float *y, const ml_matrix *w,
                                                                   const ml_rows *x, uint32_t row_begin,
                                                                   uint32_t row_end, size_t block_bytes,
                                                                   ml_tile_fn *tile_one,
                                                                   ml_tile_fn *tile_two) {
  uint32_t half = (row_end - row_begin) / (2 * ML_PACK_ROWS) * ML_PACK_ROWS, row = row_begin;
  for (; row < row_begin + half; row += ML_PACK_ROWS) {
    const ml_tile tiles[2] = {ml_tile_at(y, 0, w, x, row, row_end, 0, block_bytes),
                              ml_tile_at(y, 0, w, x, row + half, row_end, 0, block_bytes)};
    tile_two(tiles);
  }
  for (row += half; row < row_end; row += ML_PACK_ROWS) {
    const ml_tile tile = ml_tile_at(y, 0, w, x, row, row_end, 0, block_bytes);
    tile_one(&tile);
  }
}

/* Forced inline with constant functions, so that the tiles are inlined as well. tile_two may be NULL. */
__attribute__((always_inline)) static inline void ml_packed_matmul(
    float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin, uint32_t row_end,
    size_t block_bytes, uint32_t wide_tile, ml_tile_fn *tile_wide, ml_tile_fn *tile_one,
    ml_tile_fn *tile_two) {
  if (tile_two && x->n == 1) {
    ml_packed_matvec(y, w, x, row_begin, row_end, block_bytes, tile_one, tile_two);
    return;
  }
  for (uint32_t row = row_begin; row < row_end; row += ML_PACK_ROWS)
    for (uint32_t t = 0; t < x->n;) {
      bool wide = x->n - t >= wide_tile;
      const ml_tile tile = ml_tile_at(y, y_stride, w, x, row, row_end, t, block_bytes);
      if (wide)
        tile_wide(&tile);
      else
        tile_one(&tile);
      t += wide ? wide_tile : 1;
    }
}

/* Twice INT2's codes are 3 too large, where Q4_0's nibbles are 8. */
static inline int32_t ml_start_int2(int32_t start) { return start / 8 * 3; }

/* A matrix kernel from its tiles. */
#define ML_PACKED_MATMUL(name, block_bytes, width, tile_wide, tile_one, tile_two)                       \
  static void name(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin, \
                   uint32_t row_end) {                                                                  \
    ml_packed_matmul(y, y_stride, w, x, row_begin, row_end, block_bytes, width, tile_wide, tile_one,    \
                     tile_two);                                                                         \
  }

#endif
