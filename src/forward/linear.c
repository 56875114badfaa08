#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "forward/forward.h"

typedef int8_t bytes8 __attribute__((vector_size(8)));
typedef int16_t halves8 __attribute__((vector_size(16)));

/* As i16, four elements a b c d in the order a c b d: the even and the odd bytes of a word of weights. Vectors by
 * hand, since wasm builds, which need it, compile this file for size. */
void ml_widen(int16_t *out, const int8_t *q, uint32_t cols) {
  for (uint32_t i = 0; i < cols; i += 8) {
    bytes8 narrow;
    memcpy(&narrow, q + i, sizeof narrow);
    halves8 wide = __builtin_convertvector(narrow, halves8);
    wide = __builtin_shufflevector(wide, wide, 0, 2, 1, 3, 4, 6, 5, 7);
    memcpy(out + i, &wide, sizeof wide);
  }
}

typedef struct prepare_job {
  const ml_forward *f;
  const float *x;
  uint32_t cols;
  atomic_uint first_bad; /* row that is not finite; n when all are */
} prepare_job;

/* Items are rows. */
static void prepare(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  prepare_job *job = context;
  const ml_forward *f = job->f;
  for (uint32_t t = begin; t < end; t++) {
    size_t at = (size_t)t * job->cols, block = at / ML_BLOCK;
    int8_t *q = f->quants + at;
    if (!f->kernels->quantize(q, f->quant_scales + block, f->quant_starts + block, job->x + at, job->cols)) {
      unsigned first = atomic_load(&job->first_bad);
      while (t < first && !atomic_compare_exchange_weak(&job->first_bad, &first, t)) continue;
    }
    if (f->quants_wide) ml_widen(f->quants_wide + at, q, job->cols);
  }
}

ml_status ml_prepare_rows(ml_forward *f, ml_rows *rows, const float *x, uint32_t n, uint32_t cols,
                          const char *stage, int32_t layer, uint32_t first, ml_error *error) {
  prepare_job job = {f, x, cols, n};
  ml_pool_run(f->pool, prepare, &job, n, 1);
  uint32_t bad = atomic_load(&job.first_bad);
  if (bad < n)
    return ml_fail(error, ML_E_NUMERIC, stage, ml_int(layer),
                   "layer with an infinite or NaN activation at position", ml_uint((uint64_t)first + bad),
                   ML_NO_OFFSET);
  *rows = (ml_rows){n, cols, x, f->quants, f->quant_scales, f->quant_starts, f->quants_wide};
  return ML_OK;
}

typedef struct linear_job {
  const ml_kernels *kernels;
  const ml_product *products;
  const ml_rows *rows;
} linear_job;

static uint32_t n_groups(const ml_matrix *w) {
  return w->rows / ML_PACK_ROWS + (w->rows % ML_PACK_ROWS != 0);
}

/* Items are groups of rows, those of the first product first. */
static void multiply(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const linear_job *job = context;
  uint32_t first = 0; /* the product's */
  for (const ml_product *p = job->products; begin < end; first += n_groups(p++->w)) {
    const ml_matrix *w = p->w;
    uint32_t next = first + n_groups(w), stop = end < next ? end : next;
    if (begin >= stop) continue;
    uint32_t row_end = stop == next ? w->rows : (stop - first) * ML_PACK_ROWS;
    ml_matmul_for(job->kernels, w)(p->y, w->rows, w, job->rows, (begin - first) * ML_PACK_ROWS, row_end);
    begin = stop;
  }
}

void ml_linears(ml_forward *f, const ml_product *products, uint32_t n, const ml_rows *rows) {
  linear_job job = {f->kernels, products, rows};
  uint32_t total = 0;
  for (uint32_t i = 0; i < n; i++) total += n_groups(products[i].w);
  ml_pool_run(f->pool, multiply, &job, total, 1);
}

void ml_linear(ml_forward *f, float *y, const ml_matrix *w, const ml_rows *rows) {
  ml_linears(f, &(ml_product){y, w}, 1, rows);
}
