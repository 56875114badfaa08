/* pool.h - threads that share out independent parts of one job at a time. They never split a sum, so their
 * number changes no result. */
#ifndef ML_BASE_POOL_H
#define ML_BASE_POOL_H

#include "ml.h"

#define ML_MAX_THREADS 64

typedef struct ml_pool ml_pool;

/* Does part `part` of `n_parts` of the job in `context`. */
typedef void ml_task(void *context, uint32_t part, uint32_t n_parts);

/* A pool of `n_threads`, the caller's included (1 ... ML_MAX_THREADS; clamped). Threads that the system refuses
 * to start are done without: see ml_pool_size. Fails only for lack of memory. */
ml_status ml_pool_open(ml_pool **out, uint32_t n_threads, const ml_allocator *allocator, ml_error *error);
void ml_pool_close(ml_pool *pool); /* NULL is allowed */

uint32_t ml_pool_size(const ml_pool *pool);

/* Runs every part, part 0 on the calling thread, and returns when all are done. Not reentrant. */
void ml_pool_run(ml_pool *pool, ml_task *task, void *context);

/* The share of `part` when n items are dealt out in units of `unit` items: begin ... end - 1, maybe empty. */
static inline void ml_pool_share(uint32_t n, uint32_t unit, uint32_t part, uint32_t n_parts, uint32_t *begin,
                                 uint32_t *end) {
  uint64_t units = ((uint64_t)n + unit - 1) / unit;
  uint64_t from = units * part / n_parts * unit, to = units * (part + 1) / n_parts * unit;
  *begin = (uint32_t)(from < n ? from : n);
  *end = (uint32_t)(to < n ? to : n);
}

#endif
