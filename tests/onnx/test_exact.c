/* Quantised models give the same bytes whoever computes them: the reference kernels, every instruction set of this
 * machine, one thread and two, and every device that is there. The networks in tests/onnx/quantized have random weights
 * (make_quantized.py); real models are taken where they are, in $BERTH_MODELS or in shared/data/models beside the
 * repository, as far as nothing in them sums f32. Those called full have weights at the ends of their range, where
 * sums of two products do not fit 16 bits.
 *
 *   BERTH_TEST_DEVICE=webgpu   that device alone, against the reference kernels */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/kernel.h"
#include "support.h"

#define MAX_MODELS 32
#define PATH_SIZE 1024

typedef struct outputs {
  unsigned char *bytes;
  size_t size;
} outputs;

/* Who computes. */
typedef struct way {
  const char *isa, *device; /* NULL: the best there is; the CPU */
  uint32_t threads;
  bool is_reference;
} way;

static char folder[PATH_SIZE];
static char models[MAX_MODELS][256];
static size_t n_models;

/* ---- A run ---- */

static void write_inputs(berth_session *session) {
  const berth_graph *bound = berth_plan_graph(berth_session_plan(session));
  uint64_t seed = 3;
  berth_error err;
  for (uint32_t i = 0; i < berth_graph_n_inputs(bound); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(bound, berth_graph_input_at(bound, i), &info, &err));
    assert_true(info.type == BERTH_F32 || info.type == BERTH_U8);
    unsigned char *data = malloc((size_t)info.size);
    assert_non_null(data);
    for (uint64_t k = 0; k < info.size / (info.type == BERTH_F32 ? sizeof(float) : 1); k++) {
      const float x = test_random_f32(&seed);
      if (info.type == BERTH_F32)
        memcpy(data + k * sizeof x, &x, sizeof x);
      else
        data[k] = (unsigned char)(128 + 127 * x);
    }
    TEST_OK(berth_session_write_at(session, i, data, (size_t)info.size, &err));
    free(data);
  }
}

static outputs read_outputs(berth_session *session) {
  const berth_graph *bound = berth_plan_graph(berth_session_plan(session));
  outputs all = {0};
  berth_error err;
  for (uint32_t i = 0; i < berth_graph_n_outputs(bound); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(bound, berth_graph_output_at(bound, i), &info, &err));
    unsigned char *more = realloc(all.bytes, all.size + (size_t)info.size);
    assert_non_null(more);
    TEST_OK(berth_session_read_at(session, i, more + all.size, (size_t)info.size, &err));
    all = (outputs){more, all.size + (size_t)info.size};
  }
  return all;
}

static berth_context *context_for(const way *w) {
  berth_options options = BERTH_OPTIONS_INIT;
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx = NULL;
  berth_error err;
  options.cpu_isa = w->isa;
  desc.options = &options;
  desc.n_threads = w->threads;
  TEST_OK(berth_context_create(&desc, &ctx, &err));
  return ctx;
}

static outputs run(const char *model, const way *w) {
  const berth_dim dims[] = {{"batch", 2}, {"rows", 5}};
  berth_context *ctx = context_for(w);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  TEST_OK(berth_graph_load(ctx, model, &graph, &err));
  plan.dims = strcmp(berth_graph_dim_name(graph, 0), "rows") == 0 ? dims + 1 : dims;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = w->device;
  desc.flags = w->is_reference ? BERTH_SESSION_REFERENCE : 0;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  write_inputs(session);
  TEST_OK(berth_session_run(session, &err));
  const outputs all = read_outputs(session);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return all;
}

static int differs(const char *model, const way *w, const outputs *expected) {
  const outputs got = run(model, w);
  size_t at = 0;
  assert_int_equal(got.size, expected->size);
  while (at < got.size && got.bytes[at] == expected->bytes[at]) at++;
  if (at < got.size)
    fprintf(stderr, "%s: byte %zu of %zu is another on %s%s%s with %u threads\n", model, at, got.size,
            w->device != NULL ? w->device : "cpu", w->isa != NULL ? ", " : "", w->isa != NULL ? w->isa : "",
            w->threads);
  free(got.bytes);
  return at < got.size;
}

/* ---- All of them ---- */

static int differ_on_cpu(const char *model, const outputs *expected) {
  const berth__cpu_isa *isa;
  int wrong = 0;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (uint32_t threads = 1; threads <= 2; threads++)
      wrong += differs(model, &(way){.isa = isa->name, .threads = threads}, expected);
  return wrong;
}

/* is_quick: the interpreter and drivers are tried as well. */
static int differ_on_devices(const char *model, bool is_quick, const outputs *expected) {
  berth_context *ctx = test_context();
  const char *only = getenv("BERTH_TEST_DEVICE");
  int wrong = 0;
  berth_error err;
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    TEST_OK(berth_device_at(ctx, d, &info, &err));
    if (strcmp(info.name, "cpu") == 0 || (only != NULL && strcmp(info.name, only) != 0)) continue;
    if (!is_quick && strcmp(info.name, "vulkan") != 0) continue;
    if (TEST_IS_SANITIZED && only == NULL && strcmp(info.name, "interp") != 0) continue; /* kernels are the same ones */
    if (info.available)
      wrong += differs(model, &(way){.device = info.name, .threads = 2}, expected);
    else
      print_message("# skip: device %s: %s\n", info.name, info.reason);
  }
  berth_context_destroy(ctx);
  return wrong;
}

static int differs_somewhere(const char *model, bool is_quick) {
  const outputs expected = run(model, &(way){.threads = 2, .is_reference = true});
  int wrong = getenv("BERTH_TEST_DEVICE") == NULL ? differ_on_cpu(model, &expected) : 0;
  wrong += differ_on_devices(model, is_quick, &expected);
  free(expected.bytes);
  return wrong;
}

static int find_models(void **state) {
  (void)state;
  const char *source = getenv("BERTH_SRC");
  snprintf(folder, sizeof folder, "%s/tests/onnx/quantized", source != NULL ? source : ".");
  DIR *entries = opendir(folder);
  for (struct dirent *e; entries != NULL && n_models < MAX_MODELS && (e = readdir(entries)) != NULL;) {
    const size_t length = strlen(e->d_name);
    if (length > 5 && length < sizeof models[0] && strcmp(e->d_name + length - 5, ".onnx") == 0)
      memcpy(models[n_models++], e->d_name, length + 1);
  }
  return entries != NULL ? closedir(entries) : -1;
}

static void random_networks_give_the_same_bytes(void **state) {
  int wrong = 0;
  (void)state;
  assert_true(n_models >= 7);
  for (size_t i = 0; i < n_models; i++) {
    char path[PATH_SIZE + 256];
    snprintf(path, sizeof path, "%s/%s", folder, models[i]);
    wrong += differs_somewhere(path, true);
  }
  assert_int_equal(wrong, 0);
}

static void real_models_give_the_same_bytes(void **state) {
  static const char *const names[] = {"mobilenet_v2_qdq_int8"};
  const char *source = getenv("BERTH_SRC"), *root = getenv("BERTH_MODELS"), *only = getenv("BERTH_TEST_DEVICE");
  int wrong = 0, found = 0;
  (void)state;
  if (TEST_IS_SANITIZED) TEST_SKIP("real models are too slow under the sanitizers");
  if (only != NULL && strcmp(only, "vulkan") != 0) TEST_SKIP("real models are too slow on this device");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%.600s%s/%s/%s.onnx",
             root != NULL     ? root
             : source != NULL ? source
                              : ".",
             root != NULL ? "" : "/../shared/data/models", names[i], names[i]);
    FILE *file = fopen(path, "rb");
    if (file == NULL) continue;
    fclose(file);
    found++;
    wrong += differs_somewhere(path, false);
  }
  if (found == 0) TEST_SKIP("no quantised model is there; BERTH_MODELS names a folder of them");
  assert_int_equal(wrong, 0);
}

/* Between dequantize and quantize, one unit in the last place would be a byte. */
static void resizes_give_the_same_bytes_on_the_cpu(void **state) {
  static const char *const extents[] = {"[1, 5, 9, 11]", "[1, 9, 11, 5]"};
  static const char *const targets[] = {"[1, 5, 31, 45]", "[1, 31, 45, 5]", "[1, 5, 4, 7]", "[1, 4, 7, 5]"};
  static const char *const modes[] = {"linear", "cubic"};
  int wrong = 0;
  (void)state;
  for (int i = 0; i < 8; i++) {
    char text[600];
    uint64_t seed = 5;
    float x[495];
    static float first[6975], got[6975];
    berth_error err;
    for (int k = 0; k < 495; k++) x[k] = test_random_f32(&seed);
    snprintf(text, sizeof text,
             "graph \"g\" { input %%x : f32%s const %%t : i64[4] = %s %%y = resize(%%x, %%t) {mode = \"%s\"%s} "
             "output \"y\" = %%y }",
             extents[i % 2], targets[i / 4 * 2 + i % 2], modes[i / 2 % 2], i > 3 ? ", antialias = 1" : "");
    const size_t size = (i > 3 ? 140 : 6975) * sizeof(float);
    for (uint32_t k = 0; berth__cpu_isa_at(k) != NULL; k++) {
      berth_context *ctx = context_for(&(way){.isa = berth__cpu_isa_at(k)->name, .threads = 2});
      berth_graph *graph = NULL;
      berth_session *session = NULL;
      TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
      TEST_OK(berth_session_create(graph, NULL, &session, &err));
      TEST_OK(berth_session_write_at(session, 0, x, sizeof x, &err));
      TEST_OK(berth_session_run(session, &err));
      TEST_OK(berth_session_read_at(session, 0, k == 0 ? first : got, size, &err));
      if (k > 0 && memcmp(first, got, size) != 0) wrong++;
      berth_session_destroy(session);
      berth_graph_destroy(graph);
      berth_context_destroy(ctx);
    }
  }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_networks_give_the_same_bytes),
      cmocka_unit_test(resizes_give_the_same_bytes_on_the_cpu),
      cmocka_unit_test(real_models_give_the_same_bytes),
  };
  return cmocka_run_group_tests(tests, find_models, NULL);
}
