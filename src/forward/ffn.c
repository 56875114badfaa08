#include "base/error.h"
#include "forward/forward.h"

typedef struct activation_job {
  const ml_forward *f;
  size_t size; /* floats of f->hidden */
} activation_job;

enum { STRETCH = 256 }; /* floats: each stands by itself, so that one token can be shared out as well */

/* Items are stretches of f->hidden. */
static void activate(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const activation_job *job = context;
  const ml_forward *f = job->f;
  size_t from = (size_t)begin * STRETCH, to = (size_t)end * STRETCH;
  if (to > job->size) to = job->size;
  if (f->model->config.activation == ML_ACT_GELU_TANH)
    f->kernels->gelu_mul(f->hidden + from, f->up + from, to - from);
  else
    f->kernels->silu_mul(f->hidden + from, f->up + from, to - from);
}

/* w2(act(w1 y) . (w3 y)) */
ml_status ml_ffn(ml_forward *f, int32_t layer, uint32_t n, ml_error *error) {
  const ml_config *c = &f->model->config;
  const ml_layer *w = ml_layer_of(f->model, (uint32_t)layer);
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->normed, n, c->dim, "ffn input", layer, f->n_past, error));
  const ml_product products[] = {{f->hidden, &w->w1}, {f->up, &w->w3}};
  ml_linears(f, products, 2, &rows);
  activation_job job = {f, (size_t)n * c->hidden_dim};
  ml_pool_run(f->pool, activate, &job, (uint32_t)((job.size + STRETCH - 1) / STRETCH), 1);
  ml_observe(f, ML_STAGE_FFN_MID, layer, f->n_past, f->hidden, n, c->hidden_dim);
  ML_TRY(ml_prepare_rows(f, &rows, f->hidden, n, c->hidden_dim, "ffn activation", layer, f->n_past, error));
  ml_linear(f, f->block_out, &w->w2, &rows);
  return ML_OK;
}
