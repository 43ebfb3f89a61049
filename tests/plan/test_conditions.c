/* Conditions: which steps a plan leaves out, what that does to bytes, and that the checker sees when it is wrong. */
#include <stdio.h>

#include "plan/planning.h"
#include "plan/schedule.h"

static uint32_t condition_of(const berth_plan *plan, const char *name) {
  uint32_t node = plan->graph->values[find(plan, name)].node;
  for (uint32_t step = 0; step < plan->n_steps; step++)
    if (plan->order[step] == node) return plan->conditions.of_step[step];
  fail_msg("'%s' is made by no step", name);
  return 0;
}

/* "c" or "!c", the innermost first; "" where a step always runs. */
static void assert_condition(const berth_plan *plan, const char *name, const char *expected) {
  char text[256] = "";
  for (uint32_t g = condition_of(plan, name); g != BERTH__NO_CONDITION; g = plan->conditions.items[g].parent) {
    const berth__condition *condition = &plan->conditions.items[g];
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s%s", used != 0 ? " " : "", condition->sense ? "" : "!",
             plan->graph->values[condition->condition].name);
  }
  assert_string_equal(text, expected);
}

#define INPUTS "input %c : bool[]\ninput %d : bool[1]\ninput %x : f32[64]\n"

static void what_one_side_needs_is_guarded(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%shared = exp(%x)\n%a = neg(%shared)\n%b = tanh(%a)\n%e = sin(%shared)\n"
                                     "%both = cos(%x)\n%f = add(%e, %both)\n%g = add(%b, %both)\n"
                                     "%y = choose(%c, %g, %f)\noutput \"y\" = %y",
                                     0);
  assert_condition(plan, "a", "c");
  assert_condition(plan, "b", "c");
  assert_condition(plan, "g", "c");
  assert_condition(plan, "e", "!c");
  assert_condition(plan, "f", "!c");
  assert_condition(plan, "shared", "");
  assert_condition(plan, "both", "");
  assert_condition(plan, "y", "");
}

static void choices_inside_choices(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%a = neg(%x)\n%b = exp(%x)\n%n = not(%d)\n%i = choose(%n, %a, %b)\n"
                                     "%j = tanh(%i)\n%k = sin(%x)\n%y = choose(%c, %j, %k)\noutput \"y\" = %y",
                                     0);
  assert_condition(plan, "n", "c"); /* not asked where it is not needed */
  assert_condition(plan, "i", "c");
  assert_condition(plan, "j", "c");
  assert_condition(plan, "k", "!c");
  /* Made before their own condition, which is too late for that one. */
  assert_condition(plan, "a", "c");
  plan = plan_text(*state,
                   INPUTS
                   "%n = not(%d)\n%a = neg(%x)\n%b = exp(%x)\n%i = choose(%n, %a, %b)\n"
                   "%j = tanh(%i)\n%k = sin(%x)\n%y = choose(%c, %j, %k)\noutput \"y\" = %y",
                   0);
  assert_condition(plan, "a", "n c");
  assert_condition(plan, "b", "!n c");
}

static void conditions_that_come_late_guard_nothing(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%a = neg(%x)\n%n = not(%c)\n%b = exp(%x)\n%y = choose(%n, %a, %b)\n"
                                     "output \"y\" = %y",
                                     0);
  assert_condition(plan, "a", "");
  assert_condition(plan, "b", "!n");
}

/* An order for memory does not put the branches before what decides between them. */
static void orders_keep_conditions_first(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = desc_with(0);
  berth_plan *plan;
  berth_error err;
  desc.order = BERTH_ORDER_MEMORY;
  f->graph = parse_graph(f->ctx,
                         "input %x : f32[64]\nconst %zero : f32[] = [0]\n"
                         "%sum = reduce_sum(%x) {axes = [0], keepdims = 0}\n%c = gt(%sum, %zero)\n"
                         "%big = concat(%x, %x, %x) {axis = 0}\n%e = exp(%big)\n"
                         "%a = narrow(%e) {axes = [0], starts = [3], ends = [67]}\n%b = sin(%x)\n%d = cos(%b)\n"
                         "%y = choose(%c, %a, %d)\noutput \"y\" = %y");
  for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) {
    uint32_t order[16];
    berth__conditions conditions;
    TEST_OK(berth__schedule(f->graph, (berth__schedule_rule)rule, order, &err));
    TEST_OK(berth__conditions_create(f->graph, order, &conditions, &err));
    uint32_t guarded = 0;
    for (uint32_t step = 0; step < f->graph->n_nodes; step++)
      guarded += conditions.of_step[step] != BERTH__NO_CONDITION;
    assert_int_equal(guarded, 5);
    berth__conditions_free(f->ctx, &conditions);
  }
  TEST_OK(berth_plan_create(f->graph, &desc, &plan, &err));
  assert_condition(plan, "e", "c");
  assert_condition(plan, "d", "!c");
  berth_plan_destroy(plan);
}

static void outputs_are_always_made(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%a = neg(%x)\n%b = exp(%x)\n%y = choose(%c, %a, %b)\n"
                                     "output \"y\" = %y\noutput \"a\" = %a",
                                     0);
  assert_condition(plan, "a", "");
  assert_condition(plan, "b", "!c");
  plan = plan_text(*state, INPUTS "%a = neg(%x)\n%y = choose(%c, %a, %a)\noutput \"y\" = %y", 0);
  assert_condition(plan, "a", "");
}

static void a_condition_lives_as_long_as_it_guards(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%n = not(%c)\n%a = neg(%x)\n%b = exp(%x)\n%f = tanh(%b)\n"
                                     "%y = choose(%n, %a, %f)\noutput \"y\" = %y",
                                     0);
  assert_true(slot_of(plan, "n").death >= plan->n_steps);
}

/* Both sides of a choice in one place: nothing is copied, and the second side takes no bytes. */
static void sides_share_bytes(void **state) {
  static const char text[] = INPUTS
      "%n = not(%c)\n%a = neg(%x)\n%b = exp(%x)\n%y = choose(%n, %a, %b)\n"
      "%z = tanh(%y)\noutput \"z\" = %z";
  const berth_plan *plan = plan_text(*state, text, 0);
  assert_int_equal(slot_of(plan, "a").offset, slot_of(plan, "b").offset);
  assert_int_equal(slot_of(plan, "a").offset, slot_of(plan, "y").offset);
  assert_true(place_of(plan, "b")->born_inside);
  plan = plan_text(*state, text, BERTH_PLAN_NO_INPLACE);
  assert_false(share_bytes(plan, "a", "b"));
  plan = plan_text(*state, text, BERTH_PLAN_NO_REUSE);
  assert_false(share_bytes(plan, "a", "b"));
}

static void sides_that_are_both_made_do_not_share(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%a = neg(%x)\n%b = exp(%x)\n%n = not(%c)\n%y = choose(%n, %a, %b)\n"
                                     "output \"y\" = %y",
                                     0); /* the condition comes after both */
  assert_condition(plan, "a", "");
  assert_false(share_bytes(plan, "a", "b"));
}

/* A side of a choice inside one by the same condition is never made: it shares nothing. */
static void a_condition_inside_itself(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "%a = exp(%x)\n%b = neg(%a)\n%e = tanh(%b)\n%i = choose(%c, %a, %e)\n"
                                     "%f = sin(%i)\n%g = cos(%x)\n%y = choose(%c, %f, %g)\noutput \"y\" = %y",
                                     0);
  assert_condition(plan, "b", "!c c");
  assert_false(share_bytes(plan, "a", "b"));
}

/* ---- Runs ---- */

static void count_step(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  (void)step, (void)node, (void)out, (void)n_out, (void)ms;
  ++*(uint32_t *)user;
}

static uint32_t kernels_run(berth_session *session, uint8_t c, uint8_t d, float *y) {
  berth_error err;
  float x[64];
  uint32_t count = 0;
  for (int i = 0; i < 64; i++) x[i] = (float)i / 64;
  TEST_OK(berth_session_write(session, "c", &c, 1, &err));
  TEST_OK(berth_session_write(session, "d", &d, 1, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  berth_session_observe(session, count_step, &count);
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, 64 * sizeof *y, &err));
  return count;
}

static void one_side_runs(void **state) {
  fixture *f = *state;
  berth_graph *graph = parse_graph(f->ctx, INPUTS
                                   "%n = not(%d)\n%a = neg(%x)\n%b = abs(%a)\n%i = choose(%n, %a, %b)\n"
                                   "%j = neg(%i)\n%k = add(%x, %x)\n%l = add(%k, %k)\n%m = neg(%l)\n"
                                   "%y = choose(%c, %j, %m)\noutput \"y\" = %y");
  for (int checked = 0; checked <= 1; checked++) {
    berth_session_desc desc = BERTH_SESSION_DESC_INIT;
    berth_session *session;
    berth_error err;
    float y[64];
    desc.flags = BERTH_SESSION_REFERENCE | (checked ? (uint32_t)BERTH_SESSION_CHECKED : 0u); /* nothing is fused */
    TEST_OK(berth_session_create(graph, &desc, &session, &err));
    for (int times = 0; times < 2; times++) {                 /* not only with fresh bytes */
      assert_int_equal(kernels_run(session, 1, 1, y), 4 + 1); /* n a b j, the inner choice */
      assert_true(y[32] == -0.5f);
      assert_int_equal(kernels_run(session, 1, 0, y), 3 + 1); /* n a j, the inner choice */
      assert_true(y[32] == 0.5f);
      assert_int_equal(kernels_run(session, 0, 0, y), 3); /* k l m: the sides lie where the result does */
      assert_true(y[32] == -2);
    }
    berth_session_destroy(session);
  }
  berth_graph_destroy(graph);
}

/* ---- The checker ---- */

static void expect_rejected(const berth_plan *plan, const char *part) {
  berth_error err;
  test_expect_error(berth_plan_check(plan, &err), BERTH_INTERNAL, &err, part);
}

static berth_plan *shared_plan(void **state) {
  fixture *f = *state;
  plan_text(f,
            INPUTS
            "%n = not(%c)\n%a = neg(%x)\n%b = exp(%x)\n%y = choose(%n, %a, %b)\n%z = tanh(%y)\n"
            "output \"z\" = %z",
            0);
  return f->plan;
}

static uint32_t *step_guard(berth_plan *plan, const char *name) {
  uint32_t node = plan->graph->values[find(plan, name)].node, step = 0;
  while (plan->order[step] != node) step++;
  return &plan->conditions.of_step[step];
}

static void the_checker_finds_what_is_wrong(void **state) {
  berth_plan *plan = shared_plan(state);
  *step_guard(plan, "b") = *step_guard(plan, "a"); /* left out when it is needed */
  expect_rejected(plan, "which may have been left out");
  plan = shared_plan(state);
  *step_guard(plan, "y") = *step_guard(plan, "a");
  expect_rejected(plan, "which may have been left out");
  plan = shared_plan(state);
  *step_guard(plan, "z") = *step_guard(plan, "a");
  expect_rejected(plan, "output 'z' may be left out");
  plan = shared_plan(state);
  *step_guard(plan, "b") = BERTH__NO_CONDITION; /* both are made, in the same bytes */
  expect_rejected(plan, "destroys 'a', which is still needed");
  plan = shared_plan(state);
  plan->places[find(plan, "n")].death = 2; /* the condition is gone too early */
  expect_rejected(plan, "'n' outside its lifetime");
  plan = shared_plan(state);
  plan->conditions.items[1].condition = find(plan, "x");
  expect_rejected(plan, "condition 1 is not one");
  plan = shared_plan(state);
  *step_guard(plan, "b") = plan->conditions.count;
  expect_rejected(plan, "has no condition");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(what_one_side_needs_is_guarded),
      PLAN_TEST(choices_inside_choices),
      PLAN_TEST(conditions_that_come_late_guard_nothing),
      PLAN_TEST(orders_keep_conditions_first),
      PLAN_TEST(outputs_are_always_made),
      PLAN_TEST(a_condition_lives_as_long_as_it_guards),
      PLAN_TEST(sides_share_bytes),
      PLAN_TEST(sides_that_are_both_made_do_not_share),
      PLAN_TEST(a_condition_inside_itself),
      PLAN_TEST(one_side_runs),
      PLAN_TEST(the_checker_finds_what_is_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
