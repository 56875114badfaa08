/* The scalar kernels against naive double arithmetic. A mistake that all implementations share would pass every
 * comparison between them; here it would not. What these tolerances let through is tested at the end. */
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "test.h"

enum { MAX_N = 133, BLOCKS = 5, COLS = BLOCKS * ML_BLOCK, ROWS = 37, TOKENS = 3, PACKED_ROWS = 48 };

static const ml_kernels *scalar(void) { return ml_kernels_find("scalar"); }

static void fill(float *x, size_t n, float size) {
  for (size_t i = 0; i < n; i++) x[i] = test_random_f32(-size, size);
}

/* Largest |value - expected| / max(1, |expected|). */
static double error_of(const float *value, const double *expected, size_t n) {
  double worst = 0;
  for (size_t i = 0; i < n; i++) {
    double error = fabs(value[i] - expected[i]) / fmax(1, fabs(expected[i]));
    if (isnan(error)) return error;
    worst = fmax(worst, error);
  }
  return worst;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double gelu(double x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/* ---------------------------------------------------------------- element by element */

typedef void binary_kernel(float *x, const float *y, size_t n);

static double add(double x, double y) { return x + y; }
static double silu_mul(double x, double y) { return silu(x) * y; }
static double gelu_mul(double x, double y) { return gelu(x) * y; }
static double mul_sigmoid(double x, double y) { return x * sigmoid(y); }
static double mul_silu(double x, double y) { return x * silu(y); }

/* Every length, so that every remainder is met; what lies behind the end stays as it was. */
static void check_binary(binary_kernel *kernel, double (*expected)(double, double)) {
  for (size_t n = 0; n <= MAX_N; n++) {
    float x[MAX_N + 1], y[MAX_N];
    double want[MAX_N];
    fill(x, MAX_N + 1, 12);
    fill(y, MAX_N, 12);
    for (size_t i = 0; i < n; i++) want[i] = expected(x[i], y[i]);
    float behind = x[n];
    kernel(x, y, n);
    CHECK(error_of(x, want, n) < 1e-6);
    CHECK_EQ_F32_BITS(x[n], behind);
  }
}

TEST(kernel_add) { check_binary(scalar()->add, add); }
TEST(kernel_silu_mul) { check_binary(scalar()->silu_mul, silu_mul); }
TEST(kernel_gelu_mul) { check_binary(scalar()->gelu_mul, gelu_mul); }
TEST(kernel_mul_sigmoid) { check_binary(scalar()->mul_sigmoid, mul_sigmoid); }
TEST(kernel_mul_silu) { check_binary(scalar()->mul_silu, mul_silu); }

TEST(kernel_activations_at_extremes) {
  const float extremes[] = {0,    -0.0f, 1e-30f, 87.9f,      -87.9f, 100,
                            -100, 1e30f, -1e30f, 0.6249999f, 0.625f, -0.625f};
  for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
    float x = extremes[i], y = 1;
    double want = silu(x);
    scalar()->silu_mul(&x, &y, 1);
    CHECK(error_of(&x, &want, 1) < 1e-6);
    x = extremes[i], want = gelu(x);
    scalar()->gelu_mul(&x, &y, 1);
    CHECK(error_of(&x, &want, 1) < 1e-6);
  }
}

TEST(kernel_softcap) {
  float x[] = {100, 60, -100, 0, 1e-3f, 1e30f, -1e30f, 20, -7};
  for (int cap = 30; cap <= 50; cap += 20) {
    float value[9];
    double want[9];
    for (int i = 0; i < 9; i++) want[i] = cap * tanh((double)x[i] / cap);
    memcpy(value, x, sizeof x);
    scalar()->softcap(value, 9, (float)cap);
    CHECK(error_of(value, want, 9) < 1e-6);
    CHECK_NEAR(value[4], 1e-3, 1e-9); /* relative precision near zero */
  }
}

/* ---------------------------------------------------------------- norms and rotation */

TEST(kernel_rms_norm) {
  for (size_t n = 1; n <= MAX_N; n++) {
    float x[MAX_N], w[MAX_N], out[MAX_N];
    double want[MAX_N], sum = 0;
    fill(x, n, 3);
    fill(w, n, 2);
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    for (size_t i = 0; i < n; i++) want[i] = x[i] / sqrt(sum / (double)n + 1e-5) * w[i];
    scalar()->rms_norm(out, x, w, n, 1e-5f);
    CHECK(error_of(out, want, n) < 1e-6);
    scalar()->rms_norm(x, x, w, n, 1e-5f);
    CHECK_EQ_BYTES(x, out, n * sizeof *x);
  }
}

TEST(kernel_l2_norm) {
  float x[MAX_N];
  double want[MAX_N], sum = 0;
  fill(x, MAX_N, 0.001f); /* small enough for epsilon to matter */
  for (int i = 0; i < MAX_N; i++) sum += (double)x[i] * x[i];
  for (int i = 0; i < MAX_N; i++) want[i] = x[i] * 0.25 / sqrt(sum + 1e-6);
  scalar()->l2_norm(x, MAX_N, 1e-6f, 0.25f);
  CHECK(error_of(x, want, MAX_N) < 1e-6);
}

TEST(kernel_rope) {
  for (size_t n = 0; n <= 70; n += 2) {
    float x[71], cosine[70], sine[70];
    double want[70];
    fill(x, 71, 3);
    for (size_t i = 0; i < n; i += 2) {
      double angle = test_random_f32(-9, 9), c = cos(angle), s = sin(angle);
      cosine[i] = cosine[i + 1] = (float)c;
      sine[i] = (float)-s, sine[i + 1] = (float)s;
      want[i] = x[i] * c - x[i + 1] * s;
      want[i + 1] = x[i] * s + x[i + 1] * c;
    }
    float behind = x[n];
    scalar()->rope(x, cosine, sine, n);
    CHECK(error_of(x, want, n) < 1e-6);
    CHECK_EQ_F32_BITS(x[n], behind);
  }
}

/* ---------------------------------------------------------------- quantization and matrices */

TEST(kernel_quantize_by_the_format_rule) {
  float x[ML_BLOCK];
  int8_t q[ML_BLOCK];
  float d;
  int32_t start;
  for (int round = 0; round < 2000; round++) {
    fill(x, ML_BLOCK, ldexpf(1, (int)test_random_below(60) - 30));
    float amax = 0;
    for (int i = 0; i < ML_BLOCK; i++) amax = fmaxf(amax, fabsf(x[i]));
    CHECK(scalar()->quantize(q, &d, &start, x, ML_BLOCK));
    CHECK_EQ_F32_BITS(d, amax / 127);
    for (int i = 0; i < ML_BLOCK; i++) start += 8 * q[i];
    CHECK_EQ_I64(start, 0);
    for (int i = 0; i < ML_BLOCK; i++) {
      float scaled = x[i] * (127 / amax), level = truncf(scaled + copysignf(0.5f, x[i]));
      CHECK_EQ_I64(q[i], (int)fmaxf(-127, fminf(127, level)));
    }
  }
}

TEST(kernel_quantize_rounds_halves_away_from_zero) {
  float x[ML_BLOCK] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -2.5f}, d;
  int8_t q[ML_BLOCK], want[ML_BLOCK] = {127, 1, 2, 3, -1, -3};
  int32_t start;
  CHECK(scalar()->quantize(q, &d, &start, x, ML_BLOCK));
  CHECK_EQ_F32_BITS(d, 1);
  CHECK_EQ_BYTES(q, want, ML_BLOCK);
}

TEST(kernel_quantize_near_zero) {
  float x[ML_BLOCK] = {9.9e-31f}, d = 7;
  int8_t q[ML_BLOCK], zeros[ML_BLOCK] = {0};
  int32_t start;
  CHECK(scalar()->quantize(q, &d, &start, x, ML_BLOCK));
  CHECK_EQ_F32_BITS(d, 0);
  CHECK_EQ_BYTES(q, zeros, ML_BLOCK);
  x[0] = 1e-30f; /* the bound itself is quantized */
  CHECK(scalar()->quantize(q, &d, &start, x, ML_BLOCK));
  CHECK_EQ_I64(q[0], 127);
}

TEST(kernel_quantize_refuses_what_is_not_finite) {
  for (int at = 0; at < 2 * ML_BLOCK; at++) {
    const float bad[] = {NAN, -NAN, HUGE_VALF, -HUGE_VALF};
    for (int kind = 0; kind < 4; kind++) {
      float x[2 * ML_BLOCK], d[2];
      int8_t q[2 * ML_BLOCK];
      int32_t starts[2];
      fill(x, 2 * ML_BLOCK, 1);
      CHECK(scalar()->quantize(q, d, starts, x, 2 * ML_BLOCK));
      x[at] = bad[kind];
      CHECK(!scalar()->quantize(q, d, starts, x, 2 * ML_BLOCK));
      CHECK(!ml_kernels_exact()->quantize(q, d, starts, x, 2 * ML_BLOCK));
    }
  }
}

typedef struct matmul_case {
  uint8_t quants[ROWS * COLS], packed_quants[PACKED_ROWS * COLS];
  float scales[ROWS * BLOCKS], packed_scales[PACKED_ROWS * BLOCKS];
  int8_t q[TOKENS * COLS];
  int16_t wide[TOKENS * COLS];
  int32_t starts[TOKENS * BLOCKS];
  float d[TOKENS * BLOCKS];
  float x[TOKENS * COLS]; /* q * d */
} matmul_case;

/* Every word of the file's order into its place of the packed one. */
static void pack_case(matmul_case *m, size_t n_words) {
  for (size_t row = 0; row < ROWS; row++)
    for (size_t b = 0; b < BLOCKS; b++) {
      m->packed_scales[ml_scale_index(ML_LAYOUT_PACKED, BLOCKS, row, b)] = m->scales[row * BLOCKS + b];
      for (size_t word = 0; word < n_words; word++)
        memcpy(m->packed_quants + ml_word_offset(ML_LAYOUT_PACKED, n_words, BLOCKS, row, b, word),
               m->quants + ((row * BLOCKS + b) * n_words + word) * 4, 4);
    }
}

static void fill_case(matmul_case *m, ml_weight_type type) {
  memset(m, 0, sizeof *m);
  test_random_bytes(m->quants, sizeof m->quants);
  if (type == ML_Q8_0)
    for (size_t i = 0; i < sizeof m->quants; i++)
      if (m->quants[i] == 0x80) m->quants[i] = 0x81;
  fill(m->scales, ROWS * BLOCKS, 0.1f);
  fill(m->d, TOKENS * BLOCKS, 0.1f);
  for (int i = 0; i < TOKENS * COLS; i++) {
    m->q[i] = (int8_t)((int)test_random_below(255) - 127);
    m->starts[i / ML_BLOCK] -= 8 * m->q[i];
    m->wide[i / 4 * 4 + (i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4)] = m->q[i];
    m->x[i] = (float)m->q[i] * m->d[i / ML_BLOCK];
  }
  pack_case(m, ml_block_bytes(type) / 4);
}

static int level_of(const matmul_case *m, ml_weight_type type, int block, int j) {
  if (type == ML_Q8_0) return (int8_t)m->quants[block * 32 + j];
  if (type == ML_INT2) return 2 * (m->quants[block * 8 + j % 8] >> (j / 8 * 2) & 3) - 3;
  uint8_t pair = m->quants[block * 16 + j % 16];
  return (j < 16 ? pair & 15 : pair >> 4) - 8;
}

static double row_times(const matmul_case *m, ml_weight_type type, int row, int token) {
  double sum = 0;
  for (int b = 0; b < BLOCKS; b++)
    for (int j = 0; j < ML_BLOCK; j++)
      sum += (double)level_of(m, type, row * BLOCKS + b, j) * m->scales[row * BLOCKS + b] *
             m->x[token * COLS + b * ML_BLOCK + j];
  return sum;
}

static void check_matmul(const ml_kernels *kernels, ml_weight_type type, ml_layout layout, double tolerance) {
  static matmul_case m;
  fill_case(&m, type);
  bool packed = layout == ML_LAYOUT_PACKED;
  ml_matrix w = {
      type, layout, ROWS, COLS, packed ? m.packed_quants : m.quants, packed ? m.packed_scales : m.scales};
  ml_rows rows = {TOKENS, COLS, m.x, m.q, m.d, m.starts, m.wide};
  float y[TOKENS][ROWS + 3], before[TOKENS][ROWS + 3];
  fill(&y[0][0], TOKENS * (ROWS + 3), 1);
  memcpy(before, y, sizeof y);
  enum { FROM = ML_PACK_ROWS, TO = ROWS };
  ml_matmul_for(kernels, &w)(&y[0][0], ROWS + 3, &w, &rows, FROM, TO);
  for (int token = 0; token < TOKENS; token++)
    for (int row = 0; row < ROWS + 3; row++)
      if (row >= FROM && row < TO)
        CHECK_NEAR(y[token][row], row_times(&m, type, row, token), tolerance);
      else
        CHECK_EQ_F32_BITS(y[token][row], before[token][row]);
}

TEST(kernel_matmul_q8_0) {
  check_matmul(scalar(), ML_Q8_0, ML_LAYOUT_ROWS, 0.02);
  check_matmul(scalar(), ML_Q8_0, ML_LAYOUT_PACKED, 0.02);
}

TEST(kernel_matmul_q4_0) {
  check_matmul(scalar(), ML_Q4_0, ML_LAYOUT_ROWS, 0.002);
  check_matmul(scalar(), ML_Q4_0, ML_LAYOUT_PACKED, 0.002);
}

TEST(kernel_matmul_int2) {
  check_matmul(scalar(), ML_INT2, ML_LAYOUT_PACKED, 0.001);
  check_matmul(ml_kernels_exact(), ML_INT2, ML_LAYOUT_PACKED, 0.0002);
}

/* Halves of any kind but infinities and NaN, against their exact values summed in double. */
static void check_matmul_f16(const ml_kernels *kernels, double tolerance) {
  static uint16_t halves[PACKED_ROWS * COLS];
  static float x[TOKENS * COLS];
  float y[TOKENS][ROWS];
  fill(x, TOKENS * COLS, 1);
  for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
    halves[i] = (uint16_t)test_random_u64();
    if (halves[i] % 0x8000 > 0x4400) halves[i] ^= 0x4000; /* below 4 */
  }
  ml_matrix w = {ML_F16, ML_LAYOUT_PACKED, ROWS, COLS, (const uint8_t *)halves, NULL};
  ml_rows rows = {TOKENS, COLS, x, NULL, NULL, NULL, NULL};
  ml_matmul_for(kernels, &w)(&y[0][0], ROWS, &w, &rows, 0, ROWS);
  for (size_t token = 0; token < TOKENS; token++)
    for (size_t row = 0; row < ROWS; row++) {
      double sum = 0;
      for (size_t c = 0; c < COLS; c++)
        sum += (double)ml_half_to_float(halves[ml_half_offset(COLS, row, c) / 2]) * x[token * COLS + c];
      CHECK_NEAR(y[token][row], sum, tolerance);
    }
}

TEST(kernel_matmul_f16) {
  check_matmul_f16(scalar(), 1e-4);
  check_matmul_f16(ml_kernels_exact(), 1e-5);
}

/* Every half comes back, and a float between two of them goes to the nearer one, or to the even one. */
TEST(half_from_float) {
  for (uint32_t half = 0; half < 0x7c00; half++) {
    float value = ml_half_to_float((uint16_t)half);
    float next = half == 0x7bff ? 65536 : ml_half_to_float((uint16_t)(half + 1));
    float middle = (float)(((double)value + next) / 2), gap = (next - value) / 8;
    CHECK_EQ_U64(ml_float_to_half(value), half);
    CHECK_EQ_U64(ml_float_to_half(-value), half | 0x8000);
    CHECK_EQ_U64(ml_float_to_half(middle), half + (half & 1));
    CHECK_EQ_U64(ml_float_to_half(middle - gap), half);
    CHECK_EQ_U64(ml_float_to_half(-middle - gap), (half + 1) | 0x8000);
  }
  CHECK_EQ_U64(ml_float_to_half(1e-30f), 0);
  CHECK_EQ_U64(ml_float_to_half(1e30f), 0x7c00);
  CHECK_EQ_U64(ml_float_to_half(-HUGE_VALF), 0xfc00);
  CHECK((ml_float_to_half(NAN) & 0x7fff) > 0x7c00);
}

TEST(kernel_matmul_exact) {
  check_matmul(ml_kernels_exact(), ML_Q8_0, ML_LAYOUT_ROWS, 0.005);
  check_matmul(ml_kernels_exact(), ML_Q4_0, ML_LAYOUT_PACKED, 0.0005);
}

/* All products at their limit: 32 * 127 * 127 = 516128, exact in float. */
TEST(kernel_matmul_at_the_limit) {
  uint8_t quants[ML_BLOCK];
  int8_t q[ML_BLOCK];
  memset(quants, 0x81, sizeof quants);
  memset(q, -127, sizeof q);
  float scale = 1, d = 1, x[ML_BLOCK] = {0}, y;
  int32_t sum = -127 * ML_BLOCK;
  ml_matrix w = {ML_Q8_0, ML_LAYOUT_ROWS, 1, ML_BLOCK, quants, &scale};
  ml_rows rows = {1, ML_BLOCK, x, q, &d, &sum, NULL};
  scalar()->matmul_q8_0_rows(&y, 1, &w, &rows, 0, 1);
  CHECK_EQ_F32_BITS(y, 516128);
}

/* ---------------------------------------------------------------- attention, delta rule, convolution */

/* Window 4, query 5 sees keys 2, 3, 4, 5: uniform scores, so each counts a quarter; key tags tell them apart. */
TEST(kernel_attend_window_and_ring) {
  float k[4] = {0}, v[4], q = 1, out, scores[4], sum;
  for (int p = 2; p <= 5; p++) v[p % 4] = ldexpf(1, p);
  ml_attend a = {&out, &q, k, v, 1, 1, 4, 2, 4, 1, 0, scores, &sum};
  scalar()->attend(&a);
  CHECK_EQ_F32_BITS(out, (4 + 8 + 16 + 32) / 4.0f);
  ml_kernels_exact()->attend(&a);
  CHECK_EQ_F32_BITS(out, (4 + 8 + 16 + 32) / 4.0f);
}

static void check_attend(const ml_kernels *kernels, uint32_t head_dim, uint32_t first, uint32_t count,
                         float softcap) {
  enum { CAPACITY = 50, HEADS = 3 };
  static float k[CAPACITY * MAX_N], v[CAPACITY * MAX_N], q[HEADS * MAX_N], out[HEADS * MAX_N];
  static float scores[HEADS * CAPACITY], sums[HEADS];
  fill(k, CAPACITY * head_dim, 1);
  fill(v, CAPACITY * head_dim, 1);
  fill(q, HEADS * head_dim, 1);
  ml_attend a = {out, q, k, v, HEADS, head_dim, CAPACITY, first, count, 0.7f, softcap, scores, sums};
  kernels->attend(&a);
  for (uint32_t head = 0; head < HEADS; head++) {
    double sum = 0, want[MAX_N] = {0};
    for (uint32_t t = 0; t < count; t++) {
      size_t row = (first + t) % CAPACITY * head_dim;
      double score = 0;
      for (uint32_t i = 0; i < head_dim; i++) score += (double)q[head * head_dim + i] * k[row + i];
      score *= 0.7;
      if (softcap > 0) score = softcap * tanh(score / softcap);
      sum += exp(score);
      for (uint32_t i = 0; i < head_dim; i++) want[i] += exp(score) * v[row + i];
    }
    for (uint32_t i = 0; i < head_dim; i++) want[i] /= sum;
    CHECK(error_of(out + head * head_dim, want, head_dim) < 2e-6);
  }
}

TEST(kernel_attend) {
  for (uint32_t head_dim = 2; head_dim <= 64; head_dim += 2)
    for (uint32_t count = 1; count <= 50; count += 7) {
      check_attend(scalar(), head_dim, test_random_below(200), count, 0);
      check_attend(scalar(), head_dim, test_random_below(200), count, 5);
      check_attend(ml_kernels_exact(), head_dim, test_random_below(200), count, 5);
    }
}

/* The worked example: head size 2, three steps. decay and beta as the layer computes them. */
static void check_delta_example(const ml_kernels *kernels) {
  const float steps[3][6] = {{1, 0, 1, 0, 1, 2}, {1, 1, 0, 1, 3, 4}, {1, 0, 1, 0, 5, 6}};
  const float decay[3] = {0.5f, 0.5f, 0.268941f}, beta[3] = {0.5f, 0.5f, 0.880797f};
  const float want[3][2] = {{0.35355f, 0.70711f}, {0.875f, 1.25f}, {3.11975f, 3.74824f}};
  float state[4] = {0}, out[2];
  for (int i = 0; i < 3; i++) {
    float q[2] = {steps[i][0], steps[i][1]}, k[2] = {steps[i][2], steps[i][3]};
    kernels->l2_norm(q, 2, 1e-6f, (float)sqrt(0.5));
    kernels->l2_norm(k, 2, 1e-6f, 1);
    ml_delta a = {out, state, q, k, &steps[i][4], 2, 2, decay[i], beta[i]};
    kernels->delta_step(&a);
    CHECK_NEAR(out[0], want[i][0], 1e-5);
    CHECK_NEAR(out[1], want[i][1], 1e-5);
  }
}

TEST(kernel_delta_step_example) {
  check_delta_example(scalar());
  check_delta_example(ml_kernels_exact());
}

TEST(kernel_delta_step_implementations_agree) {
  enum { DK = 12, DV = 20 };
  float state[2][DK * DV], out[2][DV], q[DK], k[DK], v[DV];
  fill(state[0], DK * DV, 1);
  memcpy(state[1], state[0], sizeof state[0]);
  for (int step = 0; step < 20; step++) {
    fill(q, DK, 0.3f);
    fill(k, DK, 0.3f);
    fill(v, DV, 1);
    float decay = test_random_f32(0.5f, 1), beta = test_random_f32(0, 1);
    scalar()->delta_step(&(ml_delta){out[0], state[0], q, k, v, DK, DV, decay, beta});
    ml_kernels_exact()->delta_step(&(ml_delta){out[1], state[1], q, k, v, DK, DV, decay, beta});
    for (int j = 0; j < DV; j++) CHECK_NEAR(out[0][j], out[1][j], 1e-5);
  }
}

/* A long sequence through the ring must equal the convolution of the whole sequence. */
static void check_conv(const ml_kernels *kernels, uint32_t taps) {
  enum { CHANNELS = 19, LENGTH = 23 };
  float weights[8 * CHANNELS], history[8 * CHANNELS] = {0}, inputs[LENGTH][CHANNELS];
  fill(weights, taps * CHANNELS, 1);
  fill(&inputs[0][0], LENGTH * CHANNELS, 1);
  for (uint32_t p = 0; p < LENGTH; p++) {
    float x[CHANNELS];
    memcpy(x, inputs[p], sizeof x);
    uint32_t oldest = taps > 1 ? p % (taps - 1) : 0;
    kernels->conv_silu(&(ml_conv){x, history, weights, CHANNELS, taps, 0, 11, oldest});
    kernels->conv_silu(&(ml_conv){x, history, weights, CHANNELS, taps, 11, CHANNELS, oldest});
    for (int c = 0; c < CHANNELS; c++) {
      double sum = 0;
      for (uint32_t back = 0; back < taps && back <= p; back++)
        sum += (double)weights[(taps - 1 - back) * CHANNELS + (uint32_t)c] * inputs[p - back][c];
      CHECK_NEAR(x[c], silu(sum), 1e-6);
    }
  }
}

TEST(kernel_conv_silu) {
  for (uint32_t taps = 1; taps <= 8; taps++) {
    check_conv(scalar(), taps);
    check_conv(ml_kernels_exact(), taps);
  }
}

/* ---------------------------------------------------------------- what the tolerances let through */

TEST(kernel_tolerances_catch_zeros_and_small_errors) {
  double want[3] = {1, -2, 3};
  float zeros[3] = {0}, slightly_wrong[3] = {1, -2.00001f, 3}, right[3] = {1, -2, 3}, broken[3] = {1, NAN, 3};
  CHECK(error_of(right, want, 3) < 1e-6);
  CHECK(!(error_of(zeros, want, 3) < 1e-6));
  CHECK(!(error_of(slightly_wrong, want, 3) < 1e-6));
  CHECK(!(error_of(broken, want, 3) < 1e-6));
}
