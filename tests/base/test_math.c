#include "base/math.h"

#include "support.h"

/* A result that does not fit must leave this alone. */
enum {
  UNTOUCHED = 12345
};

static void sums_that_fit_are_right_and_others_refused(void **state) {
  (void)state;
  uint64_t u = UNTOUCHED;
  assert_true(berth__add_u64(UINT64_MAX - 5, 5, &u));
  assert_true(u == UINT64_MAX);
  u = UNTOUCHED;
  assert_false(berth__add_u64(UINT64_MAX - 5, 6, &u));
  assert_false(berth__add_u64(6, UINT64_MAX - 5, &u));
  assert_true(u == UNTOUCHED);
  assert_true(berth__add_u64(0, 0, &u) && u == 0);
}

static void signed_sums_know_both_ends(void **state) {
  (void)state;
  int64_t i = UNTOUCHED;
  assert_false(berth__add_i64(INT64_MAX, 1, &i));
  assert_false(berth__add_i64(INT64_MIN, -1, &i));
  assert_false(berth__add_i64(-2, INT64_MIN + 1, &i));
  assert_true(i == UNTOUCHED);
  assert_true(berth__add_i64(INT64_MAX, INT64_MIN, &i) && i == -1);
  assert_true(berth__add_i64(INT64_MIN, 0, &i) && i == INT64_MIN);
  assert_true(berth__add_i64(INT64_MAX - 1, 1, &i) && i == INT64_MAX);
}

static void products_that_fit_are_right_and_others_refused(void **state) {
  (void)state;
  uint64_t u = UNTOUCHED;
  assert_false(berth__mul_u64(UINT64_MAX, 2, &u));
  assert_false(berth__mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
  assert_true(u == UNTOUCHED);
  assert_true(berth__mul_u64(UINT64_MAX, 1, &u) && u == UINT64_MAX);
  assert_true(berth__mul_u64(UINT64_MAX, 0, &u) && u == 0);
  assert_true(berth__mul_u64(0, UINT64_MAX, &u) && u == 0);
  assert_true(berth__mul_u64(UINT32_MAX, UINT32_MAX, &u) && u == UINT64_C(18446744065119617025));
}

static void extents_stay_positive(void **state) {
  (void)state;
  int64_t i = UNTOUCHED;
  assert_false(berth__mul_extent(INT64_MAX, 2, &i));
  assert_false(berth__mul_extent(INT64_C(1) << 32, INT64_C(1) << 31, &i));
  assert_true(i == UNTOUCHED);
  assert_true(berth__mul_extent(INT64_C(1) << 32, (INT64_C(1) << 31) - 1, &i));
  assert_true(berth__mul_extent(INT64_MAX, 0, &i) && i == 0);
}

static void alignment_goes_up_to_the_next_multiple(void **state) {
  (void)state;
  uint64_t u = UNTOUCHED;
  for (uint64_t x = 0; x < 300; x++) {
    for (uint64_t align = 1; align <= 128; align *= 2) {
      assert_true(berth__align_up(x, align, &u));
      assert_true(u % align == 0 && u >= x && u - x < align);
    }
  }
  u = UNTOUCHED;
  assert_false(berth__align_up(UINT64_MAX - 10, 64, &u));
  assert_true(u == UNTOUCHED);
  assert_true(berth__align_up(UINT64_MAX - 63, 64, &u) && u == UINT64_MAX - 63);
}

static void powers_of_two_are_known(void **state) {
  (void)state;
  assert_false(berth__is_power_of_two(0));
  for (int bit = 0; bit < 64; bit++) assert_true(berth__is_power_of_two(UINT64_C(1) << bit));
  for (int bit = 2; bit < 64; bit++) assert_false(berth__is_power_of_two((UINT64_C(1) << bit) - 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_that_fit_are_right_and_others_refused),     cmocka_unit_test(signed_sums_know_both_ends),
      cmocka_unit_test(products_that_fit_are_right_and_others_refused), cmocka_unit_test(extents_stay_positive),
      cmocka_unit_test(alignment_goes_up_to_the_next_multiple),         cmocka_unit_test(powers_of_two_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
