#include "base/error.h"
#include "forward/forward.h"

/* w2(act(w1 y) . (w3 y)) */
ml_status ml_ffn(ml_forward *f, int32_t layer, uint32_t n, ml_error *error) {
  const ml_config *c = &f->model->config;
  const ml_layer *w = ml_layer_of(f->model, (uint32_t)layer);
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->normed, n, c->dim, "ffn input", layer, f->n_past, error));
  ml_linear(f, f->hidden, &w->w1, &rows);
  ml_linear(f, f->up, &w->w3, &rows);
  size_t size = (size_t)n * c->hidden_dim;
  if (c->activation == ML_ACT_GELU_TANH)
    f->kernels->gelu_mul(f->hidden, f->up, size);
  else
    f->kernels->silu_mul(f->hidden, f->up, size);
  ml_observe(f, ML_STAGE_FFN_MID, layer, f->n_past, f->hidden, n, c->hidden_dim);
  ML_TRY(ml_prepare_rows(f, &rows, f->hidden, n, c->hidden_dim, "ffn activation", layer, f->n_past, error));
  ml_linear(f, f->block_out, &w->w2, &rows);
  return ML_OK;
}
