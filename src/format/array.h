/* array.h - what a model file is made of, whatever its format: arrays of tensors, one after the other. */
#ifndef ML_FORMAT_ARRAY_H
#define ML_FORMAT_ARRAY_H

#include "ml.h"

typedef enum ml_tensor {
  ML_TENSOR_FLAGS, /* the layer flags themselves: u8 */
  ML_TENSOR_TOK_EMB,
  ML_TENSOR_ATTN_NORM,
  ML_TENSOR_WQ,
  ML_TENSOR_WK,
  ML_TENSOR_WV,
  ML_TENSOR_WO,
  ML_TENSOR_WG,
  ML_TENSOR_BQ,
  ML_TENSOR_BK,
  ML_TENSOR_BV,
  ML_TENSOR_Q_NORM,
  ML_TENSOR_K_NORM,
  ML_TENSOR_LQKV,
  ML_TENSOR_LZ,
  ML_TENSOR_LB,
  ML_TENSOR_LA,
  ML_TENSOR_LCONV,
  ML_TENSOR_DT_BIAS,
  ML_TENSOR_A_LOG,
  ML_TENSOR_LNORM,
  ML_TENSOR_LOUT,
  ML_TENSOR_FFN_NORM,
  ML_TENSOR_W1,
  ML_TENSOR_W2,
  ML_TENSOR_W3,
  ML_TENSOR_POST_ATTN_NORM,
  ML_TENSOR_POST_FFN_NORM,
  ML_TENSOR_FINAL_NORM,
  ML_TENSOR_WCLS,
  ML_TENSOR_EMBED_PROJ, /* from a factored embedding to the width, and back */
  ML_TENSOR_HEAD_PROJ,
  ML_N_TENSORS
} ml_tensor;

/* As in the .mlb format document: "tok_emb", "wq", … A .tinyloop file's embed_weight is tok_emb, its head_weight wcls. */
const char *ml_tensor_name(ml_tensor tensor);

typedef enum ml_element {
  ML_ELEMENT_U8,    /* layer flags */
  ML_ELEMENT_F32,   /* norms, biases, convolution … */
  ML_ELEMENT_Q8,    /* quants of Q8_0: int8, never -128 */
  ML_ELEMENT_Q4,    /* quants of Q4_0: two to a byte */
  ML_ELEMENT_INT2,  /* four to a byte */
  ML_ELEMENT_F16,   /* a matrix of halves, without scales */
  ML_ELEMENT_D_F32, /* scales of the matrix before */
  ML_ELEMENT_D_F16
} ml_element;

/* One array of the file. A quantized matrix gives two in a row, quants then scales. */
typedef struct ml_array {
  ml_tensor tensor;
  int32_t layer; /* -1 outside the layers */
  ml_element element;
  uint64_t rows, cols;   /* of the tensor; a vector has rows = 1 */
  uint32_t group;        /* of scales: weights of a row that share one, a multiple of 32; else 0 */
  uint64_t offset, size; /* bytes in the file, without padding */
} ml_array;

static inline bool ml_is_quants(ml_element element) {
  return element == ML_ELEMENT_Q8 || element == ML_ELEMENT_Q4 || element == ML_ELEMENT_INT2;
}

static inline bool ml_is_scales(ml_element element) {
  return element == ML_ELEMENT_D_F32 || element == ML_ELEMENT_D_F16;
}

/* The arrays of a file in its order, once: `next` gives one, or false after the last. */
typedef struct ml_array_source {
  bool (*next)(void *walk, ml_array *array);
  void *walk;
} ml_array_source;

#endif
