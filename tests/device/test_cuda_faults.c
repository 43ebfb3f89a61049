/* The device "cuda" where calls of the driver fail, where memory runs out, and where the device is lost. */
#include "support.h"

#ifdef BERTH__HAS_CUDA
#include "cuda_use.h"
#include "device/cuda/code.h"

static const berth__device *const device = &berth__cuda_device;

typedef struct bench {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
} bench;

static void set_up(bench *b) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_error err;
  memset(b, 0, sizeof *b);
  b->ctx = test_context_counting(&b->alloc);
  desc.device = "cuda";
  TEST_OK(berth_graph_parse(b->ctx, gpu_products_softmax, strlen(gpu_products_softmax), &b->graph, &err));
  TEST_OK(berth_plan_create(b->graph, &desc, &b->plan, &err));
}

static void take_down(bench *b) {
  berth_plan_destroy(b->plan);
  berth_graph_destroy(b->graph);
  test_context_done(b->ctx, &b->alloc);
}

/* All that a session does with a device; frees what it made. */
static berth_status use_once(bench *b) {
  static unsigned char many[2 * BERTH__CUDA_LANE_SIZE]; /* fills a lane */
  const berth__observer nobody = {0}, watcher = {.call = cuda_look, .user = &(cuda_seen){0}};
  berth__engine *engine = NULL;
  berth__block *block = NULL;
  berth__program *program = NULL;
  float x[GPU_N_IN] = {0};
  berth_error *err = &b->err;
  berth_status status = device->open(b->ctx, NULL, 1, &engine, err);
  if (status == BERTH_OK) status = device->block_create(engine, sizeof many, 64, NULL, &block, err);
  if (status == BERTH_OK) status = device->program_create(engine, b->plan, false, &program, err);
  if (status == BERTH_OK) status = device->program_bind(program, block, NULL, err);
  if (status == BERTH_OK) status = device->write(block, 0, many, sizeof many, err);
  if (status == BERTH_OK) status = berth__device_run(device, program, &nobody, err);
  if (status == BERTH_OK) status = berth__device_run(device, program, &watcher, err);
  if (status == BERTH_OK) status = device->copy(block, 4, block, 0, 400, err);
  if (status == BERTH_OK) status = device->read(block, 0, x, sizeof x, err);
  device->block_destroy(block);
  if (status == BERTH_OK)
    test_expect_error(berth__device_run(device, program, &nobody, err), BERTH_INTERNAL, err, "gone");
  device->program_destroy(program);
  device->close(engine);
  return status;
}

/* The first use says how many calls there are; then each fails once. */
static void any_call_may_fail(void **state) {
  static const struct {
    int result;
    berth_status status;
  } faults[] = {{2, BERTH_DEVICE_NOMEM}, {1, BERTH_INTERNAL}, {719, BERTH_DEVICE_LOST}};
  bench b;
  (void)state;
  set_up(&b);
  const uint64_t before = cuda_fake->calls;
  assert_int_equal(use_once(&b), BERTH_OK);
  const uint64_t n = cuda_fake->calls - before;
  assert_true(n > 40);
  for (size_t k = 0; k < 3; k++) {
    uint64_t failures = 0;
    for (uint64_t i = 1; i <= n; i += k == 0 ? 1 : 3) {
      cuda_fake->fail_with = faults[k].result;
      cuda_fake->failed = 0;
      cuda_fake->fail_at = i;
      const berth_status status = use_once(&b);
      cuda_fake->fail_at = 0;
      failures += status == faults[k].status;
      assert_int_equal(cuda_fake->failed, 1);
      assert_int_equal(cuda_fake->live, 0);
      assert_int_equal(cuda_fake->current, 0);
      /* Before something is freed, it does not matter how the work that used it ended. */
      if (status == BERTH_OK && strcmp(cuda_fake->failed_call, "cuStreamQuery") == 0) continue;
      if (status == BERTH_OK) fail_msg("%s failed, and nobody said so", cuda_fake->failed_call);
      assert_true(b.err.message[0] != '\0');
    }
    assert_true(failures > 5);
  }
  assert_int_equal(use_once(&b), BERTH_OK);
  take_down(&b);
}

static void host_memory_may_run_out(void) {
  bench b;
  uint64_t failures = 0;
  set_up(&b);
  for (uint64_t k = 1;; k += test_step()) {
    atomic_store(&b.alloc.failed, 0);
    atomic_store(&b.alloc.fail_at, k);
    const berth_status status = use_once(&b);
    atomic_store(&b.alloc.fail_at, 0);
    assert_int_equal(cuda_fake->live, 0);
    if (atomic_load(&b.alloc.failed) == 0) {
      assert_int_equal(status, BERTH_OK);
      break;
    }
    if (status != BERTH_OK) test_expect_error(status, BERTH_NOMEM, &b.err, NULL);
    failures += status != BERTH_OK;
  }
  assert_true(failures > 10);
  take_down(&b);
}

/* Also where kernels come from a pack, and there is no compiler to fall back on. */
static void host_memory_may_run_out_anywhere(void **state) {
  const char *path = test_path("short_pack");
  (void)state;
  host_memory_may_run_out();
  (void)cuda_write_pack("cuda", path, "sm_90");
  cuda_set("BERTH_KERNEL_PACK", path);
  cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  host_memory_may_run_out();
  cuda_set("BERTH_NVRTC", cuda_library);
  cuda_set("BERTH_KERNEL_PACK", NULL);
}

/* From the first failure on everything says the same; and everything can still be destroyed. */
static void expect_lost(gpu_fixture *f, const char *part) {
  float out[GPU_N_OUT];
  berth_error err;
  char first[sizeof err.message];
  test_expect_error(gpu_compute(f->session, out, &err), BERTH_DEVICE_LOST, &err, part);
  memcpy(first, err.message, sizeof first);
  test_expect_error(berth_session_run(f->session, &err), BERTH_DEVICE_LOST, &err, first);
  test_expect_error(berth_session_write(f->session, "x", out, GPU_N_IN * 4, &err), BERTH_DEVICE_LOST, &err, first);
  test_expect_error(berth_session_read(f->session, "t", out, GPU_N_OUT * 4, &err), BERTH_DEVICE_LOST, &err, first);
}

static void a_lost_device_stays_lost(void **state) {
  gpu_fixture f;
  (void)state;
  cuda_start(&f, "cuda", 0);
  cuda_expect_right(f.session);
  cuda_fake->fail_with = 719;
  cuda_fake->fail_at = 2; /* the launch */
  expect_lost(&f, "was lost while running a program: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)");
  cuda_finish(&f);
  static const int fatal[] = {214, 220, 226, 700, 710, 714, 810};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    cuda_start(&f, "cuda", 0);
    cuda_fake->fail_with = fatal[i];
    cuda_fake->fail_at = 2;
    expect_lost(&f, "was lost while");
    cuda_finish(&f);
  }
  cuda_set("BERTH_CUDA_TIMEOUT", "0.01");
  cuda_start(&f, "cuda", 0);
  cuda_set("BERTH_CUDA_TIMEOUT", NULL);
  cuda_expect_right(f.session);
  cuda_fake->hangs = 1;
  expect_lost(&f, "BERTH_CUDA_TIMEOUT");
  cuda_fake->hangs = 0; /* it ends while things are destroyed */
  cuda_finish(&f);
  cuda_start(&f, "cuda", 0); /* a new session goes on */
  cuda_expect_right(f.session);
  cuda_finish(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_call_may_fail),
      cmocka_unit_test(host_memory_may_run_out_anywhere),
      cmocka_unit_test(a_lost_device_stays_lost),
  };
  return cmocka_run_group_tests(tests, cuda_set_up, NULL);
}
#else
int main(void) { return test_skip_all("device cuda", "this build has no device cuda"); }
#endif
