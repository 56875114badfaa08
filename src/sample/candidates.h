/* candidates.h - tokens taken in order of falling logit, without sorting those that nobody asks for.
 *
 * One array of n candidates. Its front is a heap with the best at 0; a taken candidate goes to the place that
 * the shrinking heap gives up, as in heap sort, so the taken ones stand at the back in reverse order:
 *
 *   0            n - taken                 n
 *   +--- heap ---+-- third, second, first -+
 *
 * Making the heap is linear in n and taking one is logarithmic, so top_k = 40 of 262144 tokens costs about
 * one pass. Equal logits are ordered by id, which makes the order total and the same everywhere. */
#ifndef ML_SAMPLE_CANDIDATES_H
#define ML_SAMPLE_CANDIDATES_H

#include <stdint.h>

typedef struct ml_candidate {
  float logit; /* never NaN */
  int32_t id;
} ml_candidate;

typedef struct ml_candidates {
  ml_candidate *items;
  uint32_t n;     /* in all */
  uint32_t taken; /* of n: at the back of `items` */
} ml_candidates;

/* Arranges items[0..n), which stay the caller's memory; nothing is taken yet. */
ml_candidates ml_candidates_new(ml_candidate *items, uint32_t n);

/* The candidate of that rank, 0 being the best; takes as many as needed. rank < n. */
ml_candidate ml_candidates_at(ml_candidates *candidates, uint32_t rank);

#endif
