#include "sample/candidates.h"

#include <assert.h>
#include <stdbool.h>

static bool is_better(ml_candidate a, ml_candidate b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Puts `item` into the heap items[0..size) at `hole` or below it, moving better children up. */
static void sift_down(ml_candidate *items, uint32_t size, uint32_t hole, ml_candidate item) {
  while (hole < size / 2) { /* has a child; and 2 * hole + 1 cannot wrap */
    uint32_t child = 2 * hole + 1;
    if (child + 1 < size && is_better(items[child + 1], items[child])) child++;
    if (!is_better(items[child], item)) break;
    items[hole] = items[child];
    hole = child;
  }
  items[hole] = item;
}

ml_candidates ml_candidates_new(ml_candidate *items, uint32_t n) {
  for (uint32_t i = n / 2; i-- > 0;) sift_down(items, n, i, items[i]);
  return (ml_candidates){items, n, 0};
}

static void take_best(ml_candidates *candidates) {
  ml_candidate *items = candidates->items;
  uint32_t last = candidates->n - candidates->taken - 1;
  ml_candidate best = items[0];
  ml_candidate displaced = items[last];
  sift_down(items, last, 0, displaced);
  items[last] = best;
  candidates->taken++;
}

ml_candidate ml_candidates_at(ml_candidates *candidates, uint32_t rank) {
  assert(rank < candidates->n);
  while (candidates->taken <= rank) take_best(candidates);
  return candidates->items[candidates->n - 1 - rank];
}
