/* Views own no bytes: they have a root and an offset into it, and they keep it alive. */
#include "plan/planning.h"

/* f32[4, 6]: 24 elements, 96 bytes. */
#define INPUT "input %in : f32[4, 6]\n"
#define X INPUT "%x = exp(%in)\n"

static void test_kin_of_reshape(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%a = reshape(%x) {shape = [2, 12]}\n"
                                     "%b = flatten(%a)\n"
                                     "%c = unsqueeze(%b) {axes = [0]}\n"
                                     "%d = squeeze(%c) {axes = [0]}\n"
                                     "%e = cast(%d) {to = \"f32\"}\n"
                                     "%f = identity(%e)\n"
                                     "%y = relu(%f)\noutput \"y\" = %y",
                                     BERTH_PLAN_NO_INPLACE);
  const char *names[] = {"a", "b", "c", "d", "e", "f"};
  for (size_t i = 0; i < 6; i++) assert_view(plan, names[i], "x", 0);
  assert_owner(plan, "x");
  assert_owner(plan, "y");
  assert_int_equal(test_plan_info(plan).n_buffers, 3);
}

static void test_cast_to_another_type_is_no_view(void **state) {
  const berth_plan *plan =
      plan_text(*state, X "%a = cast(%x) {to = \"i32\"}\noutput \"a\" = %a", BERTH_PLAN_NO_INPLACE);
  assert_owner(plan, "a");
}

static void test_slices_of_the_outermost_axis(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%a = narrow(%x) {starts = [1], ends = [3]}\n"
                                     "%b = narrow(%a) {starts = [1], ends = [2]}\n"
                                     "%c = narrow(%b) {axes = [1], starts = [2], ends = [5]}\n"
                                     "%u = unsqueeze(%x) {axes = [0]}\n"
                                     "%d = narrow(%u) {axes = [1], starts = [3], ends = [4]}\n"
                                     "output \"a\" = %a\noutput \"b\" = %b\noutput \"c\" = %c\noutput \"d\" = %d",
                                     0);
  assert_view(plan, "a", "x", 24);
  assert_view(plan, "b", "x", 48);
  assert_view(plan, "c", "x", 56); /* one row is left, so that the inner axis is the outermost that is not 1 */
  assert_view(plan, "d", "x", 72);
  assert_int_equal(slot_of(plan, "c").size, 12);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_split_of_the_outermost_axis(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%a, %b = split(%x) {parts = [1, 3]}\n"
                                     "%y = softmax(%a)\n%z = softmax(%b)\noutput \"y\" = %y\noutput \"z\" = %z",
                                     0);
  assert_view(plan, "a", "x", 0);
  assert_view(plan, "b", "x", 24);
}

static void test_element_size_counts(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %in : f16[4, 6]\n%x = exp(%in)\n"
                                     "%a = narrow(%x) {starts = [1], ends = [3]}\noutput \"a\" = %a",
                                     0);
  assert_view(plan, "a", "x", 12);
  plan = plan_again(*state, BERTH_PLAN_F32_UNIFORM);
  assert_view(plan, "a", "x", 24);
}

/* softmax takes no strides; add takes any. */
static void test_inner_slice_is_a_view_for_readers_of_strides(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%a = narrow(%x) {axes = [1], starts = [2], ends = [4]}\n"
                                     "%y = add(%a, %a)\noutput \"y\" = %y",
                                     0);
  assert_view(plan, "a", "x", 8);
  berth_slot slot = slot_of(plan, "a");
  assert_int_equal(slot.rank, 2);
  assert_int_equal(slot.stride[0], 6);
  assert_int_equal(slot.stride[1], 1);
  assert_int_equal(slot.size, 32);
  plan = plan_again(*state, BERTH_PLAN_NO_STRIDED);
  assert_owner(plan, "a");
  assert_int_equal(slot_of(plan, "a").stride[0], 2);
}

static void test_inner_slice_is_copied_for_one_other_reader(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%a = narrow(%x) {axes = [1], starts = [2], ends = [4]}\n"
                                     "%y = add(%a, %a)\n%z = softmax(%a)\noutput \"y\" = %y\noutput \"z\" = %z",
                                     0);
  assert_owner(plan, "a");
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_strided_output_is_copied(void **state) {
  const berth_plan *plan =
      plan_text(*state, X "%a = transpose(%x)\n%b = add(%a, %a)\noutput \"a\" = %a\noutput \"b\" = %b", 0);
  assert_owner(plan, "a");
  assert_int_equal(slot_of(plan, "a").stride[0], 4);
}

static void test_transpose_and_expand(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%t = transpose(%x)\n%row = reduce_sum(%x) {axes = [0]}\n"
                                     "%wide = expand(%row) {shape = [4, 6]}\n%w = matmul(%wide, %t)\n"
                                     "output \"w\" = %w",
                                     0);
  assert_view(plan, "t", "x", 0);
  assert_int_equal(slot_of(plan, "t").stride[0], 1);
  assert_int_equal(slot_of(plan, "t").stride[1], 6);
  assert_view(plan, "wide", "row", 0);
  assert_int_equal(slot_of(plan, "wide").stride[0], 0);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

/* Not every reshape of a strided view can be shown: it is copied then, and right. */
static void test_reshape_of_a_strided_view(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%t = transpose(%x)\n%r = reshape(%t) {shape = [24]}\n%y = add(%r, %r)\n"
                                     "output \"y\" = %y",
                                     BERTH_PLAN_NO_INPLACE);
  assert_owner(plan, "r");
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_inner_split(void **state) {
  static const char text[] = X
      "%a, %b, %c = split(%x) {axis = 1}\n%ab = mul(%a, %b)\n%abc = add(%ab, %c)\n"
      "output \"y\" = %abc";
  const berth_plan *plan = plan_text(*state, text, 0);
  assert_view(plan, "a", "x", 0);
  assert_view(plan, "b", "x", 8);
  assert_view(plan, "c", "x", 16);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
  /* A kernel writes all parts or none: one reader without strides and all are copied. */
  plan = plan_text(*state,
                   X
                   "%a, %b, %c = split(%x) {axis = 1}\n%ab = mul(%a, %b)\n%s = softmax(%c)\n%abc = add(%ab, %s)\n"
                   "output \"y\" = %abc",
                   0);
  assert_owner(plan, "a");
  assert_owner(plan, "b");
  assert_owner(plan, "c");
}

static void test_backward_slice_is_copied(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%a = narrow(%x) {starts = [3], ends = [-9], steps = [-1]}\n%y = add(%a, %a)\n"
                                     "output \"y\" = %y",
                                     BERTH_PLAN_NO_INPLACE);
  assert_owner(plan, "a");
}

static void test_a_view_keeps_its_root_alive(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%v = reshape(%x) {shape = [24]}\n%w = narrow(%v) {starts = [6], ends = [12]}\n"
                                     "%p = exp(%in)\n%q = exp(%p)\n%r = exp(%w)\n"
                                     "output \"q\" = %q\noutput \"r\" = %r",
                                     BERTH_PLAN_NO_INPLACE);
  assert_view(plan, "w", "x", 24);
  assert_int_equal(buffer_of(plan, "x")->death, 6); /* after the reader of the view's view */
  assert_int_equal(slot_of(plan, "x").death, 6);
  assert_int_equal(slot_of(plan, "v").death, 6);
  assert_int_equal(slot_of(plan, "w").birth, 2);
  assert_int_equal(slot_of(plan, "w").death, 6);
  assert_false(share_bytes(plan, "p", "x"));
  assert_false(share_bytes(plan, "q", "x"));
}

static void test_a_view_that_is_an_output_keeps_its_root_to_the_end(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%v = narrow(%x) {starts = [1], ends = [2]}\n%p = exp(%in)\n%q = exp(%p)\n"
                                     "output \"v\" = %v\noutput \"q\" = %q",
                                     0);
  assert_view(plan, "v", "x", 24);
  assert_int_equal(buffer_of(plan, "x")->death, 4);
  assert_int_equal(buffer_of(plan, "x")->kind, BERTH__BUFFER_OUTPUT);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_views_of_what_nodes_do_not_make(void **state) {
  static const char text[] = INPUT
      "param %w : f32[4, 6]\nconst %c : f32[2, 3] = [1, 2, 3, 4, 5, 6]\n"
      "%wi = narrow(%w) {starts = [2], ends = [3]}\n"
      "%ii = narrow(%in) {starts = [3], ends = [4]}\n"
      "%ci = narrow(%c) {starts = [1], ends = [2]}\n"
      "%y = add(%wi, %ii)\noutput \"wi\" = %wi\noutput \"ii\" = %ii\noutput \"ci\" = %ci\n"
      "output \"y\" = %y\noutput \"in\" = %in\noutput \"c\" = %c\noutput \"w\" = %w";
  const berth_plan *plan = plan_text(*state, text, 0);
  assert_view(plan, "wi", "w", 48);
  assert_view(plan, "ii", "in", 72);
  assert_view(plan, "ci", "c", 12);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
  desc = desc_with(BERTH_PLAN_INPUTS_DIE);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
  /* Outside the arena they are views all the same. */
  uint32_t outside = BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_INPUTS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE;
  plan = plan_again(*state, outside);
  assert_view(plan, "wi", "w", 48);
  assert_view(plan, "ii", "in", 72);
  assert_view(plan, "ci", "c", 12);
  assert_int_equal(test_plan_info(plan).n_buffers, 1);
  desc = desc_with(outside);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_nothing_at_all(void **state) {
  const berth_plan *plan =
      plan_text(*state,
                "input %in : f32[3, 0]\n%x = exp(%in)\n%v = reshape(%x) {shape = [0], allowzero = 1}\n"
                "%y = add(%v, %v)\n%z = exp(%y)\noutput \"z\" = %z\noutput \"v\" = %v",
                0);
  assert_int_equal(berth_plan_arena_size(plan), 0);
  assert_int_equal(slot_of(plan, "z").size, 0);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_queries_that_are_wrong(void **state) {
  const berth_plan *plan = plan_text(*state, X "output \"x\" = %x", 0);
  berth_error err;
  berth_slot slot = BERTH_SLOT_INIT;
  test_expect_error(berth_plan_slot(plan, 2, &slot, &err), BERTH_INVALID, &err, "no value 2");
  assert_int_equal(slot.offset, BERTH_OFFSET_NONE);
  test_expect_error(berth_plan_slot(plan, BERTH_VALUE_NONE, &slot, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_slot(NULL, 0, &slot, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_slot(plan, 0, NULL, &err), BERTH_INVALID, &err, NULL);
  assert_int_equal(berth_plan_step_node(plan, 0), 0);
  assert_int_equal(berth_plan_step_node(plan, 1), UINT32_MAX);
  test_expect_error(berth_plan_scratch(plan, 1, &slot, &err), BERTH_INVALID, &err, "no step 1");
  assert_int_equal(slot.offset, BERTH_OFFSET_NONE);
  test_expect_error(berth_plan_scratch(NULL, 0, &slot, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_scratch(plan, 0, NULL, &err), BERTH_INVALID, &err, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_kin_of_reshape),
      PLAN_TEST(test_cast_to_another_type_is_no_view),
      PLAN_TEST(test_slices_of_the_outermost_axis),
      PLAN_TEST(test_split_of_the_outermost_axis),
      PLAN_TEST(test_element_size_counts),
      PLAN_TEST(test_inner_slice_is_a_view_for_readers_of_strides),
      PLAN_TEST(test_inner_slice_is_copied_for_one_other_reader),
      PLAN_TEST(test_strided_output_is_copied),
      PLAN_TEST(test_transpose_and_expand),
      PLAN_TEST(test_reshape_of_a_strided_view),
      PLAN_TEST(test_inner_split),
      PLAN_TEST(test_backward_slice_is_copied),
      PLAN_TEST(test_a_view_keeps_its_root_alive),
      PLAN_TEST(test_a_view_that_is_an_output_keeps_its_root_to_the_end),
      PLAN_TEST(test_views_of_what_nodes_do_not_make),
      PLAN_TEST(test_nothing_at_all),
      PLAN_TEST(test_queries_that_are_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
