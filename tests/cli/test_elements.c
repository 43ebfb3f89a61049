/* Elements of every type in the tool. The sequence for inputs that are not given is documented, so it must never
 * change: the numbers here come from a computation of their own. */
#include "../../tools/berth/elements.c"

#include "support.h"

static void fills_floats(void **state) {
  (void)state;
  static const float want[4] = {0.38353145122528076f, 0.8967562913894653f, 0.2625701427459717f, -0.900388240814209f};
  float got[4];
  double wide[4];
  element_fill(BERTH_F32, got, 4, "image", 1, ELEMENT_MOST);
  element_fill(BERTH_F64, wide, 4, "image", 1, ELEMENT_MOST);
  assert_memory_equal(got, want, sizeof(want));
  for (int i = 0; i < 4; i++) assert_true(wide[i] == (double)want[i]);
}

static void fills_halves(void **state) {
  (void)state;
  static const uint16_t want_f16[4] = {0x3620, 0x3b2c, 0x3430, 0xbb34}, want_bf16[4] = {0x3ec4, 0x3f64, 0x3e84, 0xbf68};
  uint16_t got[4];
  element_fill(BERTH_F16, got, 4, "image", 1, ELEMENT_MOST);
  assert_memory_equal(got, want_f16, sizeof(got));
  element_fill(BERTH_BF16, got, 4, "image", 1, ELEMENT_MOST);
  assert_memory_equal(got, want_bf16, sizeof(got));
}

static void fills_integers(void **state) {
  (void)state;
  static const int64_t want[4] = {3, 9, 0, 2};
  static const uint8_t want_bool[4] = {1, 1, 0, 0};
  int64_t got[4];
  uint8_t bools[4];
  int8_t bytes[4];
  element_fill(BERTH_I64, got, 4, "image", 1, ELEMENT_MOST);
  element_fill(BERTH_BOOL, bools, 4, "image", 1, ELEMENT_MOST);
  element_fill(BERTH_I8, bytes, 4, "image", 16, ELEMENT_MOST);
  assert_memory_equal(got, want, sizeof(want));
  assert_memory_equal(bools, want_bool, sizeof(bools));
  for (int i = 0; i < 4; i++) assert_int_equal(bytes[i], want[i]);
}

static void fills_within_bounds(void **state) {
  (void)state;
  static const berth_type types[] = {BERTH_F32, BERTH_F64, BERTH_F16, BERTH_BF16};
  static uint64_t data[5000];
  for (size_t t = 0; t < 4; t++) {
    element_fill(types[t], data, 5000, "some name", 1, ELEMENT_MOST);
    element_summary summary = element_summarise(types[t], data, 5000);
    assert_true(summary.min >= -1 && summary.max < 1 && summary.not_finite == 0);
    assert_true(summary.min < -0.98 && summary.max > 0.98 && fabs(summary.mean) < 0.05);
    element_fill(types[t], data, 5000, "some name", 16, ELEMENT_MOST);
    element_summary small = element_summarise(types[t], data, 5000);
    assert_true(small.min * 16 == summary.min && small.max * 16 == summary.max);
  }
}

static void sequences_differ_by_name(void **state) {
  (void)state;
  float a[8], b[8];
  element_fill(BERTH_F32, a, 8, "a", 1, ELEMENT_MOST);
  element_fill(BERTH_F32, b, 8, "b", 1, ELEMENT_MOST);
  assert_memory_not_equal(a, b, sizeof(a));
}

static void reads_every_type(void **state) {
  (void)state;
  assert_true(element_at(BERTH_U32, (uint32_t[]){7, UINT32_MAX}, 1) == 4294967295.0);
  assert_true(element_at(BERTH_U16, (uint16_t[]){7, UINT16_MAX}, 1) == 65535.0);
  assert_true(element_at(BERTH_U64, (uint64_t[]){7, UINT64_MAX}, 1) == 0x1p64);
  assert_true(element_at(BERTH_I16, (int16_t[]){-5}, 0) == -5);
  assert_true(element_at(BERTH_F16, (uint16_t[]){0x3c00}, 0) == 1);
  assert_true(element_at(BERTH_F16, (uint16_t[]){0xc248}, 0) == -3.140625);
  assert_true(element_at(BERTH_F16, (uint16_t[]){0x0001}, 0) == ldexp(1, -24));
  assert_true(isinf(element_at(BERTH_F16, (uint16_t[]){0xfc00}, 0)));
  assert_true(isnan(element_at(BERTH_F16, (uint16_t[]){0x7e00}, 0)));
  assert_true(element_at(BERTH_BF16, (uint16_t[]){0xc049}, 0) == -3.140625);
}

static void rounds_to_bf16(void **state) {
  (void)state;
  assert_int_equal(element_to_bf16(1.0f), 0x3f80);
  assert_int_equal(element_to_bf16(1.00390625f), 0x3f80); /* half way: to even, down */
  assert_int_equal(element_to_bf16(1.01171875f), 0x3f82); /* half way: to even, up */
  assert_int_equal(element_to_bf16(3.4e38f), 0x7f80);     /* over the largest: infinity */
  assert_true(isnan(element_from_bf16(element_to_bf16(NAN))));
}

static void summarises(void **state) {
  (void)state;
  element_summary some = element_summarise(BERTH_F32, (float[]){1, NAN, -3, INFINITY}, 4);
  assert_true(some.min == -3 && some.max == 1 && some.mean == -1 && some.not_finite == 2 && some.count == 4);
  element_summary none = element_summarise(BERTH_F32, (float[]){0}, 0);
  assert_true(none.count == 0 && none.min == 0 && none.mean == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fills_floats),
      cmocka_unit_test(fills_halves),
      cmocka_unit_test(fills_integers),
      cmocka_unit_test(fills_within_bounds),
      cmocka_unit_test(sequences_differ_by_name),
      cmocka_unit_test(reads_every_type),
      cmocka_unit_test(rounds_to_bf16),
      cmocka_unit_test(summarises),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
