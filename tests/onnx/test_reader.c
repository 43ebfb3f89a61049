/* What an ONNX file may be: every encoding of tensors, external data, functions, old versions. */
#include <stdbool.h>
#include <stdlib.h>

#include "onnx_writer.h"
#include "support.h"

static const int64_t two[] = {2};

static berth_graph *load(berth_context *ctx, pb *model) {
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  test_write_file(test_path("right.onnx"), model->data, model->size);
  pb_free(model);
  TEST_OK(berth_graph_load(ctx, test_path("right.onnx"), &graph, &err));
  return graph;
}

static berth_value_info value_of(const berth_graph *graph, const char *name) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  TEST_OK(berth_graph_value(graph, berth_graph_find(graph, name), &info, &err));
  return info;
}

/* The weight, given back as it is. */
static pb with_weight(pb *tensor) {
  pb graph = {0};
  onnx_add_output(&graph, "y");
  pb_put(&graph, GRAPH_INITIALIZER, tensor);
  onnx_add_node(&graph, "Identity", "w", "y");
  return onnx_model(&graph);
}

static void expect_elements(pb *tensor, berth_type type, const void *data, size_t size) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb model = with_weight(tensor);
  berth_graph *graph = load(ctx, &model);
  berth_value_info info = value_of(graph, "w");
  assert_int_equal(info.type, type);
  assert_int_equal(info.size, size);
  assert_non_null(info.data);
  assert_memory_equal(info.data, data, size);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* ---- Elements ---- */

/* Each type in its typed field, as separate fields and packed. Small integers, halves and bools are in int32_data. */
static void expect_integers(int onnx_type, uint32_t field, berth_type type, int64_t a, int64_t b, const void *data) {
  pb apart = onnx_tensor("w", onnx_type, 1, two), packed = onnx_tensor("w", onnx_type, 1, two), list = {0};
  size_t size = 2 * berth_type_size(type);
  pb_int(&apart, field, a);
  pb_int(&apart, field, b);
  expect_elements(&apart, type, data, size);
  pb_int(&list, 1, a);
  size_t first = list.size;
  pb_int(&list, 1, b);
  memmove(list.data + first, list.data + first + 1, list.size - first - 1); /* without their keys they are packed */
  pb_bytes(&packed, field, list.data + 1, list.size - 2);
  pb_free(&list);
  expect_elements(&packed, type, data, size);
}

static void test_typed_integers(void **state) {
  (void)state;
  expect_integers(ONNX_I64, TENSOR_INT64S, BERTH_I64, -5, INT64_MAX, (int64_t[]){-5, INT64_MAX});
  expect_integers(ONNX_I32, TENSOR_INT32S, BERTH_I32, -5, INT32_MAX, (int32_t[]){-5, INT32_MAX});
  expect_integers(ONNX_I16, TENSOR_INT32S, BERTH_I16, -5, 300, (int16_t[]){-5, 300});
  expect_integers(ONNX_I8, TENSOR_INT32S, BERTH_I8, -128, 127, (int8_t[]){-128, 127});
  expect_integers(ONNX_U8, TENSOR_INT32S, BERTH_U8, 255, 1, (uint8_t[]){255, 1});
  expect_integers(ONNX_BOOL, TENSOR_INT32S, BERTH_BOOL, 1, 0, (uint8_t[]){1, 0});
  expect_integers(ONNX_U32, TENSOR_UINT64S, BERTH_U32, UINT32_MAX, 7, (uint32_t[]){UINT32_MAX, 7});
  expect_integers(ONNX_F16, TENSOR_INT32S, BERTH_F16, 0x3c00, 0xc000, (uint16_t[]){0x3c00, 0xc000});
  expect_integers(ONNX_BF16, TENSOR_INT32S, BERTH_BF16, 0x3f80, 0xc000, (uint16_t[]){0x3f80, 0xc000});
}

static void test_typed_floats(void **state) {
  const float singles[] = {1.5f, -2};
  const double doubles[] = {1.5, -2};
  (void)state;
  pb apart = onnx_tensor("w", ONNX_F32, 1, two);
  pb_float(&apart, TENSOR_FLOATS, singles[0]);
  pb_float(&apart, TENSOR_FLOATS, singles[1]);
  expect_elements(&apart, BERTH_F32, singles, sizeof singles);
  pb packed = onnx_tensor("w", ONNX_F32, 1, two);
  pb_bytes(&packed, TENSOR_FLOATS, singles, sizeof singles);
  expect_elements(&packed, BERTH_F32, singles, sizeof singles);
  pb wide = onnx_tensor("w", ONNX_F64, 1, two);
  pb_bytes(&wide, TENSOR_DOUBLES, doubles, sizeof doubles);
  expect_elements(&wide, BERTH_F64, doubles, sizeof doubles);
}

static void test_raw(void **state) {
  const uint16_t halves[] = {0x3c00, 0xc000};
  (void)state;
  pb tensor = onnx_tensor("w", ONNX_F16, 1, two);
  pb_bytes(&tensor, TENSOR_RAW, halves, sizeof halves);
  expect_elements(&tensor, BERTH_F16, halves, sizeof halves);
}

static void test_packed_dims(void **state) {
  const float ones[] = {1, 1, 1, 1};
  pb tensor = {0};
  (void)state;
  pb_bytes(&tensor, 1, "\x02\x02", 2);
  pb_int(&tensor, 2, ONNX_F32);
  pb_text(&tensor, 8, "w");
  pb_bytes(&tensor, TENSOR_RAW, ones, sizeof ones);
  expect_elements(&tensor, BERTH_F32, ones, sizeof ones);
}

/* More than a constant holds stays a weight: decoded, or where it lies in the file. */
static void test_large_weights(void **state) {
  enum {
    COUNT = 1000
  };
  float data[COUNT];
  (void)state;
  for (int i = 0; i < COUNT; i++) data[i] = (float)i;
  pb raw = onnx_tensor("w", ONNX_F32, 1, (int64_t[]){COUNT}), typed = onnx_tensor("w", ONNX_F32, 1, (int64_t[]){COUNT});
  pb_bytes(&raw, TENSOR_RAW, data, sizeof data);
  pb_bytes(&typed, TENSOR_FLOATS, data, sizeof data);
  expect_elements(&raw, BERTH_F32, data, sizeof data);
  expect_elements(&typed, BERTH_F32, data, sizeof data);
}

static void test_external(void **state) {
  const float data[] = {1, 2, 3, 4};
  (void)state;
  test_write_file(test_path("weights.bin"), data, sizeof data);
  pb whole = onnx_tensor("w", ONNX_F32, 1, (int64_t[]){4}), part = onnx_tensor("w", ONNX_F32, 1, two);
  onnx_external(&whole, "location", "weights.bin");
  expect_elements(&whole, BERTH_F32, data, sizeof data);
  onnx_external(&part, "location", "./weights.bin");
  onnx_external(&part, "offset", "8");
  onnx_external(&part, "length", "8");
  onnx_external(&part, "checksum", "of another kind");
  expect_elements(&part, BERTH_F32, data + 2, 8);
}

static pb sparse_tensor(uint32_t rank, const int64_t *at, uint32_t n_at) {
  pb values = onnx_tensor("w", ONNX_F32, 1, two), sparse = {0};
  pb indices = onnx_tensor("", ONNX_I64, rank, (int64_t[]){2, 2});
  pb_float(&values, TENSOR_FLOATS, 5);
  pb_float(&values, TENSOR_FLOATS, 6);
  for (uint32_t i = 0; i < n_at; i++) pb_int(&indices, TENSOR_INT64S, at[i]);
  pb_put(&sparse, 1, &values);
  pb_put(&sparse, 2, &indices);
  pb_int(&sparse, 3, 2);
  pb_int(&sparse, 3, 3);
  return sparse;
}

static void test_sparse(void **state) {
  const float dense[] = {0, 5, 0, 0, 0, 6};
  pb sparse[] = {sparse_tensor(1, (int64_t[]){1, 5}, 2), sparse_tensor(2, (int64_t[]){0, 1, 1, 2}, 4)};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    berth_context *ctx = test_context();
    pb graph = {0};
    pb_put(&graph, GRAPH_SPARSE, &sparse[i]);
    onnx_add_output(&graph, "y");
    onnx_add_node(&graph, "Identity", "w", "y");
    pb model = onnx_model(&graph);
    berth_graph *loaded = load(ctx, &model);
    berth_value_info info = value_of(loaded, "w");
    assert_int_equal(info.size, sizeof dense);
    assert_memory_equal(info.data, dense, sizeof dense);
    berth_graph_destroy(loaded);
    berth_context_destroy(ctx);
  }
}

/* ---- Functions ---- */

/* F(a) = LeakyRelu(a, slope); slope is the caller's attribute or the default, where there is one. */
static pb leaky_function(float otherwise) {
  pb function = onnx_function("F", "a", "b"), node = onnx_node("LeakyRelu", "a", "b");
  onnx_attr_ref(&node, "alpha", 1, "slope");
  pb_put(&function, FUNCTION_NODE, &node);
  if (otherwise != 0) {
    pb attr = {0};
    pb_text(&attr, 1, "slope");
    pb_float(&attr, 2, otherwise);
    pb_int(&attr, 20, 1);
    pb_put(&function, FUNCTION_DEFAULT, &attr);
  } else {
    pb_text(&function, FUNCTION_ATTRIBUTE, "slope");
  }
  return function;
}

static pb leaky_model(float given, float otherwise) {
  pb graph = {0}, node = onnx_node("F", "x", "y"), function = leaky_function(otherwise);
  onnx_add_input(&graph, "x", 1, two);
  onnx_add_output(&graph, "y");
  pb_text(&node, NODE_DOMAIN, "local");
  if (given != 0) onnx_attr_float(&node, "slope", given);
  pb_put(&graph, GRAPH_NODE, &node);
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_FUNCTION, &function);
  return model;
}

static void expect_result(pb *model, const float *in, const float *out, size_t size) {
  berth_context *ctx = test_context();
  berth_graph *graph = load(ctx, model);
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  float got[8];
  assert_true(size <= sizeof got);
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", in, size, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", got, size, &err));
  assert_memory_equal(got, out, size);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void test_function_attributes(void **state) {
  const float in[] = {-1, 2}, given[] = {-0.5f, 2}, otherwise[] = {-0.25f, 2}, own[] = {-0.01f, 2};
  (void)state;
  pb models[] = {leaky_model(0.5f, 0.25f), leaky_model(0, 0.25f), leaky_model(0.5f, 0), leaky_model(0, 0)};
  expect_result(&models[0], in, given, sizeof in);
  expect_result(&models[1], in, otherwise, sizeof in);
  expect_result(&models[2], in, given, sizeof in);
  expect_result(&models[3], in, own, sizeof in); /* not given at all: LeakyRelu's own default */
}

/* G(a) = F(F(a)), with its own attribute handed down under another name. */
static void test_functions_in_functions(void **state) {
  const float in[] = {-1, 2}, out[] = {-0.25f, 2};
  pb graph = {0}, call = onnx_node("G", "x", "y"), function = onnx_function("G", "a", "c");
  (void)state;
  for (int i = 0; i < 2; i++) {
    pb node = onnx_node("F", i == 0 ? "a" : "b", i == 0 ? "b" : "c");
    pb_text(&node, NODE_DOMAIN, "local");
    onnx_attr_ref(&node, "slope", 1, "steepness");
    pb_put(&function, FUNCTION_NODE, &node);
  }
  pb_text(&function, FUNCTION_ATTRIBUTE, "steepness");
  pb inner = leaky_function(0);
  onnx_add_input(&graph, "x", 1, two);
  onnx_add_output(&graph, "y");
  pb_text(&call, NODE_DOMAIN, "local");
  onnx_attr_float(&call, "steepness", 0.5f);
  pb_put(&graph, GRAPH_NODE, &call);
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_FUNCTION, &function);
  pb_put(&model, MODEL_FUNCTION, &inner);
  expect_result(&model, in, out, sizeof in);
}

/* ---- Graphs ---- */

/* Up to IR version 3 every initializer stands among the inputs too. */
static pb old_model(void) {
  pb graph = {0}, weight = onnx_tensor("w", ONNX_F32, 1, two), opset = onnx_opset("", 7), model = {0};
  onnx_add_input(&graph, "x", 1, two);
  onnx_add_input(&graph, "w", 1, two);
  onnx_add_output(&graph, "y");
  pb_float(&weight, TENSOR_FLOATS, 10);
  pb_float(&weight, TENSOR_FLOATS, 20);
  pb_put(&graph, GRAPH_INITIALIZER, &weight);
  onnx_add_node(&graph, "Add", "x,w", "y");
  pb_int(&model, 1, 3);
  pb_put(&model, MODEL_OPSET, &opset);
  pb_put(&model, MODEL_GRAPH, &graph);
  return model;
}

static void test_initializers_as_inputs(void **state) {
  const float in[] = {1, 2}, out[] = {11, 22};
  berth_context *ctx = test_context();
  pb model = old_model(), again = old_model();
  (void)state;
  berth_graph *graph = load(ctx, &model);
  assert_int_equal(berth_graph_n_inputs(graph), 1);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  expect_result(&again, in, out, sizeof in);
}

/* Dimensions without a name are told apart by the input's. */
static void test_dimensions(void **state) {
  pb graph = {0};
  berth_context *ctx = test_context();
  (void)state;
  onnx_add_input(&graph, "x", 2, (int64_t[]){-1, -1});
  onnx_add_output(&graph, "y");
  onnx_add_node(&graph, "Relu", "x", "y");
  pb model = onnx_model(&graph);
  berth_graph *loaded = load(ctx, &model);
  assert_int_equal(berth_graph_n_dims(loaded), 2);
  assert_string_equal(berth_graph_dim_name(loaded, 0), "x.0");
  assert_string_equal(berth_graph_dim_name(loaded, 1), "x.1");
  berth_graph_destroy(loaded);
  berth_context_destroy(ctx);
}

/* An input without a shape, or with that of a scalar, has the rank that its readers want; where these do not say one,
 * it is a scalar if it has that shape. y is listed twice. */
static pb without_rank(bool has_shape, const char *reader) {
  pb graph = {0}, tensor = {0}, holder = {0}, value = {0};
  const int64_t perm[] = {0, 2, 1};
  pb_int(&tensor, 1, ONNX_F32);
  pb_put(&holder, 1, &tensor);
  pb_text(&value, 1, "x");
  pb_put(&value, 2, &holder);
  if (has_shape)
    onnx_add_input(&graph, "x", 0, NULL);
  else
    pb_put(&graph, GRAPH_INPUT, &value);
  pb_free(&value);
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "y");
  onnx_add_node(&graph, "Relu", "x", "a");
  pb node = onnx_node(reader, "a", "y");
  if (strcmp(reader, "Transpose") == 0) onnx_attr_ints(&node, "perm", 3, perm);
  pb_put(&graph, GRAPH_NODE, &node);
  return onnx_model(&graph);
}

static void test_unknown_ranks(void **state) {
  berth_context *ctx = test_context();
  (void)state;
  for (int has_shape = 0; has_shape < 2; has_shape++) {
    pb model = without_rank(has_shape != 0, "Transpose");
    berth_graph *loaded = load(ctx, &model);
    assert_int_equal(value_of(loaded, "x").shape.rank, 3);
    assert_string_equal(berth_graph_dim_name(loaded, 2), "x.2");
    assert_int_equal(berth_graph_n_outputs(loaded), 1);
    berth_graph_destroy(loaded);
  }
  pb model = without_rank(true, "Neg");
  berth_graph *loaded = load(ctx, &model);
  assert_int_equal(value_of(loaded, "x").shape.rank, 0);
  berth_graph_destroy(loaded);
  berth_context_destroy(ctx);
}

/* ---- Inspecting ---- */

static void test_inspect(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_model_info *info = NULL;
  berth_error err = {BERTH_OK, ""};
  pb model = old_model();
  (void)state;
  test_write_file(test_path("inspect.onnx"), model.data, model.size);
  pb_free(&model);
  TEST_OK(berth_model_inspect(ctx, test_path("inspect.onnx"), &info, &err));
  assert_string_equal(info->format, "onnx");
  assert_int_equal(info->ir_version, 3);
  assert_int_equal(info->n_opsets, 1);
  assert_int_equal(info->opsets[0].version, 7);
  assert_int_equal(info->n_inputs, 1);
  assert_string_equal(info->inputs[0].name, "x");
  assert_string_equal(info->inputs[0].type, "f32");
  assert_int_equal(info->inputs[0].shape.dim[0].extent, 2);
  assert_int_equal(info->n_params, 1);
  assert_int_equal(info->param_bytes, 8);
  assert_int_equal(info->n_ops, 1);
  assert_string_equal(info->ops[0].name, "Add");
  assert_int_equal(info->ops[0].supported, 1);
  berth_model_info_destroy(info);
  berth_model_info_destroy(NULL);
  test_expect_error(berth_model_inspect(ctx, test_path("nowhere.onnx"), &info, &err), BERTH_IO, &err, "nowhere.onnx");
  assert_null(info);
  test_expect_error(berth_model_inspect(NULL, "x", &info, &err), BERTH_INVALID, &err, "a context and a path");
  test_expect_error(berth_model_inspect(ctx, "x", NULL, &err), BERTH_INVALID, &err, "needs a pointer");
  test_context_done(ctx, &alloc);
}

/* ---- Every allocation may fail ---- */

static void write_rich_model(void) {
  const float data[] = {1, 2};
  pb graph = {0}, call = onnx_node("F", "x", "h"), function = leaky_function(0.25f);
  pb sparse = sparse_tensor(1, (int64_t[]){0, 1}, 2), outside = onnx_tensor("v", ONNX_F32, 1, two);
  pb decoded = onnx_tensor("d", ONNX_F32, 1, (int64_t[]){100});
  onnx_add_input(&graph, "x", 1, (int64_t[]){-1});
  onnx_add_output(&graph, "y");
  for (int i = 0; i < 100; i++) pb_float(&decoded, TENSOR_FLOATS, 1);
  onnx_external(&outside, "location", "rich.bin");
  pb_put(&graph, GRAPH_INITIALIZER, &outside);
  pb_put(&graph, GRAPH_INITIALIZER, &decoded);
  pb_put(&graph, GRAPH_SPARSE, &sparse);
  pb_text(&call, NODE_DOMAIN, "local");
  pb_put(&graph, GRAPH_NODE, &call);
  onnx_add_node(&graph, "Add", "h,v", "y");
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_FUNCTION, &function);
  test_write_file(test_path("rich.bin"), data, sizeof data);
  test_write_file(test_path("rich.onnx"), model.data, model.size);
  pb_free(&model);
}

static berth_status load_rich(berth_context *ctx, berth_error *err, void *user) {
  berth_graph *graph;
  (void)user;
  berth_status status = berth_graph_load(ctx, test_path("rich.onnx"), &graph, err);
  assert_true((status == BERTH_OK) == (graph != NULL));
  berth_graph_destroy(graph);
  return status;
}

static berth_status inspect_rich(berth_context *ctx, berth_error *err, void *user) {
  berth_model_info *info;
  (void)user;
  berth_status status = berth_model_inspect(ctx, test_path("rich.onnx"), &info, err);
  assert_true((status == BERTH_OK) == (info != NULL));
  berth_model_info_destroy(info);
  return status;
}

static void test_failing_allocations(void **state) {
  (void)state;
  write_rich_model();
  assert_true(test_fail_each_allocation(load_rich, NULL) > 30);
  assert_true(test_fail_each_allocation(inspect_rich, NULL) > 15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_typed_integers),
      cmocka_unit_test(test_typed_floats),
      cmocka_unit_test(test_raw),
      cmocka_unit_test(test_packed_dims),
      cmocka_unit_test(test_large_weights),
      cmocka_unit_test(test_external),
      cmocka_unit_test(test_sparse),
      cmocka_unit_test(test_function_attributes),
      cmocka_unit_test(test_functions_in_functions),
      cmocka_unit_test(test_initializers_as_inputs),
      cmocka_unit_test(test_dimensions),
      cmocka_unit_test(test_unknown_ranks),
      cmocka_unit_test(test_inspect),
      cmocka_unit_test(test_failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
