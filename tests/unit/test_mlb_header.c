/* Every rule of the header, at its limit and one step past it. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "test.h"
#include "tiny_file.h"

/* ---------------------------------------------------------------- a case: a valid header with edits */

typedef enum base_header {
  PLAIN,
  LLAMA3,
  LINEAR_ROPE,
  YARN,
  Q4,
  LINEAR /* with dimensions for linear layers */
} base_header;

typedef struct header_edit {
  uint32_t at; /* 0: no edit */
  bool is_float;
  uint32_t u;
  float f;
} header_edit;

#define U(at, value) {at, false, value, 0}
#define F(at, value) {at, true, 0, value}

typedef struct header_case {
  int line;
  base_header base;
  ml_status status;
  uint64_t offset; /* where the error is reported */
  header_edit edits[6];
} header_case;

#define GOOD(base, ...)                                  \
  {                                                      \
    __LINE__, base, ML_OK, ML_NO_OFFSET, { __VA_ARGS__ } \
  }
#define FORMAT(base, offset, ...)                        \
  {                                                      \
    __LINE__, base, ML_E_FORMAT, offset, { __VA_ARGS__ } \
  }
#define SHAPE(base, offset, ...)                        \
  {                                                     \
    __LINE__, base, ML_E_SHAPE, offset, { __VA_ARGS__ } \
  }

static void make_base(uint8_t *header, base_header base) {
  tiny_header(header);
  switch (base) {
    case PLAIN: break;
    case LLAMA3: tiny_llama3(header); break;
    case LINEAR_ROPE:
      tiny_put(header, AT_ROPE_TYPE, ML_MLB_ROPE_LINEAR);
      tiny_put_f32(header, AT_ROPE_FACTOR, 8.0f);
      break;
    case YARN: tiny_yarn(header); break;
    case Q4: tiny_put(header, AT_WTYPE, ML_MLB_Q4_0); break;
    case LINEAR: tiny_linear(header); break;
  }
}

static bool check_case(const header_case *row) {
  uint8_t bytes[ML_MLB_HEADER_SIZE];
  make_base(bytes, row->base);
  for (const header_edit *edit = row->edits; edit < row->edits + 6 && edit->at; edit++) {
    if (edit->is_float) tiny_put_f32(bytes, edit->at, edit->f);
    if (!edit->is_float) tiny_put(bytes, edit->at, edit->u);
  }
  ml_mlb_header header, before;
  memset(&header, 0x5a, sizeof header);
  memcpy(&before, &header, sizeof header);
  ml_error error;
  memset(&error, 0, sizeof error);
  error.offset = ML_NO_OFFSET;

  ml_status status = ml_mlb_read_header(&header, bytes, sizeof bytes, &error);
  bool as_expected = CHECK_EQ_I64(status, row->status);
  as_expected &= CHECK_EQ_U64(error.offset, row->offset);
  if (status != ML_OK) {
    as_expected &= CHECK_EQ_I64(error.status, status);
    as_expected &= CHECK_EQ_BYTES(&header, &before, sizeof header); /* untouched */
    char place[32];
    snprintf(place, sizeof place, "(offset %u)", (unsigned)row->offset);
    as_expected &= CHECK(strstr(error.message, place) != NULL);
    as_expected &= CHECK_EQ_I64(ml_mlb_read_header(&header, bytes, sizeof bytes, NULL), status);
  }
  if (!as_expected) printf("\n    ... case in line %d: \"%s\"", row->line, error.message);
  return as_expected;
}

#define CHECK_CASES(cases) \
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases)[0]; i++) check_case(&(cases)[i])

/* ---------------------------------------------------------------- FORMAT rules */

TEST(mlb_header_bases_are_valid) {
  static const header_case cases[] = {GOOD(PLAIN, {0}), GOOD(LLAMA3, {0}), GOOD(LINEAR_ROPE, {0}),
                                      GOOD(YARN, {0}),  GOOD(Q4, {0}),     GOOD(LINEAR, {0})};
  CHECK_CASES(cases);
}

TEST(mlb_header_version_and_types) {
  static const header_case cases[] = {
      FORMAT(PLAIN, 4, U(AT_VERSION, 0)),
      FORMAT(PLAIN, 4, U(AT_VERSION, 2)),
      FORMAT(PLAIN, 4, U(AT_VERSION, 0x01000000)), /* big-endian 1 */
      FORMAT(PLAIN, 44, U(AT_WTYPE, 0)),
      GOOD(PLAIN, U(AT_WTYPE, 1)),
      GOOD(PLAIN, U(AT_WTYPE, 2)),
      FORMAT(PLAIN, 44, U(AT_WTYPE, 3)),
      FORMAT(PLAIN, 44, U(AT_WTYPE, UINT32_MAX)),
      GOOD(PLAIN, U(AT_SHARED_CLASSIFIER, 1)), /* shared-nonzero: any value */
      GOOD(PLAIN, U(AT_SHARED_CLASSIFIER, 2)),
      GOOD(PLAIN, U(AT_SHARED_CLASSIFIER, UINT32_MAX)),
      FORMAT(YARN, 52, U(AT_ROPE_TYPE, 4)),
      FORMAT(YARN, 52, U(AT_ROPE_TYPE, UINT32_MAX)),
      GOOD(PLAIN, U(AT_ACT, 1)),
      FORMAT(PLAIN, 104, U(AT_ACT, 2)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_flags_are_0_or_1) {
  static const header_case cases[] = {
      GOOD(PLAIN, U(AT_QKV_BIAS, 1)),
      FORMAT(PLAIN, 76, U(AT_QKV_BIAS, 2)),
      GOOD(PLAIN, U(AT_QK_NORM, 1)),
      FORMAT(PLAIN, 84, U(AT_QK_NORM, 2)),
      GOOD(PLAIN, U(AT_LAYER_FLAGS, 1)),
      FORMAT(PLAIN, 96, U(AT_LAYER_FLAGS, 2)),
      GOOD(PLAIN, U(AT_POST_NORMS, 1)),
      FORMAT(PLAIN, 108, U(AT_POST_NORMS, 2)),
      GOOD(PLAIN, U(AT_SCALE_F16, 1)),
      FORMAT(PLAIN, 120, U(AT_SCALE_F16, 2)),
      GOOD(PLAIN, U(AT_ATTN_GATE, 1)),
      FORMAT(PLAIN, 136, U(AT_ATTN_GATE, 2)),
      FORMAT(PLAIN, 76, U(AT_QKV_BIAS, UINT32_MAX)),
  };
  CHECK_CASES(cases);
}

/* The float rules: "> 0" and ">= 0", finite in any case. */
TEST(mlb_header_floats) {
  static const struct {
    uint32_t at;
    bool above_zero;
    base_header base;
  } floats[] = {
      {AT_ROPE_THETA, true, PLAIN},           {AT_NORM_EPS, false, PLAIN},
      {AT_ROPE_FACTOR, true, LLAMA3},         {AT_ROPE_FACTOR, true, LINEAR_ROPE},
      {AT_ROPE_FACTOR, true, YARN},           {AT_ROPE_LOW_FREQ_FACTOR, true, LLAMA3},
      {AT_ROPE_HIGH_FREQ_FACTOR, true, YARN}, {AT_ROPE_ATTN_FACTOR, true, YARN},
      {AT_ROPE_LOCAL_THETA, false, PLAIN},    {AT_EMBED_SCALE, false, PLAIN},
      {AT_ATTN_SCALE, false, PLAIN},          {AT_ATTN_SOFTCAP, false, PLAIN},
      {AT_FINAL_SOFTCAP, false, PLAIN},
  };
  static const float refused[] = {-1.0f, -FLT_TRUE_MIN, -FLT_MAX, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
    uint32_t at = floats[i].at;
    base_header base = floats[i].base;
    for (size_t j = 0; j < sizeof refused / sizeof refused[0]; j++)
      check_case(&(header_case)FORMAT(base, at, F(at, refused[j])));
    check_case(&(header_case)GOOD(base, F(at, FLT_TRUE_MIN)));
    for (int minus = 0; minus < 2; minus++) {
      float zero = minus ? -0.0f : 0.0f;
      if (floats[i].above_zero) check_case(&(header_case)FORMAT(base, at, F(at, zero)));
      if (!floats[i].above_zero) check_case(&(header_case)GOOD(base, F(at, zero)));
    }
    bool has_upper_relation = at == AT_ROPE_LOW_FREQ_FACTOR || at == AT_ROPE_HIGH_FREQ_FACTOR;
    if (!has_upper_relation) check_case(&(header_case)GOOD(base, F(at, FLT_MAX)));
  }
}

TEST(mlb_header_rope_scaling_relations) {
  float above_1 = nextafterf(1.0f, 2.0f), below_32 = nextafterf(32.0f, 0.0f);
  const header_case cases[] = {
      GOOD(LLAMA3, F(AT_ROPE_HIGH_FREQ_FACTOR, above_1)),
      GOOD(LLAMA3, F(AT_ROPE_HIGH_FREQ_FACTOR, FLT_MAX)),
      FORMAT(LLAMA3, 64, F(AT_ROPE_HIGH_FREQ_FACTOR, 1.0f)),
      FORMAT(LLAMA3, 64, F(AT_ROPE_HIGH_FREQ_FACTOR, 0.5f)),
      FORMAT(LLAMA3, 64, F(AT_ROPE_HIGH_FREQ_FACTOR, INFINITY)),
      FORMAT(LLAMA3, 64, F(AT_ROPE_HIGH_FREQ_FACTOR, NAN)),
      FORMAT(LLAMA3, 68, U(AT_ROPE_ORIG_MAX_SEQ, 0)),
      GOOD(LLAMA3, U(AT_ROPE_ORIG_MAX_SEQ, 1)),
      GOOD(LLAMA3, U(AT_ROPE_ORIG_MAX_SEQ, UINT32_MAX)),
      GOOD(YARN, F(AT_ROPE_HIGH_FREQ_FACTOR, below_32)),
      FORMAT(YARN, 64, F(AT_ROPE_HIGH_FREQ_FACTOR, 32.0f)),
      FORMAT(YARN, 64, F(AT_ROPE_HIGH_FREQ_FACTOR, 33.0f)),
      FORMAT(YARN, 60, F(AT_ROPE_LOW_FREQ_FACTOR, INFINITY)),
      FORMAT(YARN, 60, F(AT_ROPE_LOW_FREQ_FACTOR, NAN)),
      FORMAT(YARN, 64, F(AT_ROPE_LOW_FREQ_FACTOR, 0.5f)),
      FORMAT(YARN, 68, U(AT_ROPE_ORIG_MAX_SEQ, 0)),
      GOOD(YARN, U(AT_ROPE_ORIG_MAX_SEQ, 1)),
      GOOD(LINEAR_ROPE, U(AT_ROPE_ORIG_MAX_SEQ, 0)),
      GOOD(PLAIN, U(AT_ROPE_ORIG_MAX_SEQ, 0)),
  };
  CHECK_CASES(cases);
}

/* unused-fields: the factors of another rope_type are not looked at, whatever they hold. */
TEST(mlb_header_unused_rope_factors_are_ignored) {
  static const header_case cases[] = {
      GOOD(PLAIN, F(AT_ROPE_FACTOR, -1.0f), F(AT_ROPE_LOW_FREQ_FACTOR, NAN),
           F(AT_ROPE_HIGH_FREQ_FACTOR, -INFINITY), U(AT_ROPE_ORIG_MAX_SEQ, 7)),
      GOOD(LINEAR_ROPE, F(AT_ROPE_LOW_FREQ_FACTOR, -1.0f), F(AT_ROPE_HIGH_FREQ_FACTOR, -2.0f)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_attn_factor_needs_yarn) {
  static const header_case cases[] = {
      FORMAT(PLAIN, 88, F(AT_ROPE_ATTN_FACTOR, 1.0f)),
      FORMAT(LLAMA3, 88, F(AT_ROPE_ATTN_FACTOR, 1.0f)),
      FORMAT(LINEAR_ROPE, 88, F(AT_ROPE_ATTN_FACTOR, 1.0f)),
      FORMAT(PLAIN, 88, F(AT_ROPE_ATTN_FACTOR, -FLT_TRUE_MIN)),
      FORMAT(PLAIN, 88, F(AT_ROPE_ATTN_FACTOR, NAN)),
      GOOD(PLAIN, F(AT_ROPE_ATTN_FACTOR, 0.0f)),
      GOOD(PLAIN, F(AT_ROPE_ATTN_FACTOR, -0.0f)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_q8_mask) {
  static const header_case cases[] = {
      FORMAT(PLAIN, 72, U(AT_Q8_MASK, 1)), FORMAT(PLAIN, 72, U(AT_Q8_MASK, 64)),
      GOOD(Q4, U(AT_Q8_MASK, 1)),          GOOD(Q4, U(AT_Q8_MASK, 127)),
      FORMAT(Q4, 72, U(AT_Q8_MASK, 128)),  FORMAT(Q4, 72, U(AT_Q8_MASK, 0x80000001)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_sliding_window) {
  static const header_case cases[] = {
      GOOD(PLAIN, U(AT_SLIDING_WINDOW, 1)),
      GOOD(PLAIN, U(AT_SLIDING_WINDOW, 1 << 24)),
      FORMAT(PLAIN, 92, U(AT_SLIDING_WINDOW, (1 << 24) + 1)),
      FORMAT(PLAIN, 92, U(AT_SLIDING_WINDOW, UINT32_MAX)),
  };
  CHECK_CASES(cases);
}

/* ---------------------------------------------------------------- SHAPE rules */

TEST(mlb_header_dimensions) {
  static const header_case cases[] = {
      SHAPE(PLAIN, 8, U(AT_DIM, 0)),
      SHAPE(PLAIN, 8, U(AT_DIM, 33)),
      SHAPE(PLAIN, 8, U(AT_DIM, 16)),
      GOOD(PLAIN, U(AT_DIM, 65536)),
      SHAPE(PLAIN, 8, U(AT_DIM, 65568)),
      SHAPE(PLAIN, 8, U(AT_DIM, 0x80000000)),
      SHAPE(PLAIN, 12, U(AT_N_LAYERS, 0)),
      GOOD(PLAIN, U(AT_N_LAYERS, 1)),
      GOOD(PLAIN, U(AT_N_LAYERS, 65536)),
      SHAPE(PLAIN, 12, U(AT_N_LAYERS, 65537)),
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 0)),
      GOOD(PLAIN, U(AT_N_HEADS, 1)),
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 65537)),
      SHAPE(PLAIN, 20, U(AT_N_KV_HEADS, 0)),
      SHAPE(PLAIN, 20, U(AT_N_KV_HEADS, 65537)),
      SHAPE(PLAIN, 24, U(AT_HIDDEN_DIM, 0)),
      SHAPE(PLAIN, 24, U(AT_HIDDEN_DIM, 48)),
      GOOD(PLAIN, U(AT_HIDDEN_DIM, 32)),
      GOOD(PLAIN, U(AT_HIDDEN_DIM, 65536)),
      SHAPE(PLAIN, 24, U(AT_HIDDEN_DIM, 65568)),
      SHAPE(PLAIN, 28, U(AT_VOCAB, 0)),
      SHAPE(PLAIN, 28, U(AT_VOCAB, 2)),
      GOOD(PLAIN, U(AT_VOCAB, 3)),
      GOOD(PLAIN, U(AT_VOCAB, 1 << 24)),
      SHAPE(PLAIN, 28, U(AT_VOCAB, (1 << 24) + 1)),
      SHAPE(PLAIN, 32, U(AT_MAX_SEQ, 0)),
      GOOD(PLAIN, U(AT_MAX_SEQ, 1)),
      GOOD(PLAIN, U(AT_MAX_SEQ, 1 << 24)),
      SHAPE(PLAIN, 32, U(AT_MAX_SEQ, (1 << 24) + 1)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_heads) {
  static const header_case cases[] = {
      SHAPE(PLAIN, 8, U(AT_N_HEADS, 3)),                             /* 32 % 3 */
      SHAPE(PLAIN, 8, U(AT_N_HEADS, 64)),                            /* more heads than dim */
      GOOD(PLAIN, U(AT_N_HEADS, 3), U(AT_HEAD_DIM, 32)),             /* head-divide: only without head_dim */
      SHAPE(PLAIN, 16, U(AT_N_KV_HEADS, 3)),                         /* 2 % 3 */
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 4), U(AT_N_KV_HEADS, 3)),       /* 4 % 3 */
      GOOD(PLAIN, U(AT_N_HEADS, 4), U(AT_N_KV_HEADS, 4)),            /* no grouping */
      SHAPE(PLAIN, 80, U(AT_N_HEADS, 32)),                           /* head_dim 1 */
      GOOD(PLAIN, U(AT_N_HEADS, 16)),                                /* head_dim 2 */
      SHAPE(PLAIN, 80, U(AT_HEAD_DIM, 33)),                          /* odd */
      SHAPE(PLAIN, 80, U(AT_N_HEADS, 32), U(AT_HEAD_DIM, 1)),        /* odd, though q_dim is 32 */
      SHAPE(PLAIN, 16, U(AT_HEAD_DIM, 8)),                           /* q_dim 16 */
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 3), U(AT_HEAD_DIM, 16)),        /* q_dim 48 */
      GOOD(PLAIN, U(AT_N_HEADS, 4), U(AT_HEAD_DIM, 8)),              /* q_dim 32 */
      GOOD(PLAIN, U(AT_HEAD_DIM, 32768)),                            /* q_dim 65536 */
      SHAPE(PLAIN, 16, U(AT_HEAD_DIM, 32784)),                       /* q_dim 65568 */
      GOOD(PLAIN, U(AT_N_HEADS, 1), U(AT_HEAD_DIM, 65536)),          /* q_dim 65536 */
      GOOD(PLAIN, U(AT_N_HEADS, 32768), U(AT_HEAD_DIM, 2)),          /* q_dim 65536 */
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 65536), U(AT_HEAD_DIM, 2)),     /* q_dim 131072 */
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 65536), U(AT_HEAD_DIM, 65536)), /* q_dim 2^32: 0 in 32 bits */
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 32), U(AT_HEAD_DIM, 0x08000002)), /* q_dim 2^32 + 64 */
      SHAPE(PLAIN, 16, U(AT_HEAD_DIM, 0x80000010)),                    /* q_dim 2^32 + 32 */
      SHAPE(PLAIN, 16, U(AT_N_HEADS, 65536), U(AT_HEAD_DIM, UINT32_MAX - 1)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_rot_dim) {
  static const header_case cases[] = {
      GOOD(PLAIN, U(AT_ROT_DIM, 2)),
      GOOD(PLAIN, U(AT_ROT_DIM, 16)), /* head_dim is 16 */
      SHAPE(PLAIN, 132, U(AT_ROT_DIM, 15)),
      SHAPE(PLAIN, 132, U(AT_ROT_DIM, 18)),
      SHAPE(PLAIN, 132, U(AT_ROT_DIM, 0xfffffffe)),
      GOOD(PLAIN, U(AT_HEAD_DIM, 64), U(AT_ROT_DIM, 64)),
      SHAPE(PLAIN, 132, U(AT_HEAD_DIM, 64), U(AT_ROT_DIM, 66)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_linear_dimensions) {
  static const header_case cases[] = {
      SHAPE(LINEAR, 144, U(AT_LIN_V_HEADS, 0)),
      SHAPE(LINEAR, 148, U(AT_LIN_K_DIM, 0)),
      SHAPE(LINEAR, 152, U(AT_LIN_V_DIM, 0)),
      SHAPE(LINEAR, 156, U(AT_LIN_CONV, 0)),
      GOOD(LINEAR, U(AT_LIN_K_HEADS, 65536), U(AT_LIN_V_HEADS, 65536)),
      SHAPE(LINEAR, 140, U(AT_LIN_K_HEADS, 65537), U(AT_LIN_V_HEADS, 65537)),
      GOOD(LINEAR, U(AT_LIN_V_HEADS, 65536)),
      SHAPE(LINEAR, 144, U(AT_LIN_V_HEADS, 65540)),
      GOOD(LINEAR, U(AT_LIN_K_DIM, 1)),
      GOOD(LINEAR, U(AT_LIN_K_DIM, 65536)),
      SHAPE(LINEAR, 148, U(AT_LIN_K_DIM, 65537)),
      GOOD(LINEAR, U(AT_LIN_V_HEADS, 32), U(AT_LIN_V_DIM, 1)),
      GOOD(LINEAR, U(AT_LIN_V_DIM, 65536)),
      SHAPE(LINEAR, 152, U(AT_LIN_V_DIM, 65544)),
      GOOD(LINEAR, U(AT_LIN_CONV, 1)),
      GOOD(LINEAR, U(AT_LIN_CONV, 65536)),
      SHAPE(LINEAR, 156, U(AT_LIN_CONV, 65537)),
      SHAPE(LINEAR, 144, U(AT_LIN_K_HEADS, 3), U(AT_LIN_V_HEADS, 4)), /* V % K */
      GOOD(LINEAR, U(AT_LIN_K_HEADS, 3), U(AT_LIN_V_HEADS, 12)),
      SHAPE(LINEAR, 144, U(AT_LIN_V_HEADS, 6), U(AT_LIN_V_DIM, 32)), /* V % 4 */
      GOOD(LINEAR, U(AT_LIN_V_HEADS, 8), U(AT_LIN_V_DIM, 4)),        /* V x dv 32 */
      SHAPE(LINEAR, 152, U(AT_LIN_V_DIM, 4)),                        /* V x dv 16 */
      GOOD(LINEAR, U(AT_LIN_K_DIM, 7)),                              /* no rule for it */
      GOOD(LINEAR, U(AT_LIN_K_HEADS, 65536), U(AT_LIN_V_HEADS, 65536), U(AT_LIN_K_DIM, 65536),
           U(AT_LIN_V_DIM, 65536), U(AT_LIN_CONV, 65536)), /* products past 32 bits */
      GOOD(LINEAR, U(AT_LIN_K_HEADS, 0), U(AT_LIN_V_HEADS, 3),
           U(AT_LIN_K_DIM, UINT32_MAX), /* unused-fields */
           U(AT_LIN_V_DIM, 0), U(AT_LIN_CONV, UINT32_MAX)),
  };
  CHECK_CASES(cases);
}

/* ---------------------------------------------------------------- order, values, messages */

/* check-order: what makes it no .mlb file comes before what makes the shape wrong, whatever their offsets. */
TEST(mlb_header_order_of_checks) {
  static const header_case cases[] = {
      FORMAT(PLAIN, 44, U(AT_DIM, 0), U(AT_WTYPE, 0)),
      FORMAT(PLAIN, 36, U(AT_N_HEADS, 0), F(AT_ROPE_THETA, 0.0f)),
      FORMAT(PLAIN, 160, U(AT_DIM, 0), U(AT_RESERVED, 1)),
      FORMAT(LLAMA3, 64, U(AT_DIM, 0), F(AT_ROPE_HIGH_FREQ_FACTOR, 1.0f)),
      FORMAT(PLAIN, 136, U(AT_ROT_DIM, 17), U(AT_ATTN_GATE, 2)),
      FORMAT(PLAIN, 4, U(AT_VERSION, 2), U(AT_WTYPE, 0), U(AT_DIM, 0)),
      SHAPE(PLAIN, 8, U(AT_DIM, 0), U(AT_N_HEADS, 0)),
  };
  CHECK_CASES(cases);
}

TEST(mlb_header_messages) {
  static const struct {
    base_header base;
    header_edit edit;
    const char *message;
  } cases[] = {
      {PLAIN, U(AT_DIM, 33), "dim = 33: must be a multiple of 32 (offset 8)"},
      {PLAIN, U(AT_DIM, 65568), "dim = 65568: must be at most 65536 (offset 8)"},
      {PLAIN, U(AT_VOCAB, 2), "vocab = 2: must be at least 3 (offset 28)"},
      {PLAIN, U(AT_N_HEADS, 3), "dim = 32: without a head_dim must be a multiple of n_heads = 3 (offset 8)"},
      {PLAIN, U(AT_N_KV_HEADS, 3), "n_heads = 2: must be a multiple of n_kv_heads = 3 (offset 16)"},
      {PLAIN, U(AT_HEAD_DIM, 9), "head_dim = 9: must be a multiple of 2 (offset 80)"},
      {PLAIN, U(AT_HEAD_DIM, 8), "q_dim = 16: must be a multiple of 32 (offset 16)"},
      {PLAIN, U(AT_ROT_DIM, 20), "rot_dim = 20: must be at most head_dim = 16 (offset 132)"},
      {PLAIN, F(AT_ROPE_THETA, -0.5f), "rope_theta = -0.5: must be finite and above 0 (offset 36)"},
      {PLAIN, F(AT_EMBED_SCALE, NAN), "embed_scale = nan: must be finite and at least 0 (offset 112)"},
      {PLAIN, F(AT_ROPE_ATTN_FACTOR, 1.0f),
       "rope_attn_factor = 1: without yarn scaling must be 0 (offset 88)"},
      {LLAMA3, F(AT_ROPE_HIGH_FREQ_FACTOR, 1.0f),
       "rope_high_freq_factor = 1: must be above rope_low_freq_factor = 1 (offset 64)"},
      {PLAIN, F(AT_NORM_EPS, -1.0f), "norm_eps = -1: must be finite and at least 0 (offset 40)"},
      {PLAIN, F(AT_ROPE_LOCAL_THETA, INFINITY),
       "rope_local_theta = inf: must be finite and at least 0 (offset 100)"},
      {PLAIN, F(AT_ATTN_SCALE, -1.0f), "attn_scale = -1: must be finite and at least 0 (offset 116)"},
      {PLAIN, F(AT_ATTN_SOFTCAP, -1.0f), "attn_softcap = -1: must be finite and at least 0 (offset 124)"},
      {PLAIN, F(AT_FINAL_SOFTCAP, -1.0f), "final_softcap = -1: must be finite and at least 0 (offset 128)"},
      {LLAMA3, F(AT_ROPE_FACTOR, 0.0f), "rope_factor = 0: must be finite and above 0 (offset 56)"},
      {LLAMA3, F(AT_ROPE_LOW_FREQ_FACTOR, 0.0f),
       "rope_low_freq_factor = 0: must be finite and above 0 (offset 60)"},
      {YARN, F(AT_ROPE_HIGH_FREQ_FACTOR, 0.0f),
       "rope_high_freq_factor = 0: must be finite and above 0 (offset 64)"},
      {YARN, F(AT_ROPE_ATTN_FACTOR, 0.0f), "rope_attn_factor = 0: must be finite and above 0 (offset 88)"},
      {YARN, F(AT_ROPE_HIGH_FREQ_FACTOR, 64.0f),
       "rope_high_freq_factor = 64: (beta_slow) must be below beta_fast = 32 (offset 64)"},
      {LINEAR, U(AT_LIN_V_DIM, 4), "lin_v_heads x lin_v_dim = 16: must be a multiple of 32 (offset 152)"},
      {PLAIN, U(252, 0x07000000), "reserved byte = 7: must be 0 (offset 255)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t bytes[ML_MLB_HEADER_SIZE];
    make_base(bytes, cases[i].base);
    if (cases[i].edit.is_float) tiny_put_f32(bytes, cases[i].edit.at, cases[i].edit.f);
    if (!cases[i].edit.is_float) tiny_put(bytes, cases[i].edit.at, cases[i].edit.u);
    ml_mlb_header header;
    ml_error error;
    CHECK(ml_mlb_read_header(&header, bytes, sizeof bytes, &error) != ML_OK);
    CHECK_EQ_TEXT(error.message, cases[i].message);
  }
}
