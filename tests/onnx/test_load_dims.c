/* Extents that are given when a model is loaded, because its ranks depend on them. */
#include "onnx_writer.h"
#include "support.h"

static void add_named_dim(pb *shape, const char *name, int64_t extent) {
  pb dim = {0};
  if (name != NULL) pb_text(&dim, 2, name);
  if (name == NULL && extent >= 0) pb_int(&dim, 1, extent);
  pb_put(shape, 1, &dim);
}

/* An input of f32 with dimensions [batch, 3, (no name), width]. */
static void add_named_input(pb *graph, const char *name) {
  pb shape = {0}, tensor = {0}, type = {0}, value = {0};
  add_named_dim(&shape, "batch", -1);
  add_named_dim(&shape, NULL, 3);
  add_named_dim(&shape, NULL, -1);
  add_named_dim(&shape, "width", -1);
  pb_int(&tensor, 1, ONNX_F32);
  pb_put(&tensor, 2, &shape);
  pb_put(&type, 1, &tensor);
  pb_text(&value, 1, name);
  pb_put(&value, 2, &type);
  pb_put(graph, GRAPH_INPUT, &value);
}

static void add_list(pb *graph, const char *name, uint32_t n, const int64_t *elements) {
  const int64_t dims[1] = {n};
  pb tensor = onnx_tensor(name, ONNX_I64, 1, dims);
  pb_bytes(&tensor, TENSOR_RAW, elements, n * sizeof *elements);
  pb_put(graph, GRAPH_INITIALIZER, &tensor);
}

/* The axes of extent 1 decide the rank of the result: [batch, 3, x.2, width], squeezed. */
static pb squeezed(void) {
  pb graph = {0};
  onnx_add_node(&graph, "Squeeze", "x", "y");
  add_named_input(&graph, "x");
  onnx_add_output(&graph, "y");
  return onnx_model(&graph);
}

/* The same after a shape that is computed: [batch, 3 * x.2, width]. */
static pb reshaped(void) {
  static const int64_t first[] = {0}, last[] = {3}, rest[] = {-1};
  pb graph = {0}, concat = onnx_node("Concat", "b,r,w", "target");
  onnx_attr_int(&concat, "axis", 0);
  add_list(&graph, "first", 1, first);
  add_list(&graph, "last", 1, last);
  add_list(&graph, "r", 1, rest);
  onnx_add_node(&graph, "Shape", "x", "s");
  onnx_add_node(&graph, "Gather", "s,first", "b");
  onnx_add_node(&graph, "Gather", "s,last", "w");
  pb_put(&graph, GRAPH_NODE, &concat);
  onnx_add_node(&graph, "Reshape", "x,target", "t");
  onnx_add_node(&graph, "Squeeze", "t", "y");
  add_named_input(&graph, "x");
  onnx_add_output(&graph, "y");
  return onnx_model(&graph);
}

static berth_status load(berth_context *ctx, const pb *bytes, const berth_dim *dims, size_t n_dims, berth_graph **out,
                         berth_error *err) {
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  desc.dims = dims;
  desc.n_dims = n_dims;
  return berth_graph_from_memory_with(ctx, bytes->data, bytes->size, NULL, NULL, &desc, out, err);
}

static void expect_shape(const berth_graph *graph, berth_value value, uint32_t rank, const int64_t *extents) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  TEST_OK(berth_graph_value(graph, value, &info, &err));
  assert_int_equal(info.shape.rank, rank);
  for (uint32_t i = 0; i < rank; i++) {
    assert_null(info.shape.dim[i].name);
    assert_int_equal(info.shape.dim[i].extent, extents[i]);
  }
}

/* The result of squeezing [1, 3, 2, 4] to a matrix, or [1, 6, 4] likewise. */
static void expect_runs(pb bytes, const berth_dim *dims, size_t n_dims, uint32_t rank, const int64_t *extents) {
  berth_context *ctx = test_context();
  float x[24], y[24];
  for (int i = 0; i < 24; i++) x[i] = (float)i;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  test_expect_error(berth_graph_from_memory(ctx, bytes.data, bytes.size, NULL, NULL, &graph, &err), BERTH_MALFORMED,
                    &err, "squeeze");
  TEST_OK(load(ctx, &bytes, dims, n_dims, &graph, &err));
  assert_int_equal(berth_graph_n_dims(graph), 0);
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  const berth_graph *bound = berth_plan_graph(berth_session_plan(session));
  expect_shape(bound, berth_graph_output_at(bound, 0), rank, extents);
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
  assert_memory_equal(x, y, sizeof x);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  pb_free(&bytes);
}

static void given_extents_decide_the_rank(void **state) {
  const berth_dim dims[] = {{"width", 4}, {"batch", 1}, {"x.2", 2}};
  (void)state;
  expect_runs(squeezed(), dims, 3, 3, (const int64_t[]){3, 2, 4});
  expect_runs(reshaped(), dims, 3, 2, (const int64_t[]){6, 4});
}

/* Those that nothing depends on stay open. */
static void other_dims_keep_their_names(void **state) {
  const berth_dim batch[] = {{"batch", 5}};
  berth_context *ctx = test_context();
  pb graph = {0};
  berth_graph *loaded;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  (void)state;
  onnx_add_node(&graph, "Relu", "x", "y");
  add_named_input(&graph, "x");
  onnx_add_output(&graph, "y");
  pb bytes = onnx_model(&graph);
  TEST_OK(load(ctx, &bytes, batch, 1, &loaded, &err));
  assert_int_equal(berth_graph_n_dims(loaded), 2);
  TEST_OK(berth_graph_value(loaded, berth_graph_output_at(loaded, 0), &info, &err));
  assert_null(info.shape.dim[0].name);
  assert_int_equal(info.shape.dim[0].extent, 5);
  assert_string_equal(info.shape.dim[3].name, "width");
  berth_graph_destroy(loaded);
  pb_free(&bytes);
  berth_context_destroy(ctx);
}

static void wrong_dims_are_refused(void **state) {
  static const struct {
    berth_dim dims[2];
    size_t n;
    const char *message;
  } wrong[] = {
      {{{"batch", 1}, {"bacth", 1}}, 2, "no named dimension 'bacth'; the first that it has is x.2"},
      {{{"batch", 1}, {"batch", 1}}, 2, "'batch' is given twice"},
      {{{"batch", -1}}, 1, "'batch' is given as -1"},
      {{{NULL, 1}}, 1, "dimension 0 has no name"},
  };
  berth_context *ctx = test_context();
  pb bytes = squeezed();
  berth_graph *graph;
  berth_error err;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    test_expect_error(load(ctx, &bytes, wrong[i].dims, wrong[i].n, &graph, &err), BERTH_INVALID, &err,
                      wrong[i].message);
  test_expect_error(load(ctx, &bytes, NULL, 1, &graph, &err), BERTH_INVALID, &err, "not given");
  pb_free(&bytes);
  static const char text[] = "graph \"g\" {\n  input %x : f32[n]\n  %y = relu(%x)\n  output \"y\" = %y\n}\n";
  bytes = (pb){0};
  pb_raw(&bytes, text, sizeof text - 1);
  test_expect_error(load(ctx, &bytes, (const berth_dim[]){{"n", 1}}, 1, &graph, &err), BERTH_UNSUPPORTED, &err,
                    "are given when it is planned");
  pb_free(&bytes);
  berth_context_destroy(ctx);
}

/* A caller whose struct ends before the dims. */
static void an_older_struct_has_none(void **state) {
  berth_context *ctx = test_context();
  pb bytes = squeezed();
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_graph *graph;
  berth_error err;
  (void)state;
  desc.struct_size = (uint32_t)offsetof(berth_load_desc, dims);
  desc.dims = (const berth_dim *)(uintptr_t)8; /* not a pointer */
  desc.n_dims = 7;
  test_expect_error(berth_graph_from_memory_with(ctx, bytes.data, bytes.size, NULL, NULL, &desc, &graph, &err),
                    BERTH_MALFORMED, &err, "or when it is loaded");
  pb_free(&bytes);
  berth_context_destroy(ctx);
}

static berth_status load_reshaped(berth_context *ctx, berth_error *err, void *user) {
  const berth_dim dims[] = {{"width", 4}, {"batch", 1}, {"x.2", 2}};
  berth_graph *graph;
  const berth_status status = load(ctx, user, dims, 3, &graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void every_failed_allocation_is_an_error(void **state) {
  pb bytes = reshaped();
  (void)state;
  assert_true(test_fail_each_allocation(load_reshaped, &bytes) > 10);
  pb_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(given_extents_decide_the_rank),
      cmocka_unit_test(other_dims_keep_their_names),
      cmocka_unit_test(wrong_dims_are_refused),
      cmocka_unit_test(an_older_struct_has_none),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
