/* The public loader: three ways in, one model; and every way to fail, memory that runs out included. */
#include <math.h>
#include <stdio.h>

#include "test.h"
#include "test_allocator.h"
#include "tiny_file.h"

static tiny_file build(bool everything) {
  uint8_t header[ML_MLB_HEADER_SIZE], flags[4] = {0};
  if (everything) tiny_everything(header, flags);
  if (!everything) tiny_header(header);
  return tiny_build(header, flags);
}

/* Feeds a loader in pieces and takes the model, whatever happens on the way. */
static ml_status open_stream(ml_model **out, const uint8_t *bytes, size_t size, size_t chunk,
                             const ml_load_options *options, ml_error *error) {
  ml_loader *loader;
  ml_status status = ml_loader_new(&loader, options, error);
  if (status != ML_OK) return status;
  for (size_t at = 0; at < size && status == ML_OK; at += chunk)
    status = ml_loader_push(loader, bytes + at, size - at < chunk ? size - at : chunk, error);
  if (status == ML_OK) status = ml_loader_finish(loader, out, error);
  ml_loader_free(loader);
  return status;
}

enum { N_IDS = 6, TINY_VOCAB = 5 };

/* Logits after a few tokens: all that a model is, in five floats. */
static bool run_model(const ml_model *model, float *logits) {
  static const int32_t ids[N_IDS] = {1, 4, 0, 2, 3, 1};
  ml_session *session;
  ml_session_options options = {.n_ctx = 8, .n_batch = 4};
  if (!CHECK_EQ_I64(ml_session_new(&session, model, &options, NULL), ML_OK)) return false;
  ml_error error = {.message = ""};
  bool ran = CHECK_EQ_I64(ml_session_eval(session, ids, N_IDS, &error), ML_OK);
  if (ran) memcpy(logits, ml_session_logits(session), TINY_VOCAB * sizeof *logits);
  if (!ran) printf("\n    ... %s", error.message);
  ml_session_free(session);
  return ran;
}

/* ---------------------------------------------------------------- three ways in */

TEST(load_open_map_and_stream_give_the_same_model) {
  for (int everything = 0; everything < 2; everything++) {
    tiny_file file = build(everything);
    REQUIRE(file.bytes != NULL);
    ml_model *opened, *mapped;
    REQUIRE(ml_model_open(&opened, file.bytes, file.size, NULL, NULL) == ML_OK);
    float expected[TINY_VOCAB], logits[TINY_VOCAB];
    REQUIRE(run_model(opened, expected));
    CHECK(expected[0] != expected[1]);
    ml_model_info info = *ml_model_get_info(opened);
    ml_model_free(opened);

    REQUIRE(ml_model_map(&mapped, file.bytes, file.size, NULL, NULL) == ML_OK);
    REQUIRE(run_model(mapped, logits));
    CHECK_EQ_BYTES(logits, expected, sizeof expected);
    ml_model_info mapped_info = *ml_model_get_info(mapped);
    CHECK(mapped_info.weight_bytes >= mapped_info.file_bytes);
    mapped_info.weight_bytes = info.weight_bytes; /* may differ, nothing else may */
    CHECK_EQ_BYTES(&mapped_info, &info, sizeof info);
    ml_model_free(mapped);

    static const size_t chunks[] = {1, 7, 63, 64, 65, 4096, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
      ml_load_options options = {.total_size = i % 2 ? file.size : 0};
      ml_model *streamed;
      REQUIRE(open_stream(&streamed, file.bytes, file.size, chunks[i], &options, NULL) == ML_OK);
      REQUIRE(run_model(streamed, logits));
      CHECK_EQ_BYTES(logits, expected, sizeof expected);
      CHECK_EQ_BYTES(ml_model_get_info(streamed), &info, sizeof info);
      ml_model_free(streamed);
    }
    tiny_free(&file);
  }
}

TEST(load_open_needs_no_alignment_and_copies) {
  tiny_file file = build(true);
  REQUIRE(file.bytes != NULL);
  float expected[TINY_VOCAB], logits[TINY_VOCAB];
  ml_model *model;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  REQUIRE(run_model(model, expected));
  ml_model_free(model);

  uint8_t *shifted = malloc(file.size + 1);
  REQUIRE(shifted != NULL);
  memcpy(shifted + 1, file.bytes, file.size);
  REQUIRE(ml_model_open(&model, shifted + 1, file.size, NULL, NULL) == ML_OK);
  memset(shifted, 0xff, file.size + 1);
  free(shifted);
  REQUIRE(run_model(model, logits));
  CHECK_EQ_BYTES(logits, expected, sizeof expected);
  ml_model_free(model);
  tiny_free(&file);
}

TEST(load_map_needs_alignment) {
  tiny_file file = build(false);
  REQUIRE(file.bytes != NULL);
  ml_model *model = (ml_model *)&file;
  ml_error error;
  for (size_t shift = 1; shift < 64; shift *= 2) {
    CHECK_EQ_I64(ml_model_map(&model, file.bytes + shift, file.size - shift, NULL, &error), ML_E_ARG);
    CHECK(model == (ml_model *)&file);
  }
  tiny_free(&file);
}

TEST(load_info) {
  uint8_t header[ML_MLB_HEADER_SIZE], flags[4];
  tiny_everything(header, flags);
  tiny_file file = tiny_build(header, flags);
  REQUIRE(file.bytes != NULL);
  ml_model *model;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  const ml_model_info *info = ml_model_get_info(model);
  CHECK_EQ_U64(info->dim, 32);
  CHECK_EQ_U64(info->n_layers, 4);
  CHECK_EQ_U64(info->n_heads, 2);
  CHECK_EQ_U64(info->n_kv_heads, 1);
  CHECK_EQ_U64(info->head_dim, 32);
  CHECK_EQ_U64(info->hidden_dim, 64);
  CHECK_EQ_U64(info->vocab, TINY_VOCAB);
  CHECK_EQ_U64(info->max_seq, 16);
  CHECK_EQ_U64(info->n_linear_layers, 1);
  CHECK_EQ_U64(info->n_window_layers, 1);
  CHECK_EQ_U64(info->sliding_window, 3);
  CHECK_EQ_TEXT(info->weight_type, "Q4_0+Q8_0");
  uint64_t attention = 32 + 64 * 32 + 32 * 32 + 32 * 32 + 32 * 64 + 64 * 32 + 64 + 32 + 32 + 32 + 32;
  uint64_t linear = 32 + 96 * 32 + 64 * 32 + 4 * 32 + 4 * 32 + 96 * 4 + 4 + 4 + 16 + 32 * 64;
  uint64_t ffn = 32 + 3 * 64 * 32 + 32 + 32;
  CHECK_EQ_U64(info->n_parameters, 5 * 32 + 3 * attention + linear + 4 * ffn + 32 + 5 * 32);
  CHECK_EQ_U64((info->file_bytes + 63) / 64 * 64, file.size);
  CHECK_EQ_U64(info->trailing_bytes, 0);
  CHECK_EQ_U64(info->n_non_finite, 0);
  ml_model_free(model);
  tiny_free(&file);

  static const char *const types[] = {"Q8_0", "Q4_0"};
  for (uint32_t wtype = 1; wtype <= 2; wtype++) {
    tiny_header(header);
    tiny_put(header, AT_WTYPE, wtype);
    tiny_put(header, AT_SLIDING_WINDOW, 9); /* without layer flags: on every layer */
    file = tiny_build(header, NULL);
    REQUIRE(file.bytes && ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
    CHECK_EQ_TEXT(ml_model_get_info(model)->weight_type, types[wtype - 1]);
    CHECK_EQ_U64(ml_model_get_info(model)->n_window_layers, 2);
    CHECK_EQ_U64(ml_model_get_info(model)->n_linear_layers, 0);
    ml_model_free(model);
    tiny_free(&file);
  }
}

TEST(load_counts_trailing_bytes) {
  tiny_file file = build(false);
  REQUIRE(file.size == 22144); /* 22100 and padding */
  uint8_t *longer = calloc(1, file.size + 100);
  REQUIRE(longer != NULL);
  memcpy(longer, file.bytes, file.size);
  for (size_t size = 22100; size < file.size + 100; size++) {
    ml_model *model;
    REQUIRE(ml_model_open(&model, longer, size, NULL, NULL) == ML_OK);
    CHECK_EQ_U64(ml_model_get_info(model)->trailing_bytes, size > 22144 ? size - 22144 : 0);
    ml_model_free(model);
  }
  free(longer);
  tiny_free(&file);
}

/* non-finite-weights: they load, and are counted once each, wherever they are and however they come. */
TEST(load_counts_non_finite_weights) {
  tiny_file file = build(true); /* f16 scales, f32 vectors */
  REQUIRE(file.bytes != NULL);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, file.bytes, file.size, NULL) == ML_OK);
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, file.bytes + AT_FLAGS);
  ml_array array;
  uint64_t n = 0;
  while (ml_mlb_walk_next(&walk, &array)) {
    uint8_t *last = file.bytes + array.offset + array.size;
    if (array.element == ML_ELEMENT_F32) tiny_put_f32(last - 4, 0, n % 2 ? NAN : -INFINITY);
    if (array.element == ML_ELEMENT_D_F16) memcpy(last - 2, n % 2 ? "\x01\x7c" : "\x00\xfc", 2);
    n += array.element == ML_ELEMENT_F32 || array.element == ML_ELEMENT_D_F16;
  }
  for (int way = 0; way < 3; way++) {
    ml_model *model;
    ml_status status = way == 0   ? ml_model_open(&model, file.bytes, file.size, NULL, NULL)
                       : way == 1 ? ml_model_map(&model, file.bytes, file.size, NULL, NULL)
                                  : open_stream(&model, file.bytes, file.size, 3, NULL, NULL);
    REQUIRE(status == ML_OK);
    CHECK_EQ_U64(ml_model_get_info(model)->n_non_finite, n);
    ml_model_free(model);
  }
  tiny_free(&file);
}

/* ---------------------------------------------------------------- bad files */

/* Cut at every byte: a typed failure, whichever way in, nothing left behind, `*out` as it was. */
TEST(load_refuses_every_truncation) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  tiny_put(header, AT_N_LAYERS, 1);
  tiny_put(header, AT_HIDDEN_DIM, 32);
  tiny_put(header, AT_VOCAB, 3);
  tiny_file file = tiny_build(header, NULL);
  REQUIRE(file.bytes != NULL);
  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator};
  for (size_t size = 0; size < file.size - 63; size++) {
    ml_model *untouched = (ml_model *)&file, *model = untouched;
    ml_error error;
    CHECK_EQ_I64(ml_model_open(&model, file.bytes, size, &options, &error), ML_E_FORMAT);
    CHECK_EQ_U64(error.offset, size);
    CHECK_EQ_I64(ml_model_map(&model, file.bytes, size, &options, NULL), ML_E_FORMAT);
    CHECK_EQ_I64(open_stream(&model, file.bytes, size, 1000, &options, &error), ML_E_FORMAT);
    CHECK_EQ_U64(error.offset, size);
    CHECK(model == untouched);
    CHECK_EQ_U64(memory.live, 0);
  }
  CHECK(memory.peak < 40000);
  tiny_free(&file);
}

TEST(load_survives_any_bit_flip) {
  tiny_file file = build(true);
  REQUIRE(file.bytes != NULL);
  test_memory memory = {.limit = 1 << 20};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator};
  for (uint32_t bit = 0; bit < 8 * 260; bit++) {
    file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    ml_model *opened, *streamed;
    ml_status status = ml_model_open(&opened, file.bytes, file.size, &options, NULL);
    CHECK(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
    ml_status of_stream = open_stream(&streamed, file.bytes, file.size, 4000, &options, NULL);
    /* Without the size, a header that promises too much is found out by the memory that it wants. */
    CHECK(of_stream == status || (status == ML_E_FORMAT && of_stream == ML_E_NOMEM));
    if (status == ML_OK) ml_model_free(opened);
    if (of_stream == ML_OK) ml_model_free(streamed);
    CHECK_EQ_U64(memory.live, 0);
    file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  tiny_free(&file);
}

TEST(load_failure_is_final) {
  tiny_file file = build(false);
  REQUIRE(file.bytes != NULL);
  file.bytes[700] = 0x80; /* a quant of wq */
  ml_loader *loader;
  REQUIRE(ml_loader_new(&loader, NULL, NULL) == ML_OK);
  ml_error first, later;
  CHECK_EQ_I64(ml_loader_push(loader, file.bytes, 690, &first), ML_OK);
  CHECK_EQ_I64(ml_loader_push(loader, file.bytes + 690, 20, &first), ML_E_FORMAT);
  CHECK_EQ_U64(first.offset, 700);
  for (int i = 0; i < 2; i++) {
    memset(&later, 0, sizeof later);
    CHECK_EQ_I64(ml_loader_push(loader, file.bytes + 710, 20, &later), ML_E_FORMAT);
    CHECK_EQ_TEXT(later.message, first.message);
    ml_model *untouched = (ml_model *)&file, *model = untouched;
    memset(&later, 0, sizeof later);
    CHECK_EQ_I64(ml_loader_finish(loader, &model, &later), ML_E_FORMAT);
    CHECK_EQ_TEXT(later.message, first.message);
    CHECK_EQ_U64(later.offset, 700);
    CHECK(model == untouched);
  }
  ml_loader_free(loader);
  tiny_free(&file);
}

TEST(load_finished_loader_can_only_be_freed) {
  tiny_file file = build(false);
  REQUIRE(file.bytes != NULL);
  ml_loader *loader;
  ml_model *model;
  REQUIRE(ml_loader_new(&loader, NULL, NULL) == ML_OK);
  REQUIRE(ml_loader_push(loader, file.bytes, file.size, NULL) == ML_OK);
  REQUIRE(ml_loader_finish(loader, &model, NULL) == ML_OK);
  ml_model *again = NULL;
  CHECK_EQ_I64(ml_loader_finish(loader, &again, NULL), ML_E_STATE);
  CHECK_EQ_I64(ml_loader_push(loader, file.bytes, 1, NULL), ML_E_STATE);
  CHECK(again == NULL);
  ml_loader_free(loader);
  float logits[TINY_VOCAB];
  CHECK(run_model(model, logits)); /* which does not need its loader */
  ml_model_free(model);
  ml_loader_free(NULL);
  ml_model_free(NULL);
  tiny_free(&file);
}

TEST(load_abandoned_loader_leaves_nothing) {
  tiny_file file = build(true);
  REQUIRE(file.bytes != NULL);
  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator};
  for (size_t size = 0; size <= file.size; size += 97) {
    ml_loader *loader;
    REQUIRE(ml_loader_new(&loader, &options, NULL) == ML_OK);
    CHECK_EQ_I64(ml_loader_push(loader, file.bytes, size, NULL), ML_OK);
    ml_loader_free(loader);
    CHECK_EQ_U64(memory.live, 0);
  }
  tiny_free(&file);
}

/* ---------------------------------------------------------------- memory: limits */

TEST(load_refuses_huge_headers_before_asking_for_memory) {
  static const struct {
    uint32_t at, value;
  } huge[] = {{AT_DIM, 65536}, {AT_HIDDEN_DIM, 65536}, {AT_VOCAB, 1 << 24}, {AT_HEAD_DIM, 32768}};
  for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
    uint8_t header[ML_MLB_HEADER_SIZE];
    tiny_header(header);
    tiny_put(header, huge[i].at, huge[i].value);
    test_memory memory = {.limit = 1 << 20};
    ml_allocator allocator = test_allocator(&memory);
    ml_model *model;
    /* The source's size is known: it cannot hold what the header says. */
    ml_load_options options = {.allocator = &allocator, .total_size = 100000};
    CHECK_EQ_I64(open_stream(&model, header, sizeof header, 100, &options, NULL), ML_E_FORMAT);
    CHECK(memory.calls == 1); /* the loader itself */
    /* Not known: the memory cannot be had. */
    options.total_size = 0;
    ml_error error;
    CHECK_EQ_I64(open_stream(&model, header, sizeof header, 100, &options, &error), ML_E_NOMEM);
    CHECK_EQ_U64(memory.live, 0);
    options.memory_limit = 500000;
    CHECK_EQ_I64(open_stream(&model, header, sizeof header, 100, &options, &error), ML_E_NOMEM);
    CHECK(strstr(error.message, "500000") != NULL);
    CHECK_EQ_U64(memory.live, 0);
    CHECK(memory.peak < 100000);
  }
}

/* linear-limits: 65536 each is a valid header, and no machine's memory. */
TEST(load_refuses_the_largest_linear_layer) {
  uint8_t bytes[ML_MLB_HEADER_SIZE + 1];
  tiny_header(bytes);
  for (uint32_t at = AT_LIN_K_HEADS; at <= AT_LIN_CONV; at += 4) tiny_put(bytes, at, 65536);
  tiny_put(bytes, AT_N_LAYERS, 1);
  tiny_put(bytes, AT_LAYER_FLAGS, 1);
  bytes[AT_FLAGS] = ML_MLB_LAYER_LINEAR;
  test_memory memory = {.limit = 1 << 20};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator};
  ml_model *model;
  CHECK_EQ_I64(ml_model_open(&model, bytes, sizeof bytes, &options, NULL), ML_E_FORMAT);
  CHECK_EQ_I64(open_stream(&model, bytes, sizeof bytes, 50, &options, NULL), ML_E_NOMEM);
  CHECK_EQ_U64(memory.live, 0);
}

TEST(load_memory_limit_is_the_models_memory) {
  for (int everything = 0; everything < 2; everything++) {
    tiny_file file = build(everything);
    REQUIRE(file.bytes != NULL);
    test_memory memory = {0};
    ml_allocator allocator = test_allocator(&memory);
    ml_load_options options = {.allocator = &allocator};
    ml_model *model;
    REQUIRE(ml_model_open(&model, file.bytes, file.size, &options, NULL) == ML_OK);
    uint64_t needed = ml_model_get_info(model)->weight_bytes;
    CHECK(memory.bytes >= needed && memory.bytes < needed + 4096); /* beside it, the struct and alignment */
    ml_model_free(model);
    CHECK_EQ_U64(memory.live, 0);

    options.memory_limit = needed;
    REQUIRE(ml_model_open(&model, file.bytes, file.size, &options, NULL) == ML_OK);
    ml_model_free(model);
    ml_error error;
    options.memory_limit = needed - 1;
    CHECK_EQ_I64(ml_model_open(&model, file.bytes, file.size, &options, &error), ML_E_NOMEM);
    CHECK_EQ_I64(open_stream(&model, file.bytes, file.size, 999, &options, &error), ML_E_NOMEM);
    CHECK_EQ_U64(memory.live, 0);
    tiny_free(&file);
  }
}

/* ---------------------------------------------------------------- memory: each allocation fails once */

typedef struct object_kind {
  ml_status (*create)(void **out, const void *context, const ml_allocator *allocator, ml_error *error);
  void (*destroy)(void *object);
} object_kind;

/* Lets the first, second … allocation fail until there are no more. */
static void fail_each_allocation(const object_kind *kind, const void *context) {
  for (uint64_t fail_at = 1; fail_at < 1000; fail_at++) {
    test_memory memory = {.fail_at = fail_at};
    ml_allocator allocator = test_allocator(&memory);
    ml_error error = {.status = ML_OK};
    void *object = &memory;
    ml_status status = kind->create(&object, context, &allocator, &error);
    if (status == ML_OK) {
      CHECK(memory.calls < fail_at && fail_at > 1);
      kind->destroy(object);
      CHECK_EQ_U64(memory.live, 0);
      return;
    }
    CHECK_EQ_I64(status, ML_E_NOMEM);
    CHECK_EQ_I64(error.status, ML_E_NOMEM);
    CHECK(strlen(error.message) > 10);
    CHECK(object == &memory); /* *out untouched */
    CHECK_EQ_U64(memory.live, 0);
  }
  CHECK(false);
}

static ml_status create_opened(void **out, const void *context, const ml_allocator *allocator,
                               ml_error *error) {
  const tiny_file *file = context;
  ml_load_options options = {.allocator = allocator};
  return ml_model_open((ml_model **)out, file->bytes, file->size, &options, error);
}

static ml_status create_mapped(void **out, const void *context, const ml_allocator *allocator,
                               ml_error *error) {
  const tiny_file *file = context;
  ml_load_options options = {.allocator = allocator};
  return ml_model_map((ml_model **)out, file->bytes, file->size, &options, error);
}

static ml_status create_streamed(void **out, const void *context, const ml_allocator *allocator,
                                 ml_error *error) {
  const tiny_file *file = context;
  ml_load_options options = {.allocator = allocator};
  return open_stream((ml_model **)out, file->bytes, file->size, 101, &options, error);
}

static ml_status create_session(void **out, const void *context, const ml_allocator *allocator,
                                ml_error *error) {
  ml_session_options options = {.n_ctx = 8, .n_threads = 2, .allocator = allocator};
  return ml_session_new((ml_session **)out, context, &options, error);
}

static ml_status create_exact_session(void **out, const void *context, const ml_allocator *allocator,
                                      ml_error *error) {
  ml_session_options options = {.exact = true, .allocator = allocator};
  return ml_session_new((ml_session **)out, context, &options, error);
}

static ml_status create_imatrix(void **out, const void *context, const ml_allocator *allocator,
                                ml_error *error) {
  return ml_imatrix_new((ml_imatrix **)out, context, allocator, error);
}

static ml_status create_sampler(void **out, const void *context, const ml_allocator *allocator,
                                ml_error *error) {
  (void)context;
  ml_sampler_options options = {.temperature = 1, .top_k = 3, .repetition_penalty = 1.1f};
  return ml_sampler_new((ml_sampler **)out, TINY_VOCAB, &options, allocator, error);
}

static void destroy_model(void *object) { ml_model_free(object); }
static void destroy_session(void *object) { ml_session_free(object); }
static void destroy_imatrix(void *object) { ml_imatrix_free(object); }
static void destroy_sampler(void *object) { ml_sampler_free(object); }

TEST(load_model_when_an_allocation_fails) {
  for (int everything = 0; everything < 2; everything++) {
    tiny_file file = build(everything);
    REQUIRE(file.bytes != NULL);
    fail_each_allocation(&(object_kind){create_opened, destroy_model}, &file);
    fail_each_allocation(&(object_kind){create_mapped, destroy_model}, &file);
    fail_each_allocation(&(object_kind){create_streamed, destroy_model}, &file);
    tiny_free(&file);
  }
}

TEST(load_session_sampler_imatrix_when_an_allocation_fails) {
  tiny_file file = build(true);
  ml_model *model;
  REQUIRE(file.bytes && ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  fail_each_allocation(&(object_kind){create_session, destroy_session}, model);
  fail_each_allocation(&(object_kind){create_exact_session, destroy_session}, model);
  fail_each_allocation(&(object_kind){create_imatrix, destroy_imatrix}, model);
  fail_each_allocation(&(object_kind){create_sampler, destroy_sampler}, NULL);
  float logits[TINY_VOCAB];
  CHECK(run_model(model, logits)); /* the model is none the worse */
  ml_model_free(model);
  tiny_free(&file);
}
