/* buffer.h - memory for work of which the size is only known on the way. Grows, never shrinks. */
#ifndef ML_TEXT_BUFFER_H
#define ML_TEXT_BUFFER_H

#include "ml.h"

typedef struct ml_buffer {
  ml_allocator allocator;
  void *memory; /* NULL while the capacity is 0 */
  size_t capacity;
} ml_buffer;

static inline ml_buffer ml_buffer_new(const ml_allocator *allocator) {
  ml_buffer buffer = {*allocator, NULL, 0};
  return buffer;
}

/* Room for at least `size` bytes; the first `keep` of what was there stay. On ML_E_NOMEM, which names `what`, the
 * buffer is as before. */
ml_status ml_buffer_reserve(ml_buffer *buffer, uint64_t size, size_t keep, const char *what, ml_error *error);

void ml_buffer_free(ml_buffer *buffer);

#endif
