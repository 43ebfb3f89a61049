/* Every allocation of every operation fails once (under the sanitizers every fifth): the operation reports it, nothing
 * leaks, and everything existing remains valid. */
#include <stdbool.h>

#include "graph/graph.h"
#include "support.h"

static const char text[] =
    "graph \"net\" { weights \"w.safetensors\" input %x : f32[n, 8] param %w : f32[8, 6] const %c : f32[6] = [1, 2, 3, "
    "4, 5, 6]\n"
    "  %m = matmul(%x, %w) %s = add(%m, %c) %t = transpose(%s) {perm = [1, 0]} %g = matmul(%s, %t)\n"
    "  %p, %q = split(%s) {axis = 1} %k = concat(%p, %q, %p) {axis = 0} %r = reshape(%k) {shape = [3, n, 3]}\n"
    "  %a = attention(%r, %r, %r) {heads = 1, mode = \"causal\"} %y = softmax(%g)\n"
    "  state %runs : i32[] = [5] state %seen : f32[6] = zeros const %one : i32[] = [1] %next = add(%runs, %one)\n"
    "  %sum = reduce_sum(%s) {axes = [0], keepdims = 0} update %runs = %next update %seen = %sum\n"
    "  output \"y\" = %y output \"a\" = %a output \"k\" = %k }";

typedef struct subject {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
  berth_session *session;
  float y[4];
  int32_t runs;    /* of the session */
  uint32_t option; /* of the operation */
} subject;

static float w[48], x[64];

static berth_plan_desc plan_desc(int64_t n) {
  static berth_dim dim;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  dim = (berth_dim){"n", n};
  desc.dims = &dim;
  desc.n_dims = 1;
  desc.effort = 1; /* constructing suffices: a search takes long */
  return desc;
}

static berth_status create_session(const subject *s, berth_session **out, berth_error *err) {
  berth_plan_desc plan = plan_desc(2);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  desc.plan = &plan;
  if (s->option & 1) desc.flags = BERTH_SESSION_CHECKED;
  if (s->option & 2) plan.flags = BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE;
  return berth_session_create(s->graph, &desc, out, err);
}

static void set_up(subject *s, uint32_t option) {
  berth_error err;
  memset(s, 0, sizeof *s);
  s->option = option;
  for (int i = 0; i < 48; i++) w[i] = (float)(i % 7) - 3;
  for (int i = 0; i < 64; i++) x[i] = (float)(i % 5) - 2;
  s->ctx = test_context_counting(&s->alloc);
  TEST_OK(berth_graph_parse(s->ctx, text, strlen(text), &s->graph, &err));
  berth_plan_desc desc = plan_desc(2);
  TEST_OK(berth_plan_create(s->graph, &desc, &s->plan, &err));
  TEST_OK(create_session(s, &s->session, &err));
  TEST_OK(berth_session_set_param(s->session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(s->session, "x", x, 64, &err));
  TEST_OK(berth_session_run(s->session, &err));
  s->runs++;
  TEST_OK(berth_session_read(s->session, "y", s->y, sizeof s->y, &err));
}

static void tear_down(subject *s) {
  berth_session_destroy(s->session);
  berth_plan_destroy(s->plan);
  berth_graph_destroy(s->graph);
  test_context_done(s->ctx, &s->alloc);
}

/* The session still has its binding, its weights, its input's shape and its states. */
static void check_session(subject *s) {
  float y[4];
  int32_t runs;
  berth_error err;
  TEST_OK(berth_session_state_read(s->session, "runs", &runs, sizeof runs, &err));
  assert_int_equal(runs, 5 + s->runs);
  TEST_OK(berth_session_write(s->session, "x", x, 64, &err));
  TEST_OK(berth_session_run(s->session, &err));
  s->runs++;
  TEST_OK(berth_session_read(s->session, "y", y, sizeof y, &err));
  assert_memory_equal(y, s->y, sizeof y);
}

static void check_all(subject *s) {
  berth_error err;
  TEST_OK(berth_graph_verify(s->graph, &err));
  TEST_OK(berth_plan_check(s->plan, &err));
  check_session(s);
}

typedef berth_status (*operation)(subject *s, berth_error *err);

/* One attempt, with the k-th allocation failing. False: there was no k-th one, and the operation succeeded. */
static bool fail_one(subject *s, operation fn, uint64_t k) {
  berth_error err = {BERTH_OK, ""};
  test_buffer before = {0}, after = {0};
  TEST_OK(berth_graph_print(s->graph, test_buffer_write, &before, &err));
  uint32_t n_dims = berth_graph_n_dims(s->graph);
  atomic_store(&s->alloc.failed, 0);
  atomic_store(&s->alloc.fail_at, k);
  berth_status status = fn(s, &err);
  atomic_store(&s->alloc.fail_at, 0);
  bool has_failed = atomic_load(&s->alloc.failed) != 0;
  if (!has_failed) TEST_OK(status);
  if (status != BERTH_OK) {
    test_expect_error(status, BERTH_NOMEM, &err, NULL);
    TEST_OK(berth_graph_print(s->graph, test_buffer_write, &after, &err));
    assert_string_equal(before.data, after.data);
    assert_int_equal(berth_graph_n_dims(s->graph), n_dims);
  }
  test_buffer_free(&before);
  test_buffer_free(&after);
  return has_failed;
}

/* For operations that make something new: the subject survives all failures. Returns their number. */
static uint64_t fail_each(operation fn, uint32_t option) {
  subject s;
  uint64_t k = 1;
  set_up(&s, option);
  uint64_t blocks = atomic_load(&s.alloc.live_blocks);
  for (; fail_one(&s, fn, k); k += test_step()) assert_int_equal(atomic_load(&s.alloc.live_blocks), blocks);
  check_all(&s);
  tear_down(&s);
  return k - 1;
}

/* For operations that add to the subject: memory allocated by a failed attempt would save the next one an allocation,
 * so each gets a new subject. */
static uint64_t fail_each_afresh(operation fn, uint32_t option) {
  for (uint64_t k = 1;; k += test_step()) {
    subject s;
    set_up(&s, option);
    bool has_failed = fail_one(&s, fn, k);
    check_all(&s);
    tear_down(&s);
    if (!has_failed) return k - 1;
  }
}

/* ---- Graphs --------------------------------------------------------------------------------------------------- */

static berth_status parse(subject *s, berth_error *err) {
  berth_graph *graph;
  berth_status status = berth_graph_parse(s->ctx, text, strlen(text), &graph, err);
  assert_true((status == BERTH_OK) == (graph != NULL));
  berth_graph_destroy(graph);
  return status;
}

/* A malformed text is refused either as such, or for lack of memory. */
static berth_status parse_malformed(subject *s, berth_error *err) {
  berth_graph *graph;
  berth_status status = berth_graph_parse(s->ctx, text, strlen(text) - 4, &graph, err);
  assert_null(graph);
  assert_true(status == BERTH_NOMEM || status == BERTH_MALFORMED);
  return status == BERTH_MALFORMED ? BERTH_OK : status;
}

static berth_status print(subject *s, berth_error *err) {
  test_buffer buffer = {0};
  berth_status status = berth_graph_print(s->graph, test_buffer_write, &buffer, err);
  test_buffer_free(&buffer);
  return status;
}

static berth_status verify(subject *s, berth_error *err) { return berth_graph_verify(s->graph, err); }

static berth_status bind_graph(subject *s, berth_error *err) {
  berth_graph *bound;
  berth_status status = berth_graph_bind(s->graph, (berth_dim[]){{"n", 3}}, 1, &bound, err);
  assert_true((status == BERTH_OK) == (bound != NULL));
  berth_graph_destroy(bound);
  return status;
}

static berth_status clone_graph(subject *s, berth_error *err) {
  berth_graph *clone;
  berth_status status = berth__graph_clone(s->graph, &clone, err);
  assert_true(status != BERTH_OK || berth_graph_equal(s->graph, clone));
  berth_graph_destroy(clone);
  return status;
}

/* Each of these adds one thing to the subject's graph; fail_each checks that a failure leaves no trace. */
static berth_status add_input(subject *s, berth_error *err) {
  return berth_graph_input(s->graph, "more", BERTH_F32, (berth_shape){2, {{"rows", 0}, {"columns", 0}}}, NULL, err);
}

static berth_status add_param(subject *s, berth_error *err) {
  return berth_graph_param(s->graph, NULL, BERTH_F32, BERTH_SHAPE(2), NULL, err);
}

static berth_status add_constant(subject *s, berth_error *err) {
  return berth_graph_constant(s->graph, NULL, BERTH_F32, BERTH_SHAPE(2), x, 8, NULL, err);
}

static berth_status add_state(subject *s, berth_error *err) {
  return berth_graph_state(s->graph, NULL, BERTH_F32, BERTH_SHAPE(2), x, 8, NULL, err);
}

static berth_status add_node(subject *s, berth_error *err) {
  const berth_dim dims[] = {{"fresh", 0}, {"other", 0}, {NULL, 6}};
  const berth_attr shape = berth_attr_dims("shape", dims, 3);
  berth_value c = berth_graph_find(s->graph, "c");
  return berth_graph_add(s->graph, "expand", &c, 1, &shape, 1, NULL, 1, err);
}

static berth_status add_split(subject *s, berth_error *err) {
  const int64_t parts[] = {1, 2, 3};
  const berth_attr attrs[] = {berth_attr_int("axis", 1), berth_attr_ints("parts", parts, 3)};
  berth_value m = berth_graph_find(s->graph, "m"), out[3];
  return berth_graph_add(s->graph, "split", &m, 1, attrs, 2, out, 3, err);
}

static berth_status add_output(subject *s, berth_error *err) { return berth_graph_output(s->graph, "more", 0, err); }

static berth_status rename_value(subject *s, berth_error *err) {
  return berth_graph_rename(s->graph, berth_graph_find(s->graph, "m"), "renamed", err);
}

/* A new graph, because an existing one may have spare capacity. */
static berth_status build_graph(subject *s, berth_error *err) {
  berth_graph *graph;
  berth_value v[3] = {0};
  berth_attr axis = berth_attr_int("axis", 1);
  berth_status status = berth_graph_create(s->ctx, "built", &graph, err);
  if (status == BERTH_OK)
    status = berth_graph_input(graph, "x", BERTH_F32, (berth_shape){2, {{"n", 0}, {NULL, 4}}}, &v[0], err);
  if (status == BERTH_OK) status = berth_graph_constant(graph, "c", BERTH_F32, BERTH_SHAPE(4), x, 16, &v[1], err);
  if (status == BERTH_OK) status = berth_graph_param(graph, "p", BERTH_F32, BERTH_SHAPE(4), &v[2], err);
  for (int i = 0; i < 20 && status == BERTH_OK; i++)
    status = berth_graph_add(graph, "add", v, 2, NULL, 0, &v[0], 1, err);
  if (status == BERTH_OK) status = berth_graph_add(graph, "softmax", v, 1, &axis, 1, &v[0], 1, err);
  if (status == BERTH_OK) status = berth_graph_output(graph, "y", v[0], err);
  if (status == BERTH_OK) status = berth_graph_verify(graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void graphs_survive(void **state) {
  static const operation operations[] = {parse, parse_malformed, print, verify, bind_graph, clone_graph, build_graph};
  (void)state;
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) assert_true(fail_each(operations[i], 0) > 0);
}

static void additions_leave_no_trace(void **state) {
  static const operation operations[] = {add_input, add_param, add_constant, add_state,
                                         add_node,  add_split, add_output,   rename_value};
  (void)state;
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
    assert_true(fail_each_afresh(operations[i], 0) > 0);
}

/* ---- Plans ---------------------------------------------------------------------------------------------------- */

static const uint32_t plan_flags[] = {
    0, BERTH_PLAN_NO_REUSE, BERTH_PLAN_NO_STRIDED | BERTH_PLAN_NO_CONCAT | BERTH_PLAN_INPUTS_DIE,
    BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_INPUTS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE, BERTH_PLAN_F32_UNIFORM};

static berth_status plan(subject *s, berth_error *err) {
  berth_plan *made;
  berth_plan_desc desc = plan_desc(3);
  desc.flags = plan_flags[s->option / 2];
  desc.order = s->option % 2 != 0 ? BERTH_ORDER_MEMORY : BERTH_ORDER_SOURCE;
  berth_status status = berth_plan_create(s->graph, &desc, &made, err);
  assert_true((status == BERTH_OK) == (made != NULL));
  berth_plan_destroy(made);
  return status;
}

static berth_status report(subject *s, berth_error *err) {
  test_buffer buffer = {0};
  berth_status status = berth_plan_report(s->plan, (berth_report_kind)s->option, test_buffer_write, &buffer, err);
  test_buffer_free(&buffer);
  return status;
}

static berth_status layout(subject *s, berth_error *err) {
  berth_layout *made;
  berth_status status = berth_plan_layout(s->plan, &made, err);
  assert_true((status == BERTH_OK) == (made != NULL));
  berth_layout_destroy(made);
  return status;
}

static berth_status plan_with_layout(subject *s, berth_error *err) {
  berth_layout *made;
  berth_plan *planned = NULL;
  berth_plan_desc desc = plan_desc(4);
  berth_status status = berth_plan_layout(s->plan, &made, err);
  desc.layout = made;
  if (status == BERTH_OK) status = berth_plan_create(s->graph, &desc, &planned, err);
  berth_plan_destroy(planned);
  berth_layout_destroy(made);
  return status;
}

static berth_status check(subject *s, berth_error *err) { return berth_plan_check(s->plan, err); }

static berth_status arena(subject *s, berth_error *err) {
  berth_arena *made;
  berth_status status = berth_arena_create(s->plan, NULL, &made, err);
  assert_true((status == BERTH_OK) == (made != NULL));
  berth_arena_destroy(made);
  return status;
}

static void plans_survive(void **state) {
  (void)state;
  for (uint32_t option = 0; option < 10; option++) assert_true(fail_each(plan, option) > 0);
  for (uint32_t kind = 0; kind < 4; kind++) assert_true(fail_each(report, kind) > 0);
  assert_true(fail_each(layout, 0) > 0);
  assert_true(fail_each(plan_with_layout, 0) > 0);
  fail_each(check, 0);
}

static void arenas_survive(void **state) {
  (void)state;
  assert_true(fail_each(arena, 0) > 0);
}

/* ---- Sessions ------------------------------------------------------------------------------------------------- */

static berth_status session(subject *s, berth_error *err) {
  berth_session *made;
  berth_status status = create_session(s, &made, err);
  assert_true((status == BERTH_OK) == (made != NULL));
  berth_session_destroy(made);
  return status;
}

static berth_status set_param(subject *s, berth_error *err) {
  berth_session *made;
  berth_status status = create_session(s, &made, err);
  if (status == BERTH_OK) status = berth_session_set_param(made, "w", w, sizeof w, err);
  if (status == BERTH_OK) status = berth_session_run(made, err);
  berth_session_destroy(made);
  return status;
}

/* A larger shape, so that the arena grows, and a smaller one; on success, back to the first for the check. */
static berth_status bind_session(subject *s, berth_error *err) {
  berth_status status = berth_session_bind(s->session, (berth_dim[]){{"n", 8}}, 1, err);
  if (status == BERTH_OK) {
    assert_int_equal(berth_session_write(s->session, "x", x, 256, err), BERTH_OK);
    assert_int_equal(berth_session_run(s->session, err), BERTH_OK);
    s->runs++;
    status = berth_session_bind(s->session, (berth_dim[]){{"n", 1}}, 1, err);
  }
  berth_error ignored;
  assert_int_equal(berth_session_bind(s->session, (berth_dim[]){{"n", 2}}, 1, &ignored), BERTH_OK);
  return status;
}

/* Without going back: a failed bind leaves the old binding current. */
static berth_status bind_session_once(subject *s, berth_error *err) {
  berth_status status = berth_session_bind(s->session, (berth_dim[]){{"n", 8}}, 1, err);
  if (status == BERTH_OK) status = berth_session_bind(s->session, (berth_dim[]){{"n", 2}}, 1, err);
  return status;
}

static berth_status clone_session(subject *s, berth_error *err) {
  berth_session *clone;
  berth_error ignored;
  float y[4];
  berth_status status = berth_session_clone(s->session, &clone, err);
  assert_true((status == BERTH_OK) == (clone != NULL));
  if (status == BERTH_OK) {
    assert_int_equal(berth_session_write(clone, "x", x, 64, &ignored), BERTH_OK);
    int32_t runs;
    assert_int_equal(berth_session_state_read(clone, "runs", &runs, sizeof runs, &ignored), BERTH_OK);
    assert_int_equal(runs, 5 + s->runs);
    assert_int_equal(berth_session_run(clone, &ignored), BERTH_OK);
    assert_int_equal(berth_session_read(clone, "y", y, sizeof y, &ignored), BERTH_OK);
    assert_memory_equal(y, s->y, sizeof y);
  }
  berth_session_destroy(clone);
  return status;
}

static berth_status run(subject *s, berth_error *err) {
  berth_status status = berth_session_run(s->session, err);
  s->runs += status == BERTH_OK;
  return status;
}

/* A restore that fails has changed nothing. */
static berth_status restore(subject *s, berth_error *err) {
  unsigned char saved[64];
  const size_t size = (size_t)berth_session_state_size(s->session);
  berth_error ignored;
  assert_true(size <= sizeof saved);
  assert_int_equal(berth_session_state_save(s->session, saved, size, &ignored), BERTH_OK);
  assert_int_equal(berth_session_state_reset(s->session, NULL, &ignored), BERTH_OK);
  berth_status status = berth_session_state_restore(s->session, saved, size, err);
  int32_t runs;
  assert_int_equal(berth_session_state_read(s->session, "runs", &runs, sizeof runs, &ignored), BERTH_OK);
  assert_int_equal(runs, status == BERTH_OK ? 5 + s->runs : 5);
  if (status != BERTH_OK) s->runs = 0;
  return status;
}

static void sessions_survive(void **state) {
  (void)state;
  for (uint32_t option = 0; option < 4; option++) {
    assert_true(fail_each(session, option) > 0);
    assert_true(fail_each(set_param, option) > 0);
    assert_true(fail_each_afresh(bind_session, option) > 0);
    assert_true(fail_each_afresh(bind_session_once, option) > 0);
    assert_true(fail_each(clone_session, option) > 0);
    assert_int_equal(fail_each(run, option), 0);
    assert_true(fail_each(restore, option) > 0);
  }
}

/* ---- Contexts and ops ----------------------------------------------------------------------------------------- */

static berth_status infer_nothing(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status do_nothing(const berth_op_call *call, berth_error *err) {
  (void)call, (void)err;
  return BERTH_OK;
}

static berth_status register_op(subject *s, berth_error *err) {
  const berth_attr attrs[] = {berth_attr_string("s", "text"), berth_attr_dims("d", (berth_dim[]){{"n", 0}}, 1)};
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  berth_graph *graph = NULL;
  const char *use = "graph \"o\" { input %x : f32[2] %y = test.op(%x) {s = \"t\"} output \"y\" = %y }";
  desc.name = "test.op";
  desc.min_in = desc.max_in = 1;
  desc.attrs = attrs;
  desc.n_attrs = 2;
  desc.infer = infer_nothing;
  desc.kernel = do_nothing;
  berth_status status = berth_op_register(s->ctx, &desc, err);
  if (status == BERTH_OK) status = berth_graph_parse(s->ctx, use, strlen(use), &graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void ops_survive(void **state) {
  (void)state;
  assert_true(fail_each_afresh(register_op, 0) > 0);
}

static void contexts_survive(void **state) {
  test_alloc alloc = {0};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx = (berth_context *)&alloc;
  berth_error err;
  (void)state;
  desc.alloc = test_alloc_callback;
  desc.user = &alloc;
  atomic_store(&alloc.fail_at, 1);
  test_expect_error(berth_context_create(&desc, &ctx, &err), BERTH_NOMEM, &err, NULL);
  assert_null(ctx);
  assert_int_equal(atomic_load(&alloc.live_blocks), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(graphs_survive),   cmocka_unit_test(additions_leave_no_trace), cmocka_unit_test(plans_survive),
      cmocka_unit_test(arenas_survive),   cmocka_unit_test(sessions_survive),         cmocka_unit_test(ops_survive),
      cmocka_unit_test(contexts_survive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
