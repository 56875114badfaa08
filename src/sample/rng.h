/* rng.h - random numbers for sampling: integers only, so every build draws the same ones.
 *
 * PCG32 (M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
 * Number Generation", 2014): a 64-bit linear congruential step, of which each draw scrambles 32 bits.
 * Every 64-bit seed is a different place of the one cycle of 2^64 draws, 0 included. */
#ifndef ML_SAMPLE_RNG_H
#define ML_SAMPLE_RNG_H

#include <stdint.h>

typedef struct ml_rng {
  uint64_t state;
} ml_rng;

ml_rng ml_rng_new(uint64_t seed);
uint32_t ml_rng_next(ml_rng *rng);
/* One of the 2^24 multiples of 2^-24 in [0, 1), exact in float. */
float ml_rng_uniform(ml_rng *rng);

#endif
