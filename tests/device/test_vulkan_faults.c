/* Everything that can go wrong on the device "vulkan": memory, the device itself, kernels that it does not take. */
#include <stdlib.h>

#include "support.h"
#include "vulkan.h"
#include "vulkan_use.h"

#ifdef BERTH__HAS_VULKAN
/* Each allocation in turn, the driver's among them. */
static void host_memory_may_run_out_anywhere(void **state) {
  static const char *const memories[] = {"mapped", "staged"};
  vulkan_bench b;
  (void)state;
  for (int m = 0; m < 2; m++) {
    uint64_t failures = 0;
    vulkan_set_up(&b, memories[m]);
    for (uint64_t k = 1;; k++) {
      atomic_store(&b.alloc.failed, 0);
      atomic_store(&b.alloc.fail_at, k);
      const berth_status status = vulkan_use_once(&b);
      atomic_store(&b.alloc.fail_at, 0);
      assert_true(b.engine->counts.memory == b.engine->ring.allocated);
      if (atomic_load(&b.alloc.failed) == 0) {
        assert_int_equal(status, BERTH_OK);
        break;
      }
      if (status != BERTH_OK) test_expect_error(status, BERTH_NOMEM, &b.err, NULL);
      failures += status != BERTH_OK;
    }
    assert_true(failures > 50);
    assert_int_equal(vulkan_use_once(&b), BERTH_OK);
    vulkan_take_down(&b);
  }
}

/* ---- Faults: one call of the driver's fails, and then nothing works or everything does again ---- */

static struct {
  uint64_t left; /* calls that are still let through */
  VkResult result;
  PFN_vkQueueSubmit submit;
  PFN_vkEndCommandBuffer end;
  PFN_vkWaitForFences wait;
  PFN_vkAllocateMemory allocate;
  PFN_vkCreateComputePipelines pipelines;
} fault;

static bool fails_now(void) { return fault.left != 0 && --fault.left == 0; }

static VkResult VKAPI_CALL bad_submit(VkQueue queue, uint32_t n, const VkSubmitInfo *info, VkFence fence) {
  return fails_now() ? fault.result : fault.submit(queue, n, info, fence);
}

static VkResult VKAPI_CALL bad_end(VkCommandBuffer commands) {
  const VkResult result = fault.end(commands);
  return fails_now() ? fault.result : result;
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
  fault.end = engine->vk.EndCommandBuffer;
  fault.wait = engine->vk.WaitForFences;
  fault.allocate = engine->vk.AllocateMemory;
  fault.pipelines = engine->vk.CreateComputePipelines;
}

/* From the first failure on everything says the same; and everything can still be destroyed. */
static void expect_lost(vulkan_fixture *f, const char *part) {
  float out[GPU_N_OUT];
  char first[sizeof f->err.message];
  berth_session *clone;
  test_expect_error(gpu_compute(f->use.session, out, &f->err), BERTH_DEVICE_LOST, &f->err, part);
  memcpy(first, f->err.message, sizeof first);
  test_expect_error(berth_session_run(f->use.session, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  test_expect_error(berth_session_write(f->use.session, "x", out, GPU_N_IN * 4, &f->err), BERTH_DEVICE_LOST, &f->err,
                    first);
  test_expect_error(berth_session_read(f->use.session, "t", out, GPU_N_OUT * 4, &f->err), BERTH_DEVICE_LOST, &f->err,
                    first);
  test_expect_error(berth_session_set_param(f->use.session, "b", out, 160, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  test_expect_error(berth_session_clone(f->use.session, &clone, &f->err), BERTH_DEVICE_LOST, &f->err, first);
  vulkan_finish(f);
}

static void a_lost_device_stays_lost(void **state) {
  vulkan_fixture f;
  (void)state;
  for (size_t way = 0; way < 2; way++) {
    for (uint64_t after = 1; after <= (way == 0 ? 1u : 2u); after++) { /* the run, with its input; staged: the result */
      vulkan_start_in(&f, way, 0);
      vulkan_expect_right(f.use.session);
      break_driver(f.engine, after, VK_ERROR_DEVICE_LOST);
      f.engine->vk.QueueSubmit = bad_submit;
      expect_lost(&f, "lost while");
      vulkan_start_in(&f, way, 0);
      vulkan_expect_right(f.use.session);
      break_driver(f.engine, after, VK_ERROR_DEVICE_LOST);
      f.engine->vk.WaitForFences = bad_wait;
      expect_lost(&f, "lost while");
    }
    vulkan_start_in(&f, way, 0); /* a run that nothing was written for */
    vulkan_expect_right(f.use.session);
    break_driver(f.engine, 1, VK_ERROR_DEVICE_LOST);
    f.engine->vk.QueueSubmit = bad_submit;
    test_expect_error(berth_session_run(f.use.session, &f.err), BERTH_DEVICE_LOST, &f.err, "lost while running");
    expect_lost(&f, "lost while running");
  }
}

static void what_hangs_is_lost(void **state) {
  vulkan_fixture f;
  (void)state;
  vulkan_start(&f, "vulkan", 0);
  vulkan_expect_right(f.use.session);
  break_driver(f.engine, 1, VK_TIMEOUT);
  f.engine->vk.WaitForFences = bad_wait;
  expect_lost(&f, "BERTH_VULKAN_TIMEOUT");
  setenv("BERTH_VULKAN_TIMEOUT", "1e-9", 1); /* nothing is so fast, and it all ends while things are destroyed */
  vulkan_start(&f, "vulkan", 0);
  unsetenv("BERTH_VULKAN_TIMEOUT");
  assert_int_equal(f.engine->timeout, 1);
  expect_lost(&f, "BERTH_VULKAN_TIMEOUT");
}

/* A run of the same session again: what was written before the failure is still there. */
static void expect_second_run(vulkan_fixture *f) {
  float want[GPU_N_OUT], got[GPU_N_OUT];
  berth_error err;
  TEST_OK(berth_session_run(f->use.session, &err));
  TEST_OK(berth_session_read(f->use.session, "t", got, sizeof got, &err));
  TEST_OK(gpu_compute(f->use.session, want, &err));
  assert_memory_equal(got, want, sizeof got);
  vulkan_expect_right(f->use.session);
}

/* A submission that finds no memory was not made: the next one may succeed, with all that was written for the first. */
static void no_memory_for_a_submission_is_no_end(void **state) {
  static const struct {
    VkResult result;
    berth_status status;
  } faults[] = {{VK_ERROR_OUT_OF_HOST_MEMORY, BERTH_NOMEM}, {VK_ERROR_OUT_OF_DEVICE_MEMORY, BERTH_DEVICE_NOMEM}};
  vulkan_fixture f;
  float out[GPU_N_OUT];
  (void)state;
  for (size_t way = 0; way < 2; way++)
    for (size_t i = 0; i < 2; i++)
      for (int at_end = 0; at_end < (way == 1 ? 2 : 1); at_end++) {
        vulkan_start_in(&f, way, 0); /* params are on their way too */
        break_driver(f.engine, 1, faults[i].result);
        if (at_end)
          f.engine->vk.EndCommandBuffer = bad_end; /* of what is written */
        else
          f.engine->vk.QueueSubmit = bad_submit;
        test_expect_error(gpu_compute(f.use.session, out, &f.err), faults[i].status, &f.err, "memory");
        f.engine->vk.QueueSubmit = fault.submit;
        f.engine->vk.EndCommandBuffer = fault.end;
        expect_second_run(&f);
        vulkan_finish(&f);
      }
}

/* What was to be copied to a block that is gone is dropped, and what goes elsewhere is not. */
static void a_block_that_is_gone_takes_its_writes_along(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *blocks[2];
  uint32_t written[2] = {0x01234567, 0x89abcdef}, got = 0;
  berth_error err;
  (void)state;
  vulkan_test_memory("staged");
  test_read_options(ctx);
  TEST_OK(berth__vulkan_device.open(ctx, NULL, 1, &engine, &err));
  vulkan_test_memory(NULL);
  for (int i = 0; i < 2; i++) TEST_OK(berth__vulkan_device.block_create(engine, 4096, 64, NULL, &blocks[i], &err));
  for (int i = 0; i < 2; i++) TEST_OK(berth__vulkan_device.write(blocks[i], 16, &written[i], 4, &err));
  break_driver(engine, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  engine->vk.QueueSubmit = bad_submit;
  berth__vulkan_device.block_destroy(blocks[0]);
  engine->vk.QueueSubmit = fault.submit;
  TEST_OK(berth__vulkan_device.read(blocks[1], 16, &got, 4, &err));
  assert_int_equal(got, written[1]);
  for (uint32_t i = 0; i < 1000; i++) TEST_OK(berth__vulkan_device.write(blocks[1], 4 * (i % 7), &i, 4, &err));
  for (uint32_t i = 0; i < 7; i++) { /* more copies than a lane holds; those to the same bytes are in order */
    TEST_OK(berth__vulkan_device.read(blocks[1], 4 * i, &got, 4, &err));
    assert_int_equal(got, 999 - (999 - i) % 7);
  }
  berth__vulkan_device.block_destroy(blocks[1]);
  berth__vulkan_device.close(engine);
  test_context_done(ctx, &alloc);
  vulkan_test_silent();
}

static void no_memory_for_a_block(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  (void)state;
  vulkan_test_memory("staged");
  test_read_options(ctx);
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

static void expect_refused(vulkan_bench *b, berth_status status, const char *part) {
  berth__program *program;
  test_expect_error(berth__vulkan_device.program_create(b->engine, b->plan, false, &program, &b->err), status, &b->err,
                    part);
  assert_null(program);
  assert_int_equal(b->engine->counts.handles, b->handles);
}

static void kernels_that_the_driver_refuses(void **state) {
  vulkan_bench b;
  (void)state;
  vulkan_set_up(&b, NULL);
  for (uint64_t after = 1; after <= 2; after++) {
    break_driver(b.engine, after, VK_ERROR_INITIALIZATION_FAILED);
    b.engine->vk.CreateComputePipelines = bad_pipelines;
    expect_refused(&b, BERTH_INTERNAL, "kernel '");
    b.engine->vk.CreateComputePipelines = fault.pipelines;
  }
  VkPhysicalDeviceLimits *limits = &b.engine->properties.limits;
  b.engine->core.max_threads = 1;
  expect_refused(&b, BERTH_UNSUPPORTED, "threads");
  b.engine->core.max_threads = 1024;
  b.engine->core.max_groups = 0;
  expect_refused(&b, BERTH_UNSUPPORTED, "workgroups");
  b.engine->core.max_groups = 65535;
  b.engine->max_binding = 4096; /* bytes; a param has 4800 */
  expect_refused(&b, BERTH_UNSUPPORTED, "4800 bytes in one piece");
  b.engine->max_binding = 6000;
  limits->maxPerStageDescriptorStorageBuffers = 2;
  expect_refused(&b, BERTH_UNSUPPORTED, "buffers");
  limits->maxPerStageDescriptorStorageBuffers = 64;
  assert_int_equal(vulkan_use_once(&b), BERTH_OK);
  vulkan_take_down(&b);
}

/* What the validation layer says is not passed over. */
static void a_run_fails_with_what_validation_says(void **state) {
  const VkFenceCreateInfo wrong = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  VkFence fence;
  float out[GPU_N_OUT];
  vulkan_fixture f;
  (void)state;
  if (getenv("BERTH_VULKAN_VALIDATION") == NULL) TEST_SKIP("the validation layer is not installed");
  vulkan_start(&f, "vulkan", 0);
  assert_int_equal(BERTH__VK_CREATE(f.engine, Fence, &wrong, &fence), VK_SUCCESS);
  BERTH__VK_DESTROY(f.engine, Fence, fence);
  test_expect_error(gpu_compute(f.use.session, out, &f.err), BERTH_INTERNAL, &f.err, "vkCreateFence");
  assert_int_equal(vulkan_test_heard(), 1);
  vulkan_expect_right(f.use.session);
  vulkan_finish(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(host_memory_may_run_out_anywhere),
      cmocka_unit_test(a_lost_device_stays_lost),
      cmocka_unit_test(what_hangs_is_lost),
      cmocka_unit_test(no_memory_for_a_submission_is_no_end),
      cmocka_unit_test(a_block_that_is_gone_takes_its_writes_along),
      cmocka_unit_test(no_memory_for_a_block),
      cmocka_unit_test(staged_where_mapped_memory_is_short),
      cmocka_unit_test(kernels_that_the_driver_refuses),
      cmocka_unit_test(a_run_fails_with_what_validation_says),
  };
  const char *reason = vulkan_test_start();
  if (reason == NULL) return cmocka_run_group_tests(tests, NULL, NULL);
  return test_skip_all("device vulkan", reason);
}
#else
int main(void) { return test_skip_all("device vulkan", vulkan_test_start()); }
#endif
