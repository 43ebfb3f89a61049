/* Loops that carry sequences and are not unrolled: what their rounds append is stacked. Expected values are worked out
 * by hand; values from ONNX Runtime are in cases/growing.pack. x is f32[4,2], and n, an input, is the number of rounds
 * of the outermost loop unless it is a constant. */
#include <stdio.h>

#include "graph/graph.h"
#include "onnx_writer.h"
#include "support.h"

#define END \
  { NULL, NULL, NULL }

static const int64_t one_[] = {1}, four_by_two[] = {4, 2};
static const float counting[8] = {1, 2, 3, 4, 5, 6, 7, 8};

/* One integer. */
static void integers(pb *graph, const char *name, uint32_t rank, int64_t value) {
  pb tensor = onnx_tensor(name, ONNX_I64, rank, one_);
  pb_int(&tensor, TENSOR_INT64S, value);
  pb_put(graph, GRAPH_INITIALIZER, &tensor);
}

static void add_value(pb *graph, uint32_t field, const char *name, int type, uint32_t rank, const int64_t *dims) {
  pb value = onnx_value(name, type, rank, dims);
  pb_put(graph, field, &value);
}

typedef struct node {
  const char *op, *inputs, *outputs;
} node;

typedef struct loop_file {
  const node *body; /* of rounds i, which carry the sequence s and end with t */
  const node *after;
  const char *trips; /* "n"; "positive": as many as column 0 of x has positive numbers; "k": a constant */
  int64_t k;
  const char *begin;  /* "none": empty; "two": two rows of x */
  const char *result; /* of the loop */
} loop_file;

static void add_nodes(pb *graph, const node *nodes) {
  for (; nodes != NULL && nodes->op != NULL; nodes++) onnx_add_node(graph, nodes->op, nodes->inputs, nodes->outputs);
}

/* Rounds `i` of a body that carries `s`; nodes make `t` of it. */
static pb make_body(const node *nodes, const char *i, const char *s, const char *t) {
  pb body = {0};
  char c[16], same[16];
  snprintf(c, sizeof c, "c_%s", i);
  snprintf(same, sizeof same, "same_%s", i);
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, i, ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, c, ONNX_BOOL, 0, NULL);
  add_value(&body, GRAPH_INPUT, s, ONNX_F32, 1, one_); /* its type is not looked at */
  add_nodes(&body, nodes);
  onnx_add_node(&body, "Identity", c, same);
  onnx_add_output(&body, same);
  onnx_add_output(&body, t);
  return body;
}

static void add_loop(pb *graph, const char *inputs, const char *result, pb *body) {
  pb loop = onnx_node("Loop", inputs, result);
  onnx_attr_graph(&loop, "body", body);
  pb_put(graph, GRAPH_NODE, &loop);
}

static pb make_graph(const loop_file *f) {
  pb graph = {0};
  pb_text(&graph, 2, "sequences");
  onnx_add_input(&graph, "x", 2, four_by_two);
  if (strcmp(f->trips, "n") == 0) add_value(&graph, GRAPH_INPUT, "n", ONNX_I64, 0, NULL);
  integers(&graph, "k", 0, f->k);
  integers(&graph, "zero", 0, 0);
  integers(&graph, "one", 0, 1);
  integers(&graph, "two_", 0, 2);
  integers(&graph, "four", 0, 4);
  integers(&graph, "last", 0, -1);
  integers(&graph, "at0", 1, 0);
  integers(&graph, "flat", 1, -1);
  static const node always[] = {{"Gather", "x,zero", "row0"},
                                {"Gather", "x,one", "row1"},
                                {"SequenceEmpty", "", "none"},
                                {"SequenceConstruct", "row0,row1", "two"},
                                {"Sub", "x,x", "zeros"},
                                {"Greater", "x,zeros", "is_positive"},
                                {"NonZero", "is_positive", "places"},
                                {"Shape", "places", "extents"},
                                {"Gather", "extents,one", "positive"},
                                {NULL, NULL, NULL}};
  add_nodes(&graph, always);
  return graph;
}

static pb make_model(const loop_file *f) {
  char inputs[64];
  pb graph = make_graph(f), body = make_body(f->body, "i", "s", "t");
  snprintf(inputs, sizeof inputs, "%s,,%s", f->trips, f->begin);
  add_loop(&graph, inputs, f->result, &body);
  add_nodes(&graph, f->after);
  onnx_add_output(&graph, "y");
  return onnx_model(&graph);
}

static berth_status load_model(berth_context *ctx, pb *model, berth_graph **graph, berth_error *err) {
  const char *path = test_path("sequence_loops.onnx");
  test_write_file(path, model->data, model->size);
  pb_free(model);
  return berth_graph_load(ctx, path, graph, err);
}

static uint32_t count_ops(const berth_graph *graph, const char *op) {
  uint32_t count = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) count += strcmp(graph->nodes[i].op->name, op) == 0;
  return count;
}

/* Runs with a session that checks every step; the loop must still be one. Returns the number of elements of y. */
static size_t run(const loop_file *f, const float x[8], float y[64]) {
  pb model = make_model(f);
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  int64_t dims[BERTH_MAX_RANK];
  uint32_t rank;
  size_t count = 1;
  desc.flags = BERTH_SESSION_CHECKED;
  TEST_OK(load_model(ctx, &model, &graph, &err));
  assert_true(count_ops(graph, "loop_end") >= 1);
  if (strcmp(f->trips, "n") == 0) TEST_OK(berth_graph_fix(graph, "n", BERTH_I64, 0, NULL, &f->k, sizeof f->k, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, 8 * sizeof *x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_output_shape(session, 0, &rank, dims, &err));
  for (uint32_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  assert_true(count <= 64);
  TEST_OK(berth_session_read(session, "y", y, count * sizeof *y, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  return count;
}

static void expect(const loop_file *f, const float x[8], const float *expected, size_t n) {
  float y[64];
  assert_int_equal(run(f, x, y), n);
  assert_memory_equal(y, expected, n * sizeof *y);
}

static void refuse(const loop_file *f, berth_status want, const char *why) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb model = make_model(f);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  berth_status status = load_model(ctx, &model, &graph, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, &err);
  if (status == BERTH_OK) status = berth_session_write(session, "x", counting, sizeof counting, &err);
  if (status == BERTH_OK) status = berth_session_run(session, &err);
  if (status != want || strstr(err.message, why) == NULL)
    fail_msg("%d: '%s' does not say '%s'", status, err.message, why);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static const node append[] = {{"Gather", "x,i", "row"}, {"SequenceInsert", "s,row", "t"}, END};
static const node join[] = {{"ConcatFromSequence", "all", "y"}, END};

static void as_many_rounds_as_a_run_says(void **state) {
  const float some[8] = {1, -2, 3, 4, -5, -6, -7, -8}, none[8] = {0};
  const float three[] = {1, -2, 3, 4, -5, -6}, after_two[] = {1, -2, 3, 4, 1, -2, 3, 4, -5, -6};
  (void)state;
  expect(&(loop_file){append, join, "positive", 0, "none", "all"}, some, three, 6);
  expect(&(loop_file){append, join, "positive", 0, "two", "all"}, some, after_two, 10);
  expect(&(loop_file){append, join, "positive", 0, "none", "all"}, none, none, 0);
  expect(&(loop_file){append, join, "n", 3, "none", "all"}, some, three, 6);
  expect(&(loop_file){append, join, "n", -5, "two", "all"}, some, after_two, 4);
}

/* More rounds than are unrolled, of which two rows are taken. */
static void many_rounds_stay_a_loop(void **state) {
  static const node body[] = {
      {"Mod", "i,four", "at"}, {"Gather", "x,at", "row"}, {"SequenceInsert", "s,row", "t"}, END};
  static const node after[] = {
      {"SequenceAt", "all,last", "a"}, {"SequenceAt", "all,two_", "b"}, {"Mul", "a,b", "y"}, END};
  const float expected[] = {5 * 7, 6 * 8};
  (void)state;
  expect(&(loop_file){body, after, "k", 5000, "none", "all"}, counting, expected, 2);
}

/* Two tensors per round, and a sequence that is only read, or passed on. */
static void rounds_append_several_and_read_others(void **state) {
  static const node twice[] = {{"Gather", "x,i", "row"},
                               {"SequenceInsert", "s,row", "s1"},
                               {"Neg", "row", "minus"},
                               {"SequenceInsert", "s1,minus", "t"},
                               END};
  static const node reads[] = {{"SequenceAt", "s,i", "row"}, {"Identity", "s", "t"}, END};
  const float expected[] = {1, 2, -1, -2, 3, 4, -3, -4}, begin[] = {1, 2, 3, 4};
  (void)state;
  expect(&(loop_file){twice, join, "n", 2, "none", "all"}, counting, expected, 8);
  expect(&(loop_file){reads, join, "n", 2, "two", "all"}, counting, begin, 4);
}

/* An inner loop appends to the sequence of the outer one: for each row, it and its double. */
static berth_status load_nested(berth_context *ctx, berth_error *err, void *user) {
  static const node steps[] = {{"Gather", "x,i", "row"}, {"Mul", "row,row", "square"}, END};
  static const node inner_steps[] = {{"Mul", "square,row", "cube"}, {"SequenceInsert", "u,cube", "v"}, END};
  pb graph = make_graph(user), inner = make_body(inner_steps, "j", "u", "v"), body = {0};
  pb_text(&body, 2, "body");
  add_value(&body, GRAPH_INPUT, "i", ONNX_I64, 0, NULL);
  add_value(&body, GRAPH_INPUT, "c", ONNX_BOOL, 0, NULL);
  add_value(&body, GRAPH_INPUT, "s", ONNX_F32, 1, one_);
  add_nodes(&body, steps);
  onnx_add_node(&body, "SequenceInsert", "s,square", "s1");
  add_loop(&body, "positive,,s1", "t", &inner);
  onnx_add_node(&body, "Identity", "c", "same");
  onnx_add_output(&body, "same");
  onnx_add_output(&body, "t");
  add_loop(&graph, "n,,none", "all", &body);
  add_nodes(&graph, join);
  onnx_add_output(&graph, "y");
  pb model = onnx_model(&graph);
  const loop_file *f = user;
  berth_graph *loaded = NULL;
  berth_session *session = NULL;
  berth_status status = load_model(ctx, &model, &loaded, err);
  if (status == BERTH_OK) status = berth_graph_fix(loaded, "n", BERTH_I64, 0, NULL, &f->k, sizeof f->k, err);
  if (status == BERTH_OK) status = berth_session_create(loaded, NULL, &session, err);
  berth_session_destroy(session);
  berth_graph_destroy(loaded);
  return status;
}

static void what_rounds_append_must_fit(void **state) {
  static const node other_type[] = {{"SequenceInsert", "s,places", "t"}, END};
  static const node other_shape[] = {{"SequenceInsert", "s,x", "t"}, END};
  static const node longer[] = {
      {"Reshape", "i,flat", "end"}, {"Slice", "x,at0,end", "row"}, {"SequenceInsert", "s,row", "t"}, END};
  (void)state;
  refuse(&(loop_file){other_type, join, "positive", 0, "two", "all"}, BERTH_MALFORMED, "another type or rank");
  refuse(&(loop_file){other_shape, join, "positive", 0, "two", "all"}, BERTH_MALFORMED, "another type or rank");
  refuse(&(loop_file){longer, join, "positive", 0, "none", "all"}, BERTH_INVALID, "all rounds must add the same shape");
}

/* The last one doubled; as many as there are; one put in front; the first one replaced by a new last one. */
static void rounds_read_what_they_have_made(void **state) {
  static const node doubles[] = {
      {"SequenceAt", "s,last", "row"}, {"Add", "row,row", "twice"}, {"SequenceInsert", "s,twice", "t"}, END};
  static const node counts[] = {
      {"SequenceLength", "s", "length"}, {"Gather", "x,length", "row"}, {"SequenceInsert", "s,row", "t"}, END};
  static const node fronts[] = {{"SequenceInsert", "s,row0,zero", "t"}, END};
  static const node queue[] = {
      {"SequenceErase", "s,zero", "u"}, {"Gather", "x,i", "row"}, {"SequenceInsert", "u,row", "t"}, END};
  const float some[8] = {1, -2, 3, 4, -5, -6, -7, -8};
  const float doubled[] = {1, -2, 3, 4, 6, 8, 12, 16, 24, 32}, four_times[] = {1, -2, 1, -2, 1, -2, 1, -2, 3, 4};
  const float moved[] = {3, 4, 5, 6};
  (void)state;
  expect(&(loop_file){doubles, join, "positive", 0, "two", "all"}, some, doubled, 10);
  expect(&(loop_file){counts, join, "n", 2, "two", "all"}, counting, counting, 8);
  expect(&(loop_file){fronts, join, "positive", 0, "two", "all"}, some, four_times, 10);
  expect(&(loop_file){queue, join, "n", 3, "two", "all"}, counting, moved, 4);
}

static void what_cannot_stay_a_loop_is_said(void **state) {
  static const node counts[] = {
      {"SequenceLength", "s", "length"}, {"Gather", "x,length", "row"}, {"SequenceInsert", "s,row", "t"}, END};
  static const node erases[] = {{"SequenceErase", "s", "t"}, END};
  static const node makes[] = {{"SequenceConstruct", "row0", "t"}, END};
  static const node grows[] = {{"SequenceAt", "s,last", "row"}, {"SequenceConstruct", "row,x", "t"}, END};
  static const node tensor[] = {{"Identity", "row0", "t"}, END};
  static const node at_two[] = {{"SequenceInsert", "all,row0,two_", "more"}, {"SequenceLength", "more", "y"}, END};
  static const node without[] = {{"SequenceErase", "all,one", "more"}, {"SequenceLength", "more", "y"}, END};
  (void)state;
  refuse(&(loop_file){counts, join, "positive", 0, "none", "all"}, BERTH_UNSUPPORTED, "which is empty at first");
  refuse(&(loop_file){erases, join, "positive", 0, "two", "all"}, BERTH_UNSUPPORTED, "carried value 0 has shape");
  refuse(&(loop_file){makes, join, "positive", 0, "two", "all"}, BERTH_UNSUPPORTED, "carried value 0 has shape");
  refuse(&(loop_file){grows, join, "positive", 0, "two", "all"}, BERTH_UNSUPPORTED, "differ in type or shape");
  refuse(&(loop_file){tensor, join, "positive", 0, "two", "all"}, BERTH_MALFORMED, "not both");
  refuse(&(loop_file){append, at_two, "positive", 0, "two", "all"}, BERTH_UNSUPPORTED, "only at place 0");
  refuse(&(loop_file){append, without, "positive", 0, "two", "all"}, BERTH_UNSUPPORTED, "only at place 0");
  refuse(&(loop_file){append, join, "", 0, "none", "all"}, BERTH_UNSUPPORTED, "it has more than 1000 rounds");
  refuse(&(loop_file){append, join, "k", INT64_MAX, "none", "all"}, BERTH_UNSUPPORTED, "give the loop a trip count");
  refuse(&(loop_file){append, join, "k", 5, "none", "all"}, BERTH_INVALID, "out of range");
}

static berth_status load_and_plan(berth_context *ctx, berth_error *err, void *user) {
  pb model = make_model(user);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_status status = load_model(ctx, &model, &graph, err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return status;
}

static void no_allocation_may_be_missed(void **state) {
  static const node twice[] = {
      {"Gather", "x,i", "row"}, {"SequenceInsert", "s,row", "s1"}, {"SequenceInsert", "s1,row", "t"}, END};
  static const node reads[] = {{"SequenceAt", "s,i", "row"}, {"SequenceInsert", "s,row", "t"}, END};
  loop_file appends = {twice, join, "positive", 0, "two", "all"}, read = {reads, join, "positive", 0, "two", "all"};
  loop_file nested = {NULL, NULL, "n", 2, "none", "all"};
  (void)state;
  assert_true(test_fail_each_allocation(load_and_plan, &appends) >= 100);
  assert_true(test_fail_each_allocation(load_and_plan, &read) >= 100);
  assert_true(test_fail_each_allocation(load_nested, &nested) >= 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_many_rounds_as_a_run_says),          cmocka_unit_test(many_rounds_stay_a_loop),
      cmocka_unit_test(rounds_append_several_and_read_others), cmocka_unit_test(what_rounds_append_must_fit),
      cmocka_unit_test(rounds_read_what_they_have_made),       cmocka_unit_test(what_cannot_stay_a_loop_is_said),
      cmocka_unit_test(no_allocation_may_be_missed),
  };
  return cmocka_run_group_tests_name("onnx/sequence_loops", tests, NULL, NULL);
}
