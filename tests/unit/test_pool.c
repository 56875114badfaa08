/* The thread pool: every part runs once, whatever the number of threads and however often. */
#include <stdatomic.h>

#include "base/pool.h"
#include "test.h"

enum { N_ITEMS = 100 };

typedef struct tally {
  atomic_uint items[N_ITEMS];
  atomic_uint parts;
} tally;

static void count(void *context, uint32_t part, uint32_t n_parts) {
  tally *t = context;
  uint32_t begin, end;
  ml_pool_share(N_ITEMS, 3, part, n_parts, &begin, &end);
  for (uint32_t i = begin; i < end; i++) atomic_fetch_add(&t->items[i], 1);
  atomic_fetch_add(&t->parts, 1);
}

TEST(pool_runs_every_part_once) {
  const uint32_t sizes[] = {1, 2, 3, 7, 64};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    ml_pool *pool = NULL;
    REQUIRE(ml_pool_open(&pool, sizes[s], NULL, NULL) == ML_OK);
    uint32_t n = ml_pool_size(pool);
    CHECK(n >= 1 && n <= sizes[s]);
    tally t = {0};
    for (unsigned round = 1; round <= 50; round++) {
      ml_pool_run(pool, count, &t);
      CHECK_EQ_U64(atomic_load(&t.parts), round * n);
    }
    for (int i = 0; i < N_ITEMS; i++) CHECK_EQ_U64(atomic_load(&t.items[i]), 50);
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

/* Shares are in order, whole units, and cover everything once. */
TEST(pool_shares_cover_everything) {
  for (uint32_t n = 0; n <= 70; n++)
    for (uint32_t unit = 1; unit <= 17; unit += 4)
      for (uint32_t n_parts = 1; n_parts <= 9; n_parts++) {
        uint32_t next = 0;
        for (uint32_t part = 0; part < n_parts; part++) {
          uint32_t begin, end;
          ml_pool_share(n, unit, part, n_parts, &begin, &end);
          if (begin < end) CHECK_EQ_U64(begin, next);
          if (begin < end && end < n) CHECK_EQ_U64(end % unit, 0);
          if (begin < end) next = end;
        }
        CHECK_EQ_U64(next, n);
      }
  uint32_t begin, end;
  ml_pool_share(UINT32_MAX, 16, 63, 64, &begin, &end);
  CHECK(begin < end);
  CHECK_EQ_U64(end, UINT32_MAX);
}
