/* The arrays of a file: their order, sizes and places against sums written out by hand from the format document. */
#include <stdio.h>

#include "test.h"
#include "tiny_file.h"

/* ---------------------------------------------------------------- a plain model, every offset spelled out */

TEST(mlb_walk_of_a_plain_model) {
  /* dim 32, two heads of 16, one key head, hidden_dim 64, vocab 5, Q8_0 with f32 scales */
  static const struct {
    ml_tensor tensor;
    int32_t layer;
    ml_element element;
    uint64_t rows, cols, offset, size;
  } expected[] = {
      {ML_TENSOR_TOK_EMB, -1, ML_ELEMENT_Q8, 5, 32, 256, 160},
      {ML_TENSOR_TOK_EMB, -1, ML_ELEMENT_D_F32, 5, 32, 448, 20},
      {ML_TENSOR_ATTN_NORM, 0, ML_ELEMENT_F32, 1, 32, 512, 128},
      {ML_TENSOR_WQ, 0, ML_ELEMENT_Q8, 32, 32, 640, 1024},
      {ML_TENSOR_WQ, 0, ML_ELEMENT_D_F32, 32, 32, 1664, 128},
      {ML_TENSOR_WK, 0, ML_ELEMENT_Q8, 16, 32, 1792, 512},
      {ML_TENSOR_WK, 0, ML_ELEMENT_D_F32, 16, 32, 2304, 64},
      {ML_TENSOR_WV, 0, ML_ELEMENT_Q8, 16, 32, 2368, 512},
      {ML_TENSOR_WV, 0, ML_ELEMENT_D_F32, 16, 32, 2880, 64},
      {ML_TENSOR_WO, 0, ML_ELEMENT_Q8, 32, 32, 2944, 1024},
      {ML_TENSOR_WO, 0, ML_ELEMENT_D_F32, 32, 32, 3968, 128},
      {ML_TENSOR_FFN_NORM, 0, ML_ELEMENT_F32, 1, 32, 4096, 128},
      {ML_TENSOR_W1, 0, ML_ELEMENT_Q8, 64, 32, 4224, 2048},
      {ML_TENSOR_W1, 0, ML_ELEMENT_D_F32, 64, 32, 6272, 256},
      {ML_TENSOR_W2, 0, ML_ELEMENT_Q8, 32, 64, 6528, 2048},
      {ML_TENSOR_W2, 0, ML_ELEMENT_D_F32, 32, 64, 8576, 256},
      {ML_TENSOR_W3, 0, ML_ELEMENT_Q8, 64, 32, 8832, 2048},
      {ML_TENSOR_W3, 0, ML_ELEMENT_D_F32, 64, 32, 10880, 256},
      {ML_TENSOR_ATTN_NORM, 1, ML_ELEMENT_F32, 1, 32, 11136, 128},
  };
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, NULL);
  ml_array array;
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    REQUIRE(ml_mlb_walk_next(&walk, &array));
    CHECK_EQ_TEXT(ml_tensor_name(array.tensor), ml_tensor_name(expected[i].tensor));
    CHECK_EQ_I64(array.layer, expected[i].layer);
    CHECK_EQ_U64(array.element, expected[i].element);
    CHECK_EQ_U64(array.rows, expected[i].rows);
    CHECK_EQ_U64(array.cols, expected[i].cols);
    CHECK_EQ_U64(array.offset, expected[i].offset);
    CHECK_EQ_U64(array.size, expected[i].size);
  }
  CHECK_EQ_U64(ml_mlb_file_size(&header, NULL), 22100);
}

/* ---------------------------------------------------------------- whole bodies as lists of sizes */

typedef struct sized_array {
  const char *name;
  ml_element element;
  uint64_t size;
} sized_array;

/* Compares all arrays with the lists of the sections, places them by itself, and gives the end of the last. */
static uint64_t check_body(const ml_mlb_header *header, const uint8_t *flags,
                           const sized_array *const *lists) {
  ml_mlb_walk walk = ml_mlb_walk_begin(header, flags);
  ml_array array;
  uint64_t offset = 256, end = 0;
  for (; *lists; lists++) {
    for (const sized_array *expected = *lists; expected->name; expected++) {
      if (!CHECK(ml_mlb_walk_next(&walk, &array))) return 0;
      CHECK_EQ_TEXT(ml_tensor_name(array.tensor), expected->name);
      CHECK_EQ_U64(array.element, expected->element);
      CHECK_EQ_U64(array.size, expected->size);
      CHECK_EQ_U64(array.offset, offset);
      end = offset + expected->size;
      offset = (end + 63) / 64 * 64;
    }
  }
  CHECK(!ml_mlb_walk_next(&walk, &array));
  CHECK(!ml_mlb_walk_next(&walk, &array)); /* and it stays at the end */
  CHECK_EQ_U64(ml_mlb_file_size(header, flags), end);
  return end;
}

TEST(mlb_walk_of_everything) {
  /* Q4_0 with Q8_0 for tok_emb, wv and lz, w2; f16 scales; head_dim 32: q_dim 64, kv_dim 32; four layers, the
   * second linear with 96 channels, 4 value heads of 16, 4 taps. */
  static const sized_array opening[] = {{"layer flags", ML_ELEMENT_U8, 4},
                                        {"tok_emb", ML_ELEMENT_Q8, 5 * 32},
                                        {"tok_emb", ML_ELEMENT_D_F16, 5 * 2},
                                        {0}};
  static const sized_array attention[] = {{"attn_norm", ML_ELEMENT_F32, 32 * 4},
                                          {"wq", ML_ELEMENT_Q4, 64 * 16},
                                          {"wq", ML_ELEMENT_D_F16, 64 * 2},
                                          {"wk", ML_ELEMENT_Q4, 32 * 16},
                                          {"wk", ML_ELEMENT_D_F16, 32 * 2},
                                          {"wv", ML_ELEMENT_Q8, 32 * 32},
                                          {"wv", ML_ELEMENT_D_F16, 32 * 2},
                                          {"wo", ML_ELEMENT_Q4, 32 * 32},
                                          {"wo", ML_ELEMENT_D_F16, 32 * 2 * 2},
                                          {"wg", ML_ELEMENT_Q4, 64 * 16}, /* wg-before-bias */
                                          {"wg", ML_ELEMENT_D_F16, 64 * 2},
                                          {"bq", ML_ELEMENT_F32, 64 * 4},
                                          {"bk", ML_ELEMENT_F32, 32 * 4},
                                          {"bv", ML_ELEMENT_F32, 32 * 4},
                                          {"q_norm", ML_ELEMENT_F32, 32 * 4},
                                          {"k_norm", ML_ELEMENT_F32, 32 * 4},
                                          {0}};
  static const sized_array linear[] = {{"attn_norm", ML_ELEMENT_F32, 32 * 4}, /* attn-norm-once */
                                       {"lqkv", ML_ELEMENT_Q4, 96 * 16},
                                       {"lqkv", ML_ELEMENT_D_F16, 96 * 2},
                                       {"lz", ML_ELEMENT_Q8, 64 * 32},
                                       {"lz", ML_ELEMENT_D_F16, 64 * 2},
                                       {"lb", ML_ELEMENT_Q8, 4 * 32},
                                       {"lb", ML_ELEMENT_D_F16, 4 * 2}, /* lb-la-scales */
                                       {"la", ML_ELEMENT_Q8, 4 * 32},
                                       {"la", ML_ELEMENT_D_F16, 4 * 2},
                                       {"lconv", ML_ELEMENT_F32, 96 * 4 * 4},
                                       {"dt_bias", ML_ELEMENT_F32, 4 * 4},
                                       {"A_log", ML_ELEMENT_F32, 4 * 4},
                                       {"lnorm", ML_ELEMENT_F32, 16 * 4},
                                       {"lout", ML_ELEMENT_Q4, 32 * 32},
                                       {"lout", ML_ELEMENT_D_F16, 32 * 2 * 2},
                                       {0}};
  static const sized_array ffn[] = {{"ffn_norm", ML_ELEMENT_F32, 32 * 4},
                                    {"w1", ML_ELEMENT_Q4, 64 * 16},
                                    {"w1", ML_ELEMENT_D_F16, 64 * 2},
                                    {"w2", ML_ELEMENT_Q8, 32 * 64},
                                    {"w2", ML_ELEMENT_D_F16, 32 * 2 * 2},
                                    {"w3", ML_ELEMENT_Q4, 64 * 16},
                                    {"w3", ML_ELEMENT_D_F16, 64 * 2},
                                    {"post_attn_norm", ML_ELEMENT_F32, 32 * 4}, /* linear-post-norms */
                                    {"post_ffn_norm", ML_ELEMENT_F32, 32 * 4},
                                    {0}};
  static const sized_array closing[] = {{"final_norm", ML_ELEMENT_F32, 32 * 4},
                                        {"wcls", ML_ELEMENT_Q4, 5 * 16},
                                        {"wcls", ML_ELEMENT_D_F16, 5 * 2},
                                        {0}};
  uint8_t bytes[ML_MLB_HEADER_SIZE], flags[4];
  tiny_everything(bytes, flags);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  const sized_array *const lists[] = {opening, attention, ffn, linear,  ffn, attention,
                                      ffn,     attention, ffn, closing, NULL};
  uint64_t end = check_body(&header, flags, lists);

  /* A shared classifier takes wcls away and nothing else. */
  header.shared_classifier = 3;
  static const sized_array closing_shared[] = {{"final_norm", ML_ELEMENT_F32, 32 * 4}, {0}};
  const sized_array *const shared_lists[] = {opening, attention, ffn, linear,         ffn, attention,
                                             ffn,     attention, ffn, closing_shared, NULL};
  CHECK_EQ_U64(check_body(&header, flags, shared_lists), end - (128 + 10));
}

/* ---------------------------------------------------------------- classes of q8_mask */

static void check_mask(uint32_t mask, bool shared, const char *q8_names) {
  uint8_t bytes[ML_MLB_HEADER_SIZE], flags[4];
  tiny_everything(bytes, flags);
  tiny_put(bytes, AT_Q8_MASK, mask);
  tiny_put(bytes, AT_SHARED_CLASSIFIER, shared);
  ml_mlb_header header;
  if (!CHECK(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK)) return;
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, flags);
  ml_array array;
  while (ml_mlb_walk_next(&walk, &array)) {
    if (array.element != ML_ELEMENT_Q8 && array.element != ML_ELEMENT_Q4) continue;
    char word[32];
    snprintf(word, sizeof word, " %s ", ml_tensor_name(array.tensor));
    if (!CHECK_EQ_I64(array.element == ML_ELEMENT_Q8, strstr(q8_names, word) != NULL))
      printf("\n    ... mask %u, tensor%s", mask, word);
  }
}

TEST(mlb_walk_q8_mask_classes) {
  check_mask(0, false, " lb la ");
  check_mask(1, false, " lb la tok_emb ");
  check_mask(2, false, " lb la wcls ");
  check_mask(4, false, " lb la wq wk wg lqkv ");
  check_mask(8, false, " lb la wv lz ");
  check_mask(16, false, " lb la wo lout ");
  check_mask(32, false, " lb la w1 w3 ");
  check_mask(64, false, " lb la w2 ");
  check_mask(127, false, " lb la tok_emb wcls wq wk wg lqkv wv lz wo lout w1 w3 w2 ");
  check_mask(0, true, " lb la ");
  check_mask(1, true, " lb la tok_emb "); /* shared-mask: either bit */
  check_mask(2, true, " lb la tok_emb ");
  check_mask(3, true, " lb la tok_emb ");
  check_mask(4, true, " lb la wq wk wg lqkv ");
}

/* ---------------------------------------------------------------- large files */

/* The most layers there can be: as many steps as arrays, and a sum that can be written down. */
TEST(mlb_walk_of_65536_layers) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  tiny_put(bytes, AT_N_LAYERS, 65536);
  tiny_put(bytes, AT_LAYER_FLAGS, 1);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  uint8_t *flags = calloc(1, 65536);
  REQUIRE(flags != NULL);
  ml_mlb_walk walk = ml_mlb_walk_begin(&header, flags);
  ml_array array;
  uint64_t n = 0;
  while (ml_mlb_walk_next(&walk, &array)) n++;
  CHECK_EQ_U64(n, 1 + 2 + 65536 * 16 + 1 + 2);
  /* 22100 bytes with two layers of 10624, then without them, and the flags in between */
  CHECK_EQ_U64(ml_mlb_file_size(&header, flags), 22100 + 65534 * UINT64_C(10624) + 65536);
  free(flags);
}

static uint64_t padded(uint64_t size) { return (size + 63) / 64 * 64; }

/* linear-limits: products past 32 bits are counted, and past 64 bits the sum stays at the largest number. */
TEST(mlb_walk_of_the_largest_linear_layer) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  for (uint32_t at = AT_LIN_K_HEADS; at <= AT_LIN_CONV; at += 4) tiny_put(bytes, at, 65536);
  tiny_put(bytes, AT_N_LAYERS, 1);
  tiny_put(bytes, AT_LAYER_FLAGS, 1);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  const uint64_t values = UINT64_C(1) << 32, channels = 3 * values;
  uint64_t expected = 256 + 64 + padded(160) + padded(20); /* header, flags, tok_emb */
  expected += 128;                                         /* attn_norm */
  expected += (channels + values) * (32 + 4);              /* lqkv, lz: 32 quants and a scale a row */
  expected += 2 * 65536 * (32 + 4);                        /* lb, la */
  expected += channels * 65536 * 4;                        /* lconv */
  expected += 3 * 65536 * 4;                               /* dt_bias, A_log, lnorm */
  expected += 32 * values + 32 * (values / 32) * 4;        /* lout */
  expected += 128 + 3 * (2048 + 256);                      /* ffn */
  expected += 128 + padded(160) + 20;                      /* final_norm, wcls */
  CHECK_EQ_U64(ml_mlb_file_size(&header, (uint8_t[]){8}), expected);

  ml_error error;
  CHECK_EQ_I64(ml_mlb_check_size(&header, (uint8_t[]){8}, 1 << 20, &error), ML_E_FORMAT);
  CHECK_EQ_I64(ml_mlb_check_size(&header, (uint8_t[]){8}, expected - 1, &error), ML_E_FORMAT);
  CHECK_EQ_I64(ml_mlb_check_size(&header, (uint8_t[]){8}, expected, &error), ML_OK);

  tiny_put(bytes, AT_N_LAYERS, 65536);
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  uint8_t *flags = malloc(65536);
  REQUIRE(flags != NULL);
  memset(flags, 8, 65536);
  CHECK_EQ_U64(ml_mlb_file_size(&header, flags), UINT64_MAX);
  CHECK_EQ_I64(ml_mlb_check_size(&header, flags, UINT64_MAX - 1, &error), ML_E_FORMAT);
  free(flags);
}

TEST(mlb_walk_of_the_largest_plain_model) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  tiny_put(bytes, AT_DIM, 65536);
  tiny_put(bytes, AT_HIDDEN_DIM, 65536);
  tiny_put(bytes, AT_N_KV_HEADS, 2);
  tiny_put(bytes, AT_N_LAYERS, 65536);
  tiny_put(bytes, AT_VOCAB, 1 << 24);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  const uint64_t square = (UINT64_C(1) << 32) / 32 * 36, table = (UINT64_C(1) << 40) / 32 * 36;
  CHECK_EQ_U64(ml_mlb_file_size(&header, NULL), 256 + 2 * table + 65536 * (7 * square + 2 * 262144) + 262144);
}

/* ---------------------------------------------------------------- sizes and quants */

TEST(mlb_size_check_names_both_numbers) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  ml_error error;
  CHECK_EQ_I64(ml_mlb_check_size(&header, NULL, 22100, &error), ML_OK);
  CHECK_EQ_I64(ml_mlb_check_size(&header, NULL, UINT64_MAX, &error), ML_OK);
  CHECK_EQ_I64(ml_mlb_check_size(&header, NULL, 22099, &error), ML_E_FORMAT);
  CHECK_EQ_TEXT(error.message,
                "file size = 22099: is less than the arrays that the header implies need: 22100 "
                "(offset 22099)");
  CHECK_EQ_I64(ml_mlb_check_size(&header, NULL, 256, NULL), ML_E_FORMAT);
}

TEST(mlb_q8_check_finds_minus_128) {
  uint8_t quants[255];
  for (uint32_t i = 0; i < 255; i++) quants[i] = (uint8_t)(i < 128 ? i : i + 1); /* every byte but 0x80 */
  ml_error error;
  CHECK_EQ_I64(ml_mlb_check_q8(quants, sizeof quants, 1000, &error), ML_OK);
  CHECK_EQ_I64(ml_mlb_check_q8(NULL, 0, 1000, &error), ML_OK);
  for (uint32_t i = 0; i < sizeof quants; i++) {
    uint8_t kept = quants[i];
    quants[i] = 0x80;
    CHECK_EQ_I64(ml_mlb_check_q8(quants, sizeof quants, 1000, &error), ML_E_FORMAT);
    CHECK_EQ_U64(error.offset, 1000 + i);
    quants[i] = kept;
  }
  CHECK(strstr(error.message, "-128") && strstr(error.message, "-127"));
}

TEST(mlb_tensor_names_are_distinct) {
  for (int a = 0; a < ML_N_TENSORS; a++) {
    const char *name = ml_tensor_name((ml_tensor)a);
    CHECK(name && name[0]);
    for (int b = 0; b < a; b++) CHECK(strcmp(name, ml_tensor_name((ml_tensor)b)) != 0);
  }
  CHECK_EQ_TEXT(ml_tensor_name(ML_N_TENSORS), "unknown tensor");
}
