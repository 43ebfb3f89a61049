/* A run in two halves, on the CPU and on the interpreter of GPU kernels. */
#include "sessions.h"

static const char *const devices[] = {"cpu", "interp"};
#define N_DEVICES (sizeof devices / sizeof *devices)

static void start_on(fixture *f, const char *device) {
  const berth_dim n = {.name = "n", .extent = 2};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  f->graph = session_parse(f->ctx, session_text);
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = device;
  OK(berth_session_create(f->graph, &desc, &f->session, &err));
  OK(berth_session_set_param(f->session, "w", session_w, sizeof session_w, &err));
}

static void halves_make_a_whole(void **state) {
  (void)state;
  for (size_t d = 0; d < N_DEVICES; d++) {
    fixture f;
    berth_error err;
    float want[12], got[12];
    start_on(&f, devices[d]);
    session_run(f.session, 2, want);
    OK(berth_session_write(f.session, "x", session_x, 2 * 8 * sizeof(float), &err));
    const uint64_t before = atomic_load(&f.alloc.calls);
    for (int i = 0; i < 3; i++) {
      OK(berth_session_submit(f.session, &err));
      OK(berth_session_wait(f.session, &err));
    }
    assert_int_equal(atomic_load(&f.alloc.calls), before); /* a run allocates nothing */
    OK(berth_session_read(f.session, "y", got, sizeof got, &err));
    assert_memory_equal(got, want, sizeof want);
    session_finish(&f);
  }
}

static void nothing_else_goes_on_meanwhile(void **state) {
  (void)state;
  for (size_t d = 0; d < N_DEVICES; d++) {
    const berth_dim n = {.name = "n", .extent = 3};
    fixture f;
    berth_error err;
    berth_session *clone;
    float y[12];
    void *data;
    const void *out;
    size_t size;
    uint32_t rank;
    int64_t dim[BERTH_MAX_RANK];
    start_on(&f, devices[d]);
    REFUSED(berth_session_wait(f.session, &err), "submit first");
    OK(berth_session_write(f.session, "x", session_x, 2 * 8 * sizeof(float), &err));
    OK(berth_session_submit(f.session, &err));
    REFUSED(berth_session_submit(f.session, &err), "wait first");
    REFUSED(berth_session_run(f.session, &err), "wait first");
    REFUSED(berth_session_write(f.session, "x", session_x, 2 * 8 * sizeof(float), &err), "wait first");
    REFUSED(berth_session_write_at(f.session, 0, session_x, 2 * 8 * sizeof(float), &err), "wait first");
    REFUSED(berth_session_read(f.session, "y", y, sizeof y, &err), "wait first");
    REFUSED(berth_session_read_at(f.session, 0, y, sizeof y, &err), "wait first");
    REFUSED(berth_session_output_shape(f.session, 0, &rank, dim, &err), "wait first");
    REFUSED(berth_session_input_data(f.session, 0, &data, &size, &err), "wait first");
    REFUSED(berth_session_output_data(f.session, 0, &out, &size, &err), "wait first");
    REFUSED(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err), "wait first");
    REFUSED(berth_session_use(f.session, "x", session_x, 2 * 8 * sizeof(float), &err), "wait first");
    REFUSED(berth_session_bind(f.session, &n, 1, &err), "wait first");
    REFUSED(berth_session_drop(f.session, &n, 1, &err), "wait first");
    REFUSED(berth_session_clone(f.session, &clone, &err), "wait first");
    OK(berth_session_wait(f.session, &err)); /* all of that did no harm */
    REFUSED(berth_session_wait(f.session, &err), "submit first");
    OK(berth_session_read(f.session, "y", y, sizeof y, &err));
    session_finish(&f);
  }
  berth_error err;
  REFUSED(berth_session_submit(NULL, &err), "NULL");
  REFUSED(berth_session_wait(NULL, &err), "NULL");
}

static void a_session_may_go_with_its_run(void **state) {
  (void)state;
  for (size_t d = 0; d < N_DEVICES; d++) {
    fixture f;
    berth_error err;
    start_on(&f, devices[d]);
    OK(berth_session_write(f.session, "x", session_x, 2 * 8 * sizeof(float), &err));
    OK(berth_session_submit(f.session, &err));
    session_finish(&f); /* destroys it; nothing leaks */
  }
}

static void a_run_without_weights_is_not_submitted(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  const berth_dim n = {.name = "n", .extent = 2};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(&f, 0, sizeof f);
  f.ctx = test_context_counting(&f.alloc);
  f.graph = session_parse(f.ctx, session_text);
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  OK(berth_session_create(f.graph, &desc, &f.session, &err));
  REFUSED(berth_session_submit(f.session, &err), "'w' has no weights");
  REFUSED(berth_session_wait(f.session, &err), "submit first");
  session_finish(&f);
}

/* What goes wrong in a run is told by wait, and the next run is a new one. */
static int fails;
static berth_status infer_same(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status sometimes(const berth_op_call *call, berth_error *err) {
  if (fails) {
    if (err != NULL) {
      err->status = BERTH_INFEASIBLE;
      strcpy(err->message, "not today");
    }
    return BERTH_INFEASIBLE;
  }
  memcpy(call->out[0].data, call->in[0].data, 4 * sizeof(float));
  return BERTH_OK;
}

static void errors_are_told_by_wait(void **state) {
  (void)state;
  static const char text[] = "graph \"g\" { input %x : f32[4] %y = test.sometimes(%x) output \"y\" = %y }";
  const float x[4] = {1, 2, 3, 4};
  float y[4] = {0};
  berth_op_desc op = BERTH_OP_DESC_INIT;
  fixture f;
  berth_error err;
  memset(&f, 0, sizeof f);
  f.ctx = test_context_counting(&f.alloc);
  op.name = "test.sometimes";
  op.min_in = op.max_in = 1;
  op.infer = infer_same;
  op.kernel = sometimes;
  OK(berth_op_register(f.ctx, &op, &err));
  f.graph = session_parse(f.ctx, text);
  OK(berth_session_create(f.graph, NULL, &f.session, &err));
  OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  fails = 1;
  OK(berth_session_submit(f.session, &err));
  test_expect_error(berth_session_wait(f.session, &err), BERTH_INFEASIBLE, &err, "not today");
  REFUSED(berth_session_wait(f.session, &err), "submit first");
  fails = 0;
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  assert_memory_equal(y, x, sizeof x);
  session_finish(&f);
}

static void unknown_flags_are_refused(void **state) {
  (void)state;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  berth_context *ctx = test_context();
  berth_graph *graph = session_parse(ctx, "graph \"g\" { input %x : f32[4] %y = exp(%x) output \"y\" = %y }");
  desc.flags = BERTH_SESSION_CHECKED | 1u << 9;
  REFUSED(berth_session_create(graph, &desc, &session, &err), "0x200");
  assert_null(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halves_make_a_whole),           cmocka_unit_test(nothing_else_goes_on_meanwhile),
      cmocka_unit_test(a_session_may_go_with_its_run), cmocka_unit_test(a_run_without_weights_is_not_submitted),
      cmocka_unit_test(errors_are_told_by_wait),       cmocka_unit_test(unknown_flags_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
