/* prompt.h - text on its way to ids: the tokenizer, and the text that the options name. */
#ifndef ML_CLI_PROMPT_H
#define ML_CLI_PROMPT_H

#include "cli/job.h"

/* Opens the tokenizer of --tokenizer, or of the package that -m names, once. */
int prompt_open_tokenizer(cli_job *job);

/* Encodes `size` bytes into `out` as --special says. A BOS that the text spells itself is not doubled. */
int prompt_encode(const cli_job *job, const char *text, size_t size, id_list *out);

/* Encodes the text of --prompt, --prompt-file or --perplexity FILE into job->ids. */
int prompt_read(cli_job *job);

/* Is there such a text? */
bool prompt_given(const cli_options *options);

#endif
