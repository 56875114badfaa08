/* cpu.h - what the processor can do, asked where a table needs more than its architecture promises. */
#ifndef ML_KERNELS_CPU_H
#define ML_KERNELS_CPU_H

#include <stdbool.h>

static inline bool ml_cpu_any(void) { return true; }

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool ml_cpu_avx2(void) { return __builtin_cpu_supports("avx2"); }

/* Leaf 7, subleaf 1, EAX bit 4. The compilers' list of features learned this one late. */
static inline bool ml_cpu_avxvnni(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return ml_cpu_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

static inline bool ml_cpu_avx512vnni(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}
#endif

#endif
