/* fmath.h - elementary functions made of + - * / and comparisons, so that every build gives the same bits
 * (the C library's differ between platforms). Double precision, for the few values per token that are not
 * on a hot path: rotary tables, decay factors, sampling. Errors are below 2 ulp where not said otherwise.
 * The vector versions for hot paths are in float_kernels.h.
 *
 * NaN gives NaN everywhere. */
#ifndef ML_KERNELS_FMATH_H
#define ML_KERNELS_FMATH_H

double ml_exp(double x);           /* 0 below -708, +infinity above 709 */
double ml_log(double x);           /* x <= 0: -infinity for 0, NaN below */
double ml_pow(double x, double y); /* x > 0; relative error grows with |y log x|: about |y log x| ulp */
double ml_tanh(double x);          /* absolute error below 2 ulp of 1 */
double ml_sigmoid(double x);       /* 1 / (1 + exp(-x)) */
double ml_softplus(double x);      /* log(1 + exp(x)), absolute error below 2 ulp of 1 */

/* sin and cos of |x| < 2^26 to 2 ulp of 1. Beyond (a position whose angle has lost its meaning in any
 * precision) they are those of 0, so that a hostile file cannot make them infinite. */
void ml_sincos(double x, double *sine, double *cosine);

/* floor for any double. */
double ml_floor(double x);

/* The nearest integer of |x| < 2^51, ties to even: adding 1.5 * 2^52 leaves no bits for a fraction. */
static inline double ml_round_even(double x) {
  const double shift = 6755399441055744.0;
  return (x + shift) - shift;
}

#endif
