#include "base/error.h"
#include "forward/forward.h"

ml_status ml_prepare_rows(ml_forward *f, ml_rows *rows, const float *x, uint32_t n, uint32_t cols,
                          const char *stage, int32_t layer, uint32_t first, ml_error *error) {
  for (uint32_t t = 0; t < n; t++) {
    size_t at = (size_t)t * cols;
    if (f->kernels->quantize(f->quants + at, f->quant_scales + at / ML_BLOCK, x + at, cols)) continue;
    ml_fail(error, ML_E_NUMERIC, stage, ml_int(layer), "layer with an infinite or NaN activation at position",
            ml_uint((uint64_t)first + t), ML_NO_OFFSET);
    return ML_E_NUMERIC;
  }
  *rows = (ml_rows){n, cols, x, f->quants, f->quant_scales};
  return ML_OK;
}

typedef struct linear_job {
  const ml_kernels *kernels;
  float *y;
  const ml_matrix *w;
  const ml_rows *rows;
} linear_job;

/* Output rows are dealt out in groups, so that no two threads write into one cache line of a token. */
enum { ROW_UNIT = 16 };

static void linear_part(void *context, uint32_t part, uint32_t n_parts) {
  const linear_job *job = context;
  uint32_t begin, end;
  ml_pool_share(job->w->rows, ROW_UNIT, part, n_parts, &begin, &end);
  if (job->w->type == ML_Q8_0)
    job->kernels->matmul_q8_0(job->y, job->w->rows, job->w, job->rows, begin, end);
  else
    job->kernels->matmul_q4_0(job->y, job->w->rows, job->w, job->rows, begin, end);
}

void ml_linear(ml_forward *f, float *y, const ml_matrix *w, const ml_rows *rows) {
  linear_job job = {f->kernels, y, w, rows};
  ml_pool_run(f->pool, linear_part, &job);
}
