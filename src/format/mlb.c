/* mlb.c - the header: 256 bytes to fields, and the rules they must keep.
 *
 * Two tables do the work. `fields` says where each field lies in the file and in the struct; a table of
 * rules says what must hold of it. The first broken rule, in table order, is the answer, so the tables are
 * also the order in which files are judged: what makes the bytes no .mlb file (ML_E_FORMAT) first, then
 * single dimensions, then how the dimensions fit together (ML_E_SHAPE). */
#include "format/mlb.h"

#include <float.h>

#include "base/bytes.h"
#include "base/error.h"

enum {
  MAGIC_AT = 0,
  VERSION_AT = 4,
  RESERVED_AT = 160, /* a later version's fields: refused until known */
  VERSION = 1,
  MAX_DIM = 65536,
  MAX_LENGTH = 1 << 24, /* of vocabulary, context and window */
  MAX_Q8_MASK = 127     /* seven matrix classes */
};

/* What is judged: the header, and those derived values that may still be too large for it. */
typedef struct header_draft {
  ml_mlb_header header;
  uint64_t q_dim;
} header_draft;

/* ---------------------------------------------------------------- fields */

/* stored type, name, offset in the file */
#define STORED_FIELDS(X)            \
  X(U32, dim, 8)                    \
  X(U32, n_layers, 12)              \
  X(U32, n_heads, 16)               \
  X(U32, n_kv_heads, 20)            \
  X(U32, hidden_dim, 24)            \
  X(U32, vocab, 28)                 \
  X(U32, max_seq, 32)               \
  X(F32, rope_theta, 36)            \
  X(F32, norm_eps, 40)              \
  X(U32, wtype, 44)                 \
  X(U32, shared_classifier, 48)     \
  X(U32, rope_type, 52)             \
  X(F32, rope_factor, 56)           \
  X(F32, rope_low_freq_factor, 60)  \
  X(F32, rope_high_freq_factor, 64) \
  X(U32, rope_orig_max_seq, 68)     \
  X(U32, q8_mask, 72)               \
  X(U32, qkv_bias, 76)              \
  X(U32, head_dim, 80)              \
  X(U32, qk_norm, 84)               \
  X(F32, rope_attn_factor, 88)      \
  X(U32, sliding_window, 92)        \
  X(U32, layer_flags, 96)           \
  X(F32, rope_local_theta, 100)     \
  X(U32, act, 104)                  \
  X(U32, post_norms, 108)           \
  X(F32, embed_scale, 112)          \
  X(F32, attn_scale, 116)           \
  X(U32, scale_f16, 120)            \
  X(F32, attn_softcap, 124)         \
  X(F32, final_softcap, 128)        \
  X(U32, rot_dim, 132)              \
  X(U32, attn_gate, 136)            \
  X(U32, lin_k_heads, 140)          \
  X(U32, lin_v_heads, 144)          \
  X(U32, lin_k_dim, 148)            \
  X(U32, lin_v_dim, 152)            \
  X(U32, lin_conv, 156)

typedef enum field_type { U32, U64, F32 } field_type;

#define FIELD_ID(type, name, offset) FIELD_##name,
typedef enum field_id {
  STORED_FIELDS(FIELD_ID) N_STORED_FIELDS,
  FIELD_head_size = N_STORED_FIELDS,
  FIELD_q_dim,
  FIELD_lin_value_dim,
  N_FIELDS
} field_id;

typedef struct field {
  const char *name;
  field_type type;
  uint32_t file_offset; /* of a derived value: of the field that a fix would most likely touch */
  size_t draft_offset;
} field;

#define FIELD_ROW(type, name, offset) \
  [FIELD_##name] = {#name, type, offset, offsetof(header_draft, header.name)},
static const field fields[N_FIELDS] = {
    [FIELD_head_size] = {"head_dim", U32, 80, offsetof(header_draft, header.head_size)},
    [FIELD_q_dim] = {"q_dim", U64, 16, offsetof(header_draft, q_dim)},
    [FIELD_lin_value_dim] = {"lin_v_heads x lin_v_dim", U64, 152,
                             offsetof(header_draft, header.lin_value_dim)},
    STORED_FIELDS(FIELD_ROW)};

static uint64_t get_uint(const header_draft *draft, field_id id) {
  const char *at = (const char *)draft + fields[id].draft_offset;
  if (fields[id].type == U64) return *(const uint64_t *)(const void *)at;
  return *(const uint32_t *)(const void *)at;
}

static float get_real(const header_draft *draft, field_id id) {
  return *(const float *)(const void *)((const char *)draft + fields[id].draft_offset);
}

static ml_value get_value(const header_draft *draft, field_id id) {
  return fields[id].type == F32 ? ml_real((double)get_real(draft, id)) : ml_uint(get_uint(draft, id));
}

/* ---------------------------------------------------------------- rules */

/* What must hold of one field. */
typedef enum rule_test {
  AT_LEAST,    /* a whole number against `limit` */
  AT_MOST,     /* " */
  MULTIPLE_OF, /* " */
  ABOVE_ZERO,  /* a float; these refuse NaN and infinities, and -0 counts as 0 */
  NOT_NEGATIVE,
  ZERO
} rule_test;

typedef struct field_rule {
  field_id field;
  rule_test test;
  uint32_t limit;
  bool (*applies)(const ml_mlb_header *header); /* NULL: always */
} field_rule;

/* What must hold between two fields that their own rules have already passed. */
typedef struct field_relation {
  field_id field;
  enum { ABOVE, BELOW, AT_MOST_OTHER, MULTIPLE_OF_OTHER } test;
  field_id other;
  bool (*applies)(const ml_mlb_header *header);
  const char *text;
} field_relation;

static bool is_scaled(const ml_mlb_header *header) { return header->rope_type != ML_MLB_ROPE_PLAIN; }
static bool is_llama3(const ml_mlb_header *header) { return header->rope_type == ML_MLB_ROPE_LLAMA3; }
static bool is_yarn(const ml_mlb_header *header) { return header->rope_type == ML_MLB_ROPE_YARN; }
static bool is_not_yarn(const ml_mlb_header *header) { return !is_yarn(header); }
static bool has_bands(const ml_mlb_header *header) { return is_llama3(header) || is_yarn(header); }
static bool is_q8_0(const ml_mlb_header *header) { return header->wtype == ML_MLB_Q8_0; }
static bool derives_head_dim(const ml_mlb_header *header) { return header->head_dim == 0; }
static bool has_linear(const ml_mlb_header *header) { return header->lin_k_heads != 0; }

/* Fields that the header's own choices leave unused (the factors of another rope_type) are not looked at. */
static const field_rule format_rules[] = {
    {FIELD_rope_theta, ABOVE_ZERO, 0, NULL},
    {FIELD_norm_eps, NOT_NEGATIVE, 0, NULL},
    {FIELD_wtype, AT_LEAST, ML_MLB_Q8_0, NULL},
    {FIELD_wtype, AT_MOST, ML_MLB_Q4_0, NULL},
    {FIELD_rope_type, AT_MOST, ML_MLB_ROPE_YARN, NULL},
    {FIELD_rope_factor, ABOVE_ZERO, 0, is_scaled},
    {FIELD_rope_low_freq_factor, ABOVE_ZERO, 0, has_bands},  /* yarn: beta_fast */
    {FIELD_rope_high_freq_factor, ABOVE_ZERO, 0, has_bands}, /* yarn: beta_slow */
    {FIELD_rope_orig_max_seq, AT_LEAST, 1, has_bands},
    {FIELD_q8_mask, AT_MOST, 0, is_q8_0},
    {FIELD_q8_mask, AT_MOST, MAX_Q8_MASK, NULL},
    {FIELD_qkv_bias, AT_MOST, 1, NULL},
    {FIELD_qk_norm, AT_MOST, 1, NULL},
    {FIELD_rope_attn_factor, ABOVE_ZERO, 0, is_yarn},
    {FIELD_rope_attn_factor, ZERO, 0, is_not_yarn},
    {FIELD_sliding_window, AT_MOST, MAX_LENGTH, NULL},
    {FIELD_layer_flags, AT_MOST, 1, NULL},
    {FIELD_rope_local_theta, NOT_NEGATIVE, 0, NULL},
    {FIELD_act, AT_MOST, ML_MLB_ACT_GELU, NULL},
    {FIELD_post_norms, AT_MOST, 1, NULL},
    {FIELD_embed_scale, NOT_NEGATIVE, 0, NULL},
    {FIELD_attn_scale, NOT_NEGATIVE, 0, NULL},
    {FIELD_scale_f16, AT_MOST, 1, NULL},
    {FIELD_attn_softcap, NOT_NEGATIVE, 0, NULL},
    {FIELD_final_softcap, NOT_NEGATIVE, 0, NULL},
    {FIELD_attn_gate, AT_MOST, 1, NULL},
};

static const field_relation format_relations[] = {
    {FIELD_rope_high_freq_factor, ABOVE, FIELD_rope_low_freq_factor, is_llama3,
     "must be above rope_low_freq_factor ="},
    {FIELD_rope_high_freq_factor, BELOW, FIELD_rope_low_freq_factor, is_yarn,
     "(beta_slow) must be below beta_fast ="},
};

/* Dimensions by themselves. None of them is zero afterwards, so that the rest may divide. */
static const field_rule dimension_rules[] = {
    {FIELD_dim, AT_LEAST, 1, NULL},
    {FIELD_dim, AT_MOST, MAX_DIM, NULL},
    {FIELD_dim, MULTIPLE_OF, ML_MLB_BLOCK, NULL},
    {FIELD_n_layers, AT_LEAST, 1, NULL},
    {FIELD_n_layers, AT_MOST, MAX_DIM, NULL},
    {FIELD_n_heads, AT_LEAST, 1, NULL},
    {FIELD_n_heads, AT_MOST, MAX_DIM, NULL},
    {FIELD_n_kv_heads, AT_LEAST, 1, NULL},
    {FIELD_n_kv_heads, AT_MOST, MAX_DIM, NULL},
    {FIELD_hidden_dim, AT_LEAST, 1, NULL},
    {FIELD_hidden_dim, AT_MOST, MAX_DIM, NULL},
    {FIELD_hidden_dim, MULTIPLE_OF, ML_MLB_BLOCK, NULL},
    {FIELD_vocab, AT_LEAST, 3, NULL},
    {FIELD_vocab, AT_MOST, MAX_LENGTH, NULL},
    {FIELD_max_seq, AT_LEAST, 1, NULL},
    {FIELD_max_seq, AT_MOST, MAX_LENGTH, NULL},
    {FIELD_lin_k_heads, AT_MOST, MAX_DIM, NULL},
    {FIELD_lin_v_heads, AT_LEAST, 1, has_linear},
    {FIELD_lin_v_heads, AT_MOST, MAX_DIM, has_linear},
    {FIELD_lin_k_dim, AT_LEAST, 1, has_linear},
    {FIELD_lin_k_dim, AT_MOST, MAX_DIM, has_linear},
    {FIELD_lin_v_dim, AT_LEAST, 1, has_linear},
    {FIELD_lin_v_dim, AT_MOST, MAX_DIM, has_linear},
    {FIELD_lin_conv, AT_LEAST, 1, has_linear},
    {FIELD_lin_conv, AT_MOST, MAX_DIM, has_linear},
};

/* Head sizes and products, which the single dimensions make. kv_dim needs no row: it divides q_dim. */
static const field_rule product_rules[] = {
    {FIELD_head_size, MULTIPLE_OF, 2, NULL},
    {FIELD_q_dim, MULTIPLE_OF, ML_MLB_BLOCK, NULL},
    {FIELD_q_dim, AT_MOST, MAX_DIM, NULL},
    {FIELD_rot_dim, MULTIPLE_OF, 2, NULL},
    {FIELD_lin_v_heads, MULTIPLE_OF, 4, has_linear},
    {FIELD_lin_value_dim, MULTIPLE_OF, ML_MLB_BLOCK, has_linear},
};

static const field_relation shape_relations[] = {
    {FIELD_dim, MULTIPLE_OF_OTHER, FIELD_n_heads, derives_head_dim,
     "without a head_dim must be a multiple of n_heads ="},
    {FIELD_n_heads, MULTIPLE_OF_OTHER, FIELD_n_kv_heads, NULL, "must be a multiple of n_kv_heads ="},
    {FIELD_rot_dim, AT_MOST_OTHER, FIELD_head_size, NULL, "must be at most head_dim ="},
    {FIELD_lin_v_heads, MULTIPLE_OF_OTHER, FIELD_lin_k_heads, has_linear,
     "must be a multiple of lin_k_heads ="},
};

static bool is_finite(float x) { return x >= -FLT_MAX && x <= FLT_MAX; }

static bool rule_holds(const field_rule *rule, const header_draft *draft) {
  if (fields[rule->field].type == F32) {
    float x = get_real(draft, rule->field);
    return is_finite(x) && (rule->test == ABOVE_ZERO ? x > 0 : rule->test == NOT_NEGATIVE ? x >= 0 : x == 0);
  }
  uint64_t u = get_uint(draft, rule->field);
  if (rule->test == AT_LEAST) return u >= rule->limit;
  if (rule->test == AT_MOST) return u <= rule->limit;
  return u % rule->limit == 0;
}

static bool relation_holds(const field_relation *relation, const header_draft *draft) {
  field_id a = relation->field, b = relation->other;
  switch (relation->test) {
    case ABOVE: return get_real(draft, a) > get_real(draft, b);
    case BELOW: return get_real(draft, a) < get_real(draft, b);
    case AT_MOST_OTHER: return get_uint(draft, a) <= get_uint(draft, b);
    case MULTIPLE_OF_OTHER: return get_uint(draft, a) % get_uint(draft, b) == 0;
  }
  return false;
}

static ml_status check_rules(const header_draft *draft, const field_rule *rules, size_t n, ml_status status,
                             ml_error *error) {
  static const char *const texts[] = {
      [AT_LEAST] = "must be at least",
      [AT_MOST] = "must be at most",
      [MULTIPLE_OF] = "must be a multiple of",
      [ABOVE_ZERO] = "must be finite and above",
      [NOT_NEGATIVE] = "must be finite and at least",
      [ZERO] = "without yarn scaling must be",
  };
  for (const field_rule *rule = rules; rule < rules + n; rule++) {
    if (rule->applies && !rule->applies(&draft->header)) continue;
    if (rule_holds(rule, draft)) continue;
    return ml_fail(error, status, fields[rule->field].name, get_value(draft, rule->field), texts[rule->test],
                   ml_uint(rule->limit), fields[rule->field].file_offset);
  }
  return ML_OK;
}

static ml_status check_relations(const header_draft *draft, const field_relation *relations, size_t n,
                                 ml_status status, ml_error *error) {
  for (const field_relation *relation = relations; relation < relations + n; relation++) {
    if (relation->applies && !relation->applies(&draft->header)) continue;
    if (relation_holds(relation, draft)) continue;
    return ml_fail(error, status, fields[relation->field].name, get_value(draft, relation->field),
                   relation->text, get_value(draft, relation->other), fields[relation->field].file_offset);
  }
  return ML_OK;
}

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* ---------------------------------------------------------------- reading */

static ml_status check_envelope(const uint8_t *bytes, uint64_t size, ml_error *error) {
  if (size < ML_MLB_HEADER_SIZE)
    return ml_fail(error, ML_E_FORMAT, "file size", ml_uint(size),
                   "must hold the header, bytes:", ml_uint(ML_MLB_HEADER_SIZE), size);
  if (memcmp(bytes + MAGIC_AT, "MLB1", 4) != 0)
    return ml_fail(error, ML_E_FORMAT, "magic", ml_uint(ml_read_u32(bytes + MAGIC_AT)), "must be",
                   ml_text("\"MLB1\""), MAGIC_AT);
  uint32_t version = ml_read_u32(bytes + VERSION_AT);
  if (version != VERSION)
    return ml_fail(error, ML_E_FORMAT, "version", ml_uint(version), "must be", ml_uint(VERSION), VERSION_AT);
  return ML_OK;
}

static ml_status check_reserved(const uint8_t *bytes, ml_error *error) {
  for (uint32_t at = RESERVED_AT; at < ML_MLB_HEADER_SIZE; at++)
    if (bytes[at])
      return ml_fail(error, ML_E_FORMAT, "reserved byte", ml_uint(bytes[at]), "must be", ml_uint(0), at);
  return ML_OK;
}

/* Whole numbers and floats alike are four bytes, least significant first. */
static void read_fields(header_draft *draft, const uint8_t *bytes) {
  for (size_t id = 0; id < N_STORED_FIELDS; id++) {
    uint32_t bits = ml_read_u32(bytes + fields[id].file_offset);
    memcpy((char *)draft + fields[id].draft_offset, &bits, sizeof bits);
  }
}

/* Needs the dimension rules to hold. What 32 bits cannot hold stays in the draft until its rules have
 * refused it; only linear layers may make larger products. */
static void derive_fields(header_draft *draft) {
  ml_mlb_header *header = &draft->header;
  header->head_size = header->head_dim ? header->head_dim : header->dim / header->n_heads;
  draft->q_dim = (uint64_t)header->head_size * header->n_heads;
  header->q_dim = (uint32_t)draft->q_dim;
  header->kv_dim = (uint32_t)((uint64_t)header->head_size * header->n_kv_heads);
  if (!has_linear(header)) return;
  header->lin_value_dim = (uint64_t)header->lin_v_heads * header->lin_v_dim;
  header->lin_channels = 2 * (uint64_t)header->lin_k_heads * header->lin_k_dim + header->lin_value_dim;
}

ml_status ml_mlb_read_header(ml_mlb_header *header, const uint8_t *bytes, uint64_t size, ml_error *error) {
  header_draft draft;
  memset(&draft, 0, sizeof draft);
  ML_TRY(check_envelope(bytes, size, error));
  read_fields(&draft, bytes);
  ML_TRY(check_rules(&draft, format_rules, COUNT(format_rules), ML_E_FORMAT, error));
  ML_TRY(check_relations(&draft, format_relations, COUNT(format_relations), ML_E_FORMAT, error));
  ML_TRY(check_reserved(bytes, error));
  ML_TRY(check_rules(&draft, dimension_rules, COUNT(dimension_rules), ML_E_SHAPE, error));
  derive_fields(&draft);
  ML_TRY(check_relations(&draft, shape_relations, COUNT(shape_relations), ML_E_SHAPE, error));
  ML_TRY(check_rules(&draft, product_rules, COUNT(product_rules), ML_E_SHAPE, error));
  *header = draft.header;
  return ML_OK;
}

/* ---------------------------------------------------------------- layer flags */

static const char *broken_flag_rule(const ml_mlb_header *header, uint8_t flags, ml_status *status) {
  enum {
    LINEAR = ML_MLB_LAYER_LINEAR,
    LOCAL = ML_MLB_LAYER_LOCAL_ROPE,
    NOPE = ML_MLB_LAYER_NOPE,
    KNOWN = ML_MLB_LAYER_WINDOW | LOCAL | NOPE | LINEAR
  };
  *status = ML_E_FORMAT;
  if (flags & ~KNOWN) return "only bits 1, 2, 4 and 8 are known, in layer";
  if ((flags & LINEAR) && flags != LINEAR) return "bit 8 (linear attention) must be alone, in layer";
  if ((flags & LOCAL) && (flags & NOPE))
    return "bits 2 (local RoPE) and 4 (no RoPE) exclude each other, in layer";
  if ((flags & LOCAL) && header->rope_local_theta == 0)
    return "bit 2 (local RoPE) needs a rope_local_theta above 0, in layer";
  *status = ML_E_SHAPE;
  if ((flags & LINEAR) && !has_linear(header))
    return "bit 8 (linear attention) needs lin_k_heads above 0, in layer";
  return NULL;
}

ml_status ml_mlb_check_flags(const ml_mlb_header *header, const uint8_t *flags, ml_error *error) {
  for (uint32_t layer = 0; layer < header->n_layers; layer++) {
    ml_status status;
    const char *rule = broken_flag_rule(header, flags[layer], &status);
    if (rule)
      return ml_fail(error, status, "layer flags", ml_uint(flags[layer]), rule, ml_uint(layer),
                     ML_MLB_HEADER_SIZE + (uint64_t)layer);
  }
  return ML_OK;
}

ml_status ml_mlb_check_q8(const uint8_t *quants, size_t size, uint64_t offset, ml_error *error) {
  const uint8_t *bad = size ? memchr(quants, 0x80, size) : NULL;
  if (!bad) return ML_OK;
  return ml_fail(error, ML_E_FORMAT, "Q8_0 quant", ml_int(-128), "must be at least", ml_int(-127),
                 offset + (uint64_t)(bad - quants));
}
