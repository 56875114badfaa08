/* error.h - how a failure gets its one line: "field = value: rule limit (offset N)". */
#ifndef ML_BASE_ERROR_H
#define ML_BASE_ERROR_H

#include <string.h>

#include "ml.h"

/* A value inside a message. Built by the functions below, so that no format string can mismatch. */
typedef enum ml_value_kind {
  ML_VALUE_NONE,
  ML_VALUE_UINT,
  ML_VALUE_INT,
  ML_VALUE_REAL,
  ML_VALUE_TEXT
} ml_value_kind;

typedef struct ml_value {
  ml_value_kind kind;
  uint64_t bits; /* the number's own, of a text its address */
} ml_value;

static inline ml_value ml_none(void) { return (ml_value){ML_VALUE_NONE, 0}; }
static inline ml_value ml_uint(uint64_t u) { return (ml_value){ML_VALUE_UINT, u}; }
static inline ml_value ml_int(int64_t i) { return (ml_value){ML_VALUE_INT, (uint64_t)i}; }
static inline ml_value ml_real(double x) {
  ml_value value = {ML_VALUE_REAL, 0};
  memcpy(&value.bits, &x, sizeof x);
  return value;
}
static inline ml_value ml_text(const char *text) { return (ml_value){ML_VALUE_TEXT, (uintptr_t)text}; }

/* ml_fail on what values are made of: WebAssembly passes a struct through memory, which is long, and has many callers. */
ml_status ml_fail_parts(ml_error *error, ml_status status, const char *field, ml_value_kind value_kind,
                        uint64_t value_bits, const char *rule, ml_value_kind limit_kind, uint64_t limit_bits,
                        uint64_t offset);

/* Fills `error` (if not NULL) and returns `status`, so that a check reads
 *   return ml_fail(error, ML_E_SHAPE, "dim", ml_uint(33), "must be a multiple of", ml_uint(32), 8);
 * and says "dim = 33: must be a multiple of 32 (offset 8)". Value and limit may be ml_none(). */
static inline ml_status ml_fail(ml_error *error, ml_status status, const char *field, ml_value value,
                                const char *rule, ml_value limit, uint64_t offset) {
  return ml_fail_parts(error, status, field, value.kind, value.bits, rule, limit.kind, limit.bits, offset);
}

/* Passes a failure on. */
#define ML_TRY(expression)                            \
  do {                                                \
    ml_status ml_try_status = (expression);           \
    if (ml_try_status != ML_OK) return ml_try_status; \
  } while (0)

#endif
