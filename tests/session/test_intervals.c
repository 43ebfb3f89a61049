/* Sizes that a run computes from data, whose elements lie in a known interval. */
#include <math.h>
#include <stdio.h>

#include "graph/graph.h"
#include "sessions.h"

/* ---- Elements lie in their intervals ---- */

/* Of x, which is f32[6] in [-3, 5], p, in [0.5, 4], and whole numbers n in [-7, 9] and m in [1, 4]; y is the result.
 * The interval must be `low` to `high`, but for rounding. */
typedef struct expected {
  const char *nodes;
  double low, high;
} expected;

static const expected cases[] = {
    {"%y = add(%x, %p)", -2.5, 9},
    {"%y = sub(%x, %p)", -7, 4.5},
    {"%y = mul(%x, %x)", -15, 25},
    {"%y = div(%x, %p)", -6, 10},
    {"%y = min(%x, %p)", -3, 4},
    {"%y = max(%x, %p)", 0.5, 5},
    {"%y = neg(%x)", -5, 3},
    {"%y = abs(%x)", 0, 5},
    {"%y = relu(%x)", 0, 5},
    {"%y = floor(%x)", -3, 5},
    {"%y = ceil(%x)", -3, 5},
    {"%y = round(%p)", 0, 4},
    {"%y = exp(%p)", 1.649, 54.59},
    {"%y = sqrt(%p)", 0.7072, 2},
    {"%y = sigmoid(%raw)", 0, 1},
    {"%y = tanh(%raw)", -1, 1},
    {"%y = sign(%raw)", -1, 1},
    {"%y = softmax(%raw) {axis = 0}", 0, 1},
    {"%y = clamp(%x) {max = 2}", -3, 2},
    {"%low = min(%raw, %p) %y = max(%low, %p)", 0.5, 4},
    {"%y = concat(%x, %p) {axis = 0}", -3, 5},
    {"%c = lt(%x, %p) %y = where(%c, %x, %p)", -3, 5},
    {"%r = reshape(%x) {shape = [2, 3]} %t = transpose(%r) {perm = [1, 0]} %y = narrow(%t) {axes = [0], starts = [0], "
     "ends = [2]}",
     -3, 5},
    {"%y = reduce_max(%x)", -3, 5},
    {"%y = arg_max(%raw) {axis = 0}", 0, 5},
    {"%y = shape(%raw)", 0, 6},
    {"%y = cast(%x) {to = \"i64\"}", -3, 5},
    {"%y = add(%n, %m)", -6, 13},
    {"%y = div(%n, %m)", -7, 9},
    {"%y = cast(%n) {to = \"f16\"}", -7, 9},
    {"%b = cast(%raw) {to = \"bool\"} %y = cast(%b) {to = \"i64\"}", 0, 1},
    {"%u = cast(%p) {to = \"u8\"} %y = cast(%u) {to = \"i64\"}", 0, 4},
};

static berth__interval interval_of(const fixture *f, const char *name) {
  const berth_graph *bound = berth_plan_graph(berth_session_plan(f->session));
  return bound->values[berth_graph_find(bound, name)].interval;
}

static void fill(float raw[6], uint64_t seed) {
  for (int i = 0; i < 6; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    raw[i] = (float)((double)(seed >> 40) / (1 << 24) * 24 - 12);
  }
}

static void check_elements(const fixture *f, const expected *c, berth__interval all) {
  const berth_graph *bound = berth_plan_graph(berth_session_plan(f->session));
  const berth__value *y = &bound->values[berth_graph_find(bound, "y")];
  char room[64];
  int64_t count = 0;
  berth_error err;
  assert_true(berth__shape_count(&y->shape, &count));
  const size_t size = (size_t)count * berth_type_size(y->type);
  assert_true(size <= sizeof room);
  OK(berth_session_read(f->session, "y", room, size, &err));
  const berth_tensor tensor = {.data = room, .type = y->type, .rank = 1, .dim = {count}, .stride = {1}};
  for (int64_t i = 0; i < count; i++) {
    const double value = berth__load_f64(&tensor, i);
    if (!(value >= all.low && value <= all.high))
      fail_msg("%s: %g is not in [%g, %g]", c->nodes, value, all.low, all.high);
  }
}

static void check_case(const expected *c, uint64_t seed) {
  char text[1024];
  float raw[6];
  berth_error err;
  fixture f;
  snprintf(text, sizeof text,
           "graph \"g\" { input %%raw : f32[6] %%x = clamp(%%raw) {min = -3, max = 5} %%p = clamp(%%raw) {min = 0.5, "
           "max = 4}\n%%wide = clamp(%%raw) {min = -7, max = 9} %%n = cast(%%wide) {to = \"i64\"} %%few = clamp(%%raw) "
           "{min = 1, max = 4}\n%%m = cast(%%few) {to = \"i64\"} %s output \"y\" = %%y }",
           c->nodes);
  session_start_with(&f, text, 0, BERTH_PLAN_NO_PASSES, 1);
  const berth__interval all = interval_of(&f, "y");
  const double slack = 0.02 * (1 + fabs(c->low) + fabs(c->high));
  if (!all.is_known || all.low > c->low || all.high < c->high || all.low < c->low - slack || all.high > c->high + slack)
    fail_msg("%s: [%g, %g], expected [%g, %g]", c->nodes, all.low, all.high, c->low, c->high);
  fill(raw, seed);
  OK(berth_session_write(f.session, "raw", raw, sizeof raw, &err));
  OK(berth_session_run(f.session, &err));
  check_elements(&f, c, all);
  session_finish(&f);
}

static void elements_lie_in_their_intervals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) check_case(&cases[i], seed * 77 + i);
}

/* What may wrap, and what never had bounds. */
static void nothing_is_known_of_others(void **state) {
  static const char *const nodes[] = {
      "%y = add(%raw, %raw)",
      "%y = div(%x, %x)",
      "%y = sqrt(%x)",
      "%y = cast(%raw) {to = \"i64\"}",
      "%y = cumsum(%x) {axis = 0}",
      "%a = cast(%large) {to = \"i32\"} %y = mul(%a, %a)",
  };
  (void)state;
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char text[512];
    fixture f;
    snprintf(text, sizeof text,
             "graph \"g\" { input %%raw : f32[6] %%x = clamp(%%raw) {min = -3, max = 5}\n"
             "  %%large = clamp(%%raw) {min = 0, max = 100000} %s output \"y\" = %%y }",
             nodes[i]);
    session_start_with(&f, text, 0, BERTH_PLAN_NO_PASSES, 1);
    const berth__interval all = interval_of(&f, "y");
    if (all.is_known && isfinite(all.low) && isfinite(all.high)) fail_msg("%s: [%g, %g]", nodes[i], all.low, all.high);
    session_finish(&f);
  }
}

/* ---- Sizes ---- */

/* x resized to as many rows and columns as s says, and so many numbers. */
static const char sized[] =
    "graph \"sized\" { input %x : f32[2, 3] input %s : f32[2] const %nil : i64[] = [0] const %one : i64[] = [1]\n"
    "  %c = clamp(%s) {min = 1, max = 5.5} %t = cast(%c) {to = \"i64\"}\n"
    "  %y = resize(%x, %t) {mode = \"nearest\", coordinates = \"asymmetric\", nearest = \"floor\"}\n"
    "  %n = reduce_max(%t) {axes = [0], keepdims = 0} %r = range(%nil, %n, %one)\n"
    "  output \"y\" = %y output \"r\" = %r }";

static void run_sized(const fixture *f, float h, float w, int64_t rows, int64_t columns) {
  static const float x[6] = {1, 2, 3, 4, 5, 6};
  const float s[2] = {h, w};
  int64_t dims[BERTH_MAX_RANK], r[6];
  uint32_t rank;
  float y[36];
  berth_error err;
  OK(berth_session_write(f->session, "x", x, sizeof x, &err));
  OK(berth_session_write(f->session, "s", s, sizeof s, &err));
  OK(berth_session_run(f->session, &err));
  OK(berth_session_output_shape(f->session, 0, &rank, dims, &err));
  assert_int_equal(dims[0], rows);
  assert_int_equal(dims[1], columns);
  OK(berth_session_output_shape(f->session, 1, &rank, dims, &err));
  assert_int_equal(dims[0], rows > columns ? rows : columns);
  OK(berth_session_read(f->session, "y", y, (size_t)(rows * columns) * sizeof *y, &err));
  OK(berth_session_read(f->session, "r", r, (size_t)dims[0] * sizeof *r, &err));
  for (int64_t i = 0; i < rows * columns; i++)
    assert_true(y[i] == x[i / columns * 2 / rows * 3 + i % columns * 3 / columns]);
  for (int64_t i = 0; i < dims[0]; i++) assert_int_equal(r[i], i);
}

static void sizes_from_data_have_bounds(void **state) {
  fixture f;
  (void)state;
  session_start_with(&f, sized, 0, 0, 1);
  const berth_graph *bound = berth_plan_graph(berth_session_plan(f.session));
  const berth_value y = berth_graph_find(bound, "y"), r = berth_graph_find(bound, "r");
  assert_int_equal(berth_graph_bounds(bound, y), 3);
  assert_int_equal(bound->values[y].shape.dim[0], 6); /* 5.5, rounded up */
  assert_int_equal(bound->values[y].shape.dim[1], 6);
  assert_int_equal(bound->values[r].shape.dim[0], 6);
  run_sized(&f, 4, 3, 4, 3);
  run_sized(&f, 1, 99, 1, 5);
  run_sized(&f, -99, 2.5f, 1, 2);
  session_finish(&f);
}

/* NaN goes through a clamp, and what it becomes as an integer is not a size. */
static void a_size_that_is_no_number_fails_the_run(void **state) {
  const float x[6] = {0}, s[2] = {1, NAN};
  fixture f;
  berth_error err;
  (void)state;
  session_start_with(&f, sized, 0, 0, 1);
  OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  OK(berth_session_write(f.session, "s", s, sizeof s, &err));
  const berth_status status = berth_session_run(f.session, &err);
  if (status == BERTH_OK) { /* a machine may make 0 of it */
    int64_t dims[BERTH_MAX_RANK];
    uint32_t rank;
    OK(berth_session_output_shape(f.session, 0, &rank, dims, &err));
    assert_int_equal(dims[1], 0);
  } else {
    assert_non_null(strstr(err.message, "(resize)"));
  }
  run_sized(&f, 4, 3, 4, 3); /* the session goes on */
  session_finish(&f);
}

/* Without the clamp an input that sizes depend on must be known. */
static void bounded_sizes_need_no_known_input(void **state) {
  static const char open[] =
      "graph \"g\" { input %x : f32[2, 3] input %s : f32[2] %t = cast(%s) {to = \"i64\"}\n"
      "  %y = resize(%x, %t) {mode = \"nearest\"} output \"y\" = %y }";
  /* as wide as another input at most, whose extent has a name */
  static const char named[] =
      "graph \"g\" { input %x : f32[2, 3] input %s : i64[1] input %z : f32[n] %e = shape(%z) const %one : i64[1] = "
      "[1]\n"
      "  %low = max(%s, %one) %w = min(%low, %e) %t = concat(%one, %w) {axis = 0}\n"
      "  %y = resize(%x, %t) {mode = \"nearest\"} output \"y\" = %y }";
  static const char *const texts[] = {open, named, sized};
  static const int expected_depend[] = {BERTH_SHAPES_NEED, BERTH_SHAPES_BOUNDED, BERTH_SHAPES_BOUNDED};
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_graph *graph = session_parse(ctx, texts[i]), *bound = NULL;
    const berth_dim n = {"n", 7};
    berth_error err;
    assert_int_equal(berth_graph_shapes_depend(graph, berth_graph_find(graph, "s")), expected_depend[i]);
    assert_int_equal(berth_graph_shapes_depend(graph, berth_graph_find(graph, "x")), BERTH_SHAPES_FREE);
    const berth_status status = berth_graph_bind(graph, &n, i == 1, &bound, &err);
    if (i == 0)
      test_expect_error(status, BERTH_UNSUPPORTED, &err, "input 's', which must be fixed");
    else
      TEST_OK(status);
    if (i == 1) assert_int_equal(bound->values[berth_graph_find(bound, "y")].shape.dim[1], 7);
    berth_graph_destroy(bound);
    berth_graph_destroy(graph);
    test_context_done(ctx, &alloc);
  }
}

/* What an iteration computes from its number has the bounds of the trips. */
static void numbers_of_iterations_have_bounds(void **state) {
  static const char text[] =
      "graph \"g\" { input %x : f32[4] const %trips : i64[] = [20] const %yes : bool[] = [1]\n"
      "  %i, %go, %a = loop_begin(%trips, %yes, %x) const %one : i64[] = [1] %k = add(%i, %one)\n"
      "  %c = clamp(%a) {min = 1, max = 2} %rounds, %again, %last, %rows = loop_end(%i, %go, %trips, %yes, %a, %c, "
      "%k)\n"
      "  output \"y\" = %last output \"rows\" = %rows }";
  fixture f;
  (void)state;
  session_start_with(&f, text, 0, BERTH_PLAN_NO_PASSES, 1);
  const berth__interval i = interval_of(&f, "i"), k = interval_of(&f, "k"), rows = interval_of(&f, "rows");
  assert_true(i.is_known && i.low == 0 && i.high == 19);
  assert_true(k.is_known && k.low == 1 && k.high == 20);
  assert_true(rows.is_known && rows.low == 0 && rows.high == 20);
  assert_false(interval_of(&f, "last").is_known);
  session_finish(&f);
}

static berth_status bind_sized(berth_context *ctx, berth_error *err, void *user) {
  berth_graph *graph = NULL, *bound = NULL;
  berth_status status = berth_graph_parse(ctx, user, strlen(user), &graph, err);
  if (status == BERTH_OK) status = berth_graph_bind(graph, NULL, 0, &bound, err);
  berth_graph_destroy(bound);
  berth_graph_destroy(graph);
  return status;
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(bind_sized, (void *)(uintptr_t)sized) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_lie_in_their_intervals),   cmocka_unit_test(nothing_is_known_of_others),
      cmocka_unit_test(sizes_from_data_have_bounds),       cmocka_unit_test(a_size_that_is_no_number_fails_the_run),
      cmocka_unit_test(bounded_sizes_need_no_known_input), cmocka_unit_test(numbers_of_iterations_have_bounds),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
