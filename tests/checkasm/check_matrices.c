/* check_matrices.c - matrix products and embedding rows, for each type and layout. */
#include <string.h>

#include "checkasm.h"

typedef struct product {
  ml_matrix w; /* its pointers are set for each side */
  uint32_t tokens, row_begin, row_end, y_stride;
  buffer quants, scales, x, q, d, starts, wide, y;
} product;

static void call_matmul(const ml_kernels *k, side on, const void *arguments) {
  const product *p = arguments;
  ml_matrix w = p->w;
  w.quants = p->quants.of[on], w.scales = p->scales.of[on];
  ml_rows rows = {p->tokens,
                  w.cols,
                  p->x.of[on],
                  p->q.of[on],
                  p->d.of[on],
                  p->starts.of[on],
                  k->wants_wide ? p->wide.of[on] : NULL};
  ml_matmul_for(k, &w)(p->y.of[on], p->y_stride, &w, &rows, p->row_begin, p->row_end);
}

/* ---------------------------------------------------------------- contents */

typedef enum levels { ANY, LARGEST, ALTERNATING, N_LEVELS } levels;

static const char *level_name(levels l) {
  static const char *names[N_LEVELS] = {"any", "largest", "alternating"};
  return names[l];
}

/* Q8_0: -127 ... 127. Q4_0 and INT2: any bits. */
static uint8_t weight_byte(ml_weight_type type, levels l) {
  bool up = l == LARGEST || random_below(2);
  if (type == ML_Q8_0) {
    if (l != ANY) return up ? 127 : (uint8_t)-127;
    return (uint8_t)((int)random_below(255) - 127);
  }
  if (l != ANY) return up ? 0xff : 0x00;
  return (uint8_t)random_u64();
}

static int8_t activation(levels l) {
  if (l == ANY) return (int8_t)((int)random_below(255) - 127);
  return l == LARGEST || random_below(2) ? 127 : -127;
}

/* Scales too may be anything: the format promises nothing of a weight's. */
static buffer new_matrix_scales(const ml_matrix *w, style s) {
  size_t n = (size_t)ml_layout_rows(w->layout, w->rows) * (w->cols / ML_BLOCK);
  buffer b = new_aligned("scales", n, sizeof(float), FLOATS);
  fill_floats(b.of[REFERENCE], n, s);
  return b;
}

/* Any: every half there is, infinities and NaN among them. Largest: the ends of all ranges. Alternating: ordinary ones. */
static void fill_halves(uint16_t *halves, size_t n, levels l) {
  static const uint16_t ends[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff};
  for (size_t i = 0; i < n; i++) {
    uint16_t any = (uint16_t)random_u64();
    halves[i] = l == ANY ? any : l == LARGEST ? ends[any % 8] : (uint16_t)((any & 0x87ff) | 0x3800);
  }
}

static buffer new_matrix_quants(const ml_matrix *w, levels l) {
  size_t bytes = (size_t)ml_layout_rows(w->layout, w->rows) * (w->cols / ML_BLOCK) * ml_block_bytes(w->type);
  buffer b = new_aligned("quants", bytes, 1, BYTES);
  uint8_t *quants = b.of[REFERENCE];
  if (w->type == ML_F16)
    fill_halves(b.of[REFERENCE], bytes / 2, l);
  else
    for (size_t i = 0; i < bytes; i++) quants[i] = weight_byte(w->type, l);
  return b;
}

/* Activations as the quantizer leaves them, and their i16 form: four elements a b c d in the order a c b d. */
static void fill_activations(product *p, levels l, style s) {
  size_t n = (size_t)p->tokens * p->w.cols, n_blocks = n / ML_BLOCK;
  p->x = new_floats("x", n, p->w.type == ML_F16 ? s : SMOOTH);
  p->q = new_buffer("q", n, 1, BYTES);
  p->d = new_floats("d", n_blocks, s);
  p->starts = new_buffer("starts", n_blocks, sizeof(int32_t), BYTES);
  p->wide = new_buffer("wide", n, sizeof(int16_t), BYTES);
  int8_t *q = p->q.of[REFERENCE];
  int16_t *wide = p->wide.of[REFERENCE];
  int32_t *starts = p->starts.of[REFERENCE];
  memset(starts, 0, n_blocks * sizeof *starts);
  for (size_t i = 0; i < n; i++) {
    static const size_t place[4] = {0, 2, 1, 3};
    q[i] = activation(l);
    wide[i / 4 * 4 + place[i % 4]] = q[i];
    starts[i / ML_BLOCK] -= 8 * q[i];
  }
}

/* ---------------------------------------------------------------- matrix products */

typedef struct shape {
  uint32_t rows, blocks, tokens;
} shape;

static product new_product(ml_weight_type type, ml_layout layout, shape size, levels l, style s) {
  product p = {.w = {type, layout, size.rows, size.blocks * ML_BLOCK, NULL, NULL}, .tokens = size.tokens};
  p.row_end = size.rows;
  p.y_stride = size.rows + random_below(3);
  p.quants = new_matrix_quants(&p.w, l);
  p.scales = new_matrix_scales(&p.w, s);
  fill_activations(&p, l, s);
  p.y = new_buffer("y", (size_t)(size.tokens - 1) * p.y_stride + size.rows, sizeof(float), FLOATS);
  return p;
}

static void matmul_case(ml_weight_type type, ml_layout layout, shape size, levels l, style s) {
  uint32_t n_groups = (size.rows + ML_PACK_ROWS - 1) / ML_PACK_ROWS;
  uint32_t first = random_below(2) ? 0 : random_below(n_groups);
  uint32_t end = (first + 1 + random_below(n_groups - first)) * ML_PACK_ROWS;
  if (end > size.rows || random_below(2)) end = size.rows;
  case_begin("%u x %u, rows %u to %u, tokens %u, %s levels, %s scales", size.rows, size.blocks * ML_BLOCK,
             first * ML_PACK_ROWS, end, size.tokens, level_name(l), style_name(s));
  product p = new_product(type, layout, size, l, s);
  p.row_begin = first * ML_PACK_ROWS, p.row_end = end;
  case_run(call_matmul, &p);
}

/* Tokens to twice the widest tile and one more; rows on both sides of a group of 16. */
static void check_matmul(ml_weight_type type, ml_layout layout) {
  static const uint32_t rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 24, 31, 32, 33, 47, 48, 50};
  static const uint32_t blocks[] = {1, 2, 3, 5, 8};
  enum { N_ROWS = sizeof rows / sizeof *rows, N_BLOCKS = sizeof blocks / sizeof *blocks, MAX_TOKENS = 17 };
  for (size_t i = 0; i < N_ROWS; i++)
    for (uint32_t tokens = 1; tokens <= MAX_TOKENS; tokens++) {
      shape size = {rows[i], blocks[random_below(N_BLOCKS)], tokens};
      matmul_case(type, layout, size, (levels)random_below(N_LEVELS), (style)random_below(N_STYLES));
    }
  for (levels l = 0; l < N_LEVELS; l++)
    for (style s = 0; s < N_STYLES; s++) {
      matmul_case(type, layout, (shape){16, 1, 1}, l, s);
      matmul_case(type, layout, (shape){37, 4, 9}, l, s);
    }
  matmul_case(type, layout, (shape){200, 64, 3}, LARGEST, SMOOTH);
  matmul_case(type, layout, (shape){65, 70, 33}, ANY, SMOOTH);
}

/* One token: bound by memory in a model, here by arithmetic. A prompt: tiles of tokens. */
static void bench_matmul(ml_weight_type type, ml_layout layout) {
  static const uint32_t tokens[] = {1, 32};
  for (int i = 0; i < 2; i++) {
    case_begin("256 x 576, tokens %u", tokens[i]);
    product p = new_product(type, layout, (shape){256, 18, tokens[i]}, ANY, SMOOTH);
    case_run(call_matmul, &p);
  }
}

#define MATMUL(name, type, layout)                        \
  void check_##name(void) { check_matmul(type, layout); } \
  void bench_##name(void) { bench_matmul(type, layout); }

MATMUL(matmul_q8_0_rows, ML_Q8_0, ML_LAYOUT_ROWS)
MATMUL(matmul_q4_0_rows, ML_Q4_0, ML_LAYOUT_ROWS)
MATMUL(matmul_q8_0_packed, ML_Q8_0, ML_LAYOUT_PACKED)
MATMUL(matmul_q4_0_packed, ML_Q4_0, ML_LAYOUT_PACKED)
MATMUL(matmul_int2_packed, ML_INT2, ML_LAYOUT_PACKED)
MATMUL(matmul_f16_packed, ML_F16, ML_LAYOUT_PACKED)

/* ---------------------------------------------------------------- embedding */

typedef struct embedding {
  ml_matrix w;
  uint32_t row;
  float scale;
  buffer quants, scales, out;
} embedding;

static void call_embed(const ml_kernels *k, side on, const void *arguments) {
  const embedding *e = arguments;
  ml_matrix w = e->w;
  w.quants = e->quants.of[on], w.scales = e->scales.of[on];
  k->embed(e->out.of[on], &w, e->row, e->scale);
}

static embedding new_embedding(ml_weight_type type, ml_layout layout, shape size, style s) {
  embedding e = {.w = {type, layout, size.rows, size.blocks * ML_BLOCK, NULL, NULL}};
  e.quants = new_matrix_quants(&e.w, ANY);
  e.scales = new_matrix_scales(&e.w, s);
  e.out = new_buffer("out", e.w.cols, sizeof(float), FLOATS);
  return e;
}

void check_embed(void) {
  for (ml_weight_type type = ML_Q8_0; type < ML_WEIGHT_TYPE_END; type++)
    for (ml_layout layout = type < ML_INT2 ? ML_LAYOUT_ROWS : ML_LAYOUT_PACKED; layout <= ML_LAYOUT_PACKED;
         layout++)
      for (style s = 0; s < N_STYLES; s++)
        for (uint32_t blocks = 1; blocks <= 19; blocks += 3) {
          shape size = {1 + random_below(40), blocks, 1};
          uint32_t row = random_below(size.rows);
          case_begin("type %d, layout %d, row %u of %u, %u columns, %s", (int)type, (int)layout, row,
                     size.rows, blocks * ML_BLOCK, style_name(s));
          embedding e = new_embedding(type, layout, size, s);
          e.row = row;
          e.scale = random_below(2) ? 1 : random_between(1, 40);
          case_run(call_embed, &e);
        }
}

void bench_embed(void) {
  for (ml_layout layout = ML_LAYOUT_ROWS; layout <= ML_LAYOUT_PACKED; layout++) {
    case_begin("576, %s", layout == ML_LAYOUT_ROWS ? "rows" : "packed");
    embedding e = new_embedding(ML_Q4_0, layout, (shape){64, 18, 1}, SMOOTH);
    e.row = 21, e.scale = 2;
    case_run(call_embed, &e);
  }
}
