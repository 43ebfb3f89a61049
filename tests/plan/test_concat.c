/* Parts of a concat are born inside it where they lie one after the other and nothing is lost by it. */
#include <stdio.h>

#include "plan/planning.h"

/* matmul writes no operand, so that every value here is a root until the concat takes it. */
#define SOURCES "input %in : f32[8, 8]\nparam %w : f32[8, 8]\n"
#define PARTS SOURCES "%a = matmul(%in, %w)\n%b = matmul(%w, %in)\n"
#define BYTES 256u

static void assert_alike(fixture *f) {
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(f->graph, &desc);
  desc = desc_with(BERTH_PLAN_INPUTS_DIE);
  desc.order = BERTH_ORDER_MEMORY;
  assert_runs_alike(f->graph, &desc);
}

static void assert_born_inside(const berth_plan *plan, const char *part, const char *whole, uint64_t offset) {
  berth_slot slot = slot_of(plan, part);
  if (slot.root != find(plan, whole)) fail_msg("'%s' does not lie in '%s'", part, whole);
  assert_false(slot.is_view);
  assert_int_equal(slot.root_offset, offset);
  assert_int_equal(slot.offset, slot_of(plan, whole).offset + offset);
  assert_true(place_of(plan, part)->born_inside);
}

static void test_parts_are_born_inside(void **state) {
  const berth_plan *plan = plan_text(*state, PARTS "%c = concat(%a, %b) {axis = 0}\noutput \"c\" = %c", 0);
  assert_born_inside(plan, "a", "c", 0);
  assert_born_inside(plan, "b", "c", BYTES);
  assert_int_equal(buffer_of(plan, "c")->birth, 0);
  assert_int_equal(activations_size(plan), 3 * BYTES); /* with the input */
  assert_alike(*state);
  plan = plan_again(*state, BERTH_PLAN_NO_CONCAT);
  assert_owner(plan, "a");
  assert_owner(plan, "b");
  assert_int_equal(activations_size(plan), 5 * BYTES);
  plan = plan_again(*state, BERTH_PLAN_NO_REUSE);
  assert_owner(plan, "a");
}

static void test_unit_axes_before_the_joined_one(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     PARTS
                                     "%p = unsqueeze(%a) {axes = [0]}\n%q = unsqueeze(%b) {axes = [0]}\n"
                                     "%c = concat(%p, %q) {axis = -2}\noutput \"c\" = %c",
                                     0);
  assert_int_equal(slot_of(plan, "c").root, find(plan, "c"));
  assert_born_inside(plan, "a", "c", 0);
  assert_true(slot_of(plan, "p").is_view); /* a part that is a view moves with its root */
  assert_int_equal(slot_of(plan, "p").root, find(plan, "c"));
  assert_int_equal(slot_of(plan, "q").root_offset, BYTES);
  assert_alike(*state);
}

static void test_inner_axis_is_copied(void **state) {
  const berth_plan *plan = plan_text(*state, PARTS "%c = concat(%a, %b) {axis = 1}\noutput \"c\" = %c", 0);
  assert_owner(plan, "a");
  assert_owner(plan, "b");
  assert_alike(*state);
}

static void test_nested(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     PARTS
                                     "%c = concat(%a, %b) {axis = 0}\n%d = matmul(%in, %in)\n"
                                     "%e = concat(%d, %c) {axis = 0}\noutput \"e\" = %e",
                                     0);
  assert_born_inside(plan, "d", "e", 0);
  assert_born_inside(plan, "c", "e", BYTES);
  assert_born_inside(plan, "a", "e", BYTES);
  assert_born_inside(plan, "b", "e", 2 * BYTES);
  assert_alike(*state);
}

/* Every layer reads all that came before and adds to it. */
static void test_densenet(void **state) {
  char text[4096];
  size_t at = (size_t)sprintf(text, "%s", "input %in : f32[4, 8]\n%c0 = exp(%in)\n");
  for (unsigned i = 1; i <= 6; i++)
    at += (size_t)sprintf(text + at,
                          "%%r%u = reduce_sum(%%c%u) {axes = [0]}\n%%x%u = exp(%%r%u)\n"
                          "%%c%u = concat(%%c%u, %%x%u) {axis = 0}\n",
                          i, i - 1, i, i, i, i - 1, i);
  sprintf(text + at, "output \"y\" = %%c6");
  const berth_plan *plan = plan_text(*state, text, 0);
  berth_value whole = find(plan, "c6");
  for (unsigned i = 0; i <= 6; i++) {
    char name[8];
    sprintf(name, "c%u", i);
    assert_int_equal(slot_of(plan, name).root, whole);
    assert_int_equal(slot_of(plan, name).root_offset, 0);
    sprintf(name, "x%u", i);
    if (i != 0) assert_int_equal(slot_of(plan, name).root, whole);
    if (i != 0) assert_int_equal(slot_of(plan, name).root_offset, 128 + (i - 1) * 32);
  }
  assert_int_equal(activations_size(plan), 128 + 320); /* the input, and one result that grows */
  assert_alike(*state);
}

/* The other way to write it: each concat lists all parts. They can lie in one of them only. */
static void test_parts_of_several_concats(void **state) {
  plan_text(*state,
            PARTS
            "%c = concat(%a, %b) {axis = 0}\n%d = matmul(%c, %w)\n%e = concat(%a, %b, %d) {axis = 0}\n"
            "%f = matmul(%e, %w)\n%g = concat(%a, %b, %d, %f) {axis = 0}\noutput \"g\" = %g",
            0);
  assert_alike(*state);
  plan_text(*state, /* in another order too */
            PARTS "%c = concat(%a, %b) {axis = 0}\n%e = concat(%b, %a) {axis = 0}\n%g = sub(%c, %e)\noutput \"g\" = %g",
            0);
  assert_alike(*state);
}

static void test_a_part_that_is_read_later(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     PARTS
                                     "%c = concat(%a, %b) {axis = 0}\n%d = matmul(%c, %w)\n%e = matmul(%a, %w)\n"
                                     "output \"d\" = %d\noutput \"e\" = %e",
                                     0);
  assert_alike(*state);
  berth_slot part = slot_of(plan, "a");
  assert_int_equal(part.death, 5);
  assert_true(buffer_of(plan, "a")->death >= 5);
}

/* The concat's result is overwritten while a part is still to be read: that part must lie elsewhere. */
static void test_a_whole_that_is_written_over(void **state) {
  plan_text(*state,
            PARTS
            "%c = concat(%a, %b) {axis = 0}\n%d = relu(%c)\n%e = add(%a, %w)\n"
            "output \"d\" = %d\noutput \"e\" = %e",
            0);
  assert_alike(*state);
  plan_text(*state,
            PARTS
            "%c = concat(%a, %b) {axis = 0}\n%e = add(%a, %w)\n%d = relu(%c)\n"
            "output \"d\" = %d\noutput \"e\" = %e",
            0);
  assert_alike(*state);
}

/* A part dies after the concat and its last reader would write in place: over the result. */
static void test_a_part_that_is_written_over(void **state) {
  plan_text(*state,
            PARTS
            "%c = concat(%a, %b) {axis = 0}\n%e = neg(%a)\n%d = matmul(%c, %w)\n"
            "output \"d\" = %d\noutput \"e\" = %e",
            0);
  assert_alike(*state);
  plan_text(*state, /* or before the concat: then it is the result that is a part */
            PARTS "%p = neg(%a)\n%q = relu(%p)\n%c = concat(%q, %b) {axis = 0}\n%d = matmul(%c, %w)\noutput \"d\" = %d",
            0);
  assert_alike(*state);
}

static void test_duplicate_operands(void **state) {
  const berth_plan *plan = plan_text(*state, PARTS "%c = concat(%a, %b, %a, %a) {axis = 0}\noutput \"c\" = %c", 0);
  assert_born_inside(plan, "b", "c", BYTES);
  assert_alike(*state);
  plan_text(*state,
            SOURCES
            "%a = matmul(%in, %w)\n%c = concat(%a, %a) {axis = 0}\n%d = concat(%c, %c) {axis = 0}\n"
            "output \"d\" = %d\noutput \"a\" = %a",
            0);
  assert_alike(*state);
}

static void test_parts_that_are_views(void **state) {
  plan_text(*state, /* swapped halves: both are views of one root */
            PARTS "%p, %q = split(%a) {parts = [4, 4]}\n%c = concat(%q, %p) {axis = 0}\noutput \"c\" = %c", 0);
  assert_alike(*state);
  plan_text(*state, /* the two halves in order are the root itself */
            PARTS "%p, %q = split(%a) {parts = [4, 4]}\n%c = concat(%p, %q) {axis = 0}\noutput \"c\" = %c", 0);
  assert_alike(*state);
  plan_text(*state, PARTS "%t = transpose(%a)\n%c = concat(%t, %a) {axis = 0}\noutput \"c\" = %c", 0);
  assert_alike(*state);
  plan_text(*state,
            PARTS
            "%s = narrow(%a) {axes = [1], starts = [2], ends = [5]}\n%u = narrow(%b) {axes = [1], starts = [0], "
            "ends = [3]}\n%c = concat(%s, %u) {axis = 0}\noutput \"c\" = %c",
            0);
  assert_alike(*state);
}

static void test_parts_that_nodes_do_not_make(void **state) {
  const berth_plan *plan =
      plan_text(*state, PARTS "%c = concat(%in, %a, %w) {axis = 0}\noutput \"c\" = %c", BERTH_PLAN_INPUTS_DIE);
  assert_born_inside(plan, "in", "c", 0); /* the caller does */
  assert_owner(plan, "w");
  assert_born_inside(plan, "a", "c", BYTES);
  assert_alike(*state);
}

/* A cache of keys, [heads, time, 4], and the keys of a new step: the longer cache is an output. */
#define CACHE "input %past : f32[3, 5, 4]\ninput %x : f32[3, 1, 4]\n%new = exp(%x)\n"
#define JOINED CACHE "%present = concat(%past, %new) {axis = 1}\noutput \"present\" = %present\n"

static void assert_lies_with_gaps(const berth_plan *plan, const char *part, const char *whole, uint64_t offset) {
  assert_born_inside(plan, part, whole, offset);
  const berth__place *in = place_of(plan, part), *out = place_of(plan, whole);
  for (uint32_t k = 0; k < 3; k++) assert_int_equal(in->stride[k], out->stride[k]);
}

static void test_an_input_with_gaps(void **state) {
  const berth_plan *plan = plan_text(*state, JOINED, BERTH_PLAN_INPUTS_DIE);
  assert_lies_with_gaps(plan, "past", "present", 0);
  assert_owner(plan, "present");
  assert_int_equal(buffer_of(plan, "present")->birth, 0);
  assert_alike(*state);
  plan = plan_again(*state, 0); /* one that stays may be filled where it lies */
  assert_owner(plan, "past");
  plan = plan_again(*state, BERTH_PLAN_INPUTS_DIE | BERTH_PLAN_NO_STRIDED);
  assert_owner(plan, "past");
  plan = plan_again(*state, BERTH_PLAN_INPUTS_DIE | BERTH_PLAN_NO_CONCAT);
  assert_owner(plan, "past");
  plan = plan_again(*state, BERTH_PLAN_INPUTS_DIE | BERTH_PLAN_INPUTS_OUTSIDE);
  assert_int_equal(slot_of(plan, "past").offset, BERTH_OFFSET_NONE);
  assert_alike(*state);
}

static void test_inputs_with_gaps_in_any_place(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %a : f32[3, 2]\ninput %b : f32[3, 1]\ninput %c : f32[3, 5]\n"
                                     "%y = concat(%a, %b, %c, %b) {axis = -1}\noutput \"y\" = %y",
                                     BERTH_PLAN_INPUTS_DIE);
  assert_born_inside(plan, "a", "y", 0);
  assert_born_inside(plan, "b", "y", 8);
  assert_born_inside(plan, "c", "y", 12);
  assert_alike(*state);
}

/* What reads it takes no strides, shows it in another way, or gives it out. */
static void test_inputs_that_must_be_whole(void **state) {
  static const char *const readers[] = {
      "%y, %i = top_k(%past) {k = 2}\noutput \"y\" = %y",
      "%v = reshape(%past) {shape = [15, 4]}\n%y = exp(%v)\noutput \"y\" = %y",
      "output \"same\" = %past",
  };
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
    char text[512];
    (void)snprintf(text, sizeof text, "%s%s", JOINED, readers[i]);
    assert_owner(plan_text(*state, text, BERTH_PLAN_INPUTS_DIE), "past");
    assert_alike(*state);
  }
}

/* A reader that takes strides sees it where it lies, before the concat and after it. */
static void test_other_readers_of_an_input_with_gaps(void **state) {
  const berth_plan *plan =
      plan_text(*state,
                CACHE
                "%y = exp(%past)\n%present = concat(%past, %new) {axis = 1}\n%z = reduce_sum(%past) {axes = [2]}\n"
                "output \"present\" = %present\noutput \"y\" = %y\noutput \"z\" = %z",
                BERTH_PLAN_INPUTS_DIE);
  assert_lies_with_gaps(plan, "past", "present", 0);
  assert_alike(*state);
}

/* Behind it the concat is written over: an input that stays does not lie there, not even without gaps. */
static void test_an_input_that_stays_is_not_written_over(void **state) {
  const char *text = SOURCES "%a = matmul(%in, %w)\n%c = concat(%in, %a) {axis = 0}\n%y = exp(%c)\noutput \"y\" = %y";
  assert_owner(plan_text(*state, text, 0), "in");
  assert_alike(*state);
  assert_born_inside(plan_text(*state, text, BERTH_PLAN_INPUTS_DIE), "in", "c", 0);
  assert_alike(*state);
  text = SOURCES "%a = matmul(%in, %w)\n%c = concat(%in, %a) {axis = 0}\noutput \"c\" = %c";
  assert_born_inside(plan_text(*state, text, 0), "in", "c", 0);
  assert_alike(*state);
}

static void test_a_part_that_is_an_output(void **state) {
  plan_text(*state,
            PARTS "%c = concat(%a, %b) {axis = 0}\n%d = relu(%c)\n%e = exp(%d)\noutput \"a\" = %a\noutput \"e\" = %e",
            0);
  assert_alike(*state);
}

/* The bytes that both share are an output's, and are treated as such. */
static void test_a_part_that_is_an_output_and_the_whole_is_not(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.guard = 64;
  plan_text(f, PARTS "%c = concat(%a, %b) {axis = 0}\n%d = matmul(%c, %w)\noutput \"a\" = %a\noutput \"d\" = %d", 0);
  berth_plan_destroy(f->plan);
  f->plan = NULL;
  f->plan = make_plan(f->graph, &desc);
  assert_born_inside(f->plan, "a", "c", 0);
  assert_int_equal(buffer_of(f->plan, "c")->kind, BERTH__BUFFER_OUTPUT);
  assert_int_equal(buffer_of(f->plan, "c")->guard, 64);
  assert_int_equal(buffer_of(f->plan, "c")->death, 4);
  assert_alike(f);
}

static void test_empty_and_single_parts(void **state) {
  plan_text(*state,
            PARTS
            "%n = narrow(%a) {starts = [3], ends = [3]}\n%c = concat(%n, %a, %n, %b) {axis = 0}\n"
            "%s = concat(%c) {axis = 0}\noutput \"s\" = %s",
            0);
  assert_alike(*state);
}

/* A small part that is made long before the rest: the whole would be taken all that time. */
static void test_not_when_it_would_raise_the_load(void **state) {
  static const char text[] =
      "input %in : f32[1, 64]\nparam %w : f32[64, 4096]\nparam %v : f32[4096, 64]\n"
      "%small = matmul(%in, %v2)\n%v2 = reshape(%vs) {shape = [64, 64]}\n%vs = narrow(%v) {starts = [0], ends = [64]}\n"
      "%big = matmul(%in, %w)\n%back = matmul(%big, %v)\n%big2 = matmul(%back, %w)\n"
      "%last = matmul(%big2, %v)\n%l = expand(%last) {shape = [63, 64]}\n%m = add(%l, %last)\n"
      "%c = concat(%small, %m) {axis = 0}\noutput \"c\" = %c";
  const berth_plan *plan = plan_text(*state, text, 0);
  assert_owner(plan, "small"); /* 256 bytes early against 16 KiB early */
  uint64_t with = activations_size(plan);
  plan = plan_again(*state, BERTH_PLAN_NO_CONCAT);
  assert_true(with <= activations_size(plan));
  assert_alike(*state);
}

/* The first part is made long before the others, and a wide value comes in between: only the others are in the whole.
 */
static void test_the_last_parts_alone(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %in : f32[16, 16]\nparam %u : f32[16, 64]\nparam %d : f32[64, 16]\n"
                                     "param %e : f32[16, 16]\n%m = matmul(%in, %e)\n%a = reduce_sum(%m) {axes = [0]}\n"
                                     "%p = matmul(%in, %u)\n%q = gelu(%p)\n%s = add(%p, %q)\n%r = matmul(%s, %d)\n"
                                     "%b = matmul(%r, %e)\n%f = concat(%a, %b) {axis = 0}\noutput \"f\" = %f",
                                     BERTH_PLAN_INPUTS_DIE);
  assert_owner(plan, "a");
  assert_born_inside(plan, "b", "f", 64);
  assert_int_equal(activations_size(plan), 64 + 8192); /* %p and %q, with %a */
  assert_alike(*state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_parts_are_born_inside),
      PLAN_TEST(test_unit_axes_before_the_joined_one),
      PLAN_TEST(test_inner_axis_is_copied),
      PLAN_TEST(test_nested),
      PLAN_TEST(test_densenet),
      PLAN_TEST(test_parts_of_several_concats),
      PLAN_TEST(test_a_part_that_is_read_later),
      PLAN_TEST(test_a_whole_that_is_written_over),
      PLAN_TEST(test_a_part_that_is_written_over),
      PLAN_TEST(test_duplicate_operands),
      PLAN_TEST(test_parts_that_are_views),
      PLAN_TEST(test_parts_that_nodes_do_not_make),
      PLAN_TEST(test_an_input_with_gaps),
      PLAN_TEST(test_inputs_with_gaps_in_any_place),
      PLAN_TEST(test_inputs_that_must_be_whole),
      PLAN_TEST(test_other_readers_of_an_input_with_gaps),
      PLAN_TEST(test_an_input_that_stays_is_not_written_over),
      PLAN_TEST(test_a_part_that_is_an_output),
      PLAN_TEST(test_a_part_that_is_an_output_and_the_whole_is_not),
      PLAN_TEST(test_empty_and_single_parts),
      PLAN_TEST(test_not_when_it_would_raise_the_load),
      PLAN_TEST(test_the_last_parts_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
