/* npy.h - a matrix as NumPy's .npy file, format version 1.0, row by row.
 *
 *   +------------------+---------------+------------------------------------------------+----------+
 *   | "\x93NUMPY" 1 0  | u16 length    | {'descr': '<f4', 'fortran_order': False, ... } | data ... |
 *   +------------------+---------------+------------------------------------------------+----------+
 *   0                  8               10             blanks up to a multiple of 64, then a newline */
#ifndef ML_CLI_NPY_H
#define ML_CLI_NPY_H

#include <stdbool.h>

#include "cli/files.h"

/* Writes the header of `rows` x `columns` floats, or doubles; the rows follow by output_write, in the
 * machine's own byte order, which the header states. */
int npy_write_header(output_file *file, bool is_double, size_t rows, size_t columns);

#endif
