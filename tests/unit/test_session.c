/* What a session promises about its calls: arguments are checked before any work, a failure leaves it as it was or
 * empty, and it goes on working afterwards. */
#include <stdio.h>

#include "test.h"
#include "tiny_file.h"

enum { N_CTX = 8, TINY_VOCAB = 5 };

static const int32_t ids[N_CTX] = {1, 4, 0, 2, 3, 1, 2, 2};

typedef struct session_fixture {
  tiny_file file;
  ml_model *model;
  ml_session *session;
} session_fixture;

/* `value`, if above 0: every float of a tensor of the first layer; a huge one makes activations infinite. */
static bool set_up_with(session_fixture *fixture, ml_tensor tensor, float value, ml_kv_type kv) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  memset(fixture, 0, sizeof *fixture);
  tiny_header(header);
  fixture->file = tiny_build(header, NULL);
  if (!CHECK(fixture->file.bytes != NULL)) return false;
  ml_mlb_header parsed;
  if (!CHECK(ml_mlb_read_header(&parsed, header, sizeof header, NULL) == ML_OK)) return false;
  ml_mlb_walk walk = ml_mlb_walk_begin(&parsed, NULL);
  ml_array array;
  while (value > 0 && ml_mlb_walk_next(&walk, &array))
    if (array.tensor == tensor && array.layer == 0 &&
        (array.element == ML_ELEMENT_F32 || array.element == ML_ELEMENT_D_F32))
      for (uint64_t i = 0; i < array.size; i += 4) memcpy(fixture->file.bytes + array.offset + i, &value, 4);
  ml_session_options options = {.n_ctx = N_CTX, .n_batch = 3, .kv = kv};
  return CHECK(ml_model_open(&fixture->model, fixture->file.bytes, fixture->file.size, NULL, NULL) ==
               ML_OK) &&
         CHECK(ml_session_new(&fixture->session, fixture->model, &options, NULL) == ML_OK);
}

static bool set_up(session_fixture *fixture, float norm) {
  return set_up_with(fixture, ML_TENSOR_ATTN_NORM, norm, ML_KV_F32);
}

static void tear_down(session_fixture *fixture) {
  ml_session_free(fixture->session);
  ml_model_free(fixture->model);
  tiny_free(&fixture->file);
}

TEST(session_begins_empty) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  CHECK_EQ_U64(ml_session_n_past(f.session), 0);
  CHECK_EQ_U64(ml_session_n_ctx(f.session), N_CTX);
  CHECK_EQ_U64(ml_session_n_threads(f.session), 1);
  CHECK(ml_session_logits(f.session) == NULL);
  tear_down(&f);
}

TEST(session_refuses_ids_before_any_work) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  REQUIRE(ml_session_eval(f.session, ids, 2, NULL) == ML_OK);
  float before[TINY_VOCAB];
  memcpy(before, ml_session_logits(f.session), sizeof before);
  const int32_t bad[] = {-1, TINY_VOCAB, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int32_t batch[3] = {1, 2, bad[i]};
    ml_error error;
    CHECK_EQ_I64(ml_session_eval(f.session, batch, 3, &error), ML_E_ARG);
    CHECK_EQ_I64(error.status, ML_E_ARG);
    CHECK_EQ_U64(ml_session_n_past(f.session), 2);
    CHECK_EQ_BYTES(ml_session_logits(f.session), before, sizeof before);
  }
  CHECK_EQ_I64(ml_session_eval(f.session, ids, 0, NULL), ML_E_ARG);
  CHECK_EQ_I64(ml_session_score(f.session, ids, 1, NULL, NULL, NULL), ML_E_ARG);
  CHECK_EQ_BYTES(ml_session_logits(f.session), before, sizeof before);
  tear_down(&f);
}

TEST(session_context_is_exact) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  ml_error error;
  int32_t many[N_CTX + 1] = {0};
  CHECK_EQ_I64(ml_session_eval(f.session, many, N_CTX + 1, &error), ML_E_CONTEXT);
  CHECK_EQ_TEXT(error.message, "tokens = 9: do not fit the context of 8");
  CHECK_EQ_U64(ml_session_n_past(f.session), 0);
  CHECK_EQ_I64(ml_session_eval(f.session, ids, N_CTX, NULL), ML_OK);
  CHECK_EQ_I64(ml_session_eval(f.session, ids, 1, NULL), ML_E_CONTEXT);
  CHECK_EQ_U64(ml_session_n_past(f.session), N_CTX);
  CHECK_EQ_U64(ml_session_truncate(f.session, 3), 3);
  CHECK_EQ_I64(ml_session_eval(f.session, ids, N_CTX - 3, NULL), ML_OK);
  tear_down(&f);
}

TEST(session_options_are_checked) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  ml_session *untouched = f.session;
  ml_error error;
  ml_session_options too_long = {.n_ctx = ml_model_get_info(f.model)->max_seq + 1};
  CHECK_EQ_I64(ml_session_new(&untouched, f.model, &too_long, &error), ML_E_CONTEXT);
  CHECK_EQ_U64(ml_session_memory(f.model, &too_long), 0);
  ml_session_options no_kernels = {.isa = "abacus"};
  CHECK_EQ_I64(ml_session_new(&untouched, f.model, &no_kernels, &error), ML_E_ARG);
  CHECK(strstr(error.message, "abacus") != NULL);
  ml_session_options no_cache = {.kv = (ml_kv_type)7};
  CHECK_EQ_I64(ml_session_new(&untouched, f.model, &no_cache, &error), ML_E_ARG);
  CHECK(strstr(error.message, "kv = 7") != NULL);
  CHECK_EQ_U64(ml_session_memory(f.model, &no_cache), 0);
  CHECK(untouched == f.session);
  CHECK(ml_session_memory(f.model, NULL) > 0);
  tear_down(&f);
}

TEST(session_many_threads_are_clamped) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  ml_session_options options = {.n_ctx = N_CTX, .n_threads = 1000};
  ml_session *crowd = NULL;
  REQUIRE(ml_session_new(&crowd, f.model, &options, NULL) == ML_OK);
  CHECK(ml_session_n_threads(crowd) <= 64);
  CHECK_EQ_I64(ml_session_eval(crowd, ids, N_CTX, NULL), ML_OK);
  CHECK_EQ_I64(ml_session_eval(f.session, ids, N_CTX, NULL), ML_OK);
  CHECK_EQ_BYTES(ml_session_logits(crowd), ml_session_logits(f.session), TINY_VOCAB * sizeof(float));
  ml_session_free(crowd);
  tear_down(&f);
}

/* Weights that make an activation infinite: an error with stage, layer and position, nothing to sample from, and a
 * session that answers again. */
TEST(session_survives_infinite_activations) {
  session_fixture f;
  REQUIRE(set_up(&f, 3e38f));
  ml_error error;
  CHECK_EQ_I64(ml_session_eval(f.session, ids, 4, &error), ML_E_NUMERIC);
  CHECK(strstr(error.message, "attention input = 0") != NULL);
  CHECK(strstr(error.message, "position 0") != NULL);
  CHECK_EQ_U64(ml_session_n_past(f.session), 0);
  CHECK(ml_session_logits(f.session) == NULL);
  CHECK_EQ_I64(ml_session_eval(f.session, ids, 1, &error), ML_E_NUMERIC);
  tear_down(&f);
}

/* Keys and values too large for a float: whatever they are kept as, nothing is made up from them. */
TEST(session_survives_infinite_keys_and_values) {
  for (int i = 0; i < 4; i++) {
    session_fixture f;
    REQUIRE(set_up_with(&f, i < 2 ? ML_TENSOR_WK : ML_TENSOR_WV, 3e38f, i % 2 ? ML_KV_Q8 : ML_KV_F32));
    ml_error error;
    CHECK_EQ_I64(ml_session_eval(f.session, ids, 4, &error), ML_E_NUMERIC);
    CHECK(strstr(error.message, "attention output = 0") != NULL);
    CHECK(ml_session_logits(f.session) == NULL);
    tear_down(&f);
  }
}

typedef struct score_record {
  uint32_t n, stop_after;
  uint32_t positions[N_CTX];
  float logits[N_CTX][TINY_VOCAB];
  bool exact_given;
} score_record;

static bool record(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  score_record *r = user;
  r->positions[r->n] = position;
  memcpy(r->logits[r->n], logits, sizeof r->logits[0]);
  r->exact_given = logits_exact != NULL;
  return ++r->n < r->stop_after;
}

TEST(session_score_gives_every_position) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  score_record r = {.stop_after = N_CTX + 1};
  CHECK_EQ_I64(ml_session_score(f.session, ids, N_CTX, record, &r, NULL), ML_OK);
  CHECK_EQ_U64(r.n, N_CTX);
  CHECK(!r.exact_given);
  ml_session_truncate(f.session, 0);
  for (uint32_t i = 0; i < N_CTX; i++) {
    CHECK_EQ_U64(r.positions[i], i);
    REQUIRE(ml_session_eval(f.session, ids + i, 1, NULL) == ML_OK);
    CHECK_EQ_BYTES(ml_session_logits(f.session), r.logits[i], sizeof r.logits[0]);
  }
  tear_down(&f);
}

TEST(session_score_stops_when_told) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  score_record r = {.stop_after = 4};
  CHECK_EQ_I64(ml_session_score(f.session, ids, N_CTX, record, &r, NULL), ML_OK);
  CHECK_EQ_U64(r.n, 4);
  CHECK_EQ_U64(ml_session_n_past(f.session), 4);
  CHECK_EQ_BYTES(ml_session_logits(f.session), r.logits[3], sizeof r.logits[0]);
  tear_down(&f);
}

TEST(session_exact_mode_gives_doubles) {
  session_fixture f;
  REQUIRE(set_up(&f, 0));
  ml_session_options options = {.n_ctx = N_CTX, .exact = true};
  ml_session *exact = NULL;
  REQUIRE(ml_session_new(&exact, f.model, &options, NULL) == ML_OK);
  CHECK_EQ_TEXT(ml_session_isa(exact), "exact");
  score_record r = {.stop_after = N_CTX + 1};
  CHECK_EQ_I64(ml_session_score(exact, ids, N_CTX, record, &r, NULL), ML_OK);
  CHECK(r.exact_given);
  ml_session_free(exact);
  tear_down(&f);
}
