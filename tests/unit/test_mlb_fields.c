/* What is read from a header (fields, derived values), hostile bytes, and the rules of the layer flags. */
#include <stdio.h>

#include "test.h"
#include "tiny_file.h"

TEST(mlb_header_magic) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  ml_mlb_header header;
  ml_error error;
  for (uint32_t i = 0; i < 4; i++) {
    tiny_header(bytes);
    bytes[i] ^= 0x20;
    CHECK_EQ_I64(ml_mlb_read_header(&header, bytes, sizeof bytes, &error), ML_E_FORMAT);
    CHECK_EQ_U64(error.offset, 0);
    CHECK(strstr(error.message, "magic") && strstr(error.message, "MLB1"));
  }
}

TEST(mlb_header_shorter_than_256_bytes) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  ml_mlb_header header;
  ml_error error;
  CHECK_EQ_I64(ml_mlb_read_header(&header, NULL, 0, &error), ML_E_FORMAT); /* an empty file */
  CHECK_EQ_U64(error.offset, 0);
  for (uint64_t size = 0; size < sizeof bytes; size++) {
    CHECK_EQ_I64(ml_mlb_read_header(&header, bytes, size, &error), ML_E_FORMAT);
    CHECK_EQ_U64(error.offset, size);
  }
  CHECK(strstr(error.message, "255") && strstr(error.message, "256"));
  CHECK_EQ_I64(ml_mlb_read_header(&header, bytes, sizeof bytes, &error), ML_OK);
}

TEST(mlb_header_reserved_bytes) {
  for (uint32_t at = AT_RESERVED; at < ML_MLB_HEADER_SIZE; at++) {
    uint8_t bytes[ML_MLB_HEADER_SIZE];
    tiny_header(bytes);
    bytes[at] = 1;
    ml_mlb_header header;
    ml_error error;
    CHECK_EQ_I64(ml_mlb_read_header(&header, bytes, sizeof bytes, &error), ML_E_FORMAT);
    CHECK_EQ_U64(error.offset, at);
  }
}

TEST(mlb_header_values_are_read) {
  uint8_t bytes[ML_MLB_HEADER_SIZE], flags[4];
  tiny_everything(bytes, flags);
  tiny_put(bytes, AT_SHARED_CLASSIFIER, 77);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  CHECK_EQ_U64(header.dim, 32);
  CHECK_EQ_U64(header.n_layers, 4);
  CHECK_EQ_U64(header.n_heads, 2);
  CHECK_EQ_U64(header.n_kv_heads, 1);
  CHECK_EQ_U64(header.hidden_dim, 64);
  CHECK_EQ_U64(header.vocab, 5);
  CHECK_EQ_U64(header.max_seq, 16);
  CHECK_EQ_F32_BITS(header.rope_theta, 10000.0f);
  CHECK_EQ_F32_BITS(header.norm_eps, 1e-5f);
  CHECK_EQ_U64(header.wtype, 2);
  CHECK_EQ_U64(header.shared_classifier, 77);
  CHECK_EQ_U64(header.rope_type, 3);
  CHECK_EQ_F32_BITS(header.rope_factor, 4.0f);
  CHECK_EQ_F32_BITS(header.rope_low_freq_factor, 32.0f);
  CHECK_EQ_F32_BITS(header.rope_high_freq_factor, 1.0f);
  CHECK_EQ_U64(header.rope_orig_max_seq, 8);
  CHECK_EQ_U64(header.q8_mask, 73);
  CHECK_EQ_U64(header.qkv_bias, 1);
  CHECK_EQ_U64(header.head_dim, 32);
  CHECK_EQ_U64(header.qk_norm, 1);
  CHECK_EQ_F32_BITS(header.rope_attn_factor, 1.125f);
  CHECK_EQ_U64(header.sliding_window, 3);
  CHECK_EQ_U64(header.layer_flags, 1);
  CHECK_EQ_F32_BITS(header.rope_local_theta, 100.0f);
  CHECK_EQ_U64(header.act, 1);
  CHECK_EQ_U64(header.post_norms, 1);
  CHECK_EQ_F32_BITS(header.embed_scale, 4.0f);
  CHECK_EQ_F32_BITS(header.attn_scale, 0.25f);
  CHECK_EQ_U64(header.scale_f16, 1);
  CHECK_EQ_F32_BITS(header.attn_softcap, 20.0f);
  CHECK_EQ_F32_BITS(header.final_softcap, 30.0f);
  CHECK_EQ_U64(header.rot_dim, 8);
  CHECK_EQ_U64(header.attn_gate, 1);
  CHECK_EQ_U64(header.lin_k_heads, 2);
  CHECK_EQ_U64(header.lin_v_heads, 4);
  CHECK_EQ_U64(header.lin_k_dim, 8);
  CHECK_EQ_U64(header.lin_v_dim, 16);
  CHECK_EQ_U64(header.lin_conv, 4);
}

TEST(mlb_header_derived_values) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  ml_mlb_header header;
  tiny_header(bytes);
  tiny_linear(bytes);
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  CHECK_EQ_U64(header.head_dim, 0); /* as stored */
  CHECK_EQ_U64(header.head_size, 16);
  CHECK_EQ_U64(header.q_dim, 32);
  CHECK_EQ_U64(header.kv_dim, 16);
  CHECK_EQ_U64(header.lin_channels, 2 * 2 * 8 + 4 * 16);
  CHECK_EQ_U64(header.lin_value_dim, 64);

  tiny_put(bytes, AT_HEAD_DIM, 48);
  tiny_put(bytes, AT_LIN_K_HEADS, 0);
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  CHECK_EQ_U64(header.head_size, 48);
  CHECK_EQ_U64(header.q_dim, 96);
  CHECK_EQ_U64(header.kv_dim, 48);
  CHECK_EQ_U64(header.lin_channels, 0);
  CHECK_EQ_U64(header.lin_value_dim, 0);

  for (uint32_t at = AT_LIN_K_HEADS; at <= AT_LIN_CONV; at += 4) tiny_put(bytes, at, 65536);
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  CHECK_EQ_U64(header.lin_channels, UINT64_C(3) << 32);
  CHECK_EQ_U64(header.lin_value_dim, UINT64_C(1) << 32);
}

/* Any bytes at all: a status, and sizes that can be added up. The sanitizers watch. */
TEST(mlb_header_survives_any_bit_flip) {
  for (int base = 0; base < 4; base++) {
    for (uint32_t bit = 0; bit < 8 * ML_MLB_HEADER_SIZE; bit++) {
      uint8_t bytes[ML_MLB_HEADER_SIZE];
      tiny_header(bytes);
      if (base == 1) tiny_llama3(bytes);
      if (base == 2) tiny_yarn(bytes);
      if (base == 3) tiny_linear(bytes);
      bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
      ml_mlb_header header;
      ml_status status = ml_mlb_read_header(&header, bytes, sizeof bytes, NULL);
      CHECK(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
      if (status == ML_OK && !header.layer_flags && header.n_layers < 1000)
        CHECK(ml_mlb_file_size(&header, NULL) > ML_MLB_HEADER_SIZE);
    }
  }
}

TEST(mlb_header_survives_random_bytes) {
  for (int i = 0; i < 20000; i++) {
    uint8_t bytes[ML_MLB_HEADER_SIZE];
    tiny_header(bytes);
    for (uint32_t n = 1 + test_random_below(6); n; n--) {
      uint32_t at = 8 + 4 * test_random_below(38);
      tiny_put(bytes, at, (uint32_t)test_random_u64() >> test_random_below(32));
    }
    ml_mlb_header header;
    ml_error error;
    ml_status status = ml_mlb_read_header(&header, bytes, sizeof bytes, &error);
    CHECK(status == ML_OK || (error.offset >= 8 && error.offset < 160));
  }
}

/* ---------------------------------------------------------------- layer flags */

static void check_flags(bool has_dims, float local_theta, uint8_t flags_of_layer_1, ml_status expected) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  if (has_dims) tiny_linear(bytes);
  tiny_put(bytes, AT_LAYER_FLAGS, 1);
  tiny_put_f32(bytes, AT_ROPE_LOCAL_THETA, local_theta);
  ml_mlb_header header;
  if (!CHECK_EQ_I64(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL), ML_OK)) return;
  uint8_t flags[3] = {0, flags_of_layer_1, 0xff}; /* the third is past the two layers */
  ml_error error;
  error.offset = ML_NO_OFFSET;
  ml_status status = ml_mlb_check_flags(&header, flags, &error);
  bool as_expected = CHECK_EQ_I64(status, expected);
  if (status != ML_OK) {
    as_expected &= CHECK_EQ_U64(error.offset, 257);
    as_expected &= CHECK(strstr(error.message, "layer 1"));
  }
  if (!as_expected) printf("\n    ... flags %u: \"%s\"", flags_of_layer_1, error.message);
}

/* All 256 values, with and without what they need, against the document's sentences. */
TEST(mlb_flags_of_every_value) {
  for (uint32_t value = 0; value < 256; value++) {
    for (int given = 0; given < 4; given++) {
      bool has_theta = given & 1, has_dims = given & 2;
      bool local = value & 2, nope = value & 4, linear = value & 8;
      ml_status expected = ML_OK;
      if (linear && !has_dims) expected = ML_E_SHAPE;
      if (local && !has_theta) expected = ML_E_FORMAT;
      if (local && nope) expected = ML_E_FORMAT;
      if (linear && value != 8) expected = ML_E_FORMAT;
      if (value > 15) expected = ML_E_FORMAT;
      check_flags(has_dims, has_theta ? 100.0f : 0.0f, (uint8_t)value, expected);
    }
  }
  check_flags(false, -0.0f, 2, ML_E_FORMAT); /* minus zero is no base */
}

TEST(mlb_flags_first_broken_layer_wins) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  tiny_header(bytes);
  tiny_put(bytes, AT_LAYER_FLAGS, 1);
  tiny_put(bytes, AT_N_LAYERS, 65536);
  ml_mlb_header header;
  REQUIRE(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL) == ML_OK);
  uint8_t *flags = calloc(1, 65536);
  REQUIRE(flags != NULL);
  ml_error error;
  CHECK_EQ_I64(ml_mlb_check_flags(&header, flags, &error), ML_OK);
  flags[65535] = 16;
  CHECK_EQ_I64(ml_mlb_check_flags(&header, flags, &error), ML_E_FORMAT);
  CHECK_EQ_U64(error.offset, 256 + 65535);
  flags[40000] = 8;
  CHECK_EQ_I64(ml_mlb_check_flags(&header, flags, &error), ML_E_SHAPE);
  CHECK_EQ_U64(error.offset, 256 + 40000);
  flags[0] = 6;
  CHECK_EQ_I64(ml_mlb_check_flags(&header, flags, &error), ML_E_FORMAT);
  CHECK_EQ_U64(error.offset, 256);
  free(flags);
}
