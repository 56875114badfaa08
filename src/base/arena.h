/* arena.h - one block of memory for everything that lives as long as its owner.
 *
 * The owner writes one function that takes its pieces from an arena, and runs it twice: first on a
 * measuring arena (no memory, `take` returns NULL and counts), then on one of the size just measured.
 * So the size and the places cannot disagree. */
#ifndef ML_BASE_ARENA_H
#define ML_BASE_ARENA_H

#include "ml.h"

#define ML_ALIGNMENT 64 /* of every piece: a cache line, and the format's array alignment */

typedef struct ml_arena {
  ml_allocator allocator;
  void *block;    /* as allocated; NULL while measuring */
  uint8_t *base;  /* block rounded up to ML_ALIGNMENT */
  uint64_t size;  /* bytes at base */
  uint64_t taken; /* sticks at UINT64_MAX when the sum is too large */
} ml_arena;

/* The caller's allocator, or malloc and free for NULL. */
ml_allocator ml_allocator_or_default(const ml_allocator *allocator);

/* An arena that only counts. */
ml_arena ml_arena_measure(void);

/* Real memory, not zeroed. ML_E_NOMEM (naming `what` and the bytes) when `size` exceeds the address space,
 * `limit` (0: none), or what the allocator gives. */
ml_status ml_arena_open(ml_arena *arena, const ml_allocator *allocator, uint64_t size, uint64_t limit,
                        const char *what, ml_error *error);

/* `count` elements of `size` bytes, ML_ALIGNMENT-aligned; NULL while measuring. */
void *ml_arena_take(ml_arena *arena, uint64_t count, uint64_t size);

void ml_arena_close(ml_arena *arena); /* a zeroed arena is allowed */

#endif
