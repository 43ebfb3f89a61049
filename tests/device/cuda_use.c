#include "cuda_use.h"

#include <stdlib.h>

fake_cuda *cuda_fake;
const char *cuda_library;

void cuda_set(const char *name, const char *value) {
  if (value != NULL)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

int cuda_set_up(void **state) {
  (void)state;
  cuda_fake = test_fake_cuda("fake_cuda_state", &cuda_library);
  if (cuda_fake == NULL) return -1;
  cuda_set("BERTH_CUDA_LIBRARY", cuda_library);
  cuda_set("BERTH_NVRTC", cuda_library);
  cuda_set("BERTH_CACHE_DIR", "");
  return 0;
}

berth_device_info cuda_ask(const char *name) {
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_error err;
  berth_context *ctx = test_context();
  for (uint32_t i = 0; i < berth_device_count(ctx); i++) {
    TEST_OK(berth_device_at(ctx, i, &info, &err));
    if (strcmp(info.name, name) == 0) break;
  }
  assert_string_equal(info.name, name);
  berth_context_destroy(ctx);
  return info;
}

void cuda_start(gpu_fixture *f, const char *name, uint32_t flags) { gpu_start(f, gpu_products_softmax, name, flags); }

void cuda_finish(gpu_fixture *f) {
  gpu_finish(f);
  assert_int_equal(cuda_fake->live, 0);
  assert_int_equal(cuda_fake->current, 0);
  assert_int_equal(cuda_fake->wrong_barriers, 0);
}

void cuda_expect_right(berth_session *session) { gpu_expect_right(session, gpu_products_softmax, 1e-5f); }

void cuda_look(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  cuda_seen *s = user;
  (void)step, (void)node, (void)out, (void)n_out;
  s->count++;
  s->ms += ms;
}

const char *cuda_write_pack(const char *name, const char *path, const char *targets) {
  static char compiled_for[sizeof cuda_fake->architecture];
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_context *ctx = test_context();
  test_buffer bytes = {0};
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  desc.device = name;
  if (targets != NULL) desc.gpu_profile = "hopper"; /* as on a machine without the GPU */
  TEST_OK(berth_graph_parse(ctx, gpu_products_softmax, strlen(gpu_products_softmax), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_kernels_pack((const berth_plan *const[]){plan, plan}, 2, targets, test_buffer_write, &bytes, &err));
  memcpy(compiled_for, cuda_fake->architecture, sizeof compiled_for);
  test_write_file(path, bytes.data, bytes.size);
  test_buffer_free(&bytes);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return compiled_for;
}
