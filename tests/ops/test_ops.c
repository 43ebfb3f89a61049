/* Every op against its cases. */
#include <stdio.h>

#include "direct.h"
#include "support.h"

static op_cases cases;

static int load(void **state) {
  (void)state;
  return op_cases_load(&cases, op_cases_folder()) ? 0 : -1;
}

static int unload(void **state) {
  (void)state;
  op_cases_free(&cases);
  return 0;
}

/* All of them, so that one run shows everything that is wrong. */
static void check_all(int (*holds)(const op_case *c)) {
  int failures = 0;
  for (size_t i = 0; i < cases.count; i++) failures += !holds(&cases.items[i]);
  assert_int_equal(failures, 0);
}

static void inference_gives_types_and_shapes(void **state) {
  (void)state;
  check_all(direct_infer);
}

static void inference_lets_open_dimensions_through(void **state) {
  (void)state;
  check_all(direct_infer_open);
}

static void kernels_give_the_expected_values(void **state) {
  (void)state;
  check_all(direct_run);
}

static void views_show_the_expected_values(void **state) {
  (void)state;
  check_all(direct_view);
}

static void every_op_has_a_case(void **state) {
  int missing = 0;
  (void)state;
  for (uint32_t code = 0; code < BERTH__OP_COUNT; code++) {
    const char *name = berth__op_builtin((berth__op_code)code)->name;
    size_t i = 0;
    while (i < cases.count && (cases.items[i].error || strcmp(cases.items[i].op, name) != 0)) i++;
    if (i < cases.count) continue;
    fprintf(stderr, "op %s has no case with outputs\n", name);
    missing++;
  }
  assert_int_equal(missing, 0);
}

static void names_of_cases_are_unique(void **state) {
  int repeated = 0;
  (void)state;
  for (size_t i = 0; i < cases.count; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(cases.items[i].name, cases.items[k].name) == 0) {
        fprintf(stderr, "%s:%d: the name %s is taken\n", cases.items[i].file, cases.items[i].line, cases.items[i].name);
        repeated++;
      }
  assert_int_equal(repeated, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_has_a_case),
      cmocka_unit_test(names_of_cases_are_unique),
      cmocka_unit_test(inference_gives_types_and_shapes),
      cmocka_unit_test(inference_lets_open_dimensions_through),
      cmocka_unit_test(kernels_give_the_expected_values),
      cmocka_unit_test(views_show_the_expected_values),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
