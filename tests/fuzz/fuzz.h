/* fuzz.h - what the fuzz targets share. A target is one file, fuzz_<subject>.c: it states the property that it tests
 * and breaks off with MUST when the property does not hold; the sanitizers find the rest. Any target also runs without
 * a fuzzing engine, linked with replay.c. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ml.h"

/* libFuzzer's interface; replay.c offers the same. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed);

#define MUST(condition)                                                              \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      __builtin_trap();                                                              \
    }                                                                                \
  } while (0)

/* A failure says what is wrong, in one line. */
static inline void must_be_explained(ml_status status, const ml_error *error) {
  if (status == ML_OK) return;
  MUST(error->status == status);
  size_t length = 0;
  while (length < sizeof error->message && error->message[length]) {
    MUST((uint8_t)error->message[length] >= ' ');
    length++;
  }
  MUST(length > 0 && length < sizeof error->message);
}

#endif
