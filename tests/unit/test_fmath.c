/* The engine's elementary functions against the C library's, which may serve here as an oracle: nothing depends on
 * its last bit. */
#include <math.h>

#include "kernels/fmath.h"
#include "kernels/half.h"
#include "test.h"

enum { N_RANDOM = 200000 };

static double random_real(double low, double high) {
  return low + (high - low) * ((double)(test_random_u64() >> 11) * 0x1p-53);
}

static double relative_error(double value, double expected) {
  return fabs(value - expected) / fabs(expected);
}

TEST(exp_matches_the_c_library) {
  double worst = 0;
  for (int i = 0; i < N_RANDOM; i++) {
    double x = random_real(-700, 700);
    worst = fmax(worst, relative_error(ml_exp(x), exp(x)));
  }
  CHECK(worst < 4.5e-16);
  CHECK(worst > 0); /* the comparison has seen different implementations */
  CHECK(ml_exp(0) == 1);
  CHECK(ml_exp(-1000) == 0);
  CHECK(ml_exp(-HUGE_VAL) == 0);
  CHECK(ml_exp(1000) == HUGE_VAL);
  CHECK(isnan(ml_exp(NAN)));
}

TEST(log_matches_the_c_library) {
  double worst = 0;
  for (int i = 0; i < N_RANDOM; i++) {
    double x = exp(random_real(-700, 700));
    worst = fmax(worst, fabs(ml_log(x) - log(x)) / fmax(1e-2, fabs(log(x))));
  }
  CHECK(worst < 4.5e-16);
  CHECK(ml_log(1) == 0);
  CHECK_NEAR(ml_log(0x1p-1074), log(0x1p-1074), 1e-12);
  CHECK(ml_log(0) == -HUGE_VAL);
  CHECK(ml_log(HUGE_VAL) == HUGE_VAL);
  CHECK(isnan(ml_log(-1)));
  CHECK(isnan(ml_log(NAN)));
}

TEST(sincos_matches_the_c_library) {
  double worst = 0;
  for (int i = 0; i < N_RANDOM; i++) {
    double x = random_real(-1, 1) * ldexp(1, (int)test_random_below(27)), s, c;
    ml_sincos(x, &s, &c);
    worst = fmax(worst, fmax(fabs(s - sin(x)), fabs(c - cos(x))));
  }
  CHECK(worst < 4.5e-16);
}

TEST(sincos_of_the_absurd_is_finite) {
  const double absurd[] = {0x1p26, -0x1p26, 1e300, HUGE_VAL, -HUGE_VAL};
  for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
    double s, c;
    ml_sincos(absurd[i], &s, &c);
    CHECK(s == 0 && c == 1);
  }
}

TEST(derived_functions_match_the_c_library) {
  double worst_pow = 0, worst_tanh = 0, worst_softplus = 0, worst_sigmoid = 0;
  for (int i = 0; i < N_RANDOM; i++) {
    double base = random_real(1, 1e6), exponent = random_real(-1, 0), x = random_real(-60, 60);
    worst_pow = fmax(worst_pow, relative_error(ml_pow(base, exponent), pow(base, exponent)));
    worst_tanh = fmax(worst_tanh, fabs(ml_tanh(x) - tanh(x)));
    worst_softplus = fmax(worst_softplus, fabs(ml_softplus(x) - log1p(exp(x))));
    worst_sigmoid = fmax(worst_sigmoid, fabs(ml_sigmoid(x) - 1 / (1 + exp(-x))));
  }
  CHECK(worst_pow < 4e-15);
  CHECK(worst_tanh < 4.5e-16);
  CHECK(worst_softplus < 1e-14);
  CHECK(worst_sigmoid < 4.5e-16);
}

TEST(floor_and_round) {
  const double values[] = {-2.5, -2, -0.5, -0.0, 0, 0.5, 1.5, 2.5, 3.75, 1e15, -1e15, 0x1p60, -0x1p60};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    CHECK(ml_floor(values[i]) == floor(values[i]));
    if (fabs(values[i]) < 0x1p51) CHECK(ml_round_even(values[i]) == nearbyint(values[i]));
  }
}

TEST(half_to_float_over_all_values) {
  for (uint32_t half = 0; half < 65536; half++) {
    int exponent = (int)(half >> 10 & 31), mantissa = (int)(half & 1023);
    float value = ml_half_to_float((uint16_t)half);
    if (exponent == 31) {
      CHECK(mantissa ? isnan(value) : isinf(value));
    } else {
      double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
      CHECK_EQ_F32_BITS(value, (float)(half & 0x8000 ? -size : size));
    }
  }
  CHECK_EQ_F32_BITS(ml_half_to_float(1), 5.9604645e-08f);
}
