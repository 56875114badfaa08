#include "model/bind.h"

#include <assert.h>
#include <math.h>

#include "base/bytes.h"
#include "model/fill.h"

/* ---------------------------------------------------------------- config */

static float or_default(float value, float otherwise) { return value > 0 ? value : otherwise; }

static ml_rope_config rope_from_mlb(const ml_mlb_header *h) {
  ml_rope_config rope = {.scaling = ML_ROPE_PLAIN, .theta = h->rope_theta, .factor = 1, .attn_factor = 1};
  switch (h->rope_type) {
    case ML_MLB_ROPE_LLAMA3:
      rope.scaling = ML_ROPE_LLAMA3;
      rope.low_freq_factor = h->rope_low_freq_factor;
      rope.high_freq_factor = h->rope_high_freq_factor;
      break;
    case ML_MLB_ROPE_LINEAR: rope.scaling = ML_ROPE_LINEAR; break;
    case ML_MLB_ROPE_YARN:
      rope.scaling = ML_ROPE_YARN;
      rope.beta_fast = h->rope_low_freq_factor; /* the header's fields have a second meaning for yarn */
      rope.beta_slow = h->rope_high_freq_factor;
      rope.attn_factor = h->rope_attn_factor;
      break;
    default: return rope;
  }
  rope.factor = h->rope_factor;
  rope.orig_max_seq = h->rope_orig_max_seq;
  return rope;
}

void ml_config_from_mlb(ml_config *config, const ml_mlb_header *h, const uint8_t *flags) {
  *config = (ml_config){
      .dim = h->dim,
      .n_layers = h->n_layers,
      .n_heads = h->n_heads,
      .n_kv_heads = h->n_kv_heads,
      .head_dim = h->head_size,
      .q_dim = h->q_dim,
      .kv_dim = h->kv_dim,
      .hidden_dim = h->hidden_dim,
      .vocab = h->vocab,
      .max_seq = h->max_seq,
      .norm_eps = h->norm_eps,
      .activation = h->act == ML_MLB_ACT_GELU ? ML_ACT_GELU_TANH : ML_ACT_SILU,
      .embed_scale = or_default(h->embed_scale, 1),
      .attn_scale = or_default(h->attn_scale, (float)(1 / sqrt(h->head_size))),
      .attn_softcap = or_default(h->attn_softcap, 0),
      .final_softcap = or_default(h->final_softcap, 0),
      .rot_dim = h->rot_dim ? h->rot_dim : h->head_size,
      .rope = rope_from_mlb(h),
      .rope_local = {.scaling = ML_ROPE_PLAIN, .theta = h->rope_local_theta, .factor = 1, .attn_factor = 1},
  };
  for (uint32_t i = 0; flags && i < h->n_layers; i++)
    if (flags[i] & ML_MLB_LAYER_LINEAR) config->n_linear_layers++;
  if (!config->n_linear_layers) return; /* the header's lin_* fields mean nothing then */
  config->lin_k_heads = h->lin_k_heads;
  config->lin_v_heads = h->lin_v_heads;
  config->lin_k_dim = h->lin_k_dim;
  config->lin_v_dim = h->lin_v_dim;
  config->lin_conv = h->lin_conv;
  config->lin_channels = (uint32_t)h->lin_channels; /* fits: see begin_model */
  config->lin_value_dim = (uint32_t)h->lin_value_dim;
}

void ml_layers_from_mlb(ml_layer *layers, const ml_mlb_header *h, const uint8_t *flags) {
  for (uint32_t i = 0; i < h->n_layers; i++) {
    uint8_t bits = flags ? flags[i] : ML_MLB_LAYER_WINDOW; /* without flags the window is every layer's */
    layers[i].linear = bits & ML_MLB_LAYER_LINEAR;
    layers[i].window = bits & ML_MLB_LAYER_WINDOW ? h->sliding_window : 0;
    layers[i].rotate = bits & ML_MLB_LAYER_NOPE         ? ML_ROTATE_NONE
                       : bits & ML_MLB_LAYER_LOCAL_ROPE ? ML_ROTATE_LOCAL
                                                        : ML_ROTATE_GLOBAL;
  }
}

void ml_config_from_tinyloop(ml_config *config, const ml_tinyloop_header *h) {
  uint32_t head_dim = h->dim / h->n_heads;
  ml_rope_config rope = {
      .scaling = ML_ROPE_PLAIN, .theta = ML_TINYLOOP_ROPE_THETA, .factor = 1, .attn_factor = 1};
  *config = (ml_config){.dim = h->dim,
                        .n_layers = h->n_pre_blocks + 1,
                        .n_heads = h->n_heads,
                        .n_kv_heads = h->n_heads,
                        .head_dim = head_dim,
                        .q_dim = h->dim,
                        .kv_dim = h->dim,
                        .hidden_dim = h->ffn_dim,
                        .vocab = h->vocab_size,
                        .max_seq = ML_TINYLOOP_MAX_SEQ,
                        .norm_eps = ML_TINYLOOP_NORM_EPS,
                        .activation = ML_ACT_SILU,
                        .embed_scale = 1,
                        .attn_scale = (float)(1 / sqrt(head_dim)),
                        .rot_dim = head_dim,
                        .rope = rope,
                        .n_loops = h->default_loops,
                        .embed_factor_dim = h->embed_factor_dim};
}

void ml_layers_from_tinyloop(ml_layer *layers, const ml_tinyloop_header *h) {
  for (uint32_t i = 0; i <= h->n_pre_blocks; i++) layers[i].rotate = ML_ROTATE_GLOBAL;
}

/* ---------------------------------------------------------------- arrays */

/* Where the model keeps a tensor: a matrix or a vector. */
typedef struct slot {
  ml_matrix *matrix;
  const float **vector;
} slot;

static slot layer_slot(ml_layer *l, ml_tensor tensor) {
  ml_attention_weights *a = &l->attention;
  ml_deltanet_weights *d = &l->deltanet;
  switch (tensor) {
    case ML_TENSOR_ATTN_NORM: return (slot){NULL, &l->attn_norm};
    case ML_TENSOR_WQ: return (slot){&a->wq, NULL};
    case ML_TENSOR_WK: return (slot){&a->wk, NULL};
    case ML_TENSOR_WV: return (slot){&a->wv, NULL};
    case ML_TENSOR_WO: return (slot){&a->wo, NULL};
    case ML_TENSOR_WG: return (slot){&a->wg, NULL};
    case ML_TENSOR_BQ: return (slot){NULL, &a->bq};
    case ML_TENSOR_BK: return (slot){NULL, &a->bk};
    case ML_TENSOR_BV: return (slot){NULL, &a->bv};
    case ML_TENSOR_Q_NORM: return (slot){NULL, &a->q_norm};
    case ML_TENSOR_K_NORM: return (slot){NULL, &a->k_norm};
    case ML_TENSOR_LQKV: return (slot){&d->lqkv, NULL};
    case ML_TENSOR_LZ: return (slot){&d->lz, NULL};
    case ML_TENSOR_LB: return (slot){&d->lb, NULL};
    case ML_TENSOR_LA: return (slot){&d->la, NULL};
    case ML_TENSOR_LCONV: return (slot){NULL, &d->lconv};
    case ML_TENSOR_DT_BIAS: return (slot){NULL, &d->dt_bias};
    case ML_TENSOR_A_LOG: return (slot){NULL, &d->a_log};
    case ML_TENSOR_LNORM: return (slot){NULL, &d->lnorm};
    case ML_TENSOR_LOUT: return (slot){&d->lout, NULL};
    case ML_TENSOR_FFN_NORM: return (slot){NULL, &l->ffn_norm};
    case ML_TENSOR_W1: return (slot){&l->w1, NULL};
    case ML_TENSOR_W2: return (slot){&l->w2, NULL};
    case ML_TENSOR_W3: return (slot){&l->w3, NULL};
    case ML_TENSOR_POST_ATTN_NORM: return (slot){NULL, &l->post_attn_norm};
    case ML_TENSOR_POST_FFN_NORM: return (slot){NULL, &l->post_ffn_norm};
    default: assert(false && "a tensor outside the layers"); return (slot){NULL, NULL};
  }
}

static slot find_slot(ml_model *model, const ml_array *array) {
  switch (array->tensor) {
    case ML_TENSOR_TOK_EMB: return (slot){&model->tok_emb, NULL};
    case ML_TENSOR_FINAL_NORM: return (slot){NULL, &model->final_norm};
    case ML_TENSOR_WCLS: return (slot){&model->wcls, NULL};
    case ML_TENSOR_EMBED_PROJ: return (slot){&model->embed_proj, NULL};
    case ML_TENSOR_HEAD_PROJ: return (slot){&model->head_proj, NULL};
    default: return layer_slot(&model->layers[array->layer], array->tensor);
  }
}

ml_weight_type ml_weight_type_of(ml_element element) {
  switch (element) {
    case ML_ELEMENT_Q8: return ML_Q8_0;
    case ML_ELEMENT_Q4: return ML_Q4_0;
    case ML_ELEMENT_INT2: return ML_INT2;
    default: return ML_F16;
  }
}

static void bind_array(ml_model *model, const ml_array *array, ml_element element, ml_layout layout,
                       const void *place) {
  slot s = find_slot(model, array);
  if (s.vector)
    *s.vector = place;
  else if (ml_is_scales(element))
    s.matrix->scales = place;
  else
    *s.matrix = (ml_matrix){.type = ml_weight_type_of(element),
                            .layout = layout,
                            .rows = (uint32_t)array->rows,
                            .cols = (uint32_t)array->cols,
                            .quants = place};
}

/* Halves have one layout only. */
ml_layout ml_array_layout(const ml_binding *binding, const ml_array *array) {
  return array->element == ML_ELEMENT_F16 ? ML_LAYOUT_PACKED : binding->layout;
}

void ml_bind_arrays(ml_model *model, ml_array_source source, const ml_binding *binding, ml_arena *arena) {
  ml_array array;
  while (source.next(source.walk, &array)) {
    if (array.element == ML_ELEMENT_U8) continue; /* the layer flags: taken over by ml_layers_from_mlb */
    ml_array kept = array;                        /* as it is in memory */
    if (ml_becomes_f16(binding, &array)) {
      if (ml_is_scales(array.element)) continue;
      kept.element = ML_ELEMENT_F16;
    }
    ml_layout layout = ml_array_layout(binding, &kept);
    bool in_place = binding->mapped && kept.element == array.element && ml_fill_as_stored(&array, layout);
    const void *place =
        in_place ? binding->mapped + array.offset : ml_arena_take(arena, ml_fill_size(&kept, layout), 1);
    if (arena->base) bind_array(model, &array, kept.element, layout, place);
  }
}

ml_matrix *ml_array_matrix(ml_model *model, const ml_array *array) { return find_slot(model, array).matrix; }

void *ml_array_place(const ml_model *model, const ml_array *array) {
  slot s = find_slot((ml_model *)(uintptr_t)model, array); /* only read here */
  const void *place = s.vector                       ? (const void *)*s.vector
                      : ml_is_scales(array->element) ? (const void *)s.matrix->scales
                                                     : (const void *)s.matrix->quants;
  return (void *)(uintptr_t)place;
}
