/* package.h - where a model's files are: -m names a .mlb or .tinyloop file, or the folder of a model package, as
 * tools/model_package.py describes it: model.mlb or model.tinyloop, tokenizer.mlt and model.json. */
#ifndef ML_CLI_PACKAGE_H
#define ML_CLI_PACKAGE_H

#include "cli/options.h"

/* Each gives a path in a block from malloc, for the caller to free. */
int package_model_path(const char *model, char **path);
int package_tokenizer_path(const cli_options *options,
                           char **path); /* --tokenizer goes before the package's */

#endif
