/* options.h - the command line of ml_run as a struct. One table in options.c gives the parser and --help. */
#ifndef ML_CLI_OPTIONS_H
#define ML_CLI_OPTIONS_H

#include <stdio.h>

#include "ml.h"

/* What ml_run is asked to do. */
typedef enum mode {
  MODE_GENERATE, /* when no other is named */
  MODE_LOGITS,
  MODE_PERPLEXITY,
  MODE_IMATRIX,
  MODE_TRACE,
  MODE_BENCH,
  MODE_INFO,
  MODE_CHECK,
  MODE_VERIFY,
  MODE_TOKENIZE,
  MODE_DETOKENIZE,
  MODE_LIST_ISAS,
  MODE_HELP
} mode;

typedef struct cli_options {
  mode mode;
  const char *mode_file; /* of --logits, --imatrix, --check, --tokenize and --detokenize */
  const char *model;     /* file, or folder of a package */
  const char *tokenizer;
  bool special;            /* added tokens are tokens, in text too */
  const char *prompt;      /* text */
  const char *prompt_file; /* name of a file of text, or "-" */
  const char *ids;         /* list, file name or "-" */
  const char *stop_ids;    /* the same, or NULL */
  uint32_t n_predict;
  bool n_predict_given;
  uint32_t n_ctx, n_batch; /* 0: the library's default */
  uint32_t n_threads;      /* 0: one for each processor */
  const char *isa;         /* NULL: the best */
  uint32_t n_loops;        /* 0: as the model says */
  ml_kv_type kv;
  bool exact, f16_body;
  ml_sampler_options sampler;
  bool seed_given;
  uint32_t stride; /* 0: as long as the context */
  uint32_t repeat;
  bool mmap, json, quiet;
} cli_options;

/* Fills `out` from the command line, each value checked by itself. A mistake is reported: BAD_USAGE. */
int options_parse(cli_options *out, int argc, char **argv);

void options_print_help(FILE *stream);
void options_print_usage(FILE *stream); /* the few lines for those who typed nothing */

#endif
