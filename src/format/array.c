#include "format/array.h"

const char *ml_tensor_name(ml_tensor tensor) {
  static const char *const names[ML_N_TENSORS] = {
      [ML_TENSOR_FLAGS] = "layer flags",
      [ML_TENSOR_TOK_EMB] = "tok_emb",
      [ML_TENSOR_ATTN_NORM] = "attn_norm",
      [ML_TENSOR_WQ] = "wq",
      [ML_TENSOR_WK] = "wk",
      [ML_TENSOR_WV] = "wv",
      [ML_TENSOR_WO] = "wo",
      [ML_TENSOR_WG] = "wg",
      [ML_TENSOR_BQ] = "bq",
      [ML_TENSOR_BK] = "bk",
      [ML_TENSOR_BV] = "bv",
      [ML_TENSOR_Q_NORM] = "q_norm",
      [ML_TENSOR_K_NORM] = "k_norm",
      [ML_TENSOR_LQKV] = "lqkv",
      [ML_TENSOR_LZ] = "lz",
      [ML_TENSOR_LB] = "lb",
      [ML_TENSOR_LA] = "la",
      [ML_TENSOR_LCONV] = "lconv",
      [ML_TENSOR_DT_BIAS] = "dt_bias",
      [ML_TENSOR_A_LOG] = "A_log",
      [ML_TENSOR_LNORM] = "lnorm",
      [ML_TENSOR_LOUT] = "lout",
      [ML_TENSOR_FFN_NORM] = "ffn_norm",
      [ML_TENSOR_W1] = "w1",
      [ML_TENSOR_W2] = "w2",
      [ML_TENSOR_W3] = "w3",
      [ML_TENSOR_POST_ATTN_NORM] = "post_attn_norm",
      [ML_TENSOR_POST_FFN_NORM] = "post_ffn_norm",
      [ML_TENSOR_FINAL_NORM] = "final_norm",
      [ML_TENSOR_WCLS] = "wcls",
      [ML_TENSOR_EMBED_PROJ] = "embed_proj",
      [ML_TENSOR_HEAD_PROJ] = "head_proj",
  };
  return (unsigned)tensor < ML_N_TENSORS ? names[tensor] : "unknown tensor";
}
