/* mlb_parser.c - takes a file in pieces of any size and hands out its checked arrays.
 *
 *   header --> [flags] --> arrays and the padding between them --> whatever follows
 *
 * The parser keeps the header, the flags and its place; the bytes of the arrays pass through. */
#include <assert.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "format/mlb.h"

typedef struct input {
  const uint8_t *bytes;
  size_t size;
} input;

void ml_mlb_parser_init(ml_mlb_parser *parser, const ml_mlb_sink *sink, const ml_allocator *allocator,
                        uint64_t total_size) {
  memset(parser, 0, sizeof *parser);
  parser->sink = *sink;
  parser->allocator = ml_allocator_or_default(allocator);
  parser->total_size = total_size;
  parser->stage = ML_MLB_IN_HEADER;
}

void ml_mlb_parser_free(ml_mlb_parser *parser) {
  if (parser->flags) parser->allocator.release(parser->allocator.user, parser->flags);
  parser->flags = NULL;
}

/* At most `limit` bytes off the front of the input. */
static input take(ml_mlb_parser *parser, input *in, uint64_t limit) {
  input taken = {in->bytes, in->size < limit ? in->size : (size_t)limit};
  in->bytes += taken.size;
  in->size -= taken.size;
  parser->position = ml_add_sizes(parser->position, taken.size);
  return taken;
}

/* Moves on to the next array, or to the end of them. */
static void next_array(ml_mlb_parser *parser) {
  if (!ml_mlb_walk_next(&parser->walk, &parser->array)) parser->stage = ML_MLB_AFTER_ARRAYS;
}

/* Header and flags are there and checked: the last moment before the receiver asks for memory. */
static ml_status begin_arrays(ml_mlb_parser *parser, ml_error *error) {
  if (parser->total_size)
    ML_TRY(ml_mlb_check_size(&parser->header, parser->flags, parser->total_size, error));
  ML_TRY(parser->sink.begin(parser->sink.user, &parser->header, parser->flags, error));
  parser->stage = ML_MLB_IN_ARRAYS;
  parser->walk = ml_mlb_walk_begin(&parser->header, parser->flags);
  next_array(parser);
  if (parser->flags) next_array(parser); /* the flags themselves */
  return ML_OK;
}

/* What the flags will say is not known yet, but a source that ends within them is too short anyway. */
static ml_status check_flags_fit(const ml_mlb_parser *parser, uint64_t size, ml_error *error) {
  uint64_t end = ML_MLB_HEADER_SIZE + (uint64_t)parser->header.n_layers;
  if (size >= end) return ML_OK;
  return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                 "must hold the layer flags, bytes:", ml_uint(end), size);
}

static ml_status push_header(ml_mlb_parser *parser, input *in, ml_error *error) {
  uint64_t at = parser->position;
  input piece = take(parser, in, ML_MLB_HEADER_SIZE - at);
  memcpy(parser->header_bytes + at, piece.bytes, piece.size);
  if (parser->position < ML_MLB_HEADER_SIZE) return ML_OK;

  ML_TRY(ml_mlb_read_header(&parser->header, parser->header_bytes, ML_MLB_HEADER_SIZE, error));
  if (!parser->header.layer_flags) return begin_arrays(parser, error);

  if (parser->total_size) ML_TRY(check_flags_fit(parser, parser->total_size, error));
  parser->flags = parser->allocator.allocate(parser->allocator.user, parser->header.n_layers);
  if (!parser->flags)
    return ml_fail(error, ML_E_NOMEM, "layer flags", ml_uint(parser->header.n_layers),
                   "bytes needed, the allocator has", ml_text("none"), ML_NO_OFFSET);
  parser->stage = ML_MLB_IN_FLAGS;
  return ML_OK;
}

static ml_status push_flags(ml_mlb_parser *parser, input *in, ml_error *error) {
  uint64_t at = parser->position - ML_MLB_HEADER_SIZE;
  input piece = take(parser, in, parser->header.n_layers - at);
  memcpy(parser->flags + at, piece.bytes, piece.size);
  if (at + piece.size < parser->header.n_layers) return ML_OK;

  ML_TRY(ml_mlb_check_flags(&parser->header, parser->flags, error));
  return begin_arrays(parser, error);
}

static ml_status push_array(ml_mlb_parser *parser, input *in, ml_error *error) {
  const ml_array *array = &parser->array;
  if (parser->position < array->offset) {
    take(parser, in, array->offset - parser->position); /* padding, whatever it holds */
    return ML_OK;
  }
  uint64_t at = parser->position - array->offset;
  input piece = take(parser, in, array->size - at);
  if (array->element == ML_ELEMENT_Q8)
    ML_TRY(ml_mlb_check_q8(piece.bytes, piece.size, array->offset + at, error));
  ML_TRY(parser->sink.bytes(parser->sink.user, array, at, piece.bytes, piece.size, error));
  if (at + piece.size == array->size) next_array(parser);
  return ML_OK;
}

static ml_status push(ml_mlb_parser *parser, input in, ml_error *error) {
  while (in.size) {
    switch (parser->stage) {
      case ML_MLB_IN_HEADER: ML_TRY(push_header(parser, &in, error)); break;
      case ML_MLB_IN_FLAGS: ML_TRY(push_flags(parser, &in, error)); break;
      case ML_MLB_IN_ARRAYS: ML_TRY(push_array(parser, &in, error)); break;
      case ML_MLB_AFTER_ARRAYS: take(parser, &in, UINT64_MAX); break;
    }
  }
  return ML_OK;
}

ml_status ml_mlb_parser_push(ml_mlb_parser *parser, const uint8_t *bytes, size_t size, ml_error *error) {
  if (parser->failure)
    return ml_fail(error, parser->failure, "file", ml_none(), "was refused before", ml_none(), ML_NO_OFFSET);
  parser->failure = push(parser, (input){bytes, size}, error);
  return parser->failure;
}

ml_status ml_mlb_parser_finish(ml_mlb_parser *parser, ml_error *error) {
  if (parser->failure)
    return ml_fail(error, parser->failure, "file", ml_none(), "was refused before", ml_none(), ML_NO_OFFSET);
  switch (parser->stage) {
    case ML_MLB_IN_HEADER:
      return ml_mlb_read_header(&parser->header, parser->header_bytes, parser->position, error);
    case ML_MLB_IN_FLAGS: return check_flags_fit(parser, parser->position, error);
    case ML_MLB_IN_ARRAYS: return ml_mlb_check_size(&parser->header, parser->flags, parser->position, error);
    case ML_MLB_AFTER_ARRAYS: break;
  }
  return ML_OK;
}

uint64_t ml_mlb_parser_trailing(const ml_mlb_parser *parser) {
  if (parser->stage != ML_MLB_AFTER_ARRAYS) return 0;
  uint64_t end = ml_round_up(parser->array.offset + parser->array.size, ML_MLB_ALIGNMENT);
  return parser->position > end ? parser->position - end : 0;
}
