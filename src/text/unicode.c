/* unicode.c - unpacks the generated tables; tools/make_unicode_tables.py explains the packing. */
#include "text/unicode.h"

#include <assert.h>
#include <string.h>

#include "text/unicode_tables.h"

/* ---------------------------------------------------------------- values */

typedef struct run {
  uint8_t value;
  uint32_t length;
} run;

static const uint8_t *next_run(const uint8_t *at, run *out) {
  uint32_t head = *at++;
  out->length = (head & 63) + 1;
  if ((head & 63) >= 60) {
    out->length = 0;
    uint32_t n_bytes = (head & 63) - 59;
    for (uint32_t i = 0; i < n_bytes; i++) out->length |= (uint32_t)*at++ << (8 * i);
  }
  out->value = (uint8_t)(head >> 6);
  if (out->value == 3) out->value = *at++;
  return at;
}

static void unpack_values(ml_unicode *unicode) {
  const uint8_t *at = packed_runs;
  uint16_t uniform[256] = {0}; /* value -> 1 + the block that is all of it, which is kept once; 0: none yet */
  uint32_t n_blocks = 0;
  run current = {0, 0};
  for (uint32_t i = 0; i < ML_UNICODE_N_BLOCKS; i++) {
    if (current.length == 0) at = next_run(at, &current);
    bool is_uniform = current.length >= ML_UNICODE_BLOCK;
    if (is_uniform && uniform[current.value]) {
      unicode->block_of[i] = (uint8_t)(uniform[current.value] - 1);
      current.length -= ML_UNICODE_BLOCK;
      continue;
    }
    assert(n_blocks < N_BLOCKS);
    if (is_uniform) uniform[current.value] = (uint16_t)(n_blocks + 1);
    uint8_t *values = unicode->blocks[n_blocks];
    unicode->block_of[i] = (uint8_t)n_blocks++;
    for (uint32_t filled = 0, n; filled < ML_UNICODE_BLOCK; filled += n) {
      if (current.length == 0) at = next_run(at, &current);
      uint32_t room = ML_UNICODE_BLOCK - filled;
      n = current.length < room ? current.length : room;
      memset(values + filled, current.value, n);
      current.length -= n;
    }
  }
  assert(n_blocks == N_BLOCKS && at == packed_runs + sizeof packed_runs && current.length == 0);
}

/* ---------------------------------------------------------------- decompositions */

static uint32_t next_number(const uint8_t **at) {
  uint32_t number = 0;
  for (uint32_t shift = 0;; shift += 7) {
    uint32_t byte = *(*at)++;
    number |= (byte & 127) << shift;
    if (byte < 128) return number;
  }
}

static uint32_t slot_of(uint32_t first, uint32_t second) {
  return (first * 0x9e3779b1u + second * 0x85ebca6bu) >> 21; /* 11 bits: ML_COMPOSITION_SLOTS */
}

static void add_composition(ml_unicode *unicode, uint32_t index) {
  const ml_decomposition *pair = &unicode->decompositions[index];
  uint32_t slot = slot_of(pair->first, pair->second);
  while (unicode->composition_slots[slot]) slot = (slot + 1) % ML_COMPOSITION_SLOTS;
  unicode->composition_slots[slot] = (uint16_t)(index + 1);
}

static void unpack_decompositions(ml_unicode *unicode) {
  uint32_t seconds[N_SECONDS]; /* twice each second half, odd if the pair never composes */
  const uint8_t *at = packed_seconds;
  for (uint32_t i = 0, last = 0; i < N_SECONDS; i++) seconds[i] = last += next_number(&at);
  assert(at == packed_seconds + sizeof packed_seconds);

  const uint8_t *gap = packed_gaps, *first_step = packed_first_steps;
  uint32_t composite = 0, first = 0;
  memset(unicode->composition_slots, 0, sizeof unicode->composition_slots);
  for (uint32_t i = 0; i < N_DECOMPOSITIONS; i++) {
    uint32_t second = seconds[second_indices[i]], step = next_number(&first_step);
    composite += next_number(&gap);
    first += step & 1 ? 0 - (step + 1) / 2 : step / 2;
    unicode->decompositions[i] = (ml_decomposition){composite, first, second / 2};
    if (!(second & 1)) add_composition(unicode, i);
  }
  assert(gap == packed_gaps + sizeof packed_gaps);
  assert(first_step == packed_first_steps + sizeof packed_first_steps);
}

/* ---------------------------------------------------------------- use */

ml_unicode *ml_unicode_place(ml_arena *arena) {
  ml_unicode *unicode = ml_arena_take(arena, 1, sizeof *unicode);
  void *blocks = ml_arena_take(arena, N_BLOCKS, ML_UNICODE_BLOCK);
  ml_decomposition *decompositions = ml_arena_take(arena, N_DECOMPOSITIONS, sizeof *decompositions);
  if (!unicode) return NULL;
  unicode->blocks = blocks;
  unicode->decompositions = decompositions;
  unpack_values(unicode);
  unpack_decompositions(unicode);
  return unicode;
}

const ml_decomposition *ml_unicode_decompose(const ml_unicode *unicode, uint32_t composite) {
  uint32_t low = 0, high = N_DECOMPOSITIONS;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (unicode->decompositions[middle].composite < composite)
      low = middle + 1;
    else
      high = middle;
  }
  const ml_decomposition *found = &unicode->decompositions[low];
  return low < N_DECOMPOSITIONS && found->composite == composite ? found : NULL;
}

uint32_t ml_unicode_compose(const ml_unicode *unicode, uint32_t first, uint32_t second) {
  static_assert(N_COMPOSITIONS < ML_COMPOSITION_SLOTS / 2, "free slots end every search early");
  for (uint32_t slot = slot_of(first, second);; slot = (slot + 1) % ML_COMPOSITION_SLOTS) {
    uint32_t index = unicode->composition_slots[slot];
    if (index == 0) return 0;
    const ml_decomposition *pair = &unicode->decompositions[index - 1];
    if (pair->first == first && pair->second == second) return pair->composite;
  }
}
