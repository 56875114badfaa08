/* attention.c - grouped-query attention over the KV ring of a layer. */
#include <string.h>

#include "base/error.h"
#include "forward/forward.h"

/* Tokens of the batch from `begin` on. */
typedef struct attention_job {
  ml_forward *f;
  const ml_layer *layer;
  const ml_layer_cache *cache;
  uint32_t begin;
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
static void store_kv(const attention_job *job, uint32_t thread, uint32_t kv_head, uint32_t token) {
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  const ml_attention_weights *w = &job->layer->attention;
  size_t at = (size_t)token * c->kv_dim + (size_t)kv_head * c->head_dim;
  finish_head(job, f->k + at, token, head_of(w->bk, kv_head, c->head_dim), w->k_norm);
  if (w->bv) f->kernels->add(f->v + at, head_of(w->bv, kv_head, c->head_dim), c->head_dim);
  uint32_t place = (f->n_past + token) % job->cache->capacity;
  if (f->kv == ML_KV_Q8) {
    ml_kv_q8_store(f, job->cache, thread, kv_head, place, f->k + at, f->v + at);
    return;
  }
  size_t slot = (size_t)kv_head * job->cache->capacity + place;
  memcpy(job->cache->k + slot * c->head_dim, f->k + at, c->head_dim * sizeof(float));
  memcpy(job->cache->v + slot * c->head_dim, f->v + at, c->head_dim * sizeof(float));
}

/* Items are (token, kv head). */
static void store_items(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  const attention_job *job = context;
  uint32_t n_kv_heads = job->f->model->config.n_kv_heads;
  for (uint32_t i = begin; i < end; i++) store_kv(job, thread, i % n_kv_heads, job->begin + i / n_kv_heads);
}

/* Query heads head ... head + n - 1 of one token, which share a kv head. */
static void attend_heads(const attention_job *job, uint32_t thread, uint32_t token, uint32_t head,
                         uint32_t n) {
  const ml_forward *f = job->f;
  const ml_config *c = &f->model->config;
  const ml_attention_weights *w = &job->layer->attention;
  size_t at = (size_t)token * c->q_dim + (size_t)head * c->head_dim;
  for (uint32_t i = 0; i < n; i++)
    finish_head(job, f->q + at + (size_t)i * c->head_dim, token, head_of(w->bq, head + i, c->head_dim),
                w->q_norm);
  uint32_t position = f->n_past + token, window = job->layer->window;
  uint32_t first = window && position + 1 > window ? position + 1 - window : 0;
  uint32_t kv_head = head / (c->n_heads / c->n_kv_heads);
  float *scratch = f->scores + thread * (size_t)ml_attend_scratch(c, f->n_ctx);
  ml_attend attend = {.out = f->mixed + at,
                      .q = f->q + at,
                      .n_heads = n,
                      .head_dim = c->head_dim,
                      .capacity = job->cache->capacity,
                      .first = first,
                      .count = position + 1 - first,
                      .scale = c->attn_scale,
                      .softcap = c->attn_softcap,
                      .scores = scratch + n,
                      .sums = scratch};
  if (f->kv == ML_KV_Q8) {
    ml_kv_q8_attend(f, job->cache, thread, kv_head, &attend);
  } else {
    size_t ring = (size_t)kv_head * job->cache->capacity * c->head_dim;
    attend.k = job->cache->k + ring;
    attend.v = job->cache->v + ring;
    f->kernels->attend(&attend);
  }
  if (w->wg.rows) f->kernels->mul_sigmoid(f->mixed + at, f->gate + at, (size_t)n * c->head_dim);
}

/* Items are (token, query head); those of a piece that share token and kv head go together. */
static void attend_items(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  const attention_job *job = context;
  const ml_config *c = &job->f->model->config;
  uint32_t group = c->n_heads / c->n_kv_heads;
  for (uint32_t i = begin, n; i < end; i += n) {
    uint32_t head = i % c->n_heads;
    n = group - head % group;
    if (n > end - i) n = end - i;
    attend_heads(job, thread, job->begin + i / c->n_heads, head, n);
  }
}

/* All keys and values of the batch first, then all queries; one token after the other where the batch overwrites ring
 * rows that its own tokens still see. The heads of one token are dealt out once: each piece reads keys and values anew. */
static void attend_batch(ml_forward *f, int32_t layer, uint32_t n) {
  attention_job job = {f, ml_layer_of(f->model, (uint32_t)layer), &f->caches[layer], 0};
  uint32_t step = f->n_past + n > job.cache->capacity ? 1 : n;
  const ml_config *c = &f->model->config;
  uint32_t n_threads = ml_pool_size(f->pool);
  uint32_t unit = step > 1 ? c->n_heads / c->n_kv_heads : (c->n_heads + n_threads - 1) / n_threads;
  for (; job.begin < n; job.begin += step) {
    ml_pool_run(f->pool, store_items, &job, step * c->n_kv_heads, step > 1 ? 1 : c->n_kv_heads);
    ml_pool_run(f->pool, attend_items, &job, step * c->n_heads, unit);
  }
}

ml_status ml_attention(ml_forward *f, int32_t layer, uint32_t n, ml_error *error) {
  const ml_config *c = &f->model->config;
  const ml_attention_weights *w = &ml_layer_of(f->model, (uint32_t)layer)->attention;
  ml_rows rows;
  ML_TRY(ml_prepare_rows(f, &rows, f->normed, n, c->dim, "attention input", layer, f->n_past, error));
  const ml_product products[] = {{f->q, &w->wq}, {f->k, &w->wk}, {f->v, &w->wv}, {f->gate, &w->wg}};
  ml_linears(f, products, w->wg.rows ? 4 : 3, &rows);

  attend_batch(f, layer, n);
  ml_observe(f, ML_STAGE_Q, layer, f->n_past, f->q, n, c->q_dim);
  ml_observe(f, ML_STAGE_K, layer, f->n_past, f->k, n, c->kv_dim);
  ml_observe(f, ML_STAGE_V, layer, f->n_past, f->v, n, c->kv_dim);
  ml_observe(f, ML_STAGE_MIXED, layer, f->n_past, f->mixed, n, c->q_dim);

  ML_TRY(ml_prepare_rows(f, &rows, f->mixed, n, c->q_dim, "attention output", layer, f->n_past, error));
  ml_linear(f, f->block_out, &w->wo, &rows);
  return ML_OK;
}
