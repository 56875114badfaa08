/* TinyLoop files: any bytes behind the magic load or are refused with a reason, the same whether they come at once, in
 * pieces or mapped. What loads runs: any number of loops, any kernels, with the same logits token by token as in one
 * batch. No memory is a failure like any other, and nothing leaks. */
#include "../unit/tiny_loop.h"
#include "fuzz_file.h"

enum { N_IDS = 3, MOST_VOCAB = 1024, MEMORY_LIMIT = 16 << 20 };

/* Bits of control.options; the upper three are the number of the kernels that are compared with the best. */
enum { EXACT = 1, F16_BODY = 2, MORE_LOOPS = 4, ISA_SHIFT = 5 };

/* The walk of an accepted file: its arrays fill it from the header to the end. */
static void check_walk(const uint8_t *bytes, size_t size) {
  ml_tinyloop_header header;
  MUST(ml_tinyloop_read_header(&header, bytes, size, NULL) == ML_OK);
  ml_tinyloop_walk walk = ml_tinyloop_walk_begin(&header);
  ml_array array;
  uint64_t end = header.size;
  while (ml_tinyloop_walk_next(&walk, &array)) {
    MUST(array.offset == end && array.size > 0);
    end += array.size;
  }
  MUST(end == size && end == ml_tinyloop_file_size(&header));
}

/* Logits after the last id; false when numbers ran away or there was no memory. */
static bool run(const ml_model *model, ml_session_options options, uint32_t step, float *logits) {
  uint32_t last = ml_model_get_info(model)->vocab - 1;
  const int32_t ids[N_IDS] = {0, (int32_t)last, (int32_t)(last / 2)};
  ml_session *session = NULL;
  ml_error error = {0};
  ml_status status = ml_session_new(&session, model, &options, &error);
  must_be_explained(status, &error);
  MUST(status == ML_OK || status == ML_E_NOMEM);
  for (uint32_t done = 0; status == ML_OK && done < N_IDS; done += step) {
    status = ml_session_eval(session, ids + done, step, &error);
    must_be_explained(status, &error);
    MUST(status == ML_OK || status == ML_E_NUMERIC);
  }
  if (status == ML_OK) memcpy(logits, ml_session_logits(session), (last + 1) * sizeof *logits);
  ml_session_free(session);
  return status == ML_OK;
}

static void run_model(const ml_model *model, const control *wishes) {
  static float single[MOST_VOCAB], batched[MOST_VOCAB];
  const ml_model_info *info = ml_model_get_info(model);
  if (info->vocab > MOST_VOCAB) return;
  MUST(info->n_loops >= 1 && info->n_loops <= ML_MAX_LOOPS);
  uint32_t n_loops = wishes->options & MORE_LOOPS ? info->n_loops % 4 + 1 : info->n_loops % 8 + 1;
  ml_session_options options = {.n_ctx = N_IDS, .n_loops = n_loops, .exact = wishes->options & EXACT};
  bool alone = run(model, options, 1, single);
  options.isa = ml_isa_name(wishes->options >> ISA_SHIFT);
  options.n_threads = 2;
  bool together = run(model, options, N_IDS, batched);
  if (alone) MUST(together && memcmp(single, batched, info->vocab * sizeof(float)) == 0);
}

/* The source's size unknown, and one allocation failing: the same answer, or no memory. */
static void load_short_of_memory(const uint8_t *bytes, size_t size, const control *wishes,
                                 ml_status expected) {
  test_memory memory = {.fail_at = wishes->failing, .limit = 4 << 20};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator, .f16_body = wishes->options & F16_BODY};
  ml_model *model = NULL;
  ml_error error = {0};
  ml_status status = push_all(&model, bytes, size, wishes->chunk, &options, &error);
  must_be_explained(status, &error);
  MUST(status == expected || status == ML_E_NOMEM);
  MUST((model != NULL) == (status == ML_OK));
  if (status == ML_OK) run_model(model, wishes);
  ml_model_free(model);
  MUST(memory.live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < 4 + CONTROL_SIZE) return 0;
  size -= CONTROL_SIZE;
  control wishes = read_control(bytes + size);
  uint8_t *copy = aligned_alloc(64, (size_t)ml_round_up(size, 64));
  MUST(copy);
  memcpy(copy, bytes, size);
  ml_write_u32(copy, ML_TINYLOOP_MAGIC);

  ml_load_options options = {.memory_limit = MEMORY_LIMIT};
  ml_model *opened = NULL, *pushed = NULL, *mapped = NULL;
  ml_error error = {0}, error_pushed = {0};
  ml_status status = ml_model_open(&opened, copy, size, &options, &error);
  MUST(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
  must_be_explained(status, &error);
  MUST(ml_model_map(&mapped, copy, size, &options, NULL) == status);
  options.total_size = size;
  MUST(push_all(&pushed, copy, size, wishes.chunk, &options, &error_pushed) == status);
  MUST(memcmp(&error, &error_pushed, sizeof error) == 0);
  MUST((status == ML_OK) == (opened && pushed && mapped));
  if (status == ML_OK) {
    check_walk(copy, size);
    MUST(memcmp(ml_model_get_info(opened), ml_model_get_info(pushed), sizeof(ml_model_info)) == 0);
    MUST(memcmp(ml_model_get_info(opened), ml_model_get_info(mapped), sizeof(ml_model_info)) == 0);
    run_model(opened, &wishes);
  }
  ml_model_free(opened);
  ml_model_free(pushed);
  ml_model_free(mapped);
  load_short_of_memory(copy, size, &wishes, status);
  free(copy);
  return 0;
}

/* ---------------------------------------------------------------- mutation */

/* Values that are mostly right together, and now and then one that is not. */
static void change_loop_field(uint8_t *header, uint32_t *random) {
  static const uint32_t values[] = {0,  1,  2,   3,   4,   7,     31,         32,        33,
                                    64, 96, 128, 255, 256, 65536, 0x80000000, 0xffffffff};
  enum { N_VALUES = sizeof values / sizeof *values, N_LOOP_FIELDS = (TL_GROUP - TL_VERSION) / 4 + 1 };
  uint8_t *field = header + TL_VERSION + 4 * (tiny_next(random) % N_LOOP_FIELDS);
  ml_write_u32(field, values[tiny_next(random) % N_VALUES]);
}

/* Puts fields back to a plain file's until the header holds. */
static void mend_loop_header(uint8_t *header) {
  uint8_t plain[ML_TINYLOOP_MAX_HEADER];
  ml_tinyloop_header checked;
  ml_error error;
  tiny_loop_header(plain);
  for (int round = 0; round < 12; round++) {
    if (ml_tinyloop_read_header(&checked, header, ML_TINYLOOP_MAX_HEADER, &error) == ML_OK) return;
    uint32_t at = (uint32_t)error.offset & ~3u;
    if (memcmp(header + at, plain + at, 4) == 0) break; /* at odds with another one */
    memcpy(header + at, plain + at, 4);
  }
  memcpy(header, plain, sizeof plain);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
  uint32_t random = seed, kind = tiny_next(&random) % 8;
  if (size < ML_TINYLOOP_MAX_HEADER + CONTROL_SIZE || kind < 2)
    return LLVMFuzzerMutate(bytes, size, max_size);
  if (kind == 2) {
    change_loop_field(bytes, &random); /* and let it not fit */
    return size;
  }
  uint8_t last[CONTROL_SIZE], header[ML_TINYLOOP_MAX_HEADER];
  memcpy(last, bytes + size - CONTROL_SIZE, CONTROL_SIZE);
  memcpy(header, bytes, sizeof header);
  ml_write_u32(header, ML_TINYLOOP_MAGIC);
  for (uint32_t n = 1 + tiny_next(&random) % 3; n; n--) change_loop_field(header, &random);
  mend_loop_header(header);
  tiny_file file = tiny_loop_build(header);
  if (file.bytes && file.size + CONTROL_SIZE <= max_size) {
    memcpy(bytes, file.bytes, file.size);
    size = file.size + CONTROL_SIZE;
    for (uint32_t n = tiny_next(&random) % 4; n; n--)
      bytes[ML_TINYLOOP_MAX_HEADER + tiny_next(&random) % (size - ML_TINYLOOP_MAX_HEADER)] =
          (uint8_t)tiny_next(&random);
    last[3] = (uint8_t)tiny_next(&random);
    memcpy(bytes + file.size, last, CONTROL_SIZE);
  }
  tiny_free(&file);
  return size;
}
