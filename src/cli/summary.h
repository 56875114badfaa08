/* summary.h - named results on standard output, for people ("label   value") or for programs (one JSON object
 * with stable keys). Every value is written once, for both. */
#ifndef ML_CLI_SUMMARY_H
#define ML_CLI_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct summary {
  bool json;
  bool any; /* a value has been written */
} summary;

summary summary_begin(bool json);
void summary_text(summary *out, const char *key, const char *label, const char *value);
void summary_uint(summary *out, const char *key, const char *label, uint64_t value);
void summary_bool(summary *out, const char *key, const char *label, bool value);
void summary_bytes(summary *out, const char *key, const char *label, uint64_t bytes);
/* `decimals` for people; JSON gets all digits, and null for what is not finite. */
void summary_real(summary *out, const char *key, const char *label, double value, int decimals);
void summary_end(summary *out);

/* Flushes standard output; ML_E_IO when anything written to it did not arrive. */
int finish_output(void);

#endif
