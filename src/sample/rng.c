#include "sample/rng.h"

/* The stream that the paper's demonstration program uses, so that its published output for seed 42 is the
 * test vector of this file. Any odd number would do. */
#define INCREMENT ((UINT64_C(54) << 1) | 1)
#define MULTIPLIER UINT64_C(6364136223846793005)

static void advance(ml_rng *rng) { rng->state = rng->state * MULTIPLIER + INCREMENT; }

ml_rng ml_rng_new(uint64_t seed) {
  ml_rng rng = {0};
  advance(&rng);
  rng.state += seed;
  advance(&rng);
  return rng;
}

uint32_t ml_rng_next(ml_rng *rng) {
  uint64_t old = rng->state;
  advance(rng);
  uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
  uint32_t rotation = (uint32_t)(old >> 59);
  return mixed >> rotation | mixed << ((32 - rotation) & 31);
}

float ml_rng_uniform(ml_rng *rng) { return (float)(ml_rng_next(rng) >> 8) * 0x1p-24f; }
