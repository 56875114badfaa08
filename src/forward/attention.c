/* attention.c - grouped-query attention over the KV ring of a layer. */
#include <string.h>

#include "base/error.h"
#include "forward/forward.h"

typedef struct attention_job {
  ml_forward *f;
  const ml_layer *layer;
  const ml_layer_cache *cache;
  uint32_t n;
} attention_job;

/* Bias, norm and rotation of one head of one token, in place: what the projection still lacks. */
static void finish_head(const attention_job *job, float *head, uint32_t token, const float *bias,
                        const float *norm) {
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  if (bias) f->kernels->add(head, bias, c->head_dim);
  if (norm) f->kernels->rms_norm(head, head, norm, c->head_dim, c->norm_eps);
  if (job->layer->rotate == ML_ROTATE_NONE) return;
  const ml_rope_table *rope = job->layer->rotate == ML_ROTATE_LOCAL ? &f->rope_local : &f->rope;
  size_t row = (size_t)token * c->rot_dim;
  f->kernels->rope(head, rope->cosine + row, rope->sine + row, c->rot_dim);
}

static const float *head_of(const float *bias, uint32_t head, uint32_t head_dim) {
  return bias ? bias + (size_t)head * head_dim : NULL;
}

/* Puts a token's key and value of one kv head into the ring. */
static void store_kv(const attention_job *job, uint32_t kv_head, uint32_t token) {
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  const ml_attention_weights *w = &job->layer->attention;
  size_t at = (size_t)token * c->kv_dim + (size_t)kv_head * c->head_dim;
  finish_head(job, f->k + at, token, head_of(w->bk, kv_head, c->head_dim), w->k_norm);
  if (w->bv) f->kernels->add(f->v + at, head_of(w->bv, kv_head, c->head_dim), c->head_dim);
  size_t slot = (size_t)kv_head * job->cache->capacity + (f->n_past + token) % job->cache->capacity;
  memcpy(job->cache->k + slot * c->head_dim, f->k + at, c->head_dim * sizeof(float));
  memcpy(job->cache->v + slot * c->head_dim, f->v + at, c->head_dim * sizeof(float));
}

static void attend_head(const attention_job *job, uint32_t head, uint32_t kv_head, uint32_t token,
                        float *scores) {
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  const ml_attention_weights *w = &job->layer->attention;
  size_t at = (size_t)token * c->q_dim + (size_t)head * c->head_dim;
  finish_head(job, f->q + at, token, head_of(w->bq, head, c->head_dim), w->q_norm);
  uint32_t position = f->n_past + token, window = job->layer->window;
  uint32_t first = window && position + 1 > window ? position + 1 - window : 0;
  size_t ring = (size_t)kv_head * job->cache->capacity * c->head_dim;
  ml_attend attend = {.out = f->mixed + at,
                      .q = f->q + at,
                      .k = job->cache->k + ring,
                      .v = job->cache->v + ring,
                      .head_dim = c->head_dim,
                      .capacity = job->cache->capacity,
                      .first = first,
                      .count = position + 1 - first,
                      .scale = c->attn_scale,
                      .softcap = c->attn_softcap,
                      .scores = scores};
  f->kernels->attend(&attend);
  if (w->wg.rows) f->kernels->mul_sigmoid(f->mixed + at, f->gate + at, c->head_dim);
}

/* A part owns whole kv heads with their query heads. Tokens go in order: a token's key may take the ring
 * slot of one that only earlier tokens still see. */
static void attention_part(void *context, uint32_t part, uint32_t n_parts) {
  const attention_job *job = context;
  const ml_config *c = &job->f->model->config;
  uint32_t group = c->n_heads / c->n_kv_heads, begin, end;
  ml_pool_share(c->n_kv_heads, 1, part, n_parts, &begin, &end);
  float *scores = job->f->scores + (size_t)part * job->f->n_ctx;
  for (uint32_t kv_head = begin; kv_head < end; kv_head++)
    for (uint32_t token = 0; token < job->n; token++) {
      store_kv(job, kv_head, token);
      for (uint32_t i = 0; i < group; i++) attend_head(job, kv_head * group + i, kv_head, token, scores);
    }
}

ml_status ml_attention(ml_forward *f, int32_t layer, uint32_t n, ml_error *error) {
  const ml_config *c = &f->model->config;
  const ml_attention_weights *w = &f->model->layers[layer].attention;
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->normed, n, c->dim, "attention input", layer, f->n_past, error));
  ml_linear(f, f->q, &w->wq, &rows);
  ml_linear(f, f->k, &w->wk, &rows);
  ml_linear(f, f->v, &w->wv, &rows);
  if (w->wg.rows) ml_linear(f, f->gate, &w->wg, &rows);

  attention_job job = {f, &f->model->layers[layer], &f->caches[layer], n};
  ml_pool_run(f->pool, attention_part, &job);
  ml_observe(f, ML_STAGE_Q, layer, f->n_past, f->q, n, c->q_dim);
  ml_observe(f, ML_STAGE_K, layer, f->n_past, f->k, n, c->kv_dim);
  ml_observe(f, ML_STAGE_V, layer, f->n_past, f->v, n, c->kv_dim);
  ml_observe(f, ML_STAGE_MIXED, layer, f->n_past, f->mixed, n, c->q_dim);

  ML_TRY(ml_prepare_rows(f, &rows, f->mixed, n, c->q_dim, "attention output", layer, f->n_past, error));
  ml_linear(f, f->block_out, &w->wo, &rows);
  return ML_OK;
}
