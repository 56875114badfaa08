/* Model files: any bytes load or are refused with a reason, the same whether they come at once, in pieces or mapped.
 * What loads can run, and gives the same logits from a copy as from the mapped bytes. Memory that cannot be had is a
 * failure like any other, and nothing leaks.
 *
 *   input:   file bytes ... | chunk size u16 | number of the allocation that fails u8 (0: none) | options u8
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/test_allocator.h"
#include "base/bytes.h"
#include "format/mlb.h"
#include "fuzz.h"

#define CONTROL_SIZE 4
#define MEMORY_LIMIT (64u << 20)

typedef struct control {
  size_t chunk;       /* bytes pushed at a time, at least 1 */
  uint8_t failing;    /* allocation that fails, 0: none */
  bool exact, single; /* session options; batches of one token */
} control;

static control read_control(const uint8_t *bytes) {
  return (control){.chunk = 1u + ml_read_u16(bytes),
                   .failing = bytes[2],
                   .exact = bytes[3] & 1,
                   .single = bytes[3] >> 1 & 1};
}

static ml_status push_all(ml_model **model, const uint8_t *bytes, size_t size, size_t chunk,
                          const ml_load_options *options, ml_error *error) {
  ml_loader *loader = NULL;
  ml_status status = ml_loader_new(&loader, options, error);
  for (size_t at = 0; status == ML_OK && at < size; at += chunk)
    status = ml_loader_push(loader, bytes + at, size - at < chunk ? size - at : chunk, error);
  if (status == ML_OK) status = ml_loader_finish(loader, model, error);
  ml_loader_free(loader);
  return status;
}

/* Evaluates a few ids. `logits` (vocab floats) are set if the status is ML_OK. */
static ml_status run(const ml_model *model, const control *wishes, const ml_allocator *allocator,
                     float *logits) {
  uint32_t vocab = ml_model_get_info(model)->vocab;
  ml_session_options options = {.n_ctx = ml_model_get_info(model)->max_seq < 4 ? 1 : 4,
                                .n_batch = wishes->single ? 1 : 3,
                                .exact = wishes->exact,
                                .allocator = allocator};
  if (ml_session_memory(model, &options) > MEMORY_LIMIT) return ML_E_NOMEM;
  const int32_t ids[4] = {0, (int32_t)(vocab - 1), (int32_t)(vocab / 2), 0};
  ml_error error = {0};
  ml_session *session = NULL;
  ml_status status = ml_session_new(&session, model, &options, &error);
  if (status == ML_OK) status = ml_session_eval(session, ids, options.n_ctx, &error);
  must_be_explained(status, &error);
  MUST(status == ML_OK || status == ML_E_NUMERIC || status == ML_E_NOMEM);
  if (status == ML_OK) memcpy(logits, ml_session_logits(session), vocab * sizeof *logits);
  ml_session_free(session);
  return status;
}

static void compare_runs(const ml_model *a, const ml_model *b, const control *wishes) {
  size_t size = ml_model_get_info(a)->vocab * sizeof(float);
  MUST(ml_model_get_info(b)->vocab * sizeof(float) == size);
  float *of_a = malloc(size), *of_b = malloc(size);
  MUST(of_a && of_b);
  ml_status status = run(a, wishes, NULL, of_a);
  MUST(run(b, wishes, NULL, of_b) == status);
  MUST(status != ML_OK || memcmp(of_a, of_b, size) == 0);
  free(of_a);
  free(of_b);
}

/* Loads once more with an allocator that fails, and runs if it did not have to. */
static void load_without_memory(const uint8_t *bytes, size_t size, const control *wishes) {
  test_memory memory = {.fail_at = wishes->failing};
  ml_allocator allocator = test_allocator(&memory);
  ml_load_options options = {.allocator = &allocator, .memory_limit = MEMORY_LIMIT};
  ml_model *model = NULL;
  ml_error error = {0};
  ml_status status = push_all(&model, bytes, size, wishes->chunk, &options, &error);
  must_be_explained(status, &error);
  if (status == ML_OK) {
    float *logits = malloc(ml_model_get_info(model)->vocab * sizeof *logits);
    MUST(logits);
    run(model, wishes, &allocator, logits);
    free(logits);
  }
  ml_model_free(model);
  MUST(memory.live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < CONTROL_SIZE) return 0;
  size -= CONTROL_SIZE;
  control wishes = read_control(bytes + size);

  /* An exact copy of its size, so that reading past its end is noticed. */
  uint8_t *aligned = aligned_alloc(64, ml_round_up(size ? size : 1, 64));
  MUST(aligned);
  memcpy(aligned, bytes, size);

  ml_load_options options = {.memory_limit = MEMORY_LIMIT};
  ml_model *opened = NULL, *pushed = NULL, *mapped = NULL;
  ml_error error = {0}, error_pushed = {0}, error_mapped = {0};
  ml_status status = ml_model_open(&opened, bytes, size, &options, &error);
  must_be_explained(status, &error);
  MUST(ml_model_map(&mapped, aligned, size, &options, &error_mapped) == status);
  must_be_explained(status, &error_mapped);
  options.total_size = size;
  MUST(push_all(&pushed, bytes, size, wishes.chunk, &options, &error_pushed) == status);
  must_be_explained(status, &error_pushed);
  if (status == ML_OK) {
    compare_runs(opened, mapped, &wishes);
    compare_runs(mapped, pushed, &wishes);
  } else {
    MUST(!opened && !pushed && !mapped);
  }
  ml_model_free(opened);
  ml_model_free(pushed);
  ml_model_free(mapped);
  free(aligned);
  if (wishes.failing) load_without_memory(bytes, size, &wishes);
  return 0;
}

/* ---------------------------------------------------------------- mutation */

/* A change of the header mostly leaves a file of the wrong size, which is refused early. So the body is cut or repeated
 * to the size that the header now asks for. Gives the new size. */
static size_t fit_body(uint8_t *bytes, size_t size, size_t max_size) {
  ml_mlb_header header;
  if (ml_mlb_read_header(&header, bytes, size, NULL) != ML_OK) return size;
  if (header.layer_flags && size < ML_MLB_HEADER_SIZE + (size_t)header.n_layers) return size;
  const uint8_t *flags = header.layer_flags ? bytes + ML_MLB_HEADER_SIZE : NULL;
  uint64_t wanted = ml_mlb_file_size(&header, flags);
  if (wanted > max_size || size <= ML_MLB_HEADER_SIZE + ML_MLB_ALIGNMENT) return size;
  for (size_t at = size; at < wanted; at++) bytes[at] = bytes[at - (size - ML_MLB_HEADER_SIZE)];
  return (size_t)wanted;
}

static void change_header_field(uint8_t *bytes, uint32_t random) {
  static const uint32_t values[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    6,
                                    8,
                                    16,
                                    31,
                                    32,
                                    33,
                                    64,
                                    96,
                                    128,
                                    255,
                                    4096,
                                    65535,
                                    65536,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x3f800000 /* 1.0f */,
                                    0x7f800000 /* infinity */,
                                    0x7fc00000 /* NaN */};
  enum { N_VALUES = sizeof values / sizeof *values, N_FIELDS = 38, FIRST_FIELD = 8 };
  uint8_t *field = bytes + FIRST_FIELD + 4 * (random % N_FIELDS);
  uint32_t old = ml_read_u32(field), choice = random / N_FIELDS % (N_VALUES + 4);
  uint32_t changed[] = {old + 1, old - 1, old * 2, old / 2};
  ml_write_u32(field, choice < N_VALUES ? values[choice] : changed[choice - N_VALUES]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
  if (size < ML_MLB_HEADER_SIZE + CONTROL_SIZE || seed % 4 == 0)
    return LLVMFuzzerMutate(bytes, size, max_size);
  uint8_t last[CONTROL_SIZE];
  memcpy(last, bytes + size - CONTROL_SIZE, CONTROL_SIZE);
  if (seed % 4 == 1) {
    LLVMFuzzerMutate(last, CONTROL_SIZE, CONTROL_SIZE);
  } else {
    change_header_field(bytes, seed / 4);
    if (seed % 8 < 6) size = CONTROL_SIZE + fit_body(bytes, size - CONTROL_SIZE, max_size - CONTROL_SIZE);
  }
  memcpy(bytes + size - CONTROL_SIZE, last, CONTROL_SIZE);
  return size;
}
