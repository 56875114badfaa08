/* mlb_walk.c - which arrays a file holds, in which order, and where.
 *
 * The format document's table "Body" is here as data: one list of tensors for the start of the file, one for
 * each kind of layer, one for the end. The walk goes through them with a constant amount of work a step. */
#include <assert.h>

#include "base/bytes.h"
#include "base/error.h"
#include "format/mlb.h"

/* ---------------------------------------------------------------- the body as tables */

/* Sizes by name; see size_of. */
typedef enum extent_name {
  ONE,
  N_LAYERS,
  DIM,
  HIDDEN_DIM,
  VOCAB,
  HEAD_DIM,
  Q_DIM,
  KV_DIM,
  LIN_CHANNELS,
  LIN_VALUE_DIM,
  LIN_V_HEADS,
  LIN_V_DIM,
  LIN_CONV
} extent_name;

/* How a tensor is stored: plain, or quantized as its matrix class. The classes' values are the bits of q8_mask. */
typedef enum storage_class {
  BYTES = -3,
  FLOATS = -2,
  ALWAYS_Q8_0 = -1,
  CLASS_TOK_EMB = 1,
  CLASS_WCLS = 2,
  CLASS_WQ = 4,
  CLASS_WV = 8,
  CLASS_WO = 16,
  CLASS_W1 = 32,
  CLASS_W2 = 64
} storage_class;

typedef struct tensor_spec {
  ml_tensor id;
  storage_class storage;
  extent_name rows, cols;
  bool (*present)(const ml_mlb_header *header); /* NULL: always */
} tensor_spec;

static bool has_flags(const ml_mlb_header *header) { return header->layer_flags != 0; }
static bool has_gate(const ml_mlb_header *header) { return header->attn_gate != 0; }
static bool has_bias(const ml_mlb_header *header) { return header->qkv_bias != 0; }
static bool has_qk_norm(const ml_mlb_header *header) { return header->qk_norm != 0; }
static bool has_post_norms(const ml_mlb_header *header) { return header->post_norms != 0; }
static bool has_wcls(const ml_mlb_header *header) { return header->shared_classifier == 0; }

static const tensor_spec opening[] = {
    {ML_TENSOR_FLAGS, BYTES, ONE, N_LAYERS, has_flags},
    {ML_TENSOR_TOK_EMB, CLASS_TOK_EMB, VOCAB, DIM, NULL},
};

#define FFN_AND_POST_NORMS                                                                              \
  {ML_TENSOR_FFN_NORM, FLOATS, ONE, DIM, NULL}, {ML_TENSOR_W1, CLASS_W1, HIDDEN_DIM, DIM, NULL},        \
      {ML_TENSOR_W2, CLASS_W2, DIM, HIDDEN_DIM, NULL}, {ML_TENSOR_W3, CLASS_W1, HIDDEN_DIM, DIM, NULL}, \
      {ML_TENSOR_POST_ATTN_NORM, FLOATS, ONE, DIM, has_post_norms}, {                                   \
    ML_TENSOR_POST_FFN_NORM, FLOATS, ONE, DIM, has_post_norms                                           \
  }

static const tensor_spec attention_layer[] = {
    {ML_TENSOR_ATTN_NORM, FLOATS, ONE, DIM, NULL},
    {ML_TENSOR_WQ, CLASS_WQ, Q_DIM, DIM, NULL},
    {ML_TENSOR_WK, CLASS_WQ, KV_DIM, DIM, NULL},
    {ML_TENSOR_WV, CLASS_WV, KV_DIM, DIM, NULL},
    {ML_TENSOR_WO, CLASS_WO, DIM, Q_DIM, NULL},
    {ML_TENSOR_WG, CLASS_WQ, Q_DIM, DIM, has_gate},
    {ML_TENSOR_BQ, FLOATS, ONE, Q_DIM, has_bias},
    {ML_TENSOR_BK, FLOATS, ONE, KV_DIM, has_bias},
    {ML_TENSOR_BV, FLOATS, ONE, KV_DIM, has_bias},
    {ML_TENSOR_Q_NORM, FLOATS, ONE, HEAD_DIM, has_qk_norm},
    {ML_TENSOR_K_NORM, FLOATS, ONE, HEAD_DIM, has_qk_norm},
    FFN_AND_POST_NORMS,
};

static const tensor_spec linear_layer[] = {
    {ML_TENSOR_ATTN_NORM, FLOATS, ONE, DIM, NULL},
    {ML_TENSOR_LQKV, CLASS_WQ, LIN_CHANNELS, DIM, NULL},
    {ML_TENSOR_LZ, CLASS_WV, LIN_VALUE_DIM, DIM, NULL},
    {ML_TENSOR_LB, ALWAYS_Q8_0, LIN_V_HEADS, DIM, NULL},
    {ML_TENSOR_LA, ALWAYS_Q8_0, LIN_V_HEADS, DIM, NULL},
    {ML_TENSOR_LCONV, FLOATS, LIN_CHANNELS, LIN_CONV, NULL},
    {ML_TENSOR_DT_BIAS, FLOATS, ONE, LIN_V_HEADS, NULL},
    {ML_TENSOR_A_LOG, FLOATS, ONE, LIN_V_HEADS, NULL},
    {ML_TENSOR_LNORM, FLOATS, ONE, LIN_V_DIM, NULL},
    {ML_TENSOR_LOUT, CLASS_WO, DIM, LIN_VALUE_DIM, NULL},
    FFN_AND_POST_NORMS,
};

static const tensor_spec closing[] = {
    {ML_TENSOR_FINAL_NORM, FLOATS, ONE, DIM, NULL},
    {ML_TENSOR_WCLS, CLASS_WCLS, VOCAB, DIM, has_wcls},
};

/* ---------------------------------------------------------------- one tensor's arrays */

static uint64_t size_of(const ml_mlb_header *header, extent_name extent) {
  switch (extent) {
    case ONE: return 1;
    case N_LAYERS: return header->n_layers;
    case DIM: return header->dim;
    case HIDDEN_DIM: return header->hidden_dim;
    case VOCAB: return header->vocab;
    case HEAD_DIM: return header->head_size;
    case Q_DIM: return header->q_dim;
    case KV_DIM: return header->kv_dim;
    case LIN_CHANNELS: return header->lin_channels;
    case LIN_VALUE_DIM: return header->lin_value_dim;
    case LIN_V_HEADS: return header->lin_v_heads;
    case LIN_V_DIM: return header->lin_v_dim;
    case LIN_CONV: return header->lin_conv;
  }
  return 0;
}

/* One table serves as embedding and classifier when they are shared: either class's bit makes it Q8_0. */
static bool is_q8_0(const ml_mlb_header *header, storage_class storage) {
  if (header->wtype == ML_MLB_Q8_0 || storage == ALWAYS_Q8_0) return true;
  uint32_t bits = (uint32_t)storage;
  if (storage == CLASS_TOK_EMB && header->shared_classifier) bits |= CLASS_WCLS;
  return (header->q8_mask & bits) != 0;
}

static ml_element element_of(const ml_mlb_header *header, storage_class storage, bool scales) {
  if (storage == BYTES) return ML_ELEMENT_U8;
  if (storage == FLOATS) return ML_ELEMENT_F32;
  if (scales) return header->scale_f16 ? ML_ELEMENT_D_F16 : ML_ELEMENT_D_F32;
  return is_q8_0(header, storage) ? ML_ELEMENT_Q8 : ML_ELEMENT_Q4;
}

/* Of an array that belongs to `n` weights; matrices have whole blocks, so nothing is rounded. */
static uint64_t bytes_of(ml_element element, uint64_t n) {
  switch (element) {
    case ML_ELEMENT_U8: return n;
    case ML_ELEMENT_F32: return ml_mul_sizes(n, 4);
    case ML_ELEMENT_Q8: return n;
    case ML_ELEMENT_Q4: return n / 2;
    case ML_ELEMENT_D_F32: return ml_mul_sizes(n / ML_MLB_BLOCK, 4);
    case ML_ELEMENT_D_F16: return ml_mul_sizes(n / ML_MLB_BLOCK, 2);
    default: break; /* not in this format */
  }
  return 0;
}

/* ---------------------------------------------------------------- the walk */

typedef struct tensor_list {
  const tensor_spec *tensors;
  uint32_t n;
} tensor_list;

#define LIST(table) ((tensor_list){table, sizeof(table) / sizeof(table)[0]})

static tensor_list current_list(const ml_mlb_walk *walk) {
  switch (walk->section) {
    case ML_MLB_OPENING: return LIST(opening);
    case ML_MLB_LAYERS:
      if (walk->flags && (walk->flags[walk->layer] & ML_MLB_LAYER_LINEAR)) return LIST(linear_layer);
      return LIST(attention_layer);
    case ML_MLB_CLOSING: return LIST(closing);
    case ML_MLB_END: break;
  }
  return (tensor_list){NULL, 0};
}

static void next_list(ml_mlb_walk *walk) {
  walk->slot = 0;
  if (walk->section == ML_MLB_OPENING) {
    walk->section = ML_MLB_LAYERS;
  } else if (walk->section == ML_MLB_CLOSING) {
    walk->section = ML_MLB_END;
  } else if (walk->section == ML_MLB_LAYERS && ++walk->layer == walk->header->n_layers) {
    walk->section = ML_MLB_CLOSING;
  }
}

/* The tensor whose array comes next, or NULL at the end. */
static const tensor_spec *current_tensor(ml_mlb_walk *walk) {
  while (walk->section != ML_MLB_END) {
    tensor_list list = current_list(walk);
    for (; walk->slot < list.n; walk->slot++) {
      const tensor_spec *tensor = &list.tensors[walk->slot];
      if (!tensor->present || tensor->present(walk->header)) return tensor;
    }
    next_list(walk);
  }
  return NULL;
}

ml_mlb_walk ml_mlb_walk_begin(const ml_mlb_header *header, const uint8_t *flags) {
  assert(flags || !header->layer_flags);
  return (ml_mlb_walk){.header = header,
                       .flags = header->layer_flags ? flags : NULL,
                       .section = ML_MLB_OPENING,
                       .offset = ML_MLB_HEADER_SIZE};
}

bool ml_mlb_walk_next(ml_mlb_walk *walk, ml_array *array) {
  const tensor_spec *tensor = current_tensor(walk);
  if (!tensor) return false;
  array->tensor = tensor->id;
  array->layer = walk->section == ML_MLB_LAYERS ? (int32_t)walk->layer : -1;
  array->element = element_of(walk->header, tensor->storage, walk->scales);
  array->rows = size_of(walk->header, tensor->rows);
  array->cols = size_of(walk->header, tensor->cols);
  array->group = ml_is_scales(array->element) ? ML_MLB_BLOCK : 0;
  array->offset = walk->offset;
  array->size = bytes_of(array->element, ml_mul_sizes(array->rows, array->cols));

  walk->offset = ml_round_up(ml_add_sizes(walk->offset, array->size), ML_MLB_ALIGNMENT);
  walk->scales = ml_is_quants(array->element);
  if (!walk->scales) walk->slot++;
  return true;
}

uint64_t ml_mlb_file_size(const ml_mlb_header *header, const uint8_t *flags) {
  ml_mlb_walk walk = ml_mlb_walk_begin(header, flags);
  ml_array array;
  uint64_t end = ML_MLB_HEADER_SIZE;
  while (ml_mlb_walk_next(&walk, &array)) end = ml_add_sizes(array.offset, array.size);
  return end;
}

ml_status ml_mlb_check_size(const ml_mlb_header *header, const uint8_t *flags, uint64_t size,
                            ml_error *error) {
  uint64_t needed = ml_mlb_file_size(header, flags);
  if (size >= needed) return ML_OK;
  return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                 "is less than the arrays that the header implies need:", ml_uint(needed), size);
}
