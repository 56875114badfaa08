/* embed.h - embedding rows, for every table: one multiplication per element, which has one rounding on any machine. */
#ifndef ML_KERNELS_EMBED_H
#define ML_KERNELS_EMBED_H

#include "kernels/dequantize.h"

static void k_embed(float *out, const ml_matrix *w, uint32_t row, float scale) {
  ml_dequantize_row(out, w, row);
  for (uint32_t c = 0; c < w->cols; c++) out[c] *= scale;
}

#endif
