/* mlb.h - the .mlb model file: bytes to a validated header, the walk over its arrays, and a push parser.
 *
 *   offset 0      256        256 + flags
 *   +------------+----------+---------+------------+-----+-----------+
 *   | header 256 | [flags]  | tok_emb | layer 0 …  |     | wcls      |   every array starts at a multiple of 64;
 *   +------------+----------+---------+------------+-----+-----------+   a quantized matrix is two arrays: q, d
 *
 * This file knows bytes, limits and statuses, and nothing of what the numbers mean to the forward pass.
 * The law is the format document (tables "Header", "Body", "Validation") and docs/FORMAT-notes.md. */
#ifndef ML_FORMAT_MLB_H
#define ML_FORMAT_MLB_H

#include "format/array.h"

#define ML_MLB_HEADER_SIZE 256
#define ML_MLB_ALIGNMENT 64
#define ML_MLB_BLOCK 32 /* weights that share one scale */

enum { ML_MLB_Q8_0 = 1, ML_MLB_Q4_0 = 2 };
enum { ML_MLB_ROPE_PLAIN, ML_MLB_ROPE_LLAMA3, ML_MLB_ROPE_LINEAR, ML_MLB_ROPE_YARN };
enum { ML_MLB_ACT_SILU, ML_MLB_ACT_GELU };
enum { ML_MLB_LAYER_WINDOW = 1, ML_MLB_LAYER_LOCAL_ROPE = 2, ML_MLB_LAYER_NOPE = 4, ML_MLB_LAYER_LINEAR = 8 };

/* The header's fields by their names in the format document, as stored. */
typedef struct ml_mlb_header {
  uint32_t dim, n_layers, n_heads, n_kv_heads, hidden_dim, vocab, max_seq;
  float rope_theta, norm_eps;
  uint32_t wtype, shared_classifier;
  uint32_t rope_type;
  float rope_factor, rope_low_freq_factor, rope_high_freq_factor;
  uint32_t rope_orig_max_seq;
  uint32_t q8_mask, qkv_bias;
  uint32_t head_dim; /* as stored; 0 means dim / n_heads, see head_size */
  uint32_t qk_norm;
  float rope_attn_factor;
  uint32_t sliding_window, layer_flags;
  float rope_local_theta;
  uint32_t act, post_norms;
  float embed_scale, attn_scale;
  uint32_t scale_f16;
  float attn_softcap, final_softcap;
  uint32_t rot_dim, attn_gate;
  uint32_t lin_k_heads, lin_v_heads, lin_k_dim, lin_v_dim, lin_conv;

  /* derived; valid once the header is checked */
  uint32_t head_size;     /* head_dim, or dim / n_heads */
  uint32_t q_dim, kv_dim; /* head_size x n_heads, head_size x n_kv_heads */
  uint64_t lin_channels;  /* 2 x lin_k_heads x lin_k_dim + lin_value_dim; 0 when lin_k_heads is */
  uint64_t lin_value_dim; /* lin_v_heads x lin_v_dim; 0 when lin_k_heads is. Both can pass 32 bits: each
                              factor may be 65536, and sizes of such files must still be counted right */
} ml_mlb_header;

/* Reads and checks the first bytes of a file: `size` may be less than the header's 256, which is an error.
 * Statuses and their order as the format document and docs/FORMAT-notes.md say: FORMAT rows first, then
 * SHAPE rows. `header` is untouched on failure. */
ml_status ml_mlb_read_header(ml_mlb_header *header, const uint8_t *bytes, uint64_t size, ml_error *error);

/* Checks the per-layer flags, `n_layers` bytes at offset 256 (only if header->layer_flags). */
ml_status ml_mlb_check_flags(const ml_mlb_header *header, const uint8_t *flags, ml_error *error);

/* ---------------------------------------------------------------- the walk over the arrays */

typedef struct ml_mlb_walk {
  const ml_mlb_header *header;
  const uint8_t *flags; /* n_layers bytes, or NULL without layer flags */
  enum { ML_MLB_OPENING, ML_MLB_LAYERS, ML_MLB_CLOSING, ML_MLB_END } section;
  uint32_t layer;  /* within ML_MLB_LAYERS */
  uint32_t slot;   /* position in the section's (the layer's) list of tensors */
  bool scales;     /* the next array is the scales of the matrix just given */
  uint64_t offset; /* of the next array; sticks at UINT64_MAX */
} ml_mlb_walk;

/* Begins after the header. `flags` may be NULL only if the header has no layer flags. The first array given
 * is ML_TENSOR_FLAGS when the header has them. Header and flags must be checked and outlive the walk. */
ml_mlb_walk ml_mlb_walk_begin(const ml_mlb_header *header, const uint8_t *flags);
/* The next array in file order; false after the last one. */
bool ml_mlb_walk_next(ml_mlb_walk *walk, ml_array *array);

/* Bytes of the whole file as the header and flags imply it, without the padding after the last array. */
uint64_t ml_mlb_file_size(const ml_mlb_header *header, const uint8_t *flags);

/* ML_E_FORMAT with both numbers if `size` is less than ml_mlb_file_size. */
ml_status ml_mlb_check_size(const ml_mlb_header *header, const uint8_t *flags, uint64_t size,
                            ml_error *error);

/* Refuses the quant -128 in `size` bytes of a Q8_0 array that starts at file offset `offset`. */
ml_status ml_mlb_check_q8(const uint8_t *quants, size_t size, uint64_t offset, ml_error *error);

/* ---------------------------------------------------------------- push parser */

/* Takes what the parser gives. The parser calls `begin` once when header and flags are checked (before it
 * has looked at any array), then `bytes` for consecutive pieces of every array but the flags, in file order.
 * `position` counts the bytes of the array that came before. A status other than ML_OK ends the parse with
 * it. Header, flags and array are the parser's. */
typedef struct ml_mlb_sink {
  ml_status (*begin)(void *user, const ml_mlb_header *header, const uint8_t *flags, ml_error *error);
  ml_status (*bytes)(void *user, const ml_array *array, uint64_t position, const uint8_t *bytes, size_t size,
                     ml_error *error);
  void *user;
} ml_mlb_sink;

typedef struct ml_mlb_parser {
  ml_mlb_sink sink;
  ml_allocator allocator;
  uint64_t total_size; /* of the source, 0 when unknown */
  uint64_t position;   /* bytes taken so far */
  enum { ML_MLB_IN_HEADER, ML_MLB_IN_FLAGS, ML_MLB_IN_ARRAYS, ML_MLB_AFTER_ARRAYS } stage;
  uint8_t header_bytes[ML_MLB_HEADER_SIZE];
  ml_mlb_header header;
  uint8_t *flags; /* n_layers bytes, owned; NULL without layer flags */
  ml_mlb_walk walk;
  ml_array array;    /* the one being filled; afterwards the last one */
  ml_status failure; /* of an earlier push: nothing is taken any more */
} ml_mlb_parser;

/* `total_size` is what the source holds (0: unknown): a header that implies more is refused before the sink
 * sees it. Nothing is allocated until the header is checked, and then only the flags. */
void ml_mlb_parser_init(ml_mlb_parser *parser, const ml_mlb_sink *sink, const ml_allocator *allocator,
                        uint64_t total_size);
ml_status ml_mlb_parser_push(ml_mlb_parser *parser, const uint8_t *bytes, size_t size, ml_error *error);
/* Says whether the file was complete: ML_E_FORMAT with both sizes if not. */
ml_status ml_mlb_parser_finish(ml_mlb_parser *parser, ml_error *error);
/* Bytes after the last array and its padding. */
uint64_t ml_mlb_parser_trailing(const ml_mlb_parser *parser);
void ml_mlb_parser_free(ml_mlb_parser *parser);

#endif
