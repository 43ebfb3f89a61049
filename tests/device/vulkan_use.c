#include "vulkan_use.h"

#ifdef BERTH__HAS_VULKAN
void vulkan_start(vulkan_fixture *f, const char *device, uint32_t flags) {
  gpu_start(&f->use, gpu_products, device, flags);
  f->engine = f->use.session->engine;
}

void vulkan_finish(vulkan_fixture *f) {
  gpu_finish(&f->use);
  vulkan_test_silent();
}

void vulkan_expect_right(berth_session *session) { gpu_expect_right(session, gpu_products, 1e-4f); }

const vulkan_way vulkan_ways[VULKAN_WAYS] = {
    {"mapped", NULL}, {"staged", NULL}, {"mapped", "5000"}, {"staged", "5000"}};

void vulkan_start_in(vulkan_fixture *f, size_t way, uint32_t flags) {
  vulkan_test_memory(vulkan_ways[way].memory);
  vulkan_test_max_binding(vulkan_ways[way].max_binding);
  vulkan_start(f, "vulkan", flags);
  vulkan_test_memory(NULL);
  vulkan_test_max_binding(NULL);
}

void vulkan_set_up(vulkan_bench *b, const char *memory) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_error err;
  memset(b, 0, sizeof *b);
  b->ctx = test_context_counting(&b->alloc);
  desc.device = "vulkan";
  TEST_OK(berth_graph_parse(b->ctx, gpu_products, strlen(gpu_products), &b->graph, &err));
  TEST_OK(berth_plan_create(b->graph, &desc, &b->plan, &err));
  vulkan_test_memory(memory);
  test_read_options(b->ctx);
  TEST_OK(berth__vulkan_device.open(b->ctx, NULL, 1, &b->engine, &err));
  vulkan_test_memory(NULL);
  b->handles = b->engine->counts.handles;
}

void vulkan_take_down(vulkan_bench *b) {
  berth__vulkan_device.close(b->engine);
  berth_plan_destroy(b->plan);
  berth_graph_destroy(b->graph);
  test_context_done(b->ctx, &b->alloc);
  vulkan_test_silent();
}

berth_status vulkan_use_once(vulkan_bench *b) {
  const berth__device *device = &berth__vulkan_device;
  const berth__observer nobody = {0};
  berth__block *block = NULL;
  berth__program *program = NULL;
  float x[GPU_N_IN] = {0};
  berth_status status = device->block_create(b->engine, berth_plan_arena_size(b->plan), 64, NULL, &block, &b->err);
  if (status == BERTH_OK) status = device->program_create(b->engine, b->plan, false, &program, &b->err);
  if (status == BERTH_OK) status = device->program_bind(program, block, NULL, &b->err);
  if (status == BERTH_OK) status = device->write(block, 0, x, sizeof x, &b->err);
  if (status == BERTH_OK) status = berth__device_run(device, program, &nobody, &b->err);
  if (status == BERTH_OK) status = device->read(block, 0, x, sizeof x, &b->err);
  device->block_destroy(block);
  if (status == BERTH_OK) { /* nothing uses bytes that are gone */
    berth_error err;
    test_expect_error(berth__device_run(device, program, &nobody, &err), BERTH_INTERNAL, &err, "gone");
  }
  device->program_destroy(program);
  return status;
}
#else
typedef int vulkan_use_is_empty;
#endif
