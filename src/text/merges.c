#include "text/merges.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

/* ---------------------------------------------------------------- the table */

/* Turns counts at row[0 ... n-1] to starts; row[n] becomes the sum. */
static void counts_to_starts(uint32_t *row, uint32_t n) {
  uint32_t start = 0;
  for (uint32_t i = 0; i <= n; i++) {
    uint32_t count = row[i];
    row[i] = start;
    start += count;
  }
}

/* Two counting sorts, by right token and then by left one, each keeping the order of equals: so a row comes out by
 * rising right token, and a pair that the file has twice by rising rank. */
static void fill_rows(ml_merges *m, const ml_mlt *mlt) {
  size_t row_bytes = ((size_t)mlt->n_vocab + 1) * sizeof *m->row;
  uint32_t *by_right = m->merged; /* ranks; the array gets its own content last */
  memset(m->row, 0, row_bytes);
  for (uint32_t rank = 0; rank < m->n_merges; rank++) m->row[ml_mlt_get_merge(mlt, rank).right]++;
  counts_to_starts(m->row, mlt->n_vocab);
  for (uint32_t rank = 0; rank < m->n_merges; rank++)
    by_right[m->row[ml_mlt_get_merge(mlt, rank).right]++] = rank;

  memset(m->row, 0, row_bytes);
  for (uint32_t rank = 0; rank < m->n_merges; rank++) m->row[ml_mlt_get_merge(mlt, rank).left]++;
  counts_to_starts(m->row, mlt->n_vocab);
  for (uint32_t i = 0; i < m->n_merges; i++) {
    ml_mlt_merge merge = ml_mlt_get_merge(mlt, by_right[i]);
    uint32_t place = m->row[merge.left]++;
    m->right[place] = merge.right;
    m->rank[place] = by_right[i];
  }
  /* Each start has moved to the end of its row, where the next one starts. */
  memmove(m->row + 1, m->row, row_bytes - sizeof *m->row);
  m->row[0] = 0;
  for (uint32_t rank = 0; rank < m->n_merges; rank++) m->merged[rank] = ml_mlt_get_merge(mlt, rank).merged;
}

void ml_merges_place(ml_merges *m, const ml_mlt *mlt, ml_arena *arena) {
  m->n_merges = mlt->n_merges;
  m->row = ml_arena_take(arena, (uint64_t)mlt->n_vocab + 1, sizeof *m->row);
  m->right = ml_arena_take(arena, m->n_merges, sizeof *m->right);
  m->rank = ml_arena_take(arena, m->n_merges, sizeof *m->rank);
  m->merged = ml_arena_take(arena, m->n_merges, sizeof *m->merged);
  if (m->row) fill_rows(m, mlt);
}

uint32_t ml_merges_find(const ml_merges *m, uint32_t left, uint32_t right) {
  const uint32_t *base = m->right + m->row[left];
  uint32_t n = m->row[left + 1] - m->row[left];
  if (n == 0) return ML_NO_MERGE;
  while (n > 1) { /* the answer, if there is one, is among base[0 ... n-1]; no branch depends on the data */
    uint32_t half = n / 2;
    base += base[half - 1] < right ? half : 0;
    n -= half;
  }
  return *base == right ? m->rank[base - m->right] : ML_NO_MERGE;
}

/* ---------------------------------------------------------------- short pieces: look at all pairs each time */

enum { SHORT_PIECE = 32 };

static size_t merge_short(const ml_merges *m, uint32_t *symbols, size_t n) {
  uint32_t ranks[SHORT_PIECE]; /* of the pair that begins here */
  for (size_t i = 0; i + 1 < n; i++) ranks[i] = ml_merges_find(m, symbols[i], symbols[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; i++)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == ML_NO_MERGE) break;
    symbols[best] = m->merged[ranks[best]];
    n--;
    for (size_t i = best + 1; i < n; i++) {
      symbols[i] = symbols[i + 1];
      ranks[i - 1] = ranks[i];
    }
    if (best + 1 < n) ranks[best] = ml_merges_find(m, symbols[best], symbols[best + 1]);
    if (best > 0) ranks[best - 1] = ml_merges_find(m, symbols[best - 1], symbols[best]);
  }
  return n;
}

/* ---------------------------------------------------------------- long pieces: a linked list and a heap of pairs */

#define NO_PLACE UINT32_MAX

/* A heap entry is rank << 32 | place of the pair's left symbol, so that the least is the one to merge next. Entries are
 * not taken out when their pair goes; such an entry is known by a rank that its place no longer has. */
typedef struct chain {
  const ml_merges *merges;
  uint32_t *symbols, *next, *previous; /* by place; NO_PLACE ends the list */
  uint32_t *ranks;                     /* of the pair that begins here */
  uint64_t *heap;                      /* never more than two entries for each symbol */
  size_t heap_size;
} chain;

static void sift_down(uint64_t *heap, size_t size, size_t at) {
  uint64_t entry = heap[at];
  for (size_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= entry) break;
    heap[at] = heap[child];
  }
  heap[at] = entry;
}

static uint64_t pop(chain *c) {
  uint64_t least = c->heap[0];
  c->heap[0] = c->heap[--c->heap_size];
  if (c->heap_size) sift_down(c->heap, c->heap_size, 0);
  return least;
}

static void push(chain *c, uint64_t entry) {
  size_t at = c->heap_size++;
  for (; at > 0 && c->heap[(at - 1) / 2] > entry; at = (at - 1) / 2) c->heap[at] = c->heap[(at - 1) / 2];
  c->heap[at] = entry;
}

/* Finds the rule for the pair at a place; true if there is one. */
static bool look_up(chain *c, uint32_t place) {
  uint32_t after = c->next[place];
  c->ranks[place] =
      after == NO_PLACE ? ML_NO_MERGE : ml_merges_find(c->merges, c->symbols[place], c->symbols[after]);
  return c->ranks[place] != ML_NO_MERGE;
}

static uint64_t entry_of(const chain *c, uint32_t place) { return (uint64_t)c->ranks[place] << 32 | place; }

static void merge_at(chain *c, uint32_t place) {
  uint32_t gone = c->next[place], after = c->next[gone], before = c->previous[place];
  c->symbols[place] = c->merges->merged[c->ranks[place]];
  c->ranks[gone] = ML_NO_MERGE;
  c->next[place] = after;
  if (after != NO_PLACE) c->previous[after] = place;
  if (look_up(c, place)) push(c, entry_of(c, place));
  if (before != NO_PLACE && look_up(c, before)) push(c, entry_of(c, before));
}

static size_t merge_long(chain *c, uint32_t n) {
  c->heap_size = 0;
  for (uint32_t i = 0; i < n; i++) {
    c->previous[i] = i ? i - 1 : NO_PLACE;
    c->next[i] = i + 1 < n ? i + 1 : NO_PLACE;
    if (look_up(c, i)) c->heap[c->heap_size++] = entry_of(c, i);
  }
  for (size_t i = c->heap_size / 2; i-- > 0;) sift_down(c->heap, c->heap_size, i);
  while (c->heap_size) {
    uint64_t entry = pop(c);
    uint32_t place = (uint32_t)entry;
    if (c->ranks[place] == entry >> 32) merge_at(c, place);
  }
  size_t n_left = 0;
  for (uint32_t place = 0; place != NO_PLACE; place = c->next[place])
    c->symbols[n_left++] = c->symbols[place];
  return n_left;
}

/* Cuts the scratch memory up: the heap first, for its alignment. */
static chain make_chain(const ml_merges *m, uint32_t *symbols, size_t n, void *memory) {
  uint64_t *heap = memory;
  uint32_t *places = (uint32_t *)(void *)(heap + 2 * n);
  return (chain){m, symbols, places, places + n, places + 2 * n, heap, 0};
}

ml_status ml_merges_apply(const ml_merges *m, uint32_t *symbols, size_t n, ml_buffer *scratch, size_t *n_out,
                          ml_error *error) {
  enum { BYTES_PER_SYMBOL = 2 * sizeof(uint64_t) + 3 * sizeof(uint32_t) };
  if (n <= SHORT_PIECE) {
    *n_out = merge_short(m, symbols, n);
    return ML_OK;
  }
  if (n >= NO_PLACE)
    return ml_fail(error, ML_E_NOMEM, "symbols in one piece", ml_uint(n), "must be fewer than",
                   ml_uint(NO_PLACE), ML_NO_OFFSET);
  ML_TRY(ml_buffer_reserve(scratch, ml_mul_sizes(n, BYTES_PER_SYMBOL), 0, "merging", error));
  chain c = make_chain(m, symbols, n, scratch->memory);
  *n_out = merge_long(&c, (uint32_t)n);
  return ML_OK;
}
