/* imatrix.h - the importance matrix file (MLI1): header and sums to bytes, and the check of foreign bytes.
 *
 *   version 1                                   version 2 (docs/FORMAT-notes.md)
 *   +-----------+-------------------------+     +-----------+-------------------------+
 *   | header 40 | float64 sums ...        |     | header 48 | float64 sums ...        |
 *   +-----------+-------------------------+     +-----------+-------------------------+
 *   sums: for each layer: wq/wk/wv input (dim), wo input (q_dim; version 2: lin_value_dim in linear layers),
 *   w1/w3 input (dim), w2 input (hidden_dim); then the classifier input (dim). */
#ifndef ML_FORMAT_IMATRIX_H
#define ML_FORMAT_IMATRIX_H

#include "ml.h"

typedef struct ml_imatrix_header {
  uint32_t n_layers, dim, hidden_dim, q_dim;
  uint32_t lin_value_dim; /* 0, or size of a linear layer's wo slot: makes the file version 2 if != q_dim */
  uint64_t layer_tokens;  /* summed into the layers */
  uint64_t classifier_tokens;
} ml_imatrix_header;

uint64_t ml_imatrix_header_size(const ml_imatrix_header *header); /* 40 or 48 */
/* Doubles after the header when `n_linear_layers` of the layers are linear. */
uint64_t ml_imatrix_n_sums(const ml_imatrix_header *header, uint32_t n_linear_layers);

void ml_imatrix_write_header(const ml_imatrix_header *header, uint8_t *out);
void ml_imatrix_write_sums(const double *sums, size_t n, uint8_t *out); /* little-endian float64 */

/* Reads and checks magic, version, dimensions (1 to 65536, in a q_dim of 0 dim is filled in); ML_E_FORMAT
 * otherwise. `size` may be less than a header, which is an error. `header` is untouched on failure. */
ml_status ml_imatrix_read_header(ml_imatrix_header *header, const uint8_t *bytes, uint64_t size,
                                 ml_error *error);

/* A whole file: the header, a size that fits it exactly, and sums that can be sums of squares (finite, not
 * negative). ML_E_FORMAT otherwise. */
ml_status ml_imatrix_check_file(const uint8_t *bytes, uint64_t size, ml_error *error);

#endif
