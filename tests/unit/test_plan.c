/* Planning a model from the beginning of its file says what loading it will need. */
#include "test.h"
#include "test_allocator.h"
#include "tiny_file.h"

static tiny_file build(bool everything) {
  uint8_t header[ML_MLB_HEADER_SIZE], flags[4] = {0};
  if (everything) tiny_everything(header, flags);
  if (!everything) tiny_header(header);
  return tiny_build(header, flags);
}

TEST(plan_answers_as_the_loaded_model_does) {
  for (int everything = 0; everything < 2; everything++) {
    tiny_file file = build(everything);
    REQUIRE(file.bytes != NULL);
    ml_model *loaded;
    REQUIRE(ml_model_open(&loaded, file.bytes, file.size, NULL, NULL) == ML_OK);
    ml_session_options options = {.n_ctx = 8, .n_batch = 4, .n_threads = 2};
    uint64_t session_bytes = ml_session_memory(loaded, &options);
    const size_t sizes[] = {ML_MLB_HEADER_SIZE + 4, file.size / 2, file.size};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      test_memory memory = {0};
      ml_allocator allocator = {test_allocate, test_release, &memory};
      ml_load_options load_options = {.allocator = &allocator, .total_size = file.size};
      ml_model *planned;
      REQUIRE(ml_model_plan(&planned, file.bytes, sizes[i], &load_options, NULL) == ML_OK);
      CHECK_EQ_BYTES(ml_model_get_info(planned), ml_model_get_info(loaded), sizeof(ml_model_info));
      CHECK_EQ_U64(ml_session_memory(planned, &options), session_bytes);
      CHECK(memory.peak < ml_model_get_info(loaded)->weight_bytes);

      ml_session *session = NULL;
      ml_error error = {.message = ""};
      CHECK_EQ_I64(ml_session_new(&session, planned, &options, &error), ML_E_STATE);
      CHECK_EQ_TEXT(error.message, "model: was planned, not loaded");
      CHECK(session == NULL);
      ml_model_free(planned);
      CHECK_EQ_U64(memory.live, 0);
    }
    ml_model_free(loaded);
    tiny_free(&file);
  }
}

TEST(plan_says_what_is_missing_or_wrong) {
  tiny_file file = build(true);
  REQUIRE(file.bytes != NULL);
  ml_model *planned = NULL;
  ml_error error;
  for (size_t size = 0; size < ML_MLB_HEADER_SIZE + 4; size++)
    CHECK_EQ_I64(ml_model_plan(&planned, file.bytes, size, NULL, &error), ML_E_FORMAT);
  ml_load_options short_source = {.total_size = file.size - 64};
  CHECK_EQ_I64(ml_model_plan(&planned, file.bytes, file.size, &short_source, &error), ML_E_FORMAT);
  ml_load_options little_memory = {.memory_limit = 64};
  CHECK_EQ_I64(ml_model_plan(&planned, file.bytes, file.size, &little_memory, &error), ML_E_NOMEM);
  file.bytes[AT_DIM] = 33;
  CHECK_EQ_I64(ml_model_plan(&planned, file.bytes, file.size, NULL, &error), ML_E_SHAPE);
  CHECK(planned == NULL);
  tiny_free(&file);
}
