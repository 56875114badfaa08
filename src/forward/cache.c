/* cache.c - what the layers remember of earlier tokens: where it lies, and how much of it can be taken back. */
#include <string.h>

#include "base/bytes.h"
#include "forward/forward.h"

static uint64_t state_size(const ml_config *c) {
  return ml_mul_sizes((uint64_t)c->lin_v_heads * c->lin_k_dim, c->lin_v_dim);
}

static uint64_t history_size(const ml_config *c) { return ml_mul_sizes(c->lin_conv - 1, c->lin_channels); }

static void place_layer(const ml_forward *f, const ml_layer *layer, ml_layer_cache *cache, ml_arena *arena) {
  const ml_config *c = &f->model->config;
  ml_layer_cache made = {0};
  if (layer->linear) {
    made.state = ml_arena_take(arena, state_size(c), sizeof(float));
    made.history = ml_arena_take(arena, history_size(c), sizeof(float));
  } else {
    made.capacity = layer->window && layer->window < f->n_ctx ? layer->window : f->n_ctx;
    uint64_t size = (uint64_t)made.capacity * c->kv_dim;
    if (f->kv == ML_KV_Q8) {
      ml_kv_q8_place(f, &made, arena);
    } else {
      made.k = ml_arena_take(arena, size, sizeof(float));
      made.v = ml_arena_take(arena, size, sizeof(float));
    }
  }
  if (cache) *cache = made;
}

void ml_caches_place(ml_forward *f, ml_arena *arena) {
  f->caches = ml_arena_take(arena, f->max_runs, sizeof(ml_layer_cache));
  for (uint32_t i = 0; i < f->max_runs; i++)
    place_layer(f, ml_layer_of(f->model, i), f->caches ? &f->caches[i] : NULL, arena);
}

void ml_caches_clear(ml_forward *f) {
  const ml_config *c = &f->model->config;
  f->n_past = f->n_reached = 0;
  for (uint32_t i = 0; i < f->n_runs; i++) {
    if (!ml_layer_of(f->model, i)->linear) continue; /* rows of K and V are written before they are read */
    memset(f->caches[i].state, 0, (size_t)state_size(c) * sizeof(float));
    memset(f->caches[i].history, 0, (size_t)history_size(c) * sizeof(float));
  }
}

/* Can position n_keep be computed from what a layer still holds? */
static bool can_return_to(const ml_forward *f, uint32_t layer, uint32_t n_keep) {
  if (ml_layer_of(f->model, layer)->linear) return false; /* its state is a sum over all tokens */
  /* A ring holds the last `capacity` positions before n_reached, those since taken back included; the next token
   * wants capacity - 1 of them before n_keep. */
  return f->n_reached <= f->caches[layer].capacity || n_keep + 1 >= f->n_reached;
}

uint32_t ml_caches_truncate(ml_forward *f, uint32_t n_keep) {
  if (n_keep >= f->n_past) return f->n_past;
  if (f->n_reached < f->n_past) f->n_reached = f->n_past;
  for (uint32_t i = 0; n_keep > 0 && i < f->n_runs; i++)
    if (!can_return_to(f, i, n_keep)) n_keep = 0;
  if (n_keep == 0) ml_caches_clear(f);
  f->n_past = n_keep;
  return n_keep;
}
