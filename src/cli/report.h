/* report.h - what ml_run says about itself, all of it on standard error: failures with a way out, notes,
 * progress; and the clock for timings. Results go to standard output and are none of this file's business. */
#ifndef ML_CLI_REPORT_H
#define ML_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "ml.h"

/* Functions of this room return one of these, DONE or the program's exit code; a failure has been reported
 * when it is returned. */
enum {
  DONE = 0,
  FAILED = 1,       /* bad input, or a file that cannot be read or written */
  BAD_USAGE = 2,    /* the command line makes no sense */
  INTERRUPTED = 130 /* Ctrl-C, as shells expect it */
};

/* Passes a failure on. */
#define TRY(expression)                    \
  do {                                     \
    int try_code = (expression);           \
    if (try_code != DONE) return try_code; \
  } while (0)

#define PRINTF_LIKE(format_at, values_at) __attribute__((format(printf, format_at, values_at)))

/* "ml_run: ML_E_...: message" and, if `advice` is not NULL, a second line with what to do. Gives FAILED. */
int fail(ml_status status, const char *advice, const char *format, ...) PRINTF_LIKE(3, 4);
/* The same for a library error, with `subject` (a path, or NULL) before its message and advice by status. */
int fail_error(const ml_error *error, const char *subject);
/* A system call failed on `path`: says why by errno. */
int fail_io(const char *action, const char *path);
/* The same form without a status, for the command line itself. Gives BAD_USAGE. */
int fail_usage(const char *format, ...) PRINTF_LIKE(1, 2);
/* What Ctrl-C left undone. Gives INTERRUPTED. */
int fail_interrupted(const char *consequence);

/* Silences notes, timings and progress, not failures. */
void report_be_quiet(void);
void note(const char *format, ...) PRINTF_LIKE(1, 2);

/* A line that is rewritten while work goes on; only on a terminal and a few times a second. */
void progress(const char *activity, uint64_t done, uint64_t total);
void progress_end(void);

double now_seconds(void); /* from some fixed moment, never going back */

#endif
