/* kv_q8.c - attention whose keys and values are kept as bytes, in blocks of 32 by the format's rule for activations.
 *
 * Keys are a quantized matrix, a row for each place of the ring, packed like weights: so scores come from the matrix
 * kernels, with the quantized queries as activations. Values lie row by row, each block's scales side by side:
 *
 *   values                                    scales of values
 *   row 0  | block 0 | block 1 | ...          block 0  | row 0 | row 1 | ... | row capacity - 1 |
 *   row 1  | block 0 | block 1 | ...          block 1  | row 0 | row 1 | ...
 *
 * The last block of a head that is no multiple of 32 wide is filled up with zeros. */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "forward/forward.h"

static uint32_t n_blocks_of(const ml_config *c) { return (c->head_dim + ML_BLOCK - 1) / ML_BLOCK; }

void ml_kv_q8_place(const ml_forward *f, ml_layer_cache *cache, ml_arena *arena) {
  const ml_config *c = &f->model->config;
  uint64_t blocks = ml_mul_sizes((uint64_t)c->n_kv_heads * n_blocks_of(c), cache->capacity);
  uint64_t packed = ml_mul_sizes((uint64_t)c->n_kv_heads * n_blocks_of(c),
                                 ml_layout_rows(ML_LAYOUT_PACKED, cache->capacity));
  cache->k_q8 = ml_arena_take(arena, packed, ML_BLOCK);
  cache->k_scales = ml_arena_take(arena, packed, sizeof(float));
  cache->v_q8 = ml_arena_take(arena, blocks, ML_BLOCK);
  cache->v_scales = ml_arena_take(arena, blocks, sizeof(float));
}

/* Room for the heads of a group, for each thread. */
void ml_kv_q8_place_scratch(ml_forward *f, ml_arena *arena) {
  const ml_config *c = &f->model->config;
  uint64_t blocks = ml_mul_sizes((uint64_t)(c->n_heads / c->n_kv_heads) * n_blocks_of(c), f->n_threads);
  ml_kv_q8_scratch *s = &f->kv_q8;
  s->x = ml_arena_take(arena, blocks, ML_BLOCK * sizeof(float));
  s->q = ml_arena_take(arena, blocks, ML_BLOCK);
  s->d = ml_arena_take(arena, blocks, sizeof(float));
  s->starts = ml_arena_take(arena, blocks, sizeof(int32_t));
  s->wide = f->kernels->wants_wide ? ml_arena_take(arena, blocks, ML_BLOCK * sizeof(int16_t)) : NULL;
}

/* n heads that lie one after the other, quantized into a thread's scratch. What is not finite cannot be a byte: a scale
 * of NaN carries on that it was not, to where results are checked. */
static ml_rows quantize_heads(const ml_forward *f, uint32_t thread, const float *heads, uint32_t n) {
  const ml_config *c = &f->model->config;
  size_t n_blocks = n_blocks_of(c), width = n_blocks * ML_BLOCK;
  size_t at = (size_t)thread * (c->n_heads / c->n_kv_heads) * n_blocks;
  const ml_kv_q8_scratch *s = &f->kv_q8;
  float *x = s->x + at * ML_BLOCK, *d = s->d + at;
  int8_t *q = s->q + at * ML_BLOCK;
  int32_t *starts = s->starts + at;
  for (size_t h = 0; h < n; h++) {
    memcpy(x + h * width, heads + h * c->head_dim, c->head_dim * sizeof *x);
    memset(x + h * width + c->head_dim, 0, (width - c->head_dim) * sizeof *x);
    size_t first = h * n_blocks;
    if (!f->kernels->quantize(q + h * width, d + first, starts + first, x + h * width, width))
      for (size_t b = 0; b < n_blocks; b++) d[first + b] = NAN;
  }
  int16_t *wide = s->wide ? s->wide + at * ML_BLOCK : NULL;
  if (wide) ml_widen(wide, q, (uint32_t)(n * width));
  return (ml_rows){n, (uint32_t)width, x, q, d, starts, wide};
}

void ml_kv_q8_store(const ml_forward *f, const ml_layer_cache *cache, uint32_t thread, uint32_t kv_head,
                    uint32_t slot, const float *k, const float *v) {
  size_t n_blocks = n_blocks_of(&f->model->config), width = n_blocks * ML_BLOCK;
  size_t first = kv_head * n_blocks * (size_t)ml_layout_rows(ML_LAYOUT_PACKED, cache->capacity);
  const size_t n_words = ML_BLOCK / 4;
  ml_rows row = quantize_heads(f, thread, k, 1);
  for (size_t b = 0; b < n_blocks; b++) {
    cache->k_scales[first + ml_scale_index(ML_LAYOUT_PACKED, n_blocks, slot, b)] = row.d[b];
    for (size_t w = 0; w < n_words; w++)
      memcpy(cache->k_q8 + first * ML_BLOCK + ml_word_offset(ML_LAYOUT_PACKED, n_words, n_blocks, slot, b, w),
             row.q + b * ML_BLOCK + 4 * w, 4);
  }
  row = quantize_heads(f, thread, v, 1);
  size_t ring = kv_head * n_blocks * (size_t)cache->capacity;
  memcpy(cache->v_q8 + ring * ML_BLOCK + slot * width, row.q, width);
  for (size_t b = 0; b < n_blocks; b++) cache->v_scales[ring + b * cache->capacity + slot] = row.d[b];
}

/* scores[h * stride + i] = query h times the key in place begin + i of the ring, for places before `end`. The 15 floats
 * before each head's scores may change: the kernels take rows from a multiple of 16 on. */
static void score_places(const ml_forward *f, const ml_layer_cache *cache, uint32_t kv_head,
                         const ml_rows *queries, uint32_t begin, uint32_t end, float *scores, size_t stride) {
  size_t n_blocks = queries->cols / ML_BLOCK;
  uint32_t early = begin % ML_PACK_ROWS;
  size_t first =
      (kv_head * (size_t)ml_layout_rows(ML_LAYOUT_PACKED, cache->capacity) + (begin - early)) * n_blocks;
  const ml_matrix keys = {.type = ML_Q8_0,
                          .layout = ML_LAYOUT_PACKED,
                          .rows = end - begin + early,
                          .cols = queries->cols,
                          .quants = (const uint8_t *)cache->k_q8 + first * ML_BLOCK,
                          .scales = cache->k_scales + first};
  ml_matmul_for(f->kernels, &keys)(scores - early, stride, &keys, queries, 0, keys.rows);
}

void ml_kv_q8_attend(const ml_forward *f, const ml_layer_cache *cache, uint32_t thread, uint32_t kv_head,
                     const ml_attend *a) {
  size_t n_blocks = n_blocks_of(&f->model->config);
  size_t ring = kv_head * n_blocks * (size_t)cache->capacity, stride = f->n_ctx + (size_t)ML_PACK_ROWS;
  float *scores = a->scores + ML_PACK_ROWS;
  ml_rows queries = quantize_heads(f, thread, a->q, a->n_heads);
  uint32_t begin = a->first % a->capacity;
  uint32_t n = a->count < a->capacity - begin ? a->count : a->capacity - begin;
  score_places(f, cache, kv_head, &queries, begin, begin + n, scores, stride);
  if (n < a->count)
    score_places(f, cache, kv_head, &queries, 0, a->count - n, scores + n, stride); /* the ring's other end */
  const ml_mix_q8 mix = {.out = a->out,
                         .scores = scores,
                         .stride = stride,
                         .v = cache->v_q8 + ring * ML_BLOCK,
                         .d = cache->v_scales + ring,
                         .n_heads = a->n_heads,
                         .head_dim = a->head_dim,
                         .capacity = a->capacity,
                         .first = a->first,
                         .count = a->count,
                         .scale = a->scale,
                         .softcap = a->softcap,
                         .sums = a->sums};
  f->kernels->mix_q8(&mix);
}
