/* run_trace.c - a fingerprint of every stage (docs/NUMERICS.md lists them), to find the first place where two
 * builds differ: sort the lines of both, since --batch changes the order of the work, and compare. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"

/* The first value that is not a number. A NaN's bits differ between machines: its hash would mean nothing. */
typedef struct tracing {
  bool failed;
  char stage[32];
  int32_t layer;
  uint32_t position;
  size_t index;
} tracing;

/* FNV-1a, 64 bits, over the floats' bytes in little-endian order. */
static uint64_t hash_floats(const float *values, size_t n) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (bits >> shift & 255)) * UINT64_C(0x100000001b3);
  }
  return hash;
}

static void print_stage(void *user, const char *stage, int32_t layer, uint32_t position, const float *values,
                        size_t n) {
  tracing *trace = user;
  if (trace->failed) return;
  for (size_t i = 0; i < n; i++)
    if (values[i] != values[i]) {
      *trace = (tracing){.failed = true, .layer = layer, .position = position, .index = i};
      snprintf(trace->stage, sizeof trace->stage, "%s", stage);
      return;
    }
  printf("%" PRIu32 " %" PRId32 " %s %zu %016" PRIx64 "\n", position, layer, stage, n,
         hash_floats(values, n));
}

/* With the logits of every position, whatever the batch. */
static bool keep_going(void *user, uint32_t position, const float *logits, const double *logits_exact) {
  const tracing *trace = user;
  (void)position, (void)logits, (void)logits_exact;
  return !trace->failed && !interrupt_requested();
}

int run_trace(cli_job *job) {
  TRY(job_open_ids_and_model(job));
  TRY(job_check_fits(job, job->ids.n));
  tracing trace = {0};
  ml_session_options session_options = job_session_options(job);
  session_options.trace = print_stage;
  session_options.trace_user = &trace;
  TRY(job_open_session(job, &session_options));
  ml_error error;
  ml_status status = ml_session_score(job->session, job->ids.ids, job->ids.n, keep_going, &trace, &error);
  if (trace.failed)
    return fail(ML_E_NUMERIC, "The stage's inputs or weights are not finite: --info counts such weights.",
                "value %zu of stage %s, layer %" PRId32 ", position %" PRIu32 " is not a number", trace.index,
                trace.stage, trace.layer, trace.position);
  if (status != ML_OK) return fail_error(&error, NULL);
  if (interrupt_requested()) return fail_interrupted("the trace is incomplete");
  return DONE;
}
