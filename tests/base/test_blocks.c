/* Storages, and block types against plain code that was written from the definition of the formats: q8_0 is an f16
 * scale and 32 signed bytes; q4_0 an f16 scale and 16 bytes, low halves first, with 8 for 0. */
#include "base/blocks.h"

#include <math.h>

#include "base/half.h"
#include "base/storage.h"
#include "support.h"

static void bytes_are_counted_by_blocks(void **state) {
  uint64_t bytes = 7;
  (void)state;
  assert_true(berth__storage_bytes(berth_type_storage(BERTH_F32), 10, &bytes) && bytes == 40);
  assert_true(berth__storage_bytes(berth_type_storage(BERTH_Q8_0), 64, &bytes) && bytes == 68);
  assert_true(berth__storage_bytes(berth_type_storage(BERTH_Q4_0), 0, &bytes) && bytes == 0);
  bytes = 7;
  assert_false(berth__storage_bytes(berth_type_storage(BERTH_Q8_0), 33, &bytes));
  assert_false(berth__storage_bytes(berth_type_storage(BERTH_F64), UINT64_MAX / 4, &bytes));
  assert_false(berth__storage_bytes(berth_type_storage(BERTH_Q8_0), UINT64_MAX / 32 * 32, &bytes));
  assert_int_equal(bytes, 7);
  assert_int_equal(berth_storage_bytes(berth_type_storage(BERTH_Q4_0), 96), 54);
  assert_int_equal(berth_storage_bytes(berth_type_storage(BERTH_Q4_0), 95), 0);
  assert_int_equal(berth__storage_count(berth_type_storage(BERTH_Q8_0), 102), 96);
  assert_int_equal(berth_type_storage((berth_type)99).bytes, 0);
  const int64_t dim[] = {3, INT64_MAX, 0};
  assert_true(berth__dense_bytes(3, dim, BERTH_F32, &bytes) && bytes == 0);
  assert_false(berth__dense_bytes(2, dim, BERTH_F32, &bytes));
}

static void block_types_have_names(void **state) {
  (void)state;
  assert_string_equal(berth_type_name(BERTH_Q8_0), "q8_0");
  assert_int_equal(berth_type_from_name("q4_0"), BERTH_Q4_0);
  assert_int_equal(berth_type_size(BERTH_Q8_0), 0);
  assert_true(berth__type_is_block(BERTH_Q4_0) && !berth__type_is_block(BERTH_F16));
}

/* ---- Plain code ---- */

static float scale_of(const uint8_t *block) { return berth__f16_to_f32((uint16_t)(block[0] | block[1] << 8)); }

static float plain_element(berth_type type, const uint8_t *block, int i) {
  if (type == BERTH_Q8_0) return (float)(block[2 + i] < 128 ? block[2 + i] : block[2 + i] - 256) * scale_of(block);
  const int byte = block[2 + i % 16];
  return (float)((i < 16 ? byte % 16 : byte / 16) - 8) * scale_of(block);
}

static const berth_type types[] = {BERTH_Q8_0, BERTH_Q4_0};

static void every_byte_is_decoded_to_the_bit(void **state) {
  uint64_t seed = 5;
  berth_error err;
  (void)state;
  for (size_t t = 0; t < 2; t++) {
    const berth_storage storage = berth_type_storage(types[t]);
    for (int round = 0; round < 2000; round++) {
      uint8_t blocks[1 + 3 * 34];
      float got[96];
      for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (uint8_t)test_random(&seed);
      TEST_OK(berth_to_f32(types[t], blocks + 1, 96, got, &err)); /* at an odd address */
      for (int i = 0; i < 96; i++) {
        const float want = plain_element(types[t], blocks + 1 + (size_t)i / 32 * storage.bytes, i % 32);
        assert_true(memcmp(&want, &got[i], 4) == 0 || (isnan(want) && isnan(got[i])));
      }
    }
  }
}

/* What is encoded is decoded to the nearest of the values that the block can have, but for the rounding of the scale.
 */
static void encoding_rounds_to_the_nearest(void **state) {
  uint64_t seed = 11;
  berth_error err;
  (void)state;
  for (int round = 0; round < 500; round++) {
    float x[32], back[32], largest = 0;
    uint8_t block[34];
    for (int i = 0; i < 32; i++) x[i] = test_random_f32(&seed) * 4;
    for (int i = 0; i < 32; i++) largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    TEST_OK(berth_from_f32(BERTH_Q8_0, x, 32, block, &err));
    TEST_OK(berth_to_f32(BERTH_Q8_0, block, 32, back, &err));
    for (int i = 0; i < 32; i++) {
      const float d = largest / 127;
      assert_int_equal((int8_t)block[2 + i], (int)roundf(x[i] * (1.0f / d)));
      assert_true(fabsf(back[i] - x[i]) <= d * 0.5f + largest / 1024);
    }
    assert_int_equal(block[0] | block[1] << 8, berth__f32_to_f16(largest / 127));
    TEST_OK(berth_from_f32(BERTH_Q4_0, x, 32, block, &err));
    TEST_OK(berth_to_f32(BERTH_Q4_0, block, 32, back, &err));
    for (int i = 0; i < 32; i++) assert_true(fabsf(back[i] - x[i]) <= largest / 8 * 1.01f); /* 8 itself is not there */
  }
}

static void what_a_block_holds_survives(void **state) {
  float x[32], back[32];
  uint8_t block[34];
  berth_error err;
  (void)state;
  for (int i = 0; i < 32; i++) x[i] = (float)(i * 8 - 127) * 0.25f;
  x[31] = 127 * 0.25f;
  TEST_OK(berth_from_f32(BERTH_Q8_0, x, 32, block, &err));
  TEST_OK(berth_to_f32(BERTH_Q8_0, block, 32, back, &err));
  assert_memory_equal(x, back, sizeof x);
  for (int i = 0; i < 32; i++) x[i] = (float)(i % 16 - 8) * 0.5f;
  TEST_OK(berth_from_f32(BERTH_Q4_0, x, 32, block, &err));
  TEST_OK(berth_to_f32(BERTH_Q4_0, block, 32, back, &err));
  assert_memory_equal(x, back, sizeof x);
}

static void odd_numbers_are_no_trouble(void **state) {
  static const float odd[] = {NAN, INFINITY, -INFINITY, 0, 1e-45f, 3e38f};
  float x[32], back[32];
  uint8_t block[34];
  berth_error err;
  (void)state;
  for (size_t t = 0; t < 2; t++) {
    for (int i = 0; i < 32; i++) x[i] = odd[i % 6];
    TEST_OK(berth_from_f32(types[t], x, 32, block, &err));
    for (int i = 0; i < 32; i++) x[i] = i % 2 != 0 ? NAN : 0;
    TEST_OK(berth_from_f32(types[t], x, 32, block, &err));
    TEST_OK(berth_to_f32(types[t], block, 32, back, &err));
    for (int i = 0; i < 32; i++) assert_true(back[i] == 0);
  }
  test_expect_error(berth_to_f32(BERTH_Q8_0, block, 31, back, &err), BERTH_INVALID, &err, "blocks of 32");
  test_expect_error(berth_from_f32((berth_type)99, x, 32, block, &err), BERTH_INVALID, &err, "no type");
  test_expect_error(berth_to_f32(BERTH_F32, NULL, 1, back, &err), BERTH_INVALID, &err, "NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_counted_by_blocks),      cmocka_unit_test(block_types_have_names),
      cmocka_unit_test(every_byte_is_decoded_to_the_bit), cmocka_unit_test(encoding_rounds_to_the_nearest),
      cmocka_unit_test(what_a_block_holds_survives),      cmocka_unit_test(odd_numbers_are_no_trouble),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
