/* ml_run.c - the native command line: options to a job, and the job to the command that does it. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/summary.h"

static int list_isas(void) {
  const char *name;
  for (size_t i = 0; (name = ml_isa_name(i)) != NULL; i++) puts(name);
  return DONE;
}

static int print_help(void) {
  options_print_help(stdout);
  return DONE;
}

static int run(cli_job *job) {
  switch (job->options->mode) {
    case MODE_GENERATE: return run_generate(job);
    case MODE_LOGITS: return run_logits(job);
    case MODE_PERPLEXITY: return run_perplexity(job);
    case MODE_IMATRIX: return run_imatrix(job);
    case MODE_TRACE: return run_trace(job);
    case MODE_BENCH: return run_bench(job);
    case MODE_INFO: return run_info(job);
    case MODE_CHECK: return run_check(job);
    case MODE_VERIFY: return run_verify(job);
    case MODE_TOKENIZE: return run_tokenize(job);
    case MODE_DETOKENIZE: return run_detokenize(job);
    case MODE_LIST_ISAS: return list_isas();
    case MODE_HELP: return print_help();
  }
  return BAD_USAGE;
}

int main(int argc, char **argv) {
  interrupt_ignore_broken_pipes();
  if (argc < 2) {
    options_print_usage(stderr);
    return BAD_USAGE;
  }
  cli_options options;
  TRY(options_parse(&options, argc, argv));
  if (options.quiet) report_be_quiet();
  cli_job job = {.options = &options};
  int code = run(&job);
  progress_end();
  job_close(&job);
  return code == DONE ? finish_output() : code;
}
