/* Compares every kernel of every implementation with scalar, bit for bit, or measures them.
 *
 *   checkasm [--seed N] [--kernel NAME]... [--isa NAME]...
 *   checkasm --bench | --list  [--kernel NAME]... [--isa NAME]...
 *
 * The last implementation, `mistaken`, is scalar with mistakes, one at a time: there a kernel passes when its checks
 * found every mistake. The last line is "N passed, N failed, N skipped", counting a kernel of an implementation as one.
 * Exit code 0 when none failed, 1 when one did, 2 for wrong usage or when nothing was selected. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "harness.h"
#include "mistakes.h"

enum { MAX_FILTERS = 32, MAX_TABLES = 16 };

typedef struct kernel {
  const char *name;
  void (*check)(void), (*bench)(void);
  size_t offset; /* of its function in a table */
} kernel;

static const kernel kernels[] = {
#define ML_KERNEL(result, name, arguments) {#name, check_##name, bench_##name, offsetof(ml_kernels, name)},
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};

enum { N_KERNELS = sizeof kernels / sizeof *kernels };

typedef struct options {
  bool list, bench;
  uint64_t seed;
  int n_kernels, n_isas;
  const char *kernels[MAX_FILTERS], *isas[MAX_FILTERS]; /* none selects all */
} options;

typedef struct totals {
  uint64_t passed, failed, skipped;
} totals;

static bool selected(const char *name, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return true;
  return n == 0;
}

/* ---------------------------------------------------------------- one kernel of one implementation */

static void call_function(void *context) {
  void (*const *function)(void) = context;
  (*function)();
}

/* Runs all cases of a kernel; the fault that ended them, or NULL. */
static const char *run_check(const kernel *k, const ml_kernels *tested, uint64_t seed) {
  harness_start(tested, k->name, seed);
  void (*check)(void) = k->check;
  return catch_faults(call_function, &check);
}

/* Why there is nothing to compare; NULL if there is. */
static const char *reason_to_skip(const kernel *k, const ml_kernels *tested, bool can_run) {
  const char *scalar = (const char *)ml_kernels_find("scalar");
  if (!can_run) return "this machine lacks its instructions";
  if (memcmp(scalar + k->offset, (const char *)tested + k->offset, sizeof(void (*)(void))) == 0)
    return "it is scalar's own function";
  return NULL;
}

static void check_kernel(const kernel *k, const ml_kernels *tested, bool can_run, uint64_t seed,
                         totals *sum) {
  printf("%s %s", tested->name, k->name);
  fflush(stdout); /* a fault that cannot be caught then ends the output with the name */
  const char *reason = reason_to_skip(k, tested, can_run);
  if (reason) {
    printf(": skipped: %s\n", reason);
    sum->skipped++;
    return;
  }
  const char *fault = run_check(k, tested, seed);
  if (fault) printf("\n    %s: %s", current.text, fault);
  if (fault || current.n_differences) {
    printf("\n    FAILED: %" PRIu64 " of %" PRIu64 " cases; again with --seed %" PRIu64
           " --isa %s --kernel %s\n",
           current.n_differences + (fault != NULL), current.n_cases + (fault != NULL), seed, tested->name,
           k->name);
    sum->failed++;
  } else if (current.n_cases == 0) {
    printf(": skipped: compared nothing\n");
    sum->skipped++;
  } else {
    printf(": %" PRIu64 " cases\n", current.n_cases);
    sum->passed++;
  }
}

/* The checks of a kernel must find each mistake that can be made in it. */
static void check_mistakes(const kernel *k, uint64_t seed, totals *sum) {
  printf("%s %s", mistaken_kernels.name, k->name);
  fflush(stdout);
  int n_found = 0, n_missed = 0;
  current.quiet = true;
  for (int m = 0; m < N_MISTAKES; m++)
    for (int output = 0; output < MAX_OUTPUTS; output++) {
      mistakes_begin((mistake)m, output);
      const char *fault = run_check(k, &mistaken_kernels, seed);
      if (mistakes_made() == 0) continue;
      bool found = fault || current.n_differences;
      if (!found) printf("\n    missed: %s of output %d", mistake_name((mistake)m), output);
      n_found += found, n_missed += !found;
    }
  current.quiet = false;
  bool passed = n_found && !n_missed;
  printf(passed ? ": found %d of %d mistakes\n" : "\n    FAILED: found %d of %d mistakes\n", n_found,
         n_found + n_missed);
  sum->passed += passed, sum->failed += !passed;
}

static totals check_all(const options *wishes) {
  totals sum = {0};
  const ml_kernels *tested;
  bool can_run, any = false;
  for (size_t i = 0; (tested = ml_kernels_built(i, &can_run)); i++) {
    if (strcmp(tested->name, "scalar") == 0 || !selected(tested->name, wishes->isas, wishes->n_isas))
      continue;
    any = true;
    for (size_t n = 0; n < N_KERNELS; n++)
      if (selected(kernels[n].name, wishes->kernels, wishes->n_kernels))
        check_kernel(&kernels[n], tested, can_run, wishes->seed, &sum);
  }
  if (!any && selected("scalar", wishes->isas, wishes->n_isas)) {
    printf("scalar: skipped: nothing to compare it with\n");
    sum.skipped++;
  }
  if (selected(mistaken_kernels.name, wishes->isas, wishes->n_isas))
    for (size_t n = 0; n < N_KERNELS; n++)
      if (selected(kernels[n].name, wishes->kernels, wishes->n_kernels))
        check_mistakes(&kernels[n], wishes->seed, &sum);
  return sum;
}

/* ---------------------------------------------------------------- measurements */

/* A line for each case of a kernel, a column for each implementation: nanoseconds, and how often it fits into scalar's
 * time. */
static void bench_kernel(const kernel *k, const ml_kernels *const *tables, int n_tables, uint64_t seed) {
  static double times[MAX_TABLES][MAX_BENCHES];
  for (int i = 0; i < n_tables; i++) {
    harness_start(tables[i], k->name, seed);
    k->bench();
    for (uint32_t b = 0; b < current.n_benches; b++) times[i][b] = current.benches[b].nanoseconds;
  }
  for (uint32_t b = 0; b < current.n_benches; b++) {
    printf("%-20s%-24s", b == 0 ? k->name : "", current.benches[b].text);
    for (int i = 0; i < n_tables; i++) {
      printf("%12.1f", times[i][b]);
      if (i > 0) printf("%6.1fx", times[0][b] / times[i][b]);
    }
    printf("\n");
    fflush(stdout);
  }
}

static void bench_all(const options *wishes) {
  const ml_kernels *tables[MAX_TABLES] = {ml_kernels_find("scalar")}, *table;
  int n = 1;
  bool can_run;
  for (size_t i = 0; n < MAX_TABLES && (table = ml_kernels_built(i, &can_run)); i++)
    if (table != tables[0] && can_run && selected(table->name, wishes->isas, wishes->n_isas))
      tables[n++] = table;
  printf("%-20s%-24s%12s", "ns per call", "", tables[0]->name);
  for (int i = 1; i < n; i++) printf("%19s", tables[i]->name);
  printf("\n");
  current.benching = true;
  for (size_t i = 0; i < N_KERNELS; i++)
    if (selected(kernels[i].name, wishes->kernels, wishes->n_kernels))
      bench_kernel(&kernels[i], tables, n, wishes->seed);
}

/* ---------------------------------------------------------------- main */

static void list(void) {
  const ml_kernels *table;
  bool can_run;
  for (size_t i = 0; (table = ml_kernels_built(i, &can_run)); i++)
    printf("--isa %s%s\n", table->name, can_run ? "" : " (this machine lacks its instructions)");
  printf("--isa %s\n", mistaken_kernels.name);
  for (size_t i = 0; i < N_KERNELS; i++) printf("--kernel %s\n", kernels[i].name);
}

static bool is_kernel(const char *name) {
  for (size_t i = 0; i < N_KERNELS; i++)
    if (strcmp(kernels[i].name, name) == 0) return true;
  return false;
}

static bool is_implementation(const char *name) {
  const ml_kernels *table;
  bool can_run;
  for (size_t i = 0; (table = ml_kernels_built(i, &can_run)); i++)
    if (strcmp(table->name, name) == 0) return true;
  return strcmp(mistaken_kernels.name, name) == 0;
}

/* False for wrong usage. */
static bool parse(int argc, char **argv, options *wishes) {
  *wishes = (options){.seed = 1};
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "", *option = argv[i];
    if (strcmp(option, "--list") == 0) {
      wishes->list = true;
    } else if (strcmp(option, "--bench") == 0) {
      wishes->bench = true;
    } else if (strcmp(option, "--seed") == 0) {
      char *end;
      wishes->seed = strtoull(value, &end, 0);
      if (!*value || *end) return false;
      i++;
    } else if (strcmp(option, "--kernel") == 0 && is_kernel(value) && wishes->n_kernels < MAX_FILTERS) {
      wishes->kernels[wishes->n_kernels++] = value, i++;
    } else if (strcmp(option, "--isa") == 0 && is_implementation(value) && wishes->n_isas < MAX_FILTERS) {
      wishes->isas[wishes->n_isas++] = value, i++;
    } else {
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  options wishes;
  if (!parse(argc, argv, &wishes)) {
    fprintf(stderr,
            "usage: checkasm [--seed N | --bench | --list] [--kernel NAME]... [--isa NAME]...\n"
            "       checkasm --list shows the names\n");
    return 2;
  }
  if (wishes.list) {
    list();
    return 0;
  }
  if (!harness_open()) {
    fprintf(stderr, "checkasm: no memory for buffers\n");
    return 2;
  }
  if (wishes.bench) {
    bench_all(&wishes);
    return 0;
  }
  printf("seed %" PRIu64 "\n", wishes.seed);
  totals sum = check_all(&wishes);
  printf("%" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped\n", sum.passed, sum.failed,
         sum.skipped);
  return sum.failed ? 1 : 0;
}
