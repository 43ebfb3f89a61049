#include <locale.h>
#include <math.h>

#include "base/number.h"
#include "support.h"

static void check_round_trip(double value) {
  char text[BERTH__DOUBLE_TEXT];
  double back = 0;
  berth__format_double(value, text);
  assert_null(strchr(text, ','));
  assert_true(berth__parse_double(text, &back));
  assert_memory_equal(&back, &value, sizeof value);
}

static void every_double_reads_back_the_same(void **state) {
  (void)state;
  uint64_t random = 7;
  const double special[] = {0.0, -0.0, 1.0, 0.1, -2.5, 1e300, 5e-324, 123456789.125, INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) check_round_trip(special[i]);
  for (int i = 0; i < 10000; i++) {
    uint64_t bits = test_random(&random);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isnan(value)) check_round_trip(value);
  }
}

static void what_is_no_number_is_refused(void **state) {
  (void)state;
  double value;
  const char *const wrong[] = {"", "1,5", "1.5x", "--1", "one", "1.5.2", "e5"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_false(berth__parse_double(wrong[i], &value));
}

static void a_locale_with_a_comma_changes_nothing(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
  bool is_set = false;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !is_set; i++)
    is_set = setlocale(LC_NUMERIC, names[i]) != NULL;
  if (!is_set) TEST_SKIP("no locale with a decimal comma is installed");
  check_round_trip(2.5);
  check_round_trip(1e-7);
  setlocale(LC_NUMERIC, "C");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_double_reads_back_the_same),
      cmocka_unit_test(what_is_no_number_is_refused),
      cmocka_unit_test(a_locale_with_a_comma_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
