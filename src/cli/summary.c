#define _POSIX_C_SOURCE 200809L
#include "cli/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/report.h"

static void json_string(const char *text) {
  putchar('"');
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      printf("\\%c", c);
    else if (c < 0x20)
      printf("\\u%04x", c);
    else
      putchar(c);
  }
  putchar('"');
}

/* What comes before a value. */
static void begin_value(summary *out, const char *key, const char *label) {
  if (out->json) {
    fputs(out->any ? ",\n  " : "\n  ", stdout);
    json_string(key);
    fputs(": ", stdout);
  } else {
    printf("%-26s ", label);
  }
  out->any = true;
}

static void end_value(const summary *out) {
  if (!out->json) putchar('\n');
}

summary summary_begin(bool json) {
  if (json) putchar('{');
  return (summary){json, false};
}

void summary_text(summary *out, const char *key, const char *label, const char *value) {
  begin_value(out, key, label);
  if (out->json)
    json_string(value);
  else
    fputs(value, stdout);
  end_value(out);
}

void summary_uint(summary *out, const char *key, const char *label, uint64_t value) {
  begin_value(out, key, label);
  printf("%" PRIu64, value);
  end_value(out);
}

void summary_bool(summary *out, const char *key, const char *label, bool value) {
  begin_value(out, key, label);
  if (out->json)
    fputs(value ? "true" : "false", stdout);
  else
    fputs(value ? "yes" : "no", stdout);
  end_value(out);
}

void summary_bytes(summary *out, const char *key, const char *label, uint64_t bytes) {
  begin_value(out, key, label);
  printf("%" PRIu64, bytes);
  if (!out->json && bytes >= 1000000) printf(" (%.1f MB)", (double)bytes / 1e6);
  end_value(out);
}

void summary_real(summary *out, const char *key, const char *label, double value, int decimals) {
  begin_value(out, key, label);
  if (!out->json)
    printf("%.*f", decimals, value);
  else if (isfinite(value))
    printf("%.17g", value);
  else
    fputs("null", stdout);
  end_value(out);
}

void summary_end(summary *out) {
  if (out->json) fputs("\n}\n", stdout);
}

int finish_output(void) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return DONE;
  const char *reason = errno ? strerror(errno) : "an earlier write failed";
  return fail(ML_E_IO, "Check what standard output is connected to.", "cannot write the results: %s", reason);
}
