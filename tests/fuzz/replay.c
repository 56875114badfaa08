/* Runs a fuzz target without a fuzzing engine: every file, and every file of a folder, that is named.
 *
 *   fuzz_<subject> [--mutations N] [--seed N] PATH...
 *
 * With --mutations, N inputs more are made from each file, always the same ones for a seed. The name of an input is
 * printed before it runs, so the last one is what broke off. The last line counts files: "N passed, 0 failed,
 * N skipped". */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MAX_SIZE = 1 << 20, MUTATED_SIZE = 1 << 15 };

typedef struct replay_run {
  unsigned long mutations, seed;
  unsigned long n_run, n_files;
  uint8_t *buffer; /* MAX_SIZE */
} replay_run;

/* Only targets that know their format have one. */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size,
                                                     unsigned seed);

static uint32_t random_state = 1;

static uint32_t next_random(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

/* A few bytes replaced, or the end cut off: enough in place of the engine's. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size) {
  if (size == 0) return 0;
  if (size > max_size) size = max_size;
  if (size > 4 && next_random() % 8 == 0) return size - next_random() % (size / 2);
  for (uint32_t n = 1 + next_random() % 4; n; n--) bytes[next_random() % size] = (uint8_t)next_random();
  return size;
}

/* The bytes in a block of exactly their size, so that reading past them is noticed. */
static void run_input(replay_run *replay, const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  MUST(copy);
  memcpy(copy, bytes, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
  replay->n_run++;
}

static void run_mutations(replay_run *replay, size_t size) {
  if (size > MUTATED_SIZE) return;
  for (unsigned long i = 0; i < replay->mutations; i++) {
    random_state = (uint32_t)(replay->seed + 1000003 * replay->n_run);
    unsigned seed = next_random();
    size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(replay->buffer, size, MUTATED_SIZE, seed)
                                   : LLVMFuzzerMutate(replay->buffer, size, MUTATED_SIZE);
    run_input(replay, replay->buffer, size);
  }
}

static void run_file(replay_run *replay, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(2);
  }
  size_t size = fread(replay->buffer, 1, MAX_SIZE, file);
  fclose(file);
  printf("%s\n", path);
  fflush(stdout);
  replay->n_files++;
  run_input(replay, replay->buffer, size);
  run_mutations(replay, size);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* In the order of their names, so that a run is repeatable. */
static void run_folder(replay_run *replay, const char *path, DIR *folder) {
  char **names = NULL;
  size_t n = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (entry->d_name[0] == '.') continue;
    size_t length = strlen(path) + strlen(entry->d_name) + 2;
    names = realloc(names, (n + 1) * sizeof *names);
    MUST(names && (names[n] = malloc(length)));
    snprintf(names[n++], length, "%s/%s", path, entry->d_name);
  }
  closedir(folder);
  if (n) qsort(names, n, sizeof *names, by_name);
  for (size_t i = 0; i < n; i++) {
    run_file(replay, names[i]);
    free(names[i]);
  }
  free(names);
}

int main(int n_arguments, char **arguments) {
  replay_run replay = {.seed = 1, .buffer = malloc(MAX_SIZE)};
  MUST(replay.buffer);
  for (int i = 1; i < n_arguments; i++) {
    bool has_value = i + 1 < n_arguments;
    if (has_value && strcmp(arguments[i], "--mutations") == 0) {
      replay.mutations = strtoul(arguments[++i], NULL, 10);
    } else if (has_value && strcmp(arguments[i], "--seed") == 0) {
      replay.seed = strtoul(arguments[++i], NULL, 10);
    } else {
      DIR *folder = opendir(arguments[i]);
      if (folder) run_folder(&replay, arguments[i], folder);
      if (!folder) run_file(&replay, arguments[i]);
    }
  }
  free(replay.buffer);
  printf("%lu passed, 0 failed, %d skipped\n", replay.n_files, replay.n_files == 0);
  return 0;
}
