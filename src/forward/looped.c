/* looped.c - what is different in TinyLoop models (docs/TINYLOOP.md): how often layers are run, and embeddings in two
 * factors. The runs themselves are those of any other model. */
#include "base/error.h"
#include "forward/forward.h"

ml_status ml_looped_runs(uint32_t *n_runs, const ml_config *config, uint32_t n_loops, ml_error *error) {
  if (n_loops && !config->n_loops)
    return ml_fail(error, ML_E_ARG, "loops", ml_uint(n_loops),
                   "but no layer of this model is repeated: leave it at", ml_uint(0), ML_NO_OFFSET);
  if (n_loops > ML_MAX_LOOPS)
    return ml_fail(error, ML_E_ARG, "loops", ml_uint(n_loops), "must be at most", ml_uint(ML_MAX_LOOPS),
                   ML_NO_OFFSET);
  *n_runs = config->n_layers;
  if (config->n_loops) *n_runs += (n_loops ? n_loops : config->n_loops) - 1;
  return ML_OK;
}

ml_status ml_expand_embedding(ml_forward *f, uint32_t n, ml_error *error) {
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->factors, n, f->model->config.embed_factor_dim, "embedding", -1,
                         f->n_past, error));
  ml_linear(f, f->x, &f->model->embed_proj, &rows);
  return ML_OK;
}

ml_status ml_reduce_head(ml_forward *f, uint32_t position, ml_error *error) {
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->normed, 1, f->model->config.dim, "head input", -1, position, error));
  ml_linear(f, f->factors, &f->model->head_proj, &rows);
  return ML_OK;
}
