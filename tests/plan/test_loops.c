/* Loops: where their values lie, that they run as often as they should, and that the checker sees what is wrong. */
#include <stdio.h>

#include "plan/planning.h"

/* acc = acc * 2 + x, as often as the trips say and while the sum stays below a limit. */
#define INPUTS "input %trips : i64[]\ninput %limit : f32[]\ninput %x : f32[4]\n"
#define GROW                                                                       \
  INPUTS                                                                           \
  "const %yes : bool[] = [1]\nconst %zero : f32[4] = [0, 0, 0, 0]\n"               \
  "%round, %starts, %acc = loop_begin(%trips, %yes, %zero)\n"                      \
  "%twice = add(%acc, %acc)\n%next = add(%twice, %x)\n"                            \
  "%sum = reduce_sum(%next) {axes = [0], keepdims = 0}\n%go = lt(%sum, %limit)\n"  \
  "%rounds, %again, %last = loop_end(%round, %starts, %trips, %go, %acc, %next)\n" \
  "output \"last\" = %last\noutput \"rounds\" = %rounds"

typedef struct run {
  berth_session *session;
  berth_graph *graph;
} run;

static run start_run(fixture *f, const char *text, uint32_t plan_flags, uint32_t flags) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = desc_with(plan_flags);
  berth_error err;
  run r = {.graph = parse_graph(f->ctx, text)};
  TEST_OK(berth_graph_verify(r.graph, &err));
  desc.plan = &plan;
  desc.flags = flags;
  TEST_OK(berth_session_create(r.graph, &desc, &r.session, &err));
  return r;
}

static void end_run(run *r) {
  berth_session_destroy(r->session);
  berth_graph_destroy(r->graph);
}

static void give(const run *r, const char *name, const void *data, size_t size) {
  berth_error err;
  TEST_OK(berth_session_write(r->session, name, data, size, &err));
}

static int64_t grow(const run *r, int64_t trips, float limit, float last[4]) {
  const float x[4] = {1, 2, 3, 4};
  berth_error err;
  int64_t rounds;
  give(r, "trips", &trips, sizeof trips);
  give(r, "limit", &limit, sizeof limit);
  give(r, "x", x, sizeof x);
  TEST_OK(berth_session_run(r->session, &err));
  TEST_OK(berth_session_read(r->session, "last", last, 4 * sizeof *last, &err));
  TEST_OK(berth_session_read(r->session, "rounds", &rounds, sizeof rounds, &err));
  return rounds;
}

static void rounds_are_counted_at_run_time(void **state) {
  static const uint32_t plans[] = {0, BERTH_PLAN_NO_INPLACE, BERTH_PLAN_NO_REUSE, BERTH_PLAN_NO_PASSES,
                                   BERTH_PLAN_INPUTS_DIE};
  for (size_t i = 0; i < 2 * sizeof plans / sizeof *plans; i++) {
    run r = start_run(*state, GROW, plans[i / 2], i % 2 ? BERTH_SESSION_CHECKED : 0);
    float last[4];
    assert_int_equal(grow(&r, 3, 1e9f, last), 3);
    assert_true(last[0] == 7 && last[3] == 28);
    assert_int_equal(grow(&r, 0, 1e9f, last), 0);
    assert_true(last[0] == 0 && last[3] == 0);
    assert_int_equal(grow(&r, -5, 1e9f, last), 0);
    assert_int_equal(grow(&r, 1, 1e9f, last), 1);
    assert_true(last[0] == 1 && last[3] == 4);
    assert_int_equal(grow(&r, INT64_MAX, 100, last), 4); /* 10, 30, 70, 150 */
    assert_true(last[0] == 15 && last[3] == 60);
    end_run(&r);
  }
}

/* What is carried has one place throughout; here the next value is made right there. */
static void the_next_value_is_made_in_place(void **state) {
  const berth_plan *plan = plan_text(*state, GROW, 0);
  assert_in_place(plan, "last", "acc");
  assert_in_place(plan, "rounds", "round");
  assert_in_place(plan, "twice", "acc");
  assert_in_place(plan, "next", "acc");
  plan = plan_text(*state, GROW, BERTH_PLAN_NO_INPLACE);
  assert_in_place(plan, "last", "acc");
  assert_false(share_bytes(plan, "next", "acc"));
}

/* From outside: alive to the end of the loop, and not written over inside though nothing reads it later. */
static void what_comes_from_outside_stays(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUTS
                                     "const %yes : bool[] = [1]\n%y = exp(%x)\n%first = sin(%x)\n"
                                     "%round, %starts, %acc = loop_begin(%trips, %yes, %first)\n"
                                     "%z = neg(%y)\n%w = add(%z, %acc)\n%next = tanh(%w)\n"
                                     "%rounds, %again, %last = loop_end(%round, %starts, %trips, %yes, %acc, %next)\n"
                                     "%u = cos(%last)\noutput \"u\" = %u",
                                     0);
  uint32_t end = plan->graph->values[find(plan, "last")].node;
  assert_int_equal(slot_of(plan, "y").death, end + 1);
  assert_false(share_bytes(plan, "y", "z"));
  assert_in_place(plan, "acc", "first"); /* that one dies where the loop begins */
}

/* ---- Stacked results ---- */

#define STACK                                                                                       \
  "input %x : f32[2]\nconst %trips : i64[] = [5]\ninput %most : i64[]\nconst %yes : bool[] = [1]\n" \
  "const %one : i64[] = [1]\n"                                                                      \
  "%round, %starts, %acc = loop_begin(%trips, %yes, %x)\n"                                          \
  "%next = add(%acc, %x)\n%done = add(%round, %one)\n%go = lt(%done, %most)\n"                      \
  "%rounds, %again, %last, %all = loop_end(%round, %starts, %trips, %go, %acc, %next, %acc)\n"      \
  "output \"all\" = %all\noutput \"rounds\" = %rounds"

static void rows_are_stacked(void **state) {
  for (uint32_t checked = 0; checked <= 1; checked++) {
    run r = start_run(*state, STACK, 0, checked ? BERTH_SESSION_CHECKED : 0);
    const float x[2] = {1, -1};
    for (int64_t most = 5; most >= 1; most -= 2) { /* the rows of the longer run are gone in the shorter one */
      berth_error err;
      float all[10];
      give(&r, "x", x, sizeof x);
      give(&r, "most", &most, sizeof most);
      TEST_OK(berth_session_run(r.session, &err));
      TEST_OK(berth_session_read(r.session, "all", all, sizeof all, &err));
      for (int i = 0; i < 5; i++) assert_true(all[2 * i] == (i < most ? (float)(i + 1) : 0));
      for (int i = 0; i < 5; i++) assert_true(all[2 * i + 1] == (i < most ? -(float)(i + 1) : 0));
    }
    end_run(&r);
  }
}

static void what_is_stacked_lives_from_the_begin(void **state) {
  const berth_plan *plan = plan_text(*state, STACK, 0);
  const berth__buffer *buffer = buffer_of(plan, "all");
  assert_true(buffer->birth <= plan->graph->values[find(plan, "round")].node);
}

/* ---- What is carried goes elsewhere ---- */

#define SWAP                                                                                          \
  "input %trips : i64[]\ninput %a : f32[3]\ninput %b : f32[3]\nconst %yes : bool[] = [1]\n"           \
  "%round, %starts, %p, %q, %s = loop_begin(%trips, %yes, %a, %b, %a)\n"                              \
  "%sum = add(%p, %q)\n"                                                                              \
  "%rounds, %again, %x, %y, %z = loop_end(%round, %starts, %trips, %yes, %p, %q, %s, %q, %p, %sum)\n" \
  "output \"x\" = %x\noutput \"y\" = %y\noutput \"z\" = %z"

static void values_change_places(void **state) {
  for (uint32_t checked = 0; checked <= 1; checked++) {
    run r = start_run(*state, SWAP, 0, checked ? BERTH_SESSION_CHECKED : 0);
    const float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
    for (int64_t trips = 0; trips < 4; trips++) {
      berth_error err;
      float x[3], y[3], z[3];
      give(&r, "trips", &trips, sizeof trips);
      give(&r, "a", a, sizeof a);
      give(&r, "b", b, sizeof b);
      TEST_OK(berth_session_run(r.session, &err));
      TEST_OK(berth_session_read(r.session, "x", x, sizeof x, &err));
      TEST_OK(berth_session_read(r.session, "y", y, sizeof y, &err));
      TEST_OK(berth_session_read(r.session, "z", z, sizeof z, &err));
      assert_true(x[2] == (trips % 2 ? 30 : 3));
      assert_true(y[2] == (trips % 2 ? 3 : 30));
      assert_true(z[2] == (trips != 0 ? 33 : 3));
    }
    end_run(&r);
  }
  const berth_plan *plan = plan_text(*state, SWAP, 0);
  uint32_t end = plan->graph->values[find(plan, "x")].node;
  assert_int_not_equal(plan->scratch[end], BERTH__NO_BUFFER); /* through which they pass */
}

/* ---- Loops and choices inside each other ---- */

#define NESTED                                                                         \
  "input %outer : i64[]\ninput %inner : i64[]\ninput %c : bool[]\ninput %x : f32[2]\n" \
  "const %yes : bool[] = [1]\n%n = not(%c)\n%first = neg(%x)\n"                        \
  "%r1, %s1, %a = loop_begin(%outer, %yes, %first)\n%p = abs(%a)\n"                    \
  "%r2, %s2, %b = loop_begin(%inner, %yes, %p)\n"                                      \
  "%t = add(%b, %x)\n%e = sub(%b, %x)\n%m = choose(%n, %t, %e)\n"                      \
  "%d2, %g2, %l2 = loop_end(%r2, %s2, %inner, %yes, %b, %m)\n"                         \
  "%k = add(%l2, %x)\n"                                                                \
  "%d1, %g1, %l1 = loop_end(%r1, %s1, %outer, %yes, %a, %k)\n"                         \
  "%z = neg(%x)\n%v = add(%z, %z)\n%y = choose(%c, %l1, %v)\noutput \"y\" = %y\n"

static void count_step(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  (void)step, (void)node, (void)out, (void)n_out, (void)ms;
  ++*(uint32_t *)user;
}

static float nested(const run *r, int64_t outer, int64_t inner, uint8_t c, uint32_t *steps) {
  const float x[2] = {1, 2};
  float y[2];
  berth_error err;
  give(r, "outer", &outer, sizeof outer);
  give(r, "inner", &inner, sizeof inner);
  give(r, "c", &c, 1);
  give(r, "x", x, sizeof x);
  *steps = 0;
  berth_session_observe(r->session, count_step, steps);
  TEST_OK(berth_session_run(r->session, &err));
  TEST_OK(berth_session_read(r->session, "y", y, sizeof y, &err));
  return y[1];
}

static void loops_in_loops_in_choices(void **state) {
  for (uint32_t i = 0; i < 4; i++) {
    run r = start_run(*state, NESTED, i % 2 ? BERTH_PLAN_NO_REUSE : 0, i / 2 ? BERTH_SESSION_CHECKED : 0);
    uint32_t steps;
    assert_true(nested(&r, 0, 0, 1, &steps) == -2);
    assert_true(nested(&r, 2, 0, 1, &steps) == 6);  /* abs and add twice: 4, 6 */
    assert_true(nested(&r, 1, 3, 1, &steps) == -2); /* 2, three times down to -4, and up once */
    assert_true(nested(&r, 2, 1, 1, &steps) == 2);
    uint32_t many = steps;
    assert_true(nested(&r, 1000, 1000, 0, &steps) == -4); /* the loops are not begun */
    assert_true(steps < many && steps <= 4);
    end_run(&r);
  }
}

/* ---- Passes ---- */

static const berth_plan *plan_with_passes(fixture *f, const char *text) {
  berth_plan_desc desc = desc_with(0);
  berth_error err;
  plan_text(f, text, 0);
  berth_plan_destroy(f->plan);
  TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
  return f->plan;
}

/* An equal node after a loop may not be served by the one inside, which may never run; the other way round it may. */
static void equal_nodes_inside_and_outside(void **state) {
  const berth_plan *plan =
      plan_with_passes(*state, INPUTS
                       "const %yes : bool[] = [1]\n%before = exp(%x)\n%s = sin(%before)\n"
                       "%round, %starts, %acc = loop_begin(%trips, %yes, %s)\n"
                       "%again_ = exp(%x)\n%inside = softmax(%x)\n%u = add(%again_, %inside)\n"
                       "%next = add(%acc, %u)\n"
                       "%rounds, %more, %last = loop_end(%round, %starts, %trips, %yes, %acc, %next)\n"
                       "%outside = softmax(%x)\n%z = add(%last, %outside)\noutput \"z\" = %z");
  assert_int_equal(plan->graph->values[find(plan, "again_")].kind, BERTH_VALUE_DROPPED);
  assert_int_equal(plan->graph->values[find(plan, "inside")].kind, BERTH_VALUE_NODE);
  assert_int_equal(plan->graph->values[find(plan, "outside")].kind, BERTH_VALUE_NODE);
}

static void loops_that_nobody_needs_go_away(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_with_passes(f, GROW "\n%y = neg(%x)\noutput \"y\" = %y");
  assert_int_not_equal(plan->n_steps, 1);
  plan = plan_with_passes(f, INPUTS
                          "const %yes : bool[] = [1]\n%round, %starts, %acc = loop_begin(%trips, %yes, %x)\n"
                          "%next = neg(%acc)\n"
                          "%rounds, %again, %last = loop_end(%round, %starts, %trips, %yes, %acc, %next)\n"
                          "%y = neg(%x)\noutput \"y\" = %y");
  assert_int_equal(plan->n_steps, 1);
}

/* Nothing of a loop is computed when the plan is made, though all of its operands are known. */
static void loops_of_constants_run(void **state) {
  run r = start_run(*state,
                    "const %trips : i64[] = [4]\nconst %yes : bool[] = [1]\nconst %x : f32[2] = [1, 2]\n"
                    "%round, %starts, %acc = loop_begin(%trips, %yes, %x)\n%next = add(%acc, %acc)\n"
                    "%rounds, %again, %last = loop_end(%round, %starts, %trips, %yes, %acc, %next)\n"
                    "output \"last\" = %last",
                    0, 0);
  berth_error err;
  float last[2];
  TEST_OK(berth_session_run(r.session, &err));
  TEST_OK(berth_session_read(r.session, "last", last, sizeof last, &err));
  assert_true(last[0] == 16 && last[1] == 32);
  end_run(&r);
}

/* ---- The checker ---- */

/* ---- Values that grow ---- */

/* v = v with `added` after it, five times at most and while the sum stays below a limit. */
#define LONGER(added, begin, end)                                                                    \
  "input %limit : f32[]\ninput %x : f32[1]\nconst %trips : i64[] = [5]\nconst %yes : bool[] = [1]\n" \
  "%first = lt(%x, %limit)\n%round, %starts, %v = loop_begin(%trips, %first, %x)" begin              \
  "\n%s = reduce_sum(%v) {axes = [0], keepdims = 1}\n%w = concat(%v, " added                         \
  ") {axis = 0}\n%sum = reduce_sum(%w) {axes = [0], keepdims = 0}\n%go = lt(%sum, %limit)\n"         \
  "%rounds, %again, %last = loop_end(%round, %starts, %trips, %go, %v, %w)" end "\noutput \"last\" = %last"
#define BY_ONE " {grows = [0, 0, 1]}"

static void run_longer(const run *r, float limit, const float *want, int64_t n) {
  const float x = 1;
  float last[8];
  int64_t dims[BERTH_MAX_RANK];
  uint32_t rank;
  berth_error err;
  give(r, "limit", &limit, sizeof limit);
  give(r, "x", &x, sizeof x);
  TEST_OK(berth_session_run(r->session, &err));
  TEST_OK(berth_session_output_shape(r->session, 0, &rank, dims, &err));
  assert_int_equal(dims[0], n);
  TEST_OK(berth_session_read(r->session, "last", last, (size_t)n * sizeof *last, &err));
  assert_memory_equal(last, want, (size_t)n * sizeof *last);
}

static void what_grows_is_as_long_as_the_rounds_have_made_it(void **state) {
  static const float all[] = {1, 1, 2, 4, 8, 16};
  for (uint32_t flags = 0; flags <= BERTH_SESSION_CHECKED; flags += BERTH_SESSION_CHECKED) {
    run r = start_run(*state, LONGER("%s", BY_ONE, BY_ONE), 0, flags);
    run_longer(&r, 1000, all, 6);
    run_longer(&r, 0, all, 1); /* no round, after a run with some */
    run_longer(&r, 3, all, 3);
    run_longer(&r, 1000, all, 6);
    end_run(&r);
  }
}

static void more_growth_than_is_stated_is_an_error_of_the_run(void **state) {
  const float limit = 1000, x = 1;
  berth_error err;
  run r = start_run(*state, LONGER("%s, %s", BY_ONE, BY_ONE), 0, 0);
  give(&r, "limit", &limit, sizeof limit);
  give(&r, "x", &x, sizeof x);
  test_expect_error(berth_session_run(r.session, &err), BERTH_INFEASIBLE, &err, "at most 6 was planned");
  run_longer(&r, 0, &x, 1);
  end_run(&r);
}

/* Where only the end says that a value grows, its bytes are those of the first value. */
static void both_ends_must_say_what_grows(void **state) {
  fixture *f = *state;
  char text[1024];
  berth_graph *graph = NULL;
  berth_error err;
  snprintf(text, sizeof text, "graph \"g\" {\n%s\n}", LONGER("%s", "", BY_ONE));
  test_expect_error(berth_graph_parse(f->ctx, text, strlen(text), &graph, &err), BERTH_INVALID, &err,
                    "'grows' must be the same at both");
}

static void expect_rejected(const berth_plan *plan, const char *part) {
  berth_error err;
  test_expect_error(berth_plan_check(plan, &err), BERTH_INTERNAL, &err, part);
}

/* y comes from outside, z is made inside, w is carried on. */
#define BROKEN                                                                            \
  INPUTS                                                                                  \
  "const %yes : bool[] = [1]\nconst %five : i64[] = [5]\n%y = exp(%x)\n"                  \
  "%round, %starts, %acc = loop_begin(%five, %yes, %x)\n"                                 \
  "%z = neg(%y)\n%w = softmax(%z)\n%v = add(%w, %acc)\n%u = cumsum(%v)\n"                 \
  "%rounds, %again, %last, %all = loop_end(%round, %starts, %five, %yes, %acc, %u, %z)\n" \
  "output \"last\" = %last\noutput \"all\" = %all"

static berth_plan *broken_plan(void **state, const char *text) {
  fixture *f = *state;
  plan_text(f, text, 0);
  return f->plan;
}

/* Puts a value over another, as the root of its buffer. */
static void move_over(berth_plan *plan, const char *name, const char *other) {
  berth__place *place = &plan->places[find(plan, name)];
  const berth__place *to = place_of(plan, other);
  place->root = to->root;
  place->root_offset = to->root_offset;
  place->buffer = to->buffer;
}

static void the_checker_finds_what_is_wrong(void **state) {
  berth_plan *plan = broken_plan(state, BROKEN);
  plan->places[find(plan, "y")].death =
      plan->graph->values[find(plan, "z")].node + 1; /* only the first round is seen */
  plan->places[find(plan, "z")].in_place = true;
  move_over(plan, "z", "y");
  expect_rejected(plan, "destroys 'y', which is still needed");
  plan = broken_plan(state, BROKEN);
  move_over(plan, "w", "all"); /* rows of earlier rounds lie there */
  plan->places[find(plan, "w")].in_place = false;
  expect_rejected(plan, "destroys 'all', which is still needed");
  plan = broken_plan(state, BROKEN);
  move_over(plan, "last", "y");
  expect_rejected(plan, "does not lie where it is carried");
  plan = broken_plan(state, SWAP);
  plan->scratch[plan->graph->values[find(plan, "x")].node] = BERTH__NO_BUFFER;
  expect_rejected(plan, "too little scratch");
  plan = broken_plan(state, BROKEN);
  plan->places[find(plan, "last")].in_place = false;
  expect_rejected(plan, "not made as its place says");
  plan = broken_plan(state, BROKEN);
  uint32_t first = plan->order[0];
  plan->order[0] = plan->order[1];
  plan->order[1] = first;
  expect_rejected(plan, "out of order");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(rounds_are_counted_at_run_time),
      PLAN_TEST(the_next_value_is_made_in_place),
      PLAN_TEST(what_comes_from_outside_stays),
      PLAN_TEST(rows_are_stacked),
      PLAN_TEST(what_is_stacked_lives_from_the_begin),
      PLAN_TEST(values_change_places),
      PLAN_TEST(loops_in_loops_in_choices),
      PLAN_TEST(equal_nodes_inside_and_outside),
      PLAN_TEST(loops_that_nobody_needs_go_away),
      PLAN_TEST(loops_of_constants_run),
      PLAN_TEST(what_grows_is_as_long_as_the_rounds_have_made_it),
      PLAN_TEST(more_growth_than_is_stated_is_an_error_of_the_run),
      PLAN_TEST(both_ends_must_say_what_grows),
      PLAN_TEST(the_checker_finds_what_is_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
