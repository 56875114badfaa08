#include <string.h>

#include "kernels/cpu.h"
#include "kernels/tables.h"

/* Best first; scalar runs anywhere and ends the list. A wasm module as it is published (ML_MODULE) must be small: it
 * holds its own kind only, and a relaxed one has nothing to offer where relaxed SIMD is not what we take it for. */
static const struct {
  const ml_kernels *kernels;
  bool (*supported)(void);
} implementations[] = {
#if defined(__x86_64__)
    {&ml_kernels_avx512vnni, ml_cpu_avx512vnni},
    {&ml_kernels_avxvnni, ml_cpu_avxvnni},
    {&ml_kernels_avx2, ml_cpu_avx2},
#endif
#if defined(__aarch64__)
    {&ml_kernels_neondot, ml_cpu_neondot},
    {&ml_kernels_neon, ml_cpu_any},
#endif
#if defined(__wasm__) && defined(ML_RELAXED)
    {&ml_kernels_relaxed_pairs, ml_cpu_relaxed_pairs},
    {&ml_kernels_relaxed, ml_cpu_relaxed},
#endif
#if defined(__wasm__) && !(defined(ML_RELAXED) && defined(ML_MODULE))
    {&ml_kernels_simd128, ml_cpu_any},
#endif
#if !defined(ML_MODULE)
    {&ml_kernels_scalar, ml_cpu_any},
#endif
};

enum { N_IMPLEMENTATIONS = sizeof implementations / sizeof *implementations };

/* The implementations that this machine can run, counted from the best. */
static const ml_kernels *supported(size_t index) {
  for (size_t i = 0; i < N_IMPLEMENTATIONS; i++)
    if (implementations[i].supported() && index-- == 0) return implementations[i].kernels;
  return NULL;
}

const ml_kernels *ml_kernels_built(size_t index, bool *can_run) {
  if (index >= N_IMPLEMENTATIONS) return NULL;
  *can_run = implementations[index].supported();
  return implementations[index].kernels;
}

const char *ml_kernels_name(size_t index) {
  const ml_kernels *kernels = supported(index);
  return kernels ? kernels->name : NULL;
}

const ml_kernels *ml_kernels_find(const char *name) {
  const ml_kernels *kernels;
  for (size_t i = 0; (kernels = supported(i)); i++)
    if (!name || strcmp(kernels->name, name) == 0) return kernels;
  return NULL;
}

const ml_kernels *ml_kernels_exact(void) {
#if defined(ML_MODULE)
  return NULL; /* a proof that native builds give */
#else
  return &ml_kernels_double;
#endif
}

void ml_kernels_exact_matvec(double *y, const ml_matrix *w, const float *x, float softcap) {
#if defined(ML_MODULE)
  (void)y, (void)w, (void)x, (void)softcap; /* never called, and the linker drops what it would need */
#else
  ml_exact_matvec(y, w, x, softcap);
#endif
}
