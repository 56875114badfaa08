#define _DEFAULT_SOURCE /* sigsetjmp, MAP_ANONYMOUS */

#include "faults.h"

#if defined(__unix__) && !defined(__EMSCRIPTEN__) || defined(__APPLE__)

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

enum { GUARD = 65536 }; /* a multiple of every page size in use */

void *guarded_memory(size_t bytes) {
  uint8_t *memory = mmap(NULL, bytes + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + bytes, GUARD, PROT_NONE) != 0) return NULL;
  return memory;
}

static const struct {
  int number;
  const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV: memory that is not its own"},
              {SIGBUS, "SIGBUS: memory that is not its own, or not aligned"},
              {SIGILL, "SIGILL: an instruction that this machine lacks"},
              {SIGFPE, "SIGFPE: a division by zero"}};

enum { N_FAULTS = sizeof faults / sizeof *faults };

static sigjmp_buf before_fault;
static volatile sig_atomic_t fault;

static void leave(int number) {
  for (int i = 0; i < N_FAULTS; i++)
    if (faults[i].number == number) fault = i;
  siglongjmp(before_fault, 1);
}

const char *catch_faults(void (*run)(void *context), void *context) {
  struct sigaction action = {.sa_handler = leave}, old[N_FAULTS];
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < N_FAULTS; i++) sigaction(faults[i].number, &action, &old[i]);
  const char *what = NULL;
  if (sigsetjmp(before_fault, 1) == 0)
    run(context);
  else
    what = faults[fault].name;
  for (int i = 0; i < N_FAULTS; i++) sigaction(faults[i].number, &old[i], NULL);
  return what;
}

#else

#include <stdlib.h>

void *guarded_memory(size_t bytes) { return aligned_alloc(65536, bytes); }

const char *catch_faults(void (*run)(void *context), void *context) {
  run(context);
  return NULL;
}

#endif
