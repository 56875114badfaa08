/* fill.h - bytes of a file's array into its place in memory, in pieces of any size. */
#ifndef ML_MODEL_FILL_H
#define ML_MODEL_FILL_H

#include "format/array.h"
#include "kernels/matrix.h"

/* Bytes in memory when matrices have `layout`. */
uint64_t ml_fill_size(const ml_array *array, ml_layout layout);

/* Is the array in memory what it is in the file? Not so packed matrices, f16 scales (converted, and repeated for every 32
 * weights) and convolutions (transposed). */
bool ml_fill_as_stored(const ml_array *array, ml_layout layout);

/* Puts the array's bytes position ... position + size - 1 where they belong. Pieces come in order. */
void ml_fill_bytes(uint8_t *place, const ml_array *array, ml_layout layout, uint64_t position,
                   const uint8_t *bytes, size_t size);

/* To be called when all bytes are there: turns f16 scales into floats. */
void ml_fill_finish(uint8_t *place, const ml_array *array, ml_layout layout);

/* NaN and infinite values among the floats or halves of a finished array; 0 for quants. */
uint64_t ml_fill_count_non_finite(const uint8_t *place, const ml_array *array, ml_layout layout);

#endif
