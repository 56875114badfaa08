/* engine.c - where the stages meet: a session over a model, and the loop over its batches. */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "forward/forward.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 64, MAX_BATCH = 1024 };

struct ml_session {
  ml_arena arena; /* holds everything, this struct too */
  ml_forward forward;
  bool has_logits;
};

const char *ml_isa_name(size_t index) { return ml_kernels_name(index); }

/* ---------------------------------------------------------------- options */

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static ml_status find_kernels(const ml_kernels **out, const ml_session_options *options, ml_error *error) {
  *out = options->exact ? ml_kernels_exact() : ml_kernels_find(options->isa);
  if (*out) return ML_OK;
  if (options->exact)
    return ml_fail(error, ML_E_ARG, "exact", ml_none(), "is not part of this build", ml_none(), ML_NO_OFFSET);
  if (!ml_kernels_name(0))
    return ml_fail(error, ML_E_ARG, "isa", ml_none(), "this machine runs none of this build's kernels",
                   ml_none(), ML_NO_OFFSET);
  return ml_fail(error, ML_E_ARG, "isa", ml_text(options->isa),
                 "is not among the kernels of this build, which begin with", ml_text(ml_kernels_name(0)),
                 ML_NO_OFFSET);
}

/* The options with defaults filled in, as the beginning of a forward pass. */
static ml_status resolve(ml_forward *f, const ml_model *model, const ml_session_options *options,
                         ml_error *error) {
  uint32_t max_seq = model->config.max_seq;
  if (options->n_ctx > max_seq)
    return ml_fail(error, ML_E_CONTEXT, "context", ml_uint(options->n_ctx),
                   "is more than the model's max_seq of", ml_uint(max_seq), ML_NO_OFFSET);
  if (options->kv != ML_KV_F32 && options->kv != ML_KV_Q8)
    return ml_fail(error, ML_E_ARG, "kv", ml_uint((uint64_t)options->kv),
                   "is none of the ways to keep keys and values; the last is", ml_uint(ML_KV_Q8),
                   ML_NO_OFFSET);
  memset(f, 0, sizeof *f);
  ML_TRY(find_kernels(&f->kernels, options, error));
  ML_TRY(ml_looped_runs(&f->max_runs, &model->config, options->n_loops, error));
  f->n_runs = f->max_runs;
  f->model = model;
  f->exact = options->exact;
  f->kv = options->kv;
  f->n_ctx = options->n_ctx ? options->n_ctx : smaller(max_seq, DEFAULT_CONTEXT);
  f->n_batch = smaller(options->n_batch ? options->n_batch : DEFAULT_BATCH, smaller(f->n_ctx, MAX_BATCH));
  f->n_threads = smaller(options->n_threads ? options->n_threads : 1, ML_MAX_THREADS);
  f->trace = options->trace;
  f->trace_user = options->trace_user;
  f->imatrix = options->imatrix;
  return ML_OK;
}

/* ---------------------------------------------------------------- life */

static ml_session *place_session(ml_forward *f, ml_arena *arena) {
  ml_session *session = ml_arena_take(arena, 1, sizeof *session);
  ml_forward_place(f, arena);
  return session;
}

uint64_t ml_session_memory(const ml_model *model, const ml_session_options *options) {
  ml_session_options chosen = options ? *options : (ml_session_options){0};
  ml_forward f;
  if (resolve(&f, model, &chosen, NULL) != ML_OK) return 0;
  ml_arena plan = ml_arena_measure();
  place_session(&f, &plan);
  return plan.taken;
}

ml_status ml_session_new(ml_session **out, const ml_model *model, const ml_session_options *options,
                         ml_error *error) {
  ml_session_options chosen = options ? *options : (ml_session_options){0};
  ml_forward f;
  /* First, so that a planned model, too, tells what is wrong with the options. */
  ML_TRY(resolve(&f, model, &chosen, error));
  if (model->planned)
    return ml_fail(error, ML_E_STATE, "model", ml_none(), "was planned, not loaded", ml_none(), ML_NO_OFFSET);
  ml_arena plan = ml_arena_measure(), arena;
  place_session(&f, &plan);
  ML_TRY(ml_arena_open(&arena, chosen.allocator, plan.taken, 0, "session", error));
  ml_session *session = place_session(&f, &arena);
  ml_status status = ml_pool_open(&f.pool, f.n_threads, chosen.allocator, error);
  if (status != ML_OK) {
    ml_arena_close(&arena);
    return status;
  }
  ml_caches_clear(&f);
  ml_rope_init(&f);
  *session = (ml_session){.arena = arena, .forward = f, .has_logits = false};
  *out = session;
  return ML_OK;
}

void ml_session_free(ml_session *session) {
  if (!session) return;
  ml_pool_close(session->forward.pool);
  ml_arena arena = session->arena;
  ml_arena_close(&arena);
}

/* ---------------------------------------------------------------- running */

static ml_status check_ids(const ml_session *session, const int32_t *ids, size_t n, ml_error *error) {
  const ml_forward *f = &session->forward;
  if (n == 0)
    return ml_fail(error, ML_E_ARG, "number of ids", ml_uint(0), "must be at least", ml_uint(1),
                   ML_NO_OFFSET);
  for (size_t i = 0; i < n; i++)
    if (ids[i] < 0 || (uint32_t)ids[i] >= f->model->config.vocab)
      return ml_fail(error, ML_E_ARG, "token id", ml_int(ids[i]),
                     "must be at least 0 and below the vocabulary's", ml_uint(f->model->config.vocab),
                     ML_NO_OFFSET);
  if (n > f->n_ctx - f->n_past)
    return ml_fail(error, ML_E_CONTEXT, "tokens", ml_uint(ml_add_sizes(f->n_past, n)),
                   "do not fit the context of", ml_uint(f->n_ctx), ML_NO_OFFSET);
  return ML_OK;
}

/* Hands out the logits of every row of the batch that has just run. */
static ml_status give_logits(ml_forward *f, uint32_t n, ml_logits_fn *on_logits, void *user, bool *stopped,
                             ml_error *error) {
  uint32_t first = f->n_past - n;
  for (uint32_t row = 0; row < n && !*stopped; row++) {
    ML_TRY(ml_forward_logits(f, row, first + row, error));
    *stopped = !on_logits(user, first + row, f->logits, f->logits_exact);
    if (*stopped) ml_caches_truncate(f, first + row + 1);
  }
  return ML_OK;
}

/* The loop over batches, for both public ways to run tokens; `on_logits` NULL: only the last row's logits. */
static ml_status run(ml_session *session, const int32_t *ids, size_t n, ml_logits_fn *on_logits, void *user,
                     ml_error *error) {
  ML_TRY(check_ids(session, ids, n, error));
  ml_forward *f = &session->forward;
  uint32_t start = f->n_past;
  bool stopped = false;
  ml_status status = ML_OK;
  session->has_logits = false;
  for (size_t done = 0; done < n && status == ML_OK && !stopped;) {
    uint32_t batch = n - done < f->n_batch ? (uint32_t)(n - done) : f->n_batch;
    status = ml_forward_batch(f, ids + done, batch, error);
    done += batch;
    if (status != ML_OK) break;
    if (on_logits)
      status = give_logits(f, batch, on_logits, user, &stopped, error);
    else if (done == n)
      status = ml_forward_logits(f, batch - 1, f->n_past - 1, error);
  }
  if (status != ML_OK) ml_caches_truncate(f, start);
  session->has_logits = status == ML_OK && f->n_past > 0;
  return status;
}

ml_status ml_session_eval(ml_session *session, const int32_t *ids, size_t n, ml_error *error) {
  return run(session, ids, n, NULL, NULL, error);
}

ml_status ml_session_score(ml_session *session, const int32_t *ids, size_t n, ml_logits_fn *on_logits,
                           void *user, ml_error *error) {
  if (!on_logits)
    return ml_fail(error, ML_E_ARG, "on_logits", ml_text("NULL"), "must be a function", ml_none(),
                   ML_NO_OFFSET);
  return run(session, ids, n, on_logits, user, error);
}

const float *ml_session_logits(const ml_session *session) {
  return session->has_logits ? session->forward.logits : NULL;
}

uint32_t ml_session_truncate(ml_session *session, uint32_t n_keep) {
  uint32_t before = session->forward.n_past;
  uint32_t kept = ml_caches_truncate(&session->forward, n_keep);
  if (kept != before) session->has_logits = false;
  return kept;
}

ml_status ml_session_set_loops(ml_session *session, uint32_t n_loops, ml_error *error) {
  ml_forward *f = &session->forward;
  uint32_t n_runs, n_layers = f->model->config.n_layers;
  ML_TRY(ml_looped_runs(&n_runs, &f->model->config, n_loops, error));
  if (n_loops == 0 || n_runs > f->max_runs)
    return ml_fail(error, ML_E_ARG, "loops", ml_uint(n_loops),
                   "must be at least 1, and at most the session's", ml_uint(f->max_runs + 1 - n_layers),
                   ML_NO_OFFSET);
  if (n_runs == f->n_runs) return ML_OK;
  ml_caches_clear(f);
  f->n_runs = n_runs;
  session->has_logits = false;
  return ML_OK;
}

/* ---------------------------------------------------------------- facts */

uint32_t ml_session_n_loops(const ml_session *session) {
  const ml_forward *f = &session->forward;
  return f->model->config.n_loops ? f->n_runs + 1 - f->model->config.n_layers : 0;
}

uint32_t ml_session_n_past(const ml_session *session) { return session->forward.n_past; }
uint32_t ml_session_n_ctx(const ml_session *session) { return session->forward.n_ctx; }
const char *ml_session_isa(const ml_session *session) { return session->forward.kernels->name; }
uint32_t ml_session_n_threads(const ml_session *session) { return ml_pool_size(session->forward.pool); }
