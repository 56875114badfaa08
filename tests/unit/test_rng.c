/* The random numbers of the sampler: published values, seeds, and the range and evenness of the floats. */
#include "sample/rng.h"
#include "test.h"

/* Output of the demonstration program of the PCG reference code (pcg32-demo, round 1): seed 42, stream 54. */
TEST(rng_draws_the_published_numbers) {
  static const uint32_t expected[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e};
  ml_rng rng = ml_rng_new(42);
  for (int i = 0; i < 6; i++) CHECK_EQ_U64(ml_rng_next(&rng), expected[i]);
}

TEST(rng_repeats_for_the_same_seed) {
  static const uint64_t seeds[] = {0, 1, 7, UINT64_C(1) << 32, UINT64_MAX};
  for (int s = 0; s < 5; s++) {
    ml_rng a = ml_rng_new(seeds[s]), b = ml_rng_new(seeds[s]);
    for (int i = 0; i < 64; i++) CHECK_EQ_U64(ml_rng_next(&a), ml_rng_next(&b));
  }
}

/* All 64 bits of a seed count, and 0 is a seed like any other. */
TEST(rng_seeds_are_all_different) {
  enum { N = 130 };
  uint64_t firsts[N]; /* two draws of each seed */
  for (uint32_t s = 0; s < N; s++) {
    uint64_t seed = s < 65 ? (s ? UINT64_C(1) << (s - 1) : 0) : 7 + ((uint64_t)(s - 65) << 32);
    if (s == 65) seed = 7;
    ml_rng rng = ml_rng_new(seed);
    uint64_t high = ml_rng_next(&rng);
    firsts[s] = high << 32 | ml_rng_next(&rng);
    for (uint32_t t = 0; t < s; t++) CHECK(firsts[t] != firsts[s]);
  }
}

TEST(rng_floats_are_multiples_of_two_to_minus_24_below_one) {
  ml_rng rng = ml_rng_new(0), twin = ml_rng_new(0);
  for (int i = 0; i < 10000; i++) {
    float x = ml_rng_uniform(&rng);
    CHECK_EQ_F32_BITS(x, (float)(ml_rng_next(&twin) >> 8) / 16777216.0f);
    CHECK(x >= 0 && x < 1);
  }
}

/* Chi-square over 256 equal bins, 255 degrees of freedom: mean 255, standard deviation 22.6. Fixed seeds, so
 * the bounds (about 4 deviations) hold always or never; numbers that are too even fail as well. */
static double chi_square_of_bins(ml_rng *rng, uint32_t draws) {
  uint32_t bins[256] = {0};
  for (uint32_t i = 0; i < draws; i++) bins[(int)(ml_rng_uniform(rng) * 256)]++;
  double expected = draws / 256.0, sum = 0;
  for (int b = 0; b < 256; b++) sum += (bins[b] - expected) * (bins[b] - expected) / expected;
  return sum;
}

TEST(rng_floats_are_even) {
  static const uint64_t seeds[] = {0, 1, 2, 7, 8, UINT64_MAX};
  for (int s = 0; s < 6; s++) {
    ml_rng rng = ml_rng_new(seeds[s]);
    CHECK_NEAR(chi_square_of_bins(&rng, 1 << 18), 255, 90);
  }
}

/* People try seeds 1, 2, 3 ...: the second draw must not follow from the first (a correlation of 20000 pairs
 * has a standard deviation of 0.007). */
TEST(rng_neighbouring_seeds_are_unrelated) {
  enum { N = 20000 };
  double sum_xy = 0, sum_xz = 0;
  float previous = 0;
  for (uint64_t seed = 0; seed < N; seed++) {
    ml_rng rng = ml_rng_new(seed);
    float x = ml_rng_uniform(&rng), y = ml_rng_uniform(&rng);
    sum_xy += (x - 0.5) * (y - 0.5);
    if (seed) sum_xz += (y - 0.5) * (previous - 0.5);
    previous = y;
  }
  CHECK_NEAR(sum_xy / N * 12, 0, 0.03);
  CHECK_NEAR(sum_xz / N * 12, 0, 0.03);
}
