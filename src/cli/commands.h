/* commands.h - one function for each thing that ml_run does, each in its own file run_*.c. They open what
 * they need in the job, print results, and return DONE or the exit code of a failure that they reported. */
#ifndef ML_CLI_COMMANDS_H
#define ML_CLI_COMMANDS_H

#include "cli/job.h"

int run_generate(cli_job *job);
int run_logits(cli_job *job);
int run_perplexity(cli_job *job);
int run_imatrix(cli_job *job);
int run_trace(cli_job *job);
int run_bench(cli_job *job);
int run_info(cli_job *job);
int run_check(cli_job *job);
int run_verify(cli_job *job);
int run_tokenize(cli_job *job);
int run_detokenize(cli_job *job);

#endif
