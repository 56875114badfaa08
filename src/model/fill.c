/* fill.c - every array is rows of elements that fill 4-byte slots in memory: 4 bytes of quants, or a float, or a half that
 * will become one. (The slots of matrices of halves have 2 bytes.) Layouts differ only in which slot an element gets:
 *
 *   as stored     slot = row * per_row + i
 *   packed        slot = (row / 16 * per_row + i) * 16 + row % 16        (kernels/matrix.h)
 *   transposed    slot = i * rows + row                                  (convolutions: taps outermost)
 *
 * A scale of a group larger than a block is given the slot of the group's first block; the others get copies of it when
 * the array is finished.
 */
#include "model/fill.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/half.h"

typedef struct slots {
  uint32_t unit;          /* bytes of an element in the file: 4, or 2 for halves */
  uint32_t size;          /* bytes of a slot */
  uint64_t per_row;       /* elements of a row */
  uint64_t slots_per_row; /* as many, or more for scales of groups */
  uint64_t step;          /* slots from one element of a row to the next */
  ml_layout layout;
  bool transposed;
} slots;

static bool is_matrix(const ml_array *array) {
  return array->element != ML_ELEMENT_F32 && array->element != ML_ELEMENT_U8;
}

static slots slots_of(const ml_array *array, ml_layout layout) {
  slots s = {4, 4, 0, 0, 1, is_matrix(array) ? layout : ML_LAYOUT_ROWS, array->tensor == ML_TENSOR_LCONV};
  uint64_t blocks_per_scale = array->group ? array->group / ML_BLOCK : 1;
  switch (array->element) {
    case ML_ELEMENT_Q8: s.per_row = array->cols / 4; break;
    case ML_ELEMENT_Q4: s.per_row = array->cols / 8; break;
    case ML_ELEMENT_INT2: s.per_row = array->cols / 16; break;
    case ML_ELEMENT_D_F16:
      s.unit = 2;
      s.per_row = array->cols / array->group;
      break;
    case ML_ELEMENT_D_F32: s.per_row = array->cols / array->group; break;
    case ML_ELEMENT_F16:
      s.unit = s.size = 2;
      s.per_row = array->cols;
      break;
    default: s.per_row = array->cols; break;
  }
  s.slots_per_row = s.per_row * blocks_per_scale;
  s.step = blocks_per_scale;
  if (s.layout == ML_LAYOUT_PACKED) s.step *= ML_PACK_ROWS;
  if (s.transposed) s.step = array->rows;
  return s;
}

static uint64_t first_slot(const slots *s, uint64_t row) {
  if (s->transposed) return row;
  if (s->layout == ML_LAYOUT_ROWS) return row * s->slots_per_row;
  return row / ML_PACK_ROWS * s->slots_per_row * ML_PACK_ROWS + row % ML_PACK_ROWS;
}

static uint64_t memory_rows(const ml_array *array, ml_layout layout) {
  return is_matrix(array) ? ml_layout_rows(layout, (uint32_t)array->rows) : array->rows;
}

uint64_t ml_fill_size(const ml_array *array, ml_layout layout) {
  slots s = slots_of(array, layout);
  return ml_mul_sizes(ml_mul_sizes(memory_rows(array, layout), s.slots_per_row), s.size);
}

bool ml_fill_as_stored(const ml_array *array, ml_layout layout) {
  slots s = slots_of(array, layout);
  return s.unit == s.size && s.step == 1;
}

/* Rows that only fill up the last group of a packed matrix weigh nothing. */
static void clear_last_group(uint8_t *place, const ml_array *array, ml_layout layout) {
  slots s = slots_of(array, layout);
  uint64_t rows = memory_rows(array, layout);
  if (rows == array->rows) return;
  uint64_t group = s.slots_per_row * ML_PACK_ROWS * s.size, size = rows * s.slots_per_row * s.size;
  memset(place + (size - group), 0, (size_t)group);
}

/* Inlined with a constant `unit`, or copies of unknown size are calls: the compiler has to be told, since inlining takes
 * some bytes more. */
__attribute__((always_inline)) static inline void scatter(uint8_t *slot, size_t step, const uint8_t *bytes,
                                                          size_t n, const size_t unit) {
  for (size_t i = 0; i < n; i++) memcpy(slot + i * step, bytes + i * unit, unit);
}

/* As much of one row as the piece holds: whole elements at once, the rest byte by byte, since a piece may begin
 * and end inside an element. Returns the bytes taken. */
static size_t fill_row(uint8_t *place, const slots *s, uint64_t position, const uint8_t *bytes, size_t size) {
  uint64_t element = position / s->unit;
  uint64_t row = element / s->per_row, i = element % s->per_row;
  uint64_t left = (s->per_row - i) * s->unit - position % s->unit;
  if (left < size) size = (size_t)left;
  uint8_t *slot = place + (first_slot(s, row) + i * s->step) * s->size;
  size_t step = (size_t)s->step * s->size, done = 0;
  for (uint32_t in = (uint32_t)(position % s->unit); in && done < size; in = (in + 1) % s->unit) {
    slot[in] = bytes[done++];
    if (in + 1 == s->unit) slot += step;
  }
  size_t n = (size - done) / s->unit;
  if (s->unit == 4)
    scatter(slot, step, bytes + done, n, 4);
  else
    scatter(slot, step, bytes + done, n, 2);
  slot += n * step;
  done += n * s->unit;
  for (uint32_t in = 0; done < size; in++) slot[in] = bytes[done++];
  return size;
}

typedef uint32_t words __attribute__((vector_size(16)));

static inline words load_words(const uint8_t *bytes) {
  words w;
  memcpy(&w, bytes, sizeof w);
  return w;
}

static inline void store_words(uint8_t *slot, words w) { memcpy(slot, &w, sizeof w); }

/* Four whole rows that are side by side in a packed group, four elements of each at a time:
 *
 *   a0 a1 a2 a3            slot      a0 b0 c0 d0
 *   b0 b1 b2 b3            slot + 16 a1 b1 c1 d1
 *   c0 c1 c2 c3     -->    slot + 32 a2 b2 c2 d2
 *   d0 d1 d2 d3            slot + 48 a3 b3 c3 d3                                                                    */
static void fill_four_rows(uint8_t *slot, const uint8_t *rows, size_t per_row) {
  enum { STEP = 4 * ML_PACK_ROWS };
  size_t stride = 4 * per_row;
  for (const uint8_t *end = rows + stride; rows < end; rows += 16) {
    words a = load_words(rows), b = load_words(rows + stride);
    words c = load_words(rows + 2 * stride), d = load_words(rows + 3 * stride);
    words ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5),
          ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    words bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5),
          bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    store_words(slot, __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5));
    store_words(slot + STEP, __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7));
    store_words(slot + 2 * STEP, __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5));
    store_words(slot + 3 * STEP, __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7));
    slot += 4 * STEP;
  }
}

/* Rows at once, if these bytes begin with some that can be. Returns the bytes taken. */
static size_t fill_rows(uint8_t *place, const slots *s, uint64_t position, const uint8_t *bytes,
                        size_t size) {
  uint64_t row_bytes = s->per_row * s->unit, row = position / row_bytes;
  if (s->unit != 4 || s->step != ML_PACK_ROWS || s->per_row % 4 || row % 4 || position % row_bytes ||
      size / 4 < row_bytes)
    return fill_row(place, s, position, bytes, size);
  fill_four_rows(place + 4 * first_slot(s, row), bytes, (size_t)s->per_row);
  return (size_t)(4 * row_bytes);
}

void ml_fill_bytes(uint8_t *place, const ml_array *array, ml_layout layout, uint64_t position,
                   const uint8_t *bytes, size_t size) {
  if (position == 0) clear_last_group(place, array, layout);
  if (ml_fill_as_stored(array, layout)) {
    memcpy(place + position, bytes, size);
    return;
  }
  slots s = slots_of(array, layout);
  for (size_t done = 0; done < size;)
    done += fill_rows(place, &s, position + done, bytes + done, size - done);
}

void ml_fill_finish(uint8_t *place, const ml_array *array, ml_layout layout) {
  if (array->element != ML_ELEMENT_D_F16) return;
  size_t n = (size_t)(ml_fill_size(array, layout) / 4), n_blocks = (size_t)(array->cols / ML_BLOCK);
  size_t side_by_side = layout == ML_LAYOUT_PACKED ? ML_PACK_ROWS : 1; /* the same block of these rows */
  size_t blocks_per_scale = array->group / ML_BLOCK;
  for (size_t i = 0; i < n; i++) {
    if (blocks_per_scale > 1 && i / side_by_side % n_blocks % blocks_per_scale) {
      memcpy(place + 4 * i, place + 4 * (i - side_by_side), 4);
      continue;
    }
    float value = ml_half_to_float(ml_read_u16(place + 4 * i));
    memcpy(place + 4 * i, &value, sizeof value);
  }
}

uint64_t ml_fill_count_non_finite(const uint8_t *place, const ml_array *array, ml_layout layout) {
  if (ml_is_quants(array->element)) return 0;
  const float *values = (const float *)(const void *)place;
  size_t n = (size_t)(ml_fill_size(array, layout) / 4);
  uint64_t count = 0;
  if (array->element == ML_ELEMENT_F16) {
    for (size_t i = 0; i < 2 * n; i++)
      if ((~ml_read_u16(place + 2 * i) & 0x7c00) == 0) count++; /* an exponent of all ones */
    return count;
  }
  for (size_t i = 0; i < n; i++)
    if (!(fabsf(values[i]) < HUGE_VALF)) count++;
  return count;
}
