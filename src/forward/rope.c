/* rope.c - rotary frequencies (format document, section RoPE) and the tables of a batch.
 * Frequencies and angles are double, so that position x frequency loses nothing even far out. */
#include "forward/forward.h"
#include "kernels/fmath.h"

static const double TWO_PI = 6.283185307179586476925;

/* Llama 3: long wavelengths are stretched by the factor, short ones kept, those between blended. */
static double scale_llama3(const ml_rope_config *r, double inverse) {
  double wavelength = TWO_PI / inverse, orig = r->orig_max_seq;
  if (wavelength < orig / r->high_freq_factor) return inverse;
  if (wavelength > orig / r->low_freq_factor) return inverse / r->factor;
  double blend =
      (orig / wavelength - r->low_freq_factor) / ((double)r->high_freq_factor - r->low_freq_factor);
  return (1 - blend) * inverse / r->factor + blend * inverse;
}

/* YaRN (Peng et al. 2023): the pair at which `rotations` turns fit into the original context. */
static double yarn_pair(const ml_rope_config *r, uint32_t rot_dim, double rotations) {
  return rot_dim * ml_log(r->orig_max_seq / (TWO_PI * rotations)) / (2 * ml_log(r->theta));
}

static double scale_yarn(const ml_rope_config *r, uint32_t rot_dim, uint32_t pair, double inverse) {
  double low = ml_floor(yarn_pair(r, rot_dim, r->beta_fast));
  double high = -ml_floor(-yarn_pair(r, rot_dim, r->beta_slow));
  if (!(low > 0)) low = 0;
  if (!(high < rot_dim - 1.0)) high = rot_dim - 1.0;
  if (high == low) high += 0.001; /* as transformers does */
  double ramp = (pair - low) / (high - low);
  ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
  return inverse / r->factor * ramp + inverse * (1 - ramp);
}

static double inverse_frequency(const ml_rope_config *r, uint32_t rot_dim, uint32_t pair) {
  double inverse = ml_pow(r->theta, -2.0 * pair / rot_dim);
  switch (r->scaling) {
    case ML_ROPE_LLAMA3: return scale_llama3(r, inverse);
    case ML_ROPE_LINEAR: return inverse / r->factor;
    case ML_ROPE_YARN: return scale_yarn(r, rot_dim, pair, inverse);
    case ML_ROPE_PLAIN: break;
  }
  return inverse;
}

void ml_rope_init(ml_forward *f) {
  const ml_config *c = &f->model->config;
  for (uint32_t i = 0; i < c->rot_dim / 2; i++) {
    f->rope.inverse_frequency[i] = inverse_frequency(&c->rope, c->rot_dim, i);
    f->rope_local.inverse_frequency[i] = inverse_frequency(&c->rope_local, c->rot_dim, i);
  }
}

/* One row: cosine c0 c0 c1 c1 ..., sine -s0 s0 -s1 s1 ... */
static void fill_row(float *cosine, float *sine, const double *inverse, uint32_t n_pairs, uint32_t position,
                     double attn_factor) {
  for (uint32_t i = 0; i < n_pairs; i++) {
    double s, c;
    ml_sincos(position * inverse[i], &s, &c);
    cosine[2 * i] = cosine[2 * i + 1] = (float)(c * attn_factor);
    sine[2 * i + 1] = (float)(s * attn_factor);
    sine[2 * i] = -sine[2 * i + 1];
  }
}

static void fill_table(ml_rope_table *table, const ml_rope_config *rope, uint32_t rot_dim, uint32_t first,
                       uint32_t n) {
  for (uint32_t t = 0; t < n; t++)
    fill_row(table->cosine + (size_t)t * rot_dim, table->sine + (size_t)t * rot_dim, table->inverse_frequency,
             rot_dim / 2, first + t, rope->attn_factor);
}

void ml_rope_fill(ml_forward *f, uint32_t n) {
  const ml_config *c = &f->model->config;
  fill_table(&f->rope, &c->rope, c->rot_dim, f->n_past, n);
  if (c->rope_local.theta > 0) fill_table(&f->rope_local, &c->rope_local, c->rot_dim, f->n_past, n);
}
