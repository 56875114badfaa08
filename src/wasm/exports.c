/* exports.c - ml.h as JavaScript can call it: numbers in, a number out. js/heap.js is the only caller.
 *
 * Objects are handles (addresses), 0 where one could not be made. A call that can fail returns an ml_status, or a
 * handle, or -1 instead of a number; the last failure is kept here until the next one. Sizes that may exceed 32 bits are
 * doubles, which hold them exactly up to 2^53. The list of exports is exports.txt. */
#include <emscripten/heap.h>
#include <stdlib.h>
#include <string.h>

#include "ml.h"

#pragma clang diagnostic ignored "-Wmissing-prototypes" /* their only caller knows them by name */

/* An instance serves one thread of JavaScript, so what outlives a call may be static. */
static ml_error failure = {.status = ML_OK, .offset = ML_NO_OFFSET, .message = ""};
static char facts[1024], *facts_end; /* where the next line goes */
static const char *text;             /* of a decoder or a token, text_size bytes */
static size_t text_size;

/* ---------------------------------------------------------------- memory */

/* JavaScript made the memory at the size that was needed: there is no more. */
int emscripten_resize_heap(size_t size) {
  (void)size;
  return 0;
}

void *ml_wasm_allocate(size_t size) { return malloc(size); }
void ml_wasm_release(void *memory) { free(memory); }

/* Below the heap: constants and the stack. */
uint32_t ml_wasm_static_bytes(void) {
  extern char __heap_base;
  return (uint32_t)&__heap_base;
}

/* ---------------------------------------------------------------- what went wrong */

ml_status ml_wasm_error_status(void) { return failure.status; }
const char *ml_wasm_error_message(void) { return failure.message; }
double ml_wasm_error_offset(void) { return failure.offset == ML_NO_OFFSET ? -1 : (double)failure.offset; }

/* ---------------------------------------------------------------- facts: lines of "name value" */

static char *put(char *at, const char *string) {
  while (*string) *at++ = *string++;
  return at;
}

static void add_text(const char *name, const char *value) {
  facts_end = put(put(put(put(facts_end, name), " "), value), "\n");
  *facts_end = 0;
}

static void add_number(const char *name, uint64_t value) {
  char digits[21], *at = digits + 20;
  *at = 0;
  do *--at = (char)('0' + value % 10);
  while (value /= 10);
  add_text(name, at);
}

/* Valid until the next facts. */
const char *ml_wasm_model_facts(const ml_model *model) {
  const ml_model_info *info = ml_model_get_info(model);
  facts_end = facts;
  add_text("weightType", info->weight_type);
  add_number("parameters", info->n_parameters);
  add_number("vocabulary", info->vocab);
  add_number("maxContext", info->max_seq);
  add_number("width", info->dim);
  add_number("feedForwardWidth", info->hidden_dim);
  add_number("layers", info->n_layers);
  add_number("loops", info->n_loops);
  add_number("linearLayers", info->n_linear_layers);
  add_number("windowLayers", info->n_window_layers);
  add_number("slidingWindow", info->sliding_window);
  add_number("heads", info->n_heads);
  add_number("keyValueHeads", info->n_kv_heads);
  add_number("headSize", info->head_dim);
  add_number("fileBytes", info->file_bytes);
  add_number("trailingBytes", info->trailing_bytes);
  add_number("weightBytes", info->weight_bytes);
  add_number("nonFiniteWeights", info->n_non_finite);
  return facts;
}

/* ---------------------------------------------------------------- model */

ml_model *ml_wasm_model_plan(const void *bytes, size_t size, double total_size) {
  ml_load_options options = {.total_size = (uint64_t)total_size};
  ml_model *model = NULL;
  ml_model_plan(&model, bytes, size, &options, &failure);
  return model;
}

/* total_size and memory_limit: as in ml_load_options, 0 when there is none. */
ml_loader *ml_wasm_loader_new(double total_size, double memory_limit) {
  ml_load_options options = {.total_size = (uint64_t)total_size, .memory_limit = (uint64_t)memory_limit};
  ml_loader *loader = NULL;
  ml_loader_new(&loader, &options, &failure);
  return loader;
}

ml_status ml_wasm_loader_push(ml_loader *loader, const void *bytes, size_t size) {
  return ml_loader_push(loader, bytes, size, &failure);
}

ml_model *ml_wasm_loader_finish(ml_loader *loader) {
  ml_model *model = NULL;
  ml_loader_finish(loader, &model, &failure);
  return model;
}

/* ---------------------------------------------------------------- session */

/* JavaScript's side of a trace: a hash of each stage's floats, FNV-1a as `ml_run --trace` prints it. */
__attribute__((import_module("krafla"), import_name("stage"))) void host_stage(const char *stage,
                                                                               int32_t layer,
                                                                               uint32_t position, uint32_t n,
                                                                               uint64_t hash);

static void trace_stage(void *user, const char *stage, int32_t layer, uint32_t position, const float *values,
                        size_t n) {
  (void)user;
  const uint8_t *bytes = (const uint8_t *)values;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < n * sizeof *values; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  host_stage(stage, layer, position, (uint32_t)n, hash);
}

/* The logits of a position that is scored. Ends the call when it returns 0. */
__attribute__((import_module("krafla"), import_name("position"))) int32_t host_position(uint32_t position,
                                                                                        const float *logits);

static bool next_position(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  (void)user, (void)logits_exact;
  return host_position(position, logits) != 0;
}

static ml_session_options session_options(uint32_t n_ctx, uint32_t n_batch, uint32_t n_threads,
                                          uint32_t n_loops, int kv, const char *isa, int trace) {
  return (ml_session_options){.n_ctx = n_ctx,
                              .n_batch = n_batch,
                              .n_threads = n_threads,
                              .n_loops = n_loops,
                              .kv = (ml_kv_type)kv,
                              .isa = isa,
                              .trace = trace ? trace_stage : NULL};
}

/* Bytes that ml_wasm_session_new would ask for; 0 when it would refuse. kv: an ml_kv_type. */
double ml_wasm_session_memory(const ml_model *model, uint32_t n_ctx, uint32_t n_batch, uint32_t n_threads,
                              uint32_t n_loops, int kv) {
  ml_session_options options = session_options(n_ctx, n_batch, n_threads, n_loops, kv, NULL, false);
  return (double)ml_session_memory(model, &options);
}

/* n_loops 0: as the model says. isa NULL: the best. trace: every stage of what is evaluated goes to host_stage. */
ml_session *ml_wasm_session_new(const ml_model *model, uint32_t n_ctx, uint32_t n_batch, uint32_t n_threads,
                                const char *isa, int trace, uint32_t n_loops, int kv) {
  ml_session_options options = session_options(n_ctx, n_batch, n_threads, n_loops, kv, isa, trace);
  ml_session *session = NULL;
  ml_session_new(&session, model, &options, &failure);
  return session;
}

ml_status ml_wasm_session_set_loops(ml_session *session, uint32_t n_loops) {
  return ml_session_set_loops(session, n_loops, &failure);
}

ml_status ml_wasm_session_eval(ml_session *session, const int32_t *ids, size_t n) {
  return ml_session_eval(session, ids, n, &failure);
}

/* The same with the logits of every position, which go to host_position. */
ml_status ml_wasm_session_score(ml_session *session, const int32_t *ids, size_t n) {
  return ml_session_score(session, ids, n, next_position, NULL, &failure);
}

/* ---------------------------------------------------------------- tokenizer */

/* Bytes that ml_wasm_tokenizer_open would ask for; 0 when it would refuse. */
double ml_wasm_tokenizer_memory(const void *bytes, size_t size) {
  return (double)ml_tokenizer_memory(bytes, size);
}

ml_tokenizer *ml_wasm_tokenizer_open(const void *bytes, size_t size) {
  ml_tokenizer *tokenizer = NULL;
  ml_tokenizer_open(&tokenizer, bytes, size, NULL, &failure);
  return tokenizer;
}

/* Beginning and end are missing where there is none. Valid until the next facts. */
const char *ml_wasm_tokenizer_facts(const ml_tokenizer *tokenizer) {
  const ml_tokenizer_info *info = ml_tokenizer_get_info(tokenizer);
  facts_end = facts;
  add_number("kind", info->kind);
  add_number("vocabulary", info->n_vocab);
  add_number("merges", info->n_merges);
  add_number("added", info->n_added);
  add_number("flags", info->flags);
  if (info->bos >= 0) add_number("beginning", (uint64_t)info->bos);
  if (info->eos >= 0) add_number("end", (uint64_t)info->eos);
  return facts;
}

ml_status ml_wasm_tokenizer_check_model(const ml_tokenizer *tokenizer, const ml_model *model) {
  return ml_tokenizer_check_model(tokenizer, model, &failure);
}

/* Ids that the text has, of which the first `capacity` are in `ids`; -1 on failure. */
int32_t ml_wasm_tokenizer_encode(const ml_tokenizer *tokenizer, const char *string, size_t size,
                                 const ml_span *plain, size_t n_plain, unsigned flags, int32_t *ids,
                                 size_t capacity) {
  size_t n = 0;
  ml_status status =
      ml_tokenizer_encode_spans(tokenizer, string, size, plain, n_plain, flags, ids, capacity, &n, &failure);
  return status == ML_OK ? (int32_t)n : -1;
}

/* The next control token, its spelling as text; -1 when there is none. */
int32_t ml_wasm_tokenizer_next_control(const ml_tokenizer *tokenizer, int32_t after) {
  return ml_tokenizer_next_control(tokenizer, after, &text, &text_size);
}

ml_decoder *ml_wasm_decoder_new(const ml_tokenizer *tokenizer) {
  ml_decoder *decoder = NULL;
  ml_decoder_new(&decoder, tokenizer, NULL, &failure);
  return decoder;
}

/* Afterwards the text is what is certain by now. */
ml_status ml_wasm_decoder_push(ml_decoder *decoder, int32_t id, int special) {
  return ml_decoder_push(decoder, id, special != 0, &text, &text_size, &failure);
}

void ml_wasm_decoder_finish(ml_decoder *decoder) { ml_decoder_finish(decoder, &text, &text_size); }

/* The text of the last of these calls. */
const char *ml_wasm_text(void) { return text; }
size_t ml_wasm_text_size(void) { return text_size; }

/* ---------------------------------------------------------------- sampler */

/* The seed in two halves. */
ml_sampler *ml_wasm_sampler_new(uint32_t vocab, float temperature, uint32_t top_k, float top_p, float min_p,
                                float repetition_penalty, float presence_penalty, float frequency_penalty,
                                uint32_t seed_low, uint32_t seed_high) {
  ml_sampler_options options = {.temperature = temperature,
                                .top_k = top_k,
                                .top_p = top_p,
                                .min_p = min_p,
                                .repetition_penalty = repetition_penalty,
                                .presence_penalty = presence_penalty,
                                .frequency_penalty = frequency_penalty,
                                .seed = (uint64_t)seed_high << 32 | seed_low};
  ml_sampler *sampler = NULL;
  ml_sampler_new(&sampler, vocab, &options, NULL, &failure);
  return sampler;
}

ml_status ml_wasm_sampler_accept(ml_sampler *sampler, int32_t id) {
  return ml_sampler_accept(sampler, id, &failure);
}

/* The id; -1 on failure. */
int32_t ml_wasm_sampler_sample(ml_sampler *sampler, const float *logits) {
  int32_t id = -1;
  ml_sampler_sample(sampler, logits, &id, &failure);
  return id;
}
