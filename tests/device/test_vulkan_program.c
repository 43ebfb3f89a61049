/* Programs on the device "vulkan": what a run costs, windows, times, and everything that can go wrong. */
#include <math.h>
#include <stdlib.h>

#include "support.h"
#include "vulkan.h"

#ifdef BERTH__HAS_VULKAN
#include "base/thread.h"
#include "device/vulkan/program.h"
#include "session/session.h"

/* Two products of which neither needs the other, and what joins them. */
static const char text[] =
    "graph \"p\" { input %x : f32[20, 30] param %v : f32[30, 40] param %w : f32[30, 40] param %b : f32[40]\n"
    " %p = matmul(%x, %v) %q = matmul(%x, %w) %r = add(%p, %b) %s = mul(%r, %q) %t = tanh(%s) output \"t\" = %t }";
#define N_IN 600
#define N_OUT 800

typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  berth__engine *engine;
  berth_error err;
} fixture;

static void set_params(berth_session *session) {
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

static void start(fixture *f, const char *device, uint32_t flags) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  desc.device = device;
  desc.flags = flags;
  TEST_OK(berth_graph_parse(f->ctx, text, sizeof text - 1, &f->graph, &err));
  TEST_OK(berth_session_create(f->graph, &desc, &f->session, &err));
  set_params(f->session);
  f->engine = f->session->engine;
}

static void finish(fixture *f) {
  berth_session_destroy(f->session);
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
  vulkan_test_silent();
}

static berth_status compute(berth_session *session, float out[N_OUT], berth_error *err) {
  float in[N_IN];
  for (int i = 0; i < N_IN; i++) in[i] = sinf((float)i);
  memset(out, 0, N_OUT * sizeof *out);
  berth_status status = berth_session_write(session, "x", in, sizeof in, err);
  if (status == BERTH_OK) status = berth_session_run(session, err);
  return status == BERTH_OK ? berth_session_read(session, "t", out, N_OUT * sizeof *out, err) : status;
}

static void expect_right(berth_session *session) {
  static float want[N_OUT];
  static bool is_known;
  float got[N_OUT];
  berth_error err;
  if (!is_known) {
    fixture f;
    start(&f, "cpu", 0);
    TEST_OK(compute(f.session, want, &err));
    finish(&f);
    is_known = true;
  }
  TEST_OK(compute(session, got, &err));
  for (int i = 0; i < N_OUT; i++)
    if (!(fabsf(got[i] - want[i]) < 1e-4f)) fail_msg("element %d is %g, not %g", i, (double)got[i], (double)want[i]);
}

static const struct {
  const char *memory, *max_binding;
} ways[] = {{"mapped", NULL}, {"staged", NULL}, {"mapped", "5000"}, {"staged", "5000"}};
#define N_WAYS (sizeof ways / sizeof ways[0])

static void start_in_way(fixture *f, size_t way, uint32_t flags) {
  vulkan_test_memory(ways[way].memory);
  vulkan_test_max_binding(ways[way].max_binding);
  start(f, "vulkan", flags);
  vulkan_test_memory(NULL);
  vulkan_test_max_binding(NULL);
}

static void gives_what_the_cpu_gives(void **state) {
  fixture f;
  (void)state;
  for (size_t way = 0; way < N_WAYS; way++) {
    for (int checked = 0; checked < 2; checked++) {
      berth_session *clone;
      berth_error err;
      start_in_way(&f, way, checked ? BERTH_SESSION_CHECKED : 0);
      assert_true(berth__session_current(f.session)->program->windows == (ways[way].max_binding != NULL));
      expect_right(f.session);
      expect_right(f.session);
      TEST_OK(berth_session_clone(f.session, &clone, &err));
      expect_right(clone);
      berth_session_destroy(f.session);
      f.session = NULL;
      expect_right(clone);
      berth_session_destroy(clone);
      finish(&f);
    }
  }
}

/* ---- What a run costs ---- */

static void runs_leave_nothing_behind(void **state) {
  const int n = 10000;
  fixture f;
  berth_error err;
  (void)state;
  for (size_t way = 0; way < N_WAYS; way += 3) {
    start_in_way(&f, way, 0);
    for (int i = 0; i < 10; i++) expect_right(f.session); /* until the driver has all that it keeps */
    const berth__vulkan_counts before = f.engine->counts;
    const uint64_t calls = atomic_load(&f.alloc.calls), live = f.engine->host.n_live;
    for (int i = 0; i < n; i++) TEST_OK(berth_session_run(f.session, &err));
    const berth__vulkan_counts after = f.engine->counts;
    assert_int_equal(atomic_load(&f.alloc.calls), calls);
    assert_true(f.engine->host.n_live <= live + 2); /* a driver frees the last submission when it comes to it */
    assert_int_equal(after.handles, before.handles);
    assert_int_equal(after.memory, before.memory);
    assert_int_equal(after.peak_memory, before.peak_memory);
    assert_int_equal(after.pipelines, before.pipelines);
    assert_int_equal(after.descriptors, before.descriptors);
    assert_int_equal(after.recordings, before.recordings);
    assert_int_equal(after.submissions, before.submissions + (uint64_t)n);
    expect_right(f.session);
    finish(&f);
  }
}

static void binding_again_records_nothing(void **state) {
  fixture f;
  berth_error err;
  (void)state;
  start(&f, "vulkan", 0);
  const uint64_t recordings = f.engine->counts.recordings, descriptors = f.engine->counts.descriptors;
  TEST_OK(berth__session_rebind(f.session, &err));
  assert_int_equal(f.engine->counts.recordings, recordings);
  assert_int_equal(f.engine->counts.descriptors, descriptors);
  finish(&f);
}

static void everything_is_given_back(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_graph *graph;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth__program *program;
  berth_error err;
  (void)state;
  desc.device = "vulkan";
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth__vulkan_device.open(ctx, NULL, 1, &engine, &err));
  const uint64_t handles = engine->counts.handles;
  for (int i = 0; i < 3; i++) {
    TEST_OK(berth__vulkan_device.block_create(engine, berth_plan_arena_size(plan), 64, NULL, &block, &err));
    TEST_OK(berth__vulkan_device.program_create(engine, plan, false, &program, &err));
    TEST_OK(berth__vulkan_device.program_bind(program, block, NULL, &err));
    berth__vulkan_device.program_destroy(program);
    berth__vulkan_device.block_destroy(block);
    assert_int_equal(engine->counts.handles, handles);
    assert_int_equal(engine->counts.memory, 0);
  }
  berth__vulkan_device.close(engine);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* Of three products the last needs the first; the first two do not wait for each other. */
static void barriers_stand_where_bytes_conflict(void **state) {
  static const char products[] =
      "graph \"b\" { input %x : f32[8, 8] input %y : f32[8, 8] %p = matmul(%x, %y) %q = matmul(%y, %x)\n"
      " %r = matmul(%p, %x) output \"q\" = %q output \"r\" = %r }";
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_context *ctx = test_context();
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  (void)state;
  desc.device = "vulkan";
  TEST_OK(berth_graph_parse(ctx, products, sizeof products - 1, &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  const berth__recipe *recipe = berth__session_current(session)->program->recipe;
  assert_int_equal(recipe->n_dispatches, 3);
  assert_int_equal(recipe->dispatches[0].waits + recipe->dispatches[1].waits + recipe->dispatches[2].waits, 1);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* ---- Times ---- */

typedef struct seen {
  uint32_t count, last;
  double ms;
} seen;

static void look(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  seen *s = user;
  (void)node, (void)out, (void)n_out;
  assert_true(s->count == 0 || step > s->last);
  assert_true(ms >= 0);
  s->last = step;
  s->count++;
  s->ms += ms;
}

static void tells_the_time_of_every_step(void **state) {
  fixture f;
  (void)state;
  for (size_t way = 0; way < N_WAYS; way += 3) {
    seen s = {0};
    start_in_way(&f, way, 0);
    berth_session_observe(f.session, look, &s);
    const double begin = berth__now_ms();
    expect_right(f.session);
    assert_true(s.count >= 2 && s.ms > 0 && s.ms < berth__now_ms() - begin);
    berth_session_observe(f.session, NULL, NULL);
    expect_right(f.session);
    finish(&f);
  }
}

/* ---- Faults: one call of the driver's fails, and then nothing works or everything does again ---- */

static struct {
  uint64_t left; /* calls that are still let through */
  VkResult result;
  PFN_vkQueueSubmit submit;
  PFN_vkWaitForFences wait;
  PFN_vkAllocateMemory allocate;
  PFN_vkCreateComputePipelines pipelines;
} fault;

static bool fails_now(void) { return fault.left != 0 && --fault.left == 0; }

static VkResult VKAPI_CALL bad_submit(VkQueue queue, uint32_t n, const VkSubmitInfo *info, VkFence fence) {
  return fails_now() ? fault.result : fault.submit(queue, n, info, fence);
}

static VkResult VKAPI_CALL bad_wait(VkDevice device, uint32_t n, const VkFence *fences, VkBool32 all,
                                    uint64_t timeout) {
  return fails_now() ? fault.result : fault.wait(device, n, fences, all, timeout);
}

static VkResult VKAPI_CALL bad_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                        const VkAllocationCallbacks *host, VkDeviceMemory *out) {
  return fails_now() ? fault.result : fault.allocate(device, info, host, out);
}

static VkResult VKAPI_CALL bad_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n,
                                         const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *host,
                                         VkPipeline *out) {
  return fails_now() ? fault.result : fault.pipelines(device, cache, n, info, host, out);
}

static void break_driver(berth__engine *engine, uint64_t after, VkResult result) {
  fault.left = after;
  fault.result = result;
  fault.submit = engine->vk.QueueSubmit;
  fault.wait = engine->vk.WaitForFences;
  fault.allocate = engine->vk.AllocateMemory;
  fault.pipelines = engine->vk.CreateComputePipelines;
}

/* From the first failure on everything says the same; and everything can still be destroyed. */
static void expect_lost(fixture *f, const char *part) {
  float out[N_OUT];
  char first[sizeof f->err.message];
  berth_session *clone;
  test_expect_error(compute(f->session, out, &f->err), BERTH_DEVICE_LOST, &f->err, part);
  memcpy(first, f->err.message, sizeof first);
  test_expect_error(berth_session_run(f->session, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  test_expect_error(berth_session_write(f->session, "x", out, N_IN * 4, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  test_expect_error(berth_session_read(f->session, "t", out, N_OUT * 4, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  test_expect_error(berth_session_set_param(f->session, "b", out, 160, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  test_expect_error(berth_session_clone(f->session, &clone, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  finish(f);
}

static void a_lost_device_stays_lost(void **state) {
  fixture f;
  (void)state;
  for (size_t way = 0; way < 2; way++) {
    for (uint64_t after = 1; after <= (way == 0 ? 1u : 2u); after++) { /* staged: of the input, of the run */
      start_in_way(&f, way, 0);
      expect_right(f.session);
      break_driver(f.engine, after, VK_ERROR_DEVICE_LOST);
      f.engine->vk.QueueSubmit = bad_submit;
      expect_lost(&f, "lost while");
      start_in_way(&f, way, 0);
      expect_right(f.session);
      break_driver(f.engine, after, VK_ERROR_DEVICE_LOST);
      f.engine->vk.WaitForFences = bad_wait;
      expect_lost(&f, "lost while");
    }
  }
}

static void what_hangs_is_lost(void **state) {
  fixture f;
  (void)state;
  start(&f, "vulkan", 0);
  expect_right(f.session);
  break_driver(f.engine, 1, VK_TIMEOUT);
  f.engine->vk.WaitForFences = bad_wait;
  expect_lost(&f, "BERTH_VULKAN_TIMEOUT");
  setenv("BERTH_VULKAN_TIMEOUT", "1e-9", 1); /* nothing is so fast, and it all ends while things are destroyed */
  start(&f, "vulkan", 0);
  unsetenv("BERTH_VULKAN_TIMEOUT");
  assert_int_equal(f.engine->timeout, 1);
  expect_lost(&f, "BERTH_VULKAN_TIMEOUT");
}

/* A submission that finds no memory was not made: the next one may succeed. */
static void no_memory_for_a_submission_is_no_end(void **state) {
  static const struct {
    VkResult result;
    berth_status status;
  } faults[] = {{VK_ERROR_OUT_OF_HOST_MEMORY, BERTH_NOMEM}, {VK_ERROR_OUT_OF_DEVICE_MEMORY, BERTH_DEVICE_NOMEM}};
  fixture f;
  float out[N_OUT];
  (void)state;
  for (size_t way = 0; way < 2; way++) {
    start_in_way(&f, way, 0);
    for (size_t i = 0; i < 2; i++) {
      break_driver(f.engine, 1, faults[i].result);
      f.engine->vk.QueueSubmit = bad_submit;
      test_expect_error(compute(f.session, out, &f.err), faults[i].status, &f.err, "memory");
      f.engine->vk.QueueSubmit = fault.submit;
      set_params(f.session); /* staged, what was on its way is gone */
      expect_right(f.session);
    }
    finish(&f);
  }
}

static void no_memory_for_a_block(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  (void)state;
  vulkan_test_memory("staged");
  TEST_OK(berth__vulkan_device.open(ctx, NULL, 1, &engine, &err));
  vulkan_test_memory(NULL);
  const uint64_t handles = engine->counts.handles;
  for (uint64_t after = 1; after <= 2; after++) { /* the block's own memory, the ring's */
    break_driver(engine, after, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    engine->vk.AllocateMemory = bad_allocate;
    test_expect_error(berth__vulkan_device.block_create(engine, 1 << 20, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM,
                      &err, after == 1 ? "1048576 bytes" : "bytes");
    assert_null(block);
    engine->vk.AllocateMemory = fault.allocate;
    assert_int_equal(engine->counts.handles, handles);
    assert_int_equal(engine->counts.memory, 0);
  }
  uint64_t *const most[] = {&engine->max_buffer, &engine->max_allocation, &engine->memory.memoryHeaps[0].size};
  static const char *const words[] = {"a buffer has at most 1000", "one allocation has at most 1000",
                                      "the largest heap of memory has 1000"};
  for (int i = 0; i < 3; i++) {
    const uint64_t kept = *most[i];
    *most[i] = 1000;
    test_expect_error(berth__vulkan_device.block_create(engine, 1001, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM, &err,
                      words[i]);
    *most[i] = kept;
  }
  TEST_OK(berth__vulkan_device.block_create(engine, 1 << 20, 64, NULL, &block, &err));
  berth__vulkan_device.block_destroy(block);
  berth__vulkan_device.close(engine);
  test_context_done(ctx, &alloc);
}

/* A second way is tried where the first has no memory left: not every card shows all of its memory to the host. */
static void staged_where_mapped_memory_is_short(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  (void)state;
  TEST_OK(berth__vulkan_device.open(ctx, NULL, 1, &engine, &err));
  VkPhysicalDeviceMemoryProperties *memory = &engine->memory;
  if (memory->memoryTypeCount != 1 || engine->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) {
    berth__vulkan_device.close(engine);
    test_context_done(ctx, &alloc);
    TEST_SKIP("vulkan: this device is no lavapipe, whose memory is made to look like a card's here");
  }
  /* One type, shown as that of a card: a small heap that the host sees is asked for first. */
  break_driver(engine, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  engine->vk.AllocateMemory = bad_allocate;
  TEST_OK(berth__vulkan_device.block_create(engine, 4096, 64, NULL, &block, &err));
  assert_int_equal(fault.left, 0);
  berth__vulkan_device.block_destroy(block);
  berth__vulkan_device.close(engine);
  test_context_done(ctx, &alloc);
}

static void kernels_that_the_driver_refuses(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth__engine *engine;
  berth__program *program;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  (void)state;
  desc.device = "vulkan";
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth__vulkan_device.open(ctx, NULL, 1, &engine, &err));
  const uint64_t handles = engine->counts.handles;
#define REFUSED(status, part)                                                                                        \
  do {                                                                                                               \
    test_expect_error(berth__vulkan_device.program_create(engine, plan, false, &program, &err), status, &err, part); \
    assert_null(program);                                                                                            \
    assert_int_equal(engine->counts.handles, handles);                                                               \
  } while (0)
  for (uint64_t after = 1; after <= 2; after++) {
    break_driver(engine, after, VK_ERROR_INITIALIZATION_FAILED);
    engine->vk.CreateComputePipelines = bad_pipelines;
    REFUSED(BERTH_INTERNAL, "kernel '");
    engine->vk.CreateComputePipelines = fault.pipelines;
  }
  VkPhysicalDeviceLimits *limits = &engine->properties.limits;
  limits->maxComputeWorkGroupInvocations = 1;
  REFUSED(BERTH_UNSUPPORTED, "threads");
  limits->maxComputeWorkGroupInvocations = 1024;
  limits->maxComputeWorkGroupCount[1] = 0;
  REFUSED(BERTH_UNSUPPORTED, "workgroups");
  limits->maxComputeWorkGroupCount[1] = 65535;
  engine->max_binding = 4096; /* bytes; a param has 4800 */
  REFUSED(BERTH_UNSUPPORTED, "4800 bytes in one piece");
  engine->max_binding = 6000;
  limits->maxPerStageDescriptorStorageBuffers = 2;
  REFUSED(BERTH_UNSUPPORTED, "buffers");
  limits->maxPerStageDescriptorStorageBuffers = 64;
  TEST_OK(berth__vulkan_device.program_create(engine, plan, false, &program, &err));
  berth__vulkan_device.program_destroy(program);
  berth__vulkan_device.close(engine);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  vulkan_test_silent();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_what_the_cpu_gives),
      cmocka_unit_test(runs_leave_nothing_behind),
      cmocka_unit_test(binding_again_records_nothing),
      cmocka_unit_test(everything_is_given_back),
      cmocka_unit_test(barriers_stand_where_bytes_conflict),
      cmocka_unit_test(tells_the_time_of_every_step),
      cmocka_unit_test(a_lost_device_stays_lost),
      cmocka_unit_test(what_hangs_is_lost),
      cmocka_unit_test(no_memory_for_a_submission_is_no_end),
      cmocka_unit_test(no_memory_for_a_block),
      cmocka_unit_test(staged_where_mapped_memory_is_short),
      cmocka_unit_test(kernels_that_the_driver_refuses),
  };
  const char *reason = vulkan_test_start();
  if (reason == NULL) return cmocka_run_group_tests(tests, NULL, NULL);
  print_message("# skip: device vulkan: %s\n", reason);
  return 0;
}
#else
int main(void) {
  print_message("# skip: device vulkan: %s\n", vulkan_test_start());
  return 0;
}
#endif
