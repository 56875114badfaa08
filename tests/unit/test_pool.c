/* The thread pool: every item is done once, whatever the number of threads and however often. */
#include <stdatomic.h>

#include "base/pool.h"
#include "test.h"

enum { N_ITEMS = 100 };

typedef struct tally {
  atomic_uint items[N_ITEMS];
  atomic_uint wrong; /* pieces that are empty, or begin or end within a unit; threads that there are not */
  uint32_t n, unit, n_threads;
} tally;

static void count(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  tally *t = context;
  if (begin >= end || end > t->n || begin % t->unit || (end % t->unit && end < t->n) ||
      thread >= t->n_threads)
    atomic_fetch_add(&t->wrong, 1);
  for (uint32_t i = begin; i < end && i < N_ITEMS; i++) atomic_fetch_add(&t->items[i], 1);
}

TEST(pool_does_every_item_once) {
  const uint32_t sizes[] = {1, 2, 3, 7, 64};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    ml_pool *pool = NULL;
    REQUIRE(ml_pool_open(&pool, sizes[s], NULL, NULL) == ML_OK);
    uint32_t n = ml_pool_size(pool);
    CHECK(n >= 1 && n <= sizes[s]);
    tally t = {.n = N_ITEMS, .unit = 3, .n_threads = n};
    for (unsigned round = 1; round <= 50; round++) {
      ml_pool_run(pool, count, &t, N_ITEMS, 3);
      for (int i = 0; i < N_ITEMS; i++) CHECK_EQ_U64(atomic_load(&t.items[i]), round);
    }
    CHECK_EQ_U64(atomic_load(&t.wrong), 0);
    ml_pool_close(pool);
  }
}

TEST(pool_size_is_clamped) {
  ml_pool *pool = NULL;
  REQUIRE(ml_pool_open(&pool, UINT32_MAX, NULL, NULL) == ML_OK);
  CHECK(ml_pool_size(pool) <= ML_MAX_THREADS);
  ml_pool_close(pool);
  REQUIRE(ml_pool_open(&pool, 0, NULL, NULL) == ML_OK);
  CHECK_EQ_U64(ml_pool_size(pool), 1);
  ml_pool_close(pool);
  ml_pool_close(NULL);
}

TEST(pool_takes_any_number_of_items) {
  ml_pool *pool = NULL;
  REQUIRE(ml_pool_open(&pool, 3, NULL, NULL) == ML_OK);
  for (uint32_t n = 0; n <= N_ITEMS; n++)
    for (uint32_t unit = 1; unit <= 17; unit += 4) {
      tally t = {.n = n, .unit = unit, .n_threads = ml_pool_size(pool)};
      ml_pool_run(pool, count, &t, n, unit);
      for (uint32_t i = 0; i < N_ITEMS; i++) CHECK_EQ_U64(atomic_load(&t.items[i]), i < n);
      CHECK_EQ_U64(atomic_load(&t.wrong), 0);
    }
  tally t = {.n = UINT32_MAX, .unit = 1u << 30, .n_threads = ml_pool_size(pool)};
  ml_pool_run(pool, count, &t, UINT32_MAX, 1u << 30);
  CHECK_EQ_U64(atomic_load(&t.wrong), 0);
  CHECK_EQ_U64(atomic_load(&t.items[0]), 1);
  ml_pool_close(pool);
}

/* What one thread has to itself, it keeps: no two are at a thread's scratch. */
typedef struct scratch {
  atomic_uint busy[64];
  atomic_uint clashes;
} scratch;

static void use_scratch(void *context, uint32_t thread, uint32_t begin, uint32_t end) {
  (void)begin, (void)end;
  scratch *s = context;
  if (atomic_fetch_add(&s->busy[thread], 1) != 0) atomic_fetch_add(&s->clashes, 1);
  atomic_fetch_sub(&s->busy[thread], 1);
}

TEST(pool_threads_have_numbers_of_their_own) {
  ml_pool *pool = NULL;
  REQUIRE(ml_pool_open(&pool, 5, NULL, NULL) == ML_OK);
  scratch s = {0};
  for (int round = 0; round < 200; round++) ml_pool_run(pool, use_scratch, &s, 1000, 1);
  CHECK_EQ_U64(atomic_load(&s.clashes), 0);
  ml_pool_close(pool);
}
