/* Cancelling from another thread: a plan that would take long, and a run that would. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support.h"

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

typedef struct later {
  berth_cancel *cancel;
  _Atomic int *go; /* waits until this is not 0; NULL: for `moment` only */
  double moment;   /* milliseconds */
  pthread_t thread;
} later;

static void *request_later(void *user) {
  const later *l = user;
  const struct timespec moment = {.tv_sec = (time_t)(l->moment / 1e3), .tv_nsec = (long)(l->moment * 1e6) % 1000000000};
  while (l->go != NULL && atomic_load(l->go) == 0) {
  }
  if (l->go == NULL) nanosleep(&moment, NULL);
  berth_cancel_request(l->cancel);
  return NULL;
}

static void start(later *l) { assert_int_equal(pthread_create(&l->thread, NULL, request_later, l), 0); }

/* ---- Plans ---- */

#define N_VALUES 600

/* Values of many sizes, each read by a few later ones: packing them well takes long. */
static berth_graph *random_dag(berth_context *ctx) {
  uint64_t seed = 11;
  berth_error err;
  berth_graph *graph;
  berth_value values[N_VALUES], sums[N_VALUES];
  TEST_OK(berth_graph_create(ctx, "dag", &graph, &err));
  TEST_OK(berth_graph_input(graph, "x", BERTH_F32, BERTH_SHAPE(1), &values[0], &err));
  for (uint32_t i = 1; i < N_VALUES; i++) {
    const int64_t axes = 0, extent = 1 + (int64_t)(test_random(&seed) % 5000);
    const uint32_t reach = i < 40 ? i : 40;
    const berth_dim to = {.extent = extent};
    const berth_attr shape = berth_attr_dims("shape", &to, 1), axis = berth_attr_ints("axes", &axes, 1);
    berth_value pair[2] = {values[i - 1 - test_random(&seed) % reach], values[i - 1 - test_random(&seed) % reach]},
                wide;
    if (pair[0] != values[0] && i > 1) pair[0] = sums[i - 1];
    TEST_OK(berth_graph_add(graph, "add", pair, 2, NULL, 0, &pair[0], 1, &err));
    TEST_OK(berth_graph_add(graph, "exp", pair, 1, NULL, 0, &pair[0], 1, &err));
    TEST_OK(berth_graph_add(graph, "expand", pair, 1, &shape, 1, &wide, 1, &err));
    TEST_OK(berth_graph_add(graph, "exp", &wide, 1, NULL, 0, &wide, 1, &err));
    TEST_OK(berth_graph_add(graph, "reduce_sum", &wide, 1, &axis, 1, &sums[i], 1, &err));
    const berth_attr back = berth_attr_dims("shape", &(berth_dim){.extent = 1}, 1);
    TEST_OK(berth_graph_add(graph, "reshape", &sums[i], 1, &back, 1, &sums[i], 1, &err));
    values[i] = sums[i];
  }
  TEST_OK(berth_graph_output(graph, "y", values[N_VALUES - 1], &err));
  return graph;
}

static void a_plan_is_stopped(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = random_dag(ctx);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_cancel *cancel;
  berth_plan *plan;
  berth_error err;
  TEST_OK(berth_cancel_create(ctx, &cancel, &err));
  desc.cancel = cancel;
  desc.flags = BERTH_PLAN_NO_PASSES | BERTH_PLAN_REFERENCE;
  double begin = now_ms();
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err)); /* a token that nobody uses changes nothing */
  const double whole = now_ms() - begin;
  const uint64_t size = berth_plan_arena_size(plan);
  berth_plan_destroy(plan);
  print_message("# a whole plan takes %.0f ms\n", whole);
  berth_status status = BERTH_OK;
  for (int i = 0; i < 100 && status == BERTH_OK; i++) { /* a busy machine may wake the other thread too late */
    later l = {.cancel = cancel, .moment = whole / 8};
    berth_cancel_clear(cancel);
    begin = now_ms();
    start(&l);
    status = berth_plan_create(graph, &desc, &plan, &err);
    print_message("# it was stopped after %.0f ms\n", now_ms() - begin);
    pthread_join(l.thread, NULL);
    if (status == BERTH_OK) berth_plan_destroy(plan);
  }
  test_expect_error(status, BERTH_CANCELLED, &err, "planning was cancelled");
  assert_null(plan);
  assert_true(berth_cancel_is_requested(cancel));
  test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_CANCELLED, &err, "cancelled");
  berth_cancel_clear(cancel);
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  assert_int_equal(berth_plan_arena_size(plan), size);
  berth_plan_destroy(plan);
  berth_cancel_destroy(cancel);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* ---- Runs ---- */

static _Atomic int has_begun, waits = 1;

static berth_status infer_same(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

/* Waits until somebody asks for the run to end: without that it would take for ever. */
static berth_status await_request(const berth_op_call *call, berth_error *err) {
  (void)err;
  atomic_store(&has_begun, 1);
  while (atomic_load(&waits) && !berth_cancel_is_requested(call->user)) {
  }
  memcpy(call->out[0].data, call->in[0].data, 4 * sizeof(float));
  return BERTH_OK;
}

static uint32_t n_steps;
static void count_step(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  (void)user, (void)step, (void)node, (void)out, (void)n_out, (void)ms;
  n_steps++;
}

static void a_run_is_stopped(void **state) {
  (void)state;
  static const char text[] =
      "graph \"g\" { input %x : f32[4] %a = test.await(%x) %b = exp(%a) %c = softmax(%b) output \"c\" = %c }";
  const float x[4] = {1, 2, 3, 4};
  float y[4], want[4];
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_cancel *cancel;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  TEST_OK(berth_cancel_create(ctx, &cancel, &err));
  op.name = "test.await";
  op.min_in = op.max_in = 1;
  op.infer = infer_same;
  op.kernel = await_request;
  op.user = cancel;
  TEST_OK(berth_op_register(ctx, &op, &err));
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  desc.cancel = cancel;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  berth_session_observe(session, count_step, NULL);
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  later l = {.cancel = cancel, .go = &has_begun};
  start(&l);
  test_expect_error(berth_session_run(session, &err), BERTH_CANCELLED, &err, "the run was cancelled");
  pthread_join(l.thread, NULL);
  assert_int_equal(n_steps, 1); /* the step that was under way; no other */
  test_expect_error(berth_session_run(session, &err), BERTH_CANCELLED, &err, "cancelled"); /* until it is cleared */
  test_expect_error(berth_session_submit(session, &err), BERTH_CANCELLED, &err, "cancelled");
  assert_int_equal(n_steps, 1);
  berth_cancel_clear(cancel);
  atomic_store(&waits, 0); /* the session stays usable */
  for (int i = 0; i < 2; i++) {
    TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "c", i == 0 ? want : y, sizeof y, &err));
  }
  assert_memory_equal(y, want, sizeof y);
  assert_true(want[3] > 0.9f);
  assert_true(n_steps >= 1 + 2 * 2);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_cancel_destroy(cancel);
  berth_cancel_destroy(NULL);
  test_context_done(ctx, &alloc);
}

/* A session that is being made, and one that is being bound, are planned under its token. */
static void binding_is_stopped(void **state) {
  (void)state;
  static const char text[] = "graph \"g\" { input %x : f32[n] %b = exp(%x) output \"b\" = %b }";
  berth_dim n = {.name = "n", .extent = 2};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_cancel *cancel;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  TEST_OK(berth_cancel_create(ctx, &cancel, &err));
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.cancel = cancel;
  berth_cancel_request(cancel);
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_CANCELLED, &err, NULL);
  assert_null(session);
  berth_cancel_clear(cancel);
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  n.extent = 7;
  berth_cancel_request(cancel);
  test_expect_error(berth_session_bind(session, &n, 1, &err), BERTH_CANCELLED, &err, NULL);
  berth_cancel_clear(cancel);
  assert_int_equal(berth_session_n_bindings(session), 1);
  TEST_OK(berth_session_bind(session, &n, 1, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_cancel_destroy(cancel);
  test_expect_error(berth_cancel_create(NULL, &cancel, &err), BERTH_INVALID, &err, "context");
  test_expect_error(berth_cancel_create(ctx, NULL, &err), BERTH_INVALID, &err, "pointer");
  test_context_done(ctx, &alloc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_plan_is_stopped),
      cmocka_unit_test(a_run_is_stopped),
      cmocka_unit_test(binding_is_stopped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
