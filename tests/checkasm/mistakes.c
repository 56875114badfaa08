#include "mistakes.h"

#include <stddef.h>

static struct {
  mistake kind;
  int output;
  uint64_t calls;
  volatile uint64_t made;
} now;

const char *mistake_name(mistake m) {
  static const char *names[N_MISTAKES] = {"the last bit in every call", "a bit in one call of thirteen",
                                          "a byte behind", "a byte before", "a changed input"};
  return names[m];
}

void mistakes_begin(mistake m, int output) {
  now.kind = m, now.output = output;
  now.calls = now.made = 0;
}

uint64_t mistakes_made(void) { return now.made; }

/* Volatile, since a flip may be a fault: it has to come after the count. */
static void flip(volatile void *at, ptrdiff_t byte, int bit) {
  now.made++;
  ((volatile uint8_t *)at)[byte] ^= (uint8_t)(1 << bit);
}

/* After the right results were written: output number `output` of the kernel, `count` elements of `size` bytes. */
static void strike(int output, void *at, size_t count, size_t size) {
  if (output != now.output) return;
  ptrdiff_t bytes = (ptrdiff_t)(count * size);
  now.calls++;
  switch (now.kind) {
    case EVERY_LAST_BIT:
      if (bytes) flip(at, bytes - (ptrdiff_t)size, 0);
      break;
    case A_RARE_BIT:
      if (bytes && now.calls % 13 == 0) flip(at, (ptrdiff_t)(now.calls * 5) % bytes, (int)(now.calls % 7));
      break;
    case BYTE_BEHIND: flip(at, bytes, 3); break;
    case BYTE_BEFORE: flip(at, -1, 3); break;
    default: break;
  }
}

static void strike_input(const void *at, size_t n) {
  if (now.kind == AN_INPUT && now.output == 0 && n) flip((void *)at, 0, 0);
}

static const ml_kernels *right(void) { return ml_kernels_find("scalar"); }

/* ---------------------------------------------------------------- the kernels */

static bool k_quantize(int8_t *q, float *d, int32_t *starts, const float *x, size_t n) {
  bool finite = right()->quantize(q, d, starts, x, n);
  strike(0, q, n, sizeof *q);
  strike(1, d, n / ML_BLOCK, sizeof *d);
  strike(2, starts, n / ML_BLOCK, sizeof *starts);
  strike_input(x, n);
  return finite;
}

static void matmul(ml_matmul_fn *matmul_fn, float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x,
                   uint32_t row_begin, uint32_t row_end) {
  matmul_fn(y, y_stride, w, x, row_begin, row_end);
  strike(0, y + (x->n - 1) * y_stride + row_begin, (row_end - row_begin), sizeof *y);
  strike(1, y + row_begin, (row_end - row_begin), sizeof *y);
  strike_input(w->quants, w->rows);
}

#define MATMUL(name)                                                                                        \
  static void k_##name(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin, \
                       uint32_t row_end) {                                                                  \
    matmul(right()->name, y, y_stride, w, x, row_begin, row_end);                                           \
  }
MATMUL(matmul_q8_0_rows)
MATMUL(matmul_q4_0_rows)
MATMUL(matmul_q8_0_packed)
MATMUL(matmul_q4_0_packed)
MATMUL(matmul_int2_packed)
MATMUL(matmul_f16_packed)

static void k_embed(float *out, const ml_matrix *w, uint32_t row, float scale) {
  right()->embed(out, w, row, scale);
  strike(0, out, w->cols, sizeof *out);
  strike_input(w->scales, w->rows);
}

static void k_rms_norm(float *out, const float *x, const float *w, size_t n, float eps) {
  right()->rms_norm(out, x, w, n, eps);
  strike(0, out, n, sizeof *out);
  strike_input(w, n);
}

static void k_l2_norm(float *x, size_t n, float eps, float scale) {
  right()->l2_norm(x, n, eps, scale);
  strike(0, x, n, sizeof *x);
}

static void k_softcap(float *x, size_t n, float cap) {
  right()->softcap(x, n, cap);
  strike(0, x, n, sizeof *x);
}

#define BINARY(name)                                         \
  static void k_##name(float *x, const float *y, size_t n) { \
    right()->name(x, y, n);                                  \
    strike(0, x, n, sizeof *x);                              \
    strike_input(y, n);                                      \
  }
BINARY(add)
BINARY(silu_mul)
BINARY(gelu_mul)
BINARY(mul_sigmoid)
BINARY(mul_silu)

static void k_rope(float *x, const float *cosine, const float *sine, size_t n) {
  right()->rope(x, cosine, sine, n);
  strike(0, x, n, sizeof *x);
  strike_input(sine, n);
}

static void k_attend(const ml_attend *a) {
  right()->attend(a);
  strike(0, a->out, (size_t)a->n_heads * a->head_dim, sizeof *a->out);
  strike_input(a->v, a->head_dim);
}

static void k_mix_q8(const ml_mix_q8 *a) {
  right()->mix_q8(a);
  strike(0, a->out, (size_t)a->n_heads * a->head_dim, sizeof *a->out);
  strike_input(a->v, a->head_dim);
}

static void k_delta_step(const ml_delta *a) {
  right()->delta_step(a);
  strike(0, a->out, a->dv, sizeof *a->out);
  strike(1, a->state, (size_t)a->dk * a->dv, sizeof *a->state);
  strike_input(a->k, a->dk);
}

static void k_conv_silu(const ml_conv *a) {
  right()->conv_silu(a);
  size_t n = a->end - a->begin, history = (size_t)(a->taps - 1) * a->channels;
  strike(0, a->x + a->begin, n, sizeof *a->x);
  if (history) strike(1, a->history, history, sizeof *a->history);
  strike_input(a->weights, n);
}

const ml_kernels mistaken_kernels = {
    "mistaken",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
