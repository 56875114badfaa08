/* Model files: any bytes load or are refused with a reason, the same whether they come at once, in pieces or mapped,
 * and the model is the same. Memory that cannot be had is a failure like any other, and nothing leaks. */
#include <sanitizer/asan_interface.h>

#include "fuzz_file.h"

enum { MEMORY_LIMIT = 64 << 20 };

/* A copy that begins at a multiple of 64, and of which no byte past its end may be touched. */
static uint8_t *copy_aligned(const uint8_t *bytes, size_t size, size_t *room) {
  *room = (size_t)ml_round_up(size + 1, ML_MLB_ALIGNMENT);
  uint8_t *copy = aligned_alloc(ML_MLB_ALIGNMENT, *room);
  MUST(copy);
  memcpy(copy, bytes, size);
  ASAN_POISON_MEMORY_REGION(copy + size, *room - size);
  return copy;
}

/* The walk of an accepted file: arrays in order, aligned, apart, and within the file. */
static void check_walk(const uint8_t *bytes, size_t size) {
  ml_mlb_header header;
  MUST(ml_mlb_read_header(&header, bytes, size, NULL) == ML_OK);
  const uint8_t *flags = header.layer_flags ? bytes + ML_MLB_HEADER_SIZE : NULL;
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, flags);
  ml_array array;
  uint64_t end = ML_MLB_HEADER_SIZE;
  while (ml_mlb_walk_next(&walk, &array)) {
    MUST(array.offset % ML_MLB_ALIGNMENT == 0 && array.offset >= end &&
         array.offset < end + ML_MLB_ALIGNMENT);
    MUST(array.size > 0 && array.size <= size - array.offset);
    end = array.offset + array.size;
  }
  MUST(end == ml_mlb_file_size(&header, flags) && end <= size);
}

static void check_info(const ml_model *a, const ml_model *b) {
  ml_model_info of_a = *ml_model_get_info(a), of_b = *ml_model_get_info(b);
  of_a.weight_bytes = of_b.weight_bytes; /* a mapped file counts as a whole */
  MUST(memcmp(&of_a, &of_b, sizeof of_a) == 0);
}

/* The size of the source unknown, and one allocation failing: the same answer, or no memory. */
static void load_short_of_memory(const uint8_t *bytes, size_t size, const control *wishes,
                                 ml_status expected) {
  test_memory memory = {.fail_at = wishes->failing, .limit = 4 << 20};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator, .memory_limit = wishes->options & 1 ? 10000 : 0};
  ml_model *untouched = (ml_model *)&memory, *model = untouched;
  ml_error error = {0};
  ml_status status = push_all(&model, bytes, size, wishes->chunk, &options, &error);
  must_be_explained(status, &error);
  MUST(status == expected || status == ML_E_NOMEM);
  MUST((model == untouched) == (status != ML_OK));
  if (status == ML_OK) ml_model_free(model);
  MUST(memory.live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < CONTROL_SIZE) return 0;
  size -= CONTROL_SIZE;
  control wishes = read_control(bytes + size);
  size_t room;
  uint8_t *copy = copy_aligned(bytes, size, &room);

  ml_load_options options = {.memory_limit = MEMORY_LIMIT};
  ml_model *opened = NULL, *pushed = NULL, *mapped = NULL;
  ml_error error = {0}, error_pushed = {0}, error_mapped = {0};
  ml_status status = ml_model_open(&opened, copy, size, &options, &error);
  MUST(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
  must_be_explained(status, &error);
  MUST(ml_model_map(&mapped, copy, size, &options, &error_mapped) == status);
  options.total_size = size;
  MUST(push_all(&pushed, copy, size, wishes.chunk, &options, &error_pushed) == status);
  if (status == ML_OK) {
    check_walk(copy, size);
    check_info(opened, mapped);
    check_info(opened, pushed);
  } else {
    MUST(!opened && !pushed && !mapped);
    MUST(memcmp(&error, &error_pushed, sizeof error) == 0 &&
         memcmp(&error, &error_mapped, sizeof error) == 0);
  }
  ml_model_free(opened);
  ml_model_free(pushed);
  ml_model_free(mapped);
  load_short_of_memory(copy, size, &wishes, status);
  ASAN_UNPOISON_MEMORY_REGION(copy, room);
  free(copy);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
  return mutate_file(bytes, size, max_size, seed);
}
