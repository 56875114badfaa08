#include "base/pool.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/thread.h"

/* State of a job: whether it is open to workers, and how many are at it. A worker that finds it closed does without. */
#define OPEN 0x80000000u

struct ml_pool {
  ml_allocator allocator;
  uint32_t n_threads; /* with the caller's */
  ml_thread threads[ML_MAX_THREADS];
  struct worker {
    ml_pool *pool;
    uint32_t number;
  } workers[ML_MAX_THREADS];

  /* the present job; fixed while it is open or a worker is at it */
  ml_task *task;
  void *context;
  uint32_t n_items, unit, n_units;
  uint32_t least; /* units of a piece */

  atomic_uint next; /* unit that nobody has taken yet */
  atomic_uint state;
  ml_bell job; /* rung for each job, and when the pool closes */
  atomic_bool closing;
};

/* ---------------------------------------------------------------- work */

/* Takes a piece: a share of what is left, so that all threads end at about the same time. False when nothing is. */
static bool take(ml_pool *pool, uint32_t *first, uint32_t *n) {
  *first = atomic_load(&pool->next);
  do {
    uint32_t left = pool->n_units - *first;
    if (left == 0) return false;
    *n = left / (2 * pool->n_threads);
    if (*n < pool->least) *n = pool->least < left ? pool->least : left;
  } while (!atomic_compare_exchange_weak(&pool->next, first, *first + *n));
  return true;
}

static void work(ml_pool *pool, uint32_t thread) {
  uint32_t first, n;
  while (take(pool, &first, &n)) {
    uint64_t begin = (uint64_t)first * pool->unit, end = begin + (uint64_t)n * pool->unit;
    pool->task(pool->context, thread, (uint32_t)begin, (uint32_t)(end < pool->n_items ? end : pool->n_items));
  }
}

static bool join(ml_pool *pool) {
  unsigned state = atomic_load(&pool->state);
  while (state & OPEN)
    if (atomic_compare_exchange_weak(&pool->state, &state, state + 1)) return true;
  return false;
}

/* ---------------------------------------------------------------- threads */

/* Returns the job number when it is no longer `seen`. Looks for a while before it sleeps: the gaps between the jobs of
 * one token are far shorter, the pause between two tokens of a slow reader is longer. */
static unsigned await_job(ml_pool *pool, unsigned seen) {
  for (int round = 0; round < ML_SPIN_ROUNDS; round++) {
    unsigned job = atomic_load_explicit(&pool->job.rung, memory_order_acquire);
    if (job != seen) return job;
    ml_thread_pause();
  }
  ml_bell_sleep(&pool->job, seen);
  return atomic_load(&pool->job.rung);
}

static void worker_main(void *argument) {
  struct worker *self = argument;
  ml_pool *pool = self->pool;
  unsigned seen = 0;
  for (;;) {
    seen = await_job(pool, seen);
    if (atomic_load(&pool->closing)) return;
    if (!join(pool)) continue;
    work(pool, self->number);
    atomic_fetch_sub_explicit(&pool->state, 1, memory_order_release);
  }
}

ml_status ml_pool_open(ml_pool **out, uint32_t n_threads, const ml_allocator *allocator, ml_error *error) {
  ml_allocator memory = ml_allocator_or_default(allocator);
  ml_pool *pool = memory.allocate(memory.user, sizeof *pool);
  if (!pool)
    return ml_fail(error, ML_E_NOMEM, "thread pool", ml_uint(sizeof *pool), "bytes needed, the allocator has",
                   ml_text("none"), ML_NO_OFFSET);
  memset(pool, 0, sizeof *pool);
  pool->allocator = memory;
  ml_bell_init(&pool->job);
  if (n_threads > ML_MAX_THREADS) n_threads = ML_MAX_THREADS;
  pool->n_threads = 1;
  while (pool->n_threads < n_threads) {
    struct worker *worker = &pool->workers[pool->n_threads];
    *worker = (struct worker){pool, pool->n_threads};
    if (!ml_thread_start(&pool->threads[pool->n_threads], worker_main, worker)) break;
    pool->n_threads++;
  }
  *out = pool;
  return ML_OK;
}

void ml_pool_close(ml_pool *pool) {
  if (!pool) return;
  atomic_store(&pool->closing, true);
  ml_bell_ring(&pool->job);
  for (uint32_t i = 1; i < pool->n_threads; i++) ml_thread_join(&pool->threads[i]);
  ml_bell_destroy(&pool->job);
  pool->allocator.release(pool->allocator.user, pool);
}

uint32_t ml_pool_size(const ml_pool *pool) { return pool->n_threads; }

void ml_pool_run(ml_pool *pool, ml_task *task, void *context, uint32_t n, uint32_t unit) {
  uint32_t n_units = n / unit + (n % unit != 0);
  if (pool->n_threads == 1 || n_units <= 1) {
    if (n) task(context, 0, 0, n);
    return;
  }
  pool->task = task;
  pool->context = context;
  pool->n_items = n;
  pool->unit = unit;
  pool->n_units = n_units;
  pool->least = n_units / (8 * pool->n_threads) + 1;
  atomic_store(&pool->next, 0);
  atomic_store(&pool->state, OPEN);
  ml_bell_ring(&pool->job);
  work(pool, 0);
  atomic_fetch_and(&pool->state, ~OPEN);
  /* at most a small piece is missing, so the wait is short; a sleep would cost more than it saves */
  for (int round = 0; atomic_load_explicit(&pool->state, memory_order_acquire) != 0; round++)
    if (round < ML_SPIN_ROUNDS)
      ml_thread_pause();
    else
      ml_thread_yield();
}
