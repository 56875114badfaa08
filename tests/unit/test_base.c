/* Bytes, sizes that cannot wrap, and the arena. */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "test.h"
#include "test_allocator.h"

/* ---------------------------------------------------------------- bytes.h */

TEST(bytes_are_little_endian_at_any_address) {
  const uint8_t bytes[] = {0xff, 0x01, 0x82, 0x03, 0x84, 0x05, 0x86, 0x07, 0x88, 0xff};
  CHECK_EQ_U64(ml_read_u16(bytes + 1), 0x8201);
  CHECK_EQ_U64(ml_read_u32(bytes + 1), 0x84038201);
  CHECK_EQ_U64(ml_read_u64(bytes + 1), 0x8807860584038201);
  uint8_t out[10] = {[0] = 0xff, [9] = 0xff};
  ml_write_u64(out + 1, 0x8807860584038201);
  CHECK_EQ_BYTES(out, bytes, sizeof bytes);
  ml_write_u32(out + 1, 0x04030201);
  CHECK_EQ_U64(ml_read_u64(out + 1), 0x8807860504030201);
}

TEST(bytes_of_floats) {
  const uint8_t bytes[] = {0, 0, 0x80, 0x3f, 0x01, 0, 0, 0x80, 0, 0, 0xc0, 0x7f};
  CHECK_EQ_F32_BITS(ml_read_f32(bytes), 1.0f);
  CHECK_EQ_F32_BITS(ml_read_f32(bytes + 4), -0x1p-149f);
  CHECK(ml_read_f32(bytes + 8) != ml_read_f32(bytes + 8));
}

TEST(sizes_stick_instead_of_wrapping) {
  const uint64_t most = UINT64_MAX;
  CHECK_EQ_U64(ml_add_sizes(2, 3), 5);
  CHECK_EQ_U64(ml_add_sizes(most - 3, 3), most);
  CHECK_EQ_U64(ml_add_sizes(most - 3, 4), most);
  CHECK_EQ_U64(ml_add_sizes(most, most), most);
  CHECK_EQ_U64(ml_mul_sizes(0, most), 0);
  CHECK_EQ_U64(ml_mul_sizes(most, 0), 0);
  CHECK_EQ_U64(ml_mul_sizes(most, 1), most);
  CHECK_EQ_U64(ml_mul_sizes(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1), most - UINT32_MAX);
  CHECK_EQ_U64(ml_mul_sizes(UINT64_C(1) << 32, UINT64_C(1) << 32), most);
  CHECK_EQ_U64(ml_mul_sizes(3, most / 3 + 1), most);
  CHECK_EQ_U64(ml_round_up(0, 64), 0);
  CHECK_EQ_U64(ml_round_up(1, 64), 64);
  CHECK_EQ_U64(ml_round_up(64, 64), 64);
  CHECK_EQ_U64(ml_round_up(65, 64), 128);
  CHECK_EQ_U64(ml_round_up(most - 63, 64), most - 63);
  CHECK_EQ_U64(ml_round_up(most - 62, 64), most);
  CHECK_EQ_U64(ml_round_up(most, 64), most);
}

/* ---------------------------------------------------------------- arena.h */

TEST(arena_measures_what_it_then_takes) {
  ml_arena plan = ml_arena_measure();
  CHECK(ml_arena_take(&plan, 3, 5) == NULL);
  CHECK(ml_arena_take(&plan, 0, 8) == NULL);
  CHECK(ml_arena_take(&plan, 65, 1) == NULL);
  CHECK_EQ_U64(plan.taken, 64 + 0 + 128);

  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  ml_arena arena;
  REQUIRE(ml_arena_open(&arena, &allocator, plan.taken, 0, "pieces", NULL) == ML_OK);
  CHECK_EQ_U64(memory.calls, 1);
  uint8_t *first = ml_arena_take(&arena, 3, 5), *none = ml_arena_take(&arena, 0, 8);
  uint8_t *last = ml_arena_take(&arena, 65, 1);
  CHECK((uintptr_t)first % ML_ALIGNMENT == 0);
  CHECK(none == first + 64 && last == first + 64);
  memset(first, 1, 15);
  memset(last, 2, 65);
  ml_arena_close(&arena);
  CHECK_EQ_U64(memory.live, 0);
  ml_arena_close(&arena); /* a closed arena is a zeroed one */
}

/* Whatever address the allocator gives. */
TEST(arena_aligns_by_itself) {
  for (size_t shift = 0; shift < 64; shift += 8) {
    test_memory memory = {0};
    ml_allocator allocator = test_allocator(&memory);
    void *before = allocator.allocate(allocator.user, 1 + shift); /* moves malloc along */
    ml_arena arena;
    REQUIRE(before && ml_arena_open(&arena, &allocator, 64, 64, "piece", NULL) == ML_OK);
    uint8_t *piece = ml_arena_take(&arena, 64, 1);
    CHECK((uintptr_t)piece % ML_ALIGNMENT == 0);
    memset(piece, 1, 64);
    ml_arena_close(&arena);
    allocator.release(allocator.user, before);
    CHECK_EQ_U64(memory.live, 0);
  }
}

TEST(arena_sum_sticks) {
  ml_arena plan = ml_arena_measure();
  ml_arena_take(&plan, UINT64_MAX / 2, 4);
  CHECK_EQ_U64(plan.taken, UINT64_MAX);
  ml_arena_take(&plan, 1, 1);
  CHECK_EQ_U64(plan.taken, UINT64_MAX);
}

TEST(arena_refuses_what_cannot_be) {
  const uint64_t largest = sizeof(size_t) == 4 ? SIZE_MAX : SIZE_MAX / 2;
  const uint64_t impossible[] = {UINT64_MAX, UINT64_MAX - 63, largest, largest - 63};
  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  ml_arena arena = ml_arena_measure();
  ml_error error;
  for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
    CHECK_EQ_I64(ml_arena_open(&arena, &allocator, impossible[i], 0, "weights", &error), ML_E_NOMEM);
    CHECK(strstr(error.message, "weights") != NULL);
  }
  CHECK_EQ_I64(ml_arena_open(&arena, &allocator, 1001, 1000, "weights", &error), ML_E_NOMEM);
  CHECK_EQ_TEXT(error.message, "weights = 1001: bytes needed, the limit is 1000");
  CHECK_EQ_U64(memory.calls, 0); /* nobody was asked */
  memory.fail_at = 1;
  CHECK_EQ_I64(ml_arena_open(&arena, &allocator, 1000, 1000, "weights", &error), ML_E_NOMEM);
  CHECK_EQ_U64(memory.live, 0);
  ml_arena_close(&arena);
}

TEST(arena_with_the_default_allocator) {
  ml_arena arena;
  REQUIRE(ml_arena_open(&arena, NULL, 128, 0, "bytes", NULL) == ML_OK);
  memset(ml_arena_take(&arena, 10, 10), 7, 100);
  ml_arena_close(&arena);
  test_memory memory = {0};
  ml_allocator allocator = test_allocator(&memory);
  CHECK(ml_allocator_or_default(&allocator).user == &memory);
  CHECK(ml_allocator_or_default(NULL).allocate != NULL);
}
