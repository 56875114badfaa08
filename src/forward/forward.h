/* forward.h - one pass of tokens through the model: everything that the stages share.
 *
 *   ids -> embed -> [ norm -> attention | delta rule -> norm? -> + -> norm -> ffn -> norm? -> + ] x n_layers
 *                -> norm -> classifier -> soft cap -> logits
 *
 * Looped models run their last layer several times: a run is one pass through one layer, with a cache of its own. In
 * every other model runs are layers. Where stages are given a `layer`, it is the number of the run.
 *
 * A batch is n consecutive tokens, f->n_past ... f->n_past + n - 1. Rows of all buffers belong to tokens.
 * A stage reads and writes the buffers named in its comment and nothing else. No stage looks at how many
 * tokens came together or how many threads there are, except to share out work: docs/NUMERICS.md. */
#ifndef ML_FORWARD_H
#define ML_FORWARD_H

#include "base/arena.h"
#include "base/pool.h"
#include "forward/importance.h"
#include "kernels/kernels.h"
#include "model/weights.h"

/* What a layer remembers. */
typedef struct ml_layer_cache {
  /* attention: position p is row p % capacity */
  float *k, *v; /* (n_kv_heads, capacity, head_dim); as bytes (kv_q8.c) instead: */
  int8_t *k_q8; /* (n_kv_heads), each a packed Q8_0 matrix with a row per position */
  float *k_scales;
  int8_t *v_q8;      /* (n_kv_heads, capacity, head_dim rounded up to blocks of 32) */
  float *v_scales;   /* (n_kv_heads, blocks, capacity) */
  uint32_t capacity; /* the window, or n_ctx */
  /* gated delta rule: does not grow */
  float *state;   /* (lin_v_heads, lin_k_dim, lin_v_dim) */
  float *history; /* (lin_conv - 1, lin_channels): last inputs, position p is row p % (lin_conv - 1) */
} ml_layer_cache;

/* Rotary tables of one batch, an entry per element (kernel `rope`). */
typedef struct ml_rope_table {
  double *inverse_frequency; /* (rot_dim / 2), fixed */
  float *cosine, *sine;      /* (n_batch, rot_dim) */
} ml_rope_table;

/* Quantized heads of each thread, (n_threads, heads that share a kv head): members as in ml_rows. */
typedef struct ml_kv_q8_scratch {
  float *x, *d;
  int8_t *q;
  int32_t *starts;
  int16_t *wide;
} ml_kv_q8_scratch;

/* Floats that one thread needs to attend: scores and sums of the query heads that share a kv head. With a group of
 * matrix rows to spare, for kv_q8.c. */
static inline uint64_t ml_attend_scratch(const ml_config *c, uint32_t n_ctx) {
  return (uint64_t)(c->n_heads / c->n_kv_heads) * ((uint64_t)n_ctx + ML_PACK_ROWS + 1);
}

typedef struct ml_forward {
  const ml_model *model;
  const ml_kernels *kernels;
  ml_pool *pool;
  bool exact;
  ml_kv_type kv;
  uint32_t n_ctx, n_batch, n_threads;
  uint32_t n_runs, max_runs; /* of layers per token, and those that there are caches for */
  uint32_t n_past;           /* tokens in the caches */
  uint32_t n_reached;        /* the most there were since they were last empty, as of the last truncation */
  ml_layer_cache *caches;    /* (max_runs) */

  ml_trace_fn *trace; /* NULL: none */
  void *trace_user;
  ml_imatrix *imatrix; /* NULL: none */

  ml_rope_table rope, rope_local;
  float *factors;      /* (n_batch, embed_factor_dim): a factored embedding's rows, or one row of the head */
  float *x;            /* (n_batch, dim): the residual stream */
  float *normed;       /* (n_batch, dim): input of a block's matrices */
  float *block_out;    /* (n_batch, dim): what a block adds to x */
  int8_t *quants;      /* (n_batch, widest input): quantized rows */
  float *quant_scales; /* (n_batch, widest input / 32) */
  int32_t *quant_starts; /* the same */
  int16_t *quants_wide;  /* (n_batch, widest input), NULL unless the kernels want it */

  float *q, *k, *v; /* (n_batch, q_dim), (n_batch, kv_dim) twice */
  float *gate;      /* (n_batch, q_dim) */
  float *mixed;     /* (n_batch, q_dim or lin_value_dim): input of wo or lout */
  float *scores;    /* (n_threads, ml_attend_scratch) */
  ml_kv_q8_scratch kv_q8;

  float *channels;     /* (n_batch, lin_channels): queries, keys, values of the delta rule */
  float *z;            /* (n_batch, lin_value_dim) */
  float *beta, *decay; /* (n_batch, lin_v_heads) */

  float *hidden, *up;   /* (n_batch, hidden_dim) */
  float *logits;        /* (vocab) */
  double *logits_exact; /* (vocab), only in exact mode */
} ml_forward;

/* ---------------------------------------------------------------- looped.c */

/* Runs of layers when the shared layer is run n_loops times (0: as the model says). ML_E_ARG for a model without one, and
 * for more than ML_MAX_LOOPS. */
ml_status ml_looped_runs(uint32_t *n_runs, const ml_config *config, uint32_t n_loops, ml_error *error);

/* The weights of a run. */
static inline uint32_t ml_layer_index(const ml_model *model, uint32_t run) {
  return run < model->config.n_layers ? run : model->config.n_layers - 1;
}
static inline const ml_layer *ml_layer_of(const ml_model *model, uint32_t run) {
  return &model->layers[ml_layer_index(model, run)];
}

/* f->factors (n, embed_factor_dim) -> f->x, by embed_proj. */
ml_status ml_expand_embedding(ml_forward *f, uint32_t n, ml_error *error);
/* f->normed, one row of `position` -> f->factors, by head_proj. */
ml_status ml_reduce_head(ml_forward *f, uint32_t position, ml_error *error);

/* ---------------------------------------------------------------- buffers.c, cache.c */

/* Gives every buffer its place. Needs model, exact, n_ctx, n_batch, n_threads and max_runs; on a measuring arena it
 * only counts. */
void ml_forward_place(ml_forward *f, ml_arena *arena);
void ml_caches_place(ml_forward *f, ml_arena *arena);
/* Forgets every token. */
void ml_caches_clear(ml_forward *f);
/* See ml_session_truncate. */
uint32_t ml_caches_truncate(ml_forward *f, uint32_t n_keep);

/* ---------------------------------------------------------------- kv_q8.c: only with ML_KV_Q8 */

void ml_kv_q8_place(const ml_forward *f, ml_layer_cache *cache, ml_arena *arena);
void ml_kv_q8_place_scratch(ml_forward *f, ml_arena *arena);
/* Puts key and value (head_dim floats each) of a kv head into a place of the ring. `thread`: of the pool, for scratch. */
void ml_kv_q8_store(const ml_forward *f, const ml_layer_cache *cache, uint32_t thread, uint32_t kv_head,
                    uint32_t slot, const float *k, const float *v);
/* As the kernel `attend`, but for `k` and `v` of `a`, which are those of the cache. */
void ml_kv_q8_attend(const ml_forward *f, const ml_layer_cache *cache, uint32_t thread, uint32_t kv_head,
                     const ml_attend *a);

/* ---------------------------------------------------------------- rope.c */

void ml_rope_init(ml_forward *f);             /* fills the frequencies */
void ml_rope_fill(ml_forward *f, uint32_t n); /* fills cosine and sine for the batch */

/* ---------------------------------------------------------------- linear.c */

/* Checks and quantizes n rows of cols floats, of positions from `first` on, for the matrices that follow; `rows` refers to buffers of f until
 * the next call. ML_E_NUMERIC, naming stage, layer and position, when a value is not finite. */
ml_status ml_prepare_rows(ml_forward *f, ml_rows *rows, const float *x, uint32_t n, uint32_t cols,
                          const char *stage, int32_t layer, uint32_t first, ml_error *error);
/* q as i16, in the order of ml_rows.wide. */
void ml_widen(int16_t *out, const int8_t *q, uint32_t cols);
/* y (rows->n, w->rows) = w times every row. */
typedef struct ml_product {
  float *y;
  const ml_matrix *w;
} ml_product;
/* n products of the same rows, which threads share out as one. */
void ml_linears(ml_forward *f, const ml_product *products, uint32_t n, const ml_rows *rows);
void ml_linear(ml_forward *f, float *y, const ml_matrix *w, const ml_rows *rows);

/* ---------------------------------------------------------------- the blocks: f->normed in, f->block_out out */

ml_status ml_attention(ml_forward *f, int32_t layer, uint32_t n, ml_error *error);
ml_status ml_deltanet(ml_forward *f, int32_t layer, uint32_t n, ml_error *error);
ml_status ml_ffn(ml_forward *f, int32_t layer, uint32_t n, ml_error *error);

/* ---------------------------------------------------------------- transformer.c */

/* Runs n <= n_batch tokens, whose ids are valid and fit the context, and moves n_past on. On failure n_past
 * has moved too (the caches hold something), and the caller takes it back. */
ml_status ml_forward_batch(ml_forward *f, const int32_t *ids, uint32_t n, ml_error *error);
/* Logits of row `row` of the batch just run, which is at `position`, into f->logits (and f->logits_exact). */
ml_status ml_forward_logits(ml_forward *f, uint32_t row, uint32_t position, ml_error *error);

/* ---------------------------------------------------------------- observe.c */

/* Shows n rows of a stage's output to the trace and, if it is the input of a matrix, to the imatrix.
 * `first` is the position of the first row. */
typedef enum ml_stage {
  ML_STAGE_EMBED,
  ML_STAGE_BLOCK_IN, /* input of wq, wk, wv or lqkv, lz, lb, la */
  ML_STAGE_Q,
  ML_STAGE_K,
  ML_STAGE_V,
  ML_STAGE_CONV,
  ML_STAGE_MIXED, /* input of wo or lout */
  ML_STAGE_BLOCK_OUT,
  ML_STAGE_FFN_IN,  /* input of w1, w3 */
  ML_STAGE_FFN_MID, /* input of w2 */
  ML_STAGE_FFN_OUT,
  ML_STAGE_LAYER, /* the residual stream after the layer */
  ML_STAGE_FINAL, /* input of the classifier */
  ML_STAGE_LOGITS,
  ML_N_STAGES
} ml_stage;

void ml_observe(ml_forward *f, ml_stage stage, int32_t layer, uint32_t first, const float *x, uint32_t n,
                uint32_t cols);
const char *ml_stage_name(ml_stage stage);

#endif
