/* check_vectors.c - kernels on one or two vectors of any length, and the quantizer. */
#include <string.h>

#include "checkasm.h"

enum { BENCH_N = 1024 };

typedef struct vectors {
  size_t n;
  buffer x, y, z, out;
  float number, scale; /* eps or cap; the l2 norm's */
} vectors;

/* Every remainder of every vector width that there is, then lengths that models have. */
static const size_t long_lengths[] = {127, 128, 129, 250, 576, 1000, 1536};
enum { N_SHORT = 71, N_LENGTHS = N_SHORT + sizeof long_lengths / sizeof *long_lengths };

static size_t length(size_t index) { return index < N_SHORT ? index : long_lengths[index - N_SHORT]; }

#define EACH_LENGTH_AND_STYLE                        \
  for (size_t index = 0; index < N_LENGTHS; index++) \
    for (style s = 0; s < N_STYLES; s++)

/* ---------------------------------------------------------------- two vectors, the first in place */

static void check_binary(call_fn *call) {
  EACH_LENGTH_AND_STYLE {
    size_t n = length(index);
    case_begin("n %zu, %s", n, style_name(s));
    vectors v = {.n = n, .x = new_floats("x", n, s), .y = new_floats("y", n, s)};
    case_run(call, &v);
  }
}

/* x is 0 and stays so: repeated in place, anything else would drift to infinity or to subnormal numbers. */
static void bench_binary(call_fn *call) {
  case_begin("%d", BENCH_N);
  vectors v = {.n = BENCH_N, .x = new_floats("x", BENCH_N, SMOOTH), .y = new_floats("y", BENCH_N, SMOOTH)};
  memset(v.x.of[REFERENCE], 0, BENCH_N * sizeof(float));
  case_run(call, &v);
}

#define BINARY(name)                                                             \
  static void call_##name(const ml_kernels *k, side on, const void *arguments) { \
    const vectors *v = arguments;                                                \
    k->name(v->x.of[on], v->y.of[on], v->n);                                     \
  }                                                                              \
  void check_##name(void) { check_binary(call_##name); }                         \
  void bench_##name(void) { bench_binary(call_##name); }

BINARY(add)
BINARY(silu_mul)
BINARY(gelu_mul)
BINARY(mul_sigmoid)
BINARY(mul_silu)

/* ---------------------------------------------------------------- soft cap */

static void call_softcap(const ml_kernels *k, side on, const void *arguments) {
  const vectors *v = arguments;
  k->softcap(v->x.of[on], v->n, v->number);
}

void check_softcap(void) {
  static const float caps[] = {30, 50, 0.3f, 1e-20f, 1e20f};
  EACH_LENGTH_AND_STYLE {
    float cap = caps[random_below(sizeof caps / sizeof *caps)];
    size_t n = length(index);
    case_begin("n %zu, cap %g, %s", n, (double)cap, style_name(s));
    case_run(call_softcap, &(vectors){.n = n, .x = new_floats("x", n, s), .number = cap});
  }
}

void bench_softcap(void) {
  case_begin("%d", BENCH_N);
  vectors v = {.n = BENCH_N, .x = new_floats("x", BENCH_N, SMOOTH), .number = 30};
  memset(v.x.of[REFERENCE], 0, BENCH_N * sizeof(float));
  case_run(call_softcap, &v);
}

/* ---------------------------------------------------------------- norms */

static void call_rms_norm(const ml_kernels *k, side on, const void *arguments) {
  const vectors *v = arguments;
  k->rms_norm(v->out.of[on], v->x.of[on], v->y.of[on], v->n, v->number);
}

void check_rms_norm(void) {
  EACH_LENGTH_AND_STYLE {
    size_t n = length(index);
    if (n == 0) continue;
    bool in_place = random_below(2);
    case_begin("n %zu, %s%s", n, style_name(s), in_place ? ", in place" : "");
    vectors v = {.n = n, .x = new_floats("x", n, s), .y = new_floats("w", n, s)};
    v.out = in_place ? v.x : new_buffer("out", n, sizeof(float), FLOATS);
    v.number = random_below(2) ? 1e-5f : 1e-6f;
    case_run(call_rms_norm, &v);
  }
}

void bench_rms_norm(void) {
  case_begin("%d", BENCH_N);
  vectors v = {.n = BENCH_N, .number = 1e-5f};
  v.x = new_floats("x", BENCH_N, SMOOTH);
  v.y = new_floats("w", BENCH_N, SMOOTH);
  v.out = new_buffer("out", BENCH_N, sizeof(float), FLOATS);
  case_run(call_rms_norm, &v);
}

static void call_l2_norm(const ml_kernels *k, side on, const void *arguments) {
  const vectors *v = arguments;
  k->l2_norm(v->x.of[on], v->n, v->number, v->scale);
}

void check_l2_norm(void) {
  EACH_LENGTH_AND_STYLE {
    size_t n = length(index);
    case_begin("n %zu, %s", n, style_name(s));
    case_run(call_l2_norm,
             &(vectors){.n = n, .x = new_floats("x", n, s), .number = 1e-6f, .scale = random_between(0, 1)});
  }
}

void bench_l2_norm(void) {
  case_begin("128");
  case_run(call_l2_norm,
           &(vectors){.n = 128, .x = new_floats("x", 128, SMOOTH), .number = 1e-6f, .scale = 1});
}

/* ---------------------------------------------------------------- rotation */

static void call_rope(const ml_kernels *k, side on, const void *arguments) {
  const vectors *v = arguments;
  k->rope(v->x.of[on], v->y.of[on], v->z.of[on], v->n);
}

static vectors rope_case(size_t n, style s) {
  return (vectors){
      .n = n, .x = new_floats("x", n, s), .y = new_floats("cosine", n, s), .z = new_floats("sine", n, s)};
}

void check_rope(void) {
  EACH_LENGTH_AND_STYLE {
    size_t n = length(index) / 2 * 2;
    case_begin("n %zu, %s", n, style_name(s));
    vectors v = rope_case(n, s);
    case_run(call_rope, &v);
  }
}

void bench_rope(void) {
  case_begin("128");
  vectors v = rope_case(128, SMOOTH);
  memset(v.x.of[REFERENCE], 0, 128 * sizeof(float));
  case_run(call_rope, &v);
}

/* ---------------------------------------------------------------- quantizer */

typedef struct quantized {
  size_t n;
  buffer x, q, d, starts, finite;
} quantized;

static void call_quantize(const ml_kernels *k, side on, const void *arguments) {
  const quantized *a = arguments;
  bool finite = k->quantize(a->q.of[on], a->d.of[on], a->starts.of[on], a->x.of[on], a->n);
  *(bool *)a->finite.of[on] = finite;
  if (finite) return;
  memset(a->q.of[on], 0, a->n); /* the results are unspecified then */
  memset(a->d.of[on], 0, a->n / ML_BLOCK * sizeof(float));
  memset(a->starts.of[on], 0, a->n / ML_BLOCK * sizeof(int32_t));
}

static quantized quantize_case(size_t n, style s) {
  quantized a = {.n = n, .x = new_floats("x", n, s)};
  a.q = new_buffer("q", n, 1, BYTES);
  a.d = new_buffer("d", n / ML_BLOCK, sizeof(float), FLOATS);
  a.starts = new_buffer("starts", n / ML_BLOCK, sizeof(int32_t), BYTES);
  a.finite = new_buffer("result", 1, sizeof(bool), BYTES);
  return a;
}

/* Levels that lie on a bound or next to it: multiples of 1/2 around a largest value of 127. */
static void fill_ties(float *x, size_t n, float unit) {
  for (size_t i = 0; i < n; i++) x[i] = unit * 0.5f * (float)((int)random_below(509) - 254);
  for (size_t i = 0; i < n; i += ML_BLOCK) x[i + random_below(ML_BLOCK)] = unit * 127;
}

void check_quantize(void) {
  for (size_t n = 0; n <= 20 * ML_BLOCK; n += ML_BLOCK)
    for (style s = 0; s < N_STYLES; s++)
      for (int again = 0; again < 4; again++) {
        case_begin("n %zu, %s", n, style_name(s));
        quantized a = quantize_case(n, s);
        if (s == TIES) fill_ties(a.x.of[REFERENCE], n, again == 0 ? 1.0f : random_between(1e-20f, 3));
        case_run(call_quantize, &a);
      }
  for (int exponent = -149; exponent < 128; exponent++) { /* around where a block counts as zero */
    case_begin("n 32, 2^%d", exponent);
    quantized a = quantize_case(ML_BLOCK, SMOOTH);
    float *x = a.x.of[REFERENCE], unit = 1;
    for (int i = exponent; i < 0; i++) unit *= 0.5f;
    for (int i = 0; i < exponent; i++) unit *= 2;
    for (int i = 0; i < ML_BLOCK; i++) x[i] *= unit;
    case_run(call_quantize, &a);
  }
}

void bench_quantize(void) {
  case_begin("%d", BENCH_N);
  quantized a = quantize_case(BENCH_N, SMOOTH);
  case_run(call_quantize, &a);
}
