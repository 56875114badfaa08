/* The importance matrix file: bytes written, and the check of foreign files. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/imatrix.h"
#include "test.h"
#include "tiny_file.h"

/* ---------------------------------------------------------------- writing */

TEST(imatrix_version_1_header) {
  ml_imatrix_header header = {.n_layers = 3,
                              .dim = 64,
                              .hidden_dim = 160,
                              .q_dim = 96,
                              .lin_value_dim = 0,
                              .layer_tokens = 0x0102030405060708,
                              .classifier_tokens = 9};
  static const uint8_t expected[40] = {'M', 'L', 'I', '1', 1, 0, 0, 0, 3, 0, 0, 0, 64, 0, 0, 0, 160, 0, 0, 0,
                                       96,  0,   0,   0,   8, 7, 6, 5, 4, 3, 2, 1, 9,  0, 0, 0, 0,   0, 0, 0};
  uint8_t bytes[41] = {[40] = 0x5a};
  CHECK_EQ_U64(ml_imatrix_header_size(&header), 40);
  ml_imatrix_write_header(&header, bytes);
  CHECK_EQ_BYTES(bytes, expected, 40);
  CHECK_EQ_U64(bytes[40], 0x5a);
  CHECK_EQ_U64(ml_imatrix_n_sums(&header, 0), 3 * (64 + 96 + 64 + 160) + 64);

  header.lin_value_dim = 96; /* mli1-linear: version 1 when it is q_dim */
  CHECK_EQ_U64(ml_imatrix_header_size(&header), 40);
  ml_imatrix_write_header(&header, bytes);
  CHECK_EQ_BYTES(bytes, expected, 40);
  CHECK_EQ_U64(ml_imatrix_n_sums(&header, 2), 3 * (64 + 96 + 64 + 160) + 64);

  header.q_dim = 64; /* "q_dim if it differs from dim, else 0" */
  header.lin_value_dim = 0;
  ml_imatrix_write_header(&header, bytes);
  CHECK_EQ_U64(ml_read_u32(bytes + 20), 0);
}

TEST(imatrix_version_2_header) {
  ml_imatrix_header header = {
      .n_layers = 4, .dim = 64, .hidden_dim = 160, .q_dim = 64, .lin_value_dim = 0x1234, .layer_tokens = 7};
  static const uint8_t expected[48] = {'M', 'L', 'I', '1', 2, 0, 0, 0, 4,    0,    0, 0, 64, 0, 0, 0,
                                       160, 0,   0,   0,   0, 0, 0, 0, 7,    0,    0, 0, 0,  0, 0, 0,
                                       0,   0,   0,   0,   0, 0, 0, 0, 0x34, 0x12, 0, 0, 0,  0, 0, 0};
  uint8_t bytes[48];
  memset(bytes, 0xff, sizeof bytes);
  CHECK_EQ_U64(ml_imatrix_header_size(&header), 48);
  ml_imatrix_write_header(&header, bytes);
  CHECK_EQ_BYTES(bytes, expected, 48);
  CHECK_EQ_U64(ml_imatrix_n_sums(&header, 3), 4 * (64 + 64 + 160) + 1 * 64 + 3 * 0x1234 + 64);
}

TEST(imatrix_sums_are_little_endian_doubles) {
  static const double sums[] = {0, 1, -2.5, 1e300};
  static const uint8_t expected[32] = {0,    0,    0,    0,    0,    0,    0,    0,    0,    0,   0,
                                       0,    0,    0,    0xf0, 0x3f, 0,    0,    0,    0,    0,   0,
                                       0x04, 0xc0, 0x9c, 0x75, 0x00, 0x88, 0x3c, 0xe4, 0x37, 0x7e};
  uint8_t bytes[33];
  ml_imatrix_write_sums(sums, 4, bytes + 1); /* at any address */
  CHECK_EQ_BYTES(bytes + 1, expected, 32);
}

/* ---------------------------------------------------------------- files */

enum { LAYERS = 3, DIM = 4, HIDDEN = 6, Q = 8 };

/* A valid file with sums 0, 1, 2 …; lin_value_dim 0: version 1. */
static uint8_t *make_file(uint32_t lin_value_dim, uint32_t n_linear, size_t *size) {
  ml_imatrix_header header = {.n_layers = LAYERS,
                              .dim = DIM,
                              .hidden_dim = HIDDEN,
                              .q_dim = Q,
                              .lin_value_dim = lin_value_dim,
                              .layer_tokens = 11,
                              .classifier_tokens = 1};
  size_t n_sums = (size_t)ml_imatrix_n_sums(&header, n_linear),
         start = (size_t)ml_imatrix_header_size(&header);
  *size = start + 8 * n_sums;
  uint8_t *bytes = malloc(*size);
  if (!bytes) abort();
  ml_imatrix_write_header(&header, bytes);
  for (size_t i = 0; i < n_sums; i++) {
    double sum = (double)i;
    ml_imatrix_write_sums(&sum, 1, bytes + start + 8 * i);
  }
  return bytes;
}

TEST(imatrix_reads_what_it_writes) {
  for (uint32_t lin_value_dim = 0; lin_value_dim <= 12; lin_value_dim += 12) {
    size_t size;
    uint8_t *bytes = make_file(lin_value_dim, lin_value_dim ? 2 : 0, &size);
    ml_imatrix_header header;
    CHECK_EQ_I64(ml_imatrix_read_header(&header, bytes, size, NULL), ML_OK);
    CHECK_EQ_U64(header.n_layers, LAYERS);
    CHECK_EQ_U64(header.dim, DIM);
    CHECK_EQ_U64(header.hidden_dim, HIDDEN);
    CHECK_EQ_U64(header.q_dim, Q);
    CHECK_EQ_U64(header.lin_value_dim, lin_value_dim);
    CHECK_EQ_U64(header.layer_tokens, 11);
    CHECK_EQ_U64(header.classifier_tokens, 1);
    CHECK_EQ_I64(ml_imatrix_check_file(bytes, size, NULL), ML_OK);
    free(bytes);
  }
}

TEST(imatrix_header_alone) {
  for (uint32_t lin_value_dim = 0; lin_value_dim <= 12; lin_value_dim += 12) {
    size_t size, header_size = lin_value_dim ? 48 : 40;
    uint8_t *bytes = make_file(lin_value_dim, 0, &size);
    ml_imatrix_header header;
    CHECK_EQ_I64(ml_imatrix_read_header(&header, bytes, header_size, NULL), ML_OK);
    for (size_t cut = 0; cut < header_size; cut++) {
      ml_error error;
      CHECK_EQ_I64(ml_imatrix_read_header(&header, bytes, cut, &error), ML_E_FORMAT);
      CHECK_EQ_U64(error.offset, cut);
      CHECK(strstr(error.message, "must hold the header"));
    }
    free(bytes);
  }
}

TEST(imatrix_messages_name_the_right_size) {
  ml_error error;
  size_t size;
  uint8_t *bytes = make_file(0, 0, &size);
  CHECK_EQ_U64(size, 40 + 8 * (3 * (4 + 8 + 4 + 6) + 4));
  CHECK_EQ_I64(ml_imatrix_check_file(bytes, size - 8, &error), ML_E_FORMAT);
  CHECK_EQ_TEXT(error.message, "file size = 592: must be, for the header's dimensions, 600 (offset 592)");
  free(bytes);
  bytes = make_file(12, 3, &size);
  CHECK_EQ_U64(size, 48 + 8 * (3 * (4 + 12 + 4 + 6) + 4));
  CHECK_EQ_I64(ml_imatrix_check_file(bytes, size - 8, &error), ML_E_FORMAT);
  CHECK_EQ_TEXT(
      error.message,
      "file size = 696: fits no number of linear layers; for all layers linear it would be 704 (offset 696)");
  free(bytes);
}

TEST(imatrix_q_dim_0_means_dim) {
  size_t size;
  uint8_t *bytes = make_file(0, 0, &size);
  ml_write_u32(bytes + 20, 0);
  ml_imatrix_header header;
  CHECK_EQ_I64(ml_imatrix_read_header(&header, bytes, size, NULL), ML_OK);
  CHECK_EQ_U64(header.q_dim, DIM);
  CHECK_EQ_I64(ml_imatrix_check_file(bytes, size, NULL), ML_E_FORMAT); /* now too long */
  CHECK_EQ_I64(ml_imatrix_check_file(bytes, 40 + 8 * (LAYERS * (2 * DIM + DIM + HIDDEN) + DIM), NULL), ML_OK);
  free(bytes);
}

TEST(imatrix_field_rules) {
  static const struct {
    uint32_t at, value;
    ml_status status;
  } cases[] = {
      {0, 0x31494c4c, ML_E_FORMAT}, /* another magic */
      {4, 0, ML_E_FORMAT},          {4, 3, ML_E_FORMAT},
      {8, 0, ML_E_FORMAT},          {8, 65536, ML_OK},
      {8, 65537, ML_E_FORMAT},      {12, 0, ML_E_FORMAT},
      {12, 65536, ML_OK},           {12, 65537, ML_E_FORMAT},
      {16, 0, ML_E_FORMAT},         {16, 65536, ML_OK},
      {16, 65537, ML_E_FORMAT},     {20, 65536, ML_OK},
      {20, 65537, ML_E_FORMAT},     {20, UINT32_MAX, ML_E_FORMAT},
      {40, 0, ML_E_FORMAT}, /* version 2 from here on */
      {40, Q, ML_E_FORMAT},         {40, UINT32_MAX, ML_OK},
      {44, 1, ML_E_FORMAT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t size;
    uint8_t *bytes = make_file(cases[i].at >= 40 ? 12 : 0, cases[i].at >= 40, &size);
    ml_write_u32(bytes + cases[i].at, cases[i].value);
    ml_imatrix_header header, before;
    memset(&header, 0x5a, sizeof header);
    memcpy(&before, &header, sizeof header);
    ml_error error;
    error.offset = cases[i].at;
    CHECK_EQ_I64(ml_imatrix_read_header(&header, bytes, size, &error), cases[i].status);
    CHECK_EQ_U64(error.offset, cases[i].at);
    if (cases[i].status != ML_OK) CHECK_EQ_BYTES(&header, &before, sizeof header);
    free(bytes);
  }
}

TEST(imatrix_refuses_every_other_size) {
  for (uint32_t lin_value_dim = 0; lin_value_dim <= 12; lin_value_dim += 12) {
    size_t size;
    uint8_t *bytes = make_file(lin_value_dim, lin_value_dim ? LAYERS : 0, &size);
    uint8_t *longer = calloc(1, size + 100);
    REQUIRE(longer != NULL);
    memcpy(longer, bytes, size);
    for (size_t cut = 0; cut <= size + 100; cut++) {
      ml_status expected = cut == size ? ML_OK : ML_E_FORMAT;
      /* version 2 with fewer linear layers: each is 12 instead of 8 sums */
      if (lin_value_dim && (cut + 32 == size || cut + 64 == size)) expected = ML_OK;
      CHECK_EQ_I64(ml_imatrix_check_file(longer, cut, NULL), expected);
    }
    free(longer);
    free(bytes);
  }
}

/* A linear layer's slot may also be narrower than q_dim. */
TEST(imatrix_version_2_with_narrow_linear_layers) {
  for (uint32_t n_linear = 1; n_linear <= LAYERS; n_linear++) {
    size_t size;
    uint8_t *bytes = make_file(2, n_linear, &size);
    CHECK_EQ_I64(ml_imatrix_check_file(bytes, size, NULL), ML_OK);
    CHECK_EQ_I64(ml_imatrix_check_file(bytes, size - 8, NULL), ML_E_FORMAT);
    free(bytes);
  }
  size_t size;
  uint8_t *bytes = make_file(2, 0, &size); /* no linear layer explains this size */
  CHECK_EQ_I64(ml_imatrix_check_file(bytes, size, NULL), ML_E_FORMAT);
  free(bytes);
}

TEST(imatrix_refuses_sums_that_are_no_sums_of_squares) {
  static const double bad[] = {-1, -DBL_TRUE_MIN, INFINITY, -INFINITY, NAN};
  static const double good[] = {0, -0.0, DBL_TRUE_MIN, DBL_MAX};
  size_t size;
  uint8_t *bytes = make_file(0, 0, &size);
  for (size_t at = 40; at < size; at += 8) {
    double kept;
    memcpy(&kept, bytes + at, 8);
    for (size_t i = 0; i < 5; i++) {
      ml_imatrix_write_sums(&bad[i], 1, bytes + at);
      ml_error error;
      CHECK_EQ_I64(ml_imatrix_check_file(bytes, size, &error), ML_E_FORMAT);
      CHECK_EQ_U64(error.offset, at);
    }
    for (size_t i = 0; i < 4; i++) {
      ml_imatrix_write_sums(&good[i], 1, bytes + at);
      CHECK_EQ_I64(ml_imatrix_check_file(bytes, size, NULL), ML_OK);
    }
    ml_imatrix_write_sums(&kept, 1, bytes + at);
  }
  free(bytes);
}

TEST(imatrix_survives_any_bit_flip) {
  for (uint32_t lin_value_dim = 0; lin_value_dim <= 12; lin_value_dim += 12) {
    size_t size;
    uint8_t *bytes = make_file(lin_value_dim, lin_value_dim ? 1 : 0, &size);
    for (uint32_t bit = 0; bit < 8 * size; bit++) {
      bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
      ml_status status = ml_imatrix_check_file(bytes, size, NULL);
      CHECK(status == ML_OK || status == ML_E_FORMAT);
      bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bytes);
  }
}

/* ---------------------------------------------------------------- gathering */

/* A step that ends in ML_E_NUMERIC leaves nothing in the sums that is not finite. */
TEST(imatrix_of_a_model_that_runs_away) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header);
  tiny_file file = tiny_build(header, NULL);
  REQUIRE(file.bytes != NULL);
  tiny_put_f32(file.bytes + 11136, 0, NAN); /* attn_norm of layer 1: test_mlb_walk.c */
  ml_model *model;
  ml_imatrix *imatrix;
  ml_session *session;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  REQUIRE(ml_imatrix_new(&imatrix, model, NULL, NULL) == ML_OK);
  REQUIRE(ml_session_new(&session, model, &(ml_session_options){.imatrix = imatrix}, NULL) == ML_OK);
  CHECK_EQ_I64(ml_session_eval(session, (int32_t[]){1, 2}, 2, NULL), ML_E_NUMERIC);
  uint64_t size = ml_imatrix_size(imatrix);
  uint8_t *bytes = malloc((size_t)size);
  REQUIRE(bytes != NULL);
  ml_imatrix_write(imatrix, bytes);
  CHECK_EQ_I64(ml_imatrix_check(bytes, (size_t)size, NULL), ML_OK);
  CHECK_EQ_U64(ml_read_u64(bytes + 24), 2); /* tokens that went through layer 0 */
  CHECK_EQ_U64(ml_read_u64(bytes + 32), 0); /* and reached the classifier */
  CHECK(ml_read_u64(bytes + 40) != 0);
  free(bytes);
  ml_session_free(session);
  ml_imatrix_free(imatrix);
  ml_model_free(model);
  tiny_free(&file);
}
