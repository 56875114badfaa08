/* checkasm.h - compares every kernel of every implementation with `scalar`, bit for bit, and measures it.
 *
 * For each kernel of kernels/kernel_list.h there are two functions, without which the program does not link:
 *
 *   check_<kernel>   many small cases: sizes around vector widths, extreme values, all layouts
 *   bench_<kernel>   a case or two of the size that models have
 *
 * A case is made of buffers. Every buffer exists twice, with the same content and the same surroundings; scalar works
 * on one, the implementation under test on the other, and then both must be equal, inputs and surroundings included.
 *
 *   void check_add(void) {
 *     for (size_t n = 0; n < 70; n++) {
 *       case_begin("n %zu", n);
 *       vectors v = {n, new_floats("x", n, SMOOTH), new_floats("y", n, SMOOTH)};
 *       case_run(call_add, &v);
 *     }
 *   }
 *
 * Buffers begin at any multiple of their element's size. Half of them end where the next byte cannot be touched (where
 * the platform has such memory), the others lie between 64 bytes of noise. */
#ifndef CHECKASM_H
#define CHECKASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define ML_KERNEL(result, name, arguments) void check_##name(void), bench_##name(void);
#include "kernels/kernel_list.h"
#undef ML_KERNEL

/* ---------------------------------------------------------------- buffers */

typedef enum side { REFERENCE, TESTED, N_SIDES } side;

typedef struct buffer {
  void *of[N_SIDES]; /* a test fills of[REFERENCE]; case_run copies it */
} buffer;

/* What the two sides of a buffer are compared as. */
typedef enum content {
  BYTES,
  FLOATS, /* bits too, but all NaN are one: which of two NaN survives a sum is the compiler's choice */
  SCRATCH /* not compared: only the surroundings are */
} content;

/* Not for longer than the case. `name` is for messages. Zeros. */
buffer new_buffer(const char *name, size_t count, size_t size, content what);
/* Begins at a multiple of 64 bytes, as a matrix does. */
buffer new_aligned(const char *name, size_t count, size_t size, content what);

/* What floats are like. */
typedef enum style {
  SMOOTH,     /* -4 ... 4 */
  WIDE,       /* any exponent, subnormal to 2^100 */
  TIES,       /* multiples of 1/2, and zeros of both signs */
  EXTREME,    /* bounds and their neighbours: zeros, subnormals, 1e30, the ends of exp, the largest float */
  NOT_FINITE, /* with a few infinities and NaN */
  N_STYLES
} style;

const char *style_name(style s);
buffer new_floats(const char *name, size_t n, style s);
void fill_floats(float *x, size_t n, style s);

/* ---------------------------------------------------------------- cases */

/* Forgets the buffers of the last case. The text tells this one from the others in messages. */
__attribute__((format(printf, 1, 2))) void case_begin(const char *format, ...);

/* Calls the kernel on one side of the buffers in `arguments`. */
typedef void call_fn(const ml_kernels *kernels, side on, const void *arguments);

/* Compares, or measures when a bench function runs. */
void case_run(call_fn *call, const void *arguments);

/* Uniform. The numbers start anew for each kernel, from --seed and its name. */
uint64_t random_u64(void);
uint32_t random_below(uint32_t limit); /* 0 ... limit - 1 */
float random_between(float low, float high);

#endif
