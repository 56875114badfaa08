/* merges.h - the merge rules, and byte pair encoding with them.
 *
 * Rules are kept by their left token, in a row sorted by the right one, as a sparse matrix is:
 *
 *   row    | left 0 | left 1 | left 2 | ...        row[left] up to row[left + 1] are a left token's rules
 *   right  | 7 19 40 | 3 | ... |                   right tokens, rising within a row
 *   rank   | 12 0 99 | 5 | ... |                   ranks of these rules
 *   merged | by rank                               what the rule of a rank makes
 *
 * Unlike a hash table this can be built and searched in bounded time whatever the file holds, and the row of a common
 * token stays in the cache. */
#ifndef ML_TEXT_MERGES_H
#define ML_TEXT_MERGES_H

#include "base/arena.h"
#include "format/mlt.h"
#include "text/buffer.h"

#define ML_NO_MERGE UINT32_MAX

typedef struct ml_merges {
  uint32_t n_merges;
  uint32_t *row;                   /* n_vocab + 1 */
  uint32_t *right, *rank, *merged; /* n_merges */
} ml_merges;

/* Takes the arrays from an arena and, where it is a real one, fills them in. */
void ml_merges_place(ml_merges *merges, const ml_mlt *mlt, ml_arena *arena);

/* The rank of the rule for two tokens (of several the lowest), or ML_NO_MERGE. */
uint32_t ml_merges_find(const ml_merges *merges, uint32_t left, uint32_t right);

/* Merges a piece in place: while a rule applies, the one of lowest rank does, leftmost first. `symbols` are n token
 * ids and then *n_out of them. Takes O(n log n) time and 28 bytes of `scratch` for each symbol of a long piece. */
ml_status ml_merges_apply(const ml_merges *merges, uint32_t *symbols, size_t n, ml_buffer *scratch,
                          size_t *n_out, ml_error *error);

#endif
