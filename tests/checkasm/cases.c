/* cases.c - buffers, and what is done with them: the two calls, and the comparison or the measurement. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/splitmix.h"
#include "faults.h"
#include "harness.h"

enum {
  N_SLOTS = 16,
  SLOT_BYTES = 2 << 20,
  NOISE = 64,     /* bytes before and, unless the memory ends there, behind a buffer */
  MAX_REPORTS = 3 /* differences described for one kernel */
};

/*   slot     |            | noise | data | noise |        |   or   |               | noise | data | end of memory
 *                         ^ window                                                 ^ window
 */
typedef struct slot {
  const char *name;
  content what;
  size_t element, bytes; /* sizes of an element and of the data */
  size_t before, behind; /* noise around it */
  uint8_t *memory[N_SIDES], *data[N_SIDES];
} slot;

harness current;

static slot slots[N_SLOTS];
static size_t n_slots; /* in use by the case */
static uint64_t random_state;

bool harness_open(void) {
  for (size_t i = 0; i < N_SLOTS; i++)
    for (int s = 0; s < N_SIDES; s++)
      if (!(slots[i].memory[s] = guarded_memory(SLOT_BYTES))) return false;
  return true;
}

void harness_start(const ml_kernels *tested, const char *kernel_name, uint64_t seed) {
  current.kernels[REFERENCE] = ml_kernels_find("scalar");
  current.kernels[TESTED] = tested;
  current.n_cases = current.n_differences = 0;
  current.n_benches = 0;
  random_state = splitmix_state(kernel_name, seed);
}

uint64_t random_u64(void) { return splitmix64(&random_state); }

uint32_t random_below(uint32_t limit) { return (uint32_t)((random_u64() >> 32) * limit >> 32); }

float random_between(float low, float high) {
  return low + (high - low) * ((float)(random_u64() >> 40) / 16777216.0f);
}

/* ---------------------------------------------------------------- buffers */

/* A mistake that was looked for is found: what is left of the cases need not mean anything. */
static bool is_decided(void) { return current.quiet && current.n_differences; }

static void fill_noise(uint8_t *bytes, size_t n) {
  if (is_decided()) return;
  uint64_t word = 0;
  for (size_t i = 0; i < n; i++) {
    if (i % 8 == 0) word = random_u64();
    bytes[i] = (uint8_t)(word >> i % 8 * 8);
  }
}

static buffer place(const char *name, size_t count, size_t size, content what, size_t alignment) {
  size_t bytes = count * size;
  if (n_slots == N_SLOTS || bytes > SLOT_BYTES - 4 * NOISE) {
    printf("\n%s: no room for %s, %zu bytes: raise N_SLOTS or SLOT_BYTES\n", current.text, name, bytes);
    exit(3);
  }
  slot *s = &slots[n_slots++];
  s->name = name, s->what = what, s->element = size, s->bytes = bytes, s->before = NOISE;
  size_t offset = NOISE + alignment * random_below((uint32_t)(NOISE / alignment));
  bool at_the_end = random_u64() & 1;
  if (at_the_end && bytes % alignment == 0) offset = SLOT_BYTES - bytes;
  s->behind = offset + bytes == SLOT_BYTES ? 0 : NOISE;
  buffer b;
  for (int on = 0; on < N_SIDES; on++) b.of[on] = s->data[on] = s->memory[on] + offset;
  fill_noise(s->data[REFERENCE] - s->before, s->before + bytes + s->behind);
  return b;
}

buffer new_buffer(const char *name, size_t count, size_t size, content what) {
  return place(name, count, size, what, size);
}

buffer new_aligned(const char *name, size_t count, size_t size, content what) {
  return place(name, count, size, what, 64);
}

void case_begin(const char *format, ...) {
  n_slots = 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(current.text, sizeof current.text, format, arguments);
  va_end(arguments);
}

/* ---------------------------------------------------------------- floats */

const char *style_name(style s) {
  static const char *names[N_STYLES] = {"smooth", "wide", "ties", "extreme", "not finite"};
  return names[s];
}

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float random_float(style s) {
  static const float extremes[] = {0.0f,       0x1p-149f,   0x1p-126f, 9.9e-31f,       1e-30f, 1e-7f,
                                   0.5f,       0.6249999f,  0.625f,    1.0f,           8.66f,  86.9f,
                                   87.0f,      87.00001f,   88.0f,     88.00001f,      127.0f, 8388607.5f,
                                   8388608.0f, 16777216.0f, 1e30f,     0x1.fffffep127f};
  enum { N_EXTREMES = sizeof extremes / sizeof *extremes };
  uint32_t sign = random_u64() & 1 ? 0x80000000u : 0;
  switch (s) {
    case TIES: return from_bits(sign) + (sign ? -0.5f : 0.5f) * (float)random_below(16);
    case WIDE: return from_bits(sign | (uint32_t)(random_u64() >> 40) % (227u << 23));
    case EXTREME: return (sign ? -1.0f : 1.0f) * extremes[random_below(N_EXTREMES)];
    case NOT_FINITE:
      if (random_below(16) == 0) return from_bits(sign | 0x7f800000u | random_below(2) << 22);
      break;
    default: break;
  }
  return random_between(-4, 4);
}

void fill_floats(float *x, size_t n, style s) {
  if (is_decided()) return;
  for (size_t i = 0; i < n; i++) x[i] = random_float(s);
}

buffer new_floats(const char *name, size_t n, style s) {
  buffer b = new_buffer(name, n, sizeof(float), FLOATS);
  fill_floats(b.of[REFERENCE], n, s);
  return b;
}

/* ---------------------------------------------------------------- comparison */

static bool is_nan(const uint8_t *bytes) {
  float x;
  memcpy(&x, bytes, sizeof x);
  return x != x;
}

/* The first byte, counted from the beginning of the data, at which the sides differ; false if they are equal. */
static bool find_difference(const slot *s, ptrdiff_t *at) {
  const uint8_t *a = s->data[REFERENCE], *b = s->data[TESTED];
  if (memcmp(a - s->before, b - s->before, s->before + s->bytes + s->behind) == 0) return false;
  ptrdiff_t end = (ptrdiff_t)(s->bytes + s->behind);
  for (ptrdiff_t i = -(ptrdiff_t)s->before; i < end; i++) {
    if (a[i] == b[i]) continue;
    bool inside = i >= 0 && i < (ptrdiff_t)s->bytes;
    ptrdiff_t element = i / (ptrdiff_t)s->element * (ptrdiff_t)s->element;
    if (inside && s->what == SCRATCH) continue;
    if (inside && s->what == FLOATS && is_nan(a + element) && is_nan(b + element)) continue;
    *at = i;
    return true;
  }
  return false;
}

static void print_element(const slot *s, side on, size_t element) {
  const uint8_t *bytes = s->data[on] + element * s->element;
  float value;
  memcpy(&value, bytes, s->what == FLOATS ? sizeof value : 0);
  for (size_t i = s->element; i-- > 0;) printf("%02x", bytes[i]);
  if (s->what == FLOATS) printf(" (%.9g)", (double)value);
}

static void describe(const slot *s, ptrdiff_t at) {
  printf("\n    %s: %s", current.text, s->name);
  if (at < 0) {
    printf(" was written to %td bytes before it", -at);
  } else if (at >= (ptrdiff_t)s->bytes) {
    printf(" was written to %td bytes behind its end", at - (ptrdiff_t)s->bytes);
  } else {
    size_t element = (size_t)at / s->element;
    printf("[%zu] is ", element);
    print_element(s, TESTED, element);
    printf(", scalar's ");
    print_element(s, REFERENCE, element);
  }
}

static void compare(void) {
  bool differs = false;
  for (size_t i = 0; i < n_slots; i++) {
    ptrdiff_t at;
    if (!find_difference(&slots[i], &at)) continue;
    if (!current.quiet && current.n_differences < MAX_REPORTS) describe(&slots[i], at);
    differs = true;
  }
  current.n_cases++;
  current.n_differences += differs;
}

/* ---------------------------------------------------------------- measurement */

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_of(call_fn *call, const void *arguments, uint64_t times) {
  double start = now();
  for (uint64_t i = 0; i < times; i++) call(current.kernels[TESTED], TESTED, arguments);
  return (now() - start) / (double)times;
}

/* Other work on the machine only ever adds: the least of nine measurements of two milliseconds. */
static void measure(call_fn *call, const void *arguments) {
  if (current.n_benches == MAX_BENCHES) return;
  uint64_t times = 1;
  double least = time_of(call, arguments, 1);
  while ((double)times * least < 2e6) least = time_of(call, arguments, times *= 2);
  for (int i = 0; i < 9; i++) {
    double again = time_of(call, arguments, times);
    least = again < least ? again : least;
  }
  snprintf(current.benches[current.n_benches].text, sizeof current.benches->text, "%s", current.text);
  current.benches[current.n_benches++].nanoseconds = least;
}

void case_run(call_fn *call, const void *arguments) {
  if (is_decided()) return;
  for (size_t i = 0; i < n_slots; i++) {
    const slot *s = &slots[i];
    memcpy(s->data[TESTED] - s->before, s->data[REFERENCE] - s->before, s->before + s->bytes + s->behind);
  }
  if (current.benching) {
    measure(call, arguments);
    return;
  }
  call(current.kernels[REFERENCE], REFERENCE, arguments);
  call(current.kernels[TESTED], TESTED, arguments);
  compare();
}
