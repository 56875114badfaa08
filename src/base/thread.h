/* thread.h - what a pool needs of its platform: threads, and a bell to sleep by. thread_posix.c has them from pthreads,
 * thread_wasm.c from the workers that JavaScript lends. */
#ifndef ML_BASE_THREAD_H
#define ML_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#if !defined(__wasm__)
#include <pthread.h>
#endif

/* ---------------------------------------------------------------- threads */

typedef void ml_thread_main(void *context);

typedef struct ml_thread {
  ml_thread_main *main;
  void *context;
#if !defined(__wasm__)
  pthread_t handle;
#else
  unsigned seat; /* the lent worker's */
#endif
} ml_thread;

/* Starts a thread that runs main(context); `thread` stays where it is until joined. False when there is none to be had. */
bool ml_thread_start(ml_thread *thread, ml_thread_main *main, void *context);
/* Returns when the thread's main function has. */
void ml_thread_join(ml_thread *thread);
/* In a loop that waits for other threads: for the first ML_SPIN_ROUNDS rounds, some tens of microseconds, ... */
void ml_thread_pause(void);
/* ... and when it takes longer. */
void ml_thread_yield(void);
#if !defined(__wasm__)
#define ML_SPIN_ROUNDS 4000
#else
#define ML_SPIN_ROUNDS 40000 /* wasm cannot tell the processor to pause, so that rounds are short */
#endif

#if defined(__wasm__)
/* Called by a worker that JavaScript started: lends it, and returns only if there are enough already. */
void ml_thread_lend(void);
/* Workers that are lent by now. */
unsigned ml_thread_lent(void);

/* Called if the thread that starts and joins is none that a browser forbids to sleep: then it leaves its processor to the
 * others when it has waited for long. Where there are fewer processors than threads they would hardly get on otherwise. */
void ml_thread_may_sleep(void);
#endif

/* ---------------------------------------------------------------- bells */

/* Counts how often it was rung. */
typedef struct ml_bell {
  atomic_uint rung;
  atomic_uint sleepers; /* without any, ringing costs next to nothing */
#if !defined(__wasm__)
  pthread_mutex_t mutex;
  pthread_cond_t changed;
#endif
} ml_bell;

void ml_bell_init(ml_bell *bell);
void ml_bell_destroy(ml_bell *bell);
/* Everything written before is seen by those whom it wakes. */
void ml_bell_ring(ml_bell *bell);
/* Sleeps until the count is no longer `seen`. Never called by the thread that rings. */
void ml_bell_sleep(ml_bell *bell, unsigned seen);

#endif
