/* weights.h - a loaded model: what it is (ml_config) and its arrays (ml_weights), bound once with their
 * shapes checked, so that nothing later looks anything up. Free of file formats: any format's loader fills it. */
#ifndef ML_MODEL_WEIGHTS_H
#define ML_MODEL_WEIGHTS_H

#include "base/arena.h"
#include "kernels/matrix.h"
#include "ml.h"

typedef enum ml_rope_scaling { ML_ROPE_PLAIN, ML_ROPE_LLAMA3, ML_ROPE_LINEAR, ML_ROPE_YARN } ml_rope_scaling;

/* One set of rotary frequencies (format document, section RoPE). */
typedef struct ml_rope_config {
  ml_rope_scaling scaling;
  float theta;
  float factor;
  float low_freq_factor, high_freq_factor; /* llama3 */
  float beta_fast, beta_slow;              /* yarn */
  uint32_t orig_max_seq;                   /* llama3, yarn */
  float attn_factor;                       /* on cos and sin */
} ml_rope_config;

typedef enum ml_activation { ML_ACT_SILU, ML_ACT_GELU_TANH } ml_activation;

typedef struct ml_config {
  uint32_t dim, n_layers, n_heads, n_kv_heads, head_dim, q_dim, kv_dim, hidden_dim, vocab, max_seq;
  float norm_eps;
  ml_activation activation;
  float embed_scale;                 /* on embedding rows, 1 for none */
  float attn_scale;                  /* on q.k */
  float attn_softcap, final_softcap; /* 0: none */
  uint32_t rot_dim;                  /* rotated elements of each head */
  ml_rope_config rope, rope_local;   /* of ML_ROTATE_GLOBAL and ML_ROTATE_LOCAL layers */

  /* gated delta rule layers; all 0 when there are none */
  uint32_t lin_k_heads, lin_v_heads, lin_k_dim, lin_v_dim, lin_conv;
  uint32_t lin_channels;  /* 2 lin_k_heads lin_k_dim + lin_v_heads lin_v_dim */
  uint32_t lin_value_dim; /* lin_v_heads lin_v_dim */
  uint32_t n_linear_layers;

  /* looped models: the last layer is run n_loops times, or as often as a session wants; 0 in others */
  uint32_t n_loops;
  uint32_t embed_factor_dim; /* columns of tok_emb and wcls that embed_proj and head_proj lead to; 0: dim */
} ml_config;

typedef enum ml_rotate { ML_ROTATE_NONE, ML_ROTATE_GLOBAL, ML_ROTATE_LOCAL } ml_rotate;

typedef struct ml_attention_weights {
  ml_matrix wq, wk, wv, wo;     /* (q_dim, dim), (kv_dim, dim), (kv_dim, dim), (dim, q_dim) */
  ml_matrix wg;                 /* (q_dim, dim), rows 0: no gate */
  const float *bq, *bk, *bv;    /* (q_dim), (kv_dim), (kv_dim) or NULL */
  const float *q_norm, *k_norm; /* (head_dim) or NULL */
} ml_attention_weights;

typedef struct ml_deltanet_weights {
  ml_matrix lqkv;               /* (lin_channels, dim): queries, keys, values */
  ml_matrix lz, lb, la;         /* (lin_value_dim, dim), (lin_v_heads, dim) twice */
  ml_matrix lout;               /* (dim, lin_value_dim) */
  const float *lconv;           /* (lin_conv, lin_channels): transposed from the file */
  const float *dt_bias, *a_log; /* (lin_v_heads) */
  const float *lnorm;           /* (lin_v_dim) */
} ml_deltanet_weights;

typedef struct ml_layer {
  bool linear; /* which of the two below is filled */
  ml_rotate rotate;
  uint32_t window; /* positions attended to, itself included; 0: all */
  ml_attention_weights attention;
  ml_deltanet_weights deltanet;
  const float *attn_norm, *ffn_norm;           /* (dim) */
  const float *post_attn_norm, *post_ffn_norm; /* (dim) or NULL */
  ml_matrix w1, w2, w3; /* gate (hidden_dim, dim), down (dim, hidden_dim), up (hidden_dim, dim) */
} ml_layer;

struct ml_model {
  ml_allocator allocator;
  ml_config config;
  ml_matrix tok_emb, wcls;  /* (vocab, dim), or embed_factor_dim columns; the same arrays when shared */
  ml_matrix embed_proj;     /* (dim, embed_factor_dim), rows 0: none */
  ml_matrix head_proj;      /* (embed_factor_dim, dim), rows 0: none */
  ml_layer *layers;         /* (n_layers) */
  const float *final_norm;  /* (dim) */
  ml_arena structs, arrays; /* layers; weights */
  bool planned;             /* has no weights: see ml_model_plan */
  ml_model_info info;
};

#endif
