/* The device "cuda" on a library that plays the driver: what is missing, bytes in and out of blocks, programs, what a
 * run costs, and every call failing in turn. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "support.h"

#ifdef BERTH__HAS_CUDA
#include "block_model.h"
#include "device/cuda/code.h"
#include "fake_cuda/fake.h"
#include "gpu_use.h"

static const berth__device *const device = &berth__cuda_device;
static fake_cuda *fake;
static char library[1024], folder[1024];

static void set(const char *name, const char *value) {
  if (value != NULL)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

static int set_up_all(void **state) {
  (void)state;
  const char *build = getenv("BERTH_BUILD");
  snprintf(library, sizeof library, "%s/tests/libfake_cuda.so", build != NULL ? build : ".");
  snprintf(folder, sizeof folder, "%s", test_path("kernels"));
  mkdir(folder, 0700);
  set("FAKE_CUDA_DIR", folder);
  set("BERTH_CUDA_LIBRARY", library);
  set("BERTH_NVRTC", library);
  set("BERTH_CACHE_DIR", "");
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  fake = opened != NULL ? dlsym(opened, "fake_cuda_state") : NULL;
  return fake != NULL ? 0 : -1;
}

/* ---- What is missing ---- */

/* The first device of that name, as a new context sees it. */
static berth_device_info ask(const char *name) {
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

static void expect_reason(const char *part) {
  const berth_device_info info = ask("cuda");
  assert_false(info.available);
  if (strstr(info.reason, part) == NULL) fail_msg("'%s' is not in '%s'", part, info.reason);
}

/* In this order: once a driver was taken, it stays. */
static void says_what_is_missing(void **state) {
  berth_context *ctx;
  berth__engine *engine;
  berth_error err;
  (void)state;
  set("BERTH_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
  expect_reason("BERTH_CUDA_LIBRARY names a library that cannot be opened");
  set("BERTH_CUDA_LIBRARY", library);
  set("FAKE_CUDA_VERSION", "10020");
  expect_reason("too old: it has CUDA 10.2, and 11.4 is needed");
  set("FAKE_CUDA_VERSION", NULL);
  set("FAKE_CUDA_DEVICES", "0");
  expect_reason("finds no GPU");
  ctx = test_context();
  test_expect_error(device->open(ctx, NULL, 1, &engine, &err), BERTH_UNSUPPORTED, &err, "cannot be used here");
  berth_context_destroy(ctx);
  set("FAKE_CUDA_DEVICES", NULL);
  set("FAKE_CUDA_INIT", "803");
  expect_reason("does not start: it was told to fail");
  set("FAKE_CUDA_INIT", NULL);
  set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  expect_reason("BERTH_NVRTC names '/nowhere/libnvrtc.so'");
  set("BERTH_KERNEL_PACK", "/nowhere/pack"); /* which would do without NVRTC, if it were there */
  expect_reason("BERTH_KERNEL_PACK: '/nowhere/pack' cannot be opened");
  set("BERTH_KERNEL_PACK", library);
  expect_reason("is no pack of kernels");
  set("BERTH_KERNEL_PACK", NULL);
  set("BERTH_NVRTC", library);
  const berth_device_info first = ask("cuda"), second = ask("cuda:1");
  assert_true(first.available && second.available);
  assert_non_null(strstr(first.description, "Fake GPU 0, compute capability 9.0, CUDA 13.0"));
  assert_non_null(strstr(second.description, "Fake GPU 1"));
  assert_true(first.memory == fake->memory);
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
  assert_int_equal(fake->live, 0);
}

static void blocks_that_cannot_be(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const uint64_t memory = fake->memory;
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
  fake->memory = 1000; /* another program has taken it */
  test_expect_error(device->block_create(engine, 4096, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM, &err,
                    "no memory left for an arena of 4096 bytes: 1000 of its 1000 are free");
  fake->memory = memory;
  assert_null(block);
  device->close(engine);
  test_context_done(ctx, &alloc);
  assert_int_equal(fake->live, 0);
}

/* ---- Programs ---- */

static const char *const text = gpu_products_softmax;

static void start(gpu_fixture *f, const char *name, uint32_t flags) { gpu_start(f, text, name, flags); }

static void finish(gpu_fixture *f) {
  gpu_finish(f);
  assert_int_equal(fake->live, 0);
  assert_int_equal(fake->current, 0);
  assert_int_equal(fake->wrong_barriers, 0);
}

static void expect_right(berth_session *session) { gpu_expect_right(session, text, 1e-5f); }

static void gives_what_the_cpu_gives(void **state) {
  gpu_fixture f;
  berth_error err;
  (void)state;
  for (int checked = 0; checked < 2; checked++) {
    berth_session *clone;
    start(&f, "cuda:1", checked ? BERTH_SESSION_CHECKED : 0);
    expect_right(f.session);
    expect_right(f.session);
    TEST_OK(berth_session_clone(f.session, &clone, &err));
    berth_session_destroy(f.session);
    f.session = NULL;
    expect_right(clone);
    berth_session_destroy(clone);
    finish(&f);
  }
}

/* One launch, and nothing is made by anyone. */
static void runs_leave_nothing_behind(void **state) {
  gpu_fixture f;
  berth_error err;
  (void)state;
  start(&f, "cuda", 0);
  expect_right(f.session);
  const uint64_t made = fake->made, launches = fake->launches, calls = atomic_load(&f.alloc.calls);
  assert_true(fake->early_edges > 0); /* of a GPU of 9.0, whose kernels begin early */
  for (int i = 0; i < 50; i++) {
    float out[GPU_N_OUT];
    TEST_OK(gpu_compute(f.session, out, &err));
  }
  assert_int_equal(fake->made, made);
  assert_int_equal(fake->launches, launches + 50);
  assert_int_equal(atomic_load(&f.alloc.calls), calls);
  finish(&f);
}

typedef struct seen {
  uint32_t count;
  double ms;
} seen;

static void look(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  seen *s = user;
  (void)step, (void)node, (void)out, (void)n_out;
  s->count++;
  s->ms += ms;
}

/* The fake clock moves by a quarter with every node of a graph. */
static void tells_the_time_of_every_step(void **state) {
  seen s = {0};
  gpu_fixture f;
  (void)state;
  start(&f, "cuda", 0);
  berth_session_observe(f.session, look, &s);
  const uint64_t made = fake->made;
  expect_right(f.session);
  assert_int_equal(berth_session_clock(f.session), BERTH_CLOCK_DEVICE);
  assert_true(s.count >= 3 && fabs(s.ms - 0.5 * s.count) < 1e-3);
  assert_int_equal(fake->made, made);
  finish(&f);
}

/* ---- Compiling ---- */

static void compiles_once_with_a_cache(void **state) {
  gpu_fixture f;
  (void)state;
  set("BERTH_CACHE_DIR", test_path("cache"));
  start(&f, "cuda", 0);
  expect_right(f.session);
  finish(&f);
  const uint64_t compiled = fake->compiled;
  assert_true(compiled > 0);
  start(&f, "cuda", 0);
  expect_right(f.session);
  finish(&f);
  assert_int_equal(fake->compiled, compiled);
  set("BERTH_CACHE_DIR", "");
  start(&f, "cuda", 0);
  finish(&f);
  assert_true(fake->compiled > compiled);
}

static void an_older_compiler_makes_ptx(void **state) {
  gpu_fixture f;
  (void)state;
  set("FAKE_CUDA_ARCH", "89");
  set("BERTH_CACHE_DIR", test_path("cache_of_ptx"));
  start(&f, "cuda", 0);
  expect_right(f.session);
  finish(&f);
  assert_string_equal(fake->architecture, "compute_89");
  const uint64_t compiled = fake->compiled;
  start(&f, "cuda", 0); /* PTX is kept like code */
  expect_right(f.session);
  finish(&f);
  assert_int_equal(fake->compiled, compiled);
  set("BERTH_CACHE_DIR", "");
  set("FAKE_CUDA_ARCH", NULL);
}

/* The option that leaves the limits of the process alone is left out where it is not known, and sm_90 stands for
 * sm_90a.
 */
static void a_compiler_with_fewer_options(void **state) {
  gpu_fixture f;
  (void)state;
  set("FAKE_NVRTC_OLD", "1");
  const uint64_t compiled = fake->compiled;
  start(&f, "cuda", 0);
  expect_right(f.session);
  finish(&f);
  assert_true(fake->compiled > compiled);
  set("FAKE_NVRTC_OLD", NULL);
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
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  fake->refuses_source = 1;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INTERNAL, &err,
                    "does not compile: error: it was told to refuse");
  fake->refuses_source = 0;
  set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  test_read_options(ctx);
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_UNSUPPORTED, &err, "BERTH_NVRTC");
  set("BERTH_NVRTC", library);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  assert_int_equal(fake->live, 0);
}

/* ---- Packs ---- */

/* Gives what was compiled for last. */
static const char *write_pack_on(const char *name, const char *path, const char *targets) {
  static char compiled_for[sizeof fake->architecture];
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_context *ctx = test_context();
  test_buffer bytes = {0};
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  desc.device = name;
  if (targets != NULL) desc.gpu_profile = "hopper"; /* as on a machine without the GPU */
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_kernels_pack((const berth_plan *const[]){plan, plan}, 2, targets, test_buffer_write, &bytes, &err));
  memcpy(compiled_for, fake->architecture, sizeof compiled_for);
  test_write_file(path, bytes.data, bytes.size);
  test_expect_error(berth_kernels_pack((const berth_plan *const[]){plan}, 1, "sm_91", test_buffer_write, &bytes, &err),
                    BERTH_UNSUPPORTED, &err,
                    "does not compile for sm_91, but for these compute capabilities: 75, 80, 90");
  static const char *const wrong[] = {
      "", "sm_", "sm_9x", "gfx90a", "compute_80,", "sm_900000000000000000000000", "sm_0", "sm_4294967386", "sm_1000"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    test_expect_error(
        berth_kernels_pack((const berth_plan *const[]){plan}, 1, wrong[i], test_buffer_write, &bytes, &err),
        BERTH_INVALID, &err, "is not a compilation target");
  test_buffer_free(&bytes);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return compiled_for;
}

static void write_pack(const char *path, const char *targets) { (void)write_pack_on("cuda", path, targets); }

/* Without targets, for the GPU that the plan was made for; the file may be named already where it is to be. */
static void a_pack_is_made_for_the_gpu_that_is_named(void **state) {
  const char *path = test_path("second_pack");
  gpu_fixture f;
  (void)state;
  set("FAKE_CUDA_SECOND", "80");
  set("BERTH_KERNEL_PACK", path);
  assert_string_equal(write_pack_on("cuda:1", path, NULL), "sm_80");
  const uint64_t compiled = fake->compiled;
  set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  start(&f, "cuda:1", 0);
  expect_right(f.session);
  finish(&f);
  assert_int_equal(fake->compiled, compiled);
  set("BERTH_NVRTC", library);
  set("BERTH_KERNEL_PACK", NULL);
  set("FAKE_CUDA_SECOND", NULL);
}

static void plans_that_are_not_packed(void **state) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_context *contexts[2] = {test_context(), test_context()};
  berth_graph *graphs[2];
  berth_plan *plans[2];
  test_buffer bytes = {0};
  berth_error err;
  (void)state;
  desc.device = "cuda";
  for (int i = 0; i < 2; i++) {
    TEST_OK(berth_graph_parse(contexts[i], text, strlen(text), &graphs[i], &err));
    TEST_OK(berth_plan_create(graphs[i], &desc, &plans[i], &err));
  }
  const berth_plan *const missing[] = {plans[0], NULL}, *const mixed[] = {plans[0], plans[1]};
  test_expect_error(berth_kernels_pack(missing, 2, "sm_90", test_buffer_write, &bytes, &err), BERTH_INVALID, &err,
                    "plan 1 is NULL");
  test_expect_error(berth_kernels_pack(missing + 1, 1, "sm_90", test_buffer_write, &bytes, &err), BERTH_INVALID, &err,
                    "plan 0 is NULL");
  test_expect_error(berth_kernels_pack(mixed, 2, "sm_90", test_buffer_write, &bytes, &err), BERTH_INVALID, &err,
                    "plan 1 is of another context");
  assert_int_equal(bytes.size, 0);
  for (int i = 0; i < 2; i++) {
    berth_plan_destroy(plans[i]);
    berth_graph_destroy(graphs[i]);
    berth_context_destroy(contexts[i]);
  }
  test_buffer_free(&bytes);
}

/* Without a compiler: code for this GPU, for it and newer ones, or for one before. */
static void a_pack_stands_for_the_compiler(void **state) {
  static const char *const targets[] = {NULL, "sm_90", "compute_90", "sm_80,compute_80"};
  gpu_fixture f;
  (void)state;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    const char *path = test_path("pack");
    write_pack(path, targets[i]);
    const uint64_t compiled = fake->compiled;
    set("BERTH_KERNEL_PACK", path);
    set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
    assert_true(ask("cuda").available);
    start(&f, "cuda", 0);
    expect_right(f.session);
    finish(&f);
    assert_int_equal(fake->compiled, compiled);
    set("BERTH_NVRTC", library);
    set("BERTH_KERNEL_PACK", NULL);
  }
}

static void expect_no_session(berth_status status, const char *part) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  desc.device = "cuda";
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  test_expect_error(berth_session_create(graph, &desc, &session, &err), status, &err, part);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void packs_that_are_none(void **state) {
  char path[1024], *bytes;
  struct stat about;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("bad_pack"));
  write_pack(path, "sm_80"); /* for another GPU */
  set("BERTH_KERNEL_PACK", path);
  set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  expect_no_session(BERTH_UNSUPPORTED, "kernels are missing in the pack");
  assert_int_equal(stat(path, &about), 0);
  bytes = malloc((size_t)about.st_size);
  assert_non_null(bytes);
  FILE *file = fopen(path, "rb");
  assert_int_equal(fread(bytes, 1, (size_t)about.st_size, file), about.st_size);
  fclose(file);
  for (size_t n = 0; n < (size_t)about.st_size; n += 1 + n / 3) {
    test_write_file(path, bytes, n);
    expect_no_session(BERTH_INVALID, n < 16 ? "is no pack" : "is cut off");
  }
  bytes[8 + 7] = 0x7f; /* very many kernels */
  test_write_file(path, bytes, (size_t)about.st_size);
  expect_no_session(BERTH_INVALID, "is cut off");
  bytes[4] = 9;
  test_write_file(path, bytes, (size_t)about.st_size);
  expect_no_session(BERTH_INVALID, "another version");
  set("BERTH_KERNEL_PACK", "/nowhere/pack");
  expect_no_session(BERTH_IO, "cannot be opened");
  set("BERTH_NVRTC", library);
  write_pack(path, "sm_90"); /* which does not look at the one that is named */
  set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  set("BERTH_KERNEL_PACK", path);
  file = fopen(path, "r+b"); /* damaged code counts as missing */
  assert_int_equal(fseek(file, -20, SEEK_END), 0);
  fputc('?', file);
  fclose(file);
  expect_no_session(BERTH_UNSUPPORTED, "kernels are missing in the pack");
  set("BERTH_NVRTC", library);
  set("BERTH_KERNEL_PACK", NULL);
  free(bytes);
}

/* ---- Failures ---- */

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
  TEST_OK(berth_graph_parse(b->ctx, text, strlen(text), &b->graph, &err));
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
  const berth__observer nobody = {0}, watcher = {.call = look, .user = &(seen){0}};
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
  const uint64_t before = fake->calls;
  assert_int_equal(use_once(&b), BERTH_OK);
  const uint64_t n = fake->calls - before;
  assert_true(n > 40);
  for (size_t k = 0; k < 3; k++) {
    uint64_t failures = 0;
    for (uint64_t i = 1; i <= n; i += k == 0 ? 1 : 3) {
      fake->fail_with = faults[k].result;
      fake->failed = 0;
      fake->fail_at = i;
      const berth_status status = use_once(&b);
      fake->fail_at = 0;
      failures += status == faults[k].status;
      assert_int_equal(fake->failed, 1);
      assert_int_equal(fake->live, 0);
      assert_int_equal(fake->current, 0);
      /* Before something is freed, nobody needs to know how what used it ended. */
      if (status == BERTH_OK && strcmp(fake->failed_call, "cuStreamQuery") == 0) continue;
      if (status == BERTH_OK) fail_msg("%s failed, and nobody said so", fake->failed_call);
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
    assert_int_equal(fake->live, 0);
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
  write_pack(path, "sm_90");
  set("BERTH_KERNEL_PACK", path);
  set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  host_memory_may_run_out();
  set("BERTH_NVRTC", library);
  set("BERTH_KERNEL_PACK", NULL);
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
  start(&f, "cuda", 0);
  expect_right(f.session);
  fake->fail_with = 719;
  fake->fail_at = 2; /* the launch */
  expect_lost(&f, "was lost while running a program: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)");
  finish(&f);
  static const int fatal[] = {214, 220, 226, 700, 710, 714, 810};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    start(&f, "cuda", 0);
    fake->fail_with = fatal[i];
    fake->fail_at = 2;
    expect_lost(&f, "was lost while");
    finish(&f);
  }
  set("BERTH_CUDA_TIMEOUT", "0.01");
  start(&f, "cuda", 0);
  set("BERTH_CUDA_TIMEOUT", NULL);
  expect_right(f.session);
  fake->hangs = 1;
  expect_lost(&f, "BERTH_CUDA_TIMEOUT");
  fake->hangs = 0; /* it ends while things are destroyed */
  finish(&f);
  start(&f, "cuda", 0); /* a new session goes on */
  expect_right(f.session);
  finish(&f);
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
      cmocka_unit_test(a_pack_stands_for_the_compiler),
      cmocka_unit_test(a_pack_is_made_for_the_gpu_that_is_named),
      cmocka_unit_test(plans_that_are_not_packed),
      cmocka_unit_test(packs_that_are_none),
      cmocka_unit_test(any_call_may_fail),
      cmocka_unit_test(host_memory_may_run_out_anywhere),
      cmocka_unit_test(a_lost_device_stays_lost),
  };
  return cmocka_run_group_tests(tests, set_up_all, NULL);
}
#else
int main(void) { return test_skip_all("device cuda", "this build has no device cuda"); }
#endif
