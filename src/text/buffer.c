#include "text/buffer.h"

#include "base/bytes.h"
#include "base/error.h"

ml_status ml_buffer_reserve(ml_buffer *buffer, uint64_t size, size_t keep, const char *what,
                            ml_error *error) {
  if (size <= buffer->capacity) return ML_OK;
  if (size > SIZE_MAX / 2)
    return ml_fail(error, ML_E_NOMEM, what, ml_uint(size), "bytes needed, this build can address",
                   ml_uint(SIZE_MAX / 2), ML_NO_OFFSET);
  /* Half as much again, so that growing step by step copies each byte about three times and no more. */
  uint64_t generous = ml_add_sizes(buffer->capacity, buffer->capacity / 2);
  size_t wanted = (size_t)(generous > size && generous <= SIZE_MAX / 2 ? generous : size);
  void *memory = buffer->allocator.allocate(buffer->allocator.user, wanted);
  if (!memory)
    return ml_fail(error, ML_E_NOMEM, what, ml_uint(wanted), "bytes needed, the allocator has",
                   ml_text("none"), ML_NO_OFFSET);
  if (keep) memcpy(memory, buffer->memory, keep);
  ml_buffer_free(buffer);
  buffer->memory = memory;
  buffer->capacity = wanted;
  return ML_OK;
}

void ml_buffer_free(ml_buffer *buffer) {
  if (buffer->memory) buffer->allocator.release(buffer->allocator.user, buffer->memory);
  buffer->memory = NULL;
  buffer->capacity = 0;
}
