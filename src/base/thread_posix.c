#include <sched.h>

#include "base/thread.h"

static void *run(void *argument) {
  ml_thread *thread = argument;
  thread->main(thread->context);
  return NULL;
}

bool ml_thread_start(ml_thread *thread, ml_thread_main *main, void *context) {
  thread->main = main;
  thread->context = context;
  return pthread_create(&thread->handle, NULL, run, thread) == 0;
}

void ml_thread_join(ml_thread *thread) { pthread_join(thread->handle, NULL); }

void ml_thread_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void ml_thread_yield(void) { sched_yield(); }

void ml_bell_init(ml_bell *bell) {
  atomic_init(&bell->rung, 0);
  atomic_init(&bell->sleepers, 0);
  pthread_mutex_init(&bell->mutex, NULL);
  pthread_cond_init(&bell->changed, NULL);
}

void ml_bell_destroy(ml_bell *bell) {
  pthread_cond_destroy(&bell->changed);
  pthread_mutex_destroy(&bell->mutex);
}

/* Who goes to sleep says so and then looks, who rings counts and then asks who sleeps: one of them sees the other. The
 * mutex is for a thread between looking and sleeping. */
void ml_bell_ring(ml_bell *bell) {
  atomic_fetch_add(&bell->rung, 1);
  if (atomic_load(&bell->sleepers) == 0) return;
  pthread_mutex_lock(&bell->mutex);
  pthread_cond_broadcast(&bell->changed);
  pthread_mutex_unlock(&bell->mutex);
}

void ml_bell_sleep(ml_bell *bell, unsigned seen) {
  pthread_mutex_lock(&bell->mutex);
  atomic_fetch_add(&bell->sleepers, 1);
  while (atomic_load(&bell->rung) == seen) pthread_cond_wait(&bell->changed, &bell->mutex);
  atomic_fetch_sub(&bell->sleepers, 1);
  pthread_mutex_unlock(&bell->mutex);
}
