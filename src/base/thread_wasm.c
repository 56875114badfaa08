/* thread_wasm.c - threads of a wasm build. Only JavaScript can start a worker, and not while it waits for a call to
 * return. So it starts workers beforehand, as many as threads may be wanted, and each of them instantiates the module on
 * the same memory and calls ml_thread_lend, which takes a seat and waits there for work:
 *
 *    EMPTY ---lend---> WAITING ---start---> WORKING
 *                         ^--- main returned ---'
 *
 * A worker that fails to start takes no seat, and is done without. The thread that starts and joins may be a page's own,
 * which must not be blocked: it sleeps only once JavaScript has said that it may. */
#include "base/thread.h"

#include "base/pool.h"

enum { EMPTY, WAITING, WORKING };

/* Belongs to the instance, as its workers do, and not to a pool: they outlive sessions. */
static struct seat {
  atomic_uint state;
  ml_thread *thread;
} seats[ML_MAX_THREADS];

static bool may_sleep; /* the thread that starts and joins */

#define YIELD_NS 50000

#if defined(__wasm_atomics__)
static void sleep_while(atomic_uint *number, unsigned value) {
  while (atomic_load(number) == value)
    __builtin_wasm_memory_atomic_wait32((int *)(void *)number, (int)value, -1);
}

static void wake(atomic_uint *number) { __builtin_wasm_memory_atomic_notify((int *)(void *)number, ~0u); }

/* Nobody wakes it: other threads have its processor for that long. */
static void nap(void) {
  int nothing = 0;
  __builtin_wasm_memory_atomic_wait32(&nothing, 0, YIELD_NS);
}
#else /* a build for one thread: nobody is lent, sleeps or can be woken */
static void sleep_while(atomic_uint *number, unsigned value) { (void)number, (void)value; }
static void wake(atomic_uint *number) { (void)number; }
static void nap(void) {}
#endif

static bool change(atomic_uint *state, unsigned from, unsigned to) {
  return atomic_compare_exchange_strong(state, &from, to);
}

void ml_thread_lend(void) {
  struct seat *seat = seats, *end = seats + ML_MAX_THREADS;
  while (seat < end && !change(&seat->state, EMPTY, WAITING)) seat++;
  if (seat == end) return;
  for (;;) {
    sleep_while(&seat->state, WAITING);
    seat->thread->main(seat->thread->context);
    atomic_store(&seat->state, WAITING);
  }
}

unsigned ml_thread_lent(void) {
  unsigned n = 0;
  while (n < ML_MAX_THREADS && atomic_load(&seats[n].state) != EMPTY) n++;
  return n;
}

/* The thread is in its seat before the state says so: only one thread of a program starts threads. */
bool ml_thread_start(ml_thread *thread, ml_thread_main *main, void *context) {
  *thread = (ml_thread){.main = main, .context = context};
  for (; thread->seat < ML_MAX_THREADS; thread->seat++) {
    struct seat *seat = &seats[thread->seat];
    if (atomic_load(&seat->state) != WAITING) continue;
    seat->thread = thread;
    atomic_store(&seat->state, WORKING);
    wake(&seat->state);
    return true;
  }
  return false;
}

void ml_thread_join(ml_thread *thread) {
  while (atomic_load(&seats[thread->seat].state) == WORKING) ml_thread_yield();
}

void ml_thread_pause(void) {}

void ml_thread_yield(void) {
  if (may_sleep) nap();
}

void ml_thread_may_sleep(void) { may_sleep = true; }

void ml_bell_init(ml_bell *bell) {
  atomic_init(&bell->rung, 0);
  atomic_init(&bell->sleepers, 0);
}

void ml_bell_destroy(ml_bell *bell) { (void)bell; }

/* Who goes to sleep says so and then looks, who rings counts and then asks who sleeps: one of them sees the other. */
void ml_bell_ring(ml_bell *bell) {
  atomic_fetch_add(&bell->rung, 1);
  if (atomic_load(&bell->sleepers)) wake(&bell->rung);
}

void ml_bell_sleep(ml_bell *bell, unsigned seen) {
  atomic_fetch_add(&bell->sleepers, 1);
  sleep_while(&bell->rung, seen);
  atomic_fetch_sub(&bell->sleepers, 1);
}
