/* If, Loop and Scan from ONNX: what is unrolled and what stays a loop, that runs allocate nothing and go on as long as
 * they should, and bodies that are wrong. What comes out is compared with ONNX Runtime in test_cases.c. */
#include <stdio.h>

#include "graph/graph.h"
#include "onnx_writer.h"
#include "support.h"

static const int64_t two[] = {2}, two_by_two[] = {2, 2}, three_by_two[] = {3, 2};

/* ---- Models: v : f32[2] is doubled in every round ---- */

typedef struct loop_model {
  const char *trips;     /* name of an operand: "n" is an input, "k" a constant; "": none */
  int64_t k;             /* the constant */
  const char *condition; /* what the body gives: "c" as it is, "go" while the sum is below the input `limit` */
  const char *body_ops;  /* what makes w from v: "Add" (v + v), "Concat" (v and v), "" (nothing makes it) */
  const char *outputs;   /* of the node: "y" or "y,rows" */
} loop_model;

static void add_value(pb *graph, uint32_t field, const char *name, int type, uint32_t rank, const int64_t *dims) {
  pb value = onnx_value(name, type, rank, dims);
  pb_put(graph, field, &value);
}

static pb loop_body(const loop_model *m) {
  pb body = {0};
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, "i", ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, "c", ONNX_BOOL, 0, NULL);
  add_value(&body, GRAPH_INPUT, "v", ONNX_F32, 1, two);
  if (m->body_ops[0] != '\0') {
    pb node = onnx_node(m->body_ops, "v,v", "w");
    if (strcmp(m->body_ops, "Concat") == 0) onnx_attr_int(&node, "axis", 0);
    pb_put(&body, GRAPH_NODE, &node);
  }
  pb sum = onnx_node("ReduceSum", "w", "sum");
  onnx_attr_int(&sum, "keepdims", 0);
  pb_put(&body, GRAPH_NODE, &sum);
  onnx_add_node(&body, "Less", "sum,limit", "go");
  onnx_add_node(&body, "Identity", "c", "c_out");
  onnx_add_node(&body, "Neg", "w", "row");
  onnx_add_output(&body, strcmp(m->condition, "c") == 0 ? "c_out" : m->condition);
  onnx_add_output(&body, "w");
  onnx_add_output(&body, "row");
  return body;
}

static pb make_loop(const loop_model *m) {
  char inputs[64];
  pb graph = {0}, body = loop_body(m), k = onnx_tensor("k", ONNX_I64, 0, NULL);
  pb_text(&graph, 2, "loop");
  onnx_add_input(&graph, "v0", 1, two);
  add_value(&graph, GRAPH_INPUT, "limit", ONNX_F32, 0, NULL);
  add_value(&graph, GRAPH_INPUT, "n", ONNX_I64, 0, NULL);
  pb_int(&k, TENSOR_INT64S, m->k);
  pb_put(&graph, GRAPH_INITIALIZER, &k);
  snprintf(inputs, sizeof inputs, "%s,,v0", m->trips);
  pb node = onnx_node("Loop", inputs, m->outputs);
  onnx_attr_graph(&node, "body", &body);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  if (strstr(m->outputs, "rows") != NULL) onnx_add_output(&graph, "rows");
  return onnx_model(&graph);
}

static berth_status load(berth_context *ctx, pb *model, berth_graph **graph, berth_error *err) {
  const char *path = test_path("model.onnx");
  test_write_file(path, model->data, model->size);
  pb_free(model);
  return berth_graph_load(ctx, path, graph, err);
}

static berth_graph *load_loop(berth_context *ctx, const loop_model *m) {
  berth_error err;
  berth_graph *graph = NULL;
  pb model = make_loop(m);
  TEST_OK(load(ctx, &model, &graph, &err));
  return graph;
}

static uint32_t count_ops(const berth_graph *graph, const char *op) {
  uint32_t count = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) count += strcmp(graph->nodes[i].op->name, op) == 0;
  return count;
}

/* ---- What becomes of it ---- */

static void few_rounds_are_unrolled_and_others_not(void **state) {
  static const struct {
    loop_model model;
    uint32_t loops;
  } cases[] = {
      {{"k", 3, "c", "Add", "y"}, 0},       {{"k", 16, "c", "Add", "y,rows"}, 0}, {{"k", 17, "c", "Add", "y,rows"}, 1},
      {{"k", 1000000, "c", "Add", "y"}, 1}, {{"n", 0, "c", "Add", "y"}, 1},       {{"n", 0, "c", "Add", "y,rows"}, 1},
      {{"k", 3, "go", "Add", "y"}, 1},      {{"", 0, "go", "Add", "y"}, 1},       {{"k", 0, "c", "Add", "y"}, 0},
      {{"k", 5, "c", "Concat", "y"}, 0},    {{"k", 0, "c", "Add", "y,rows"}, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_graph *graph = load_loop(ctx, &cases[i].model);
    if (count_ops(graph, "loop_end") != cases[i].loops)
      fail_msg("case %zu has %u loops", i, count_ops(graph, "loop_end"));
    assert_int_equal(count_ops(graph, "loop_begin"), cases[i].loops);
    berth_graph_destroy(graph);
    test_context_done(ctx, &alloc);
  }
}

/* ---- Runs ---- */

static void run(berth_session *session, int64_t n, float limit, float y[2]) {
  const float v0[2] = {1, 2};
  berth_error err;
  TEST_OK(berth_session_write(session, "v0", v0, sizeof v0, &err));
  TEST_OK(berth_session_write(session, "limit", &limit, sizeof limit, &err));
  TEST_OK(berth_session_write(session, "n", &n, sizeof n, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, 2 * sizeof *y, &err));
}

static void runs_allocate_nothing(void **state) {
  const loop_model model = {"n", 0, "go", "Add", "y"};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = load_loop(ctx, &model);
  berth_session *session;
  berth_error err;
  float y[2];
  (void)state;
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  run(session, 1, 1e9f, y);
  uint64_t before = atomic_load(&alloc.calls);
  run(session, 0, 1e9f, y);
  assert_true(y[0] == 1 && y[1] == 2);
  run(session, 10, 1e9f, y);
  assert_true(y[0] == 1024 && y[1] == 2048);
  run(session, 1000, 100, y); /* 6, 12, 24, 48, 96, 192 */
  assert_true(y[0] == 64 && y[1] == 128);
  assert_int_equal(atomic_load(&alloc.calls), before);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* There are as many rows as rounds. */
static void an_early_end_leaves_fewer_rows(void **state) {
  const loop_model model = {"k", 4, "go", "Add", "y,rows"};
  berth_context *ctx = test_context();
  berth_graph *graph = load_loop(ctx, &model);
  berth_session *session;
  berth_error err;
  float y[2], rows[8];
  (void)state;
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  for (int early = 0; early <= 1; early++) {
    run(session, 0, early ? 10 : 1e9f, y);
    int64_t dim[BERTH_MAX_RANK];
    uint32_t rank;
    TEST_OK(berth_session_output_shape(session, 1, &rank, dim, &err));
    assert_true(rank == 2 && dim[0] == (early ? 2 : 4) && dim[1] == 2);
    TEST_OK(berth_session_read(session, "rows", rows, (size_t)dim[0] * 8, &err));
    assert_true(rows[0] == -2 && rows[1] == -4 && rows[2] == -4 && rows[3] == -8);
    assert_true(early || (rows[4] == -8 && rows[7] == -32));
    assert_true(y[0] == (early ? 4 : 16));
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* ---- What cannot be done ---- */

static void expect_refused(const loop_model *m, bool when_planned, berth_status want, const char *part) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  berth_error err;
  pb model = make_loop(m);
  berth_status status = load(ctx, &model, &graph, &err);
  if (when_planned) {
    TEST_OK(status);
    status = berth_plan_create(graph, NULL, &plan, &err);
  }
  test_expect_error(status, want, &err, part);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void errors_say_what_to_do(void **state) {
  (void)state;
  expect_refused(&(loop_model){"", 0, "go", "Add", "y,rows"}, false, BERTH_UNSUPPORTED,
                 "give the loop a trip count that is known when the plan is made");
  expect_refused(&(loop_model){"n", 0, "c", "Concat", "y"}, false, BERTH_UNSUPPORTED,
                 "how much longer a round makes a carried value depends on the rounds");
  expect_refused(&(loop_model){"n", 0, "c", "Add", "y,rows"}, true, BERTH_UNSUPPORTED,
                 "shapes depend on the elements of input 'n', which must be fixed");
  expect_refused(&(loop_model){"n", 0, "c", "", "y"}, false, BERTH_MALFORMED, "is not defined by any node");
  expect_refused(&(loop_model){"n", 0, "sum", "Add", "y"}, false, BERTH_MALFORMED, "expected bool");
  expect_refused(&(loop_model){"v0", 0, "c", "Add", "y"}, false, BERTH_MALFORMED, "expected i64");
  expect_refused(&(loop_model){"n", 0, "c", "Add", "y,rows,more"}, false, BERTH_MALFORMED, "do not fit its own");
}

/* Loops inside each other, each carrying v. */
static pb nested_loops(int depth, const char *last) {
  pb body = {0};
  char names[4][16];
  snprintf(names[0], sizeof names[0], "i%d", depth);
  snprintf(names[1], sizeof names[1], "c%d", depth);
  snprintf(names[2], sizeof names[2], "v%d", depth);
  snprintf(names[3], sizeof names[3], "w%d", depth);
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, names[0], ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, names[1], ONNX_BOOL, 0, NULL);
  add_value(&body, GRAPH_INPUT, names[2], ONNX_F32, 1, two);
  if (depth > 1) {
    char inputs[64];
    pb inner = nested_loops(depth - 1, last);
    snprintf(inputs, sizeof inputs, "n,,%s", names[2]);
    pb node = onnx_node("Loop", inputs, names[3]);
    onnx_attr_graph(&node, "body", &inner);
    pb_put(&body, GRAPH_NODE, &node);
  } else {
    onnx_add_node(&body, last, names[2], names[3]);
  }
  onnx_add_output(&body, names[1]);
  onnx_add_output(&body, names[3]);
  return body;
}

static berth_status load_nested(berth_context *ctx, berth_error *err, void *user) {
  pb graph = {0}, body = nested_loops(*(int *)user, "Neg");
  pb node = onnx_node("Loop", "n,,v", "y");
  pb_text(&graph, 2, "nested");
  onnx_add_input(&graph, "v", 1, two);
  add_value(&graph, GRAPH_INPUT, "n", ONNX_I64, 0, NULL);
  onnx_attr_graph(&node, "body", &body);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  pb model = onnx_model(&graph);
  berth_graph *out = NULL;
  berth_session *session = NULL;
  berth_status status = load(ctx, &model, &out, err);
  if (status == BERTH_OK) status = berth_session_create(out, NULL, &session, err);
  berth_session_destroy(session);
  berth_graph_destroy(out);
  return status;
}

static void loops_nest_so_deep(void **state) {
  (void)state;
  for (int depth = 8; depth <= 9; depth++) {
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_error err;
    berth_status status = load_nested(ctx, &err, &depth);
    if (depth == 8)
      TEST_OK(status);
    else
      test_expect_error(status, BERTH_UNSUPPORTED, &err, "nested more than 8 deep");
    test_context_done(ctx, &alloc);
  }
}

/* ---- Memory that runs out ---- */

static berth_status load_and_plan(berth_context *ctx, berth_error *err, void *user) {
  pb model = make_loop(user);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_status status = load(ctx, &model, &graph, err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return status;
}

static void no_allocation_may_be_missed(void **state) {
  loop_model rolled = {"n", 0, "go", "Add", "y"}, tried = {"k", 5, "go", "Add", "y,rows"};
  int depth = 2;
  (void)state;
  assert_true(test_fail_each_allocation(load_and_plan, &rolled) >= 100);
  assert_true(test_fail_each_allocation(load_and_plan, &tried) >= 100); /* unrolled, rolled back, rolled */
  assert_true(test_fail_each_allocation(load_nested, &depth) >= 100);
}

/* ---- Scan ---- */

static void expect_misfit(const int64_t *a, const int64_t *b) {
  pb graph = {0}, body = {0}, node = onnx_node("Scan", "s,a,b", "t,o");
  berth_context *ctx = test_context();
  berth_graph *out = NULL;
  berth_error err;
  pb_text(&body, 2, "body");
  for (int i = 0; i < 3; i++) add_value(&body, GRAPH_INPUT, (const char *[]){"p", "q", "r"}[i], ONNX_F32, 1, two);
  onnx_add_node(&body, "Add", "p,q", "p2");
  onnx_add_node(&body, "Add", "p,r", "z");
  onnx_add_output(&body, "p2");
  onnx_add_output(&body, "z");
  pb_text(&graph, 2, "scan");
  onnx_add_input(&graph, "s", 1, two);
  onnx_add_input(&graph, "a", 2, a);
  onnx_add_input(&graph, "b", 2, b);
  onnx_attr_int(&node, "num_scan_inputs", 2);
  onnx_attr_graph(&node, "body", &body);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_output(&graph, "t");
  pb model = onnx_model(&graph);
  test_expect_error(load(ctx, &model, &out, &err), BERTH_MALFORMED, &err, "scanned");
  berth_context_destroy(ctx);
}

/* Many rounds stay a loop, and few are unrolled: a longer operand would have rows that no round reads. */
static void scans_must_fit(void **state) {
  const int64_t twenty[] = {20, 2};
  (void)state;
  expect_misfit(twenty, three_by_two);
  expect_misfit(two_by_two, three_by_two);
  expect_misfit(three_by_two, two_by_two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(few_rounds_are_unrolled_and_others_not),
      cmocka_unit_test(runs_allocate_nothing),
      cmocka_unit_test(an_early_end_leaves_fewer_rows),
      cmocka_unit_test(errors_say_what_to_do),
      cmocka_unit_test(loops_nest_so_deep),
      cmocka_unit_test(no_allocation_may_be_missed),
      cmocka_unit_test(scans_must_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
