#include "base/bytes.h"

/* Compilers check a product of 64 bits by making all 128 of it, which is long in WebAssembly: once is enough. */
__attribute__((noinline)) uint64_t ml_mul_sizes(uint64_t a, uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}
