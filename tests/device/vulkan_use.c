#include "vulkan_use.h"

#ifdef BERTH__HAS_VULKAN
#include <math.h>

/* Two products of which neither needs the other, and what joins them. */
static const char text[] =
    "graph \"p\" { input %x : f32[20, 30] param %v : f32[30, 40] param %w : f32[30, 40] param %b : f32[40]\n"
    " %p = matmul(%x, %v) %q = matmul(%x, %w) %r = add(%p, %b) %s = mul(%r, %q) %t = tanh(%s) output \"t\" = %t }";

void vulkan_set_params(berth_session *session) {
  static const struct {
    const char *name;
    size_t n;
  } params[] = {{"v", 1200}, {"w", 1200}, {"b", 40}};
  float data[1200];
  uint64_t seed = 7;
  berth_error err;
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < params[i].n; k++) data[k] = test_random_f32(&seed);
    TEST_OK(berth_session_set_param(session, params[i].name, data, params[i].n * sizeof(float), &err));
  }
}

void vulkan_start(vulkan_fixture *f, const char *device, uint32_t flags) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  desc.device = device;
  desc.flags = flags;
  TEST_OK(berth_graph_parse(f->ctx, text, sizeof text - 1, &f->graph, &err));
  TEST_OK(berth_session_create(f->graph, &desc, &f->session, &err));
  vulkan_set_params(f->session);
  f->engine = f->session->engine;
}

void vulkan_finish(vulkan_fixture *f) {
  berth_session_destroy(f->session);
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
  vulkan_test_silent();
}

berth_status vulkan_compute(berth_session *session, float out[VULKAN_N_OUT], berth_error *err) {
  float in[VULKAN_N_IN];
  for (int i = 0; i < VULKAN_N_IN; i++) in[i] = sinf((float)i);
  memset(out, 0, VULKAN_N_OUT * sizeof *out);
  berth_status status = berth_session_write(session, "x", in, sizeof in, err);
  if (status == BERTH_OK) status = berth_session_run(session, err);
  return status == BERTH_OK ? berth_session_read(session, "t", out, VULKAN_N_OUT * sizeof *out, err) : status;
}

void vulkan_expect_right(berth_session *session) {
  static float want[VULKAN_N_OUT];
  static bool is_known;
  float got[VULKAN_N_OUT];
  berth_error err;
  if (!is_known) {
    vulkan_fixture f;
    vulkan_start(&f, "cpu", 0);
    TEST_OK(vulkan_compute(f.session, want, &err));
    vulkan_finish(&f);
    is_known = true;
  }
  TEST_OK(vulkan_compute(session, got, &err));
  for (int i = 0; i < VULKAN_N_OUT; i++)
    if (!(fabsf(got[i] - want[i]) < 1e-4f)) fail_msg("element %d is %g, not %g", i, (double)got[i], (double)want[i]);
}

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
  TEST_OK(berth_graph_parse(b->ctx, text, sizeof text - 1, &b->graph, &err));
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
  float x[VULKAN_N_IN] = {0};
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
