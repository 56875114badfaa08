/* tiny_file.h - valid .mlb files of a few kilobytes, made in memory, and the field offsets that tests write at.
 *
 *   uint8_t header[256];
 *   tiny_header(header);                        // plain, Q8_0, two layers; change it as you like
 *   tiny_put(header, AT_WTYPE, 2);
 *   tiny_file file = tiny_build(header, NULL);  // NULL if the header is refused
 *   ...
 *   tiny_free(&file);
 *
 * The places of the arrays come from the walk in src/format, which test_mlb_walk.c checks against sums by hand. */
#ifndef TINY_FILE_H
#define TINY_FILE_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/mlb.h"

/* Offsets, copied from the format document and not from the code under test. */
enum {
  AT_MAGIC = 0,
  AT_VERSION = 4,
  AT_DIM = 8,
  AT_N_LAYERS = 12,
  AT_N_HEADS = 16,
  AT_N_KV_HEADS = 20,
  AT_HIDDEN_DIM = 24,
  AT_VOCAB = 28,
  AT_MAX_SEQ = 32,
  AT_ROPE_THETA = 36,
  AT_NORM_EPS = 40,
  AT_WTYPE = 44,
  AT_SHARED_CLASSIFIER = 48,
  AT_ROPE_TYPE = 52,
  AT_ROPE_FACTOR = 56,
  AT_ROPE_LOW_FREQ_FACTOR = 60,
  AT_ROPE_HIGH_FREQ_FACTOR = 64,
  AT_ROPE_ORIG_MAX_SEQ = 68,
  AT_Q8_MASK = 72,
  AT_QKV_BIAS = 76,
  AT_HEAD_DIM = 80,
  AT_QK_NORM = 84,
  AT_ROPE_ATTN_FACTOR = 88,
  AT_SLIDING_WINDOW = 92,
  AT_LAYER_FLAGS = 96,
  AT_ROPE_LOCAL_THETA = 100,
  AT_ACT = 104,
  AT_POST_NORMS = 108,
  AT_EMBED_SCALE = 112,
  AT_ATTN_SCALE = 116,
  AT_SCALE_F16 = 120,
  AT_ATTN_SOFTCAP = 124,
  AT_FINAL_SOFTCAP = 128,
  AT_ROT_DIM = 132,
  AT_ATTN_GATE = 136,
  AT_LIN_K_HEADS = 140,
  AT_LIN_V_HEADS = 144,
  AT_LIN_K_DIM = 148,
  AT_LIN_V_DIM = 152,
  AT_LIN_CONV = 156,
  AT_RESERVED = 160,
  AT_FLAGS = 256
};

static inline void tiny_put(uint8_t *header, uint32_t at, uint32_t value) {
  ml_write_u32(header + at, value);
}

static inline void tiny_put_f32(uint8_t *header, uint32_t at, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  ml_write_u32(header + at, bits);
}

/* The smallest plain model that still has two layers and two query heads to one key head. */
static inline void tiny_header(uint8_t *header) {
  memset(header, 0, ML_MLB_HEADER_SIZE);
  memcpy(header, "MLB1", 4);
  tiny_put(header, AT_VERSION, 1);
  tiny_put(header, AT_DIM, 32);
  tiny_put(header, AT_N_LAYERS, 2);
  tiny_put(header, AT_N_HEADS, 2);
  tiny_put(header, AT_N_KV_HEADS, 1);
  tiny_put(header, AT_HIDDEN_DIM, 64);
  tiny_put(header, AT_VOCAB, 5);
  tiny_put(header, AT_MAX_SEQ, 16);
  tiny_put_f32(header, AT_ROPE_THETA, 10000.0f);
  tiny_put_f32(header, AT_NORM_EPS, 1e-5f);
  tiny_put(header, AT_WTYPE, ML_MLB_Q8_0);
}

static inline void tiny_llama3(uint8_t *header) {
  tiny_put(header, AT_ROPE_TYPE, ML_MLB_ROPE_LLAMA3);
  tiny_put_f32(header, AT_ROPE_FACTOR, 8.0f);
  tiny_put_f32(header, AT_ROPE_LOW_FREQ_FACTOR, 1.0f);
  tiny_put_f32(header, AT_ROPE_HIGH_FREQ_FACTOR, 4.0f);
  tiny_put(header, AT_ROPE_ORIG_MAX_SEQ, 8);
}

static inline void tiny_yarn(uint8_t *header) {
  tiny_put(header, AT_ROPE_TYPE, ML_MLB_ROPE_YARN);
  tiny_put_f32(header, AT_ROPE_FACTOR, 4.0f);
  tiny_put_f32(header, AT_ROPE_LOW_FREQ_FACTOR, 32.0f);
  tiny_put_f32(header, AT_ROPE_HIGH_FREQ_FACTOR, 1.0f);
  tiny_put(header, AT_ROPE_ORIG_MAX_SEQ, 8);
  tiny_put_f32(header, AT_ROPE_ATTN_FACTOR, 1.125f);
}

/* Dimensions for layers that are flagged ML_MLB_LAYER_LINEAR: 96 channels, 64 values, no divisor of q_dim 32. */
static inline void tiny_linear(uint8_t *header) {
  tiny_put(header, AT_LIN_K_HEADS, 2);
  tiny_put(header, AT_LIN_V_HEADS, 4);
  tiny_put(header, AT_LIN_K_DIM, 8);
  tiny_put(header, AT_LIN_V_DIM, 16);
  tiny_put(header, AT_LIN_CONV, 4);
}

/* Every optional part at once, on four layers; `flags` gets their bytes. */
static inline void tiny_everything(uint8_t *header, uint8_t *flags) {
  tiny_header(header);
  tiny_linear(header);
  tiny_put(header, AT_N_LAYERS, 4);
  tiny_put(header, AT_WTYPE, ML_MLB_Q4_0);
  tiny_put(header, AT_Q8_MASK, 1 | 8 | 64);
  tiny_yarn(header);
  tiny_put(header, AT_QKV_BIAS, 1);
  tiny_put(header, AT_HEAD_DIM, 32);
  tiny_put(header, AT_QK_NORM, 1);
  tiny_put(header, AT_SLIDING_WINDOW, 3);
  tiny_put(header, AT_LAYER_FLAGS, 1);
  tiny_put_f32(header, AT_ROPE_LOCAL_THETA, 100.0f);
  tiny_put(header, AT_ACT, ML_MLB_ACT_GELU);
  tiny_put(header, AT_POST_NORMS, 1);
  tiny_put_f32(header, AT_EMBED_SCALE, 4.0f);
  tiny_put_f32(header, AT_ATTN_SCALE, 0.25f);
  tiny_put(header, AT_SCALE_F16, 1);
  tiny_put_f32(header, AT_ATTN_SOFTCAP, 20.0f);
  tiny_put_f32(header, AT_FINAL_SOFTCAP, 30.0f);
  tiny_put(header, AT_ROT_DIM, 8);
  tiny_put(header, AT_ATTN_GATE, 1);
  memcpy(
      flags,
      (uint8_t[]){ML_MLB_LAYER_WINDOW | ML_MLB_LAYER_LOCAL_ROPE, ML_MLB_LAYER_LINEAR, ML_MLB_LAYER_NOPE, 0},
      4);
}

typedef struct tiny_file {
  uint8_t *bytes; /* ML_MLB_ALIGNMENT-aligned; with the padding after the last array */
  size_t size;
  void *block; /* as allocated */
} tiny_file;

static inline void tiny_free(tiny_file *file) {
  free(file->block);
  memset(file, 0, sizeof *file);
}

/* A chain of integers that mixes well enough for weights. */
static inline uint32_t tiny_next(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static inline void tiny_fill_array(uint8_t *out, const ml_array *array, uint32_t *state) {
  for (uint64_t i = 0; i < array->size; i++) {
    uint32_t random = tiny_next(state);
    switch (array->element) {
      case ML_ELEMENT_U8: break; /* flags: already there */
      case ML_ELEMENT_Q8: out[i] = (uint8_t)(int8_t)((int32_t)(random % 255) - 127); break;
      case ML_ELEMENT_Q4: out[i] = (uint8_t)random; break;
      case ML_ELEMENT_F32:
        if (i % 4 == 0) tiny_put_f32(out, (uint32_t)i, 0.5f + (float)(random % 1024) / 1024.0f);
        break;
      case ML_ELEMENT_D_F32:
        if (i % 4 == 0) tiny_put_f32(out, (uint32_t)i, (float)(1 + random % 64) / 4096.0f);
        break;
      case ML_ELEMENT_D_F16: /* 2^-7 to 2^-5 */
        if (i % 2 == 1) out[i] = (uint8_t)(0x20 + random % 8);
        break;
      case ML_ELEMENT_INT2:
      case ML_ELEMENT_F16: break; /* not in this format */
    }
  }
}

/* A whole file for a header and its flags (NULL without layer flags), the weights always the same. Its
 * `bytes` are NULL when the header is refused or there is no memory. */
static inline tiny_file tiny_build(const uint8_t *header_bytes, const uint8_t *flags) {
  tiny_file file = {NULL, 0, NULL};
  ml_mlb_header header;
  if (ml_mlb_read_header(&header, header_bytes, ML_MLB_HEADER_SIZE, NULL) != ML_OK) return file;
  if (header.layer_flags && ml_mlb_check_flags(&header, flags, NULL) != ML_OK) return file;
  uint64_t size = ml_round_up(ml_mlb_file_size(&header, flags), ML_MLB_ALIGNMENT);
  if (size > 64 << 20) return file;
  file.block = calloc(1, (size_t)size + ML_MLB_ALIGNMENT);
  if (!file.block) return file;
  file.size = (size_t)size;
  uintptr_t misaligned = (uintptr_t)file.block % ML_MLB_ALIGNMENT;
  file.bytes = (uint8_t *)file.block + (misaligned ? ML_MLB_ALIGNMENT - misaligned : 0);

  memcpy(file.bytes, header_bytes, ML_MLB_HEADER_SIZE);
  if (header.layer_flags && flags) memcpy(file.bytes + AT_FLAGS, flags, header.n_layers);
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, flags);
  ml_array array;
  uint32_t state = 1;
  while (ml_mlb_walk_next(&walk, &array)) tiny_fill_array(file.bytes + array.offset, &array, &state);
  return file;
}

#endif
