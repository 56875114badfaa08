#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

/* Rounds of looking for work before a thread sleeps. The gaps between the jobs of one token are far shorter;
 * the pause between two tokens of a slow reader is longer. */
enum { SPIN_ROUNDS = 4000 };

struct ml_pool {
  ml_allocator allocator;
  uint32_t n_threads; /* with the caller's */
  pthread_t threads[ML_MAX_THREADS];
  struct worker {
    ml_pool *pool;
    uint32_t part;
  } workers[ML_MAX_THREADS];

  ml_task *task;
  void *context;
  atomic_uint job;     /* counts jobs: a change is the call to work */
  atomic_uint pending; /* workers that have not finished the present job */
  atomic_bool closing;

  pthread_mutex_t mutex;
  pthread_cond_t work; /* a job has come, or the pool closes */
};

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Returns when the job number is no longer `seen`. */
static unsigned await_job(ml_pool *pool, unsigned seen) {
  for (int round = 0; round < SPIN_ROUNDS; round++) {
    unsigned job = atomic_load_explicit(&pool->job, memory_order_acquire);
    if (job != seen) return job;
    pause_briefly();
  }
  pthread_mutex_lock(&pool->mutex);
  while (atomic_load(&pool->job) == seen) pthread_cond_wait(&pool->work, &pool->mutex);
  pthread_mutex_unlock(&pool->mutex);
  return atomic_load(&pool->job);
}

static void *worker_main(void *argument) {
  struct worker *self = argument;
  ml_pool *pool = self->pool;
  unsigned seen = 0;
  for (;;) {
    seen = await_job(pool, seen);
    if (atomic_load(&pool->closing)) return NULL;
    pool->task(pool->context, self->part, pool->n_threads);
    atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
  }
}

/* Makes the new job visible to spinning and to sleeping workers alike. */
static void announce(ml_pool *pool) {
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->job, 1);
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->mutex);
}

ml_status ml_pool_open(ml_pool **out, uint32_t n_threads, const ml_allocator *allocator, ml_error *error) {
  ml_allocator memory = ml_allocator_or_default(allocator);
  ml_pool *pool = memory.allocate(memory.user, sizeof *pool);
  if (!pool)
    return ml_fail(error, ML_E_NOMEM, "thread pool", ml_uint(sizeof *pool), "bytes needed, the allocator has",
                   ml_text("none"), ML_NO_OFFSET);
  memset(pool, 0, sizeof *pool);
  pool->allocator = memory;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->work, NULL);
  if (n_threads > ML_MAX_THREADS) n_threads = ML_MAX_THREADS;
  pool->n_threads = 1;
  while (pool->n_threads < n_threads) {
    struct worker *worker = &pool->workers[pool->n_threads];
    *worker = (struct worker){pool, pool->n_threads};
    if (pthread_create(&pool->threads[pool->n_threads], NULL, worker_main, worker) != 0) break;
    pool->n_threads++;
  }
  *out = pool;
  return ML_OK;
}

void ml_pool_close(ml_pool *pool) {
  if (!pool) return;
  atomic_store(&pool->closing, true);
  announce(pool);
  for (uint32_t i = 1; i < pool->n_threads; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->work);
  pthread_mutex_destroy(&pool->mutex);
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
  announce(pool);
  task(context, 0, pool->n_threads);
  /* parts are of equal size, so the wait is short; a sleep would cost more than it saves */
  for (int round = 0; atomic_load_explicit(&pool->pending, memory_order_acquire) != 0; round++)
    if (round < SPIN_ROUNDS)
      pause_briefly();
    else
      sched_yield();
}
