/* An ONNX file with its weights replaced: what changes is their data, whether it lies in the file or beside it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnx_writer.h"
#include "support.h"

enum {
  N = 100
};
static const int64_t dims[1] = {N};

static const char *place(const char *name) {
  static char paths[4][400];
  static int at = 0;
  at = (at + 1) % 4;
  snprintf(paths[at], sizeof paths[at], "%s", test_path(name));
  return paths[at];
}

static pb weight(const char *name, bool is_raw, float first) {
  pb tensor = onnx_tensor(name, ONNX_F32, 1, dims);
  float data[N];
  for (int i = 0; i < N; i++) data[i] = first + (float)i;
  if (is_raw)
    pb_bytes(&tensor, TENSOR_RAW, data, sizeof data);
  else
    pb_bytes(&tensor, TENSOR_FLOATS, data, sizeof data);
  return tensor;
}

static const char *data_file = "weights.bin"; /* as the model names it */

static pb weight_beside(const char *name, const char *offset) {
  pb tensor = onnx_tensor(name, ONNX_F32, 1, dims);
  onnx_external(&tensor, "location", data_file);
  onnx_external(&tensor, "offset", offset);
  onnx_external(&tensor, "length", "400");
  pb_int(&tensor, 14, 1);
  return tensor;
}

/* out = (x + a) * b, with unknown fields in the graph and in the model */
static void write_model(const char *path, bool is_beside) {
  pb graph = {0};
  pb a = is_beside ? weight_beside("a", "0") : weight("a", true, 0);
  pb b = is_beside ? weight_beside("b", "400") : weight("b", false, 1000);
  onnx_add_node(&graph, "Add", "x,a", "sum");
  onnx_add_node(&graph, "Mul", "sum,b", "out");
  onnx_add_input(&graph, "x", 1, dims);
  pb_put(&graph, GRAPH_INITIALIZER, &a);
  pb_put(&graph, GRAPH_INITIALIZER, &b);
  onnx_add_output(&graph, "out");
  pb_text(&graph, 99, "unknown to berth");
  pb model = onnx_model(&graph);
  pb_text(&model, 98, "unknown as well");
  test_write_file(path, model.data, model.size);
  pb_free(&model);
  if (!is_beside) return;
  float data[2 * N];
  for (int i = 0; i < N; i++) data[i] = (float)i, data[N + i] = 1000 + (float)i;
  test_write_file(place(data_file), data, sizeof data);
}

static berth_weight_info replacement(const char *name, const float *data) {
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  info.name = name;
  info.type = BERTH_F32;
  info.rank = 1;
  info.dim[0] = N;
  info.data = data;
  info.size = N * sizeof *data;
  return info;
}

/* What the model gives for x = 1, 1, ... */
static void run_file(berth_context *ctx, const char *path, float out[N]) {
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  float x[N];
  for (int i = 0; i < N; i++) x[i] = 1;
  TEST_OK(berth_graph_load(ctx, path, &graph, &err));
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "out", out, N * sizeof *out, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

static bool has_bytes(const char *path, const char *text) {
  char data[8192];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  for (size_t i = 0; i + strlen(text) <= size; i++)
    if (memcmp(data + i, text, strlen(text)) == 0) return true;
  return false;
}

static void check_replaced(bool is_beside) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  float a[N], b[N], out[N];
  berth_error err;
  for (int i = 0; i < N; i++) a[i] = 5, b[i] = (float)i;
  const berth_weight_info both[2] = {replacement("a", a), replacement("b", b)};
  write_model(place("model.onnx"), is_beside);
  TEST_OK(berth_model_save(ctx, place("model.onnx"), place("new.onnx"), &both[0], 1, &err));
  run_file(ctx, place("new.onnx"), out);
  for (int i = 0; i < N; i++) assert_true(out[i] == 6 * (1000 + (float)i));
  assert_true(has_bytes(place("new.onnx"), "unknown to berth") && has_bytes(place("new.onnx"), "unknown as well"));
  for (int again = 0; again < 3; again++) { /* over itself, too, where another file has its data in turn */
    b[0] = (float)again;
    TEST_OK(berth_model_save(ctx, place("new.onnx"), place("new.onnx"), both, 2, &err));
    run_file(ctx, place("new.onnx"), out);
    for (int i = 0; i < N; i++) assert_true(out[i] == 6 * b[i]);
  }
  run_file(ctx, place("model.onnx"), out); /* as it was */
  for (int i = 0; i < N; i++) assert_true(out[i] == (1 + (float)i) * (1000 + (float)i));
  test_context_done(ctx, &alloc);
}

static void data_in_the_file_is_replaced(void **state) {
  (void)state;
  check_replaced(false);
}

static void data_beside_the_file_is_replaced(void **state) {
  (void)state;
  check_replaced(true);
}

static void check_is_old(berth_context *ctx, const char *path) {
  float out[N];
  run_file(ctx, path, out);
  for (int i = 0; i < N; i++) assert_true(out[i] == (1 + (float)i) * (1000 + (float)i));
}

/* What a model reads is not written over, whatever name it has there: it would be broken until the new one is there, or
 * for good. */
static void data_that_is_read_stays(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  float a[N], out[N];
  berth_error err;
  (void)state;
  for (int i = 0; i < N; i++) a[i] = 5;
  const berth_weight_info one = replacement("a", a);
  data_file = "other.onnx.data"; /* as the new model would have it */
  write_model(place("model.onnx"), true);
  TEST_OK(berth_model_save(ctx, place("model.onnx"), place("other.onnx"), &one, 1, &err));
  check_is_old(ctx, place("model.onnx"));
  run_file(ctx, place("other.onnx"), out);
  for (int i = 0; i < N; i++) assert_true(out[i] == 6 * (1000 + (float)i));

  data_file = "./twice.onnx.data";
  write_model(place("twice.onnx"), true);
  write_model(place("copy.onnx"), true);
  TEST_OK(berth_model_save(ctx, place("twice.onnx"), place("twice.onnx"), &one, 1, &err));
  check_is_old(ctx, place("copy.onnx")); /* so the old one was whole all the time */
  run_file(ctx, place("twice.onnx"), out);
  for (int i = 0; i < N; i++) assert_true(out[i] == 6 * (1000 + (float)i));
  data_file = "weights.bin";
  test_context_done(ctx, &alloc);
}

/* out = x, beside a tensor without elements, whose file has to be there all the same. */
static void tensors_without_bytes_lie_beside_too(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const int64_t none[1] = {0};
  float out[N];
  berth_error err;
  pb graph = {0}, empty = onnx_tensor("empty", ONNX_F32, 1, none);
  (void)state;
  onnx_external(&empty, "location", "weights.bin");
  pb_int(&empty, 14, 1);
  pb node = onnx_node("Concat", "x,empty", "out");
  onnx_attr_int(&node, "axis", 0);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_input(&graph, "x", 1, dims);
  pb_put(&graph, GRAPH_INITIALIZER, &empty);
  onnx_add_output(&graph, "out");
  pb model = onnx_model(&graph);
  test_write_file(place("model.onnx"), model.data, model.size);
  test_write_file(place("weights.bin"), "", 0);
  pb_free(&model);
  run_file(ctx, place("model.onnx"), out);
  TEST_OK(berth_model_save(ctx, place("model.onnx"), place("empty.onnx"), NULL, 0, &err));
  run_file(ctx, place("empty.onnx"), out);
  for (int i = 0; i < N; i++) assert_true(out[i] == 1);
  test_context_done(ctx, &alloc);
}

static void what_does_not_fit_is_refused_and_nothing_is_written(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const float data[N] = {0};
  berth_error err;
  FILE *file;
  (void)state;
  write_model(place("model.onnx"), false);
  berth_weight_info one = replacement("c", data);
  test_expect_error(berth_model_save(ctx, place("model.onnx"), place("none.onnx"), &one, 1, &err), BERTH_INVALID, &err,
                    "has no initializer 'c'");
  one = replacement("a", data);
  one.dim[0] = 50;
  one.size = 200;
  test_expect_error(berth_model_save(ctx, place("model.onnx"), place("none.onnx"), &one, 1, &err), BERTH_INVALID, &err,
                    "initializer 'a' has another type or shape");
  one = replacement("a", data);
  one.size = 8;
  test_expect_error(berth_model_save(ctx, place("model.onnx"), place("none.onnx"), &one, 1, &err), BERTH_INVALID, &err,
                    "not as large as its shape");
  one = replacement("a", data);
  test_expect_error(berth_model_save(ctx, place("model.onnx"), place("no/folder/none.onnx"), &one, 1, &err), BERTH_IO,
                    &err, "for writing");
  test_expect_error(berth_model_save(ctx, place("missing.onnx"), place("none.onnx"), &one, 1, &err), BERTH_IO, &err,
                    "missing.onnx");
  test_write_file(place("wrong.onnx"), "\x3a\x10mm", 4);
  test_expect_error(berth_model_save(ctx, place("wrong.onnx"), place("none.onnx"), &one, 1, &err), BERTH_MALFORMED,
                    &err, "wrong.onnx");
  file = fopen(place("none.onnx"), "rb");
  assert_null(file);
  test_context_done(ctx, &alloc);
}

static berth_status try_save(berth_context *ctx, berth_error *err, void *user) {
  const float data[N] = {0};
  const berth_weight_info one = replacement("a", data);
  (void)user;
  return berth_model_save(ctx, place("model.onnx"), place("none.onnx"), &one, 1, err);
}

static void memory_may_run_out_at_any_time(void **state) {
  (void)state;
  for (int is_beside = 0; is_beside < 2; is_beside++) {
    write_model(place("model.onnx"), is_beside);
    test_fail_each_allocation(try_save, NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(data_in_the_file_is_replaced),
      cmocka_unit_test(data_beside_the_file_is_replaced),
      cmocka_unit_test(data_that_is_read_stays),
      cmocka_unit_test(tensors_without_bytes_lie_beside_too),
      cmocka_unit_test(what_does_not_fit_is_refused_and_nothing_is_written),
      cmocka_unit_test(memory_may_run_out_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
