#include "sample/candidates.h"

#include <assert.h>
#include <stdbool.h>

/* ---------------------------------------------------------------- heap */

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

static void make_heap(ml_candidate *items, uint32_t size) {
  for (uint32_t i = size / 2; i-- > 0;) sift_down(items, size, i, items[i]);
}

/* ---------------------------------------------------------------- the promising ones */

enum {
  FIRST_SIZE = 1024,
  GROWTH = 8,
  BUCKETS_PER_UNIT = 8,
  UNITS = 32,
  FAR_BUCKET = BUCKETS_PER_UNIT * UNITS
};

/* How far below the best, in eighths; all that is UNITS or more below shares the last bucket. */
static uint32_t bucket_of(ml_candidate item, float best) {
  float below = best - item.logit;
  return below < (float)UNITS ? (uint32_t)(below * (float)BUCKETS_PER_UNIT) : FAR_BUCKET;
}

/* The last bucket that is needed to have `wanted` candidates. */
static uint32_t find_cut(const ml_candidate *items, uint32_t n, float best, uint32_t wanted) {
  uint32_t sizes[FAR_BUCKET + 1] = {0};
  for (uint32_t i = 0; i < n; i++) sizes[bucket_of(items[i], best)]++;
  uint32_t cut = 0;
  for (uint32_t sum = sizes[0]; sum < wanted && cut < FAR_BUCKET;) sum += sizes[++cut];
  return cut;
}

/* Moves all but about `wanted` of the best to the front; how many those are. */
static uint32_t set_rest_aside(ml_candidate *items, uint32_t n, float best, uint32_t wanted) {
  uint32_t cut = find_cut(items, n, best, wanted), n_rest = 0;
  for (uint32_t i = 0; i < n; i++) {
    ml_candidate item = items[i];
    if (bucket_of(item, best) <= cut) continue;
    items[i] = items[n_rest];
    items[n_rest++] = item;
  }
  return n_rest;
}

ml_candidates ml_candidates_new(ml_candidate *items, uint32_t n, float best) {
  return (ml_candidates){.items = items, .n = n, .start = n, .next_size = FIRST_SIZE, .best = best};
}

/* ---------------------------------------------------------------- taking */

/* The heap is empty: makes one of the best of the rest, items[0..start). */
static void refill(ml_candidates *candidates) {
  ml_candidate *items = candidates->items;
  uint32_t n = candidates->start, wanted = candidates->next_size;
  uint32_t n_rest = n / 4 > wanted ? set_rest_aside(items, n, candidates->best, wanted) : 0;
  make_heap(items + n_rest, n - n_rest);
  candidates->start = n_rest;
  candidates->next_size = wanted > UINT32_MAX / GROWTH ? UINT32_MAX : wanted * GROWTH;
}

static void take_best(ml_candidates *candidates) {
  uint32_t end = candidates->n - candidates->taken;
  if (candidates->start == end) refill(candidates);
  ml_candidate *heap = candidates->items + candidates->start;
  uint32_t last = end - candidates->start - 1;
  ml_candidate best = heap[0], displaced = heap[last];
  sift_down(heap, last, 0, displaced);
  heap[last] = best;
  candidates->taken++;
}

ml_candidate ml_candidates_at(ml_candidates *candidates, uint32_t rank) {
  assert(rank < candidates->n);
  while (candidates->taken <= rank) take_best(candidates);
  return candidates->items[candidates->n - 1 - rank];
}
