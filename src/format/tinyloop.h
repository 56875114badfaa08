/* tinyloop.h - the .tinyloop model file: bytes to a validated header, the walk over its arrays, and a push parser.
 *
 *   offset 0        36, 40 or 44                                   no padding anywhere, and nothing behind
 *   +--------------+--------------+-------+-----------------+------------+-----------+
 *   | header       | embedding    | own   | the shared      | final_norm | head      |
 *   | 9 to 11 u32  | 1 or 2       | blocks| block           |            | 1 or 2    |
 *   +--------------+--------------+-------+-----------------+------------+-----------+
 *
 * docs/TINYLOOP.md has every byte, and says what of it the format document fixes. */
#ifndef ML_FORMAT_TINYLOOP_H
#define ML_FORMAT_TINYLOOP_H

#include "format/array.h"

#define ML_TINYLOOP_MAGIC 0x504C4C54u /* "TLLP" */
#define ML_TINYLOOP_MAX_HEADER 44

enum {
  ML_TINYLOOP_MAX_SEQ = 4096
}; /* the format has no limit; cards of models say how far they were trained */
#define ML_TINYLOOP_ROPE_THETA 10000.0f
#define ML_TINYLOOP_NORM_EPS 1e-5f

/* The header's fields by their names in the format document. */
typedef struct ml_tinyloop_header {
  uint32_t version, dim, n_heads, ffn_dim, vocab_size, embed_factor_dim, n_pre_blocks, default_loops;
  uint32_t bits, group_size; /* as stored, or what older versions imply */
  uint32_t size;             /* bytes of the header */
} ml_tinyloop_header;

/* Reads and checks the header in a file's first bytes: what makes them no such file (FORMAT) first, then single
 * dimensions, then how they fit together (SHAPE). `header` is untouched on failure. */
ml_status ml_tinyloop_read_header(ml_tinyloop_header *header, const uint8_t *bytes, uint64_t size,
                                  ml_error *error);

typedef struct ml_tinyloop_walk {
  const ml_tinyloop_header *header;
  uint32_t section; /* embedding, blocks, head: see tinyloop.c */
  uint32_t block;
  uint32_t slot;   /* position in the section's list of tensors */
  bool scales;     /* the next array is the scales of the matrix just given */
  uint64_t offset; /* of the next array; sticks at UINT64_MAX */
} ml_tinyloop_walk;

/* As ml_mlb_walk_begin and ml_mlb_walk_next. A tensor's layer is its block; the shared one comes last. */
ml_tinyloop_walk ml_tinyloop_walk_begin(const ml_tinyloop_header *header);
bool ml_tinyloop_walk_next(ml_tinyloop_walk *walk, ml_array *array);

/* Bytes of the whole file. */
uint64_t ml_tinyloop_file_size(const ml_tinyloop_header *header);

/* ---------------------------------------------------------------- push parser */

/* Takes what the parser gives: see ml_mlb_sink. */
typedef struct ml_tinyloop_sink {
  ml_status (*begin)(void *user, const ml_tinyloop_header *header, ml_error *error);
  ml_status (*bytes)(void *user, const ml_array *array, uint64_t position, const uint8_t *bytes, size_t size,
                     ml_error *error);
  void *user;
} ml_tinyloop_sink;

typedef struct ml_tinyloop_parser {
  ml_tinyloop_sink sink;
  uint64_t total_size; /* of the source, 0 when unknown */
  uint64_t position;   /* bytes taken so far */
  enum { ML_TINYLOOP_IN_HEADER, ML_TINYLOOP_IN_ARRAYS, ML_TINYLOOP_AT_END } stage;
  uint8_t header_bytes[ML_TINYLOOP_MAX_HEADER];
  ml_tinyloop_header header;
  ml_tinyloop_walk walk;
  ml_array array; /* the one being filled */
} ml_tinyloop_parser;

/* `total_size` is what the source holds (0: unknown): one that is not exactly what the header implies is refused before
 * the sink sees it. Nothing is allocated here. After a failure the parser is not to be pushed again. */
void ml_tinyloop_parser_init(ml_tinyloop_parser *parser, const ml_tinyloop_sink *sink, uint64_t total_size);
ml_status ml_tinyloop_parser_push(ml_tinyloop_parser *parser, const uint8_t *bytes, size_t size,
                                  ml_error *error);
/* Says whether the file was complete. */
ml_status ml_tinyloop_parser_finish(ml_tinyloop_parser *parser, ml_error *error);

#endif
