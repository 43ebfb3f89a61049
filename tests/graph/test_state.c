/* States in graphs: declared, updated, printed, parsed, bound, copied; and what is refused. */
#include "graphs.h"
#include "pass/pass.h"

static const char sample[] =
    "graph \"s\" {\n"
    "  input %x : f32[n, 2]\n"
    "  state %sum : f32[2] = zeros\n"
    "  state %scale : f32[2] = [1, -0.5]\n"
    "  state %cache : f16[n, 2] = zeros\n"
    "  state %still : bool[1] = [1]\n"
    "  %row = reduce_sum(%x) {axes = [0], keepdims = 0}\n"
    "  %next = add(%sum, %row)\n"
    "  %other = mul(%scale, %scale)\n"
    "  %half = cast(%x) {to = \"f16\"}\n"
    "  %y = mul(%row, %scale)\n"
    "  update %sum = %next\n"
    "  update %scale = %other\n"
    "  update %cache = %half\n"
    "  output \"y\" = %y\n"
    "}\n";

static int make(void **state) {
  *state = test_context();
  return 0;
}

static int drop(void **state) {
  berth_context_destroy(*state);
  return 0;
}

static void a_sample_reads_back_equal(void **state) {
  berth_graph *g = graph_parse(*state, sample);
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  const berth_value scale = berth_graph_find(g, "scale"), still = berth_graph_find(g, "still");
  assert_int_equal(berth_graph_n_states(g), 4);
  assert_int_equal(berth_graph_state_at(g, 1), scale);
  assert_int_equal(berth_graph_state_at(g, 4), BERTH_VALUE_NONE);
  assert_int_equal(berth_graph_next(g, scale), berth_graph_find(g, "other"));
  assert_int_equal(berth_graph_next(g, still), BERTH_VALUE_NONE);
  TEST_OK(berth_graph_value(g, scale, &info, &err));
  assert_int_equal(info.kind, BERTH_VALUE_STATE);
  assert_memory_equal(info.data, ((float[]){1, -0.5f}), 8);
  TEST_OK(berth_graph_value(g, berth_graph_find(g, "sum"), &info, &err));
  assert_null(info.data);
  graph_round_trip(g);
  berth_graph_destroy(g);
}

static void equality_sees_updates_and_initial_values(void **state) {
  static const char *const other[] = {
      "graph \"e\" { state %a : f32[1] = [2] state %b : f32[1] = zeros %n = neg(%a) update %a = %n output \"n\" = %n }",
      ("graph \"e\" { state %a : f32[1] = zeros state %b : f32[1] = zeros %n = neg(%a) update %a = %n output \"n\" = "
       "%n "
       "}"),
      "graph \"e\" { state %a : f32[1] = [1] state %b : f32[1] = zeros %n = neg(%a) update %b = %n output \"n\" = %n }",
      "graph \"e\" { state %a : f32[1] = [1] state %b : f32[1] = zeros %n = neg(%a) update %a = %b output \"n\" = %n }",
      "graph \"e\" { state %a : f32[1] = [1] state %b : f32[1] = zeros %n = neg(%a) output \"n\" = %n }"};
  static const char text[] =
      "graph \"e\" { state %a : f32[1] = [1] state %b : f32[1] = zeros %n = neg(%a) update %a = %n output \"n\" = %n }";
  berth_graph *g = graph_parse(*state, text), *same = graph_parse(*state, text);
  assert_true(berth_graph_equal(g, same));
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
    berth_graph *different = graph_parse(*state, other[i]);
    assert_false(berth_graph_equal(g, different));
    assert_false(berth_graph_equal(different, g));
    berth_graph_destroy(different);
  }
  berth_graph_destroy(same);
  berth_graph_destroy(g);
}

static void copies_have_the_same_states(void **state) {
  berth_graph *g = graph_parse(*state, sample), *copy, *twin;
  berth_error err;
  TEST_OK(berth__graph_clone(g, &copy, &err));
  assert_true(berth_graph_equal(g, copy));
  TEST_OK(berth__graph_duplicate(copy, &twin, &err));
  berth_graph_destroy(copy); /* the bytes are shared, not borrowed */
  assert_true(berth_graph_equal(g, twin));
  assert_int_equal(berth_graph_n_states(twin), 4);
  berth_graph_destroy(twin);
  berth_graph_destroy(g);
}

static void binding_gives_states_their_extents(void **state) {
  berth_graph *g = graph_parse(*state, sample), *bound;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  const berth_dim n = {"n", 3};
  TEST_OK(berth_graph_bind(g, &n, 1, &bound, &err));
  TEST_OK(berth_graph_value(bound, berth_graph_find(g, "cache"), &info, &err));
  assert_int_equal(info.kind, BERTH_VALUE_STATE);
  assert_int_equal(info.size, 12);
  assert_int_equal(berth_graph_n_states(bound), 4);
  assert_int_equal(berth_graph_next(bound, berth_graph_find(g, "sum")), berth_graph_find(g, "next"));
  TEST_OK(berth_graph_verify(bound, &err));
  berth_graph_destroy(bound);
  berth_graph_destroy(g);
}

/* What it holds before the first run says nothing about later ones. */
static void nothing_that_reads_a_state_is_computed_beforehand(void **state) {
  berth_graph *g = graph_parse(*state,
                               "graph \"f\" { state %s : i64[1] = [4] const %one : i64[1] = [1] %next = add(%s, %one)"
                               " %two = add(%one, %one) update %s = %next output \"o\" = %two }"),
              *bound;
  berth_error err;
  TEST_OK(berth_graph_bind(g, NULL, 0, &bound, &err));
  assert_null(bound->values[berth_graph_find(g, "next")].blob);
  TEST_OK(berth__pass_all(bound, &err));
  assert_int_equal(bound->values[berth_graph_find(g, "next")].kind, BERTH_VALUE_NODE);
  assert_int_equal(bound->values[berth_graph_find(g, "two")].kind, BERTH_VALUE_CONSTANT);
  assert_int_equal(bound->n_nodes, 1);
  berth_graph_destroy(bound);
  berth_graph_destroy(g);
}

static void passes_keep_what_an_update_needs_and_nothing_else(void **state) {
  berth_graph *g = graph_parse(*state,
                               "graph \"d\" { input %x : f32[2] state %s : f32[2] = zeros state %t : f32[2] = zeros"
                               " %a = exp(%x) %b = exp(%x) %dead = neg(%x) %unread = neg(%s)"
                               " update %s = %a update %t = %b output \"o\" = %a }"),
              *bound;
  berth_error err;
  TEST_OK(berth_graph_bind(g, NULL, 0, &bound, &err));
  TEST_OK(berth__pass_all(bound, &err));
  assert_int_equal(bound->n_nodes, 2); /* equal nodes, but each is what a state becomes */
  assert_int_equal(bound->values[berth_graph_find(g, "unread")].kind, BERTH_VALUE_DROPPED);
  assert_int_equal(bound->n_updates, 2);
  TEST_OK(berth_graph_verify(bound, &err));
  berth_graph_destroy(bound);
  berth_graph_destroy(g);
}

static void a_graph_may_have_updates_and_no_outputs(void **state) {
  berth_graph *g = graph_parse(*state, "graph \"u\" { state %s : f32[] = [1] %n = exp(%s) update %s = %n }");
  graph_round_trip(g);
  berth_graph_destroy(g);
}

static void texts_that_are_wrong_are_refused(void **state) {
  static const struct {
    const char *text;
    berth_status status;
    const char *part;
  } wrong[] = {
      {"graph \"w\" { state %s : f32[2] }", BERTH_MALFORMED, "expected"},
      {"graph \"w\" { state %s : f32[2] = [1] }", BERTH_MALFORMED, "expected"},
      {"graph \"w\" { state %s : f32[n] = [1] }", BERTH_MALFORMED, "fixed extents"},
      {"graph \"w\" {\n update %s = %s }", BERTH_MALFORMED, "line 2: the update of 's' names 's', which nothing"},
      {"graph \"w\" { state %s : f32[2] = zeros\n update %s = %t }", BERTH_MALFORMED, "names 't', which nothing"},
      {"graph \"w\" { input %x : f32[2] %y = neg(%x)\n update %x = %y }", BERTH_INVALID, "'x' is updated but is no"},
      {"graph \"w\" { state %s : f32[2] = zeros input %x : f32[3]\n update %s = %x }", BERTH_INVALID,
       "line 2: state 's' is f32[2] but is updated from 'x', which is f32[3]"},
      {"graph \"w\" { state %s : f32[2] = zeros input %x : i32[2] update %s = %x }", BERTH_INVALID, "which is i32[2]"},
      {"graph \"w\" { state %s : f32[2] = zeros input %x : f32[2]\n update %s = %x\n update %s = %s }", BERTH_INVALID,
       "line 3: state 's' is updated twice"},
      {"graph \"w\" { state %s : f32[2] = zeros update %s = %s output \"s\" = %s }", BERTH_INVALID, "identity"},
      {"graph \"w\" { state %s : f32[2] = zeros }", BERTH_INVALID, "no output"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    graph_parse_fails(*state, wrong[i].text, wrong[i].status, wrong[i].part);
}

static void calls_that_are_wrong_are_refused(void **state) {
  berth_graph *g;
  berth_value s = 7;
  berth_error err;
  const float data[] = {1, 2};
  const berth_shape named = graph_shape("n");
  TEST_OK(berth_graph_create(*state, "c", &g, &err));
  test_expect_error(berth_graph_state(g, "s", BERTH_F32, named, data, 8, &s, &err), BERTH_INVALID, &err, "named dim");
  assert_int_equal(s, BERTH_VALUE_NONE);
  assert_int_equal(berth_graph_n_dims(g), 0);
  test_expect_error(berth_graph_state(g, "s", BERTH_F32, BERTH_SHAPE(2), data, 4, &s, &err), BERTH_INVALID, &err,
                    "needs 8 bytes");
  test_expect_error(berth_graph_state(g, "s", BERTH_F32, BERTH_SHAPE(2), NULL, 8, &s, &err), BERTH_INVALID, &err,
                    "not given");
  test_expect_error(berth_graph_state(NULL, "s", BERTH_F32, BERTH_SHAPE(2), NULL, 0, &s, &err), BERTH_INVALID, &err,
                    "NULL");
  test_expect_error(berth_graph_update(NULL, 0, 0, &err), BERTH_INVALID, &err, "NULL");
  TEST_OK(berth_graph_state(g, NULL, BERTH_F32, BERTH_SHAPE(2), data, 8, &s, &err));
  test_expect_error(berth_graph_update(g, s, 9, &err), BERTH_INVALID, &err, "value 9");
  test_expect_error(berth_graph_output(g, NULL, s, &err), BERTH_INVALID, &err, "identity");
  assert_int_equal(berth_graph_n_states(g), 1);
  berth_graph_destroy(g);
}

static void shapes_that_differ_are_found_when_they_are_bound(void **state) {
  berth_graph *g =
                  graph_parse(*state,
                              "graph \"b\" { input %x : f32[n] state %s : f32[4] = zeros %y = concat(%x, %x) {axis = 0}"
                              " update %s = %y output \"y\" = %y }"),
              *bound;
  berth_error err;
  TEST_OK(berth_graph_bind(g, &(berth_dim){"n", 2}, 1, &bound, &err));
  berth_graph_destroy(bound);
  test_expect_error(berth_graph_bind(g, &(berth_dim){"n", 3}, 1, &bound, &err), BERTH_INVALID, &err,
                    "state 's' is f32[4] but is updated from 'y', which is f32[6]");
  berth_graph_destroy(g);
}

static void a_value_inside_a_loop_updates_nothing(void **state) {
  graph_parse_fails(
      *state,
      "graph \"l\" { const %n : i64[] = [3] const %yes : bool[] = [1] input %x : f32[2] state %s : f32[2] = zeros\n"
      " %round, %starts, %v = loop_begin(%n, %yes, %x)\n"
      " %w = neg(%v)\n"
      " %rounds, %again, %last = loop_end(%round, %starts, %n, %yes, %v, %w)\n"
      " update %s = %w output \"o\" = %last }",
      BERTH_INVALID, "from inside a loop");
}

static void verify_finds_updates_that_were_broken(void **state) {
  berth_graph *g = graph_parse(*state, sample);
  berth_error err;
  const berth__update before = g->updates[1];
  g->updates[1].state = berth_graph_find(g, "x");
  test_expect_error(berth_graph_verify(g, &err), BERTH_INVALID, &err, "is not a state");
  g->updates[1] = (berth__update){before.state, 999};
  test_expect_error(berth_graph_verify(g, &err), BERTH_INVALID, &err, "value 999");
  g->updates[1] = g->updates[0];
  test_expect_error(berth_graph_verify(g, &err), BERTH_INVALID, &err, "updated twice");
  g->updates[1] = before;
  g->outputs[0].value = before.state;
  test_expect_error(berth_graph_verify(g, &err), BERTH_INVALID, &err, "is a state");
  berth_graph_destroy(g);
}

static berth_status make_and_drop(berth_context *ctx, berth_error *err, void *user) {
  berth_graph *g = NULL, *bound = NULL, *twin = NULL;
  (void)user;
  berth_status status = berth_graph_parse(ctx, sample, sizeof sample - 1, &g, err);
  if (status == BERTH_OK) status = berth_graph_bind(g, &(berth_dim){"n", 3}, 1, &bound, err);
  if (status == BERTH_OK) status = berth__graph_duplicate(bound, &twin, err);
  berth_graph_destroy(g);
  berth_graph_destroy(bound);
  berth_graph_destroy(twin);
  return status;
}

static void no_allocation_is_taken_for_granted(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(make_and_drop, NULL) >= 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_sample_reads_back_equal, make, drop),
      cmocka_unit_test_setup_teardown(equality_sees_updates_and_initial_values, make, drop),
      cmocka_unit_test_setup_teardown(copies_have_the_same_states, make, drop),
      cmocka_unit_test_setup_teardown(binding_gives_states_their_extents, make, drop),
      cmocka_unit_test_setup_teardown(nothing_that_reads_a_state_is_computed_beforehand, make, drop),
      cmocka_unit_test_setup_teardown(passes_keep_what_an_update_needs_and_nothing_else, make, drop),
      cmocka_unit_test_setup_teardown(a_graph_may_have_updates_and_no_outputs, make, drop),
      cmocka_unit_test_setup_teardown(texts_that_are_wrong_are_refused, make, drop),
      cmocka_unit_test_setup_teardown(calls_that_are_wrong_are_refused, make, drop),
      cmocka_unit_test_setup_teardown(shapes_that_differ_are_found_when_they_are_bound, make, drop),
      cmocka_unit_test_setup_teardown(a_value_inside_a_loop_updates_nothing, make, drop),
      cmocka_unit_test_setup_teardown(verify_finds_updates_that_were_broken, make, drop),
      cmocka_unit_test(no_allocation_is_taken_for_granted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
