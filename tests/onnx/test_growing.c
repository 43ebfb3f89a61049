/* Loops that make a value longer in every round, and loops that carry sequences. Expected values are worked out by
 * hand; x is f32[4], and there are as many rounds as it has elements that are not 0, or as a constant says. */
#include <stdio.h>

#include "graph/graph.h"
#include "onnx_writer.h"
#include "support.h"

static const int64_t one_[] = {1}, four[] = {4};

static void integer(pb *graph, const char *name, int64_t value) {
  pb tensor = onnx_tensor(name, ONNX_I64, 0, NULL);
  pb_int(&tensor, TENSOR_INT64S, value);
  pb_put(graph, GRAPH_INITIALIZER, &tensor);
}

static void integer_list(pb *graph, const char *name, int64_t value) {
  pb tensor = onnx_tensor(name, ONNX_I64, 1, one_);
  pb_int(&tensor, TENSOR_INT64S, value);
  pb_put(graph, GRAPH_INITIALIZER, &tensor);
}

static void add_value(pb *graph, uint32_t field, const char *name, int type, uint32_t rank, const int64_t *dims) {
  pb value = onnx_value(name, type, rank, dims);
  pb_put(graph, field, &value);
}

static void add_concat(pb *graph, const char *inputs, const char *output) {
  pb node = onnx_node("Concat", inputs, output);
  onnx_attr_int(&node, "axis", 0);
  pb_put(graph, GRAPH_NODE, &node);
}

static void add_sum(pb *graph, const char *input, const char *output) {
  pb node = onnx_node("ReduceSum", input, output);
  onnx_attr_int(&node, "keepdims", 1);
  pb_put(graph, GRAPH_NODE, &node);
}

typedef struct growing {
  const char *trips; /* "count": of what is not 0; "k": a constant; "": no bound; "n": an input */
  int64_t k;
  const char *added; /* what a round adds: "twice" (the round's number, doubled), "sum" (of all so far), "v", "open"
                        (where x is not 0), or several of them */
  const char *order; /* of the concat: "v,%" or "%,v" */
  bool ends_early;   /* when the round is 2, or without trips by data the number of elements that are not 0 */
} growing;

static pb growing_body(const growing *m) {
  char inputs[32];
  pb body = {0};
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, "i", ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, "c", ONNX_BOOL, 0, NULL);
  pb v = onnx_value("v", ONNX_F32, 1, one_);
  pb_put(&body, GRAPH_INPUT, &v);
  pb cast = onnx_node("Cast", "i", "number");
  onnx_attr_int(&cast, "to", ONNX_F32);
  pb_put(&body, GRAPH_NODE, &cast);
  onnx_add_node(&body, "Reshape", "number,shape1", "row");
  onnx_add_node(&body, "Add", "row,row", "twice");
  if (strstr(m->added, "sum") != NULL) add_sum(&body, "v", "sum");
  snprintf(inputs, sizeof inputs, m->order[0] == 'v' ? "v,%s" : "%s,v", m->added);
  add_concat(&body, inputs, "w");
  onnx_add_node(&body, "Less", strcmp(m->trips, "count") == 0 ? "i,two" : "i,count", "early");
  onnx_add_node(&body, "Identity", "c", "same");
  onnx_add_output(&body, m->ends_early ? "early" : "same");
  onnx_add_output(&body, "w");
  return body;
}

static pb growing_graph(const growing *m, const char *results) {
  char inputs[32];
  pb graph = {0}, body = growing_body(m), shape1 = onnx_tensor("shape1", ONNX_I64, 1, one_);
  pb_text(&graph, 2, "growing");
  onnx_add_input(&graph, "x", 1, four);
  onnx_add_input(&graph, "v0", 1, one_);
  if (strcmp(m->trips, "n") == 0) add_value(&graph, GRAPH_INPUT, "n", ONNX_I64, 0, NULL);
  pb_int(&shape1, TENSOR_INT64S, 1);
  pb_put(&graph, GRAPH_INITIALIZER, &shape1);
  integer(&graph, "one", 1);
  integer(&graph, "two", 2);
  integer(&graph, "k", m->k);
  onnx_add_node(&graph, "NonZero", "x", "places");
  onnx_add_node(&graph, "Shape", "places", "extents");
  onnx_add_node(&graph, "Gather", "extents,one", "count");
  integer_list(&graph, "flat", -1);
  onnx_add_node(&graph, "Reshape", "places,flat", "list");
  pb cast = onnx_node("Cast", "list", "open");
  onnx_attr_int(&cast, "to", ONNX_F32);
  pb_put(&graph, GRAPH_NODE, &cast);
  snprintf(inputs, sizeof inputs, "%s,,v0", m->trips);
  if (strchr(results, ',') != NULL) onnx_add_output(&body, "w");
  pb node = onnx_node("Loop", inputs, results);
  onnx_attr_graph(&node, "body", &body);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  return graph;
}

static pb make_growing(const growing *m) {
  pb graph = growing_graph(m, "y");
  return onnx_model(&graph);
}

static berth_status load(berth_context *ctx, pb *model, berth_graph **graph, berth_error *err) {
  const char *path = test_path("growing.onnx");
  test_write_file(path, model->data, model->size);
  pb_free(model);
  return berth_graph_load(ctx, path, graph, err);
}

static uint32_t count_ops(const berth_graph *graph, const char *op) {
  uint32_t count = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) count += strcmp(graph->nodes[i].op->name, op) == 0;
  return count;
}

/* v0 is 1; with a session that checks every step. */
static void expect(berth_session *session, const float x[4], const float *expected, int64_t n) {
  const float v0 = 1;
  float y[64];
  int64_t dims[BERTH_MAX_RANK];
  uint32_t rank;
  berth_error err;
  TEST_OK(berth_session_write(session, "x", x, 4 * sizeof *x, &err));
  TEST_OK(berth_session_write(session, "v0", &v0, sizeof v0, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_output_shape(session, 0, &rank, dims, &err));
  assert_int_equal(dims[0], n);
  TEST_OK(berth_session_read(session, "y", y, (size_t)n * sizeof *y, &err));
  assert_memory_equal(y, expected, (size_t)n * sizeof *y);
}

static void run(const growing *m, bool is_stacked, const float *all, int64_t at_two, int64_t at_four) {
  const float two_of_them[4] = {0, 3, 0, 1}, four_of_them[4] = {5, 3, 2, 1}, none[4] = {0, 0, 0, 0};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb model = make_growing(m);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  desc.flags = BERTH_SESSION_CHECKED;
  TEST_OK(load(ctx, &model, &graph, &err));
  assert_int_equal(count_ops(graph, "loop_end"), 1);
  const berth__node *end = NULL;
  for (size_t i = 0; i < graph->n_nodes; i++)
    if (strcmp(graph->nodes[i].op->name, "loop_end") == 0) end = &graph->nodes[i];
  assert_int_equal(berth__loop_end_carried(end->n_in, end->n_out), is_stacked ? 0 : 1);
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  expect(session, four_of_them, all, at_four);
  const uint64_t before = atomic_load(&alloc.calls);
  expect(session, two_of_them, all, at_two);
  if (strcmp(m->trips, "count") == 0) expect(session, none, all, 1);
  expect(session, four_of_them, all, at_four);
  assert_int_equal(atomic_load(&alloc.calls), before);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void what_is_only_appended_is_stacked(void **state) {
  const float all[] = {1, 0, 2, 4, 6, 8};
  (void)state;
  run(&(growing){"count", 0, "twice", "v,", false}, true, all, 3, 5);
  run(&(growing){"count", 0, "twice", "v,", true}, true, all, 3, 4);
  run(&(growing){"k", 20, "twice", "v,", true}, true, all, 4, 6);
}

static void pieces_of_several_elements_are_stacked(void **state) {
  const float all[] = {1, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8};
  (void)state;
  run(&(growing){"count", 0, "twice,twice", "v,", false}, true, all, 5, 9);
  run(&(growing){"k", 20, "twice,twice", "v,", true}, true, all, 7, 11);
}

/* Every round appends as many elements as a run finds. */
static void pieces_may_have_an_extent_that_a_run_finds(void **state) {
  const growing m = {"count", 0, "open", "v,", false};
  const float two_of_them[4] = {0, 3, 0, 1}, none[4] = {0, 0, 0, 0}, expected[] = {1, 1, 3, 1, 3};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb model = make_growing(&m);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  (void)state;
  desc.flags = BERTH_SESSION_CHECKED;
  TEST_OK(load(ctx, &model, &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  expect(session, two_of_them, expected, 5);
  expect(session, none, expected, 1);
  expect(session, two_of_them, expected, 5);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void what_rounds_read_is_carried_and_grows(void **state) {
  const float all[] = {1, 1, 2, 4, 8, 16};
  (void)state;
  run(&(growing){"count", 0, "sum", "v,", false}, false, all, 3, 5);
  run(&(growing){"count", 0, "sum", "v,", true}, false, all, 3, 4);
  run(&(growing){"k", 20, "sum", "v,", true}, false, all, 4, 6);
}

static void what_is_put_in_front_is_carried(void **state) {
  const float two_rounds[] = {2, 0, 1}, four_rounds[] = {6, 4, 2, 0, 1};
  const float x[4] = {1, 0, 0, 1}, y[4] = {1, 1, 1, 1};
  const growing m = {"count", 0, "twice", "%,v", false};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb model = make_growing(&m);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_error err;
  (void)state;
  TEST_OK(load(ctx, &model, &graph, &err));
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  expect(session, x, two_rounds, 3);
  expect(session, y, four_rounds, 5);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void refuse(const growing *m, const char *why) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb model = make_growing(m);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  berth_status status = load(ctx, &model, &graph, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, &err);
  assert_int_equal(status, BERTH_UNSUPPORTED);
  if (strstr(err.message, why) == NULL) fail_msg("'%s' does not say '%s'", err.message, why);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void growth_without_a_bound_is_refused(void **state) {
  (void)state;
  refuse(&(growing){"", 0, "sum", "v,", true}, "nothing bounds the number of its rounds");
  refuse(&(growing){"", 0, "twice", "v,", true}, "nothing bounds the number of its rounds");
  refuse(&(growing){"count", 0, "v", "v,", false},
         "how much longer a round makes a carried value depends on the rounds");
  refuse(&(growing){"count", 0, "sum,open", "v,", false}, "makes it longer by an extent that is not known");
}

/* A round that also gives what it has made so far as a row: rows of one length are there after one round alone. */
static void what_is_scanned_too_is_not_stacked_by_itself(void **state) {
  const growing m = {"count", 0, "twice", "v,", false};
  const float one_of_them[4] = {0, 3, 0, 0}, two_of_them[4] = {1, 3, 0, 0}, v0 = 1, expected[] = {1, 0};
  float y[2];
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb graph = growing_graph(&m, "y,rows"), model;
  berth_graph *loaded = NULL;
  berth_session *session = NULL;
  berth_error err;
  (void)state;
  onnx_add_output(&graph, "rows");
  model = onnx_model(&graph);
  TEST_OK(load(ctx, &model, &loaded, &err));
  TEST_OK(berth_session_create(loaded, NULL, &session, &err));
  expect(session, one_of_them, expected, 2);
  TEST_OK(berth_session_read(session, "rows", y, sizeof y, &err));
  assert_memory_equal(y, expected, sizeof y);
  TEST_OK(berth_session_write(session, "x", two_of_them, sizeof two_of_them, &err));
  TEST_OK(berth_session_write(session, "v0", &v0, sizeof v0, &err));
  test_expect_error(berth_session_run(session, &err), BERTH_INVALID, &err, "all rounds must add the same shape");
  berth_session_destroy(session);
  berth_graph_destroy(loaded);
  test_context_done(ctx, &alloc);
}

/* Eight nodes that join what is before them a hundred times have 10^16 ways back. */
static void joined_again_and_again(void **state) {
  char inputs[1024] = "", from[] = "v0", to[] = "w0";
  pb graph = {0}, body = {0};
  berth_context *ctx = test_context();
  berth_graph *loaded = NULL;
  berth_error err;
  const int64_t none[] = {0};
  (void)state;
  pb_text(&graph, 2, "again");
  add_value(&graph, GRAPH_INPUT, "n", ONNX_I64, 0, NULL);
  onnx_add_input(&graph, "v0", 1, none);
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, "i", ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, "c", ONNX_BOOL, 0, NULL);
  add_value(&body, GRAPH_INPUT, "v", ONNX_F32, 1, none);
  for (int i = 0; i < 8; i++) {
    size_t at = 0;
    for (int k = 0; k < 100; k++) at += (size_t)snprintf(inputs + at, sizeof inputs - at, k == 0 ? "%s" : ",%s", from);
    to[1] = (char)('0' + i);
    add_concat(&body, inputs, to);
    strcpy(from, to);
  }
  onnx_add_node(&body, "Identity", "c", "same");
  onnx_add_output(&body, "same");
  onnx_add_output(&body, from);
  pb node = onnx_node("Loop", "n,,v0", "y");
  onnx_attr_graph(&node, "body", &body);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  pb model = onnx_model(&graph);
  TEST_OK(load(ctx, &model, &loaded, &err)); /* of nothing, so that shapes agree */
  berth_graph_destroy(loaded);
  berth_context_destroy(ctx);
}

static berth_status load_and_plan(berth_context *ctx, berth_error *err, void *user) {
  pb model = make_growing(user);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_status status = load(ctx, &model, &graph, err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return status;
}

static void no_allocation_may_be_missed(void **state) {
  growing pieces = {"count", 0, "open,twice", "v,", false}, carried = {"count", 0, "sum", "v,", false};
  (void)state;
  assert_true(test_fail_each_allocation(load_and_plan, &pieces) >= 100);
  assert_true(test_fail_each_allocation(load_and_plan, &carried) >= 100);
}

/* ---- Sequences ---- */

static pb sequence_loop(int64_t trips, const char *results) {
  pb graph = {0}, body = {0}, shape1 = onnx_tensor("shape1", ONNX_I64, 1, one_);
  pb_text(&graph, 2, "sequence");
  onnx_add_input(&graph, "x", 1, four);
  onnx_add_input(&graph, "v0", 1, one_);
  pb_int(&shape1, TENSOR_INT64S, 1);
  pb_put(&graph, GRAPH_INITIALIZER, &shape1);
  integer(&graph, "k", trips);
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, "i", ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, "c", ONNX_BOOL, 0, NULL);
  add_value(&body, GRAPH_INPUT, "s", ONNX_F32, 1, one_); /* its type is not looked at */
  onnx_add_node(&body, "Gather", "x,i", "element");
  onnx_add_node(&body, "Reshape", "element,shape1", "row");
  onnx_add_node(&body, "SequenceInsert", "s,row", "t");
  onnx_add_node(&body, "Identity", "c", "same");
  onnx_add_output(&body, "same");
  onnx_add_output(&body, "t");
  if (strchr(results, ',') != NULL) onnx_add_output(&body, "row");
  onnx_add_node(&graph, "SequenceConstruct", "v0", "begin");
  pb node = onnx_node("Loop", "k,,begin", results);
  onnx_attr_graph(&node, "body", &body);
  pb_put(&graph, GRAPH_NODE, &node);
  pb join = onnx_node("ConcatFromSequence", "all", "y");
  onnx_attr_int(&join, "axis", 0);
  pb_put(&graph, GRAPH_NODE, &join);
  onnx_add_output(&graph, "y");
  if (strchr(results, ',') != NULL) onnx_add_output(&graph, "rows");
  return onnx_model(&graph);
}

static void a_loop_of_known_rounds_carries_a_sequence(void **state) {
  const float x[4] = {5, 6, 7, 8}, expected[] = {1, 5, 6, 7};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  (void)state;
  for (int64_t trips = 0; trips <= 3; trips += 3) {
    pb model = sequence_loop(trips, "all");
    berth_graph *graph = NULL;
    berth_session *session = NULL;
    berth_error err;
    TEST_OK(load(ctx, &model, &graph, &err));
    TEST_OK(berth_session_create(graph, NULL, &session, &err));
    expect(session, x, expected, trips + 1);
    berth_session_destroy(session);
    berth_graph_destroy(graph);
  }
  test_context_done(ctx, &alloc);
}

/* Without a round, the body still says what a row looks like. */
static void a_sequence_beside_rows(void **state) {
  (void)state;
  for (int64_t trips = 0; trips <= 3; trips += 3) {
    berth_context *ctx = test_context();
    pb model = sequence_loop(trips, "all,rows");
    berth_graph *graph = NULL;
    berth_error err;
    TEST_OK(load(ctx, &model, &graph, &err));
    const berth_value rows = graph->outputs[1].value;
    assert_int_equal(graph->values[rows].shape.rank, 2);
    assert_int_equal(graph->values[rows].shape.dim[0], trips);
    berth_graph_destroy(graph);
    berth_context_destroy(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_only_appended_is_stacked),
      cmocka_unit_test(pieces_of_several_elements_are_stacked),
      cmocka_unit_test(pieces_may_have_an_extent_that_a_run_finds),
      cmocka_unit_test(what_rounds_read_is_carried_and_grows),
      cmocka_unit_test(what_is_put_in_front_is_carried),
      cmocka_unit_test(growth_without_a_bound_is_refused),
      cmocka_unit_test(what_is_scanned_too_is_not_stacked_by_itself),
      cmocka_unit_test(joined_again_and_again),
      cmocka_unit_test(no_allocation_may_be_missed),
      cmocka_unit_test(a_loop_of_known_rounds_carries_a_sequence),
      cmocka_unit_test(a_sequence_beside_rows),
  };
  return cmocka_run_group_tests_name("onnx/growing", tests, NULL, NULL);
}
