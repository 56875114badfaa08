/* How failures are put into words: values, cut lines, and the names of the statuses. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "test.h"

TEST(error_status_names) {
  static const char *const names[] = {"ML_OK",    "ML_E_IO",      "ML_E_FORMAT",  "ML_E_SHAPE", "ML_E_NOMEM",
                                      "ML_E_ARG", "ML_E_CONTEXT", "ML_E_NUMERIC", "ML_E_STATE"};
  for (int i = 0; i < 9; i++) CHECK_EQ_TEXT(ml_status_name((ml_status)i), names[i]);
  CHECK_EQ_TEXT(ml_status_name((ml_status)9), "ML_E_UNKNOWN");
  CHECK_EQ_TEXT(ml_status_name((ml_status)-1), "ML_E_UNKNOWN");
}

TEST(error_line_of_field_value_rule_limit_offset) {
  ml_error error;
  ml_status status = ml_fail(&error, ML_E_SHAPE, "dim", ml_uint(33), "must be a multiple of", ml_uint(32), 8);
  CHECK_EQ_I64(status, ML_E_SHAPE);
  CHECK_EQ_I64(error.status, ML_E_SHAPE);
  CHECK_EQ_U64(error.offset, 8);
  CHECK_EQ_TEXT(error.message, "dim = 33: must be a multiple of 32 (offset 8)");

  ml_fail(&error, ML_E_STATE, "loader", ml_none(), "has failed before", ml_none(), ML_NO_OFFSET);
  CHECK_EQ_TEXT(error.message, "loader: has failed before");
  CHECK_EQ_U64(error.offset, ML_NO_OFFSET);

  ml_fail(&error, ML_E_ARG, "isa", ml_text("avx9"), "is unknown; the best is", ml_text("scalar"),
          ML_NO_OFFSET);
  CHECK_EQ_TEXT(error.message, "isa = avx9: is unknown; the best is scalar");

  CHECK_EQ_I64(ml_fail(NULL, ML_E_IO, "file", ml_none(), "cannot be read", ml_none(), 0), ML_E_IO);
}

static ml_status try_it(ml_status status, bool *went_on) {
  ML_TRY(status);
  *went_on = true;
  return ML_E_ARG;
}

TEST(error_try_passes_failures_on) {
  bool went_on = false;
  CHECK_EQ_I64(try_it(ML_E_NOMEM, &went_on), ML_E_NOMEM);
  CHECK(!went_on);
  CHECK_EQ_I64(try_it(ML_OK, &went_on), ML_E_ARG);
  CHECK(went_on);
}

/* ---------------------------------------------------------------- values */

static void check_value(ml_value value, const char *expected) {
  ml_error error;
  ml_fail(&error, ML_E_ARG, "x", value, "is", ml_none(), ML_NO_OFFSET);
  char *end = strstr(error.message, ": is");
  if (!CHECK(end != NULL && memcmp(error.message, "x = ", 4) == 0)) return;
  *end = 0;
  CHECK_EQ_TEXT(error.message + 4, expected);
}

TEST(error_whole_numbers) {
  check_value(ml_uint(0), "0");
  check_value(ml_uint(10), "10");
  check_value(ml_uint(UINT64_MAX), "18446744073709551615");
  check_value(ml_int(-1), "-1");
  check_value(ml_int(INT64_MIN), "-9223372036854775808");
  check_value(ml_int(INT64_MAX), "9223372036854775807");
}

TEST(error_reals) {
  check_value(ml_real(0), "0");
  check_value(ml_real(-0.0), "0");
  check_value(ml_real(10000), "10000");
  check_value(ml_real(-16777216), "-16777216");
  check_value(ml_real(999999999999999.0), "999999999999999");
  check_value(ml_real(1e15), "1e15");
  check_value(ml_real(0.5), "0.5");
  check_value(ml_real(-0.25), "-0.25");
  check_value(ml_real(1.5), "1.5");
  check_value(ml_real(12345.678), "12345.7");
  check_value(ml_real(123456.7), "123457");
  check_value(ml_real(1234567.5), "1.23457e6");
  check_value(ml_real(0.1), "0.1");
  check_value(ml_real((double)0.1f), "0.1");
  check_value(ml_real(0.0625), "0.0625");
  check_value(ml_real((double)1e-5f), "0.00001");
  check_value(ml_real((double)1e-6f), "1e-6");
  check_value(ml_real(1.25e-7), "1.25e-7");
  check_value(ml_real(9.9999996), "10");
  check_value(ml_real(99999.96), "100000");
  check_value(ml_real(999999.96), "1e6");
  check_value(ml_real(0.99999996), "1");
  check_value(ml_real(100.01), "100.01");
  check_value(ml_real((double)FLT_MAX), "3.40282e38");
  check_value(ml_real((double)FLT_TRUE_MIN), "1.4013e-45");
  check_value(ml_real(DBL_MAX), "1.79769e308");
  check_value(ml_real(INFINITY), "inf");
  check_value(ml_real(-INFINITY), "-inf");
  check_value(ml_real(NAN), "nan");
}

/* ---------------------------------------------------------------- long and hostile texts */

TEST(error_long_lines_are_cut_and_terminated) {
  char text[600];
  for (size_t length = 200; length < sizeof text; length++) {
    memset(text, 'a', length);
    text[length] = 0;
    ml_error error;
    memset(&error, 0x7f, sizeof error);
    ml_fail(&error, ML_E_ARG, "isa", ml_text(text), "is", ml_none(), ML_NO_OFFSET);
    size_t whole = strlen("isa = : is") + length;
    CHECK_EQ_U64(strlen(error.message), whole < 239 ? whole : 239);
  }
}

/* One line of UTF-8: a character of 2, 3 or 4 bytes is there whole or not at all. */
TEST(error_cut_between_characters) {
  static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\xa6\x99"};
  for (int kind = 0; kind < 3; kind++) {
    size_t width = strlen(characters[kind]);
    for (size_t shift = 0; shift < width; shift++) {
      char text[400] = "abcd";
      size_t length = shift;
      for (; length + width < sizeof text; length += width) memcpy(text + length, characters[kind], width);
      text[length] = 0;
      ml_error error;
      ml_fail(&error, ML_E_ARG, "x", ml_text(text), "is", ml_none(), ML_NO_OFFSET);
      size_t room = 239 - strlen("x = ") - shift;
      CHECK_EQ_U64(strlen(error.message), 239 - room % width);
    }
  }
}

TEST(error_control_characters_become_spaces) {
  check_value(ml_text("a\nb\tc\x1b[0m\x7f"), "a b c [0m ");
  check_value(ml_text(""), "");
}
