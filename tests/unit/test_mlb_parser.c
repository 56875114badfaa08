/* The push parser: the same arrays for chunks of any size, and a typed end for every file that is cut or wrong. */
#include <stdio.h>

#include "test.h"
#include "test_allocator.h"
#include "tiny_file.h"

/* ---------------------------------------------------------------- a sink that puts the file together again */

typedef struct recorder {
  uint8_t *copy; /* arrays at their places in the file, zero elsewhere */
  size_t size;
  uint32_t n_begin;
  uint64_t n_bytes;       /* array bytes seen */
  uint64_t next;          /* file offset below which everything was seen */
  bool in_order;          /* pieces follow each other without gap within an array, arrays in file order */
  ml_status begin_status; /* what to answer */
  ml_status bytes_status;
  uint64_t refuse_at; /* answer bytes_status from this file offset on */
} recorder;

static ml_status on_begin(void *user, const ml_mlb_header *header, const uint8_t *flags, ml_error *error) {
  recorder *self = user;
  self->n_begin++;
  self->in_order = header != NULL && (flags != NULL) == (header->layer_flags != 0) && self->n_bytes == 0;
  if (self->begin_status && error) error->status = self->begin_status;
  return self->begin_status;
}

static ml_status on_bytes(void *user, const ml_array *array, uint64_t position, const uint8_t *bytes,
                          size_t size, ml_error *error) {
  recorder *self = user;
  (void)error;
  uint64_t at = array->offset + position;
  if (self->bytes_status && at + size > self->refuse_at) return self->bytes_status;
  bool starts = position == 0 && at >= self->next;
  bool follows = position > 0 && at == self->next;
  self->in_order &= self->n_begin == 1 && (starts || follows) && size > 0 && position + size <= array->size &&
                    array->tensor != ML_TENSOR_FLAGS;
  if (self->copy && at + size <= self->size) memcpy(self->copy + at, bytes, size);
  self->next = at + size;
  self->n_bytes += size;
  return ML_OK;
}

typedef struct parse_run {
  ml_mlb_parser parser;
  recorder recorder;
  test_memory memory;
  ml_error error;
} parse_run;

static void parse_init(parse_run *run, uint64_t total_size) {
  memset(run, 0, sizeof *run);
  ml_mlb_sink sink = {on_begin, on_bytes, &run->recorder};
  ml_allocator allocator = test_allocator(&run->memory);
  ml_mlb_parser_init(&run->parser, &sink, &allocator, total_size);
}

/* Pushes all bytes in pieces of `chunk`, and finishes. */
static ml_status parse_all(parse_run *run, const uint8_t *bytes, size_t size, size_t chunk) {
  for (size_t at = 0; at < size; at += chunk) {
    size_t n = size - at < chunk ? size - at : chunk;
    ml_status status = ml_mlb_parser_push(&run->parser, bytes + at, n, &run->error);
    if (status != ML_OK) return status;
  }
  return ml_mlb_parser_finish(&run->parser, &run->error);
}

static void parse_free(parse_run *run) {
  ml_mlb_parser_free(&run->parser);
  CHECK_EQ_U64(run->memory.live, 0);
}

static tiny_file build_plain(void) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  return tiny_build(header, NULL);
}

static tiny_file build_everything(void) {
  uint8_t header[ML_MLB_HEADER_SIZE], flags[4];
  tiny_everything(header, flags);
  return tiny_build(header, flags);
}

/* The smallest file there is, for tests that go through it at every byte: one layer, 32 everywhere, 3 tokens. */
static tiny_file build_smallest(uint32_t wtype) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  tiny_put(header, AT_N_LAYERS, 1);
  tiny_put(header, AT_HIDDEN_DIM, 32);
  tiny_put(header, AT_VOCAB, 3);
  tiny_put(header, AT_WTYPE, wtype);
  tiny_put(header, AT_SHARED_CLASSIFIER, 1);
  tiny_put(header, AT_LAYER_FLAGS, 1);
  return tiny_build(header, (uint8_t[]){0});
}

/* ---------------------------------------------------------------- chunks */

static void check_chunk(const tiny_file *file, const uint8_t *flat, size_t chunk, bool size_known) {
  parse_run run;
  parse_init(&run, size_known ? file->size : 0);
  run.recorder.copy = calloc(1, file->size);
  run.recorder.size = file->size;
  if (!CHECK(run.recorder.copy != NULL)) return;
  CHECK_EQ_I64(parse_all(&run, file->bytes, file->size, chunk), ML_OK);
  CHECK_EQ_U64(run.recorder.n_begin, 1);
  CHECK(run.recorder.in_order);
  CHECK_EQ_BYTES(run.recorder.copy, flat, file->size);
  CHECK_EQ_U64(ml_mlb_parser_trailing(&run.parser), 0);
  free(run.recorder.copy);
  parse_free(&run);
}

static void check_chunks(tiny_file *file) {
  static const size_t chunks[] = {1, 7, 63, 64, 65, 255, 256, 257, 4096, SIZE_MAX / 2};
  /* What must arrive: the file without its header, flags and padding. */
  ml_mlb_header header;
  if (!CHECK(file->bytes && ml_mlb_read_header(&header, file->bytes, file->size, NULL) == ML_OK)) return;
  uint8_t *flat = calloc(1, file->size);
  if (!CHECK(flat != NULL)) return;
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, file->bytes + AT_FLAGS);
  ml_array array;
  while (ml_mlb_walk_next(&walk, &array)) {
    if (array.tensor != ML_TENSOR_FLAGS)
      memcpy(flat + array.offset, file->bytes + array.offset, (size_t)array.size);
  }
  for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
    check_chunk(file, flat, chunks[i], true);
    check_chunk(file, flat, chunks[i], false);
  }
  free(flat);
}

TEST(mlb_parser_takes_chunks_of_any_size) {
  tiny_file plain = build_plain(), everything = build_everything();
  check_chunks(&plain);
  check_chunks(&everything);
  tiny_free(&plain);
  tiny_free(&everything);
}

TEST(mlb_parser_takes_random_and_empty_chunks) {
  tiny_file file = build_everything();
  REQUIRE(file.bytes != NULL);
  for (int round = 0; round < 50; round++) {
    parse_run run;
    parse_init(&run, round % 2 ? file.size : 0);
    for (size_t at = 0; at < file.size;) {
      size_t n = test_random_below(1 + test_random_below(2000)); /* often 0 */
      if (n > file.size - at) n = file.size - at;
      CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, n ? file.bytes + at : NULL, n, &run.error), ML_OK);
      at += n;
    }
    CHECK_EQ_I64(ml_mlb_parser_finish(&run.parser, &run.error), ML_OK);
    CHECK(run.recorder.in_order);
    parse_free(&run);
  }
  tiny_free(&file);
}

/* The receiver hears of the header as soon as its last byte is there, not with the next one. */
TEST(mlb_parser_begins_with_the_last_byte_of_header_and_flags) {
  for (int flagged = 0; flagged < 2; flagged++) {
    tiny_file file = flagged ? build_everything() : build_plain();
    REQUIRE(file.bytes != NULL);
    size_t begins = flagged ? 260 : 256;
    parse_run run;
    parse_init(&run, 0);
    CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, file.bytes, begins - 1, NULL), ML_OK);
    CHECK_EQ_U64(run.recorder.n_begin, 0);
    CHECK_EQ_U64(ml_mlb_parser_trailing(&run.parser), 0);
    CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, file.bytes + begins - 1, 1, NULL), ML_OK);
    CHECK_EQ_U64(run.recorder.n_begin, 1);
    CHECK_EQ_U64(run.memory.calls, (uint64_t)flagged); /* the flags, and nothing else */
    parse_free(&run);
    tiny_free(&file);
  }
}

/* ---------------------------------------------------------------- the end of the file */

TEST(mlb_parser_final_padding_and_trailing_bytes) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  tiny_file file = tiny_build(header, NULL); /* 22100 bytes of 22144 */
  REQUIRE(file.size == 22144);
  uint8_t *longer = calloc(1, file.size + 200);
  REQUIRE(longer != NULL);
  memcpy(longer, file.bytes, file.size);
  memset(longer + 22100, 0x80, file.size + 200 - 22100); /* not zero, and no quants */
  for (size_t size = 22100; size <= file.size + 200; size++) {
    parse_run run;
    parse_init(&run, size % 2 ? size : 0);
    CHECK_EQ_I64(parse_all(&run, longer, size, 1000), ML_OK);
    CHECK_EQ_U64(ml_mlb_parser_trailing(&run.parser), size > 22144 ? size - 22144 : 0);
    parse_free(&run);
  }
  free(longer);
  tiny_free(&file);
}

/* padding-bytes: between arrays, padding may hold anything, -128 too. */
TEST(mlb_parser_ignores_what_padding_holds) {
  tiny_file file = build_everything();
  REQUIRE(file.bytes != NULL);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, file.bytes, file.size, NULL) == ML_OK);
  uint8_t *flags = file.bytes + AT_FLAGS;
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, flags);
  ml_array array;
  uint64_t n_padding = 0;
  while (ml_mlb_walk_next(&walk, &array)) {
    for (uint64_t at = array.offset + array.size; at < walk.offset; at++, n_padding++) file.bytes[at] = 0x80;
  }
  CHECK(n_padding > 100);
  parse_run run;
  parse_init(&run, file.size);
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, 33), ML_OK);
  parse_free(&run);
  tiny_free(&file);
}

TEST(mlb_parser_refuses_every_truncation) {
  for (uint32_t wtype = 1; wtype <= 2; wtype++) {
    tiny_file file = build_smallest(wtype);
    REQUIRE(file.bytes != NULL);
    ml_mlb_header header;
    REQUIRE(ml_mlb_read_header(&header, file.bytes, file.size, NULL) == ML_OK);
    size_t whole = (size_t)ml_mlb_file_size(&header, file.bytes + AT_FLAGS);
    char needed[32];
    snprintf(needed, sizeof needed, " %zu ", whole);
    for (size_t size = 0; size < whole; size++) {
      parse_run known, unknown;
      parse_init(&known, size);
      parse_init(&unknown, 0);
      CHECK_EQ_I64(parse_all(&known, file.bytes, size, 512), ML_E_FORMAT);
      CHECK_EQ_I64(parse_all(&unknown, file.bytes, size, 512), ML_E_FORMAT);
      if (size) CHECK_EQ_U64(known.recorder.n_begin, 0); /* refused before anyone asks for memory */
      CHECK_EQ_U64(unknown.error.offset, size);
      if (size > 256) CHECK(strstr(known.error.message, needed) && strstr(unknown.error.message, needed));
      parse_free(&known);
      parse_free(&unknown);
    }
    tiny_free(&file);
  }
}

/* A known size that ends within the flags: refused before they are asked for. */
TEST(mlb_parser_checks_the_size_before_it_allocates) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  tiny_put(header, AT_LAYER_FLAGS, 1);
  tiny_put(header, AT_N_LAYERS, 65536);
  parse_run run;
  parse_init(&run, 256 + 65535);
  CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, header, sizeof header, &run.error), ML_E_FORMAT);
  CHECK(strstr(run.error.message, "65791") && strstr(run.error.message, "65792"));
  CHECK_EQ_U64(run.memory.calls, 0);
  CHECK_EQ_U64(run.recorder.n_begin, 0);
  parse_free(&run);

  tiny_put(header, AT_LAYER_FLAGS, 0);
  parse_init(&run, 1 << 20);
  CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, header, sizeof header, &run.error), ML_E_FORMAT);
  CHECK_EQ_U64(run.memory.calls, 0);
  CHECK_EQ_U64(run.recorder.n_begin, 0);
  parse_free(&run);
}

/* ---------------------------------------------------------------- failures */

TEST(mlb_parser_finds_minus_128_wherever_it_is) {
  tiny_file file = build_smallest(ML_MLB_Q8_0);
  REQUIRE(file.bytes != NULL);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, file.bytes, file.size, NULL) == ML_OK);
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, file.bytes + AT_FLAGS);
  ml_array array;
  uint32_t n_arrays = 0;
  while (ml_mlb_walk_next(&walk, &array)) {
    if (array.tensor == ML_TENSOR_FLAGS) continue;
    const uint64_t places[] = {array.offset, array.offset + array.size / 2, array.offset + array.size - 1};
    for (int i = 0; i < 3; i++) {
      uint8_t *byte = file.bytes + places[i], kept = *byte;
      *byte = 0x80;
      for (size_t chunk = 1; chunk <= file.size; chunk = chunk * 2 + 1) {
        parse_run run;
        parse_init(&run, file.size);
        ml_status status = parse_all(&run, file.bytes, file.size, chunk);
        CHECK_EQ_I64(status, array.element == ML_ELEMENT_Q8 ? ML_E_FORMAT : ML_OK);
        if (status != ML_OK) CHECK_EQ_U64(run.error.offset, places[i]);
        if (status != ML_OK) CHECK(run.recorder.next <= places[i]); /* nobody gets the bad byte */
        parse_free(&run);
      }
      *byte = kept;
    }
    n_arrays++;
  }
  CHECK_EQ_U64(n_arrays, 2 + 1 + 8 + 1 + 6 + 1);
  tiny_free(&file);
}

/* Q4_0 bytes may be anything. */
TEST(mlb_parser_lets_q4_0_hold_0x80) {
  tiny_file file = build_smallest(ML_MLB_Q4_0);
  REQUIRE(file.bytes != NULL);
  memset(file.bytes + 320, 0x80, file.size - 320);
  parse_run run;
  parse_init(&run, file.size);
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, 100), ML_OK);
  parse_free(&run);
  tiny_free(&file);
}

TEST(mlb_parser_reports_bad_flags) {
  tiny_file file = build_everything();
  REQUIRE(file.bytes != NULL);
  file.bytes[AT_FLAGS + 3] = 16;
  for (size_t chunk = 1; chunk < 600; chunk += 37) {
    parse_run run;
    parse_init(&run, file.size);
    CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, chunk), ML_E_FORMAT);
    CHECK_EQ_U64(run.error.offset, AT_FLAGS + 3);
    CHECK_EQ_U64(run.recorder.n_begin, 0);
    parse_free(&run);
  }
  /* check-order: header rules, then flags, then sizes. */
  parse_run run;
  parse_init(&run, 1000);
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, file.size), ML_E_FORMAT);
  CHECK_EQ_U64(run.error.offset, AT_FLAGS + 3);
  parse_free(&run);
  tiny_put(file.bytes, AT_DIM, 0);
  parse_init(&run, 300);
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, file.size), ML_E_SHAPE);
  parse_free(&run);
  tiny_free(&file);
}

TEST(mlb_parser_passes_on_what_the_sink_says) {
  tiny_file file = build_plain();
  REQUIRE(file.bytes != NULL);
  parse_run run;
  parse_init(&run, file.size);
  run.recorder.begin_status = ML_E_NOMEM;
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, 999), ML_E_NOMEM);
  CHECK_EQ_U64(run.recorder.n_bytes, 0);
  parse_free(&run);

  parse_init(&run, file.size);
  run.recorder.bytes_status = ML_E_IO;
  run.recorder.refuse_at = 5000;
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, 999), ML_E_IO);
  CHECK(run.recorder.next <= 5000);
  parse_free(&run);
  tiny_free(&file);
}

/* After a failure nothing more goes to the sink, and the status stays. */
TEST(mlb_parser_stops_after_a_failure) {
  tiny_file file = build_plain();
  REQUIRE(file.bytes != NULL);
  file.bytes[700] = 0x80; /* in wq */
  parse_run run;
  parse_init(&run, file.size);
  CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, file.bytes, file.size, &run.error), ML_E_FORMAT);
  CHECK_EQ_U64(run.error.offset, 700);
  uint64_t seen = run.recorder.n_bytes;
  CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, file.bytes + 800, 100, &run.error), ML_E_FORMAT);
  CHECK_EQ_I64(ml_mlb_parser_push(&run.parser, NULL, 0, NULL), ML_E_FORMAT);
  CHECK_EQ_I64(ml_mlb_parser_finish(&run.parser, &run.error), ML_E_FORMAT);
  CHECK_EQ_U64(run.recorder.n_bytes, seen);
  CHECK_EQ_U64(ml_mlb_parser_trailing(&run.parser), 0);
  parse_free(&run);
  tiny_free(&file);
}

TEST(mlb_parser_without_memory_for_the_flags) {
  tiny_file file = build_everything();
  REQUIRE(file.bytes != NULL);
  parse_run run;
  parse_init(&run, file.size);
  run.memory.fail_at = 1;
  CHECK_EQ_I64(parse_all(&run, file.bytes, file.size, 77), ML_E_NOMEM);
  CHECK(strstr(run.error.message, "layer flags = 4"));
  CHECK_EQ_U64(run.recorder.n_begin, 0);
  parse_free(&run);
  tiny_free(&file);
}

TEST(mlb_parser_that_saw_nothing) {
  parse_run run;
  parse_init(&run, 0);
  CHECK_EQ_U64(ml_mlb_parser_trailing(&run.parser), 0);
  CHECK_EQ_I64(ml_mlb_parser_finish(&run.parser, &run.error), ML_E_FORMAT); /* an empty file */
  CHECK_EQ_U64(run.error.offset, 0);
  parse_free(&run);
  ml_mlb_parser_free(&run.parser); /* twice does no harm */
}

/* Every bit of header and flags, flipped: a typed failure, or a model of some other shape. */
TEST(mlb_parser_survives_any_bit_flip) {
  tiny_file file = build_everything();
  REQUIRE(file.bytes != NULL);
  for (uint32_t bit = 0; bit < 8 * 260; bit++) {
    file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    parse_run known, unknown;
    parse_init(&known, file.size);
    parse_init(&unknown, 0);
    ml_status status = parse_all(&known, file.bytes, file.size, 5000);
    CHECK(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
    CHECK_EQ_I64(parse_all(&unknown, file.bytes, file.size, 97), status);
    parse_free(&known);
    parse_free(&unknown);
    file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  tiny_free(&file);
}
