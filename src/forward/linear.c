#include "base/error.h"
#include "forward/forward.h"

/* As i16, four elements a b c d in the order a c b d: the even and the odd bytes of a word of weights. */
void ml_widen(int16_t *out, const int8_t *q, uint32_t cols) {
  for (uint32_t i = 0; i < cols; i += 4) {
    out[i] = q[i];
    out[i + 1] = q[i + 2];
    out[i + 2] = q[i + 1];
    out[i + 3] = q[i + 3];
  }
}

ml_status ml_prepare_rows(ml_forward *f, ml_rows *rows, const float *x, uint32_t n, uint32_t cols,
                          const char *stage, int32_t layer, uint32_t first, ml_error *error) {
  for (uint32_t t = 0; t < n; t++) {
    size_t at = (size_t)t * cols, block = at / ML_BLOCK;
    if (!f->kernels->quantize(f->quants + at, f->quant_scales + block, f->quant_sums + block, x + at, cols))
      return ml_fail(error, ML_E_NUMERIC, stage, ml_int(layer),
                     "layer with an infinite or NaN activation at position", ml_uint((uint64_t)first + t),
                     ML_NO_OFFSET);
    if (f->quants_wide) ml_widen(f->quants_wide + at, f->quants + at, cols);
  }
  *rows = (ml_rows){n, cols, x, f->quants, f->quant_scales, f->quant_sums, f->quants_wide};
  return ML_OK;
}

typedef struct linear_job {
  const ml_kernels *kernels;
  float *y;
  const ml_matrix *w;
  const ml_rows *rows;
} linear_job;

static void linear_part(void *context, uint32_t part, uint32_t n_parts) {
  const linear_job *job = context;
  uint32_t begin, end;
  ml_pool_share(job->w->rows, ML_PACK_ROWS, part, n_parts, &begin, &end);
  ml_matmul_for(job->kernels, job->w)(job->y, job->w->rows, job->w, job->rows, begin, end);
}

void ml_linear(ml_forward *f, float *y, const ml_matrix *w, const ml_rows *rows) {
  linear_job job = {f->kernels, y, w, rows};
  ml_pool_run(f->pool, linear_part, &job);
}
