/* Values whose extents are upper bounds: their bytes are planned for the bounds, and nothing that follows from extents
 * is decided before a run. */
#include "plan/planning.h"

#define X "input %x : f32[6, 4]\n%nz = non_zero(%x)\n%at = transpose(%nz) {perm = [1, 0]}\n%v = gather_nd(%x, %at)\n"

static void slots_are_as_large_as_the_bounds(void **state) {
  const berth_plan *plan = plan_text(*state, X "output \"v\" = %v\noutput \"at\" = %at", 0);
  assert_int_equal(slot_of(plan, "nz").size, 2 * 24 * 8);
  assert_int_equal(slot_of(plan, "v").size, 24 * 4);
  assert_int_equal(slot_of(plan, "at").size, 24 * 2 * 8);
}

/* A transpose and a slice are views of x, but copies of what may turn out smaller: their strides and positions would
 * change. All elements in their order stay where they are. */
static void only_all_elements_in_their_order_are_a_view(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "%r = reshape(%v) {shape = [-1, 1]}\n%n = narrow(%at) {axes = [1], starts = [0], "
                                     "ends = [1]}\n%f = reshape(%x) {shape = [-1]}\n"
                                     "%a = exp(%r)\n%b = neg(%n)\n%c = exp(%f)\n"
                                     "output \"a\" = %a\noutput \"b\" = %b\noutput \"c\" = %c",
                                     0);
  assert_owner(plan, "at");
  assert_view(plan, "r", "v", 0);
  assert_owner(plan, "n");
  assert_view(plan, "f", "x", 0);
}

static void parts_of_a_concat_are_copied(void **state) {
  const berth_plan *plan =
      plan_text(*state, X "%a = exp(%v)\n%b = neg(%v)\n%c = concat(%a, %b) {axis = 0}\noutput \"c\" = %c", 0);
  assert_false(place_of(plan, "a")->born_inside);
  assert_false(place_of(plan, "b")->born_inside);
  assert_int_equal(slot_of(plan, "c").size, 48 * 4);
}

/* Beside empty ones, a part begins where the result begins. */
static void a_part_beside_empty_ones_is_made_in_its_concat(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     X
                                     "input %e : f32[0]\n%a = exp(%v)\n%c = concat(%e, %a, %e) {axis = 0}\n"
                                     "%d = neg(%c)\noutput \"c\" = %c\noutput \"d\" = %d",
                                     0);
  assert_int_equal(place_of(plan, "a")->root, place_of(plan, "c")->root);
  assert_int_equal(slot_of(plan, "c").size, 24 * 4);
}

/* One operand that alone decides the shape may be written over; of two, either may turn out to be broadcast. */
static void in_place_where_the_shape_follows_from_the_operand(void **state) {
  const berth_plan *plan =
      plan_text(*state, X "const %two : f32[1] = [2]\n%a = exp(%v)\n%b = mul(%a, %two)\noutput \"b\" = %b", 0);
  assert_in_place(plan, "a", "v");
  assert_in_place(plan, "b", "v");
  plan = plan_text(*state,
                   X
                   "input %y : f32[6, 4]\n%mz = non_zero(%y)\n%bt = transpose(%mz) {perm = [1, 0]}\n"
                   "%w = gather_nd(%y, %bt)\n%s = add(%v, %w)\noutput \"s\" = %s",
                   0);
  assert_owner(plan, "s");
  plan = plan_text(*state, X "%s = mul(%v, %v)\noutput \"s\" = %s", 0);
  assert_in_place(plan, "s", "v");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(slots_are_as_large_as_the_bounds),
      PLAN_TEST(only_all_elements_in_their_order_are_a_view),
      PLAN_TEST(parts_of_a_concat_are_copied),
      PLAN_TEST(a_part_beside_empty_ones_is_made_in_its_concat),
      PLAN_TEST(in_place_where_the_shape_follows_from_the_operand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
