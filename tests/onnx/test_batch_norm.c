/* BatchNormalization in training mode: the statistics of the batch, and what is kept of them. Expected values are
 * computed here in f64, as ONNX defines them: variances are those of the population. */
#include <math.h>

#include "onnx_writer.h"
#include "support.h"

enum {
  IMAGES = 2,
  CHANNELS = 3,
  PIXELS = 10,
  COUNT = IMAGES * CHANNELS * PIXELS
};

static const float scale[CHANNELS] = {1.5f, -0.5f, 2}, bias[CHANNELS] = {0.25f, 1, -1};
static const float old_mean[CHANNELS] = {0.1f, 0.2f, -0.3f}, old_variance[CHANNELS] = {1, 2, 0.5f};
static const double momentum = 0.75, epsilon = 0.0625;

typedef struct expected {
  float y[COUNT], mean[CHANNELS], variance[CHANNELS], running_mean[CHANNELS], running_variance[CHANNELS];
} expected;

static void work_out(const float *x, expected *out) {
  for (int c = 0; c < CHANNELS; c++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < IMAGES * PIXELS; i++) sum += x[(i / PIXELS * CHANNELS + c) * PIXELS + i % PIXELS];
    const double mean = sum / (IMAGES * PIXELS);
    for (int i = 0; i < IMAGES * PIXELS; i++)
      squares += pow(x[(i / PIXELS * CHANNELS + c) * PIXELS + i % PIXELS] - mean, 2);
    const double variance = squares / (IMAGES * PIXELS);
    for (int i = 0; i < IMAGES * PIXELS; i++) {
      const int at = (i / PIXELS * CHANNELS + c) * PIXELS + i % PIXELS;
      out->y[at] = (float)((x[at] - mean) / sqrt(variance + epsilon) * scale[c] + bias[c]);
    }
    out->mean[c] = (float)mean;
    out->variance[c] = (float)variance;
    out->running_mean[c] = (float)(old_mean[c] * momentum + mean * (1 - momentum));
    out->running_variance[c] = (float)(old_variance[c] * momentum + variance * (1 - momentum));
  }
}

static void add_channels(pb *graph, const char *name, const float *values) {
  pb tensor = onnx_tensor(name, ONNX_F32, 1, (const int64_t[]){CHANNELS});
  pb_bytes(&tensor, TENSOR_RAW, values, CHANNELS * sizeof *values);
  pb_put(graph, GRAPH_INITIALIZER, &tensor);
}

static void check(berth_session *session, const char *name, const float *want, size_t n) {
  float got[COUNT];
  berth_error err;
  TEST_OK(berth_session_read(session, name, got, n * sizeof *got, &err));
  for (size_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) <= 2e-6f);
}

static void train(int64_t opset, const char *outputs) {
  const int64_t dims[] = {IMAGES, CHANNELS, 2, PIXELS / 2};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *loaded = NULL;
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  uint64_t seed = 7;
  expected want;
  float x[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = test_random_f32(&seed) * (float)(1 + i / PIXELS % CHANNELS) + 0.5f;
  work_out(x, &want);
  pb graph = {0}, version = onnx_opset("", opset);
  pb_text(&graph, 2, "training");
  onnx_add_input(&graph, "x", 4, dims);
  add_channels(&graph, "scale", scale);
  add_channels(&graph, "bias", bias);
  add_channels(&graph, "mean", old_mean);
  add_channels(&graph, "variance", old_variance);
  pb node = onnx_node("BatchNormalization", "x,scale,bias,mean,variance", outputs);
  onnx_attr_float(&node, "momentum", (float)momentum);
  onnx_attr_float(&node, "epsilon", (float)epsilon);
  if (opset >= 14) onnx_attr_int(&node, "training_mode", 1);
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "rm");
  onnx_add_output(&graph, "rv");
  if (opset < 14) onnx_add_output(&graph, "sm");
  if (opset < 14) onnx_add_output(&graph, "sv");
  pb model = {0};
  pb_int(&model, 1, 8); /* the IR's version */
  pb_put(&model, MODEL_OPSET, &version);
  pb_put(&model, MODEL_GRAPH, &graph);
  test_write_file(test_path("training.onnx"), model.data, model.size);
  pb_free(&model);
  TEST_OK(berth_graph_load(ctx, test_path("training.onnx"), &loaded, &err));
  TEST_OK(berth_session_create(loaded, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  check(session, "y", want.y, COUNT);
  check(session, "rm", want.running_mean, CHANNELS);
  check(session, "rv", want.running_variance, CHANNELS);
  if (opset < 14) check(session, "sm", want.mean, CHANNELS);
  if (opset < 14) check(session, "sv", want.variance, CHANNELS);
  berth_session_destroy(session);
  berth_graph_destroy(loaded);
  test_context_done(ctx, &alloc);
}

static void an_attribute_asks_for_training(void **state) {
  (void)state;
  train(15, "y,rm,rv");
}

/* ONNX Runtime's saved variance is 1 / sqrt(variance + epsilon) instead: docs/onnx.md. */
static void outputs_ask_for_training(void **state) {
  (void)state;
  train(7, "y,rm,rv,sm,sv");
  train(9, "y,rm,rv,sm,sv");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_attribute_asks_for_training),
      cmocka_unit_test(outputs_ask_for_training),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
