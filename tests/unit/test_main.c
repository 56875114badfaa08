/* Runs the registered tests: test_unit [--list] [--seed N] [PART OF A NAME]...
 * The last line is "N passed, N failed, N skipped". Exit code 0 when none failed, 1 when one did, 2 for wrong usage
 * or when no test was selected. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "splitmix.h"
#include "test.h"

#define DEFAULT_SEED 1
#define MAX_REPORTS 10 /* failed checks that one test prints */

static test_entry *all_tests;

/* The test that is running. */
static struct {
  uint64_t checks, failures;
  const char *skip_reason; /* NULL: not skipped */
  uint64_t random_state;
} current;

/* Keeps the list sorted by name: the order in which the linker runs constructors is nobody's business. */
void test_register(test_entry *entry) {
  test_entry **place = &all_tests;
  while (*place && strcmp((*place)->title, entry->title) < 0) place = &(*place)->next;
  entry->next = *place;
  *place = entry;
}

/* ---------------------------------------------------------------- checks */

/* Counts a check; true when a failure is to be described by the caller. */
static bool count_failure(bool holds, test_place place) {
  current.checks++;
  if (holds) return false;
  current.failures++;
  if (current.failures > MAX_REPORTS) return false;
  printf("\n    %s:%d: ", place.file, place.line);
  return true;
}

bool test_check(bool holds, test_place place, const char *text) {
  if (count_failure(holds, place)) printf("does not hold: %s", text);
  return holds;
}

bool test_eq_u64(uint64_t actual, uint64_t expected, test_place place, const char *text) {
  if (count_failure(actual == expected, place))
    printf("%s is %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 " (0x%" PRIx64 ")", text, actual, actual,
           expected, expected);
  return actual == expected;
}

bool test_eq_i64(int64_t actual, int64_t expected, test_place place, const char *text) {
  if (count_failure(actual == expected, place))
    printf("%s is %" PRId64 ", expected %" PRId64, text, actual, expected);
  return actual == expected;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool test_eq_f32_bits(float actual, float expected, test_place place, const char *text) {
  bool equal = bits_of(actual) == bits_of(expected);
  if (count_failure(equal, place))
    printf("%s is %.9g (0x%08" PRIx32 "), expected %.9g (0x%08" PRIx32 ")", text, (double)actual,
           bits_of(actual), (double)expected, bits_of(expected));
  return equal;
}

bool test_eq_text(const char *actual, const char *expected, test_place place, const char *text) {
  bool equal = actual && expected ? strcmp(actual, expected) == 0 : actual == expected;
  if (count_failure(equal, place))
    printf("%s is \"%s\", expected \"%s\"", text, actual ? actual : "(NULL)", expected ? expected : "(NULL)");
  return equal;
}

bool test_eq_bytes(const void *actual, const void *expected, size_t size, test_place place,
                   const char *text) {
  const uint8_t *a = actual, *b = expected;
  size_t at = 0;
  while (at < size && a[at] == b[at]) at++;
  if (count_failure(at == size, place))
    printf("%s differs at byte %zu of %zu: 0x%02x, expected 0x%02x", text, at, size, a[at], b[at]);
  return at == size;
}

bool test_near(double actual, double expected, double tolerance, test_place place, const char *text) {
  double difference = actual < expected ? expected - actual : actual - expected;
  bool near = difference <= tolerance; /* false for NaN */
  if (count_failure(near, place))
    printf("%s is %.17g, expected %.17g within %g", text, actual, expected, tolerance);
  return near;
}

void test_skip(const char *reason) { current.skip_reason = reason; }

/* ---------------------------------------------------------------- random numbers */

uint64_t test_random_u64(void) { return splitmix64(&current.random_state); }

uint32_t test_random_below(uint32_t limit) { return (uint32_t)((test_random_u64() >> 32) * limit >> 32); }

float test_random_f32(float low, float high) {
  return low + (high - low) * ((float)(test_random_u64() >> 40) / 16777216.0f);
}

void test_random_bytes(void *out, size_t size) {
  uint8_t *bytes = out;
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(test_random_u64() >> 56);
}

/* ---------------------------------------------------------------- main */

typedef struct options {
  bool list;
  uint64_t seed;
  int n_filters;
  char **filters; /* parts of names; none selects every test */
} options;

static bool selected(const options *wishes, const char *title) {
  for (int i = 0; i < wishes->n_filters; i++)
    if (strstr(title, wishes->filters[i])) return true;
  return wishes->n_filters == 0;
}

/* False for wrong usage. Filters are gathered behind argv[0]. */
static bool parse(int argc, char **argv, options *wishes) {
  *wishes = (options){.seed = DEFAULT_SEED, .filters = argv + 1};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--list") == 0) {
      wishes->list = true;
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      char *end;
      wishes->seed = strtoull(argv[++i], &end, 0);
      if (end == argv[i] || *end) return false;
    } else if (argv[i][0] == '-') {
      return false;
    } else {
      wishes->filters[wishes->n_filters++] = argv[i];
    }
  }
  return true;
}

typedef struct totals {
  uint64_t passed, failed, skipped;
} totals;

/* Prints the name before running, so that the output of a crash ends in it. */
static void run_one(const test_entry *test, uint64_t seed, totals *sum) {
  memset(&current, 0, sizeof current);
  current.random_state = splitmix_state(test->title, seed);
  printf("%s", test->title);
  fflush(stdout);
  test->run();
  if (current.failures) {
    sum->failed++;
    printf("\n    FAILED: %" PRIu64 " of %" PRIu64 " checks\n", current.failures, current.checks);
  } else if (current.skip_reason || current.checks == 0) {
    sum->skipped++;
    printf(": skipped: %s\n", current.skip_reason ? current.skip_reason : "compared nothing");
  } else {
    sum->passed++;
    printf(": ok\n");
  }
}

int main(int argc, char **argv) {
  options wishes;
  if (!parse(argc, argv, &wishes)) {
    fprintf(stderr, "usage: %s [--list] [--seed N] [PART OF A NAME]...\n", argv[0]);
    return 2;
  }
  if (!wishes.list) printf("seed %" PRIu64 "\n", wishes.seed);
  totals sum = {0};
  for (const test_entry *test = all_tests; test; test = test->next) {
    if (!selected(&wishes, test->title)) continue;
    if (wishes.list)
      puts(test->title);
    else
      run_one(test, wishes.seed, &sum);
  }
  if (wishes.list) return 0;
  printf("%" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped\n", sum.passed, sum.failed,
         sum.skipped);
  if (sum.failed) return 1;
  return sum.passed + sum.skipped ? 0 : 2;
}
