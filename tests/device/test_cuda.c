/* The device "cuda" on an emulated driver: what is missing, bytes in and out of blocks, programs, what a
 * run costs, and compiling. */
#include <math.h>

#include "support.h"

#ifdef BERTH__HAS_CUDA
#include "block_model.h"
#include "cuda_use.h"
#include "device/cuda/code.h"

static const berth__device *const device = &berth__cuda_device;

/* ---- What is missing ---- */

static void expect_reason(const char *part) {
  const berth_device_info info = cuda_ask("cuda");
  assert_false(info.available);
  if (strstr(info.reason, part) == NULL) fail_msg("'%s' is not in '%s'", part, info.reason);
}

/* In this order: once a driver was taken, it stays. */
static void says_what_is_missing(void **state) {
  berth_context *ctx;
  berth__engine *engine;
  berth_error err;
  (void)state;
  cuda_set("BERTH_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
  expect_reason("BERTH_CUDA_LIBRARY names a library that cannot be opened");
  cuda_set("BERTH_CUDA_LIBRARY", cuda_library);
  cuda_set("FAKE_CUDA_VERSION", "10020");
  expect_reason("too old: it has CUDA 10.2, and 11.4 is needed");
  cuda_set("FAKE_CUDA_VERSION", NULL);
  cuda_set("FAKE_CUDA_DEVICES", "0");
  expect_reason("finds no GPU");
  ctx = test_context();
  test_expect_error(device->open(ctx, NULL, 1, &engine, &err), BERTH_UNSUPPORTED, &err, "cannot be used here");
  berth_context_destroy(ctx);
  cuda_set("FAKE_CUDA_DEVICES", NULL);
  cuda_set("FAKE_CUDA_INIT", "803");
  expect_reason("does not start: it was told to fail");
  cuda_set("FAKE_CUDA_INIT", NULL);
  cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  expect_reason("BERTH_NVRTC names '/nowhere/libnvrtc.so'");
  cuda_set("BERTH_KERNEL_PACK", "/nowhere/pack"); /* which would do without NVRTC, if it were there */
  expect_reason("BERTH_KERNEL_PACK: '/nowhere/pack' cannot be opened");
  cuda_set("BERTH_KERNEL_PACK", cuda_library);
  expect_reason("is no pack of kernels");
  cuda_set("BERTH_KERNEL_PACK", NULL);
  cuda_set("BERTH_NVRTC", cuda_library);
  const berth_device_info first = cuda_ask("cuda"), second = cuda_ask("cuda:1");
  assert_true(first.available && second.available);
  assert_non_null(strstr(first.description, "Fake GPU 0, compute capability 9.0, CUDA 13.0"));
  assert_non_null(strstr(second.description, "Fake GPU 1"));
  assert_true(first.memory == cuda_fake->memory);
}

static void opens_the_one_that_is_named(void **state) {
  static const struct {
    const char *which, *name;
  } good[] = {{NULL, "Fake GPU 0"}, {"0", "Fake GPU 0"}, {"1", "Fake GPU 1"}, {"gpu 1", "Fake GPU 1"}};
  static const char *const bad[] = {"2", "-1", "1x", "", "radeon"};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth_error err;
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    TEST_OK(device->open(ctx, good[i].which, 1, &engine, &err));
    assert_string_equal(engine->name, good[i].name);
    device->close(engine);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    test_expect_error(device->open(ctx, bad[i], 1, &engine, &err), BERTH_UNSUPPORTED, &err,
                      "there is no device 'cuda:");
  test_context_done(ctx, &alloc);
}

/* ---- Blocks ---- */

#define SIZE ((uint64_t)9 << 19) /* more than two lanes */

/* Two blocks of one engine and one of another. */
static void blocks_are_memory(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engines[2];
  berth__block *blocks[BLOCK_MODELS];
  berth_error err;
  (void)state;
  for (int i = 0; i < 2; i++) TEST_OK(device->open(ctx, i == 0 ? NULL : "1", 1, &engines[i], &err));
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) {
    const uint64_t alignment = i == 1 ? 4096 : 64;
    TEST_OK(device->block_create(engines[i / 2], SIZE, alignment, NULL, &blocks[i], &err));
    assert_true(blocks[i]->base % alignment == 0);
  }
  block_model_compare(device, blocks, SIZE, 200, 7);
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) device->block_destroy(blocks[i]);
  for (int i = 0; i < 2; i++) device->close(engines[i]);
  test_context_done(ctx, &alloc);
  assert_int_equal(cuda_fake->live, 0);
}

static void blocks_that_cannot_be(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const uint64_t memory = cuda_fake->memory;
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  char own[64];
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  test_expect_error(device->block_create(engine, UINT64_MAX - 1, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM, &err,
                    "Fake GPU 0 has 2147483648");
  test_expect_error(device->block_create(engine, sizeof own, 64, own, &block, &err), BERTH_UNSUPPORTED, &err,
                    "memory of the caller");
  cuda_fake->memory = 1000; /* another program has taken it */
  test_expect_error(device->block_create(engine, 4096, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM, &err,
                    "no memory left for an arena of 4096 bytes: 1000 of its 1000 are free");
  cuda_fake->memory = memory;
  assert_null(block);
  device->close(engine);
  test_context_done(ctx, &alloc);
  assert_int_equal(cuda_fake->live, 0);
}

/* ---- Programs ---- */

static void gives_what_the_cpu_gives(void **state) {
  gpu_fixture f;
  berth_error err;
  (void)state;
  for (int checked = 0; checked < 2; checked++) {
    berth_session *clone;
    cuda_start(&f, "cuda:1", checked ? BERTH_SESSION_CHECKED : 0);
    cuda_expect_right(f.session);
    cuda_expect_right(f.session);
    TEST_OK(berth_session_clone(f.session, &clone, &err));
    berth_session_destroy(f.session);
    f.session = NULL;
    cuda_expect_right(clone);
    berth_session_destroy(clone);
    cuda_finish(&f);
  }
}

/* One launch, and nothing is made by anyone. */
static void runs_leave_nothing_behind(void **state) {
  gpu_fixture f;
  berth_error err;
  (void)state;
  cuda_start(&f, "cuda", 0);
  cuda_expect_right(f.session);
  const uint64_t made = cuda_fake->made, launches = cuda_fake->launches, calls = atomic_load(&f.alloc.calls);
  assert_true(cuda_fake->early_edges > 0); /* of a GPU of 9.0, whose kernels begin early */
  for (int i = 0; i < 50; i++) {
    float out[GPU_N_OUT];
    TEST_OK(gpu_compute(f.session, out, &err));
  }
  assert_int_equal(cuda_fake->made, made);
  assert_int_equal(cuda_fake->launches, launches + 50);
  assert_int_equal(atomic_load(&f.alloc.calls), calls);
  cuda_finish(&f);
}

/* The fake clock moves by a quarter with every node of a graph. */
static void tells_the_time_of_every_step(void **state) {
  cuda_seen s = {0};
  gpu_fixture f;
  (void)state;
  cuda_start(&f, "cuda", 0);
  berth_session_observe(f.session, cuda_look, &s);
  const uint64_t made = cuda_fake->made;
  cuda_expect_right(f.session);
  assert_int_equal(berth_session_clock(f.session), BERTH_CLOCK_DEVICE);
  assert_true(s.count >= 3 && fabs(s.ms - 0.5 * s.count) < 1e-3);
  assert_int_equal(cuda_fake->made, made);
  cuda_finish(&f);
}

/* ---- Compiling ---- */

static void compiles_once_with_a_cache(void **state) {
  gpu_fixture f;
  (void)state;
  cuda_set("BERTH_CACHE_DIR", test_path("cache"));
  cuda_start(&f, "cuda", 0);
  cuda_expect_right(f.session);
  cuda_finish(&f);
  const uint64_t compiled = cuda_fake->compiled;
  assert_true(compiled > 0);
  cuda_start(&f, "cuda", 0);
  cuda_expect_right(f.session);
  cuda_finish(&f);
  assert_int_equal(cuda_fake->compiled, compiled);
  cuda_set("BERTH_CACHE_DIR", "");
  cuda_start(&f, "cuda", 0);
  cuda_finish(&f);
  assert_true(cuda_fake->compiled > compiled);
}

static void an_older_compiler_makes_ptx(void **state) {
  gpu_fixture f;
  (void)state;
  cuda_set("FAKE_CUDA_ARCH", "89");
  cuda_set("BERTH_CACHE_DIR", test_path("cache_of_ptx"));
  cuda_start(&f, "cuda", 0);
  cuda_expect_right(f.session);
  cuda_finish(&f);
  assert_string_equal(cuda_fake->architecture, "compute_89");
  const uint64_t compiled = cuda_fake->compiled;
  cuda_start(&f, "cuda", 0); /* PTX is kept like code */
  cuda_expect_right(f.session);
  cuda_finish(&f);
  assert_int_equal(cuda_fake->compiled, compiled);
  cuda_set("BERTH_CACHE_DIR", "");
  cuda_set("FAKE_CUDA_ARCH", NULL);
}

/* The option that leaves the limits of the process alone is left out where it is not known, and sm_90 stands for
 * sm_90a.
 */
static void a_compiler_with_fewer_options(void **state) {
  gpu_fixture f;
  (void)state;
  cuda_set("FAKE_NVRTC_OLD", "1");
  const uint64_t compiled = cuda_fake->compiled;
  cuda_start(&f, "cuda", 0);
  cuda_expect_right(f.session);
  cuda_finish(&f);
  assert_true(cuda_fake->compiled > compiled);
  cuda_set("FAKE_NVRTC_OLD", NULL);
}

static void tells_what_the_compiler_says(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  (void)state;
  desc.device = "cuda";
  TEST_OK(berth_graph_parse(ctx, gpu_products_softmax, strlen(gpu_products_softmax), &graph, &err));
  cuda_fake->refuses_source = 1;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INTERNAL, &err,
                    "does not compile: error: it was told to refuse");
  cuda_fake->refuses_source = 0;
  cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  test_read_options(ctx);
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_UNSUPPORTED, &err, "BERTH_NVRTC");
  cuda_set("BERTH_NVRTC", cuda_library);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  assert_int_equal(cuda_fake->live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(says_what_is_missing),
      cmocka_unit_test(opens_the_one_that_is_named),
      cmocka_unit_test(blocks_are_memory),
      cmocka_unit_test(blocks_that_cannot_be),
      cmocka_unit_test(gives_what_the_cpu_gives),
      cmocka_unit_test(runs_leave_nothing_behind),
      cmocka_unit_test(tells_the_time_of_every_step),
      cmocka_unit_test(compiles_once_with_a_cache),
      cmocka_unit_test(an_older_compiler_makes_ptx),
      cmocka_unit_test(a_compiler_with_fewer_options),
      cmocka_unit_test(tells_what_the_compiler_says),
  };
  return cmocka_run_group_tests(tests, cuda_set_up, NULL);
}
#else
int main(void) { return test_skip_all("device cuda", "this build has no device cuda"); }
#endif
