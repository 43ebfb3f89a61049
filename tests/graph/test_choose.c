/* Choices: what binding makes of them, and what it forgives in the branch that is not taken. */
#include "graphs.h"

static int make(void **state) {
  *state = test_context();
  return 0;
}

static int drop(void **state) {
  berth_context_destroy(*state);
  return 0;
}

/* x is squeezed where its second extent is 1, and summed otherwise. */
static const char squeeze_or_sum[] =
    "graph \"g\" {\n"
    "  input %x : f32[n, m]\n"
    "  const %one : i64[1] = [1]\n"
    "  %extent = shape(%x) {start = 1}\n"
    "  %is_one = eq(%extent, %one)\n"
    "  %squeezed = squeeze(%x) {axes = [1]}\n"
    "  %twice = add(%squeezed, %squeezed)\n"
    "  %sum = reduce_sum(%x) {axes = [1], keepdims = 0}\n"
    "  %y = choose(%is_one, %twice, %sum)\n"
    "  %z = neg(%y)\n"
    "  output \"z\" = %z\n"
    "}\n";

static berth_graph *bound(berth_context *ctx, const char *text, int64_t n, int64_t m) {
  berth_dim dims[] = {{"n", n}, {"m", m}};
  berth_error err;
  berth_graph *graph = graph_parse(ctx, text), *out;
  TEST_OK(berth_graph_bind(graph, dims, 2, &out, &err));
  berth_graph_destroy(graph);
  return out;
}

static uint32_t count_ops(const berth_graph *graph, const char *op) {
  uint32_t count = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) count += strcmp(graph->nodes[i].op->name, op) == 0;
  return count;
}

static void takes_the_operand_that_the_shapes_choose(void **state) {
  for (int64_t m = 1; m <= 3; m += 2) {
    berth_graph *graph = bound(*state, squeeze_or_sum, 2, m);
    assert_int_equal(count_ops(graph, "choose"), 0);
    assert_int_equal(count_ops(graph, "reduce_sum"), m == 1 ? 0 : 1);
    assert_int_equal(count_ops(graph, "add"), m == 1 ? 1 : 0);
    const berth__value *z = &graph->values[berth_graph_find(graph, "z")];
    assert_int_equal(z->shape.rank, 1);
    assert_int_equal(z->shape.dim[0], 2);
    berth_graph_destroy(graph);
  }
}

static void keeps_value_numbers(void **state) {
  berth_graph *before = graph_parse(*state, squeeze_or_sum), *after = bound(*state, squeeze_or_sum, 2, 3);
  assert_int_equal(before->n_values, after->n_values);
  for (size_t i = 0; i < before->n_values; i++) assert_string_equal(before->values[i].name, after->values[i].name);
  assert_int_equal(after->values[berth_graph_find(before, "twice")].kind, BERTH_VALUE_DROPPED);
  berth_graph_destroy(before);
  berth_graph_destroy(after);
}

static void bind_fails(berth_context *ctx, const char *text, const berth_dim *dims, size_t n_dims, berth_status want,
                       const char *part) {
  berth_error err;
  berth_graph *graph = graph_parse(ctx, text), *out;
  test_expect_error(berth_graph_bind(graph, dims, n_dims, &out, &err), want, &err, part);
  assert_null(out);
  berth_graph_destroy(graph);
}

/* The error of the node that failed comes through, not one about what reads its result. */
static void an_error_that_matters_is_told(void **state) {
  const berth_dim dims[] = {{"n", 2}, {"m", 3}};
  bind_fails(*state,
             "graph \"g\" { input %x : f32[n, m] const %c : bool[] = [1] %s = squeeze(%x) {axes = [1]}\n"
             " %t = relu(%s) %u = relu(%x) %v = reduce_sum(%u) {axes = [1], keepdims = 0} %y = choose(%c, %t, %v)\n"
             " output \"y\" = %y }",
             dims, 2, BERTH_INVALID, "node 's' (squeeze)");
}

static void nodes_outside_a_branch_must_fit(void **state) {
  const berth_dim dims[] = {{"n", 2}, {"m", 3}};
  bind_fails(*state,
             "graph \"g\" { input %x : f32[n, m] input %w : f32[m, n] const %c : bool[] = [1]\n"
             " %a = add(%x, %w) %y = choose(%c, %a, %x) output \"y\" = %y }",
             dims, 2, BERTH_INVALID, "node 'a' (add)");
}

/* Runs with the condition true, which works, and false, which fails with the reason. */
static void runs_one_way(berth_context *ctx, const char *text, const char *reason) {
  berth_error err;
  berth_session *session;
  berth_graph *graph = graph_parse(ctx, text);
  const float x[2] = {1, -2};
  float y[2];
  const berth_dim n = {"n", 2};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_write(session, "c", &(bool){true}, 1, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
  assert_true(y[0] == -1 && y[1] == 2);
  TEST_OK(berth_session_write(session, "c", &(bool){false}, 1, &err));
  test_expect_error(berth_session_run(session, &err), BERTH_UNSUPPORTED, &err, reason);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

static void what_is_left_out_fails_only_when_it_is_taken(void **state) {
  runs_one_way(*state,
               "graph \"g\" { input %c : bool[1] input %x : f32[n] %a = neg(%x)\n"
               " %y = choose(%c, %a) {reason = \"the other way is closed\"} output \"y\" = %y }",
               "the condition is false, but the other way is closed");
  runs_one_way(*state,
               "graph \"g\" { input %c : bool[1] input %x : f32[n] %a = neg(%x) %s = squeeze(%x) {axes = [0]}\n"
               " %b = unsqueeze(%s) {axes = [0]} %y = choose(%c, %a, %b) output \"y\" = %y }",
               "node 's' (squeeze)");
}

/* The larger extent is planned, and the run has that of the operand which it takes. */
static void open_choices_have_the_larger_extent(void **state) {
  berth_error err;
  berth_session *session;
  berth_graph *graph = graph_parse(*state,
                                   "graph \"g\" { input %c : bool[1] input %a : f32[2] input %b : f32[3]\n"
                                   " %d = neg(%a) %e = neg(%b) %y = choose(%c, %d, %e) output \"y\" = %y }");
  const float x[3] = {1, 2, 3};
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  assert_int_equal(berth_graph_bounds(berth_plan_graph(berth_session_plan(session)), berth_graph_find(graph, "y")), 1);
  for (uint8_t c = 0; c <= 1; c++) {
    float y[3];
    int64_t dim[BERTH_MAX_RANK];
    uint32_t rank;
    TEST_OK(berth_session_write(session, "c", &c, 1, &err));
    TEST_OK(berth_session_write(session, "a", x, 8, &err));
    TEST_OK(berth_session_write(session, "b", x, 12, &err));
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_output_shape(session, 0, &rank, dim, &err));
    assert_int_equal(dim[0], c ? 2 : 3);
    TEST_OK(berth_session_read(session, "y", y, (size_t)dim[0] * 4, &err));
    for (int64_t i = 0; i < dim[0]; i++) assert_true(y[i] == -x[i]);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

static void run_time_choices(void **state) {
  berth_error err;
  berth_session *session;
  berth_graph *graph = graph_parse(*state,
                                   "graph \"g\" { input %c : bool[] input %x : f32[3] %a = neg(%x) %b = add(%x, %x)\n"
                                   " %y = choose(%c, %a, %b) output \"y\" = %y }");
  const float x[3] = {1, 2, 3};
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  for (uint8_t c = 0; c <= 1; c++) {
    float y[3];
    TEST_OK(berth_session_write(session, "c", &c, 1, &err));
    TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
    for (int i = 0; i < 3; i++) assert_true(y[i] == (c ? -x[i] : 2 * x[i]));
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

static void conditions_are_inputs_that_shapes_depend_on(void **state) {
  berth_graph *graph = graph_parse(*state,
                                   "graph \"g\" { input %c : bool[1] input %a : f32[2] input %b : f32[3]\n"
                                   " %y = choose(%c, %a, %b) output \"y\" = %y }");
  const bool no = false;
  const int64_t one = 1;
  berth_error err;
  berth_graph *out;
  assert_true(berth_graph_shapes_depend(graph, berth_graph_find(graph, "c")));
  assert_false(berth_graph_shapes_depend(graph, berth_graph_find(graph, "a")));
  berth_graph *alike = graph_parse(*state,
                                   "graph \"g\" { input %c : bool[1] input %a : f32[n] input %b : f32[n]\n"
                                   " %y = choose(%c, %a, %b) output \"y\" = %y }");
  assert_false(berth_graph_shapes_depend(alike, berth_graph_find(alike, "c")));
  berth_graph_destroy(alike);
  TEST_OK(berth_graph_fix(graph, "c", BERTH_BOOL, 1, &one, &no, 1, &err));
  TEST_OK(berth_graph_bind(graph, NULL, 0, &out, &err));
  assert_int_equal(out->values[berth_graph_find(out, "y")].shape.dim[0], 3);
  berth_graph_destroy(out);
  berth_graph_destroy(graph);
}

static void values_are_computed_on_demand(void **state) {
  berth_graph *graph = graph_parse(*state, squeeze_or_sum);
  berth_graph *fixed = graph_parse(*state,
                                   "graph \"g\" { input %x : f32[4, 1] %e = shape(%x) {start = 1}\n"
                                   " const %one : i64[1] = [1] %c = eq(%e, %one) %r = relu(%x) output \"r\" = %r }");
  berth_error err;
  berth_value open = berth_graph_find(graph, "is_one"), known = berth_graph_find(fixed, "c");
  TEST_OK(berth__graph_evaluate_value(graph, open, &err));
  assert_null(graph->values[open].blob);
  TEST_OK(berth__graph_evaluate_value(fixed, known, &err));
  assert_non_null(fixed->values[known].blob);
  assert_true(*(const bool *)fixed->values[known].data);
  TEST_OK(berth__graph_evaluate_value(fixed, berth_graph_find(fixed, "x"), &err));
  berth_graph_destroy(graph);
  berth_graph_destroy(fixed);
}

static berth_status parse_and_bind(berth_context *ctx, berth_error *err, void *user) {
  const berth_dim dims[] = {{"n", 2}, {"m", 3}};
  berth_graph *graph = NULL, *out = NULL;
  (void)user;
  berth_status status = berth_graph_parse(ctx, squeeze_or_sum, sizeof squeeze_or_sum - 1, &graph, err);
  if (status == BERTH_OK) status = berth_graph_bind(graph, dims, 2, &out, err);
  berth_graph_destroy(out);
  berth_graph_destroy(graph);
  return status;
}

static void no_allocation_may_be_missed(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(parse_and_bind, NULL) >= 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_the_operand_that_the_shapes_choose),
      cmocka_unit_test(keeps_value_numbers),
      cmocka_unit_test(an_error_that_matters_is_told),
      cmocka_unit_test(nodes_outside_a_branch_must_fit),
      cmocka_unit_test(what_is_left_out_fails_only_when_it_is_taken),
      cmocka_unit_test(open_choices_have_the_larger_extent),
      cmocka_unit_test(run_time_choices),
      cmocka_unit_test(conditions_are_inputs_that_shapes_depend_on),
      cmocka_unit_test(values_are_computed_on_demand),
      cmocka_unit_test(no_allocation_may_be_missed),
  };
  return cmocka_run_group_tests(tests, make, drop);
}
