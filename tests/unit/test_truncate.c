/* Taking tokens back: what is kept gives the same logits as a fresh session, whatever happened before. */
#include <stdio.h>

#include "test.h"
#include "tiny_file.h"

enum { N_CTX = 12, TINY_VOCAB = 5 };

static const int32_t ids[N_CTX] = {1, 4, 0, 2, 3, 1, 2, 2, 0, 4, 1, 3};

typedef struct truncate_fixture {
  tiny_file file;
  ml_model *model;
  float expected[N_CTX][TINY_VOCAB]; /* logits after each position, token by token */
} truncate_fixture;

static ml_kv_type kv; /* of all sessions */

static ml_session *open_session(const ml_model *model, uint32_t n_batch) {
  ml_session_options options = {.n_ctx = N_CTX, .n_batch = n_batch, .kv = kv};
  ml_session *session = NULL;
  CHECK_EQ_I64(ml_session_new(&session, model, &options, NULL), ML_OK);
  return session;
}

/* `window` 0: none; linear_layer: the second layer is a recurrent one. */
static bool set_up(truncate_fixture *fixture, uint32_t window, bool linear_layer) {
  uint8_t header[ML_MLB_HEADER_SIZE],
      flags[2] = {ML_MLB_LAYER_WINDOW, linear_layer ? ML_MLB_LAYER_LINEAR : 0};
  tiny_header(header);
  tiny_linear(header);
  tiny_put(header, AT_LAYER_FLAGS, 1);
  tiny_put(header, AT_SLIDING_WINDOW, window);
  fixture->file = tiny_build(header, flags);
  if (!CHECK(fixture->file.bytes != NULL)) return false;
  if (!CHECK(ml_model_open(&fixture->model, fixture->file.bytes, fixture->file.size, NULL, NULL) == ML_OK))
    return false;
  ml_session *session = open_session(fixture->model, 1);
  for (uint32_t i = 0; session && i < N_CTX; i++) {
    CHECK_EQ_I64(ml_session_eval(session, ids + i, 1, NULL), ML_OK);
    memcpy(fixture->expected[i], ml_session_logits(session), sizeof fixture->expected[i]);
  }
  ml_session_free(session);
  return session != NULL;
}

static void tear_down(truncate_fixture *fixture) {
  ml_model_free(fixture->model);
  tiny_free(&fixture->file);
}

static bool go_on(const truncate_fixture *fixture, ml_session *session, uint32_t until) {
  uint32_t from = ml_session_n_past(session);
  if (!CHECK_EQ_I64(ml_session_eval(session, ids + from, until - from, NULL), ML_OK)) return false;
  return CHECK_EQ_BYTES(ml_session_logits(session), fixture->expected[until - 1],
                        sizeof fixture->expected[0]);
}

TEST(truncate_without_window_keeps_any_number) {
  truncate_fixture fixture;
  REQUIRE(set_up(&fixture, 0, false));
  for (uint32_t n_keep = 0; n_keep <= N_CTX; n_keep++) {
    ml_session *session = open_session(fixture.model, 4);
    REQUIRE(session && go_on(&fixture, session, 9));
    uint32_t kept = ml_session_truncate(session, n_keep);
    CHECK_EQ_U64(kept, n_keep < 9 ? n_keep : 9);
    CHECK((ml_session_logits(session) != NULL) == (kept == 9));
    go_on(&fixture, session, N_CTX);
    ml_session_free(session);
  }
  tear_down(&fixture);
}

TEST(truncate_behind_a_window_keeps_what_the_ring_holds) {
  truncate_fixture fixture;
  REQUIRE(set_up(&fixture, 4, false));
  for (uint32_t n_past = 1; n_past <= N_CTX; n_past++) {
    for (uint32_t n_keep = 0; n_keep < n_past; n_keep++) {
      ml_session *session = open_session(fixture.model, 3);
      REQUIRE(session && go_on(&fixture, session, n_past));
      bool holds = n_past <= 4 || n_keep + 1 == n_past;
      CHECK_EQ_U64(ml_session_truncate(session, n_keep), holds ? n_keep : 0);
      CHECK(ml_session_logits(session) == NULL);
      go_on(&fixture, session, N_CTX);
      ml_session_free(session);
    }
  }
  tear_down(&fixture);
}

/* One token back is possible, and then one more is not: its neighbour was overwritten long ago. */
TEST(truncate_twice_behind_a_window) {
  truncate_fixture fixture;
  REQUIRE(set_up(&fixture, 3, false));
  ml_session *session = open_session(fixture.model, 1);
  REQUIRE(session && go_on(&fixture, session, 5));
  CHECK_EQ_U64(ml_session_truncate(session, 4), 4);
  CHECK_EQ_U64(ml_session_truncate(session, 3), 0);
  go_on(&fixture, session, 5);
  ml_session_free(session);

  /* Afterwards it counts again from where the timeline got to. */
  session = open_session(fixture.model, 2);
  REQUIRE(session && go_on(&fixture, session, 8));
  CHECK_EQ_U64(ml_session_truncate(session, 7), 7);
  go_on(&fixture, session, 9);
  CHECK_EQ_U64(ml_session_truncate(session, 8), 8);
  go_on(&fixture, session, N_CTX);
  ml_session_free(session);
  tear_down(&fixture);
}

static bool stop_at(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  (void)logits, (void)logits_exact;
  return position != *(const uint32_t *)user;
}

/* A score that is stopped within a batch takes its later tokens back; that counts as a truncation too. */
TEST(truncate_after_a_stopped_score) {
  truncate_fixture fixture;
  REQUIRE(set_up(&fixture, 3, false));
  for (uint32_t stop = 0; stop < 8; stop++) {
    for (uint32_t n_keep = 0; n_keep <= stop + 1; n_keep++) {
      ml_session *session = open_session(fixture.model, 4);
      REQUIRE(session != NULL);
      CHECK_EQ_I64(ml_session_score(session, ids, 8, stop_at, &stop, NULL), ML_OK);
      CHECK(ml_session_n_past(session) == stop + 1 || ml_session_n_past(session) == 0);
      ml_session_truncate(session, n_keep);
      go_on(&fixture, session, N_CTX);
      ml_session_free(session);
    }
  }
  tear_down(&fixture);
}

TEST(truncate_with_a_recurrent_layer_forgets_everything) {
  truncate_fixture fixture;
  REQUIRE(set_up(&fixture, 0, true));
  for (uint32_t n_keep = 0; n_keep < 6; n_keep++) {
    ml_session *session = open_session(fixture.model, 5);
    REQUIRE(session && go_on(&fixture, session, 6));
    CHECK_EQ_U64(ml_session_truncate(session, 6), 6);
    CHECK_EQ_U64(ml_session_truncate(session, n_keep), 0);
    go_on(&fixture, session, N_CTX);
    ml_session_free(session);
  }
  tear_down(&fixture);
}

/* Any sequence of going on and back. */
static void go_at_random(void) {
  for (uint32_t window = 0; window < 7; window++) {
    truncate_fixture fixture;
    REQUIRE(set_up(&fixture, window, false));
    for (uint32_t n_batch = 1; n_batch <= 5; n_batch += 2) {
      ml_session *session = open_session(fixture.model, n_batch);
      REQUIRE(session != NULL);
      for (int round = 0; round < 100; round++) {
        uint32_t n_past = ml_session_n_past(session);
        if (n_past == N_CTX || test_random_below(2)) {
          uint32_t n_keep = n_past - test_random_below(n_past < 3 ? n_past + 1 : 4);
          uint32_t kept = ml_session_truncate(session, n_keep);
          CHECK(kept == n_keep || kept == 0);
          if (window == 0) CHECK_EQ_U64(kept, n_keep);
        } else {
          go_on(&fixture, session, n_past + 1 + test_random_below(N_CTX - n_past));
        }
      }
      ml_session_free(session);
    }
    tear_down(&fixture);
  }
}

TEST(truncate_at_random) { go_at_random(); }

/* Keys and values as bytes lie differently, in the same ring. */
TEST(truncate_at_random_with_a_cache_of_bytes) {
  kv = ML_KV_Q8;
  go_at_random();
  kv = ML_KV_F32;
}
