/* test_allocator.h - an ml_allocator that counts, fails when told to, and gives memory full of rubbish. */
#ifndef TEST_ALLOCATOR_H
#define TEST_ALLOCATOR_H

#include <stdlib.h>
#include <string.h>

#include "ml.h"

typedef struct test_memory {
  uint64_t calls;   /* allocations asked for */
  uint64_t fail_at; /* the call that fails, counted from 1; 0: none */
  uint64_t limit;   /* a call that would bring `bytes` above it fails; 0: none */
  uint64_t live;    /* blocks not yet released */
  uint64_t bytes;   /* in them */
  uint64_t peak;    /* highest `bytes` */
} test_memory;

/* Each block begins with its size, and keeps malloc's alignment behind it. */
enum { TEST_MEMORY_PREFIX = 32 };

static inline void *test_allocate(void *user, size_t size) {
  test_memory *memory = user;
  memory->calls++;
  if (memory->calls == memory->fail_at) return NULL;
  if (memory->limit && size > memory->limit - memory->bytes) return NULL;
  uint8_t *block = size > SIZE_MAX - TEST_MEMORY_PREFIX ? NULL : malloc(TEST_MEMORY_PREFIX + size);
  if (!block) return NULL;
  memcpy(block, &size, sizeof size);
  /* Not zero, not a pointer, a NaN as float. Large blocks only at their ends: filling them would be most of a test. */
  size_t filled = size < 1 << 16 ? size : 1 << 12;
  memset(block + TEST_MEMORY_PREFIX, 0xff, filled);
  memset(block + TEST_MEMORY_PREFIX + size - filled, 0xff, filled);
  memory->live++;
  memory->bytes += size;
  if (memory->bytes > memory->peak) memory->peak = memory->bytes;
  return block + TEST_MEMORY_PREFIX;
}

static inline void test_release(void *user, void *pointer) {
  test_memory *memory = user;
  uint8_t *block = (uint8_t *)pointer - TEST_MEMORY_PREFIX;
  size_t size;
  memcpy(&size, block, sizeof size);
  memory->live--;
  memory->bytes -= size;
  free(block);
}

static inline ml_allocator test_allocator(test_memory *memory) {
  return (ml_allocator){test_allocate, test_release, memory};
}

#endif
