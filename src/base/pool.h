/* pool.h - threads that share out the independent items of one job at a time. They never split a sum, so neither their
 * number nor who does what changes a result. */
#ifndef ML_BASE_POOL_H
#define ML_BASE_POOL_H

#include "ml.h"

#define ML_MAX_THREADS 64

typedef struct ml_pool ml_pool;

/* Does items begin ... end - 1 of the job in `context`. `thread`, below ml_pool_size, is for scratch of its own. */
typedef void ml_task(void *context, uint32_t thread, uint32_t begin, uint32_t end);

/* A pool of `n_threads`, the caller's included (1 ... ML_MAX_THREADS; clamped). Threads that the system refuses
 * to start are done without: see ml_pool_size. Fails only for lack of memory. */
ml_status ml_pool_open(ml_pool **out, uint32_t n_threads, const ml_allocator *allocator, ml_error *error);
void ml_pool_close(ml_pool *pool); /* NULL is allowed */

uint32_t ml_pool_size(const ml_pool *pool);

/* Does n items, in pieces that begin at multiples of `unit`, with the calling thread as number 0, and returns when all are
 * done. Pieces are large at first and then smaller, and threads take them as they have time: one that comes late, or
 * whose processor is busy with something else, keeps nobody waiting for more than a small piece. Not reentrant. */
void ml_pool_run(ml_pool *pool, ml_task *task, void *context, uint32_t n, uint32_t unit);

#endif
