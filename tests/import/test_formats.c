/* The table of formats: what a file is, who reads it, and what it says of itself. */
#include "base/status.h"
#include "support.h"

static const char graph[] =
    "# a comment\n graph \"net\" { weights \"w.safetensors\" input %x : f32[n, 2] param %w : f32[2, 3] "
    "%m = matmul(%x, %w) %r = relu(%m) %y = relu(%r) output \"y\" = %y }";
/* w: f32[2, 3], and two entries of metadata */
#define HEADER \
  "{\"__metadata__\":{\"a\":\"b\",\"c\":\"d\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}"
#define NPY_DICT "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

static size_t make_safetensors(uint8_t *out, float first) {
  const uint64_t n = sizeof HEADER - 1;
  const float data[6] = {first, 2, 3, 4, 5, 6};
  for (int i = 0; i < 8; i++) out[i] = (uint8_t)(n >> (8 * i));
  memcpy(out + 8, HEADER, n);
  memcpy(out + 8 + n, data, sizeof data);
  return 8 + n + sizeof data;
}

static size_t make_npy(uint8_t *out) {
  const size_t n = sizeof NPY_DICT - 1;
  memcpy(out, "\x93NUMPY\1\0", 8);
  out[8] = (uint8_t)n;
  out[9] = 0;
  memcpy(out + 10, NPY_DICT, n);
  memset(out + 10 + n, 0, 24);
  return 10 + n + 24;
}

static void expect_format(const char *file, const void *data, size_t size, const char *name, uint32_t parts) {
  berth_format_info info = BERTH_FORMAT_INFO_INIT;
  berth_error err;
  test_write_file(test_path(file), data, size);
  TEST_OK(berth_file_format(test_path(file), &info, &err));
  assert_string_equal(info.name, name);
  assert_int_equal(info.parts, parts);
}

static void expect_refused(const char *file, const void *data, size_t size, berth_status status, const char *part) {
  berth_format_info info = BERTH_FORMAT_INFO_INIT;
  berth_error err;
  test_write_file(test_path(file), data, size);
  test_expect_error(berth_file_format(test_path(file), &info, &err), status, &err, part);
  assert_null(info.name);
}

static void content_tells_then_names(void **state) {
  uint8_t bytes[512];
  (void)state;
  expect_format("a.bin", graph, sizeof graph - 1, "berth", BERTH_FORMAT_GRAPH);
  expect_format("graph.onnx", graph, sizeof graph - 1, "berth", BERTH_FORMAT_GRAPH);
  expect_format("a.npy", bytes, make_npy(bytes), "npy", BERTH_FORMAT_ARRAY);
  expect_format("npy.onnx", bytes, make_npy(bytes), "npy", BERTH_FORMAT_ARRAY);
  expect_format("b.bin", bytes, make_safetensors(bytes, 1), "safetensors", BERTH_FORMAT_WEIGHTS);
  expect_format("w.onnx", bytes, make_safetensors(bytes, 1), "safetensors", BERTH_FORMAT_WEIGHTS);
  expect_format("m.gguf", "GGUF\3\0\0\0", 8, "gguf", BERTH_FORMAT_GRAPH | BERTH_FORMAT_WEIGHTS);
  expect_format("c.bin", "\x08\x07\x12\x00", 4, "onnx", BERTH_FORMAT_GRAPH);
  /* Weights that are cut off begin like ONNX: the name says more. */
  expect_format("cut.safetensors", "\x08\x01\0\0\0\0\0\0{", 9, "safetensors", BERTH_FORMAT_WEIGHTS);
  expect_format("cut.SafeTensors", "\x08\x01\0\0\0\0\0\0{", 9, "safetensors", BERTH_FORMAT_WEIGHTS);
  expect_format("wrong.berth", "grph", 4, "berth", BERTH_FORMAT_GRAPH);
  expect_format("wrong.onnx", "hello", 5, "onnx", BERTH_FORMAT_GRAPH);
  expect_refused("hello.txt", "hello", 5, BERTH_UNSUPPORTED, "is not in a format that berth reads");
  expect_refused("empty.onnx", "", 0, BERTH_MALFORMED, "empty.onnx is empty");
}

static void the_list_is_whole(void **state) {
  berth_format_info info = BERTH_FORMAT_INFO_INIT, other = BERTH_FORMAT_INFO_INIT;
  berth_error err;
  (void)state;
  const uint32_t n = berth_format_count();
  assert_true(n >= 5);
  for (uint32_t i = 0; i < n; i++) {
    TEST_OK(berth_format_at(i, &info, &err));
    assert_true(info.name[0] != '\0' && info.description[0] != '\0');
    for (uint32_t k = 0; k < i; k++) {
      TEST_OK(berth_format_at(k, &other, &err));
      assert_string_not_equal(info.name, other.name);
    }
  }
  test_expect_error(berth_format_at(n, &info, &err), BERTH_INVALID, &err, "no format number");
  test_expect_error(berth_format_at(0, NULL, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_file_format(NULL, &info, &err), BERTH_INVALID, &err, "path");
  test_expect_error(berth_file_format(test_path("nowhere"), &info, &err), BERTH_IO, &err, "nowhere");
}

static void what_has_no_graph_is_refused(void **state) {
  uint8_t bytes[512];
  berth_graph *loaded;
  berth_model_info *info;
  berth_error err;
  (void)state;
  berth_context *ctx = test_context();
  test_write_file(test_path("m.gguf"), "GGUF\3\0\0\0", 8);
  test_expect_error(berth_graph_load(ctx, test_path("m.gguf"), &loaded, &err), BERTH_MALFORMED, &err,
                    "ends at byte 8, within the header");
  test_expect_error(berth_model_inspect(ctx, test_path("m.gguf"), &info, &err), BERTH_MALFORMED, &err,
                    "m.gguf: the file ends at byte 8, within the header");
  test_write_file(test_path("b.bin"), bytes, make_safetensors(bytes, 1));
  test_expect_error(berth_graph_load(ctx, test_path("b.bin"), &loaded, &err), BERTH_UNSUPPORTED, &err,
                    "safetensors weights: that format cannot contain a graph");
  test_expect_error(berth_graph_from_memory(ctx, bytes, make_npy(bytes), NULL, NULL, &loaded, &err), BERTH_UNSUPPORTED,
                    &err, "the memory given is an npy array");
  test_write_file(test_path("empty.berth"), "", 0);
  test_expect_error(berth_graph_load(ctx, test_path("empty.berth"), &loaded, &err), BERTH_MALFORMED, &err, "is empty");
  test_expect_error(berth_model_inspect(ctx, test_path("empty.berth"), &info, &err), BERTH_MALFORMED, &err, "is empty");
  assert_null(loaded);
  berth_context_destroy(ctx);
}

static berth_status inspect_all(berth_context *ctx, berth_error *err, void *user) {
  static const char *const files[] = {"s.berth", "s.safetensors", "s.npy"};
  (void)user;
  for (int i = 0; i < 3; i++) {
    berth_model_info *info;
    BERTH__TRY(berth_model_inspect(ctx, test_path(files[i]), &info, err));
    assert_int_equal(info->n_params, 1);
    assert_int_equal(info->param_elements, 6);
    assert_int_equal(info->param_bytes, 24);
    assert_int_equal(info->n_metadata, i == 1 ? 2 : 0);
    assert_int_equal(info->n_inputs, i == 0 ? 1 : 0);
    assert_string_equal(info->producer, "");
    if (i == 0) {
      assert_string_equal(info->format, "berth");
      assert_string_equal(info->name, "net");
      assert_int_equal(info->n_nodes, 3);
      assert_int_equal(info->n_ops, 2);
      assert_string_equal(info->ops[0].name, "relu");
      assert_int_equal(info->ops[0].count, 2);
      assert_true(info->ops[1].supported);
      assert_string_equal(info->inputs[0].shape.dim[0].name, "n");
      assert_string_equal(info->outputs[0].name, "y");
      assert_string_equal(info->outputs[0].type, "f32");
      assert_int_equal(info->n_files, 1);
      assert_string_equal(info->files[0], "w.safetensors");
    }
    berth_model_info_destroy(info);
  }
  return BERTH_OK;
}

static void every_format_is_inspected(void **state) {
  uint8_t bytes[512];
  (void)state;
  test_write_file(test_path("s.berth"), graph, sizeof graph - 1);
  test_write_file(test_path("s.safetensors"), bytes, make_safetensors(bytes, 1));
  test_write_file(test_path("s.npy"), bytes, make_npy(bytes));
  assert_true(test_fail_each_allocation(inspect_all, NULL) > 20);
}

static float first_weight(const berth_graph *g) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  float value;
  berth_error err;
  TEST_OK(berth_graph_value(g, berth_graph_find(g, "w"), &info, &err));
  memcpy(&value, info.data, sizeof value);
  return value;
}

static berth_status load_with(berth_context *ctx, berth_error *err, void *user) {
  char path[512];
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_graph *loaded;
  (void)user;
  strcpy(path, test_path("other.safetensors"));
  desc.weights = path;
  const berth_status status = berth_graph_load_with(ctx, test_path("net.berth"), &desc, &loaded, err);
  assert_true((status == BERTH_OK) == (loaded != NULL));
  if (status == BERTH_OK) assert_true(first_weight(loaded) == 9.0f);
  berth_graph_destroy(loaded);
  return status;
}

/* Whether the file that the graph names is there or not. */
static void given_weights_win(void **state) {
  uint8_t bytes[512];
  berth_graph *loaded;
  berth_error err;
  (void)state;
  berth_context *ctx = test_context();
  test_write_file(test_path("net.berth"), graph, sizeof graph - 1);
  test_write_file(test_path("other.safetensors"), bytes, make_safetensors(bytes, 9));
  test_expect_error(berth_graph_load(ctx, test_path("net.berth"), &loaded, &err), BERTH_IO, &err, "w.safetensors");
  assert_true(test_fail_each_allocation(load_with, NULL) > 10);
  test_write_file(test_path("w.safetensors"), bytes, make_safetensors(bytes, 1));
  TEST_OK(berth_graph_load(ctx, test_path("net.berth"), &loaded, &err));
  assert_true(first_weight(loaded) == 1.0f);
  berth_graph_destroy(loaded);
  assert_true(test_fail_each_allocation(load_with, NULL) > 10);
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  desc.weights = "/nowhere/at.all";
  test_expect_error(berth_graph_load_with(ctx, test_path("net.berth"), &desc, &loaded, &err), BERTH_IO, &err,
                    "/nowhere/at.all");
  assert_null(loaded);
  desc.struct_size = 1;
  test_expect_error(berth_graph_load_with(ctx, test_path("net.berth"), &desc, &loaded, &err), BERTH_INVALID, &err,
                    "berth_load_desc");
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(content_tells_then_names),
      cmocka_unit_test(the_list_is_whole),
      cmocka_unit_test(what_has_no_graph_is_refused),
      cmocka_unit_test(every_format_is_inspected),
      cmocka_unit_test(given_weights_win),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
