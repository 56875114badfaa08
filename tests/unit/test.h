/* test.h - a unit test harness in two files (with test_main.c). A test file holds
 *
 *   TEST(bytes_read_little_endian) {
 *     CHECK_EQ_U64(ml_read_u16((const uint8_t[]){1, 2}), 0x0201);
 *   }
 *
 * and is linked in by its name, tests/unit/test_*.c. A failed check is reported with file and line and the test goes
 * on; REQUIRE and SKIP leave it. A test that checked nothing counts as skipped, so it never looks like a pass.
 * Random numbers start anew for each test from the printed seed and the test's name, so that a failure is repeated by
 * `test_unit --seed N NAME`. */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void test_fn(void);

/* Defines a test and enters it into the list before main runs. */
#define TEST(name)                                                         \
  static test_fn name;                                                     \
  __attribute__((constructor)) static void register_##name(void) {         \
    static test_entry entry = {.title = #name, .run = name, .next = NULL}; \
    test_register(&entry);                                                 \
  }                                                                        \
  static void name(void)

/* All check macros evaluate each argument once and give true when the check holds. In the order (actual, expected). */
#define CHECK(condition) test_check((condition), TEST_HERE, #condition)
#define CHECK_EQ_U64(actual, expected) test_eq_u64((actual), (expected), TEST_HERE, #actual)
#define CHECK_EQ_I64(actual, expected) test_eq_i64((actual), (expected), TEST_HERE, #actual)
/* Bit for bit: +0 is not -0, and a NaN equals only itself. */
#define CHECK_EQ_F32_BITS(actual, expected) test_eq_f32_bits((actual), (expected), TEST_HERE, #actual)
#define CHECK_EQ_TEXT(actual, expected) test_eq_text((actual), (expected), TEST_HERE, #actual)
#define CHECK_EQ_BYTES(actual, expected, size) test_eq_bytes((actual), (expected), (size), TEST_HERE, #actual)
/* |actual - expected| <= tolerance, and neither is NaN. */
#define CHECK_NEAR(actual, expected, tolerance) \
  test_near((actual), (expected), (tolerance), TEST_HERE, #actual)

/* For a condition without which the rest of the test makes no sense. Only in the body of a TEST. */
#define REQUIRE(condition)                                       \
  do {                                                           \
    if (!test_check((condition), TEST_HERE, #condition)) return; \
  } while (0)

/* Ends the test as skipped, with a reason. Only in the body of a TEST, before its first check. */
#define SKIP(reason)   \
  do {                 \
    test_skip(reason); \
    return;            \
  } while (0)

/* Uniform random numbers (splitmix64). */
uint64_t test_random_u64(void);
uint32_t test_random_below(uint32_t limit);   /* 0 ... limit-1; limit > 0 */
float test_random_f32(float low, float high); /* low <= x < high up to rounding */
void test_random_bytes(void *out, size_t size);

/* ---------------------------------------------------------------- behind the macros */

#define TEST_HERE ((test_place){__FILE__, __LINE__})

typedef struct test_place {
  const char *file;
  int line;
} test_place;

typedef struct test_entry {
  const char *title;
  test_fn *run;
  struct test_entry *next;
} test_entry;

void test_register(test_entry *entry);
bool test_check(bool holds, test_place place, const char *text);
bool test_eq_u64(uint64_t actual, uint64_t expected, test_place place, const char *text);
bool test_eq_i64(int64_t actual, int64_t expected, test_place place, const char *text);
bool test_eq_f32_bits(float actual, float expected, test_place place, const char *text);
bool test_eq_text(const char *actual, const char *expected, test_place place, const char *text);
bool test_eq_bytes(const void *actual, const void *expected, size_t size, test_place place, const char *text);
bool test_near(double actual, double expected, double tolerance, test_place place, const char *text);
void test_skip(const char *reason);

#endif
