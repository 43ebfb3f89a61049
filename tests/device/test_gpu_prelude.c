/* Steps of GPUs that depend on weights alone: they run once, and again when a weight changes. BERTH_TEST_DEVICE names a
 * device; without it, it is "interp". */

#include "device/gpu/recipe.h"
#include "session/session.h"
#include "support.h"

/* w and k are read by the prelude alone, k through a view of a part; u by the prelude and by runs. The constant is
 * spread once, too. */
static const char text[] =
    "graph \"p\" { input %x : f32[batch, 6] param %w : f32[4, 6] param %u : f32[6, 6] param %k : i8[3, 6] "
    "const %h : f32[1] = [0.5] "
    "%n = neg(%w) %nt = transpose(%n) {perm = [1, 0]} %a = matmul(%x, %nt) "
    "%s = softmax(%u) {axis = 1} %b = matmul(%x, %s) %c = matmul(%b, %u) "
    "%v = narrow(%k) {starts = [1], ends = [3]} %f = cast(%v) {to = \"f32\"} %g = mul(%f, %h) "
    "%gt = transpose(%g) {perm = [1, 0]} %d = matmul(%x, %gt) "
    "output \"a\" = %a output \"c\" = %c output \"d\" = %d }";
#define N_A(batch) ((batch)*4)
#define N_C(batch) ((batch)*6)
#define N_D(batch) ((batch)*2)
#define MOST 36

static berth_session *start(berth_context *ctx, const char *device, uint32_t flags, berth_graph **graph) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  const berth_dim dims[] = {{"batch", 3}};
  berth_session *session;
  berth_error err;
  desc.device = device;
  desc.flags = flags;
  plan.dims = dims;
  plan.n_dims = 1;
  desc.plan = &plan;
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, graph, &err));
  TEST_OK(berth_session_create(*graph, &desc, &session, &err));
  return session;
}

static void set_weights(berth_session *session, uint64_t seed) {
  float w[24], u[36];
  int8_t k[18];
  berth_error err;
  for (int i = 0; i < 24; i++) w[i] = test_random_f32(&seed);
  for (int i = 0; i < 36; i++) u[i] = test_random_f32(&seed);
  for (int i = 0; i < 18; i++) k[i] = (int8_t)(test_random(&seed) % 255);
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_set_param(session, "u", u, sizeof u, &err));
  TEST_OK(berth_session_set_param(session, "k", k, sizeof k, &err));
}

static void compute(berth_session *session, size_t batch, float *out) {
  float x[MOST];
  uint64_t seed = 3;
  berth_error err;
  for (size_t i = 0; i < batch * 6; i++) x[i] = test_random_f32(&seed);
  TEST_OK(berth_session_write(session, "x", x, batch * 6 * sizeof *x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "a", out, N_A(batch) * sizeof *out, &err));
  TEST_OK(berth_session_read(session, "c", out + N_A(batch), N_C(batch) * sizeof *out, &err));
  TEST_OK(berth_session_read(session, "d", out + N_A(batch) + N_C(batch), N_D(batch) * sizeof *out, &err));
}

/* Both have the same weights by now. */
static void expect_same(berth_session *session, berth_session *cpu, size_t batch) {
  float got[6 * 12], want[6 * 12];
  compute(session, batch, got);
  compute(cpu, batch, want);
  for (size_t i = 0; i < batch * 12; i++) {
    const float difference = got[i] - want[i], tolerance = 1e-5f * (1 + (want[i] < 0 ? -want[i] : want[i]));
    assert_true(difference <= tolerance && -difference <= tolerance);
  }
}

static void weights_may_change(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graphs[2];
  (void)state;
  for (int checked = 0; checked < 2; checked++) {
    berth_session *session = start(ctx, test_gpu(), checked ? BERTH_SESSION_CHECKED : 0, &graphs[0]);
    berth_session *cpu = start(ctx, "cpu", 0, &graphs[1]);
    for (uint64_t seed = 1; seed < 4; seed++) {
      set_weights(session, seed);
      set_weights(cpu, seed);
      expect_same(session, cpu, 3);
      expect_same(session, cpu, 3);
    }
    berth_session_destroy(session);
    berth_session_destroy(cpu);
    for (int i = 0; i < 2; i++) berth_graph_destroy(graphs[i]);
  }
  test_context_done(ctx, &alloc);
}

/* Another shape uses what was prepared; and after a change all of them see it. */
static void shapes_share_what_was_prepared(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graphs[2];
  berth_error err;
  (void)state;
  berth_session *both[2] = {start(ctx, test_gpu(), 0, &graphs[0]), start(ctx, "cpu", 0, &graphs[1])};
  for (uint64_t seed = 1; seed < 3; seed++) {
    for (int i = 0; i < 2; i++) set_weights(both[i], seed);
    for (int64_t batch = 2; batch <= 6; batch += 2) {
      const berth_dim dims[] = {{"batch", batch}};
      for (int i = 0; i < 2; i++) TEST_OK(berth_session_bind(both[i], dims, 1, &err));
      expect_same(both[0], both[1], (size_t)batch);
    }
  }
  for (int i = 0; i < 2; i++) {
    berth_session_destroy(both[i]);
    berth_graph_destroy(graphs[i]);
  }
  test_context_done(ctx, &alloc);
}

/* One shape spreads w in its prelude, and has it outside the arena; the other at every run, and has it inside. Each
 * sees weights that were set under the other one. */
static void set_under_any_shape(berth_context *ctx, const char *name, int64_t first, int64_t second) {
  static const char spread[] =
      "graph \"s\" { input %x : f32[batch, 300] param %w : i16[1, 300] const %one : i64[1] = [1] "
      "%n = shape(%x) {end = 1} %r = concat(%n, %one) {axis = 0} %e = tile(%w, %r) %f = cast(%e) {to = \"f32\"} "
      "%y = sub(%f, %x) output \"y\" = %y }";
  static float x[60 * 300], y[60 * 300];
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_dim dims[] = {{"batch", first}};
  berth_session *session, *clone;
  berth_graph *graph;
  berth_error err;
  int16_t w[300];
  plan.dims = dims;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = name;
  TEST_OK(berth_graph_parse(ctx, spread, sizeof spread - 1, &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  for (int16_t round = 0; round < 8; round++) {
    dims[0].extent = round % 2 == 0 ? first : second;
    TEST_OK(berth_session_bind(session, dims, 1, &err));
    if (round % 3 == 0) { /* under one, then under the other */
      for (int16_t i = 0; i < 300; i++) w[i] = (int16_t)(i - 100 * round);
      TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
    }
    TEST_OK(berth_session_write(session, "x", x, (size_t)dims[0].extent * 300 * sizeof *x, &err));
    TEST_OK(berth_session_clone(session, &clone, &err));
    for (int i = 0; i < 2; i++) {
      berth_session *one = i == 0 ? session : clone;
      TEST_OK(berth_session_run(one, &err));
      TEST_OK(berth_session_read(one, "y", y, (size_t)dims[0].extent * 300 * sizeof *y, &err));
      for (int64_t k = 0; k < dims[0].extent * 300; k++) assert_true(y[k] == (float)w[k % 300]);
    }
    berth_session_destroy(clone);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

static void weights_are_set_for_every_shape(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  (void)state;
  for (int i = 0; i < 2; i++) {
    set_under_any_shape(ctx, i == 0 ? "cpu" : test_gpu(), 2, 60);
    set_under_any_shape(ctx, i == 0 ? "cpu" : test_gpu(), 60, 2);
  }
  test_context_done(ctx, &alloc);
}

/* More than goes to a device at once: sums of whole numbers, which are exact. */
static void large_weights_go_in_pieces(void **state) {
  static const char large[] =
      "graph \"l\" { input %x : f32[1, 1100] param %w : i8[1100, 1000] %f = cast(%w) {to = \"f32\"} "
      "%y = matmul(%x, %f) output \"y\" = %y }";
  static int8_t w[1100 * 1000];
  static float x[1100], y[1000];
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  (void)state;
  berth_context *ctx = test_context();
  for (int i = 0; i < 1100 * 1000; i++) w[i] = (int8_t)(i % 251 - 125);
  for (int i = 0; i < 1100; i++) x[i] = (float)(i % 3 - 1);
  desc.device = test_gpu();
  TEST_OK(berth_graph_parse(ctx, large, sizeof large - 1, &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
  for (int c = 0; c < 1000; c++) {
    int32_t sum = 0;
    for (int i = 0; i < 1100; i++) sum += (i % 3 - 1) * w[i * 1000 + c];
    assert_true(y[c] == (float)sum);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

typedef struct seen {
  const berth_graph *graph;
  uint32_t n, n_once;
} seen;

static void see(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  seen *s = user;
  berth_node_info info = BERTH_NODE_INFO_INIT;
  berth_error err;
  (void)step, (void)out, (void)n_out, (void)ms;
  TEST_OK(berth_graph_node(s->graph, node, &info, &err));
  s->n++;
  for (size_t i = 0; i < 4; i++) {
    static const char *const once[] = {"neg", "softmax", "cast", "chain"};
    if (strcmp(info.op, once[i]) == 0) s->n_once++;
  }
}

/* A run is the four products alone, and asks for nothing. */
static void runs_do_the_rest(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph;
  float out[36];
  berth_error err;
  (void)state;
  berth_session *session = start(ctx, test_gpu(), 0, &graph);
  set_weights(session, 1);
  compute(session, 3, out);
  const uint64_t calls = alloc.calls;
  seen s = {.graph = berth_plan_graph(berth_session_plan(session))};
  berth_session_observe(session, see, &s);
  TEST_OK(berth_session_run(session, &err));
  assert_int_equal(s.n, 4);
  assert_int_equal(s.n_once, 0);
  assert_int_equal(alloc.calls, calls);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* What only the prelude reads has no bytes on the device; what runs read too has. */
static void weights_are_there_once(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  static const struct {
    const char *name;
    bool is_inside;
  } wanted[] = {{"w", false}, {"k", false}, {"u", true}};
  berth_graph *graph;
  (void)state;
  berth_session *session = start(ctx, test_gpu(), 0, &graph);
  const berth_plan *plan = berth_session_plan(session);
  for (size_t i = 0; i < 3; i++) {
    const berth_value value = berth_graph_find(berth_plan_graph(plan), wanted[i].name);
    assert_int_equal(plan->places[value].buffer != BERTH__NO_BUFFER, wanted[i].is_inside);
  }
  assert_true(plan->n_prelude > 0);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* A plan with a prelude is as large as the uniform one that needs no device. */
static void sizes_agree(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const berth_dim dims[] = {{"batch", 3}};
  uint64_t sizes[2];
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  for (int i = 0; i < 2; i++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.dims = dims;
    desc.n_dims = 1;
    desc.device = i == 0 ? "cpu" : "interp";
    desc.flags |= i == 0 ? BERTH_PLAN_F32_UNIFORM : 0;
    TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
    sizes[i] = berth_plan_arena_size(plan);
    berth_plan_destroy(plan);
  }
  assert_int_equal(sizes[0], sizes[1]);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static berth_status use_once(berth_context *ctx, berth_error *err, void *user) {
  static const char small[] =
      "graph \"p\" { input %x : f32[2, 3] param %w : f32[3, 4] %n = neg(%w) %a = matmul(%x, %n) output \"a\" = %a }";
  const float w[12] = {1}, x[6] = {2};
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session = NULL;
  berth_graph *graph;
  (void)user;
  desc.device = test_gpu();
  BERTH__TRY(berth_graph_parse(ctx, small, sizeof small - 1, &graph, err));
  berth_status status = berth_session_create(graph, &desc, &session, err);
  if (status == BERTH_OK) status = berth_session_set_param(session, "w", w, sizeof w, err);
  if (status == BERTH_OK) status = berth_session_write(session, "x", x, sizeof x, err);
  if (status == BERTH_OK) status = berth_session_run(session, err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return status;
}

static void memory_that_runs_out(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(use_once, NULL) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_may_change),
      cmocka_unit_test(shapes_share_what_was_prepared),
      cmocka_unit_test(weights_are_set_for_every_shape),
      cmocka_unit_test(large_weights_go_in_pieces),
      cmocka_unit_test(runs_do_the_rest),
      cmocka_unit_test(weights_are_there_once),
      cmocka_unit_test(sizes_agree),
      cmocka_unit_test(memory_that_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
