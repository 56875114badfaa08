/* tables.h - the implementations that this build holds; only table.c and they include it. */
#ifndef ML_KERNELS_TABLES_H
#define ML_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const ml_kernels ml_kernels_scalar;
extern const ml_kernels ml_kernels_double;

#if defined(__x86_64__)
extern const ml_kernels ml_kernels_avx2;
extern const ml_kernels ml_kernels_avxvnni;
extern const ml_kernels ml_kernels_avx512vnni;
#endif

#endif
