/* imatrix.c - reading and writing the importance matrix file. */
#include "format/imatrix.h"

#include <float.h>

#include "base/bytes.h"
#include "base/error.h"

enum {
  VERSION_AT = 4,
  N_LAYERS_AT = 8,
  DIM_AT = 12,
  HIDDEN_DIM_AT = 16,
  Q_DIM_AT = 20,
  LAYER_TOKENS_AT = 24,
  CLASSIFIER_TOKENS_AT = 32,
  HEADER_SIZE_V1 = 40,
  LIN_VALUE_DIM_AT = 40, /* version 2 */
  ZERO_AT = 44,
  HEADER_SIZE_V2 = 48,
  MAX_DIM = 65536 /* as in the model file */
};

/* Version 1 has no place for linear layers whose output matrix is wider or narrower than wo. */
static bool is_version_2(const ml_imatrix_header *header) {
  return header->lin_value_dim != 0 && header->lin_value_dim != header->q_dim;
}

uint64_t ml_imatrix_header_size(const ml_imatrix_header *header) {
  return is_version_2(header) ? HEADER_SIZE_V2 : HEADER_SIZE_V1;
}

uint64_t ml_imatrix_n_sums(const ml_imatrix_header *header, uint32_t n_linear_layers) {
  uint64_t linear_wo = is_version_2(header) ? header->lin_value_dim : header->q_dim;
  uint64_t per_layer = 2 * (uint64_t)header->dim + header->hidden_dim;
  uint64_t n = ml_mul_sizes(header->n_layers, per_layer);
  n = ml_add_sizes(n, ml_mul_sizes(header->n_layers - n_linear_layers, header->q_dim));
  n = ml_add_sizes(n, ml_mul_sizes(n_linear_layers, linear_wo));
  return ml_add_sizes(n, header->dim);
}

void ml_imatrix_write_header(const ml_imatrix_header *header, uint8_t *out) {
  memcpy(out, "MLI1", 4);
  ml_write_u32(out + VERSION_AT, is_version_2(header) ? 2 : 1);
  ml_write_u32(out + N_LAYERS_AT, header->n_layers);
  ml_write_u32(out + DIM_AT, header->dim);
  ml_write_u32(out + HIDDEN_DIM_AT, header->hidden_dim);
  ml_write_u32(out + Q_DIM_AT, header->q_dim == header->dim ? 0 : header->q_dim);
  ml_write_u64(out + LAYER_TOKENS_AT, header->layer_tokens);
  ml_write_u64(out + CLASSIFIER_TOKENS_AT, header->classifier_tokens);
  if (!is_version_2(header)) return;
  ml_write_u32(out + LIN_VALUE_DIM_AT, header->lin_value_dim);
  ml_write_u32(out + ZERO_AT, 0);
}

void ml_imatrix_write_sums(const double *sums, size_t n, uint8_t *out) {
  for (size_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &sums[i], sizeof bits);
    ml_write_u64(out + 8 * i, bits);
  }
}

/* ---------------------------------------------------------------- foreign bytes */

static ml_status check_dimension(const char *name, const uint8_t *bytes, uint32_t at, ml_error *error) {
  uint32_t value = ml_read_u32(bytes + at);
  if (value == 0)
    return ml_fail(error, ML_E_FORMAT, name, ml_uint(value), "must be at least", ml_uint(1), at);
  if (value > MAX_DIM)
    return ml_fail(error, ML_E_FORMAT, name, ml_uint(value), "must be at most", ml_uint(MAX_DIM), at);
  return ML_OK;
}

static ml_status check_header_size(uint64_t size, uint64_t needed, ml_error *error) {
  if (size >= needed) return ML_OK;
  return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                 "must hold the header, bytes:", ml_uint(needed), size);
}

static ml_status read_version_2(ml_imatrix_header *header, const uint8_t *bytes, uint64_t size,
                                ml_error *error) {
  ML_TRY(check_header_size(size, HEADER_SIZE_V2, error));
  header->lin_value_dim = ml_read_u32(bytes + LIN_VALUE_DIM_AT);
  if (!is_version_2(header))
    return ml_fail(error, ML_E_FORMAT, "lin_v_heads x lin_v_dim", ml_uint(header->lin_value_dim),
                   "must, in version 2, be neither 0 nor q_dim =", ml_uint(header->q_dim), LIN_VALUE_DIM_AT);
  uint32_t zero = ml_read_u32(bytes + ZERO_AT);
  if (zero) return ml_fail(error, ML_E_FORMAT, "reserved", ml_uint(zero), "must be", ml_uint(0), ZERO_AT);
  return ML_OK;
}

ml_status ml_imatrix_read_header(ml_imatrix_header *header, const uint8_t *bytes, uint64_t size,
                                 ml_error *error) {
  ML_TRY(check_header_size(size, HEADER_SIZE_V1, error));
  if (memcmp(bytes, "MLI1", 4) != 0)
    return ml_fail(error, ML_E_FORMAT, "magic", ml_uint(ml_read_u32(bytes)), "must be", ml_text("\"MLI1\""),
                   0);
  uint32_t version = ml_read_u32(bytes + VERSION_AT);
  if (version != 1 && version != 2)
    return ml_fail(error, ML_E_FORMAT, "version", ml_uint(version), "must be", ml_text("1 or 2"), VERSION_AT);
  ML_TRY(check_dimension("n_layers", bytes, N_LAYERS_AT, error));
  ML_TRY(check_dimension("dim", bytes, DIM_AT, error));
  ML_TRY(check_dimension("hidden_dim", bytes, HIDDEN_DIM_AT, error));
  if (ml_read_u32(bytes + Q_DIM_AT)) ML_TRY(check_dimension("q_dim", bytes, Q_DIM_AT, error));

  ml_imatrix_header draft;
  memset(&draft, 0, sizeof draft);
  draft.n_layers = ml_read_u32(bytes + N_LAYERS_AT);
  draft.dim = ml_read_u32(bytes + DIM_AT);
  draft.hidden_dim = ml_read_u32(bytes + HIDDEN_DIM_AT);
  draft.q_dim = ml_read_u32(bytes + Q_DIM_AT);
  if (draft.q_dim == 0) draft.q_dim = draft.dim;
  draft.layer_tokens = ml_read_u64(bytes + LAYER_TOKENS_AT);
  draft.classifier_tokens = ml_read_u64(bytes + CLASSIFIER_TOKENS_AT);
  if (version == 2) ML_TRY(read_version_2(&draft, bytes, size, error));
  *header = draft;
  return ML_OK;
}

/* The file does not say which layers are linear, so in version 2 any number of them may explain the size. */
static ml_status check_size(const ml_imatrix_header *header, uint64_t size, ml_error *error) {
  uint64_t header_size = ml_imatrix_header_size(header);
  uint64_t n_sums = (size - header_size) / 8;
  bool whole = (size - header_size) % 8 == 0;
  uint64_t needed = ml_imatrix_n_sums(header, 0);
  if (!is_version_2(header)) {
    if (whole && n_sums == needed) return ML_OK;
    return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size), "must be, for the header's dimensions,",
                   ml_uint(header_size + 8 * needed), size);
  }
  bool wider = header->lin_value_dim > header->q_dim;
  uint64_t per_layer = wider ? header->lin_value_dim - header->q_dim : header->q_dim - header->lin_value_dim;
  uint64_t extra = wider ? n_sums - needed : needed - n_sums; /* wraps to a huge number when out of range */
  if (whole && extra % per_layer == 0 && extra / per_layer >= 1 && extra / per_layer <= header->n_layers)
    return ML_OK;
  return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                 "fits no number of linear layers; for all layers linear it would be",
                 ml_uint(header_size + 8 * ml_imatrix_n_sums(header, header->n_layers)), size);
}

ml_status ml_imatrix_check_file(const uint8_t *bytes, uint64_t size, ml_error *error) {
  ml_imatrix_header header;
  ML_TRY(ml_imatrix_read_header(&header, bytes, size, error));
  ML_TRY(check_size(&header, size, error));
  for (uint64_t at = ml_imatrix_header_size(&header); at < size; at += 8) {
    uint64_t bits = ml_read_u64(bytes + at);
    double sum;
    memcpy(&sum, &bits, sizeof sum);
    if (!(sum >= 0 && sum <= DBL_MAX))
      return ml_fail(error, ML_E_FORMAT, "sum of squares", ml_real(sum), "must be finite and at least",
                     ml_uint(0), at);
  }
  return ML_OK;
}
