/* kernel_list.h - every kernel, once: ML_KERNEL(result, name, arguments). Tables, declarations, exact
 * comparison and benchmarks are made from this list, so a kernel that exists is a kernel that is tested.
 * No include guard: it is included wherever a list is needed.
 *
 * Pointers never overlap unless the description says "in place", are aligned to their type and no more (a matrix's
 * arrays: 64 bytes), and nothing outside of what they describe is touched, not even read. n counts floats and may be
 * any number (0 too) unless said otherwise. Inputs may hold infinities and NaN, which then come out as NaN or infinity
 * where they do with scalar; which of several NaN does not matter. Order of operations: docs/NUMERICS.md. */

/* Format rule for blocks of 32: q (n), d (n / 32) and ml_rows.starts (n / 32), n a multiple of 32. False if any x is NaN or
 * infinite; the results are then unspecified. */
ML_KERNEL(bool, quantize, (int8_t *q, float *d, int32_t *starts, const float *x, size_t n))

/* y[t * y_stride + r] = row r of w times activation row t, for row_begin <= r < row_end and every t, by
 * acc = acc + (float)isum * (dw * dx), block after block. row_begin is a multiple of 16; row_end too, or w->rows.
 * One kernel for each type and layout. */
ML_KERNEL(void, matmul_q8_0_rows,
          (float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
           uint32_t row_end))
ML_KERNEL(void, matmul_q4_0_rows,
          (float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
           uint32_t row_end))
ML_KERNEL(void, matmul_q8_0_packed,
          (float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
           uint32_t row_end))
ML_KERNEL(void, matmul_q4_0_packed,
          (float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
           uint32_t row_end))
ML_KERNEL(void, matmul_int2_packed,
          (float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
           uint32_t row_end))
/* The same of half-precision weights and floats x: lane k adds w * x of columns k, k + 8, ... in order. */
ML_KERNEL(void, matmul_f16_packed,
          (float *y, size_t y_stride, const ml_matrix *w, const ml_rows *x, uint32_t row_begin,
           uint32_t row_end))

/* out[c] = weight (row, c) * scale: an embedding row, of any type and layout. */
ML_KERNEL(void, embed, (float *out, const ml_matrix *w, uint32_t row, float scale))

/* out = x * (1 / sqrt(mean(x^2) + eps)) * w; in place allowed (out = x). n >= 1. */
ML_KERNEL(void, rms_norm, (float *out, const float *x, const float *w, size_t n, float eps))
/* x = x * (scale / sqrt(sum(x^2) + eps)), in place. */
ML_KERNEL(void, l2_norm, (float *x, size_t n, float eps, float scale))

/* In place on x. */
ML_KERNEL(void, add, (float *x, const float *y, size_t n))
ML_KERNEL(void, softcap, (float *x, size_t n, float cap))          /* cap * tanh(x / cap) */
ML_KERNEL(void, silu_mul, (float *x, const float *y, size_t n))    /* silu(x) * y */
ML_KERNEL(void, gelu_mul, (float *x, const float *y, size_t n))    /* gelu_tanh(x) * y */
ML_KERNEL(void, mul_sigmoid, (float *x, const float *y, size_t n)) /* x * sigmoid(y) */
ML_KERNEL(void, mul_silu, (float *x, const float *y, size_t n))    /* x * silu(y) */

/* Rotates pairs (2i, 2i + 1) of x in place: x * cosine + swapped(x) * sine, where both tables hold a value
 * per element: cosine c0 c0 c1 c1 ..., sine -s0 s0 -s1 s1 ... n is even. */
ML_KERNEL(void, rope, (float *x, const float *cosine, const float *sine, size_t n))

ML_KERNEL(void, attend, (const ml_attend *a))
ML_KERNEL(void, mix_q8, (const ml_mix_q8 *a))
ML_KERNEL(void, delta_step, (const ml_delta *a))
ML_KERNEL(void, conv_silu, (const ml_conv *a))
