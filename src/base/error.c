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

/* Texts may come from outside (the name of an instruction set): control characters must not break the line. */
static void put_text(line *out, const char *text) {
  for (; *text; text++) put_char(out, (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
}

/* A line that was cut may end within a UTF-8 character: that goes too. */
static void drop_partial_character(line *out) {
  size_t start = out->length;
  while (start > 0 && ((unsigned char)out->text[start - 1] & 0xc0) == 0x80) start--; /* continuation bytes */
  if (start == 0 || (unsigned char)out->text[start - 1] < 0xc0) return;
  unsigned char first = (unsigned char)out->text[--start];
  size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (out->length - start < length) out->length = start;
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

/* `digits` has six decimal digits; the first one stands for 10^exponent. Zeros at the end are left out. */
static void put_digits(line *out, uint64_t digits, int exponent) {
  for (int place = exponent < 0 ? exponent : 0; place < 0; place++)
    put_text(out, place == exponent ? "0." : "0");
  uint64_t unit = 100000;
  for (int place = exponent; unit && (digits || place >= 0); place--, unit /= 10) {
    if (place == -1 && exponent >= 0) put_char(out, '.');
    put_char(out, (char)('0' + digits / unit));
    digits %= unit;
  }
}

/* Six significant digits, or all of a whole number below 10^15: enough to recognise a header field, and free of
 * the C library's formatter. */
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
  uint64_t digits = (uint64_t)(x * 100000 + 0.5);     /* d.ddddd as an integer */
  if (digits == 1000000) digits = 100000, exponent++; /* 9.999996 is 10.0000 */
  bool plain = exponent >= -5 && exponent <= 5;
  put_digits(out, digits, plain ? exponent : 0);
  if (plain) return;
  put_char(out, 'e');
  put_int(out, exponent);
}

static void put_value(line *out, ml_value_kind kind, uint64_t bits) {
  double real;
  switch (kind) {
    case ML_VALUE_NONE: break;
    case ML_VALUE_UINT: put_uint(out, bits); break;
    case ML_VALUE_INT: put_int(out, (int64_t)bits); break;
    case ML_VALUE_REAL:
      memcpy(&real, &bits, sizeof real);
      put_real(out, real);
      break;
    case ML_VALUE_TEXT: put_text(out, (const char *)(uintptr_t)bits); break;
  }
}

ml_status ml_fail_parts(ml_error *error, ml_status status, const char *field, ml_value_kind value_kind,
                        uint64_t value_bits, const char *rule, ml_value_kind limit_kind, uint64_t limit_bits,
                        uint64_t offset) {
  if (!error) return status;
  memset(error, 0, sizeof *error);
  error->status = status;
  error->offset = offset;
  line out = {error->message, 0, sizeof error->message - 1};
  put_text(&out, field);
  if (value_kind != ML_VALUE_NONE) {
    put_text(&out, " = ");
    put_value(&out, value_kind, value_bits);
  }
  put_text(&out, ": ");
  put_text(&out, rule);
  if (limit_kind != ML_VALUE_NONE) {
    put_char(&out, ' ');
    put_value(&out, limit_kind, limit_bits);
  }
  if (offset != ML_NO_OFFSET) {
    put_text(&out, " (offset ");
    put_uint(&out, offset);
    put_char(&out, ')');
  }
  if (out.length == out.capacity) drop_partial_character(&out);
  error->message[out.length] = 0;
  return status;
}
