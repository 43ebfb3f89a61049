/* com.microsoft, quantised: what the cases of cases/microsoft.pack leave out. Expected values are worked out by hand.
 */
#include <math.h>
#include <stdbool.h>

#include "onnx_writer.h"
#include "support.h"

static void add_constant(pb *graph, const char *name, int type, uint32_t rank, const int64_t *dims, const void *data,
                         size_t size) {
  pb tensor = onnx_tensor(name, type, rank, dims);
  pb_bytes(&tensor, TENSOR_RAW, data, size);
  pb_put(graph, GRAPH_INITIALIZER, &tensor);
}

static void add_scale(pb *graph, const char *name, float value) {
  add_constant(graph, name, ONNX_F32, 0, NULL, &value, sizeof value);
}

static void add_zero(pb *graph, const char *name, int type, uint8_t value) {
  add_constant(graph, name, type, 0, NULL, &value, sizeof value);
}

/* x goes in, y comes out; the node is freed. */
static void run(pb *graph, pb *node, const void *x, size_t x_size, void *y, size_t y_size) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *loaded = NULL;
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  pb opset = onnx_opset("com.microsoft", 1);
  pb_text(graph, 2, "microsoft");
  onnx_add_output(graph, "y");
  pb_text(node, NODE_DOMAIN, "com.microsoft");
  pb_put(graph, GRAPH_NODE, node);
  pb model = onnx_model(graph);
  pb_put(&model, MODEL_OPSET, &opset);
  test_write_file(test_path("microsoft.onnx"), model.data, model.size);
  pb_free(&model);
  TEST_OK(berth_graph_load(ctx, test_path("microsoft.onnx"), &loaded, &err));
  TEST_OK(berth_session_create(loaded, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, x_size, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, y_size, &err));
  berth_session_destroy(session);
  berth_graph_destroy(loaded);
  test_context_done(ctx, &alloc);
}

static void add_input(pb *graph, int type, uint32_t rank, const int64_t *dims) {
  pb value = onnx_value("x", type, rank, dims);
  pb_put(graph, GRAPH_INPUT, &value);
}

/* Of the numbers 0, 1, 2 and 3 as [1, 2, 2]. axis NULL: the node does not say. */
static void run_softmax(int64_t opset, const int64_t *axis, uint8_t y[4]) {
  const uint8_t x[4] = {0, 2, 4, 6};
  pb graph = {0}, node = onnx_node("QLinearSoftmax", "x,x_scale,zero,y_scale,zero", "y");
  add_input(&graph, ONNX_U8, 3, (const int64_t[]){1, 2, 2});
  add_scale(&graph, "x_scale", 0.5f);
  add_scale(&graph, "y_scale", 1.0f / 256);
  add_zero(&graph, "zero", ONNX_U8, 0);
  onnx_attr_int(&node, "opset", opset);
  if (axis != NULL) onnx_attr_int(&node, "axis", *axis);
  run(&graph, &node, x, sizeof x, y, 4);
}

static void softmax_is_that_of_the_opset_that_it_names(void **state) {
  const uint8_t all[4] = {8, 22, 61, 165}, along[4] = {31, 31, 225, 225}, last[4] = {69, 187, 69, 187};
  const int64_t axis = 1;
  uint8_t y[4];
  (void)state;
  run_softmax(11, &axis, y); /* over all axes from 1 on */
  assert_memory_equal(y, all, sizeof y);
  run_softmax(13, &axis, y);
  assert_memory_equal(y, along, sizeof y);
  run_softmax(11, NULL, y);
  assert_memory_equal(y, last, sizeof y);
}

#define QGEMM_OPERANDS "x,x_scale,x_zero,b,b_scale,b_zero,c"

/* x of u8 [1, 2] times a turned i8 [3, 2], with scales for each of its rows; turned: x comes as [2, 1]. */
static pb qgemm(const char *operands, bool turned, pb *graph) {
  const int8_t b[6] = {1, 2, 3, -4, 0, 7}, b_zero[3] = {0, 0, 0};
  const float b_scale[3] = {1, 0.5f, 2};
  const int32_t c[3] = {10, -1, 0};
  const int64_t three[] = {3};
  pb node = onnx_node("QGemm", operands, "y");
  add_input(graph, ONNX_U8, 2, turned ? (const int64_t[]){2, 1} : (const int64_t[]){1, 2});
  add_scale(graph, "x_scale", 0.5f);
  add_zero(graph, "x_zero", ONNX_U8, 1);
  add_constant(graph, "b", ONNX_I8, 2, (const int64_t[]){3, 2}, b, sizeof b);
  add_constant(graph, "b_scale", ONNX_F32, 1, three, b_scale, sizeof b_scale);
  add_constant(graph, "b_zero", ONNX_I8, 1, three, b_zero, sizeof b_zero);
  add_constant(graph, "c", ONNX_I32, 1, three, c, sizeof c);
  add_scale(graph, "y_scale", 0.5f);
  add_zero(graph, "y_zero", ONNX_U8, 20);
  onnx_attr_int(&node, "transA", turned);
  onnx_attr_int(&node, "transB", 1);
  onnx_attr_float(&node, "alpha", 2);
  return node;
}

static void a_product_with_a_scale_gives_bytes(void **state) {
  const uint8_t x[2] = {3, 5}, expected[3] = {60, 9, 132};
  uint8_t y[3];
  (void)state;
  for (int turned = 0; turned < 2; turned++) {
    pb graph = {0}, node = qgemm(QGEMM_OPERANDS ",y_scale,y_zero", turned != 0, &graph);
    run(&graph, &node, x, sizeof x, y, sizeof y);
    assert_memory_equal(y, expected, sizeof y);
  }
}

static void a_product_without_one_gives_floats(void **state) {
  const uint8_t x[2] = {3, 5};
  const float with_c[3] = {20, -5.5f, 56}, without_c[3] = {10, -5, 56};
  float y[3];
  (void)state;
  pb graph = {0}, node = qgemm(QGEMM_OPERANDS, false, &graph);
  run(&graph, &node, x, sizeof x, y, sizeof y);
  assert_memory_equal(y, with_c, sizeof y);
  graph = (pb){0};
  node = qgemm("x,x_scale,x_zero,b,b_scale,b_zero", false, &graph);
  run(&graph, &node, x, sizeof x, y, sizeof y);
  assert_memory_equal(y, without_c, sizeof y);
}

/* 1 and 3 become -1 and 1 but for epsilon. */
static void a_norm_has_the_type_of_its_scale(void **state) {
  const uint16_t x[2] = {0x3c00, 0x4200};
  const float scale[2] = {2, 0.5f}, bias[2] = {0.25f, 0};
  float y[2];
  (void)state;
  for (int has_bias = 0; has_bias < 2; has_bias++) {
    pb graph = {0}, node = onnx_node("LayerNormalization", has_bias ? "x,scale,bias" : "x,scale", "y");
    add_input(&graph, ONNX_F16, 2, (const int64_t[]){1, 2});
    add_constant(&graph, "scale", ONNX_F32, 1, (const int64_t[]){2}, scale, sizeof scale);
    if (has_bias) add_constant(&graph, "bias", ONNX_F32, 1, (const int64_t[]){2}, bias, sizeof bias);
    run(&graph, &node, x, sizeof x, y, sizeof y);
    assert_true(fabsf(y[0] - (has_bias ? -1.75f : -2)) < 1e-4f && fabsf(y[1] - 0.5f) < 1e-4f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_norm_has_the_type_of_its_scale),
      cmocka_unit_test(softmax_is_that_of_the_opset_that_it_names),
      cmocka_unit_test(a_product_with_a_scale_gives_bytes),
      cmocka_unit_test(a_product_without_one_gives_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
