/* A file that loads can run. Tokens in one batch, one by one, or after some were taken back give the same logits, by
 * any of the machine's kernels and any number of threads; numbers that run away end in ML_E_NUMERIC and leave a
 * session that goes on; no memory is ML_E_NOMEM. */
#include "fuzz_file.h"

enum { N_IDS = 5, MOST_VOCAB = 4096, MEMORY_LIMIT = 64 << 20 };

/* Bits of control.options; the upper three are the number of the kernels that are compared with the best. */
enum { EXACT = 1, IMATRIX = 2, SMALL_MEMORY = 4, MAP = 8, THREADS = 16, ISA_SHIFT = 5 };

typedef struct fuzz_scene {
  const ml_model *model;
  uint32_t vocab, n_ctx; /* n_ctx: N_IDS, or fewer when the model allows no more */
  int32_t ids[N_IDS];
  ml_session_options first, others; /* of the session that is the measure, and of those compared with it */
  ml_allocator allocator;
  float logits[N_IDS][MOST_VOCAB]; /* after each position, one token at a time */
  uint32_t n_done;                 /* positions that went well */
} fuzz_scene;

static void set_scene(fuzz_scene *scene, const ml_model *model, const control *wishes) {
  const ml_model_info *info = ml_model_get_info(model);
  scene->model = model;
  scene->vocab = info->vocab;
  scene->n_ctx = info->max_seq < N_IDS ? info->max_seq : N_IDS;
  scene->first = (ml_session_options){
      .n_ctx = scene->n_ctx, .n_batch = 1, .exact = wishes->options & EXACT, .allocator = &scene->allocator};
  scene->others = scene->first;
  scene->others.isa = ml_isa_name(wishes->options >> ISA_SHIFT);
  scene->others.n_threads = wishes->options & THREADS ? 2 : 1;
  scene->n_done = 0;
  const uint32_t last = info->vocab - 1;
  memcpy(scene->ids, (int32_t[N_IDS]){1, (int32_t)last, (int32_t)(last / 2), 0, 1}, sizeof scene->ids);
}

static ml_session *open_session(const fuzz_scene *scene, ml_session_options options, uint32_t n_batch,
                                ml_imatrix *imatrix) {
  options.n_batch = n_batch;
  options.imatrix = imatrix;
  ml_session *session = NULL;
  ml_error error = {0};
  ml_status status = ml_session_new(&session, scene->model, &options, &error);
  must_be_explained(status, &error);
  MUST(status == ML_OK || (status == ML_E_NOMEM && !session));
  return session;
}

static ml_status eval(const fuzz_scene *scene, ml_session *session, uint32_t first, uint32_t n) {
  ml_error error = {0};
  ml_status status = ml_session_eval(session, scene->ids + first, n, &error);
  must_be_explained(status, &error);
  MUST(status == ML_OK || status == ML_E_NUMERIC);
  MUST((ml_session_logits(session) != NULL) == (status == ML_OK));
  if (status == ML_OK) MUST(ml_session_n_past(session) == first + n);
  if (status != ML_OK) MUST(ml_session_n_past(session) == first || ml_session_n_past(session) == 0);
  return status;
}

static bool equal_logits(const fuzz_scene *scene, const float *logits, uint32_t position) {
  return memcmp(logits, scene->logits[position], scene->vocab * sizeof *logits) == 0;
}

/* Token by token: the reference for all that follows. False without memory. */
static bool run_single(fuzz_scene *scene) {
  ml_session *session = open_session(scene, scene->first, 1, NULL);
  if (!session) return false;
  for (uint32_t i = 0; i < scene->n_ctx; i++) {
    if (eval(scene, session, i, 1) != ML_OK) break;
    memcpy(scene->logits[i], ml_session_logits(session), scene->vocab * sizeof(float));
    for (uint32_t id = 0; id < scene->vocab; id++)
      MUST(scene->logits[i][id] - scene->logits[i][id] == 0); /* finite */
    scene->n_done++;
  }
  ml_session_free(session);
  return true;
}

/* All at once, in batches of three. Logits that nobody asked for are not computed here, and cannot fail. */
static void run_batched(fuzz_scene *scene, ml_imatrix *imatrix) {
  ml_session *session = open_session(scene, scene->others, 3, imatrix);
  if (!session) return;
  ml_status status = eval(scene, session, 0, scene->n_ctx);
  bool is_known = scene->n_done == scene->n_ctx;
  if (is_known) MUST(status == ML_OK && equal_logits(scene, ml_session_logits(session), scene->n_ctx - 1));
  ml_session_free(session);
}

static bool on_logits(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  const fuzz_scene *scene = user;
  MUST(position < scene->n_done && equal_logits(scene, logits, position));
  MUST((logits_exact != NULL) == scene->first.exact);
  return position != 2;
}

/* Scored up to the third token, taken back to the second, gone on with. */
static void run_back_and_forth(fuzz_scene *scene) {
  ml_session *session = open_session(scene, scene->others, 2, NULL);
  if (!session) return;
  ml_error error = {0};
  ml_status status = ml_session_score(session, scene->ids, scene->n_ctx, on_logits, scene, &error);
  must_be_explained(status, &error);
  MUST(status == ML_OK || status == ML_E_NUMERIC);
  uint32_t n_past = ml_session_n_past(session);
  MUST(n_past <= scene->n_ctx);
  uint32_t kept = ml_session_truncate(session, 2);
  MUST(kept == ml_session_n_past(session) && (kept == 0 || kept == (n_past < 2 ? n_past : 2)));
  while (kept < scene->n_done) {
    MUST(eval(scene, session, kept, 1) == ML_OK);
    MUST(equal_logits(scene, ml_session_logits(session), kept));
    kept++;
  }
  const int32_t outside[] = {-1, (int32_t)scene->vocab};
  for (int i = 0; i < 2 && kept < scene->n_ctx; i++)
    MUST(ml_session_eval(session, &outside[i], 1, NULL) == ML_E_ARG && ml_session_n_past(session) == kept);
  MUST(ml_session_eval(session, scene->ids, 0, NULL) == ML_E_ARG);
  if (kept == scene->n_ctx) MUST(ml_session_eval(session, scene->ids, 1, NULL) == ML_E_CONTEXT);
  ml_session_free(session);
}

/* What was gathered while running is a valid file. */
static void check_imatrix(const ml_imatrix *imatrix) {
  uint64_t size = ml_imatrix_size(imatrix);
  uint8_t *bytes = malloc((size_t)size);
  MUST(bytes);
  ml_imatrix_write(imatrix, bytes);
  ml_error error = {0};
  ml_status status = ml_imatrix_check(bytes, (size_t)size, &error);
  if (status != ML_OK) fprintf(stderr, "%s\n", error.message);
  MUST(status == ML_OK);
  free(bytes);
}

static void run_all(fuzz_scene *scene, const control *wishes) {
  ml_imatrix *imatrix = NULL;
  if (wishes->options & IMATRIX) {
    ml_status status = ml_imatrix_new(&imatrix, scene->model, &scene->allocator, NULL);
    MUST(status == ML_OK || (status == ML_E_NOMEM && !imatrix));
  }
  if (run_single(scene)) {
    run_batched(scene, imatrix);
    run_back_and_forth(scene);
  }
  if (imatrix) check_imatrix(imatrix);
  ml_imatrix_free(imatrix);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static fuzz_scene scene; /* large */
  if (size < CONTROL_SIZE) return 0;
  size -= CONTROL_SIZE;
  control wishes = read_control(bytes + size);
  test_memory memory = {.limit = wishes.options & SMALL_MEMORY ? 1 << 18 : MEMORY_LIMIT};
  scene.allocator = test_allocator(&memory);
  uint8_t *aligned = aligned_alloc(ML_MLB_ALIGNMENT, (size_t)ml_round_up(size + 1, ML_MLB_ALIGNMENT));
  MUST(aligned);
  memcpy(aligned, bytes, size);

  ml_load_options options = {.allocator = &scene.allocator};
  ml_model *model = NULL;
  ml_status status = wishes.options & MAP ? ml_model_map(&model, aligned, size, &options, NULL)
                                          : push_all(&model, aligned, size, wishes.chunk, &options, NULL);
  if (status == ML_OK && ml_model_get_info(model)->vocab <= MOST_VOCAB) {
    set_scene(&scene, model, &wishes);
    memory.fail_at = wishes.failing ? memory.calls + wishes.failing : 0;
    run_all(&scene, &wishes);
  }
  if (status == ML_OK) ml_model_free(model);
  MUST(memory.live == 0);
  free(aligned);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
  return mutate_file(bytes, size, max_size, seed);
}
