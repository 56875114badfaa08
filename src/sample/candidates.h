/* candidates.h - tokens taken in order of falling logit, without sorting those that nobody asks for.
 *
 * One array of n candidates in three parts. The most promising, about a thousand, are a heap; a taken one
 * goes to the place that the shrinking heap gives up, as in heap sort. The rest lies unsorted until the heap
 * is empty; then a larger part of it becomes the heap.
 *
 *   0          start          n - taken                   n
 *   +-- rest --+---- heap ----+-- third, second, first ---+
 *
 * So top_k = 40 of 262144 tokens costs two passes over the array and some steps in a small heap. Equal logits
 * are ordered by id, which makes the order total: it depends on the logits alone, not on the parts. */
#ifndef ML_SAMPLE_CANDIDATES_H
#define ML_SAMPLE_CANDIDATES_H

#include <stdint.h>

typedef struct ml_candidate {
  float logit; /* finite */
  int32_t id;
} ml_candidate;

typedef struct ml_candidates {
  ml_candidate *items;
  uint32_t n;         /* in all */
  uint32_t taken;     /* of n: at the back of `items` */
  uint32_t start;     /* of the heap */
  uint32_t next_size; /* of the heap after this one, about */
  float best;         /* the largest logit */
} ml_candidates;

/* Candidates in items[0..n), which stay the caller's memory. `best` is their largest logit. */
ml_candidates ml_candidates_new(ml_candidate *items, uint32_t n, float best);

/* The candidate of that rank, 0 being the best; takes as many as needed. rank < n. */
ml_candidate ml_candidates_at(ml_candidates *candidates, uint32_t rank);

#endif
