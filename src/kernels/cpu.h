/* cpu.h - what the processor can do, asked where a table needs more than its architecture promises. */
#ifndef ML_KERNELS_CPU_H
#define ML_KERNELS_CPU_H

#include <stdbool.h>

static inline bool ml_cpu_any(void) { return true; }

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool ml_cpu_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

/* Leaf 7, subleaf 1, EAX bit 4. The compilers' list of features learned this one late. */
static inline bool ml_cpu_avxvnni(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return ml_cpu_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

static inline bool ml_cpu_avx512vnni(void) {
  return ml_cpu_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}
#endif

#if defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>

/* Bit 20 of AT_HWCAP is HWCAP_ASIMDDP, which older headers do not name. */
static inline bool ml_cpu_neondot(void) { return getauxval(AT_HWCAP) >> 20 & 1; }

#elif defined(__APPLE__)
static inline bool ml_cpu_neondot(void) { return true; } /* every one since the A11 */

#else /* nowhere to ask */
static inline bool ml_cpu_neondot(void) { return false; }
#endif
#endif

#if defined(__wasm__) && defined(ML_RELAXED)
/* In relaxed.c: whether the relaxed dot products are what it relies on, and whether pairs are the faster ones. */
bool ml_cpu_relaxed(void);
bool ml_cpu_relaxed_pairs(void);
#endif

#endif
