/* fuzz_file.h - the input of the targets that read model files, and a mutator that knows the header.
 *
 *   input:   file bytes ... | chunk u16 | failing allocation u8 (0: none) | options u8
 *
 * Bytes changed blindly hardly ever make a file that loads: one field of the header decides the size of all that
 * follows. So most mutations change one field, mend what that breaks, and build the weights anew for the result. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include "../unit/test_allocator.h"
#include "../unit/tiny_file.h"
#include "fuzz.h"

enum { CONTROL_SIZE = 4 };

typedef struct control {
  size_t chunk;    /* bytes pushed at a time, at least 1 */
  uint8_t failing; /* allocation that fails, 0: none */
  uint8_t options; /* bits, for the target */
} control;

static inline control read_control(const uint8_t *bytes) {
  return (control){.chunk = 1u + ml_read_u16(bytes), .failing = bytes[2], .options = bytes[3]};
}

static inline ml_status push_all(ml_model **model, const uint8_t *bytes, size_t size, size_t chunk,
                                 const ml_load_options *options, ml_error *error) {
  ml_loader *loader = NULL;
  ml_status status = ml_loader_new(&loader, options, error);
  for (size_t at = 0; status == ML_OK && at < size; at += chunk)
    status = ml_loader_push(loader, bytes + at, size - at < chunk ? size - at : chunk, error);
  if (status == ML_OK) status = ml_loader_finish(loader, model, error);
  ml_loader_free(loader);
  return status;
}

/* ---------------------------------------------------------------- mutation */

enum { FIRST_FIELD = AT_DIM, N_FIELDS = (AT_RESERVED - AT_DIM) / 4 };

static inline void change_field(uint8_t *header, uint32_t *random) {
  static const uint32_t values[] = {
      0,          1,          2,          3,          4,          6,          8,          16,
      31,         32,         33,         48,         64,         255,        4096,       65535,
      65536,      0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0x40000000, 0x3dcccccd, /* 1, 2, 0.1 */
      0x461c4000, 0x00000001, 0x7f7fffff, 0x7f800000, 0x7fc00000, /* 10000, least, largest, infinity, NaN */
  };
  enum { N_VALUES = sizeof values / sizeof values[0] };
  uint8_t *field = header + FIRST_FIELD + 4 * (tiny_next(random) % N_FIELDS);
  uint32_t old = ml_read_u32(field), choice = tiny_next(random) % (N_VALUES + 6);
  const uint32_t changed[] = {old + 1, old - 1, old * 2, old / 2, old ^ 1u << tiny_next(random) % 32,
                              old + 32};
  ml_write_u32(field, choice < N_VALUES ? values[choice] : changed[choice - N_VALUES]);
}

/* Puts fields back to a plain model's until the header holds. The failure's offset says which. */
static inline bool mend_header(uint8_t *header) {
  uint8_t plain[ML_MLB_HEADER_SIZE];
  tiny_header(plain);
  ml_mlb_header checked;
  ml_error error;
  for (int round = 0; round < 60; round++) {
    if (ml_mlb_read_header(&checked, header, ML_MLB_HEADER_SIZE, &error) == ML_OK) return true;
    uint32_t at = (uint32_t)error.offset & ~3u;
    bool is_plain = memcmp(header + at, plain + at, 4) == 0;
    memcpy(header + at, plain + at, 4);
    if (!is_plain) continue;
    memcpy(header + AT_DIM, plain + AT_DIM, AT_VOCAB - AT_DIM); /* it is at odds with another dimension */
    memset(header + AT_ROT_DIM, 0, 4);
    memset(header + AT_HEAD_DIM, 0, 4);
    memset(header + AT_LIN_K_HEADS, 0, AT_RESERVED - AT_LIN_K_HEADS);
  }
  return false;
}

/* Draws flags that the header allows. */
static inline void draw_flags(const ml_mlb_header *header, uint8_t *flags, uint32_t *random) {
  static const uint8_t some[] = {0, ML_MLB_LAYER_WINDOW, ML_MLB_LAYER_NOPE,
                                 ML_MLB_LAYER_WINDOW | ML_MLB_LAYER_NOPE};
  for (uint32_t i = 0; i < header->n_layers; i++) {
    flags[i] = some[tiny_next(random) % 4];
    uint32_t other = tiny_next(random) % 4;
    if (other == 0 && header->lin_k_heads) flags[i] = ML_MLB_LAYER_LINEAR;
    if (other == 1 && header->rope_local_theta > 0) flags[i] = ML_MLB_LAYER_LOCAL_ROPE | (flags[i] & 1);
  }
}

/* A whole file in place of the input's, for the header that it has after mending; false if it would be too large. */
static inline bool rebuild_file(uint8_t *bytes, size_t *size, size_t max_size, uint32_t *random) {
  enum { MOST_LAYERS = 4 };
  if (ml_read_u32(bytes + AT_N_LAYERS) > MOST_LAYERS)
    ml_write_u32(bytes + AT_N_LAYERS, 1 + tiny_next(random) % 2);
  if (!mend_header(bytes)) return false;
  ml_mlb_header header;
  uint8_t flags[MOST_LAYERS];
  if (ml_mlb_read_header(&header, bytes, ML_MLB_HEADER_SIZE, NULL) != ML_OK) return false;
  if (header.layer_flags) draw_flags(&header, flags, random);
  if (ml_mlb_file_size(&header, flags) > max_size - ML_MLB_ALIGNMENT) return false;
  tiny_file file = tiny_build(bytes, flags);
  if (!file.bytes) return false;
  bool fits = file.size <= max_size;
  if (fits) memcpy(bytes, file.bytes, file.size);
  if (fits) *size = file.size;
  tiny_free(&file);
  return fits;
}

/* Header and control come first in importance, so most changes go there; the rest is libFuzzer's. */
static inline size_t mutate_file(uint8_t *bytes, size_t size, size_t max_size, unsigned seed) {
  uint32_t random = seed;
  uint32_t kind = tiny_next(&random) % 8;
  if (size < ML_MLB_HEADER_SIZE + CONTROL_SIZE || max_size < ML_MLB_HEADER_SIZE + CONTROL_SIZE || kind == 0)
    return LLVMFuzzerMutate(bytes, size, max_size);
  uint8_t last[CONTROL_SIZE];
  size_t file_size = size - CONTROL_SIZE;
  memcpy(last, bytes + file_size, CONTROL_SIZE);
  switch (kind) {
    case 1: LLVMFuzzerMutate(last, CONTROL_SIZE, CONTROL_SIZE); break;
    case 2: change_field(bytes, &random); break; /* and let it not fit */
    case 3: file_size = LLVMFuzzerMutate(bytes, file_size, max_size - CONTROL_SIZE); break;
    default:
      for (uint32_t n = 1 + tiny_next(&random) % 3; n; n--) change_field(bytes, &random);
      rebuild_file(bytes, &file_size, max_size - CONTROL_SIZE, &random);
      last[3] = (uint8_t)tiny_next(&random);
      break;
  }
  memcpy(bytes + file_size, last, CONTROL_SIZE);
  return file_size + CONTROL_SIZE;
}

#endif
