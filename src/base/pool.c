#include "base/pool.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/thread.h"

struct ml_pool {
  ml_allocator allocator;
  uint32_t n_threads; /* with the caller's */
  ml_thread threads[ML_MAX_THREADS];
  struct worker {
    ml_pool *pool;
    uint32_t part;
  } workers[ML_MAX_THREADS];

  ml_task *task;
  void *context;
  ml_bell job;         /* rung for each job, and when the pool closes */
  atomic_uint pending; /* workers that have not finished the present job */
  atomic_bool closing;
};

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
    pool->task(pool->context, self->part, pool->n_threads);
    atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
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

void ml_pool_run(ml_pool *pool, ml_task *task, void *context) {
  if (pool->n_threads == 1) {
    task(context, 0, 1);
    return;
  }
  pool->task = task;
  pool->context = context;
  atomic_store(&pool->pending, pool->n_threads - 1);
  ml_bell_ring(&pool->job);
  task(context, 0, pool->n_threads);
  /* parts are of equal size, so the wait is short; a sleep would cost more than it saves */
  for (int round = 0; atomic_load_explicit(&pool->pending, memory_order_acquire) != 0; round++)
    if (round < ML_SPIN_ROUNDS)
      ml_thread_pause();
    else
      ml_thread_yield();
}
