#include "kernels/fmath.h"

#include <stdint.h>
#include <string.h>

static double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint64_t to_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* 2^n for -1022 <= n <= 1023. */
static double pow2(int n) { return from_bits((uint64_t)(n + 1023) << 52); }

/* ln 2 in two parts; the first has 21 trailing zero bits, so n * LN2_HIGH is exact for |n| < 2^20. */
static const double LN2_HIGH = 0x1.62e42feep-1;
static const double LN2_LOW = 0x1.a39ef35793c76p-33;

double ml_exp(double x) {
  if (x != x) return x;
  if (x < -708) return 0;
  if (x > 709) return from_bits(UINT64_C(0x7ff0000000000000));
  double n = ml_round_even(x * 1.4426950408889634);
  double r = (x - n * LN2_HIGH) - n * LN2_LOW; /* |r| <= 0.347: the series below ends at 4e-18 */
  static const double inverse_factorial[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                             1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                             1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
  double sum = inverse_factorial[0];
  for (int i = 1; i < 12; i++) sum = sum * r + inverse_factorial[i];
  return (1 + (r + r * r * sum)) * pow2((int)n);
}

double ml_log(double x) {
  const double infinity = from_bits(UINT64_C(0x7ff0000000000000));
  if (x != x || x == infinity) return x;
  if (x == 0) return -infinity;
  if (x < 0) return from_bits(UINT64_C(0x7ff8000000000000));
  int exponent = 0;
  if (x < 0x1p-1022) x *= 0x1p54, exponent = -54;
  uint64_t bits = to_bits(x);
  exponent += (int)(bits >> 52) - 1023;
  double m = from_bits((bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000));
  if (m > 1.4142135623730951) m *= 0.5, exponent++;
  /* log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.172: s^26 / 27 is below 1e-21 */
  double s = (m - 1) / (m + 1);
  double square = s * s;
  double sum = 0;
  for (int k = 25; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return exponent * LN2_HIGH + (2 * (s + s * sum) + exponent * LN2_LOW);
}

double ml_pow(double x, double y) { return ml_exp(y * ml_log(x)); }

double ml_tanh(double x) {
  double e = ml_exp(2 * x); /* 0 and infinity give the limits -1 and 1 */
  return 1 - 2 / (e + 1);
}

double ml_sigmoid(double x) { return 1 / (1 + ml_exp(-x)); }

double ml_softplus(double x) { return x > 40 ? x : ml_log(1 + ml_exp(x)); }

double ml_floor(double x) {
  if (!(x > -0x1p52 && x < 0x1p52)) return x;
  double whole = (double)(int64_t)x;
  return whole > x ? whole - 1 : whole;
}

void ml_sincos(double x, double *sine, double *cosine) {
  if (x != x) {
    *sine = *cosine = x;
    return;
  }
  if (x >= 0x1p26 || x <= -0x1p26) x = 0;
  /* pi/2 in pieces of 27 bits: n has at most 26, so the first products are exact */
  double n = ml_round_even(x * 0.6366197723675814);
  double r = ((x - n * 0x1.921fb54p0) - n * 0x1.10b461p-30) - n * 0x1.a62633p-58 - n * 0x1.45c06e0e68948p-86;
  double square = r * r;
  static const double sine_terms[] = {
      1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
      1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
  static const double cosine_terms[] = {
      1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
      1.0 / 40320,          -1.0 / 720,         1.0 / 24,        -0.5};
  double s = 0, c = 0;
  for (int i = 0; i < 8; i++) s = s * square + sine_terms[i], c = c * square + cosine_terms[i];
  s = r + r * square * s;
  c = 1 + square * c;
  switch ((unsigned)(int64_t)n & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
  }
}
