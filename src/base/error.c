#include "base/error.h"

#include <string.h>

const char *ml_status_name(ml_status status) {
  switch (status) {
    case ML_OK: return "ML_OK";
    case ML_E_IO: return "ML_E_IO";
    case ML_E_FORMAT: return "ML_E_FORMAT";
    case ML_E_SHAPE: return "ML_E_SHAPE";
    case ML_E_NOMEM: return "ML_E_NOMEM";
    case ML_E_ARG: return "ML_E_ARG";
    case ML_E_CONTEXT: return "ML_E_CONTEXT";
    case ML_E_NUMERIC: return "ML_E_NUMERIC";
    case ML_E_STATE: return "ML_E_STATE";
  }
  return "ML_E_UNKNOWN";
}

/* A line being written; what does not fit is cut. */
typedef struct line {
  char *text;
  size_t length, capacity; /* capacity without the terminator */
} line;

static void put_char(line *out, char c) {
  if (out->length < out->capacity) out->text[out->length++] = c;
}

static void put_text(line *out, const char *text) {
  while (*text) put_char(out, *text++);
}

static void put_uint(line *out, uint64_t u) {
  char digits[20];
  size_t n = 0;
  do digits[n++] = (char)('0' + u % 10);
  while (u /= 10);
  while (n) put_char(out, digits[--n]);
}

static void put_int(line *out, int64_t i) {
  if (i < 0) put_char(out, '-');
  put_uint(out, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

/* Six significant digits in scientific form unless the value is a short whole number: enough to recognise
 * a header field, and free of the C library's formatter. */
static void put_real(line *out, double x) {
  if (x != x) {
    put_text(out, "nan");
    return;
  }
  if (x < 0) {
    put_char(out, '-');
    x = -x;
  }
  if (x > 1.7976931348623157e308) {
    put_text(out, "inf");
    return;
  }
  if (x < 1e15 && x == (double)(uint64_t)x) {
    put_uint(out, (uint64_t)x);
    return;
  }
  int exponent = 0;
  while (x >= 10) x /= 10, exponent++;
  while (x < 1) x *= 10, exponent--;
  uint64_t digits = (uint64_t)(x * 100000 + 0.5); /* d.ddddd as an integer */
  put_uint(out, digits / 100000);
  put_char(out, '.');
  for (uint64_t unit = 10000; unit; unit /= 10) put_char(out, (char)('0' + digits / unit % 10));
  if (exponent) {
    put_char(out, 'e');
    put_int(out, exponent);
  }
}

static void put_value(line *out, ml_value value) {
  switch (value.kind) {
    case ML_VALUE_NONE: break;
    case ML_VALUE_UINT: put_uint(out, value.as.u); break;
    case ML_VALUE_INT: put_int(out, value.as.i); break;
    case ML_VALUE_REAL: put_real(out, value.as.real); break;
    case ML_VALUE_TEXT: put_text(out, value.as.text); break;
  }
}

ml_status ml_fail(ml_error *error, ml_status status, const char *field, ml_value value, const char *rule,
                  ml_value limit, uint64_t offset) {
  if (!error) return status;
  memset(error, 0, sizeof *error);
  error->status = status;
  error->offset = offset;
  line out = {error->message, 0, sizeof error->message - 1};
  put_text(&out, field);
  if (value.kind != ML_VALUE_NONE) {
    put_text(&out, " = ");
    put_value(&out, value);
  }
  put_text(&out, ": ");
  put_text(&out, rule);
  if (limit.kind != ML_VALUE_NONE) {
    put_char(&out, ' ');
    put_value(&out, limit);
  }
  if (offset != ML_NO_OFFSET) {
    put_text(&out, " (offset ");
    put_uint(&out, offset);
    put_char(&out, ')');
  }
  return status;
}
