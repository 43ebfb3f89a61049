/* Nodes that a device has no kernels for: an error, or steps on the CPU between transfers. BERTH_TEST_DEVICE names
 * another device than the one that interprets. */
#include <stdatomic.h>

#include "support.h"

/* An op that no device but the CPU has kernels for: a running count of elements, times x. */
static berth_status ramp_infer(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status ramp_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  int64_t count = 1;
  for (uint32_t axis = 0; axis < call->in[0].rank; axis++) count *= call->in[0].dim[axis];
  for (int64_t i = 0; i < count; i++) {
    if (call->in[0].type == BERTH_I64)
      ((int64_t *)call->out[0].data)[i] = ((const int64_t *)call->in[0].data)[i] * i;
    else
      ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] * (float)i;
  }
  return BERTH_OK;
}

typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
} fixture;

static berth_status start(fixture *f, const char *text, uint32_t flags) {
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_error err;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  op.name = "test.ramp";
  op.min_in = op.max_in = 1;
  op.infer = ramp_infer;
  op.kernel = ramp_kernel;
  TEST_OK(berth_op_register(f->ctx, &op, &err));
  TEST_OK(berth_graph_parse(f->ctx, text, strlen(text), &f->graph, &err));
  plan.flags |= flags;
  desc.plan = &plan;
  desc.device = test_gpu();
  return berth_session_create(f->graph, &desc, &f->session, &f->err);
}

static void finish(fixture *f) {
  berth_session_destroy(f->session);
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
}

static const char split[] =
    "graph \"g\" { input %x : f32[2, 3] %t = transpose(%x) {perm = [1, 0]} %r = test.ramp(%t) %y = relu(%r) "
    "output \"y\" = %y }";

static void without_fallback_it_is_an_error(void **state) {
  (void)state;
  fixture f;
  test_expect_error(start(&f, split, 0), BERTH_UNSUPPORTED, &f.err, "'r' (test.ramp)");
  finish(&f);
}

static void with_it_the_step_runs_on_the_cpu(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  const float x[6] = {1, -2, 3, 4, 5, -6}, want[6] = {0, 4, 0, 15, 12, 0};
  float y[6];
  TEST_OK(start(&f, split, BERTH_PLAN_FALLBACK_CPU));
  TEST_OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  const uint64_t before = f.alloc.calls;
  TEST_OK(berth_session_run(f.session, &err));
  assert_int_equal(f.alloc.calls, before);
  TEST_OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  assert_memory_equal(y, want, sizeof y);
  finish(&f);
}

/* Elements are converted on the way down and up. */
static void other_types_fall_back_too(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  const int64_t x[3] = {7, -8, 9}, want[3] = {0, 8, -18};
  int64_t y[3];
  TEST_OK(start(&f, "graph \"g\" { input %x : i64[3] %n = neg(%x) %r = test.ramp(%n) output \"y\" = %r }",
                BERTH_PLAN_FALLBACK_CPU));
  TEST_OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(f.session, &err));
  TEST_OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  assert_memory_equal(y, want, sizeof y);
  finish(&f);
}

static void transfers_are_shown(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  berth_segment segments[4] = {BERTH_SEGMENT_INIT};
  uint32_t n;
  TEST_OK(start(&f, split, BERTH_PLAN_FALLBACK_CPU));
  TEST_OK(berth_plan_segments(berth_session_plan(f.session), segments, 4, &n, &err));
  assert_int_equal(n, 3);
  assert_string_equal(segments[0].device, test_gpu());
  assert_int_equal(segments[0].bytes_down + segments[0].bytes_up, 0);
  assert_string_equal(segments[1].device, "cpu");
  assert_int_equal(segments[1].bytes_down, 24);
  assert_int_equal(segments[1].bytes_up, 24);
  assert_string_equal(segments[2].device, test_gpu());
  TEST_OK(berth_plan_segments(berth_session_plan(f.session), NULL, 0, &n, &err));
  assert_int_equal(n, 3);
  test_expect_error(berth_plan_segments(NULL, NULL, 0, &n, &err), BERTH_INVALID, &err, NULL);
  finish(&f);
}

/* Which kernel runs each step, and where. */
static void kernels_are_named(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  berth_step_info steps[16] = {BERTH_STEP_INFO_INIT};
  uint32_t n, on_host = 0;
  TEST_OK(start(&f, split, BERTH_PLAN_FALLBACK_CPU));
  const berth_plan *plan = berth_session_plan(f.session);
  TEST_OK(berth_plan_steps(plan, NULL, 0, &n, &err));
  assert_true(n >= 3 && n <= 16);
  TEST_OK(berth_plan_steps(plan, steps, 16, &n, &err));
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(steps[i].node, berth_plan_step_node(plan, i));
    assert_int_equal(steps[i].kernel[0] != '\0', steps[i].n_dispatches > 0);
    assert_int_equal(steps[i].kind == BERTH_KERNEL_NONE, steps[i].n_dispatches == 0);
    on_host += strcmp(steps[i].device, "cpu") == 0;
  }
  assert_int_equal(on_host, 1);
  steps[0].struct_size = 0;
  test_expect_error(berth_plan_steps(plan, steps, 16, &n, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_steps(NULL, NULL, 0, &n, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_steps(plan, NULL, 0, NULL, &err), BERTH_INVALID, &err, NULL);
  finish(&f);
}

/* A plan for a GPU of a graph that no GPU runs: a session plans it again. */
static void kernels_elsewhere_are_not_named(void **state) {
  static const char text[] = "graph \"g\" { input %x : f32[5] %n = non_zero(%x) output \"n\" = %n }";
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_step_info step = BERTH_STEP_INFO_INIT;
  berth_error err;
  uint32_t n;
  (void)state;
  desc.device = "interp";
  desc.flags = BERTH_PLAN_FALLBACK_CPU;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_steps(plan, &step, 1, &n, &err));
  assert_int_equal(step.kind, BERTH_KERNEL_ELSEWHERE);
  assert_string_equal(step.device, "cpu");
  berth_plan_destroy(plan);
  desc.device = "cpu";
  desc.flags = BERTH_PLAN_REFERENCE;
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_steps(plan, &step, 1, &n, &err));
  assert_int_equal(step.kind, BERTH_KERNEL_REFERENCE);
  assert_string_equal(step.kernel, "non_zero");
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* Extents that only a run knows: the whole graph falls back. */
static void a_graph_that_cannot_be_split_runs_on_the_cpu(void **state) {
  static const char text[] = "graph \"g\" { input %x : f32[5] %n = non_zero(%x) output \"n\" = %n }";
  (void)state;
  fixture f;
  berth_error err;
  const float x[5] = {0, 1, 0, 2, 0};
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  test_expect_error(start(&f, text, 0), BERTH_UNSUPPORTED, &f.err, "only a run");
  finish(&f);
  TEST_OK(start(&f, text, BERTH_PLAN_FALLBACK_CPU));
  TEST_OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(f.session, &err));
  TEST_OK(berth_session_output_shape(f.session, 0, &rank, dim, &err));
  assert_int_equal(dim[1], 2);
  finish(&f);
}

/* What 32 bits do not hold is an error where it is written, not a wrong answer. */
static void integers_that_do_not_fit_are_refused(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  const int64_t x[2] = {1, (int64_t)1 << 40}, good[2] = {INT32_MAX, INT32_MIN};
  int64_t y[2];
  TEST_OK(start(&f, "graph \"g\" { input %x : i64[2] %y = identity(%x) output \"y\" = %y }", 0));
  test_expect_error(berth_session_write(f.session, "x", x, sizeof x, &err), BERTH_INVALID, &err, "1099511627776");
  TEST_OK(berth_session_write(f.session, "x", good, sizeof good, &err));
  TEST_OK(berth_session_run(f.session, &err));
  TEST_OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  assert_memory_equal(y, good, sizeof y);
  finish(&f);
}

/* ---- Threads ---- */

static atomic_int n_pieces;

static int64_t pieces_items(const berth_op_call *call) { return call->in[0].dim[0]; }

static berth_status pieces_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  atomic_fetch_add(&n_pieces, 1);
  for (int64_t i = call->begin; i < call->end; i++) {
    ((float *)call->scratch)[0] = ((const float *)call->in[0].data)[i];
    ((float *)call->out[0].data)[i] = ((float *)call->scratch)[0] + 1;
  }
  return BERTH_OK;
}

static uint64_t pieces_scratch(const berth_op_call *call) {
  (void)call;
  return sizeof(float);
}

#define N_PIECES (1 << 18)

/* Steps on the host are shared out over the session's threads, each with scratch of its own. */
static void the_host_uses_its_threads(void **state) {
  (void)state;
  static const char graph_text[] =
      "graph \"t\" { input %x : f32[262144] %p = test.pieces(%x) %y = relu(%p) output \"y\" = %y }";
  static float x[N_PIECES], y[N_PIECES];
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  berth_graph *graph;
  berth_session *session;
  berth_context *ctx = test_context();
  op.name = "test.pieces";
  op.min_in = op.max_in = 1;
  op.infer = ramp_infer;
  op.items = pieces_items;
  op.scratch = pieces_scratch;
  op.kernel = pieces_kernel;
  TEST_OK(berth_op_register(ctx, &op, &err));
  TEST_OK(berth_graph_parse(ctx, graph_text, sizeof graph_text - 1, &graph, &err));
  plan.flags |= BERTH_PLAN_FALLBACK_CPU;
  desc.plan = &plan;
  desc.device = test_gpu();
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    desc.n_threads = threads;
    TEST_OK(berth_session_create(graph, &desc, &session, &err));
    for (int i = 0; i < N_PIECES; i++) x[i] = (float)i;
    TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
    atomic_store(&n_pieces, 0);
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
    for (int i = 0; i < N_PIECES; i++) assert_true(y[i] == (float)i + 1);
    assert_true(threads == 1 ? atomic_load(&n_pieces) == 1 : atomic_load(&n_pieces) >= 3);
    berth_session_destroy(session);
  }
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_fallback_it_is_an_error),
      cmocka_unit_test(the_host_uses_its_threads),
      cmocka_unit_test(with_it_the_step_runs_on_the_cpu),
      cmocka_unit_test(other_types_fall_back_too),
      cmocka_unit_test(transfers_are_shown),
      cmocka_unit_test(kernels_are_named),
      cmocka_unit_test(kernels_elsewhere_are_not_named),
      cmocka_unit_test(a_graph_that_cannot_be_split_runs_on_the_cpu),
      cmocka_unit_test(integers_that_do_not_fit_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
