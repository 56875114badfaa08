/* transformer.c - the order of the stages. */
#include <math.h>

#include "base/error.h"
#include "forward/forward.h"

static ml_status embed(ml_forward *f, const int32_t *ids, uint32_t n, ml_error *error) {
  const ml_model *m = f->model;
  float *to = m->embed_proj.rows ? f->factors : f->x;
  for (uint32_t t = 0; t < n; t++)
    f->kernels->embed(to + (size_t)t * m->tok_emb.cols, &m->tok_emb, (uint32_t)ids[t], m->config.embed_scale);
  if (m->embed_proj.rows) ML_TRY(ml_expand_embedding(f, n, error));
  ml_observe(f, ML_STAGE_EMBED, -1, f->n_past, f->x, n, m->config.dim);
  return ML_OK;
}

typedef struct norm_job {
  const ml_forward *f;
  float *out;
  const float *x, *weight;
} norm_job;

/* Items are tokens. */
static void norm(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const norm_job *job = context;
  const ml_config *c = &job->f->model->config;
  for (size_t at = (size_t)begin * c->dim; at < (size_t)end * c->dim; at += c->dim)
    job->f->kernels->rms_norm(job->out + at, job->x + at, job->weight, c->dim, c->norm_eps);
}

static void norm_rows(const ml_forward *f, float *out, const float *x, const float *weight, uint32_t n) {
  norm_job job = {f, out, x, weight};
  ml_pool_run(f->pool, norm, &job, n, 1);
}

/* Items are tokens. */
static void add(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const ml_forward *f = context;
  size_t dim = f->model->config.dim;
  f->kernels->add(f->x + begin * dim, f->block_out + begin * dim, (end - begin) * dim);
}

/* x += block_out, normalized first where the model does so. */
static void add_block(ml_forward *f, const float *post_norm, uint32_t n) {
  if (post_norm) norm_rows(f, f->block_out, f->block_out, post_norm, n);
  ml_pool_run(f->pool, add, f, n, 1);
}

static ml_status run_layer(ml_forward *f, int32_t layer, uint32_t n, ml_error *error) {
  const ml_layer *w = ml_layer_of(f->model, (uint32_t)layer);
  uint32_t dim = f->model->config.dim;
  norm_rows(f, f->normed, f->x, w->attn_norm, n);
  ml_observe(f, ML_STAGE_BLOCK_IN, layer, f->n_past, f->normed, n, dim);
  ML_TRY(w->linear ? ml_deltanet(f, layer, n, error) : ml_attention(f, layer, n, error));
  ml_observe(f, ML_STAGE_BLOCK_OUT, layer, f->n_past, f->block_out, n, dim);
  add_block(f, w->post_attn_norm, n);

  norm_rows(f, f->normed, f->x, w->ffn_norm, n);
  ml_observe(f, ML_STAGE_FFN_IN, layer, f->n_past, f->normed, n, dim);
  ML_TRY(ml_ffn(f, layer, n, error));
  ml_observe(f, ML_STAGE_FFN_OUT, layer, f->n_past, f->block_out, n, dim);
  add_block(f, w->post_ffn_norm, n);
  ml_observe(f, ML_STAGE_LAYER, layer, f->n_past, f->x, n, dim);
  return ML_OK;
}

ml_status ml_forward_batch(ml_forward *f, const int32_t *ids, uint32_t n, ml_error *error) {
  ml_status status = embed(f, ids, n, error);
  ml_rope_fill(f, n);
  for (uint32_t i = 0; status == ML_OK && i < f->n_runs; i++) status = run_layer(f, (int32_t)i, n, error);
  f->n_past += n;
  return status;
}

static ml_status check_logits(const ml_forward *f, uint32_t position, ml_error *error) {
  for (uint32_t i = 0; i < f->model->config.vocab; i++)
    if (!(fabsf(f->logits[i]) < HUGE_VALF))
      return ml_fail(error, ML_E_NUMERIC, "logit", ml_uint(i), "is infinite or NaN at position",
                     ml_uint(position), ML_NO_OFFSET);
  return ML_OK;
}

ml_status ml_forward_logits(ml_forward *f, uint32_t row, uint32_t position, ml_error *error) {
  const ml_config *c = &f->model->config;
  const ml_matrix *wcls = &f->model->wcls;
  norm_rows(f, f->normed, f->x + (size_t)row * c->dim, f->model->final_norm, 1);
  ml_observe(f, ML_STAGE_FINAL, -1, position, f->normed, 1, c->dim);
  const float *x = f->normed;
  if (f->model->head_proj.rows) {
    ML_TRY(ml_reduce_head(f, position, error));
    x = f->factors;
  }
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, x, 1, wcls->cols, "classifier input", -1, position, error));
  ml_linear(f, f->logits, wcls, &rows);
  if (c->final_softcap > 0) f->kernels->softcap(f->logits, c->vocab, c->final_softcap);
  if (f->exact) ml_kernels_exact_matvec(f->logits_exact, wcls, x, c->final_softcap);
  ML_TRY(check_logits(f, position, error));
  ml_observe(f, ML_STAGE_LOGITS, -1, position, f->logits, 1, c->vocab);
  return ML_OK;
}
