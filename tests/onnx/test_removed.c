/* Ops of ONNX's first versions that are gone from it. Expected values are worked out by hand. */
#include <math.h>

#include "onnx_writer.h"
#include "support.h"

/* An image of 2 channels, 3 lines and 2 columns goes in, y comes out; the node is freed. */
static void run(pb *node, float *y, size_t n) {
  float x[12];
  const int64_t dims[] = {1, 2, 3, 2};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *loaded = NULL;
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  pb graph = {0}, value = onnx_value("x", ONNX_F32, 4, dims), opset = onnx_opset("", 7);
  for (int i = 0; i < 12; i++) x[i] = (float)i;
  pb_text(&graph, 2, "removed");
  pb_put(&graph, GRAPH_INPUT, &value);
  onnx_add_output(&graph, "y");
  pb_put(&graph, GRAPH_NODE, node);
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_OPSET, &opset);
  test_write_file(test_path("removed.onnx"), model.data, model.size);
  pb_free(&model);
  TEST_OK(berth_graph_load(ctx, test_path("removed.onnx"), &loaded, &err));
  TEST_OK(berth_session_create(loaded, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, n * sizeof *y, &err));
  berth_session_destroy(session);
  berth_graph_destroy(loaded);
  test_context_done(ctx, &alloc);
}

static void images_are_scaled_by_channel(void **state) {
  const float bias[] = {-1, 10};
  float y[12];
  (void)state;
  pb node = onnx_node("ImageScaler", "x", "y");
  onnx_attr_float(&node, "scale", 0.5f);
  onnx_attr_floats(&node, "bias", 2, bias);
  run(&node, y, 12);
  for (int i = 0; i < 12; i++) assert_true(y[i] == 0.5f * (float)i + bias[i / 6]);
  node = onnx_node("ImageScaler", "x", "y");
  run(&node, y, 12);
  for (int i = 0; i < 12; i++) assert_true(y[i] == (float)i);
}

static void images_are_cropped(void **state) {
  const int64_t border[] = {1, 0, 0, 1}, size[] = {2, 1}; /* the left column, the last line */
  const float expected[] = {1, 3, 7, 9};
  float y[4];
  (void)state;
  pb node = onnx_node("Crop", "x", "y");
  onnx_attr_ints(&node, "border", 4, border);
  run(&node, y, 4);
  assert_memory_equal(y, expected, sizeof y);
  node = onnx_node("Crop", "x", "y");
  onnx_attr_ints(&node, "border", 4, border);
  onnx_attr_ints(&node, "scale", 2, size);
  run(&node, y, 4);
  assert_memory_equal(y, expected, sizeof y);
}

static void numbers_are_scaled(void **state) {
  static const char *const ops[] = {"Affine", "Scale", "ScaledTanh", "ParametricSoftplus"};
  float y[12];
  (void)state;
  for (int op = 0; op < 4; op++) {
    pb node = onnx_node(ops[op], "x", "y");
    onnx_attr_float(&node, op == 1 ? "scale" : "alpha", 3);
    if (op != 1) onnx_attr_float(&node, "beta", 0.25f);
    run(&node, y, 12);
    for (int i = 0; i < 12; i++) {
      const double x = i, expected[] = {3 * x + 0.25, 3 * x, 3 * tanh(0.25 * x), 3 * log(1 + exp(0.25 * x))};
      assert_true(fabs((double)y[i] - expected[op]) <= 1e-5 * (1 + fabs(expected[op])));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(images_are_scaled_by_channel),
      cmocka_unit_test(images_are_cropped),
      cmocka_unit_test(numbers_are_scaled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
