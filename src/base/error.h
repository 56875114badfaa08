/* error.h - how a failure gets its one line: "field = value: rule limit (offset N)". */
#ifndef ML_BASE_ERROR_H
#define ML_BASE_ERROR_H

#include "ml.h"

/* A value inside a message. Built by the functions below, so that no format string can mismatch. */
typedef struct ml_value {
  enum { ML_VALUE_NONE, ML_VALUE_UINT, ML_VALUE_INT, ML_VALUE_REAL, ML_VALUE_TEXT } kind;
  union {
    uint64_t u;
    int64_t i;
    double real;
    const char *text;
  } as;
} ml_value;

static inline ml_value ml_none(void) { return (ml_value){.kind = ML_VALUE_NONE, .as.u = 0}; }
static inline ml_value ml_uint(uint64_t u) { return (ml_value){.kind = ML_VALUE_UINT, .as.u = u}; }
static inline ml_value ml_int(int64_t i) { return (ml_value){.kind = ML_VALUE_INT, .as.i = i}; }
static inline ml_value ml_real(double x) { return (ml_value){.kind = ML_VALUE_REAL, .as.real = x}; }
static inline ml_value ml_text(const char *text) {
  return (ml_value){.kind = ML_VALUE_TEXT, .as.text = text};
}

/* Fills `error` (if not NULL) and returns `status`, so that a check reads
 *   return ml_fail(error, ML_E_SHAPE, "dim", ml_uint(33), "must be a multiple of", ml_uint(32), 8);
 * and says "dim = 33: must be a multiple of 32 (offset 8)". Value and limit may be ml_none(). */
ml_status ml_fail(ml_error *error, ml_status status, const char *field, ml_value value, const char *rule,
                  ml_value limit, uint64_t offset);

/* Passes a failure on. */
#define ML_TRY(expression)                            \
  do {                                                \
    ml_status ml_try_status = (expression);           \
    if (ml_try_status != ML_OK) return ml_try_status; \
  } while (0)

#endif
