#include "kernels/tables.h"

#include <string.h>

/* Best first. */
static const ml_kernels *const implementations[] = {&ml_kernels_scalar};

enum { N_IMPLEMENTATIONS = sizeof implementations / sizeof *implementations };

const char *ml_kernels_name(size_t index) {
  return index < N_IMPLEMENTATIONS ? implementations[index]->name : NULL;
}

const ml_kernels *ml_kernels_find(const char *name) {
  if (!name) return implementations[0];
  for (size_t i = 0; i < N_IMPLEMENTATIONS; i++)
    if (strcmp(implementations[i]->name, name) == 0) return implementations[i];
  return NULL;
}

const ml_kernels *ml_kernels_exact(void) { return &ml_kernels_double; }
