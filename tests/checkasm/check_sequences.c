/* check_sequences.c - kernels that look back: attention, delta rule, convolution. */
#include "checkasm.h"

/* ---------------------------------------------------------------- attention */

typedef struct attention {
  ml_attend a; /* its pointers are set for each side */
  buffer out, q, k, v, scores, sums;
} attention;

static void call_attend(const ml_kernels *kernels, side on, const void *arguments) {
  const attention *at = arguments;
  ml_attend a = at->a;
  a.out = at->out.of[on], a.q = at->q.of[on], a.k = at->k.of[on], a.v = at->v.of[on];
  a.scores = at->scores.of[on], a.sums = at->sums.of[on];
  kernels->attend(&a);
}

static attention new_attention(ml_attend a, style s) {
  size_t heads = (size_t)a.n_heads * a.head_dim, ring = (size_t)a.capacity * a.head_dim;
  attention at = {.a = a};
  at.out = new_buffer("out", heads, sizeof(float), FLOATS);
  at.q = new_floats("q", heads, s);
  at.k = new_floats("k", ring, s);
  at.v = new_floats("v", ring, s);
  at.scores = new_buffer("scores", (size_t)a.n_heads * a.count, sizeof(float), SCRATCH);
  at.sums = new_buffer("sums", a.n_heads, sizeof(float), SCRATCH);
  return at;
}

static void attend_case(uint32_t n_heads, uint32_t head_dim, uint32_t count, uint32_t capacity, style s) {
  ml_attend a = {.n_heads = n_heads, .head_dim = head_dim, .count = count, .capacity = capacity};
  a.first = random_below(3 * capacity);
  a.scale = random_between(0.05f, 1);
  a.softcap = random_below(2) ? 0 : random_between(1, 50);
  case_begin("heads %u x %u, positions %u + %u of %u, cap %g, %s", n_heads, head_dim, a.first, count,
             capacity, (double)a.softcap, style_name(s));
  attention at = new_attention(a, s);
  case_run(call_attend, &at);
}

/* Rings that are full, and rings that wrap; WIDE and EXTREME mostly overflow, so they are rare. */
void check_attend(void) {
  static const uint32_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 15, 16,  17,
                                   24, 31, 32, 33, 40, 48, 63, 64, 65, 80, 96, 128, 256};
  static const uint32_t counts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 65, 100};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
      uint32_t count = counts[j], n_heads = 1 + random_below(4);
      attend_case(n_heads, sizes[i], count, count, SMOOTH);
      attend_case(n_heads, sizes[i], count, count + random_below(20), random_below(4) ? SMOOTH : TIES);
    }
  for (style s = 0; s < N_STYLES; s++)
    for (uint32_t count = 1; count <= 24; count++)
      attend_case(1 + random_below(3), 1 + random_below(40), count, count + random_below(9), s);
}

void bench_attend(void) {
  for (uint32_t count = 64; count <= 1024; count *= 16) {
    case_begin("3 heads x 64, %u positions", count);
    attention at = new_attention(
        (ml_attend){.n_heads = 3, .head_dim = 64, .count = count, .capacity = 1024, .scale = 0.125f}, SMOOTH);
    case_run(call_attend, &at);
  }
}

/* ---------------------------------------------------------------- attention over bytes */

typedef struct mix {
  ml_mix_q8 a;
  buffer out, scores, v, d, sums;
} mix;

static void call_mix_q8(const ml_kernels *kernels, side on, const void *arguments) {
  const mix *m = arguments;
  ml_mix_q8 a = m->a;
  a.out = m->out.of[on], a.scores = m->scores.of[on], a.sums = m->sums.of[on];
  a.v = m->v.of[on], a.d = m->d.of[on];
  kernels->mix_q8(&a);
}

/* Bytes of -127 ... 127. */
static buffer new_levels(const char *name, size_t n) {
  buffer b = new_buffer(name, n, sizeof(int8_t), BYTES);
  int8_t *q = b.of[REFERENCE];
  for (size_t i = 0; i < n; i++) q[i] = (int8_t)((int)random_below(255) - 127);
  return b;
}

static mix new_mix(ml_mix_q8 a, style s) {
  size_t n_blocks = (a.head_dim + ML_BLOCK - 1) / ML_BLOCK;
  mix m = {.a = a};
  m.out = new_buffer("out", (size_t)a.n_heads * a.head_dim, sizeof(float), FLOATS);
  m.scores = new_buffer("scores", a.n_heads * a.stride, sizeof(float), SCRATCH);
  fill_floats(m.scores.of[REFERENCE], a.n_heads * a.stride, s);
  m.v = new_levels("v", a.capacity * n_blocks * ML_BLOCK);
  m.d = new_floats("d", a.capacity * n_blocks, s);
  m.sums = new_buffer("sums", a.n_heads, sizeof(float), SCRATCH);
  return m;
}

static void mix_case(uint32_t n_heads, uint32_t head_dim, uint32_t count, uint32_t capacity, style s) {
  ml_mix_q8 a = {.n_heads = n_heads, .head_dim = head_dim, .count = count, .capacity = capacity};
  a.stride = count + random_below(20);
  a.first = random_below(3 * capacity);
  a.scale = random_between(0.05f, 1);
  a.softcap = random_below(2) ? 0 : random_between(1, 50);
  case_begin("heads %u x %u, positions %u + %u of %u, cap %g, %s", n_heads, head_dim, a.first, count,
             capacity, (double)a.softcap, style_name(s));
  mix m = new_mix(a, s);
  case_run(call_mix_q8, &m);
}

/* As for `attend`; heads around the four that go together, and positions around the 64 that do. */
void check_mix_q8(void) {
  static const uint32_t sizes[] = {1, 5, 8, 12, 31, 32, 33, 40, 64, 65, 96, 128, 256};
  static const uint32_t counts[] = {1, 2, 7, 8, 9, 16, 33, 63, 64, 65, 100, 130};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
      uint32_t count = counts[j], n_heads = 1 + random_below(9);
      mix_case(n_heads, sizes[i], count, count, SMOOTH);
      mix_case(n_heads, sizes[i], count, count + random_below(20), random_below(4) ? SMOOTH : TIES);
    }
  for (style s = 0; s < N_STYLES; s++)
    for (uint32_t count = 1; count <= 24; count++)
      mix_case(1 + random_below(3), 1 + random_below(40), count, count + random_below(9), s);
}

void bench_mix_q8(void) {
  for (uint32_t count = 64; count <= 1024; count *= 16) {
    case_begin("3 heads x 64, %u positions", count);
    mix m = new_mix(
        (ml_mix_q8){
            .n_heads = 3, .head_dim = 64, .count = count, .stride = count, .capacity = 1024, .scale = 0.125f},
        SMOOTH);
    case_run(call_mix_q8, &m);
  }
}

/* ---------------------------------------------------------------- delta rule */

typedef struct delta {
  ml_delta a;
  buffer out, state, q, k, v;
} delta;

static void call_delta_step(const ml_kernels *kernels, side on, const void *arguments) {
  const delta *d = arguments;
  ml_delta a = d->a;
  a.out = d->out.of[on], a.state = d->state.of[on];
  a.q = d->q.of[on], a.k = d->k.of[on], a.v = d->v.of[on];
  kernels->delta_step(&a);
}

static delta new_delta(uint32_t dk, uint32_t dv, style s) {
  delta d = {.a = {.dk = dk, .dv = dv, .decay = random_between(0, 1), .beta = random_between(0, 1)}};
  d.out = new_buffer("out", dv, sizeof(float), FLOATS);
  d.state = new_floats("state", (size_t)dk * dv, s);
  d.q = new_floats("q", dk, s);
  d.k = new_floats("k", dk, s);
  d.v = new_floats("v", dv, s);
  return d;
}

void check_delta_step(void) {
  static const uint32_t keys[] = {1, 2, 3, 8, 12, 16, 31, 64, 128};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    for (uint32_t dv = 1; dv <= 128; dv += dv < 34 ? 1 : 47)
      for (style s = 0; s < N_STYLES; s++) {
        case_begin("keys %u, values %u, %s", keys[i], dv, style_name(s));
        delta d = new_delta(keys[i], dv, s);
        case_run(call_delta_step, &d);
      }
}

void bench_delta_step(void) {
  case_begin("128 x 128");
  delta d = new_delta(128, 128, SMOOTH);
  d.a.decay = 1, d.a.beta = 0; /* repeated, the state must neither grow nor fade */
  case_run(call_delta_step, &d);
}

/* ---------------------------------------------------------------- convolution */

typedef struct convolution {
  ml_conv a;
  buffer x, history, weights;
} convolution;

static void call_conv_silu(const ml_kernels *kernels, side on, const void *arguments) {
  const convolution *c = arguments;
  ml_conv a = c->a;
  a.x = c->x.of[on], a.history = c->history.of[on], a.weights = c->weights.of[on];
  kernels->conv_silu(&a);
}

static convolution new_convolution(uint32_t channels, uint32_t taps, style s) {
  convolution c = {.a = {.channels = channels, .taps = taps, .end = channels}};
  c.x = new_floats("x", channels, s);
  c.history = new_floats("history", (size_t)(taps - 1) * channels, s);
  c.weights = new_floats("weights", (size_t)taps * channels, s);
  return c;
}

void check_conv_silu(void) {
  for (uint32_t channels = 1; channels <= 100; channels += channels < 35 ? 1 : 13)
    for (uint32_t taps = 1; taps <= 8; taps++)
      for (style s = 0; s < N_STYLES; s++) {
        uint32_t begin = random_below(channels), end = begin + 1 + random_below(channels - begin);
        case_begin("channels %u to %u of %u, taps %u, %s", begin, end, channels, taps, style_name(s));
        convolution c = new_convolution(channels, taps, s);
        c.a.begin = begin, c.a.end = end;
        c.a.oldest = taps > 1 ? random_below(taps - 1) : 0;
        case_run(call_conv_silu, &c);
      }
}

void bench_conv_silu(void) {
  case_begin("1024, 4 taps");
  convolution c = new_convolution(1024, 4, SMOOTH);
  float *x = c.x.of[REFERENCE], *history = c.history.of[REFERENCE];
  for (int i = 0; i < 1024; i++) x[i] = 0;
  for (int i = 0; i < 3 * 1024; i++) history[i] = 0;
  case_run(call_conv_silu, &c);
}
