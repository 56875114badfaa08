#include "format/tinyloop.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/error.h"

enum {
  BLOCK = 32,
  MAX_DIM = 65536,
  MAX_VOCAB = 1 << 24,
  MAX_PRE_BLOCKS = 255,
  MAX_LOOPS = 64,
  IMPLIED_BITS = 4,  /* by version 1 */
  IMPLIED_GROUP = 32 /* by versions 1 and 2 */
};

/* ---------------------------------------------------------------- header */

/* In file order, from offset 8 on. */
typedef enum field_id {
  DIM,
  N_HEADS,
  FFN_DIM,
  VOCAB_SIZE,
  EMBED_FACTOR_DIM,
  N_PRE_BLOCKS,
  DEFAULT_LOOPS,
  BITS,
  GROUP_SIZE,
  N_FIELDS,
  ONE = N_FIELDS /* as the extent of a tensor */
} field_id;

enum { FIRST_FIELD = 8 };

typedef enum rule_test { AT_LEAST, AT_MOST, MULTIPLE_OF, N_TESTS } rule_test;

/* What must hold of one field; the first broken rule, in this order, is the answer. */
static const struct {
  field_id field;
  rule_test test;
  uint32_t limit;
  ml_status status;
} rules[] = {
    {DEFAULT_LOOPS, AT_LEAST, 1, ML_E_FORMAT},
    {DEFAULT_LOOPS, AT_MOST, MAX_LOOPS, ML_E_FORMAT},
    {N_PRE_BLOCKS, AT_MOST, MAX_PRE_BLOCKS, ML_E_FORMAT},
    {DIM, AT_LEAST, 1, ML_E_SHAPE},
    {N_HEADS, AT_LEAST, 1, ML_E_SHAPE},
    {FFN_DIM, AT_LEAST, 1, ML_E_SHAPE},
    {VOCAB_SIZE, AT_LEAST, 1, ML_E_SHAPE},
    {GROUP_SIZE, AT_LEAST, 1, ML_E_SHAPE},
    {DIM, AT_MOST, MAX_DIM, ML_E_SHAPE},
    {N_HEADS, AT_MOST, MAX_DIM, ML_E_SHAPE},
    {FFN_DIM, AT_MOST, MAX_DIM, ML_E_SHAPE},
    {VOCAB_SIZE, AT_MOST, MAX_VOCAB, ML_E_SHAPE},
    {EMBED_FACTOR_DIM, AT_MOST, MAX_DIM, ML_E_SHAPE},
    {GROUP_SIZE, AT_MOST, MAX_DIM, ML_E_SHAPE},
    {DIM, MULTIPLE_OF, BLOCK, ML_E_SHAPE},
    {FFN_DIM, MULTIPLE_OF, BLOCK, ML_E_SHAPE},
    {EMBED_FACTOR_DIM, MULTIPLE_OF, BLOCK, ML_E_SHAPE},
    {GROUP_SIZE, MULTIPLE_OF, BLOCK, ML_E_SHAPE},
};

static const char *const names[N_FIELDS] = {
    "dim",          "n_heads",       "ffn_dim", "vocab_size", "embed_factor_dim",
    "n_pre_blocks", "default_loops", "bits",    "group_size"};

static ml_status fail_field(const uint32_t *values, field_id field, ml_status status, const char *rule,
                            uint32_t limit, ml_error *error) {
  return ml_fail(error, status, names[field], ml_uint(values[field]), rule, ml_uint(limit),
                 FIRST_FIELD + 4 * (uint64_t)field);
}

static bool holds(uint32_t value, rule_test test, uint32_t limit) {
  return test == AT_LEAST ? value >= limit : test == AT_MOST ? value <= limit : value % limit == 0;
}

static ml_status check_rules(const uint32_t *values, ml_error *error) {
  static const char *const texts[N_TESTS] = {"must be at least", "must be at most", "must be a multiple of"};
  if (values[BITS] != 2 && values[BITS] != 4)
    return fail_field(values, BITS, ML_E_FORMAT, "must be 2 or", 4, error);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (!holds(values[rules[i].field], rules[i].test, rules[i].limit))
      return fail_field(values, rules[i].field, rules[i].status, texts[rules[i].test], rules[i].limit, error);
  return ML_OK;
}

/* Fields that another one divides; n_heads also divides dim into heads of an even size. */
static const struct {
  field_id field, divisor;
  const char *text;
} relations[] = {
    {DIM, N_HEADS, "must be a multiple of n_heads:"},
    {DIM, GROUP_SIZE, "must be a multiple of group_size:"},
    {FFN_DIM, GROUP_SIZE, "must be a multiple of group_size:"},
};

static ml_status check_relations(const uint32_t *values, ml_error *error) {
  for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
    if (values[relations[i].field] % values[relations[i].divisor])
      return fail_field(values, relations[i].field, ML_E_SHAPE, relations[i].text,
                        values[relations[i].divisor], error);
  if (values[DIM] / values[N_HEADS] % 2)
    return fail_field(values, N_HEADS, ML_E_SHAPE, "must make heads of an even size, not of",
                      values[DIM] / values[N_HEADS], error);
  return ML_OK;
}

/* Bytes of the header as far as the first `size` bytes tell; with 8 of them, all. */
static ml_status header_size(uint32_t *out, const uint8_t *bytes, uint64_t size, ml_error *error) {
  *out = 8;
  if (size < 4) return ML_OK;
  if (ml_read_u32(bytes) != ML_TINYLOOP_MAGIC)
    return ml_fail(error, ML_E_FORMAT, "magic", ml_uint(ml_read_u32(bytes)), "must be",
                   ml_uint(ML_TINYLOOP_MAGIC), 0);
  if (size < 8) return ML_OK;
  uint32_t version = ml_read_u32(bytes + 4);
  if (version < 1 || version > 3)
    return ml_fail(error, ML_E_FORMAT, "version", ml_uint(version), "must be at least 1 and at most",
                   ml_uint(3), 4);
  *out = 32 + 4 * version;
  return ML_OK;
}

ml_status ml_tinyloop_read_header(ml_tinyloop_header *header, const uint8_t *bytes, uint64_t size,
                                  ml_error *error) {
  uint32_t needed, values[N_FIELDS];
  ML_TRY(header_size(&needed, bytes, size, error));
  if (size < needed)
    return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                   "must hold the header, bytes:", ml_uint(needed), size);
  values[BITS] = IMPLIED_BITS;
  values[GROUP_SIZE] = IMPLIED_GROUP;
  for (uint32_t i = 0; i < (needed - FIRST_FIELD) / 4; i++)
    values[i] = ml_read_u32(bytes + FIRST_FIELD + 4 * (size_t)i);
  ML_TRY(check_rules(values, error));
  ML_TRY(check_relations(values, error));
  *header = (ml_tinyloop_header){.version = ml_read_u32(bytes + 4),
                                 .dim = values[DIM],
                                 .n_heads = values[N_HEADS],
                                 .ffn_dim = values[FFN_DIM],
                                 .vocab_size = values[VOCAB_SIZE],
                                 .embed_factor_dim = values[EMBED_FACTOR_DIM],
                                 .n_pre_blocks = values[N_PRE_BLOCKS],
                                 .default_loops = values[DEFAULT_LOOPS],
                                 .bits = values[BITS],
                                 .group_size = values[GROUP_SIZE],
                                 .size = needed};
  return ML_OK;
}

/* ---------------------------------------------------------------- the body as tables */

typedef struct tensor_spec {
  ml_tensor id;
  enum { FLOATS, HALVES, QUANTIZED } storage;
  field_id rows, cols;
} tensor_spec;

static const tensor_spec factored_embedding[] = {
    {ML_TENSOR_TOK_EMB, HALVES, VOCAB_SIZE, EMBED_FACTOR_DIM},
    {ML_TENSOR_EMBED_PROJ, HALVES, DIM, EMBED_FACTOR_DIM},
};
static const tensor_spec direct_embedding[] = {{ML_TENSOR_TOK_EMB, QUANTIZED, VOCAB_SIZE, DIM}};

static const tensor_spec one_block[] = {
    {ML_TENSOR_ATTN_NORM, FLOATS, ONE, DIM}, {ML_TENSOR_WQ, QUANTIZED, DIM, DIM},
    {ML_TENSOR_WK, QUANTIZED, DIM, DIM},     {ML_TENSOR_WV, QUANTIZED, DIM, DIM},
    {ML_TENSOR_WO, QUANTIZED, DIM, DIM},     {ML_TENSOR_FFN_NORM, FLOATS, ONE, DIM},
    {ML_TENSOR_W1, QUANTIZED, FFN_DIM, DIM}, {ML_TENSOR_W2, QUANTIZED, DIM, FFN_DIM},
    {ML_TENSOR_W3, QUANTIZED, FFN_DIM, DIM},
};

static const tensor_spec factored_head[] = {
    {ML_TENSOR_FINAL_NORM, FLOATS, ONE, DIM},
    {ML_TENSOR_HEAD_PROJ, HALVES, EMBED_FACTOR_DIM, DIM},
    {ML_TENSOR_WCLS, HALVES, VOCAB_SIZE, EMBED_FACTOR_DIM},
};
static const tensor_spec direct_head[] = {
    {ML_TENSOR_FINAL_NORM, FLOATS, ONE, DIM},
    {ML_TENSOR_WCLS, QUANTIZED, VOCAB_SIZE, DIM},
};

typedef struct tensor_list {
  const tensor_spec *tensors;
  uint32_t n;
} tensor_list;

#define LIST(table) ((tensor_list){table, sizeof(table) / sizeof(table)[0]})

enum { EMBEDDING, BLOCKS, HEAD, END };

static tensor_list current_list(const ml_tinyloop_walk *walk) {
  bool factored = walk->header->embed_factor_dim != 0;
  switch (walk->section) {
    case EMBEDDING: return factored ? LIST(factored_embedding) : LIST(direct_embedding);
    case BLOCKS: return LIST(one_block);
    default: return factored ? LIST(factored_head) : LIST(direct_head);
  }
}

static uint32_t extent(const ml_tinyloop_header *header, field_id field) {
  switch (field) {
    case DIM: return header->dim;
    case FFN_DIM: return header->ffn_dim;
    case VOCAB_SIZE: return header->vocab_size;
    case EMBED_FACTOR_DIM: return header->embed_factor_dim;
    default: return 1;
  }
}

/* ---------------------------------------------------------------- the walk */

ml_tinyloop_walk ml_tinyloop_walk_begin(const ml_tinyloop_header *header) {
  return (ml_tinyloop_walk){.header = header, .section = EMBEDDING, .offset = header->size};
}

static void next_tensor(ml_tinyloop_walk *walk) {
  if (++walk->slot < current_list(walk).n) return;
  walk->slot = 0;
  if (walk->section != BLOCKS || walk->block++ == walk->header->n_pre_blocks) walk->section++;
}

/* Products of at most 2^24 and 2^16 do not wrap. */
static void set_storage(const ml_tinyloop_walk *walk, const tensor_spec *spec, ml_array *array) {
  uint64_t n = array->rows * array->cols;
  array->group = 0;
  if (spec->storage == FLOATS) {
    array->element = ML_ELEMENT_F32;
    array->size = n * 4;
  } else if (spec->storage == HALVES) {
    array->element = ML_ELEMENT_F16;
    array->size = n * 2;
  } else if (walk->scales) {
    array->element = ML_ELEMENT_D_F16;
    array->group = walk->header->group_size;
    array->size = n / array->group * 2;
  } else {
    array->element = walk->header->bits == 2 ? ML_ELEMENT_INT2 : ML_ELEMENT_Q4;
    array->size = n * walk->header->bits / 8;
  }
}

bool ml_tinyloop_walk_next(ml_tinyloop_walk *walk, ml_array *array) {
  if (walk->section == END) return false;
  const tensor_spec *spec = &current_list(walk).tensors[walk->slot];
  array->tensor = spec->id;
  array->layer = walk->section == BLOCKS ? (int32_t)walk->block : -1;
  array->rows = extent(walk->header, spec->rows);
  array->cols = extent(walk->header, spec->cols);
  array->offset = walk->offset;
  set_storage(walk, spec, array);
  walk->offset += array->size;
  walk->scales = ml_is_quants(array->element);
  if (!walk->scales) next_tensor(walk);
  return true;
}

uint64_t ml_tinyloop_file_size(const ml_tinyloop_header *header) {
  ml_tinyloop_walk walk = ml_tinyloop_walk_begin(header);
  ml_array array;
  while (ml_tinyloop_walk_next(&walk, &array)) continue;
  return walk.offset;
}

/* ---------------------------------------------------------------- push parser */

static ml_status check_size(const ml_tinyloop_header *header, uint64_t size, ml_error *error) {
  uint64_t needed = ml_tinyloop_file_size(header);
  if (size == needed) return ML_OK;
  return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                 "is not what the header implies:", ml_uint(needed), size < needed ? size : needed);
}

void ml_tinyloop_parser_init(ml_tinyloop_parser *parser, const ml_tinyloop_sink *sink, uint64_t total_size) {
  *parser = (ml_tinyloop_parser){.sink = *sink, .total_size = total_size};
}

static void next_array(ml_tinyloop_parser *parser) {
  if (!ml_tinyloop_walk_next(&parser->walk, &parser->array)) parser->stage = ML_TINYLOOP_AT_END;
}

/* Takes bytes until the header is there; returns how many through `taken`. */
static ml_status push_header(ml_tinyloop_parser *parser, const uint8_t *bytes, size_t size, size_t *taken,
                             ml_error *error) {
  uint32_t needed;
  ML_TRY(header_size(&needed, parser->header_bytes, parser->position, error));
  size_t piece = (size_t)(needed - parser->position);
  if (piece > size) piece = size;
  memcpy(parser->header_bytes + parser->position, bytes, piece);
  parser->position += piece;
  *taken = piece;
  ML_TRY(header_size(&needed, parser->header_bytes, parser->position, error));
  if (parser->position < needed) return ML_OK;

  ML_TRY(ml_tinyloop_read_header(&parser->header, parser->header_bytes, needed, error));
  if (parser->total_size) ML_TRY(check_size(&parser->header, parser->total_size, error));
  ML_TRY(parser->sink.begin(parser->sink.user, &parser->header, error));
  parser->stage = ML_TINYLOOP_IN_ARRAYS;
  parser->walk = ml_tinyloop_walk_begin(&parser->header);
  next_array(parser);
  return ML_OK;
}

static ml_status push_array(ml_tinyloop_parser *parser, const uint8_t *bytes, size_t size, size_t *taken,
                            ml_error *error) {
  const ml_array *array = &parser->array;
  assert(parser->position >= array->offset);
  uint64_t at = parser->position - array->offset, left = array->size - at;
  size_t piece = left < size ? (size_t)left : size;
  ML_TRY(parser->sink.bytes(parser->sink.user, array, at, bytes, piece, error));
  parser->position += piece;
  *taken = piece;
  if (piece == left) next_array(parser);
  return ML_OK;
}

ml_status ml_tinyloop_parser_push(ml_tinyloop_parser *parser, const uint8_t *bytes, size_t size,
                                  ml_error *error) {
  size_t taken;
  for (size_t done = 0; done < size; done += taken) {
    if (parser->stage == ML_TINYLOOP_AT_END)
      return check_size(&parser->header, ml_add_sizes(parser->position, size - done), error);
    if (parser->stage == ML_TINYLOOP_IN_HEADER)
      ML_TRY(push_header(parser, bytes + done, size - done, &taken, error));
    else
      ML_TRY(push_array(parser, bytes + done, size - done, &taken, error));
  }
  return ML_OK;
}

ml_status ml_tinyloop_parser_finish(ml_tinyloop_parser *parser, ml_error *error) {
  if (parser->stage == ML_TINYLOOP_IN_HEADER)
    return ml_tinyloop_read_header(&parser->header, parser->header_bytes, parser->position, error);
  return check_size(&parser->header, parser->position, error);
}
