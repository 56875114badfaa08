/* tables.h - the implementations that this build holds; only table.c and they include it. */
#ifndef ML_KERNELS_TABLES_H
#define ML_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const ml_kernels ml_kernels_scalar;
extern const ml_kernels ml_kernels_double;

/* Any quantized type in any layout: the meaning of a matrix product, one weight block at a time for all tokens. */
ml_matmul_fn ml_matmul_any;
/* ml_kernels_exact_matvec of builds that have it. */
void ml_exact_matvec(double *y, const ml_matrix *w, const float *x, float softcap);
/* The kernel `embed`: one multiplication per element, which has one rounding on any machine. */
void ml_embed_any(float *out, const ml_matrix *w, uint32_t row, float scale);

#if defined(__x86_64__)
extern const ml_kernels ml_kernels_avx2;
extern const ml_kernels ml_kernels_avxvnni;
extern const ml_kernels ml_kernels_avx512vnni;
#endif

#if defined(__aarch64__)
extern const ml_kernels ml_kernels_neon;
extern const ml_kernels ml_kernels_neondot;
#endif

#if defined(__wasm__)
extern const ml_kernels ml_kernels_simd128;
#if defined(ML_RELAXED) /* this build may use relaxed SIMD */
extern const ml_kernels ml_kernels_relaxed;
extern const ml_kernels ml_kernels_relaxed_pairs;
#endif
#endif

#endif
