/* embed.h - embedding rows, for every table: one multiplication per element, which has one rounding on any machine. */
#ifndef ML_KERNELS_EMBED_H
#define ML_KERNELS_EMBED_H

#include "kernels/dequantize.h"

#if defined(__wasm__) /* a page downloads it, and it runs once a token */
#define K_SMALL __attribute__((minsize)) static
#else
#define K_SMALL static
#endif

K_SMALL void k_embed(float *out, const ml_matrix *w, uint32_t row, float scale) {
  ml_dequantize_row(out, w, row);
  for (uint32_t c = 0; c < w->cols; c++) out[c] *= scale;
}

#endif
