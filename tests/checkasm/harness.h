/* harness.h - what checkasm_main.c tells the cases, and what it learns from them. */
#ifndef HARNESS_H
#define HARNESS_H

#include "checkasm.h"

enum { MAX_BENCHES = 8 }; /* cases of one bench function */

typedef struct harness {
  const ml_kernels *kernels[N_SIDES];
  bool benching; /* case_run measures */
  bool quiet;    /* differences are expected: counted, not described, and after the first nothing is run */

  uint64_t n_cases, n_differences; /* cases compared, and those of them that differed */
  char text[160];                  /* the case that is running */

  uint32_t n_benches;
  struct {
    char text[160];
    double nanoseconds; /* a call, the least of several measurements */
  } benches[MAX_BENCHES];
} harness;

extern harness current;

/* Takes the memory for buffers; false when there is none. */
bool harness_open(void);

/* Before each check or bench function: counts nothing, and the random numbers begin anew. */
void harness_start(const ml_kernels *tested, const char *kernel_name, uint64_t seed);

#endif
