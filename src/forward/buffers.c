#include "base/bytes.h"
#include "forward/forward.h"

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void place_rope(ml_rope_table *rope, ml_arena *arena, uint32_t n_batch, uint32_t rot_dim) {
  rope->inverse_frequency = ml_arena_take(arena, rot_dim / 2, sizeof(double));
  uint64_t size = (uint64_t)n_batch * rot_dim;
  rope->cosine = ml_arena_take(arena, size, sizeof(float));
  rope->sine = ml_arena_take(arena, size, sizeof(float));
}

static float *take_rows(ml_arena *arena, uint32_t n, uint32_t cols) {
  return ml_arena_take(arena, (uint64_t)n * cols, sizeof(float));
}

void ml_forward_place(ml_forward *f, ml_arena *arena) {
  const ml_config *c = &f->model->config;
  uint32_t n = f->n_batch;
  uint32_t mixed = larger(c->q_dim, c->lin_value_dim);
  uint32_t widest =
      larger(larger(c->dim, c->hidden_dim), larger(mixed, c->embed_factor_dim)); /* input of a matrix */
  place_rope(&f->rope, arena, n, c->rot_dim);
  place_rope(&f->rope_local, arena, n, c->rot_dim);
  f->factors = take_rows(arena, n, c->embed_factor_dim);
  f->x = take_rows(arena, n, c->dim);
  f->normed = take_rows(arena, n, c->dim);
  f->block_out = take_rows(arena, n, c->dim);
  f->quants = ml_arena_take(arena, (uint64_t)n * widest, sizeof(int8_t));
  f->quant_scales = take_rows(arena, n, widest / ML_BLOCK);
  f->quant_starts = ml_arena_take(arena, (uint64_t)n * (widest / ML_BLOCK), sizeof(int32_t));
  f->quants_wide =
      f->kernels->wants_wide ? ml_arena_take(arena, (uint64_t)n * widest, sizeof(int16_t)) : NULL;
  f->q = take_rows(arena, n, c->q_dim);
  f->k = take_rows(arena, n, c->kv_dim);
  f->v = take_rows(arena, n, c->kv_dim);
  f->gate = take_rows(arena, n, c->q_dim);
  f->mixed = take_rows(arena, n, mixed);
  f->scores = ml_arena_take(arena, ml_mul_sizes(f->n_threads, ml_attend_scratch(c, f->n_ctx)), sizeof(float));
  if (f->kv == ML_KV_Q8) ml_kv_q8_place_scratch(f, arena);
  f->channels = take_rows(arena, n, c->lin_channels);
  f->z = take_rows(arena, n, c->lin_value_dim);
  f->beta = take_rows(arena, n, c->lin_v_heads);
  f->decay = take_rows(arena, n, c->lin_v_heads);
  f->hidden = take_rows(arena, n, c->hidden_dim);
  f->up = take_rows(arena, n, c->hidden_dim);
  f->logits = take_rows(arena, 1, c->vocab);
  f->logits_exact = f->exact ? ml_arena_take(arena, c->vocab, sizeof(double)) : NULL;
  ml_caches_place(f, arena);
}
