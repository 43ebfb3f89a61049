/* Storages, and block types against plain code that was written from the definition of the formats: q8_0 is an f16
 * scale and 32 signed bytes; q4_0 an f16 scale and 16 bytes, low halves first, with 8 for 0. */
#include "base/blocks.h"

#include <math.h>

#include "base/half.h"
#include "base/storage.h"
#include "block_vectors.h"
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

/* ---- Every format, by what its own library says ---- */

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return isnan(x) ? 0x7fc00000u : bits;
}

static void every_format_is_what_its_library_says(void **state) {
  static float got[BLOCK_VECTOR_BLOCKS * BERTH__BLOCK_MAX];
  static uint8_t blocks[BLOCK_VECTOR_BLOCKS * 210 + 1];
  berth_error err;
  (void)state;
  for (size_t t = 0; t < sizeof block_vectors / sizeof block_vectors[0]; t++) {
    const berth_type type = block_vectors[t].type;
    const berth_storage storage = berth_type_storage(type);
    const uint64_t n = (uint64_t)BLOCK_VECTOR_BLOCKS * storage.elements;
    uint64_t seed = block_vectors[t].seed, sum = UINT64_C(0xcbf29ce484222325);
    TEST_OK(berth_to_f32(type, block_vectors[t].block, storage.elements, got, &err));
    for (uint32_t i = 0; i < storage.elements; i++)
      if (bits_of(got[i]) != block_vectors[t].bits[i]) fail_msg("%s: element %u", berth_type_name(type), i);
    for (size_t i = 0; i < (size_t)BLOCK_VECTOR_BLOCKS * storage.bytes; i++)
      blocks[1 + i] = (uint8_t)test_random(&seed);
    TEST_OK(berth_to_f32(type, blocks + 1, n, got, &err)); /* at an odd address */
    for (uint64_t i = 0; i < n; i++)
      for (int byte = 0; byte < 4; byte++) sum = (sum ^ (bits_of(got[i]) >> 8 * byte & 255)) * UINT64_C(0x100000001b3);
    if (sum != block_vectors[t].checksum) fail_msg("%s: random blocks", berth_type_name(type));
  }
}

/* The parts that kernels compute with are the elements, to the bit. */
static void parts_make_the_elements(void **state) {
  berth_error err;
  (void)state;
  for (size_t t = 0; t < sizeof block_vectors / sizeof block_vectors[0]; t++) {
    const berth_type type = block_vectors[t].type;
    const uint32_t group = berth__block_group(type), n = berth_type_storage(type).elements;
    berth__block_parts p;
    float got[BERTH__BLOCK_MAX];
    bool has_offset = false;
    berth__block_split(type, block_vectors[t].block, &p);
    TEST_OK(berth_to_f32(type, block_vectors[t].block, n, got, &err));
    for (uint32_t i = 0; i < n; i++) {
      const float product = p.factor[i / group] * (float)p.q[i];
      assert_true(bits_of(product + p.offset[i / group]) == bits_of(got[i]));
      if (bits_of(p.offset[i / group]) != bits_of(-0.0f)) has_offset = true;
    }
    assert_int_equal(has_offset, berth__block_has_offset(type));
  }
  assert_int_equal(berth__block_group(BERTH_F32), 0);
}

/* What is encoded is the nearest that the block can hold, or it is refused. */
static void formats_are_encoded_or_refused(void **state) {
  static const struct {
    berth_type type;
    float steps; /* between the least and the greatest */
  } rows[] = {{BERTH_Q4_1, 15}, {BERTH_Q5_0, 31}, {BERTH_Q5_1, 31}};
  uint64_t seed = 17;
  berth_error err;
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    for (int round = 0; round < 200; round++) {
      float x[32], back[32], largest = 0;
      uint8_t block[24], again[24];
      for (int i = 0; i < 32; i++) x[i] = test_random_f32(&seed) * 4;
      for (int i = 0; i < 32; i++) largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
      TEST_OK(berth_from_f32(rows[r].type, x, 32, block, &err));
      TEST_OK(berth_to_f32(rows[r].type, block, 32, back, &err));
      for (int i = 0; i < 32; i++) assert_true(fabsf(back[i] - x[i]) <= 2 * largest / rows[r].steps * 1.01f);
      TEST_OK(berth_from_f32(rows[r].type, back, 32, again, &err));
      TEST_OK(berth_to_f32(rows[r].type, again, 32, x, &err));
      for (int i = 0; i < 32; i++) assert_true(fabsf(back[i] - x[i]) <= largest * 0x1p-9f);
    }
  }
  for (berth_type type = BERTH_Q2_K; type <= BERTH_IQ3_S; type++) {
    static const float x[256];
    uint8_t block[210];
    assert_false(berth__type_encodes(type));
    test_expect_error(berth_from_f32(type, x, 256, block, &err), BERTH_UNSUPPORTED, &err, "not encoded");
  }
  assert_true(berth__type_encodes(BERTH_F16) && berth__type_encodes(BERTH_Q5_1));
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
      cmocka_unit_test(bytes_are_counted_by_blocks),           cmocka_unit_test(block_types_have_names),
      cmocka_unit_test(every_byte_is_decoded_to_the_bit),      cmocka_unit_test(encoding_rounds_to_the_nearest),
      cmocka_unit_test(what_a_block_holds_survives),           cmocka_unit_test(odd_numbers_are_no_trouble),
      cmocka_unit_test(every_format_is_what_its_library_says), cmocka_unit_test(parts_make_the_elements),
      cmocka_unit_test(formats_are_encoded_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
