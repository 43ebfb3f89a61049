/* Convolutions that write over their operand at the price of scratch: where the plan is fullest, and nowhere else. */
#include "plan/planning.h"

#define INPUT "input %in : f32[1, 12, 10, 64]\nparam %w : f32[3, 3, 64]\nparam %p : f32[2, 64, 32]\n"
#define X INPUT "%x = exp(%in)\n"
#define SAME "{kernel = [3, 3], pads = [1, 1, 1, 1]}\n"
#define POINT "{kernel = [1, 1], channels = 64, panel = 32}\n"
#define VALUE (12u * 10u * 64u * 4u) /* bytes of x */

static void assert_alike(fixture *f, uint32_t flags) {
  berth_plan_desc desc = desc_with(flags);
  assert_runs_alike(f->graph, &desc);
}

static void test_depthwise(void **state) {
  const berth_plan *plan = plan_text(*state, X "%y = depthwise(%x, %w) " SAME "output \"y\" = %y", 0);
  assert_in_place(plan, "y", "x");
  assert_true(activations_size(plan) < 5 * VALUE / 2);
  assert_alike(*state, 0);
  plan = plan_again(*state, BERTH_PLAN_NO_INPLACE);
  assert_owner(plan, "y");
  plan = plan_again(*state, BERTH_PLAN_NO_REUSE);
  assert_owner(plan, "y");
}

static void test_one_after_the_other(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X "%a = depthwise(%x, %w) " SAME "%b = conv_last(%a, %p) " POINT
                                       "%c = depthwise(%b, %w) " SAME "output \"c\" = %c",
                                     0);
  assert_in_place(plan, "a", "x");
  assert_in_place(plan, "b", "x");
  assert_in_place(plan, "c", "x");
  assert_alike(*state, 0);
}

/* With the input gone, exp lies over it as well. */
static void test_over_an_input_that_dies(void **state) {
  const berth_plan *plan =
      plan_text(*state, INPUT "%y = depthwise(%in, %w) " SAME "output \"y\" = %y", BERTH_PLAN_INPUTS_DIE);
  assert_in_place(plan, "y", "in");
  assert_alike(*state, BERTH_PLAN_INPUTS_DIE);
  plan = plan_again(*state, 0);
  assert_owner(plan, "y");
}

static void test_not_below_what_is_needed_anyway(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X "%y = depthwise(%x, %w) " SAME
                                       "%z = concat(%y, %y, %y) {axis = 3}\n"
                                       "output \"z\" = %z",
                                     0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

static void test_not_when_it_is_read_later(void **state) {
  const berth_plan *plan = plan_text(
      *state, X "%a = depthwise(%x, %w) " SAME "%y = depthwise(%a, %w) " SAME "%z = mul(%y, %x)\noutput \"z\" = %z", 0);
  assert_owner(plan, "a");
  assert_in_place(plan, "y", "a");
  assert_alike(*state, 0);
}

/* The epilogue reads x again, after the place where it was written over. */
static void test_not_when_the_tail_reads_it(void **state) {
  const berth_plan *plan =
      plan_text(*state,
                X
                "%y = depthwise(%x, %w, _, %x) {kernel = [3, 3], pads = [1, 1, 1, 1], code = [0, 0, 1, 0]}\n"
                "output \"y\" = %y",
                0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

#define OTHER(call) X "param %q : f32[2, 576, 32]\n%y = " call "%z = relu(%y)\noutput \"z\" = %z"

static void test_not_for_other_windows(void **state) {
  static const char *const graphs[] = {
      OTHER("depthwise(%x, %w) {kernel = [3, 3]}\n"),
      OTHER("conv_last(%x, %p) {kernel = [1, 1], channels = 48, panel = 32}\n"),
      OTHER("conv_last(%x, %q) {kernel = [3, 3], channels = 64, panel = 32, pads = [1, 1, 1, 1]}\n"),
  };
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    const berth_plan *plan = plan_text(*state, graphs[i], 0);
    assert_owner(plan, "y");
    assert_alike(*state, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_depthwise),
      PLAN_TEST(test_one_after_the_other),
      PLAN_TEST(test_over_an_input_that_dies),
      PLAN_TEST(test_not_below_what_is_needed_anyway),
      PLAN_TEST(test_not_when_it_is_read_later),
      PLAN_TEST(test_not_when_the_tail_reads_it),
      PLAN_TEST(test_not_for_other_windows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
