/* Arrays of a file into packed places: every word where kernels/matrix.h says that it is, whatever the pieces are in which
 * the bytes come, and nothing behind the end. */
#include <stdlib.h>
#include <string.h>

#include "model/fill.h"
#include "test.h"

enum { MAX_ROWS = 37, MAX_BLOCKS = 9, CANARY = 64 };

typedef struct packing {
  ml_array array;
  size_t n_words, n_blocks; /* of a block and of a row; scales are blocks of one word */
  uint8_t *file, *place;
  size_t place_size;
} packing;

static packing new_packing(ml_element element, uint64_t rows, uint64_t n_blocks) {
  packing p = {
      .array = {.tensor = ML_TENSOR_WQ, .element = element, .rows = rows, .cols = n_blocks * ML_BLOCK}};
  p.n_blocks = (size_t)n_blocks;
  p.n_words = element == ML_ELEMENT_Q8     ? 8
              : element == ML_ELEMENT_Q4   ? 4
              : element == ML_ELEMENT_INT2 ? 2
                                           : 1;
  if (element == ML_ELEMENT_D_F32) p.array.group = ML_BLOCK;
  p.array.size = rows * n_blocks * p.n_words * 4;
  p.file = malloc((size_t)p.array.size);
  p.place_size = (size_t)ml_fill_size(&p.array, ML_LAYOUT_PACKED);
  p.place = malloc(p.place_size + CANARY);
  if (p.file) test_random_bytes(p.file, (size_t)p.array.size);
  if (p.place) memset(p.place, 0xa5, p.place_size + CANARY);
  return p;
}

static void free_packing(packing *p) {
  free(p->file);
  free(p->place);
}

/* Pieces of up to `most` bytes, each in memory of exactly its size, so that sanitizers see what is read behind it. */
static void fill_in_pieces(const packing *p, uint32_t most) {
  size_t size = (size_t)p->array.size;
  for (size_t at = 0; at < size;) {
    size_t n = 1 + test_random_below(most);
    if (n > size - at) n = size - at;
    uint8_t *piece = malloc(n);
    if (!CHECK(piece != NULL)) return;
    memcpy(piece, p->file + at, n);
    ml_fill_bytes(p->place, &p->array, ML_LAYOUT_PACKED, at, piece, n);
    free(piece);
    at += n;
  }
}

static void check_places(const packing *p) {
  size_t rows = (size_t)p->array.rows, wrong = 0;
  const uint8_t *word = p->file;
  for (size_t row = 0; row < rows; row++)
    for (size_t block = 0; block < p->n_blocks; block++)
      for (size_t i = 0; i < p->n_words; i++, word += 4) {
        size_t offset = ml_word_offset(ML_LAYOUT_PACKED, p->n_words, p->n_blocks, row, block, i);
        if (memcmp(p->place + offset, word, 4) != 0) wrong++;
      }
  CHECK_EQ_U64(wrong, 0);
  for (size_t row = rows; row % ML_PACK_ROWS; row++) /* rows that only fill up the last group */
    for (size_t block = 0; block < p->n_blocks; block++)
      for (size_t i = 0; i < p->n_words; i++)
        if (memcmp(p->place + ml_word_offset(ML_LAYOUT_PACKED, p->n_words, p->n_blocks, row, block, i),
                   "\0\0\0", 4) != 0)
          wrong++;
  for (size_t i = 0; i < CANARY; i++)
    if (p->place[p->place_size + i] != 0xa5) wrong++;
  CHECK_EQ_U64(wrong, 0);
}

TEST(fill_packs_in_pieces_of_any_size) {
  static const ml_element elements[] = {ML_ELEMENT_Q8, ML_ELEMENT_Q4, ML_ELEMENT_INT2, ML_ELEMENT_D_F32};
  static const uint64_t rows[] = {1, 3, 4, 5, 15, 16, 17, 20, MAX_ROWS};
  static const uint32_t most[] = {3, 100, 1000, 1 << 20};
  for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
      for (uint64_t n_blocks = 1; n_blocks <= MAX_BLOCKS; n_blocks++)
        for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
          packing p = new_packing(elements[e], rows[r], n_blocks);
          if (CHECK(p.file != NULL) && CHECK(p.place != NULL)) {
            fill_in_pieces(&p, most[m]);
            check_places(&p);
          }
          free_packing(&p);
        }
}
