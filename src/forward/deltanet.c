/* deltanet.c - the gated delta rule (format document, section "Linear attention"; Yang et al. 2024). */
#include <math.h>

#include "base/error.h"
#include "forward/forward.h"
#include "kernels/fmath.h"

typedef struct deltanet_job {
  ml_forward *f;
  const ml_deltanet_weights *w;
  const ml_layer_cache *cache;
  uint32_t n;
} deltanet_job;

/* f->channels of one token: K query heads, K key heads, V value heads */
static float *query_of(const ml_forward *f, uint32_t token, uint32_t key_head) {
  const ml_config *c = &f->model->config;
  return f->channels + (size_t)token * c->lin_channels + (size_t)key_head * c->lin_k_dim;
}

static float *key_of(const ml_forward *f, uint32_t token, uint32_t key_head) {
  return query_of(f, token, f->model->config.lin_k_heads + key_head);
}

static float *value_of(const ml_forward *f, uint32_t token, uint32_t value_head) {
  const ml_config *c = &f->model->config;
  return query_of(f, token, 2 * c->lin_k_heads) + (size_t)value_head * c->lin_v_dim;
}

/* Step 1: the causal convolution; channels are independent. */
static void convolve(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const deltanet_job *job = context;
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  for (uint32_t token = 0; token < job->n; token++) {
    ml_conv conv = {.x = f->channels + (size_t)token * c->lin_channels,
                    .history = job->cache->history,
                    .weights = job->w->lconv,
                    .channels = c->lin_channels,
                    .taps = c->lin_conv,
                    .begin = begin,
                    .end = end,
                    .oldest = c->lin_conv > 1 ? (f->n_past + token) % (c->lin_conv - 1) : 0};
    f->kernels->conv_silu(&conv);
  }
}

/* Step 2: queries and keys to unit length, queries also divided by sqrt(dk). */
static void normalize(const deltanet_job *job) {
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  float query_scale = (float)(1 / sqrt(c->lin_k_dim));
  for (uint32_t token = 0; token < job->n; token++)
    for (uint32_t head = 0; head < c->lin_k_heads; head++) {
      f->kernels->l2_norm(query_of(f, token, head), c->lin_k_dim, 1e-6f, query_scale);
      f->kernels->l2_norm(key_of(f, token, head), c->lin_k_dim, 1e-6f, 1.0f);
    }
}

/* Step 3: beta = sigmoid(b); decay = exp(g), g = -exp(A_log) softplus(a + dt_bias). In place on b and a. */
static void gates(const deltanet_job *job) {
  const ml_forward *f = job->f;
  uint32_t n_heads = f->model->config.lin_v_heads;
  for (uint32_t token = 0; token < job->n; token++)
    for (uint32_t head = 0; head < n_heads; head++) {
      float *beta = f->beta + (size_t)token * n_heads + head,
            *decay = f->decay + (size_t)token * n_heads + head;
      double rate = ml_exp(job->w->a_log[head]);
      double step = ml_softplus((double)*decay + job->w->dt_bias[head]);
      *beta = (float)ml_sigmoid(*beta);
      *decay = (float)ml_exp(-rate * step);
    }
}

/* Steps 4 and 5 of value heads begin ... end - 1, token after token. */
static void update_heads(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)thread;
  const deltanet_job *job = context;
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  uint32_t group = c->lin_v_heads / c->lin_k_heads;
  size_t state_size = (size_t)c->lin_k_dim * c->lin_v_dim;
  for (uint32_t head = begin; head < end; head++)
    for (uint32_t token = 0; token < job->n; token++) {
      size_t gate = (size_t)token * c->lin_v_heads + head;
      size_t at = (size_t)token * c->lin_value_dim + (size_t)head * c->lin_v_dim;
      float *out = f->mixed + at;
      ml_delta delta = {.out = out,
                        .state = job->cache->state + head * state_size,
                        .q = query_of(f, token, head / group),
                        .k = key_of(f, token, head / group),
                        .v = value_of(f, token, head),
                        .dk = c->lin_k_dim,
                        .dv = c->lin_v_dim,
                        .decay = f->decay[gate],
                        .beta = f->beta[gate]};
      f->kernels->delta_step(&delta);
      f->kernels->rms_norm(out, out, job->w->lnorm, c->lin_v_dim, c->norm_eps);
      f->kernels->mul_silu(out, f->z + at, c->lin_v_dim);
    }
}

ml_status ml_deltanet(ml_forward *f, int32_t layer, uint32_t n, ml_error *error) {
  const ml_config *c = &f->model->config;
  const ml_deltanet_weights *w = &f->model->layers[layer].deltanet;
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->normed, n, c->dim, "linear attention input", layer, f->n_past, error));
  const ml_product products[] = {
      {f->channels, &w->lqkv}, {f->z, &w->lz}, {f->beta, &w->lb}, {f->decay, &w->la}};
  ml_linears(f, products, 4, &rows);

  deltanet_job job = {f, w, &f->caches[layer], n};
  ml_pool_run(f->pool, convolve, &job, c->lin_channels, 16);
  ml_observe(f, ML_STAGE_CONV, layer, f->n_past, f->channels, n, c->lin_channels);
  normalize(&job);
  gates(&job);
  ml_pool_run(f->pool, update_heads, &job, c->lin_v_heads, 1);
  ml_observe(f, ML_STAGE_MIXED, layer, f->n_past, f->mixed, n, c->lin_value_dim);

  ML_TRY(ml_prepare_rows(f, &rows, f->mixed, n, c->lin_value_dim, "linear attention output", layer, f->n_past,
                         error));
  ml_linear(f, f->block_out, &w->lout, &rows);
  return ML_OK;
}
