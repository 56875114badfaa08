/* float_kernels.h - the float kernels, written once over eight lanes (v8). The file of an instruction set
 * includes its vocabulary (vec_scalar.h or its twin) and then this one, so that the order of operations is
 * equal by construction. Names begin with `k_`; the including file puts them into its table.
 *
 * Reductions: lane k adds elements k, k + 8, ... in order, missing ones are +0, then v8_sum. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

/* A page downloads the wasm kernels, so there what many of them use exists once, and loops stay loops. */
#if defined(__wasm__)
#define K_SHARED __attribute__((noinline)) static
#define K_SMALL __attribute__((minsize)) static /* what takes no time to speak of */
#define K_ROLLED _Pragma("clang loop unroll(disable)")
#define K_UNROLLED _Pragma("clang loop unroll(full)") /* arrays in registers: where it decides about speed */
#else
#define K_SHARED static inline
#define K_SMALL static
#define K_ROLLED
#define K_UNROLLED
#endif

/* For constants of hot code: V8 makes one anew at each use, by three instructions, and loads what only memory knows by one. */
static inline const void *k_hidden(const void *constants) {
#if defined(__wasm__)
  __asm__("" : "+r"(constants));
#endif
  return constants;
}

/* Elements i ... i + 7 of n; past the end loads give +0 and stores nothing. */
static inline v8 k_at(const float *x, size_t i, size_t n) {
  return i + 8 <= n ? v8_load(x + i) : v8_load_part(x + i, n - i);
}

static inline void k_put(float *x, size_t i, size_t n, v8 a) {
  if (i + 8 <= n)
    v8_store(x + i, a);
  else
    v8_store_part(x + i, a, n - i);
}

/* ---------------------------------------------------------------- elementary functions, eight at a time */

/* exp, relative error below 2e-7. Below -87: 0. Above 88: infinity (nothing here needs the last
 * 0.72 of the range). NaN stays NaN. */
K_SHARED v8 k_exp(v8 x) {
  typedef struct exp_constants {
    float shift, per_ln2, ln2_high, ln2_low, p[4], half, one, least, most;
  } exp_constants;
  static const exp_constants constants = {
      .shift = 12582912.0f, /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
      .per_ln2 = 1.44269504f,
      .ln2_high = 0x1.62ep-1f, /* ln 2 in two parts; n * the first is exact */
      .ln2_low = 0x1.0bfbe8p-15f,
      /* with `half` the minimax of (e^r - 1 - r) / r^2 on |r| <= 0.35, error 8e-9 */
      .p = {0x1.6c6b9cp-10f, 0x1.121022p-7f, 0x1.5555bep-5f, 0x1.5554d8p-3f},
      .half = 0.5f,
      .one = 1.0f,
      .least = -87.0f,
      .most = 88.0f};
  const exp_constants *c = k_hidden(&constants);
  v8 shift = v8_set(c->shift), least = v8_set(c->least), most = v8_set(c->most);
  v8 low = v8_less(x, least), high = v8_less(most, x);
  v8 inside = v8_select(high, most, v8_max(x, least));
  v8 shifted = v8_add(v8_mul(inside, v8_set(c->per_ln2)), shift);
  v8 n = v8_sub(shifted, shift);
  v8 r = v8_sub(inside, v8_mul(n, v8_set(c->ln2_high)));
  r = v8_sub(r, v8_mul(n, v8_set(c->ln2_low)));
  v8 p = v8_add(v8_mul(v8_set(c->p[0]), r), v8_set(c->p[1]));
  p = v8_add(v8_mul(p, r), v8_set(c->p[2]));
  p = v8_add(v8_mul(p, r), v8_set(c->p[3]));
  p = v8_add(v8_mul(p, r), v8_set(c->half));
  v8 e = v8_add(v8_set(c->one), v8_add(r, v8_mul(v8_mul(r, r), p)));
  e = v8_mul(e, v8_pow2_of_shifted(shifted));
  return v8_select(low, v8_set(0.0f), v8_select(high, v8_set(HUGE_VALF), e));
}

/* tanh: an odd polynomial below 0.625, from exp above; relative error below 4e-7. */
K_SHARED v8 k_tanh(v8 x) {
  v8 one = v8_set(1.0f);
  v8 a = v8_abs(x), square = v8_mul(x, x);
  v8 p = v8_set(-0x1.8f8aa4p-8f); /* minimax of (tanh x - x) / x^3 in x^2, error 2e-8 */
  p = v8_add(v8_mul(p, square), v8_set(0x1.580416p-6f));
  p = v8_add(v8_mul(p, square), v8_set(-0x1.b92582p-5f));
  p = v8_add(v8_mul(p, square), v8_set(0x1.110e1cp-3f));
  p = v8_add(v8_mul(p, square), v8_set(-0x1.555552p-2f));
  v8 near_zero = v8_add(x, v8_mul(v8_mul(x, square), p));
  v8 e = k_exp(v8_add(a, a));
  v8 far = v8_copysign(v8_sub(one, v8_div(v8_set(2.0f), v8_add(e, one))), x);
  return v8_select(v8_less(a, v8_set(0.625f)), near_zero, far);
}

static inline v8 k_sigmoid(v8 x) {
  v8 one = v8_set(1.0f);
  return v8_div(one, v8_add(one, k_exp(v8_sub(v8_set(0.0f), x))));
}

static inline v8 k_silu(v8 x) { return v8_mul(x, k_sigmoid(x)); }

/* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
static inline v8 k_gelu(v8 x) {
  v8 cube = v8_mul(v8_mul(x, x), x);
  v8 inner = v8_mul(v8_set(0.797884561f), v8_add(x, v8_mul(v8_set(0.044715f), cube)));
  return v8_mul(v8_mul(v8_set(0.5f), x), v8_add(v8_set(1.0f), k_tanh(inner)));
}

/* ---------------------------------------------------------------- reductions */

/* The eight partial sums of a dot product. */
static inline v8 k_dot_lanes(const float *x, const float *y, size_t n) {
  v8 sum = v8_set(0.0f);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) sum = v8_add(sum, v8_mul(v8_load(x + i), v8_load(y + i)));
  if (i < n) sum = v8_add(sum, v8_mul(v8_load_part(x + i, n - i), v8_load_part(y + i, n - i)));
  return sum;
}

static inline float k_dot(const float *x, const float *y, size_t n) { return v8_sum(k_dot_lanes(x, y, n)); }

/* ---------------------------------------------------------------- half-precision matrices */

/* Eight rows of a packed group of 16 against one token: rows in the vectors' lanes, so that the eight lanes of each
 * row's sum are eight vectors. */
static inline v8 k_f16_rows(const uint16_t *w, const float *x, size_t n) {
  v8 a = v8_set(0.0f), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (size_t i = 0; i < n; i += 8, w += 8 * ML_PACK_ROWS) {
    v8 column[8];
    K_ROLLED for (size_t k = 0; k < 8; k++) column[k] = v8_load_f16(w + k * ML_PACK_ROWS);
    a = v8_add(a, v8_mul(column[0], v8_set(x[i])));
    b = v8_add(b, v8_mul(column[1], v8_set(x[i + 1])));
    c = v8_add(c, v8_mul(column[2], v8_set(x[i + 2])));
    d = v8_add(d, v8_mul(column[3], v8_set(x[i + 3])));
    e = v8_add(e, v8_mul(column[4], v8_set(x[i + 4])));
    f = v8_add(f, v8_mul(column[5], v8_set(x[i + 5])));
    g = v8_add(g, v8_mul(column[6], v8_set(x[i + 6])));
    h = v8_add(h, v8_mul(column[7], v8_set(x[i + 7])));
  }
  return v8_add(v8_add(v8_add(a, e), v8_add(c, g)), v8_add(v8_add(b, f), v8_add(d, h)));
}

static void k_matmul_f16_packed(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x,
                                uint32_t row_begin, uint32_t row_end) {
  for (uint32_t row = row_begin; row < row_end; row += 8) {
    const uint16_t *halves = (const uint16_t *)(const void *)(w->quants + ml_half_offset(w->cols, row, 0));
    for (uint32_t t = 0; t < x->n; t++)
      k_put(y + t * y_stride, row, row_end, k_f16_rows(halves, x->x + (size_t)t * w->cols, w->cols));
  }
}

/* ---------------------------------------------------------------- quantizer */

static bool k_quantize_block(int8_t *q, float *d, int32_t *start, const float *x) {
  v8 greatest = v8_set(0.0f), zero = greatest, one = v8_set(1.0f);
  for (int i = 0; i < ML_BLOCK; i += 8) {
    v8 a = v8_load(x + i);
    zero = v8_add(zero, v8_sub(a, a)); /* NaN for NaN and infinity */
    greatest = v8_max(greatest, v8_abs(a));
  }
  if (!v8_all(v8_less(zero, one))) return false;
  float amax = v8_greatest(greatest);
  if (amax < 1e-30f) { /* 127 / amax would overflow */
    *d = 0.0f;
    *start = 0;
    memset(q, 0, ML_BLOCK);
    return true;
  }
  *d = amax / 127.0f;
  /* No level is above 127.5001, rounding errors included, so that truncation keeps them within 127. */
  v8 scale = v8_set(127.0f / amax), half = v8_set(0.5f), total = v8_set(0.0f);
  K_ROLLED for (int i = 0; i < ML_BLOCK; i += 8) {
    v8 element = v8_load(x + i);
    v8 level = v8_add(v8_mul(element, scale), v8_copysign(half, element));
    total = v8_add(total, v8_store_i8(q + i, level)); /* exact: small integers */
  }
  *start = -8 * (int32_t)v8_sum(total);
  return true;
}

static bool k_quantize(int8_t *q, float *d, int32_t *starts, const float *x, size_t n) {
  bool finite = true;
  for (size_t block = 0; block < n / ML_BLOCK; block++)
    if (!k_quantize_block(q + block * ML_BLOCK, d + block, starts + block, x + block * ML_BLOCK))
      finite = false;
  return finite;
}

/* ---------------------------------------------------------------- vectors */

K_SMALL void k_rms_norm(float *out, const float *x, const float *w, size_t n, float eps) {
  v8 scale = v8_set(1.0f / sqrtf(k_dot(x, x, n) / (float)n + eps));
  for (size_t i = 0; i < n; i += 8) k_put(out, i, n, v8_mul(v8_mul(k_at(x, i, n), scale), k_at(w, i, n)));
}

K_SMALL void k_l2_norm(float *x, size_t n, float eps, float scale) {
  v8 factor = v8_set(scale / sqrtf(k_dot(x, x, n) + eps));
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(k_at(x, i, n), factor));
}

K_SMALL void k_softcap(float *x, size_t n, float cap) {
  v8 c = v8_set(cap);
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(c, k_tanh(v8_div(k_at(x, i, n), c))));
}

static void k_add(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_add(k_at(x, i, n), k_at(y, i, n)));
}

static void k_silu_mul(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(k_silu(k_at(x, i, n)), k_at(y, i, n)));
}

K_SMALL void k_gelu_mul(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(k_gelu(k_at(x, i, n)), k_at(y, i, n)));
}

K_SMALL void k_mul_sigmoid(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(k_at(x, i, n), k_sigmoid(k_at(y, i, n))));
}

K_SMALL void k_mul_silu(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(k_at(x, i, n), k_silu(k_at(y, i, n))));
}

static void k_rope(float *x, const float *cosine, const float *sine, size_t n) {
  for (size_t i = 0; i < n; i += 8) {
    v8 a = k_at(x, i, n);
    k_put(x, i, n, v8_add(v8_mul(a, k_at(cosine, i, n)), v8_mul(v8_swap_pairs(a), k_at(sine, i, n))));
  }
}

/* ---------------------------------------------------------------- attention */

/* scores = e^(scores - greatest); returns their sum. */
K_SHARED float k_exp_scores(float *scores, size_t n) {
  v8 most = v8_set(scores[0]), sum = v8_set(0.0f);
  size_t t = 0;
  for (; t + 8 <= n; t += 8) most = v8_max(most, v8_load(scores + t));
  for (; t < n; t++) most = v8_max(most, v8_set(scores[t]));
  v8 top = v8_set(v8_greatest(most));
  for (size_t i = 0; i < n; i += 8) {
    k_put(scores, i, n, k_exp(v8_sub(k_at(scores, i, n), top)));
    sum = v8_add(sum, k_at(scores, i, n)); /* read back: lanes past the end are +0 again */
  }
  return v8_sum(sum);
}

/* k_exp_scores of each head, `stride` floats from one to the next, after the soft cap if there is one. */
K_SHARED void k_softmax_heads(float *scores, size_t stride, uint32_t n_heads, size_t count, float softcap,
                              float *sums) {
  for (uint32_t head = 0; head < n_heads; head++, scores += stride) {
    if (softcap > 0.0f) k_softcap(scores, count, softcap);
    sums[head] = k_exp_scores(scores, count);
  }
}

/* k_dot_lanes of q with four rows: one by one, each would wait for its own sums and load q again. */
static inline void k_dot_four(v8 lanes[4], const float *q, const float *const k[4], size_t n) {
  const float *k0 = k[0], *k1 = k[1], *k2 = k[2], *k3 = k[3];
  v8 a = v8_set(0.0f), b = a, c = a, d = a;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    v8 x = v8_load(q + i);
    a = v8_add(a, v8_mul(x, v8_load(k0 + i)));
    b = v8_add(b, v8_mul(x, v8_load(k1 + i)));
    c = v8_add(c, v8_mul(x, v8_load(k2 + i)));
    d = v8_add(d, v8_mul(x, v8_load(k3 + i)));
  }
  if (i < n) {
    v8 x = v8_load_part(q + i, n - i);
    a = v8_add(a, v8_mul(x, v8_load_part(k0 + i, n - i)));
    b = v8_add(b, v8_mul(x, v8_load_part(k1 + i, n - i)));
    c = v8_add(c, v8_mul(x, v8_load_part(k2 + i, n - i)));
    d = v8_add(d, v8_mul(x, v8_load_part(k3 + i, n - i)));
  }
  lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
}

/* Scores of one query and the first n_rows of eight keys. */
static inline void k_score_rows(float *scores, const float *q, const float *const keys[8], size_t head_dim,
                                uint32_t n_rows, float scale) {
  v8 lanes[8];
  K_ROLLED for (uint32_t r = 0; r < 8; r += 4) k_dot_four(lanes + r, q, keys + r, head_dim);
  k_put(scores, 0, n_rows, v8_mul(v8_sum_each(lanes), v8_set(scale)));
}

/* out += p[r] * v[r] for rows in order, 32 columns at a time. */
static inline void k_add_values(float *out, const float *p, const float *v, size_t head_dim,
                                uint32_t n_rows) {
  size_t i = 0;
  for (; i + 32 <= head_dim; i += 32) {
    v8 a = v8_load(out + i), b = v8_load(out + i + 8), c = v8_load(out + i + 16), d = v8_load(out + i + 24);
    for (uint32_t r = 0; r < n_rows; r++) {
      const float *row = v + r * head_dim + i;
      v8 weight = v8_set(p[r]);
      a = v8_add(a, v8_mul(weight, v8_load(row)));
      b = v8_add(b, v8_mul(weight, v8_load(row + 8)));
      c = v8_add(c, v8_mul(weight, v8_load(row + 16)));
      d = v8_add(d, v8_mul(weight, v8_load(row + 24)));
    }
    v8_store(out + i, a), v8_store(out + i + 8, b), v8_store(out + i + 16, c), v8_store(out + i + 24, d);
  }
  for (; i < head_dim; i += 8) {
    v8 sum = k_at(out, i, head_dim);
    for (uint32_t r = 0; r < n_rows; r++)
      sum = v8_add(sum, v8_mul(v8_set(p[r]), k_at(v + r * head_dim, i, head_dim)));
    k_put(out, i, head_dim, sum);
  }
}

/* How many of `n` positions from `position` on, at most `limit`, lie one after the other in a ring; the first is `row`. */
static inline uint32_t k_run(uint32_t position, uint32_t n, uint32_t capacity, uint32_t limit,
                             uint32_t *row) {
  *row = position % capacity;
  if (n > limit) n = limit;
  return n < capacity - *row ? n : capacity - *row;
}

K_SHARED void k_scale(float *x, size_t n, float factor) {
  v8 f = v8_set(factor);
  for (size_t i = 0; i < n; i += 8) k_put(x, i, n, v8_mul(k_at(x, i, n), f));
}

/* Asks for what follows `rows`, n floats that are read next, in a ring that ends at `end`. Processors look ahead by
 * themselves, but not beyond a page of 4 KB, and each page's beginning is waited for. Wasm can only read, which waits as
 * well: there the reads are few, and make the processor begin with the next page while it works on this one. */
K_SHARED void k_ask_ahead(const float *rows, size_t n, const float *end) {
#if defined(__wasm__)
  uintptr_t page = (uintptr_t)(rows + n) & ~(uintptr_t)4095;
  const volatile float *next = (const volatile float *)(page + 4096);
  if ((uintptr_t)rows < page && next + 48 <= end) (void)next[0], (void)next[16], (void)next[32];
#else
  for (size_t i = n; i < 2 * n && rows + i < end; i += 16) __builtin_prefetch(rows + i);
#endif
}

/* Runs of rows outside, heads inside: what is read of the ring serves every head of the group. */
static void k_attend(const ml_attend *a) {
  size_t n = a->head_dim, ring = a->capacity * n;
  uint32_t row, n_rows;
  for (uint32_t t = 0; t < a->count; t += n_rows) {
    n_rows = k_run(a->first + t, a->count - t, a->capacity, 8, &row);
    k_ask_ahead(a->k + row * n, n_rows * n, a->k + ring);
    const float *keys[8]; /* where there are fewer, the first one again */
    K_ROLLED for (uint32_t r = 0; r < 8; r++) keys[r] = a->k + (row + (r < n_rows ? r : 0)) * n;
    for (uint32_t head = 0; head < a->n_heads; head++)
      k_score_rows(a->scores + (size_t)head * a->count + t, a->q + head * n, keys, n, n_rows, a->scale);
  }
  k_softmax_heads(a->scores, a->count, a->n_heads, a->count, a->softcap, a->sums);
  for (size_t i = 0; i < a->n_heads * n; i++) a->out[i] = 0.0f;
  for (uint32_t t = 0; t < a->count; t += n_rows) {
    n_rows = k_run(a->first + t, a->count - t, a->capacity, 16, &row);
    k_ask_ahead(a->v + row * n, n_rows * n, a->v + ring);
    for (uint32_t head = 0; head < a->n_heads; head++)
      k_add_values(a->out + head * n, a->scores + (size_t)head * a->count + t, a->v + row * n, n, n_rows);
  }
  for (uint32_t head = 0; head < a->n_heads; head++) k_scale(a->out + head * n, n, 1.0f / a->sums[head]);
}

/* ---------------------------------------------------------------- attention over quantized keys and values */

/* Heads and positions that go together. The code for heads exists once for each number of them. */
enum { MIX_HEADS = 4, MIX_ROWS = 64 };

/* out += weights * values for rows in order, columns i ... i + 7 of n <= MIX_HEADS heads: the bytes of a row become
 * floats once for all of them. `out` and `weights` are those of the first head. */
__attribute__((always_inline)) static inline void k_mix_columns(float *out,
                                                                float weights[MIX_HEADS][MIX_ROWS],
                                                                const int8_t *v, size_t width,
                                                                uint32_t n_rows, size_t head_dim, size_t i,
                                                                const uint32_t n) {
  v8 sum[MIX_HEADS];
  K_UNROLLED for (uint32_t h = 0; h < n; h++) sum[h] = k_at(out + h * head_dim, i, head_dim);
  v += i;
  for (uint32_t r = 0; r < n_rows; r++, v += width) {
    v8 value = v8_load_i8(v);
    K_UNROLLED for (uint32_t h = 0; h < n; h++) sum[h] = v8_add(sum[h], v8_mul(v8_set(weights[h][r]), value));
  }
  K_UNROLLED for (uint32_t h = 0; h < n; h++) k_put(out + h * head_dim, i, head_dim, sum[h]);
}

/* Adds a run of at most MIX_ROWS rows to the sums of n heads from `head` on, block after block. */
static inline void k_mix_run(const ml_mix_q8 *a, uint32_t head, uint32_t n, uint32_t t, uint32_t row,
                             uint32_t n_rows) {
  size_t head_dim = a->head_dim, width = (head_dim + ML_BLOCK - 1) / ML_BLOCK * ML_BLOCK;
  float weights[MIX_HEADS][MIX_ROWS];
  for (size_t block = 0; block < width; block += ML_BLOCK) {
    const float *d = a->d + block / ML_BLOCK * a->capacity + row;
    for (uint32_t h = 0; h < n; h++) {
      const float *p = a->scores + (head + h) * a->stride + t;
      for (size_t r = 0; r < n_rows; r += 8)
        k_put(weights[h], r, n_rows, v8_mul(k_at(p, r, n_rows), k_at(d, r, n_rows)));
    }
    for (size_t i = block; i < block + ML_BLOCK && i < head_dim; i += 8) {
      float *out = a->out + head * head_dim;
      const int8_t *v = a->v + row * width;
      if (n == 1)
        k_mix_columns(out, weights, v, width, n_rows, head_dim, i, 1);
      else if (n == 2)
        k_mix_columns(out, weights, v, width, n_rows, head_dim, i, 2);
      else if (n == 3)
        k_mix_columns(out, weights, v, width, n_rows, head_dim, i, 3);
      else
        k_mix_columns(out, weights, v, width, n_rows, head_dim, i, 4);
    }
  }
}

static void k_mix_q8(const ml_mix_q8 *a) {
  for (uint32_t head = 0; head < a->n_heads; head++)
    k_scale(a->scores + head * a->stride, a->count, a->scale);
  k_softmax_heads(a->scores, a->stride, a->n_heads, a->count, a->softcap, a->sums);
  for (size_t i = 0; i < (size_t)a->n_heads * a->head_dim; i++) a->out[i] = 0.0f;
  for (uint32_t head = 0, n; head < a->n_heads; head += n) {
    n = a->n_heads - head < MIX_HEADS ? a->n_heads - head : MIX_HEADS;
    uint32_t row, n_rows;
    for (uint32_t t = 0; t < a->count; t += n_rows) {
      n_rows = k_run(a->first + t, a->count - t, a->capacity, MIX_ROWS, &row);
      k_mix_run(a, head, n, t, row, n_rows);
    }
  }
  for (uint32_t head = 0; head < a->n_heads; head++)
    k_scale(a->out + (size_t)head * a->head_dim, a->head_dim, 1.0f / a->sums[head]);
}

/* ---------------------------------------------------------------- gated delta rule */

/* The state's rows belong to key elements, so every sum over the key runs down the rows in order, eight
 * value columns at a time; a column never meets another one. */
static void k_delta_step(const ml_delta *a) {
  size_t dv = a->dv;
  v8 decay = v8_set(a->decay), beta = v8_set(a->beta);
  for (size_t j = 0; j < dv; j += 8) {
    v8 recalled = v8_set(0.0f); /* what the decayed state holds for k */
    for (size_t i = 0; i < a->dk; i++) {
      float *row = a->state + i * dv;
      v8 s = v8_mul(k_at(row, j, dv), decay);
      k_put(row, j, dv, s);
      recalled = v8_add(recalled, v8_mul(s, v8_set(a->k[i])));
    }
    v8 change = v8_mul(beta, v8_sub(k_at(a->v, j, dv), recalled));
    v8 read = v8_set(0.0f);
    for (size_t i = 0; i < a->dk; i++) {
      float *row = a->state + i * dv;
      v8 s = v8_add(k_at(row, j, dv), v8_mul(v8_set(a->k[i]), change));
      k_put(row, j, dv, s);
      read = v8_add(read, v8_mul(s, v8_set(a->q[i])));
    }
    k_put(a->out, j, dv, read);
  }
}

/* Taps in order, oldest first, from +0. */
K_SMALL void k_conv_silu(const ml_conv *a) {
  uint32_t n_history = a->taps - 1;
  size_t channels = a->channels;
  for (size_t c = a->begin; c < a->end; c += 8) {
    v8 input = k_at(a->x, c, a->end);
    v8 sum = v8_set(0.0f);
    for (uint32_t tap = 0, row = a->oldest; tap < n_history; tap++) {
      v8 past = k_at(a->history + row * channels, c, a->end);
      sum = v8_add(sum, v8_mul(k_at(a->weights + tap * channels, c, a->end), past));
      if (++row == n_history) row = 0;
    }
    sum = v8_add(sum, v8_mul(k_at(a->weights + n_history * channels, c, a->end), input));
    if (n_history) k_put(a->history + a->oldest * channels, c, a->end, input);
    k_put(a->x, c, a->end, k_silu(sum));
  }
}
