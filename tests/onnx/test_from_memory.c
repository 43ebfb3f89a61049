/* A graph from bytes in memory: when they are released, that they are not copied, and what needs files. */
#include <stdbool.h>

#include "onnx_writer.h"
#include "support.h"

enum {
  N = 100 /* more than a constant has: those are copied */
};
static const int64_t dims[1] = {N};

typedef struct released {
  uint32_t n;
  const void *data;
  size_t size;
} released;

static void note(void *user, const void *data, size_t size) {
  released *r = user;
  *r = (released){r->n + 1, data, size};
}

/* out = x + w */
static pb sum_model(bool is_external) {
  float w[N];
  for (int i = 0; i < N; i++) w[i] = (float)i;
  pb graph = {0}, tensor = onnx_tensor("w", ONNX_F32, 1, dims);
  if (is_external)
    onnx_external(&tensor, "location", "weights.bin");
  else
    pb_bytes(&tensor, TENSOR_RAW, w, sizeof w);
  if (is_external) pb_int(&tensor, 14, 1);
  onnx_add_node(&graph, "Add", "x,w", "out");
  onnx_add_input(&graph, "x", 1, dims);
  pb_put(&graph, GRAPH_INITIALIZER, &tensor);
  onnx_add_output(&graph, "out");
  return onnx_model(&graph);
}

static void expect_sums(berth_session *session) {
  float x[N], expected[N], out[N];
  for (int i = 0; i < N; i++) {
    x[i] = (float)(10 * i);
    expected[i] = (float)(11 * i);
  }
  berth_error err;
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "out", out, sizeof out, &err));
  assert_memory_equal(out, expected, sizeof out);
}

static void bytes_are_let_go_of_with_the_last_that_needs_them(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb bytes = sum_model(false);
  released seen = {0};
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  TEST_OK(berth_graph_from_memory(ctx, bytes.data, bytes.size, note, &seen, &graph, &err));
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  berth_graph_destroy(graph);
  assert_int_equal(seen.n, 0);
  expect_sums(session);
  berth_session_destroy(session);
  assert_int_equal(seen.n, 1);
  assert_ptr_equal(seen.data, bytes.data);
  assert_int_equal(seen.size, bytes.size);
  pb_free(&bytes);
  test_context_done(ctx, &alloc);
}

static void weights_are_read_where_they_lie(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  pb bytes = sum_model(false);
  berth_graph *graph;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  TEST_OK(berth_graph_from_memory(ctx, bytes.data, bytes.size, NULL, NULL, &graph, &err));
  TEST_OK(berth_graph_value(graph, berth_graph_find(graph, "w"), &info, &err));
  const uint8_t *data = info.data;
  assert_true(data >= bytes.data && data + info.size <= bytes.data + bytes.size);
  berth_graph_destroy(graph);
  pb_free(&bytes);
  berth_context_destroy(ctx);
}

static void text_is_let_go_of_at_once_and_waits_for_its_weights(void **state) {
  (void)state;
  static const char text[] =
      "# a comment\ngraph \"sum\" {\n  weights \"not_there.safetensors\"\n  input %x : f32[4]\n"
      "  param %w : f32[4]\n  %y = add(%x, %w)\n  output \"out\" = %y\n}\n";
  berth_context *ctx = test_context();
  released seen = {0};
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  TEST_OK(berth_graph_from_memory(ctx, text, sizeof text - 1, note, &seen, &graph, &err));
  assert_int_equal(seen.n, 1);
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  test_expect_error(berth_session_run(session, &err), BERTH_INVALID, &err, "param 'w' has no weights");
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void expect_refused(const void *data, size_t size, berth_status want, const char *part) {
  berth_context *ctx = test_context();
  released seen = {0};
  berth_graph *graph = (berth_graph *)ctx; /* anything but NULL */
  berth_error err;
  test_expect_error(berth_graph_from_memory(ctx, data, size, note, &seen, &graph, &err), want, &err, part);
  assert_null(graph);
  assert_int_equal(seen.n, 1);
  berth_context_destroy(ctx);
}

static void what_cannot_be_read_says_why_and_is_let_go_of(void **state) {
  (void)state;
  static const char unfinished[] = "graph \"x\" {";
  pb external = sum_model(true), cut = sum_model(false);
  expect_refused(external.data, external.size, BERTH_UNSUPPORTED, "the weights lie in another file, 'weights.bin'");
  expect_refused(cut.data, cut.size - 3, BERTH_MALFORMED, NULL);
  expect_refused(unfinished, sizeof unfinished - 1, BERTH_MALFORMED, "line 1");
  expect_refused("hello", 5, BERTH_UNSUPPORTED, "not in a format that berth reads");
  expect_refused(NULL, 0, BERTH_UNSUPPORTED, "not in a format that berth reads");
  expect_refused(NULL, 1, BERTH_INVALID, "needs a context, data");
  pb_free(&external);
  pb_free(&cut);
}

static void a_context_and_a_place_are_needed(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  released seen = {0};
  berth_graph *graph;
  berth_error err;
  test_expect_error(berth_graph_from_memory(NULL, "x", 1, note, &seen, &graph, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_from_memory(ctx, "x", 1, note, &seen, NULL, &err), BERTH_INVALID, &err, NULL);
  assert_int_equal(seen.n, 2);
  berth_context_destroy(ctx);
}

static berth_status load_once(berth_context *ctx, berth_error *err, void *user) {
  const pb *bytes = user;
  released seen = {0};
  berth_graph *graph;
  const berth_status status = berth_graph_from_memory(ctx, bytes->data, bytes->size, note, &seen, &graph, err);
  berth_graph_destroy(graph);
  assert_int_equal(seen.n, 1);
  return status;
}

static void bytes_are_let_go_of_once_wherever_memory_ends(void **state) {
  (void)state;
  pb bytes = sum_model(false);
  assert_true(test_fail_each_allocation(load_once, &bytes) > 5);
  pb_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_let_go_of_with_the_last_that_needs_them),
      cmocka_unit_test(weights_are_read_where_they_lie),
      cmocka_unit_test(text_is_let_go_of_at_once_and_waits_for_its_weights),
      cmocka_unit_test(what_cannot_be_read_says_why_and_is_let_go_of),
      cmocka_unit_test(a_context_and_a_place_are_needed),
      cmocka_unit_test(bytes_are_let_go_of_once_wherever_memory_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
