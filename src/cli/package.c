#define _POSIX_C_SOURCE 200809L
#include "cli/package.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report.h"

static bool is_folder(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* folder/name, or folder alone without a name. */
static int join(const char *folder, const char *name, char **path) {
  size_t length = strlen(folder) + (name ? strlen(name) : 0) + 2;
  *path = malloc(length);
  if (!*path) return fail(ML_E_NOMEM, NULL, "no memory for a path");
  bool slash = name && folder[0] && folder[strlen(folder) - 1] != '/';
  snprintf(*path, length, "%s%s%s", folder, slash ? "/" : "", name ? name : "");
  return DONE;
}

/* The file of a folder that has either name; the second may be NULL. */
static int member(const char *folder, const char *name, const char *other, char **path) {
  for (int i = 0; i < 2; i++) {
    const char *tried = i ? other : name;
    if (!tried) break;
    TRY(join(folder, tried, path));
    if (access(*path, F_OK) == 0) return DONE;
    free(*path);
    *path = NULL;
  }
  return fail(ML_E_IO,
              "A model package holds model.mlb or model.tinyloop, and tokenizer.mlt; or name a file.",
              "%s is a folder without %s", folder, name);
}

int package_model_path(const char *model, char **path) {
  return is_folder(model) ? member(model, "model.mlb", "model.tinyloop", path) : join(model, NULL, path);
}

int package_tokenizer_path(const cli_options *options, char **path) {
  if (options->tokenizer) return join(options->tokenizer, NULL, path);
  if (options->model && is_folder(options->model)) {
    return member(options->model, "tokenizer.mlt", NULL, path);
  }
  return fail_usage("a tokenizer is needed: --tokenizer FILE.mlt, or -m with the folder of a model package");
}
