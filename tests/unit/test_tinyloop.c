/* The .tinyloop file: every rule of its header, exact sizes, pieces of any size, no memory before the header is right. */
#include <stdio.h>

#include "test.h"
#include "test_allocator.h"
#include "tiny_loop.h"

static ml_status push_in_pieces(ml_model **model, const uint8_t *bytes, size_t size, size_t piece,
                                const ml_load_options *options, ml_error *error) {
  ml_loader *loader;
  ml_status status = ml_loader_new(&loader, options, error);
  if (status != ML_OK) return status;
  for (size_t at = 0; status == ML_OK && at < size; at += piece)
    status = ml_loader_push(loader, bytes + at, size - at < piece ? size - at : piece, error);
  if (status == ML_OK) status = ml_loader_finish(loader, model, error);
  ml_loader_free(loader);
  return status;
}

static tiny_file build(void) {
  uint8_t header[ML_TINYLOOP_MAX_HEADER];
  tiny_loop_header(header);
  return tiny_loop_build(header);
}

TEST(tinyloop_arrays_follow_each_other) {
  static const char *const factored =
      "tok_emb embed_proj attn_norm wq wq wk wk wv wv wo wo ffn_norm w1 w1 w2 w2 w3 w3 "
      "attn_norm wq wq wk wk wv wv wo wo ffn_norm w1 w1 w2 w2 w3 w3 final_norm head_proj wcls ";
  static const char *const direct =
      "tok_emb tok_emb attn_norm wq wq wk wk wv wv wo wo ffn_norm w1 w1 w2 w2 w3 w3 "
      "attn_norm wq wq wk wk wv wv wo wo ffn_norm w1 w1 w2 w2 w3 w3 final_norm wcls wcls ";
  for (int is_direct = 0; is_direct < 2; is_direct++) {
    uint8_t bytes[ML_TINYLOOP_MAX_HEADER];
    tiny_loop_header(bytes);
    if (is_direct) ml_write_u32(bytes + TL_FACTOR, 0);
    ml_tinyloop_header header;
    REQUIRE(ml_tinyloop_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
    char names[512] = "";
    uint64_t end = header.size;
    ml_tinyloop_walk walk = ml_tinyloop_walk_begin(&header);
    ml_array array;
    while (ml_tinyloop_walk_next(&walk, &array)) {
      CHECK_EQ_U64(array.offset, end);
      end += array.size;
      strcat(strcat(names, ml_tensor_name(array.tensor)), " ");
    }
    CHECK_EQ_TEXT(names, is_direct ? direct : factored);
    CHECK_EQ_U64(end, ml_tinyloop_file_size(&header));
    CHECK(!ml_tinyloop_walk_next(&walk, &array));
  }
}

/* By hand from docs/TINYLOOP.md: a block of dim 32 and ffn 64 has 2 norms of 128 bytes and 4 * 1024 + 3 * 2048 weights. */
TEST(tinyloop_file_sizes) {
  static const struct {
    uint32_t version, bits, factor, vocab_bytes;
  } cases[] = {
      {1, 4, 32, 2 * 2 * (7 + 32) * 32},
      {2, 2, 32, 2 * 2 * (7 + 32) * 32},
      {3, 4, 0, 2 * 7 * (16 + 2)},
      {3, 2, 0, 2 * 7 * (8 + 2)},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t bytes[ML_TINYLOOP_MAX_HEADER];
    tiny_loop_header(bytes);
    ml_write_u32(bytes + TL_VERSION, cases[i].version);
    ml_write_u32(bytes + TL_BITS, cases[i].bits);
    ml_write_u32(bytes + TL_FACTOR, cases[i].factor);
    ml_tinyloop_header header;
    REQUIRE(ml_tinyloop_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
    uint64_t weights = 4 * 32 * 32 + 3 * 64 * 32;
    uint64_t block = 2 * 128 + weights * cases[i].bits / 8 + weights / 32 * 2;
    CHECK_EQ_U64(ml_tinyloop_file_size(&header),
                 32 + 4 * cases[i].version + cases[i].vocab_bytes + 2 * block + 128);
  }
}

/* ---------------------------------------------------------------- what is refused */

TEST(tinyloop_header_rules) {
  static const struct {
    uint32_t at, value;
    ml_status status;
    const char *message;
  } cases[] = {
      {TL_VERSION, 0, ML_E_FORMAT, "version = 0: must be at least 1 and at most 3 (offset 4)"},
      {TL_VERSION, 4, ML_E_FORMAT, "version = 4: must be at least 1 and at most 3 (offset 4)"},
      {TL_DIM, 0, ML_E_SHAPE, "dim = 0: must be at least 1 (offset 8)"},
      {TL_DIM, 65568, ML_E_SHAPE, "dim = 65568: must be at most 65536 (offset 8)"},
      {TL_DIM, 48, ML_E_SHAPE, "dim = 48: must be a multiple of 32 (offset 8)"},
      {TL_N_HEADS, 0, ML_E_SHAPE, "n_heads = 0: must be at least 1 (offset 12)"},
      {TL_N_HEADS, 65537, ML_E_SHAPE, "n_heads = 65537: must be at most 65536 (offset 12)"},
      {TL_N_HEADS, 3, ML_E_SHAPE, "dim = 32: must be a multiple of n_heads: 3 (offset 8)"},
      {TL_N_HEADS, 32, ML_E_SHAPE, "n_heads = 32: must make heads of an even size, not of 1 (offset 12)"},
      {TL_FFN_DIM, 0, ML_E_SHAPE, "ffn_dim = 0: must be at least 1 (offset 16)"},
      {TL_FFN_DIM, 65568, ML_E_SHAPE, "ffn_dim = 65568: must be at most 65536 (offset 16)"},
      {TL_FFN_DIM, 33, ML_E_SHAPE, "ffn_dim = 33: must be a multiple of 32 (offset 16)"},
      {TL_VOCAB, 0, ML_E_SHAPE, "vocab_size = 0: must be at least 1 (offset 20)"},
      {TL_VOCAB, 16777217, ML_E_SHAPE, "vocab_size = 16777217: must be at most 16777216 (offset 20)"},
      {TL_FACTOR, 31, ML_E_SHAPE, "embed_factor_dim = 31: must be a multiple of 32 (offset 24)"},
      {TL_FACTOR, 65568, ML_E_SHAPE, "embed_factor_dim = 65568: must be at most 65536 (offset 24)"},
      {TL_PRE_BLOCKS, 256, ML_E_FORMAT, "n_pre_blocks = 256: must be at most 255 (offset 28)"},
      {TL_LOOPS, 0, ML_E_FORMAT, "default_loops = 0: must be at least 1 (offset 32)"},
      {TL_LOOPS, 65, ML_E_FORMAT, "default_loops = 65: must be at most 64 (offset 32)"},
      {TL_BITS, 0, ML_E_FORMAT, "bits = 0: must be 2 or 4 (offset 36)"},
      {TL_BITS, 3, ML_E_FORMAT, "bits = 3: must be 2 or 4 (offset 36)"},
      {TL_BITS, 8, ML_E_FORMAT, "bits = 8: must be 2 or 4 (offset 36)"},
      {TL_GROUP, 0, ML_E_SHAPE, "group_size = 0: must be at least 1 (offset 40)"},
      {TL_GROUP, 16, ML_E_SHAPE, "group_size = 16: must be a multiple of 32 (offset 40)"},
      {TL_GROUP, 64, ML_E_SHAPE, "dim = 32: must be a multiple of group_size: 64 (offset 8)"},
      {TL_GROUP, 65568, ML_E_SHAPE, "group_size = 65568: must be at most 65536 (offset 40)"},
  };
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t kept = ml_read_u32(file.bytes + cases[i].at);
    ml_write_u32(file.bytes + cases[i].at, cases[i].value);
    test_memory memory = {0};
    ml_allocator allocator = test_allocator(&memory);
    ml_load_options options = {.allocator = &allocator};
    ml_model *model = NULL;
    ml_error error = {.message = ""};
    CHECK_EQ_I64(ml_model_open(&model, file.bytes, file.size, &options, &error), cases[i].status);
    CHECK_EQ_TEXT(error.message, cases[i].message);
    CHECK(model == NULL);
    CHECK_EQ_U64(memory.calls, 1); /* the loader itself */
    CHECK_EQ_U64(memory.live, 0);
    ml_write_u32(file.bytes + cases[i].at, kept);
  }
  ml_write_u32(file.bytes + TL_FFN_DIM, 96); /* a group of 64 that fits dim alone */
  ml_write_u32(file.bytes + TL_DIM, 64);
  ml_write_u32(file.bytes + TL_GROUP, 64);
  ml_error error = {.message = ""};
  ml_model *model = NULL;
  CHECK_EQ_I64(ml_model_open(&model, file.bytes, file.size, NULL, &error), ML_E_SHAPE);
  CHECK_EQ_TEXT(error.message, "ffn_dim = 96: must be a multiple of group_size: 64 (offset 16)");
  tiny_free(&file);
}

/* What makes it no such file is said before what is wrong with a dimension, whichever stands first. */
TEST(tinyloop_format_comes_before_shape) {
  uint8_t bytes[ML_TINYLOOP_MAX_HEADER];
  tiny_loop_header(bytes);
  ml_write_u32(bytes + TL_DIM, 33);
  ml_tinyloop_header header;
  CHECK_EQ_I64(ml_tinyloop_read_header(&header, bytes, sizeof bytes, NULL), ML_E_SHAPE);
  ml_write_u32(bytes + TL_LOOPS, 0);
  CHECK_EQ_I64(ml_tinyloop_read_header(&header, bytes, sizeof bytes, NULL), ML_E_FORMAT);
}

/* Of a version that does not store them, bits and group size are not looked at. */
TEST(tinyloop_older_versions_imply) {
  uint8_t bytes[ML_TINYLOOP_MAX_HEADER];
  ml_tinyloop_header header;
  for (uint32_t version = 1; version <= 2; version++) {
    tiny_loop_header(bytes);
    ml_write_u32(bytes + TL_VERSION, version);
    ml_write_u32(bytes + TL_BITS, version == 1 ? 9 : 2);
    ml_write_u32(bytes + TL_GROUP, 9);
    REQUIRE(ml_tinyloop_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
    CHECK_EQ_U64(header.bits, version == 1 ? 4 : 2);
    CHECK_EQ_U64(header.group_size, 32);
    CHECK_EQ_U64(header.size, 32 + 4 * version);
  }
}

TEST(tinyloop_every_truncation_is_refused) {
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  for (size_t size = 0; size < file.size; size++) {
    ml_model *model = NULL;
    ml_error error = {.message = ""};
    CHECK_EQ_I64(ml_model_open(&model, file.bytes, size, NULL, &error), ML_E_FORMAT);
    CHECK(error.message[0] != 0);
    if (size % 7 && size > 64) continue;
    CHECK_EQ_I64(push_in_pieces(&model, file.bytes, size, 97, NULL, &error), ML_E_FORMAT);
    CHECK(model == NULL);
  }
  ml_error error;
  ml_model *model = NULL;
  CHECK_EQ_I64(ml_model_open(&model, file.bytes, 100, NULL, &error), ML_E_FORMAT);
  char expected[120];
  snprintf(expected, sizeof expected, "file size = 100: is not what the header implies: %zu (offset 100)",
           file.size);
  CHECK_EQ_TEXT(error.message, expected);
  CHECK_EQ_I64(ml_model_open(&model, file.bytes, 20, NULL, &error), ML_E_FORMAT);
  CHECK_EQ_TEXT(error.message, "file size = 20: must hold the header, bytes: 44 (offset 20)");
  tiny_free(&file);
}

TEST(tinyloop_nothing_may_follow) {
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  uint8_t *longer = malloc(file.size + 1);
  REQUIRE(longer != NULL);
  memcpy(longer, file.bytes, file.size);
  longer[file.size] = 0;
  char expected[120];
  snprintf(expected, sizeof expected, "file size = %zu: is not what the header implies: %zu (offset %zu)",
           file.size + 1, file.size, file.size);
  ml_model *model = NULL;
  ml_error error;
  CHECK_EQ_I64(ml_model_open(&model, longer, file.size + 1, NULL, &error), ML_E_FORMAT);
  CHECK_EQ_TEXT(error.message, expected);
  CHECK_EQ_I64(push_in_pieces(&model, longer, file.size + 1, file.size, NULL, &error), ML_E_FORMAT);
  CHECK_EQ_TEXT(error.message, expected);
  CHECK(model == NULL);
  free(longer);
  tiny_free(&file);
}

TEST(tinyloop_sizes_come_before_memory) {
  uint8_t bytes[ML_TINYLOOP_MAX_HEADER];
  tiny_loop_header(bytes);
  ml_write_u32(bytes + TL_DIM, 65536);
  ml_write_u32(bytes + TL_FFN_DIM, 65536);
  ml_write_u32(bytes + TL_VOCAB, 1 << 24);
  ml_write_u32(bytes + TL_FACTOR, 65536);
  ml_write_u32(bytes + TL_PRE_BLOCKS, 255);
  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator, .total_size = 1 << 20};
  ml_model *model = NULL;
  ml_error error;
  CHECK_EQ_I64(push_in_pieces(&model, bytes, sizeof bytes, 44, &options, &error), ML_E_FORMAT);
  CHECK_EQ_U64(memory.calls, 1);
  options.total_size = 0;
  options.memory_limit = 1 << 20;
  CHECK_EQ_I64(push_in_pieces(&model, bytes, sizeof bytes, 44, &options, &error), ML_E_NOMEM);
  CHECK(memory.peak < 1 << 20);
  CHECK_EQ_U64(memory.live, 0);
}

TEST(tinyloop_every_allocation_may_fail) {
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  bool loaded = false;
  for (uint64_t fail_at = 1; !loaded && fail_at < 20; fail_at++) {
    test_memory memory = {.fail_at = fail_at};
    ml_allocator allocator = test_allocator(&memory);
    ml_load_options options = {.allocator = &allocator};
    ml_model *model = NULL;
    ml_error error;
    ml_status status = ml_model_open(&model, file.bytes, file.size, &options, &error);
    loaded = status == ML_OK;
    CHECK(loaded || status == ML_E_NOMEM);
    ml_model_free(model);
    CHECK_EQ_U64(memory.live, 0);
  }
  CHECK(loaded);
  tiny_free(&file);
}

/* ---------------------------------------------------------------- what loads */

static bool logits_after(const ml_model *model, const ml_session_options *options, float *logits) {
  static const int32_t ids[] = {1, 6, 0, 3, 3};
  ml_session *session;
  if (!CHECK(ml_session_new(&session, model, options, NULL) == ML_OK)) return false;
  bool done = CHECK(ml_session_eval(session, ids, 5, NULL) == ML_OK);
  if (done) memcpy(logits, ml_session_logits(session), 7 * sizeof *logits);
  ml_session_free(session);
  return done;
}

TEST(tinyloop_pieces_and_maps_do_not_matter) {
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  ml_session_options options = {.n_ctx = 8};
  float expected[7], found[7];
  ml_model *model;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  ml_model_info info = *ml_model_get_info(model);
  REQUIRE(logits_after(model, &options, expected));
  ml_model_free(model);
  const size_t pieces[] = {1, 2, 3, 5, 43, 44, 45, 1000};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    REQUIRE(push_in_pieces(&model, file.bytes, file.size, pieces[i], NULL, NULL) == ML_OK);
    CHECK_EQ_BYTES(ml_model_get_info(model), &info, sizeof info);
    REQUIRE(logits_after(model, &options, found));
    CHECK_EQ_BYTES(found, expected, sizeof expected);
    ml_model_free(model);
  }
  REQUIRE(ml_model_map(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  memset(file.bytes, 0, file.size); /* nothing was borrowed */
  REQUIRE(logits_after(model, &options, found));
  CHECK_EQ_BYTES(found, expected, sizeof expected);
  ml_model_free(model);
  tiny_free(&file);
}

TEST(tinyloop_info_and_plan) {
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  ml_model *model, *planned;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  const ml_model_info *info = ml_model_get_info(model);
  CHECK_EQ_U64(info->n_layers, 2);
  CHECK_EQ_U64(info->n_loops, 2);
  CHECK_EQ_U64(info->embed_factor_dim, 32);
  CHECK_EQ_U64(info->n_kv_heads, 2);
  CHECK_EQ_TEXT(info->weight_type, "INT4");
  CHECK_EQ_U64(info->file_bytes, file.size);
  CHECK_EQ_U64(info->n_non_finite, 0);
  CHECK_EQ_U64(info->n_parameters, 2 * (7 + 32) * 32 + 2 * (64 + 10240) + 32);
  CHECK_EQ_U64(info->loop_bytes,
               10240 / 2 + 10240 / 32 * 4 + 2 * 2 * 64); /* norms of 32 lie at multiples of 64 */
  ml_load_options options = {.total_size = file.size};
  REQUIRE(ml_model_plan(&planned, file.bytes, 44, &options, NULL) == ML_OK);
  CHECK_EQ_BYTES(ml_model_get_info(planned), info, sizeof *info);
  CHECK_EQ_U64(ml_session_memory(planned, NULL), ml_session_memory(model, NULL));
  ml_model_free(planned);
  CHECK_EQ_I64(ml_model_plan(&planned, file.bytes, 43, &options, NULL), ML_E_FORMAT);
  ml_model_free(model);
  tiny_free(&file);
}

TEST(tinyloop_non_finite_weights_are_counted) {
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  file.bytes[44] = 0x00, file.bytes[45] = 0x7c; /* the first half of embed_weight: infinity */
  ml_model *model;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  CHECK_EQ_U64(ml_model_get_info(model)->n_non_finite, 1);
  ml_session *session;
  REQUIRE(ml_session_new(&session, model, &(ml_session_options){.n_ctx = 4}, NULL) == ML_OK);
  ml_error error;
  CHECK_EQ_I64(ml_session_eval(session, (int32_t[]){0}, 1, &error), ML_E_NUMERIC);
  CHECK_EQ_U64(ml_session_n_past(session), 0);
  CHECK_EQ_I64(ml_session_eval(session, (int32_t[]){1}, 1, &error), ML_OK); /* another row */
  ml_session_free(session);
  ml_model_free(model);
  tiny_free(&file);
}

/* ---------------------------------------------------------------- loops */

TEST(tinyloop_loops_of_a_session) {
  tiny_file file = build();
  ml_model *model;
  REQUIRE(file.bytes && ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  float by_loops[5][7], found[7];
  for (uint32_t loops = 0; loops < 5; loops++)
    REQUIRE(logits_after(model, &(ml_session_options){.n_ctx = 8, .n_loops = loops}, by_loops[loops]));
  CHECK_EQ_BYTES(by_loops[0], by_loops[2], sizeof found); /* the default */
  CHECK(memcmp(by_loops[1], by_loops[2], sizeof found) != 0);
  CHECK(memcmp(by_loops[2], by_loops[4], sizeof found) != 0);

  ml_session *session;
  REQUIRE(ml_session_new(&session, model, &(ml_session_options){.n_ctx = 8, .n_loops = 4}, NULL) == ML_OK);
  CHECK_EQ_U64(ml_session_n_loops(session), 4);
  static const int32_t ids[] = {1, 6, 0, 3, 3};
  for (uint32_t round = 0; round < 6; round++) {
    uint32_t loops = (uint32_t[]){4, 1, 3, 2, 2, 4}[round];
    REQUIRE(ml_session_set_loops(session, loops, NULL) == ML_OK);
    CHECK_EQ_U64(ml_session_n_loops(session), loops);
    if (round != 4) CHECK_EQ_U64(ml_session_n_past(session), 0); /* a change forgets */
    if (round == 4) CHECK_EQ_U64(ml_session_n_past(session), 5); /* none does not */
    ml_session_truncate(session, 0);
    for (int i = 0; i < 5; i++) REQUIRE(ml_session_eval(session, ids + i, 1, NULL) == ML_OK);
    CHECK_EQ_BYTES(ml_session_logits(session), by_loops[loops], sizeof found);
    CHECK_EQ_U64(ml_session_truncate(session, 4), 4); /* every run's cache goes back */
    REQUIRE(ml_session_eval(session, ids + 4, 1, NULL) == ML_OK);
    CHECK_EQ_BYTES(ml_session_logits(session), by_loops[loops], sizeof found);
  }
  ml_error error;
  CHECK_EQ_I64(ml_session_set_loops(session, 5, &error), ML_E_ARG);
  CHECK_EQ_TEXT(error.message, "loops = 5: must be at least 1, and at most the session's 4");
  CHECK_EQ_I64(ml_session_set_loops(session, 0, &error), ML_E_ARG);
  CHECK_EQ_U64(ml_session_n_loops(session), 4);
  CHECK_EQ_U64(ml_session_n_past(session), 5);
  ml_session_free(session);

  CHECK_EQ_I64(ml_session_new(&session, model, &(ml_session_options){.n_loops = 65}, &error), ML_E_ARG);
  CHECK_EQ_TEXT(error.message, "loops = 65: must be at most 64");
  uint64_t least = ml_session_memory(model, &(ml_session_options){.n_ctx = 8, .n_loops = 1});
  uint64_t more = ml_session_memory(model, &(ml_session_options){.n_ctx = 8, .n_loops = 3});
  CHECK(more >= least + 2 * 2 * 8 * 32 * sizeof(float)); /* keys and values of two more runs */
  ml_model_free(model);
  tiny_free(&file);
}

TEST(tinyloop_other_models_have_no_loops) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  tiny_file file = tiny_build(header, NULL);
  ml_model *model;
  REQUIRE(file.bytes && ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  ml_session *session;
  ml_error error;
  CHECK_EQ_I64(ml_session_new(&session, model, &(ml_session_options){.n_loops = 1}, &error), ML_E_ARG);
  CHECK_EQ_TEXT(error.message, "loops = 1: but no layer of this model is repeated: leave it at 0");
  REQUIRE(ml_session_new(&session, model, NULL, NULL) == ML_OK);
  CHECK_EQ_U64(ml_session_n_loops(session), 0);
  CHECK_EQ_I64(ml_session_set_loops(session, 1, &error), ML_E_ARG);
  ml_session_free(session);
  ml_model_free(model);
  tiny_free(&file);
}

/* ---------------------------------------------------------------- half-precision body */

TEST(tinyloop_half_precision_body) {
#if defined(__wasm__)
  ml_model *none;
  CHECK_EQ_I64(ml_model_open(&none, "", 0, &(ml_load_options){.f16_body = true}, NULL), ML_E_ARG);
#else
  tiny_file file = build();
  REQUIRE(file.bytes != NULL);
  float usual[7], half[7], mapped[7];
  ml_session_options options = {.n_ctx = 8};
  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options load = {.allocator = &allocator};
  ml_model *model;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, &load, NULL) == ML_OK);
  uint64_t small = ml_model_get_info(model)->weight_bytes;
  REQUIRE(logits_after(model, &options, usual));
  ml_model_free(model);
  load.f16_body = true;
  REQUIRE(push_in_pieces(&model, file.bytes, file.size, 11, &load, NULL) == ML_OK);
  CHECK(ml_model_get_info(model)->weight_bytes > small);
  CHECK(memory.bytes < ml_model_get_info(model)->weight_bytes + 2048); /* no matrix is left behind */
  REQUIRE(logits_after(model, &options, half));
  ml_model_free(model);
  REQUIRE(ml_model_map(&model, file.bytes, file.size, &load, NULL) == ML_OK);
  REQUIRE(logits_after(model, &options, mapped));
  ml_model_free(model);
  CHECK_EQ_BYTES(mapped, half, sizeof half);
  CHECK(memcmp(half, usual, sizeof half) != 0);
  for (int i = 0; i < 7; i++) CHECK_NEAR(half[i], usual[i], 0.3);
  for (uint64_t fail_at = 1; fail_at < 6; fail_at++) {
    memory = (test_memory){.fail_at = fail_at};
    CHECK_EQ_I64(ml_model_open(&model, file.bytes, file.size, &load, NULL), ML_E_NOMEM);
    CHECK_EQ_U64(memory.live, 0);
  }
  tiny_free(&file);
#endif
}
