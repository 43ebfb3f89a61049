/* A result takes the place of an operand that dies there, where its op allows that and nothing else needs the bytes. */
#include "plan/planning.h"

#define INPUT "input %in : f32[4, 16]\n"
#define X INPUT "%x = exp(%in)\n"

static void assert_alike(fixture *f, uint32_t flags) {
  berth_plan_desc desc = desc_with(flags);
  assert_runs_alike(f->graph, &desc);
}

static void test_chain(void **state) {
  const berth_plan *plan = plan_text(
      *state, X "%a = relu(%x)\n%b = softmax(%a)\n%c = layer_norm(%b)\n%d = cumsum(%c) {axis = 1}\noutput \"d\" = %d",
      0);
  const char *names[] = {"a", "b", "c", "d"};
  for (size_t i = 0; i < 4; i++) assert_in_place(plan, names[i], "x");
  assert_owner(plan, "x");
  assert_int_equal(buffer_of(plan, "x")->kind, BERTH__BUFFER_OUTPUT);
  assert_alike(*state, 0);
  plan = plan_again(*state, BERTH_PLAN_NO_INPLACE);
  for (size_t i = 0; i < 4; i++) assert_owner(plan, names[i]);
  plan = plan_again(*state, BERTH_PLAN_NO_REUSE);
  for (size_t i = 0; i < 4; i++) assert_owner(plan, names[i]);
}

static void test_either_operand(void **state) {
  const berth_plan *plan = plan_text(*state, X "%y = sub(%in, %x)\noutput \"y\" = %y", 0);
  assert_in_place(plan, "y", "x");
  assert_alike(*state, 0);
  plan = plan_text(*state, X "%y = sub(%x, %in)\noutput \"y\" = %y", 0);
  assert_in_place(plan, "y", "x");
  assert_alike(*state, 0);
}

static void test_not_when_it_is_read_later(void **state) {
  const berth_plan *plan = plan_text(*state, X "%a = relu(%x)\n%y = sub(%a, %x)\noutput \"y\" = %y", 0);
  assert_owner(plan, "a");
  assert_in_place(plan, "y", "a");
  assert_alike(*state, 0);
}

static void test_not_when_a_view_is_read_later(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%v = narrow(%x) {starts = [1], ends = [2]}\n%a = relu(%x)\n"
                                     "%y = sub(%a, %v)\noutput \"y\" = %y",
                                     0);
  assert_view(plan, "v", "x", 64);
  assert_owner(plan, "a");
  assert_alike(*state, 0);
}

static void test_not_over_what_stays(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUT
                                     "param %w : f32[2]\nconst %c : f32[2] = [1, 2]\n%a = relu(%w)\n"
                                     "%b = relu(%c)\n%d = relu(%in)\n"
                                     "output \"a\" = %a\noutput \"b\" = %b\noutput \"d\" = %d",
                                     BERTH_PLAN_INPUTS_OUTSIDE | BERTH_PLAN_INPUTS_DIE);
  assert_owner(plan, "a");
  assert_owner(plan, "b");
  assert_owner(plan, "d");
}

/* The last step of all is no exception: an input that stays is there for the next run. */
static void test_not_over_an_input_in_the_last_step(void **state) {
  const berth_plan *plan = plan_text(*state, INPUT "%y = relu(%in)\noutput \"y\" = %y", 0);
  assert_owner(plan, "y");
  assert_false(share_bytes(plan, "in", "y"));
  plan = plan_again(*state, BERTH_PLAN_INPUTS_DIE);
  assert_in_place(plan, "y", "in");
  assert_alike(*state, BERTH_PLAN_INPUTS_DIE);
}

static void test_not_over_an_output(void **state) {
  const berth_plan *plan = plan_text(*state, X "%y = relu(%x)\noutput \"x\" = %x\noutput \"y\" = %y", 0);
  assert_owner(plan, "y");
  plan =
      plan_text(*state, /* nor over what an output shows */
                X "%v = narrow(%x) {starts = [0], ends = [1]}\n%y = relu(%x)\noutput \"v\" = %v\noutput \"y\" = %y", 0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

static void test_not_when_another_operand_shares_the_bytes(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%row = narrow(%x) {starts = [1], ends = [2]}\n%y = sub(%x, %row)\n"
                                     "output \"y\" = %y",
                                     0);
  assert_view(plan, "row", "x", 64);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
  plan =
      plan_text(*state, /* the same elements in another order */
                "input %in : f32[16, 16]\n%x = exp(%in)\n%t = transpose(%x)\n%y = sub(%x, %t)\noutput \"y\" = %y", 0);
  assert_view(plan, "t", "x", 0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

static void test_a_value_with_itself(void **state) {
  const berth_plan *plan = plan_text(*state, X "%y = mul(%x, %x)\noutput \"y\" = %y", 0);
  assert_in_place(plan, "y", "x");
  assert_alike(*state, 0);
  plan = plan_text(*state, X "%c = lt(%in, %in)\n%y = where(%c, %x, %x)\noutput \"y\" = %y", 0);
  assert_in_place(plan, "y", "x");
  assert_alike(*state, 0);
}

/* Scale is read again for every row, so it must not be the result's place. */
static void test_not_when_it_is_an_operand_of_another_kind_too(void **state) {
  const berth_plan *plan =
      plan_text(*state, "input %in : f32[16]\n%x = exp(%in)\n%y = layer_norm(%x, %x)\noutput \"y\" = %y", 0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

static void test_not_over_a_broadcast_operand(void **state) {
  const berth_plan *plan =
      plan_text(*state, INPUT "%row = reduce_sum(%in) {axes = [0]}\n%y = add(%in, %row)\noutput \"y\" = %y", 0);
  assert_owner(plan, "y");
  plan = plan_text(*state, /* as many elements, but another shape */
                   "input %in : f32[1, 4]\n%a = exp(%in)\n%t = transpose(%a)\n%b = exp(%t)\n%n = narrow(%b) {starts = "
                   "[0], ends = [1]}\n%y = add(%n, %a)\noutput \"y\" = %y",
                   BERTH_PLAN_INPUTS_OUTSIDE);
  assert_alike(*state, 0);
  plan = plan_text(*state,
                   INPUT
                   "%x = exp(%in)\n%wide = expand(%x) {shape = [3, 4, 16]}\n%y = relu(%wide)\n"
                   "output \"y\" = %y",
                   0);
  assert_view(plan, "wide", "x", 0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

static void test_size_of_the_element_decides(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%i = cast(%x) {to = \"i32\"}\n%h = cast(%i) {to = \"f16\"}\n"
                                     "%c = gt(%h, %h)\noutput \"c\" = %c",
                                     0);
  assert_in_place(plan, "i", "x");
  assert_owner(plan, "h");
  assert_owner(plan, "c");
  assert_alike(*state, 0);
}

static void test_ops_that_cannot(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %in : f32[8, 8]\n%x = exp(%in)\n%y = matmul(%x, %x)\n"
                                     "%z = max_pool(%v) {kernel = [1, 1]}\n%v = reshape(%y) {shape = [1, 1, 8, 8]}\n"
                                     "output \"z\" = %z",
                                     0);
  assert_owner(plan, "y");
  assert_owner(plan, "z");
}

/* The whole of a root through a view is as good as the root; a part of it is not. */
static void test_through_views(void **state) {
  const berth_plan *plan =
      plan_text(*state, X "%v = reshape(%x) {shape = [64]}\n%y = relu(%v)\n%z = exp(%y)\noutput \"z\" = %z", 0);
  assert_in_place(plan, "y", "x");
  assert_in_place(plan, "z", "x");
  assert_alike(*state, 0);
  plan = plan_text(*state,
                   X
                   "%a, %b = split(%x) {parts = [2, 2]}\n%p = relu(%a)\n%q = relu(%b)\noutput \"p\" = %p\n"
                   "output \"q\" = %q",
                   0);
  assert_owner(plan, "p");
  assert_alike(*state, 0);
}

/* A small result would keep a large root alive. */
static void test_not_in_a_part_of_a_root(void **state) {
  const berth_plan *plan =
      plan_text(*state, X "%a = narrow(%x) {starts = [1], ends = [2]}\n%y = relu(%a)\noutput \"y\" = %y", 0);
  assert_view(plan, "a", "x", 64);
  assert_owner(plan, "y");
}

/* All elements are there, but in another order. */
static void test_not_over_a_transposed_operand(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %in : f32[16, 16]\n%x = exp(%in)\n%t = transpose(%x)\n%y = relu(%t)\n"
                                     "output \"y\" = %y",
                                     0);
  assert_view(plan, "t", "x", 0);
  assert_owner(plan, "y");
  assert_alike(*state, 0);
}

/* A strided view of an operand: what it shows may not be written over while it is still read. */
static void test_strided_reader_and_writer(void **state) {
  plan_text(*state,
            "input %in : f32[6, 6]\n%x = exp(%in)\n%t = transpose(%x)\n%a = add(%t, %in)\n%b = mul(%x, %a)\n"
            "%c = sub(%b, %t)\n%d = relu(%x)\n%e = add(%c, %d)\noutput \"e\" = %e",
            0);
  assert_alike(*state, 0);
  assert_alike(*state, BERTH_PLAN_INPUTS_DIE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_chain),
      PLAN_TEST(test_either_operand),
      PLAN_TEST(test_not_when_it_is_read_later),
      PLAN_TEST(test_not_when_a_view_is_read_later),
      PLAN_TEST(test_not_over_what_stays),
      PLAN_TEST(test_not_over_an_input_in_the_last_step),
      PLAN_TEST(test_not_over_an_output),
      PLAN_TEST(test_not_when_another_operand_shares_the_bytes),
      PLAN_TEST(test_a_value_with_itself),
      PLAN_TEST(test_not_when_it_is_an_operand_of_another_kind_too),
      PLAN_TEST(test_not_over_a_broadcast_operand),
      PLAN_TEST(test_size_of_the_element_decides),
      PLAN_TEST(test_ops_that_cannot),
      PLAN_TEST(test_through_views),
      PLAN_TEST(test_not_in_a_part_of_a_root),
      PLAN_TEST(test_not_over_a_transposed_operand),
      PLAN_TEST(test_strided_reader_and_writer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
