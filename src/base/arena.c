#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

/* A block may be larger than half of a 32-bit address space, though no piece of it can be; with 64 bits malloc would
 * refuse it anyway. */
#define LARGEST ((sizeof(size_t) == 4 ? SIZE_MAX : SIZE_MAX / 2) - ML_ALIGNMENT)

static void *default_allocate(void *user, size_t size) {
  (void)user;
  return malloc(size);
}

static void default_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

ml_allocator ml_allocator_or_default(const ml_allocator *allocator) {
  if (allocator) return *allocator;
  return (ml_allocator){default_allocate, default_release, NULL};
}

ml_arena ml_arena_measure(void) {
  ml_arena arena;
  memset(&arena, 0, sizeof arena);
  return arena;
}

ml_status ml_arena_open(ml_arena *arena, const ml_allocator *allocator, uint64_t size, uint64_t limit,
                        const char *what, ml_error *error) {
  if (limit && size > limit)
    return ml_fail(error, ML_E_NOMEM, what, ml_uint(size), "bytes needed, the limit is", ml_uint(limit),
                   ML_NO_OFFSET);
  if (size > LARGEST)
    return ml_fail(error, ML_E_NOMEM, what, ml_uint(size), "bytes needed, this build can address",
                   ml_uint(LARGEST), ML_NO_OFFSET);
  ml_allocator memory = ml_allocator_or_default(allocator);
  void *block = memory.allocate(memory.user, (size_t)size + ML_ALIGNMENT);
  if (!block)
    return ml_fail(error, ML_E_NOMEM, what, ml_uint(size), "bytes needed, the allocator has", ml_text("none"),
                   ML_NO_OFFSET);
  memset(arena, 0, sizeof *arena);
  arena->allocator = memory;
  arena->block = block;
  uintptr_t address = (uintptr_t)block;
  arena->base = (uint8_t *)block + (ML_ALIGNMENT - address % ML_ALIGNMENT) % ML_ALIGNMENT;
  arena->size = size;
  return ML_OK;
}

void *ml_arena_take(ml_arena *arena, uint64_t count, uint64_t size) {
  uint64_t start = arena->taken;
  arena->taken = ml_add_sizes(start, ml_round_up(ml_mul_sizes(count, size), ML_ALIGNMENT));
  if (!arena->base) return NULL;
  assert(arena->taken <= arena->size);
  return (void *)((uintptr_t)arena->base +
                  (uintptr_t)start); /* pointers may only move by half the address space */
}

void ml_arena_close(ml_arena *arena) {
  if (arena->block) arena->allocator.release(arena->allocator.user, arena->block);
  memset(arena, 0, sizeof *arena);
}
