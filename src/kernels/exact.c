/* exact.c - the table behind the `exact` option: weights dequantized, activations not quantized, every sum
 * and function in double, results rounded to float only where a kernel's signature says float. It is what
 * the engine is compared with other implementations by; speed is no concern. */
#include <math.h>

#include "kernels/dequantize.h"
#include "kernels/fmath.h"
#include "kernels/tables.h"

/* The matrix products below read activations as they are, so this matters to keys and values alone, if the cache holds
 * bytes: then its quantization is the only one of activations. */
static bool k_quantize(int8_t *q, float *d, int32_t *starts, const float *x, size_t n) {
  return ml_kernels_scalar.quantize(q, d, starts, x, n);
}

static double dot(const float *x, const float *y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)x[i] * y[i];
  return sum;
}

static double row_dot(const ml_matrix *w, uint32_t row, const float *x) {
  double sum = 0;
  for (size_t b = 0; b < w->cols / ML_BLOCK; b++) {
    float weights[ML_BLOCK];
    ml_dequantize_block(weights, w, row, b);
    sum += dot(weights, x + b * ML_BLOCK, ML_BLOCK);
  }
  return sum;
}

static void matmul(float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
                   uint32_t row_end) {
  for (uint32_t r = row_begin; r < row_end; r++)
    for (uint32_t t = 0; t < x->n; t++)
      y[t * y_stride + r] = (float)row_dot(w, r, x->x + (size_t)t * x->cols);
}

void ml_exact_matvec(double *y, const ml_matrix *w, const float *x, float softcap) {
  for (uint32_t r = 0; r < w->rows; r++) {
    y[r] = row_dot(w, r, x);
    if (softcap > 0) y[r] = softcap * ml_tanh(y[r] / softcap);
  }
}

#define k_matmul_q8_0_rows matmul
#define k_matmul_q4_0_rows matmul
#define k_matmul_q8_0_packed matmul
#define k_matmul_q4_0_packed matmul
#define k_matmul_int2_packed matmul
#define k_matmul_f16_packed matmul

static void k_embed(float *out, const ml_matrix *w, uint32_t row, float scale) {
  ml_dequantize_row(out, w, row);
  for (uint32_t c = 0; c < w->cols; c++) out[c] = (float)((double)out[c] * scale);
}

static void k_rms_norm(float *out, const float *x, const float *w, size_t n, float eps) {
  double scale = 1 / sqrt(dot(x, x, n) / (double)n + eps);
  for (size_t i = 0; i < n; i++) out[i] = (float)(x[i] * scale * w[i]);
}

static void k_l2_norm(float *x, size_t n, float eps, float scale) {
  double factor = scale / sqrt(dot(x, x, n) + eps);
  for (size_t i = 0; i < n; i++) x[i] = (float)(x[i] * factor);
}

static void k_add(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] + y[i]);
}

static void k_softcap(float *x, size_t n, float cap) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(cap * ml_tanh((double)x[i] / cap));
}

static double silu(double x) { return x * ml_sigmoid(x); }

static double gelu(double x) {
  return 0.5 * x * (1 + ml_tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static void k_silu_mul(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(silu(x[i]) * y[i]);
}

static void k_gelu_mul(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(gelu(x[i]) * y[i]);
}

static void k_mul_sigmoid(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(x[i] * ml_sigmoid(y[i]));
}

static void k_mul_silu(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(x[i] * silu(y[i]));
}

static void k_rope(float *x, const float *cosine, const float *sine, size_t n) {
  for (size_t i = 0; i < n; i += 2) {
    double a = x[i], b = x[i + 1];
    x[i] = (float)(a * cosine[i] + b * sine[i]);
    x[i + 1] = (float)(b * cosine[i + 1] + a * sine[i + 1]);
  }
}

static void attend_head(const ml_attend *a, uint32_t head) {
  size_t n = a->head_dim;
  const float *q = a->q + head * n;
  double greatest = -HUGE_VAL, sum = 0;
  for (uint32_t t = 0; t < a->count; t++) {
    double score = dot(q, a->k + (a->first + t) % a->capacity * n, n) * a->scale;
    if (a->softcap > 0) score = a->softcap * ml_tanh(score / a->softcap);
    a->scores[t] = (float)score;
    greatest = greatest < a->scores[t] ? a->scores[t] : greatest;
  }
  for (uint32_t t = 0; t < a->count; t++) sum += ml_exp(a->scores[t] - greatest);
  for (size_t i = 0; i < n; i++) {
    double value = 0;
    for (uint32_t t = 0; t < a->count; t++)
      value += ml_exp(a->scores[t] - greatest) * a->v[(a->first + t) % a->capacity * n + i];
    a->out[head * n + i] = (float)(value / sum);
  }
}

static void k_attend(const ml_attend *a) {
  for (uint32_t head = 0; head < a->n_heads; head++) attend_head(a, head);
}

static void k_mix_q8(const ml_mix_q8 *a) {
  size_t n = a->head_dim, width = (n + ML_BLOCK - 1) / ML_BLOCK * ML_BLOCK;
  for (uint32_t head = 0; head < a->n_heads; head++) {
    float *scores = a->scores + head * a->stride;
    double greatest = -HUGE_VAL, sum = 0;
    for (uint32_t t = 0; t < a->count; t++) {
      double score = (double)scores[t] * a->scale;
      if (a->softcap > 0) score = a->softcap * ml_tanh(score / a->softcap);
      scores[t] = (float)score;
      greatest = greatest < scores[t] ? scores[t] : greatest;
    }
    for (uint32_t t = 0; t < a->count; t++) sum += ml_exp(scores[t] - greatest);
    for (size_t i = 0; i < n; i++) {
      double value = 0;
      for (uint32_t t = 0; t < a->count; t++) {
        size_t row = (a->first + t) % a->capacity;
        double v = (double)a->v[row * width + i] * a->d[i / ML_BLOCK * a->capacity + row];
        value += ml_exp(scores[t] - greatest) * v;
      }
      a->out[head * n + i] = (float)(value / sum);
    }
  }
}

static void k_delta_step(const ml_delta *a) {
  for (size_t j = 0; j < a->dv; j++) {
    double recalled = 0, read = 0;
    for (size_t i = 0; i < a->dk; i++) recalled += (double)a->state[i * a->dv + j] * a->decay * a->k[i];
    double change = a->beta * (a->v[j] - recalled);
    for (size_t i = 0; i < a->dk; i++) {
      float *s = a->state + i * a->dv + j;
      double updated = (double)*s * a->decay + a->k[i] * change;
      *s = (float)updated;
      read += updated * a->q[i];
    }
    a->out[j] = (float)read;
  }
}

static void k_conv_silu(const ml_conv *a) {
  uint32_t n_history = a->taps - 1;
  for (uint32_t c = a->begin; c < a->end; c++) {
    double sum = (double)a->weights[(size_t)n_history * a->channels + c] * a->x[c];
    for (uint32_t tap = 0; tap < n_history; tap++) {
      size_t row = (a->oldest + (size_t)tap) % n_history;
      sum += (double)a->weights[(size_t)tap * a->channels + c] * a->history[row * a->channels + c];
    }
    if (n_history) a->history[(size_t)a->oldest * a->channels + c] = a->x[c];
    a->x[c] = (float)silu(sum);
  }
}

const ml_kernels ml_kernels_double = {
    "exact",
    false,
#define ML_KERNEL(result, name, arguments) k_##name,
#include "kernels/kernel_list.h"
#undef ML_KERNEL
};
