/* Extents that only a run knows: planned for their bounds, reported as they are. */
#include <math.h>

#include "sessions.h"

/* Points of x that are not 0: where they are, what they are, and what follows from how many there are. */
static const char points[] =
    "graph \"points\" { input %x : f32[4, 5]\n"
    "  %nz = non_zero(%x) %at = transpose(%nz) {perm = [1, 0]} %v = gather_nd(%x, %at) %sq = mul(%v, %v)\n"
    "  %sum = reduce_sum(%sq) {axes = [0], keepdims = 0} %two = concat(%at, %at) {axis = 0} %shape = shape(%two)\n"
    "  %n = size(%v) %soft = softmax(%sq) {axis = 0}\n"
    "  output \"at\" = %at output \"v\" = %v output \"sum\" = %sum output \"two\" = %two output \"shape\" = %shape\n"
    "  output \"n\" = %n output \"soft\" = %soft }";

static void expect_shape(berth_session *session, uint32_t output, uint32_t rank, const int64_t *dim) {
  int64_t found[BERTH_MAX_RANK];
  uint32_t found_rank;
  berth_error err;
  OK(berth_session_output_shape(session, output, &found_rank, found, &err));
  assert_int_equal(found_rank, rank);
  for (uint32_t i = 0; i < rank; i++) assert_int_equal(found[i], dim[i]);
}
#define SHAPE(session, output, ...)                                                             \
  expect_shape(session, output, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
               (int64_t[]){__VA_ARGS__})

static uint32_t bounds_of(const berth_graph *graph, const char *name) {
  return berth_graph_bounds(graph, berth_graph_find(graph, name));
}

static int64_t extent_of(const berth_graph *graph, const char *name, uint32_t axis) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  OK(berth_graph_value(graph, berth_graph_find(graph, name), &info, &err));
  assert_true(axis < info.shape.rank);
  return info.shape.dim[axis].extent;
}

static void bounds_spread(void **state) {
  fixture f;
  (void)state;
  session_start_with(&f, points, 0, 0, 1);
  const berth_graph *bound = berth_plan_graph(berth_session_plan(f.session));
  assert_int_equal(bounds_of(bound, "nz"), 2);
  assert_int_equal(extent_of(bound, "nz", 1), 20);
  assert_int_equal(bounds_of(bound, "at"), 1);
  assert_int_equal(bounds_of(bound, "v"), 1);
  assert_int_equal(bounds_of(bound, "sq"), 1);
  assert_int_equal(bounds_of(bound, "sum"), 0);
  assert_int_equal(bounds_of(bound, "two"), 1);
  assert_int_equal(extent_of(bound, "two", 0), 40);
  assert_int_equal(extent_of(bound, "two", 1), 2);
  assert_int_equal(bounds_of(bound, "shape"), 0);
  assert_int_equal(bounds_of(bound, "x"), 0);
  assert_int_equal(bounds_of(f.graph, "nz"), 0); /* nothing is planned yet */
  assert_int_equal(berth_graph_bounds(bound, BERTH_VALUE_NONE), 0);
  session_finish(&f);
}

/* Every third element, every element, or none. */
static int64_t fill_points(float *x, int step) {
  int64_t n = 0;
  for (int i = 0; i < 20; i++) {
    x[i] = step > 0 && i % step == 0 ? (float)i + 1 : 0;
    n += x[i] != 0;
  }
  return n;
}

static void check_points(berth_session *session, const float *x, int64_t n) {
  int64_t at[40], two[80], shape[2], count;
  float v[20], soft[20], sum, expected = 0;
  berth_error err;
  size_t k = 0, size = (size_t)n;
  SHAPE(session, 0, n, 2);
  SHAPE(session, 1, n);
  SHAPE(session, 3, 2 * n, 2);
  SHAPE(session, 6, n);
  OK(berth_session_read(session, "at", at, size * 16, &err));
  OK(berth_session_read(session, "v", v, size * 4, &err));
  OK(berth_session_read(session, "two", two, size * 32, &err));
  OK(berth_session_read(session, "soft", soft, size * 4, &err));
  OK(berth_session_read(session, "sum", &sum, 4, &err));
  OK(berth_session_read(session, "shape", shape, 16, &err));
  OK(berth_session_read(session, "n", &count, 8, &err));
  for (int i = 0; i < 20; i++) {
    if (x[i] == 0) continue;
    assert_int_equal(at[2 * k] * 5 + at[2 * k + 1], i);
    assert_true(v[k++] == x[i]);
    expected += x[i] * x[i];
  }
  assert_memory_equal(two, at, size * 16);
  assert_memory_equal(two + 2 * n, at, size * 16);
  assert_true(sum == expected);
  assert_int_equal(shape[0], 2 * n);
  assert_int_equal(shape[1], 2);
  assert_int_equal(count, n);
  float total = 0;
  for (int64_t i = 0; i < n; i++) total += soft[i];
  assert_true(n == 0 || fabsf(total - 1) < 1e-5f);
}

static void run_points(fixture *f, int step) {
  berth_error err;
  float x[20];
  const int64_t n = fill_points(x, step);
  OK(berth_session_write(f->session, "x", x, sizeof x, &err));
  OK(berth_session_run(f->session, &err));
  check_points(f->session, x, n);
}

/* One session, other extents each time, and no memory taken. */
static void every_run_finds_its_own(void **state) {
  static const int steps[] = {3, 1, 0, 19, 2, 0, 1};
  (void)state;
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    fixture f;
    session_start_with(&f, points, 0, 0, threads);
    run_points(&f, 3);
    const uint64_t calls = f.alloc.calls;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) run_points(&f, steps[i]);
    assert_int_equal(f.alloc.calls, calls);
    session_finish(&f);
  }
}

/* Views of what a run finds, and a concat that has nothing to copy: their extents are found, too. */
static void views_have_the_extents_of_the_run(void **state) {
  static const char text[] =
      "graph \"views\" { input %x : f32[4, 5] input %e : f32[0]\n"
      "  %nz = non_zero(%x) %at = transpose(%nz) {perm = [1, 0]} %v = gather_nd(%x, %at) %a = neg(%v)\n"
      "  %c = concat(%e, %a) {axis = 0} %r = reshape(%c) {shape = [-1, 1]} %u = unsqueeze(%r) {axes = [0]}\n"
      "  %b = neg(%u) %one = concat(%b) {axis = 0} output \"r\" = %r output \"one\" = %one }";
  float x[20], r[20], one[20];
  berth_error err;
  (void)state;
  for (uint32_t flags = 0; flags <= BERTH_SESSION_CHECKED; flags += BERTH_SESSION_CHECKED) {
    fixture f;
    session_start_on(&f, text, "cpu", NULL, 0, 0, flags);
    for (int step = 3; step >= 0; step--) {
      size_t k = 0;
      const int64_t n = fill_points(x, step);
      OK(berth_session_write(f.session, "x", x, sizeof x, &err));
      OK(berth_session_run(f.session, &err));
      SHAPE(f.session, 0, n, 1);
      SHAPE(f.session, 1, 1, n, 1);
      OK(berth_session_read(f.session, "r", r, (size_t)n * sizeof *r, &err));
      OK(berth_session_read(f.session, "one", one, (size_t)n * sizeof *one, &err));
      for (int i = 0; i < 20; i++) {
        if (x[i] == 0) continue;
        assert_true(r[k] == -x[i] && one[k] == x[i]);
        k++;
      }
    }
    session_finish(&f);
  }
}

/* What follows from weights alone is found before the first run, in pieces where it is large. */
static void extents_that_follow_from_weights(void **state) {
  enum {
    COUNT = 40 * 500
  };
  static const char text[] =
      "graph \"weights\" { input %x : f32[40, 500] param %w : f32[40, 500]\n"
      "  %nz = non_zero(%w) %at = transpose(%nz) {perm = [1, 0]} %v = gather_nd(%w, %at)\n"
      "  %r = reshape(%v) {shape = [-1, 1]} %e = neg(%r) %g = gather_nd(%x, %at) output \"e\" = %e output \"g\" = %g }";
  static float w[COUNT], e[COUNT], g[COUNT];
  berth_error err;
  (void)state;
  for (int step = 1; step <= 3; step++) {
    fixture f;
    size_t k = 0;
    for (int i = 0; i < COUNT; i++) w[i] = i % step == 0 ? (float)i + 1 : 0;
    const int64_t n = (COUNT + step - 1) / step;
    session_start_with(&f, text, 0, 0, 1);
    OK(berth_session_set_param(f.session, "w", w, sizeof w, &err));
    OK(berth_session_write(f.session, "x", w, sizeof w, &err));
    OK(berth_session_run(f.session, &err));
    SHAPE(f.session, 0, n, 1);
    SHAPE(f.session, 1, n);
    OK(berth_session_read(f.session, "e", e, (size_t)n * sizeof *e, &err));
    OK(berth_session_read(f.session, "g", g, (size_t)n * sizeof *g, &err));
    for (int i = 0; i < COUNT; i += step, k++) assert_true(e[k] == -w[i] && g[k] == w[i]);
    session_finish(&f);
  }
}

static void checked_and_unshared_agree(void **state) {
  static const uint32_t flags[] = {0, BERTH_PLAN_NO_REUSE, BERTH_PLAN_INPUTS_DIE, BERTH_PLAN_NO_PASSES};
  (void)state;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    fixture f;
    berth_error err;
    berth_session_desc desc = BERTH_SESSION_DESC_INIT;
    berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
    session_start_with(&f, points, 0, flags[i], 2);
    OK(berth_plan_check(berth_session_plan(f.session), &err));
    berth_session_destroy(f.session);
    plan.flags = flags[i];
    desc.flags = BERTH_SESSION_CHECKED;
    desc.plan = &plan;
    OK(berth_session_create(f.graph, &desc, &f.session, &err));
    run_points(&f, 3);
    run_points(&f, 0);
    run_points(&f, 1);
    session_finish(&f);
  }
}

static void reading_goes_by_the_true_shape(void **state) {
  fixture f;
  berth_error err;
  float x[20], v[21] = {0};
  const void *data;
  size_t size;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  (void)state;
  session_start_with(&f, points, 0, 0, 1);
  SHAPE(f.session, 0, 20, 2); /* nothing ran yet */
  fill_points(x, 5);
  OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_output_data(f.session, 1, &data, &size, &err));
  assert_int_equal(size, 16);
  assert_true(((const float *)data)[3] == 16);
  v[4] = -1;
  OK(berth_session_read(f.session, "v", v, 80, &err)); /* room for the bound */
  assert_true(v[3] == 16 && v[4] == -1);
  REFUSED(berth_session_read(f.session, "v", v, 12, &err), "output 'v' is f32[4] in the last run and has 16 bytes");
  REFUSED(berth_session_read(f.session, "v", v, 84, &err), "80 are planned");
  REFUSED(berth_session_read(f.session, "v", NULL, 16, &err), "NULL");
  REFUSED(berth_session_output_shape(f.session, 9, &rank, dim, &err), "no output number 9");
  REFUSED(berth_session_output_shape(f.session, 0, NULL, dim, &err), "places");
  REFUSED(berth_session_output_shape(f.session, 0, &rank, NULL, &err), "places");
  REFUSED(berth_session_output_shape(NULL, 0, &rank, dim, &err), "NULL");
  session_finish(&f);
}

static void a_clone_is_in_the_same_state(void **state) {
  fixture f;
  berth_error err;
  berth_session *clone;
  float x[20];
  (void)state;
  session_start_with(&f, points, 0, 0, 1);
  run_points(&f, 3);
  OK(berth_session_clone(f.session, &clone, &err));
  const int64_t n = fill_points(x, 3);
  check_points(clone, x, n);
  berth_session_destroy(clone);
  session_finish(&f);
}

/* A clamp, a slice and an expand by counts that a run finds: shape arithmetic has bounds, and its fixed part folds. */
static const char counts[] =
    "graph \"g\" { input %x : f32[6] const %zero : i64[] = [0] const %one : i64[] = [1] const %three : i64[] = [3]\n"
    "  const %row : i64[1] = [2] const %first : i64[1] = [0] const %col : f32[1, 1] = [7]\n"
    "  %nz = non_zero(%x) %n = shape(%nz) {start = 1, end = 2} %s = reshape(%n) {shape = []}\n"
    "  %r = range(%zero, %s, %one) %less = min(%s, %three) %k = reshape(%less) {shape = [1]}\n"
    "  %top, %where = top_k(%x, %k) %to = concat(%n, %row) {axis = 0} %wide = expand(%col, %to)\n"
    "  %flat = reshape(%wide) {shape = [-1]} %whole = shape(%nz) %rank = gather(%whole, %first)\n"
    "  %fixed = expand(%col, %rank) %more = add(%n, %n) %half = sub(%more, %n) %ones = expand(%col, %half)\n"
    "  const %minus : i64[1] = [-1] const %unit : i64[1] = [1] %is = eq(%to, %minus) %not = ne(%to, %unit)\n"
    "  %target = where(%is, %unit, %to) %chosen = expand(%col, %target) %big = ge(%n, %row) %small = lt(%n, %row)\n"
    "  %any = where(%big, %n, %row) %either = expand(%col, %any) %less_or = where(%small, %row, %n)\n"
    "  %other = expand(%col, %less_or) %cut = narrow(%x, %first, %k) %fewer = sub(%n, %unit) %all = narrow(%x, %first, "
    "%fewer)\n"
    "  output \"r\" = %r output \"top\" = %top output \"wide\" = %wide output \"flat\" = %flat\n"
    "  output \"fixed\" = %fixed output \"ones\" = %ones\n"
    "  output \"chosen\" = %chosen output \"either\" = %either output \"other\" = %other\n"
    "  output \"cut\" = %cut output \"all\" = %all }";

static void shape_arithmetic_has_bounds(void **state) {
  static const float x[6] = {5, 0, 2, 0, 9, 1};
  fixture f;
  berth_error err;
  int64_t r[6];
  float top[3], wide[12];
  (void)state;
  session_start_with(&f, counts, 0, 0, 1);
  const berth_graph *bound = berth_plan_graph(berth_session_plan(f.session));
  assert_int_equal(extent_of(bound, "r", 0), 6);
  assert_int_equal(extent_of(bound, "top", 0), 3);
  assert_int_equal(bounds_of(bound, "top"), 1);
  assert_int_equal(extent_of(bound, "wide", 0), 6);
  assert_int_equal(bounds_of(bound, "wide"), 1);
  assert_int_equal(extent_of(bound, "flat", 0), 12);
  assert_int_equal(extent_of(bound, "ones", 1), 12); /* 2 n - n, seen as two numbers */
  assert_int_equal(bounds_of(bound, "fixed"), 0);
  assert_int_equal(bounds_of(bound, "chosen"), 1); /* -1 is surely not in the shape, so it stays as it is */
  assert_int_equal(extent_of(bound, "either", 1), 6);
  assert_int_equal(extent_of(bound, "cut", 0), 3); /* as many as the end can be */
  assert_int_equal(extent_of(bound, "all", 0), 6); /* the end may be -1, which is another one */
  OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  OK(berth_session_run(f.session, &err));
  SHAPE(f.session, 0, 4);
  SHAPE(f.session, 1, 3);
  SHAPE(f.session, 2, 4, 2);
  SHAPE(f.session, 3, 8);
  SHAPE(f.session, 5, 1, 4);
  SHAPE(f.session, 6, 4, 2);
  SHAPE(f.session, 7, 1, 4);
  SHAPE(f.session, 8, 1, 4);
  SHAPE(f.session, 9, 3);
  SHAPE(f.session, 10, 3);
  OK(berth_session_read(f.session, "r", r, 32, &err));
  OK(berth_session_read(f.session, "top", top, 12, &err));
  OK(berth_session_read(f.session, "wide", wide, 32, &err));
  for (int i = 0; i < 4; i++) assert_int_equal(r[i], i);
  assert_true(top[0] == 9 && top[1] == 5 && top[2] == 2);
  for (int i = 0; i < 8; i++) assert_true(wide[i] == 7);
  session_finish(&f);
}

/* Two counts that are only equal when the data is kind. */
static void extents_that_do_not_agree_are_errors(void **state) {
  static const char text[] =
      "graph \"g\" { input %x : f32[6] input %y : f32[6] %a = non_zero(%x) %b = non_zero(%y)\n"
      "  %s = add(%a, %b) output \"s\" = %s }";
  static const float some[6] = {0, 1, 1, 0, 0, 1}, others[6] = {1, 0, 0, 0, 1, 1}, fewer[6] = {1, 0, 0, 1, 0, 0};
  static const float single[6] = {0, 0, 1, 0, 0, 0};
  fixture f;
  berth_error err;
  int64_t s[6];
  (void)state;
  session_start_with(&f, text, 0, 0, 1);
  OK(berth_session_write(f.session, "x", some, sizeof some, &err));
  OK(berth_session_write(f.session, "y", others, sizeof others, &err));
  OK(berth_session_run(f.session, &err));
  SHAPE(f.session, 0, 1, 3);
  OK(berth_session_read(f.session, "s", s, 24, &err));
  assert_true(s[0] == 1 && s[1] == 6 && s[2] == 10);
  OK(berth_session_write(f.session, "y", fewer, sizeof fewer, &err));
  test_expect_error(berth_session_run(f.session, &err), BERTH_INVALID, &err,
                    "node 's' (add): shapes [1, 3] and [1, 2]");
  OK(berth_session_write(f.session, "y", single, sizeof single, &err)); /* broadcast: not in place of the single one */
  OK(berth_session_run(f.session, &err));
  SHAPE(f.session, 0, 1, 3);
  OK(berth_session_read(f.session, "s", s, 24, &err));
  assert_true(s[0] == 3 && s[1] == 4 && s[2] == 7);
  session_finish(&f);
}

static const char counted[] =
    "graph \"g\" { input %limit : i64[] const %zero : i64[] = [0] const %one : i64[] = [1]\n"
    "  %r = range(%zero, %limit, %one) {most = [n]} %m = mul(%r, %r) output \"m\" = %m }";

static void a_range_has_the_bound_that_it_is_given(void **state) {
  fixture f;
  berth_error err;
  int64_t limit = 4, m[8];
  (void)state;
  session_start_with(&f, counted, 8, 0, 1);
  assert_int_equal(berth_graph_shapes_depend(f.graph, berth_graph_find(f.graph, "limit")), BERTH_SHAPES_BOUNDED);
  OK(berth_session_write(f.session, "limit", &limit, 8, &err));
  OK(berth_session_run(f.session, &err));
  SHAPE(f.session, 0, 4);
  OK(berth_session_read(f.session, "m", m, 32, &err));
  assert_true(m[2] == 4 && m[3] == 9);
  limit = 9;
  OK(berth_session_write(f.session, "limit", &limit, 8, &err));
  test_expect_error(berth_session_run(f.session, &err), BERTH_INFEASIBLE, &err,
                    "'r' has an extent of 9 on axis 0 in this run, but at most 8 was planned");
  session_bind(f.session, 9);
  OK(berth_session_write(f.session, "limit", &limit, 8, &err));
  OK(berth_session_run(f.session, &err));
  SHAPE(f.session, 0, 9);
  limit = -3;
  OK(berth_session_write(f.session, "limit", &limit, 8, &err));
  OK(berth_session_run(f.session, &err));
  SHAPE(f.session, 0, 0);
  session_finish(&f);
}

static void what_has_no_bound_is_refused(void **state) {
  static const char *const texts[][2] = {
      {"graph \"g\" { input %x : f32[4] %m = reduce_max(%x) const %a : f32[1] = [0] const %d : f32[1] = [1]\n"
       "  %r = range(%a, %m, %d) output \"r\" = %r }",
       "input 'x', which must be fixed"},
      {"graph \"g\" { param %x : f32[1] %r = range(%x, %x, %x) output \"r\" = %r }", "`most`"},
      {"graph \"g\" { input %x : f32[6] %nz = non_zero(%x) %r = reshape(%nz) {shape = [-1, 4]} output \"r\" = %r }",
       "largest extents"},
      {"graph \"g\" { input %x : f32[6] %nz = non_zero(%x) %e = expand(%x, %nz) output \"e\" = %e }", "list"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    test_alloc alloc = {0};
    berth_error err;
    berth_session *session = NULL;
    berth_context *ctx = test_context_counting(&alloc);
    berth_graph *graph = NULL;
    if (berth_graph_parse(ctx, texts[i][0], strlen(texts[i][0]), &graph, &err) == BERTH_OK)
      assert_int_not_equal(berth_session_create(graph, NULL, &session, &err), BERTH_OK);
    if (strstr(err.message, texts[i][1]) == NULL) fail_msg("%zu: %s", i, err.message);
    berth_graph_destroy(graph);
    test_context_done(ctx, &alloc);
  }
}

static berth_status make_and_run(berth_context *ctx, berth_error *err, void *user) {
  static const float x[20] = {1, 0, 2};
  const char *text = user;
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  size_t size;
  void *data;
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, err);
  if (status == BERTH_OK) status = berth_session_input_data(session, 0, &data, &size, err);
  if (status == BERTH_OK) status = berth_session_write_at(session, 0, x, size, err);
  if (status == BERTH_OK) status = berth_session_run(session, err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return status;
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(make_and_run, (void *)(uintptr_t)points) > 50);
  assert_true(test_fail_each_allocation(make_and_run, (void *)(uintptr_t)counts) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bounds_spread),
      cmocka_unit_test(every_run_finds_its_own),
      cmocka_unit_test(views_have_the_extents_of_the_run),
      cmocka_unit_test(extents_that_follow_from_weights),
      cmocka_unit_test(checked_and_unshared_agree),
      cmocka_unit_test(reading_goes_by_the_true_shape),
      cmocka_unit_test(a_clone_is_in_the_same_state),
      cmocka_unit_test(shape_arithmetic_has_bounds),
      cmocka_unit_test(extents_that_do_not_agree_are_errors),
      cmocka_unit_test(a_range_has_the_bound_that_it_is_given),
      cmocka_unit_test(what_has_no_bound_is_refused),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
