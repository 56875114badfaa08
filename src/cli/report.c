#define _POSIX_C_SOURCE 200809L
#include "cli/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
  bool quiet;
  bool line_open;       /* a progress line stands on the terminal */
  double last_progress; /* when it was written */
} state;

/* ---------------------------------------------------------------- failures */

static void print_advice(const char *advice) {
  if (advice) fprintf(stderr, "  %s\n", advice);
}

int fail(ml_status status, const char *advice, const char *format, ...) {
  progress_end();
  fprintf(stderr, "ml_run: %s: ", ml_status_name(status));
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  print_advice(advice);
  return FAILED;
}

static const char *advice_for(ml_status status) {
  switch (status) {
    case ML_OK: return NULL;
    case ML_E_IO: return "Check the path and its permissions.";
    case ML_E_FORMAT:
      return "The file is damaged, cut short or of another kind: fetch or convert it again "
             "(`inspect` of tools/mlb.py or tools/tinyloop.py shows its header).";
    case ML_E_SHAPE:
      return "The model's dimensions are not ones that this engine runs "
             "(`inspect` of tools/mlb.py or tools/tinyloop.py shows them).";
    case ML_E_NOMEM: return "A smaller --ctx or --batch needs less memory; --info says how much.";
    case ML_E_ARG: return "`ml_run --help` lists what each option takes.";
    case ML_E_CONTEXT: return "Raise --ctx as far as the model allows (--info), or give fewer ids.";
    case ML_E_NUMERIC:
      return "The model gives no usable numbers for these ids: --info counts weights that are not finite, "
             "--trace shows the first stage that goes wrong.";
    case ML_E_STATE: return "This should not happen: please report it with the command line.";
  }
  return NULL;
}

int fail_error(const ml_error *error, const char *subject) {
  const char *advice = advice_for(error->status);
  if (subject) return fail(error->status, advice, "%s: %s", subject, error->message);
  return fail(error->status, advice, "%s", error->message);
}

int fail_io(const char *action, const char *path) {
  int reason = errno;
  return fail(ML_E_IO, advice_for(ML_E_IO), "cannot %s %s: %s", action, path, strerror(reason));
}

int fail_usage(const char *format, ...) {
  fputs("ml_run: ", stderr);
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputs("\n  `ml_run --help` lists the options.\n", stderr);
  return BAD_USAGE;
}

int fail_interrupted(const char *consequence) {
  progress_end();
  fprintf(stderr, "ml_run: interrupted: %s\n", consequence);
  return INTERRUPTED;
}

/* ---------------------------------------------------------------- notes and progress */

void report_be_quiet(void) { state.quiet = true; }

void note(const char *format, ...) {
  if (state.quiet) return;
  progress_end();
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
}

void progress(const char *activity, uint64_t done, uint64_t total) {
  if (state.quiet || !isatty(STDERR_FILENO)) return;
  double now = now_seconds();
  if (state.line_open && now - state.last_progress < 0.1) return;
  if (total)
    fprintf(stderr, "\r%s %3.0f %% ", activity, 100.0 * (double)done / (double)total);
  else
    fprintf(stderr, "\r%s %.1f MB ", activity, (double)done / 1e6);
  state.line_open = true;
  state.last_progress = now;
}

void progress_end(void) {
  if (state.line_open) fputs("\r\033[K", stderr); /* to the line's start, and clear it */
  state.line_open = false;
}

double now_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
