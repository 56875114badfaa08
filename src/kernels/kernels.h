/* kernels.h - the table of hot functions. One implementation per instruction set fills it; `scalar` is the
 * specification, and every other one but `exact` must give its very bits (docs/NUMERICS.md). */
#ifndef ML_KERNELS_H
#define ML_KERNELS_H

#include <stdbool.h>

#include "kernels/matrix.h"

/* Causal attention at one position, of the query heads that share a key and value head. K and V live in a ring:
 * position p is row p % capacity. */
typedef struct ml_attend {
  float *out;         /* (n_heads, head_dim) */
  const float *q;     /* (n_heads, head_dim) */
  const float *k, *v; /* (capacity, head_dim) */
  uint32_t n_heads, head_dim, capacity;
  uint32_t first, count; /* positions first ... first + count - 1, at least one, at most capacity */
  float scale;           /* on q.k */
  float softcap;         /* 0: none */
  float *scores, *sums;  /* (n_heads, count), (n_heads): scratch */
} ml_attend;

/* What remains of attention when keys and values are bytes, after the keys: softmax over the scores of the query heads
 * that share a value head, and the sum of its values. Values live in a ring as above. */
typedef struct ml_mix_q8 {
  float *out;      /* (n_heads, head_dim) */
  float *scores;   /* (n_heads, stride): q.k of `count` positions, overwritten */
  size_t stride;   /* floats from one head's scores to the next one's */
  const int8_t *v; /* (capacity, width) */
  const float *d;  /* (width / 32, capacity): scales of the blocks */
  uint32_t n_heads, head_dim, capacity, first,
      count; /* as above; width is head_dim rounded up to blocks of 32 */
  float scale, softcap;
  float *sums; /* (n_heads): scratch */
} ml_mix_q8;

/* One position of one value head of the gated delta rule. */
typedef struct ml_delta {
  float *out;         /* (dv) */
  float *state;       /* (dk, dv), updated */
  const float *q, *k; /* (dk), normalized; q scaled too */
  const float *v;     /* (dv) */
  uint32_t dk, dv;
  float decay, beta;
} ml_delta;

/* One position of a causal convolution over channels begin ... end - 1, then SiLU, in place. */
typedef struct ml_conv {
  float *x;             /* (channels) */
  float *history;       /* (taps - 1, channels), a ring; its oldest row is overwritten with the input */
  const float *weights; /* (taps, channels), the last tap for the current input */
  uint32_t channels, taps, begin, end;
  uint32_t oldest; /* row of the input taps - 1 positions ago */
} ml_conv;

typedef struct ml_kernels {
  const char *name;
  bool wants_wide; /* its matrix kernels read ml_rows.wide */
#define ML_KERNEL(result, name, arguments) result(*name) arguments;
#include "kernels/kernel_list.h"
#undef ML_KERNEL
} ml_kernels;

typedef void ml_matmul_fn(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
                          uint32_t row_end);

/* The kernel for a matrix's type and layout. */
static inline ml_matmul_fn *ml_matmul_for(const ml_kernels *kernels, const ml_matrix *w) {
  bool packed = w->layout == ML_LAYOUT_PACKED;
  switch (w->type) {
    case ML_Q8_0: return packed ? kernels->matmul_q8_0_packed : kernels->matmul_q8_0_rows;
    case ML_INT2: return kernels->matmul_int2_packed;
    case ML_F16: return kernels->matmul_f16_packed;
    default: return packed ? kernels->matmul_q4_0_packed : kernels->matmul_q4_0_rows;
  }
}

/* By name; NULL when this build and machine lack it. NULL asks for the best. "exact" is not among them. */
const ml_kernels *ml_kernels_find(const char *name);
/* The slow double-precision table behind the `exact` option, NULL where the build has none, and a matrix-vector product
 * whose results are double as well, for the logits: y[r] = softcap'd row r of w times x (cols floats). */
const ml_kernels *ml_kernels_exact(void);
void ml_kernels_exact_matvec(double *y, const ml_matrix *w, const float *x, float softcap);
/* Names, best first; NULL past the end. */
const char *ml_kernels_name(size_t index);
/* The same with those that this machine lacks, for tests: only when can_run may their functions be called. */
const ml_kernels *ml_kernels_built(size_t index, bool *can_run);

#endif
