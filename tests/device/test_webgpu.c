/* The device "webgpu": what it is told by the environment, bytes in and out of its blocks, programs, and errors. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#ifdef BERTH__HAS_WEBGPU
#include "base/thread.h"
#include "block_model.h"
#include "device/webgpu/code.h"
#include "session/session.h"

static const berth__device *const device = &berth__webgpu_device;

/* Sets an option; returns what it was, for put_back. */
static char *set_option(const char *name, const char *value) {
  const char *old = getenv(name);
  char *copy = old != NULL ? strdup(old) : NULL;
  setenv(name, value, 1);
  return copy;
}

static void put_back(const char *name, char *old) {
  if (old != NULL)
    setenv(name, old, 1);
  else
    unsetenv(name);
  free(old);
}

/* ---- Options ---- */

static void refuses_wrong_options(void **state) {
  static const struct {
    const char *name, *value;
  } wrong[] = {{"BERTH_WEBGPU_TIMEOUT", "soon"},          {"BERTH_WEBGPU_TIMEOUT", "-1"},
               {"BERTH_WEBGPU_TIMEOUT", "nan"},           {"BERTH_WEBGPU_MAX_BINDING", "0"},
               {"BERTH_WEBGPU_MAX_BINDING", "12 apples"}, {"BERTH_WEBGPU_OFFSETS", "moving"}};
  test_alloc alloc = {0};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx;
  berth_error err;
  (void)state;
  desc.alloc = test_alloc_callback;
  desc.user = &alloc;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char *old = set_option(wrong[i].name, wrong[i].value);
    test_expect_error(berth_context_create(&desc, &ctx, &err), BERTH_INVALID, &err, wrong[i].name);
    put_back(wrong[i].name, old);
  }
  assert_int_equal(atomic_load(&alloc.live_blocks), 0);
}

/* ---- Blocks ---- */

#define SIZE ((uint64_t)9 << 19) /* more than is read back at once */

/* Two blocks of one engine and one of another. */
static void blocks_are_memory(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engines[2];
  berth__block *blocks[BLOCK_MODELS];
  berth_error err;
  (void)state;
  for (int i = 0; i < 2; i++) TEST_OK(device->open(ctx, NULL, 1, &engines[i], &err));
  for (uint32_t i = 0; i < BLOCK_MODELS; i++)
    TEST_OK(device->block_create(engines[i / 2], SIZE, 64, NULL, &blocks[i], &err));
  block_model_compare(device, blocks, SIZE, 100, 7);
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) device->block_destroy(blocks[i]);
  for (int i = 0; i < 2; i++) device->close(engines[i]);
  test_context_done(ctx, &alloc);
}

static void blocks_that_cannot_be(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  char memory[64];
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  test_expect_error(device->block_create(engine, UINT64_MAX - 1, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM, &err,
                    "at most");
  test_expect_error(device->block_create(engine, (uint64_t)1 << 60, 64, NULL, &block, &err), BERTH_DEVICE_NOMEM, &err,
                    "at most");
  test_expect_error(device->block_create(engine, sizeof memory, 64, memory, &block, &err), BERTH_UNSUPPORTED, &err,
                    "memory of the caller");
  engine->limits.buffer = UINT64_MAX; /* the implementation has the last word */
  assert_int_not_equal(device->block_create(engine, (uint64_t)1 << 60, 64, NULL, &block, &err), BERTH_OK);
  assert_non_null(strstr(err.message, "making a buffer"));
  assert_null(block);
  device->close(engine);
  test_context_done(ctx, &alloc);
}

/* A weight of 21 halves takes 42 bytes, whatever lies after it; its last one shares a word with unused bytes, and the
 * words around it stay as they are. */
static void lengths_are_true(void **state) {
  static const char text[] =
      "graph \"g\" { input %x : f32[2, 7] param %w : f32[7, 3] %y = matmul(%x, %w) output \"y\" = %y }";
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph;
  berth_plan *plan;
  berth_arena *arena;
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err;
  unsigned char bytes[43];
  (void)state;
  desc.device = "webgpu";
  desc.flags |= BERTH_PLAN_F16_WEIGHTS;
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  const berth_value w = berth_graph_find(berth_plan_graph(plan), "w");
  TEST_OK(berth_plan_slot(plan, w, &slot, &err));
  assert_int_equal(slot.size, 42);
  TEST_OK(berth_arena_create(plan, NULL, &arena, &err));
  assert_int_equal(berth_arena_capacity(arena, w), 42);
  memset(bytes, 0xff, sizeof bytes);
  TEST_OK(berth_arena_write(arena, w, 0, bytes, 42, &err));
  TEST_OK(berth_arena_write(arena, w, 39, "abc", 3, &err)); /* over the end of a word */
  test_expect_error(berth_arena_write(arena, w, 39, bytes, 4, &err), BERTH_INVALID, &err, "not inside");
  test_expect_error(berth_arena_read(arena, w, 0, bytes, 43, &err), BERTH_INVALID, &err, "not inside");
  TEST_OK(berth_arena_read(arena, w, 37, bytes, 5, &err));
  assert_memory_equal(bytes,
                      "\xff\xff"
                      "abc",
                      5);
  berth_arena_destroy(arena);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* ---- Programs ---- */

static const char model[] =
    "graph \"g\" { input %x : f32[40,30] param %w : f32[30,50] %y = matmul(%x, %w) %z = relu(%y)"
    " %s = softmax(%z) { axis = 1 } output \"y\" = %s }";
#define N_IN 1200
#define N_W 1500
#define N_OUT 2000

static berth_session *start(berth_context *ctx, const char *name, berth_graph **graph) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  float w[N_W];
  desc.device = name;
  TEST_OK(berth_graph_parse(ctx, model, sizeof model - 1, graph, &err));
  TEST_OK(berth_session_create(*graph, &desc, &session, &err));
  for (int i = 0; i < N_W; i++) w[i] = (float)(i % 37) / 37.0f - 0.5f;
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  return session;
}

static void compute(berth_session *session, float out[N_OUT]) {
  berth_error err;
  float x[N_IN];
  for (int i = 0; i < N_IN; i++) x[i] = (float)(i % 23) / 7.0f - 1.0f;
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", out, N_OUT * sizeof *out, &err));
}

static void expect_right(berth_context *ctx, const float got[N_OUT]) {
  berth_graph *graph;
  berth_session *session = start(ctx, "cpu", &graph);
  float want[N_OUT];
  compute(session, want);
  for (int i = 0; i < N_OUT; i++) assert_true(got[i] - want[i] < 1e-5f && want[i] - got[i] < 1e-5f);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

/* A run allocates nothing, leaves nothing behind, and is one submission. */
static void runs_take_nothing(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph;
  berth_error err;
  float out[N_OUT];
  (void)state;
  berth_session *session = start(ctx, "webgpu", &graph);
  compute(session, out);
  const uint64_t n_alloc = alloc.calls;
  const berth__webgpu_counts before = session->engine->counts;
  for (uint64_t i = 1; i <= test_share(1000); i++) {
    TEST_OK(berth_session_run(session, &err));
    assert_int_equal(session->engine->counts.submissions, before.submissions + i);
    assert_int_equal(session->engine->counts.objects, before.objects);
  }
  for (int i = 0; i < 100; i++) compute(session, out); /* with bytes going in and out */
  assert_int_equal(alloc.calls, n_alloc);
  assert_int_equal(session->engine->counts.objects, before.objects);
  expect_right(ctx, out);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* ---- Times ---- */

typedef struct heard {
  uint32_t n, last; /* calls, and the step of the last one */
  double ms;
} heard;

static void hear_step(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  heard *h = user;
  (void)node, (void)out, (void)n_out;
  assert_true(h->n == 0 || step > h->last);
  assert_true(ms >= 0);
  h->last = step;
  h->ms += ms;
  h->n++;
}

/* Observed runs: each tells n_steps and takes n_submissions. Returns the sum of the times. */
static double observe(berth_session *session, uint32_t n_runs, uint32_t n_steps, uint64_t n_submissions) {
  const berth__webgpu_counts before = session->engine->counts;
  double ms = 0;
  berth_error err;
  for (uint32_t i = 0; i < n_runs; i++) {
    heard h = {0};
    berth_session_observe(session, hear_step, &h);
    TEST_OK(berth_session_run(session, &err));
    assert_int_equal(h.n, n_steps);
    ms += h.ms;
  }
  berth_session_observe(session, NULL, NULL);
  assert_int_equal(session->engine->counts.submissions - before.submissions, n_runs * n_submissions);
  assert_int_equal(session->engine->counts.objects, before.objects);
  return ms;
}

static void steps_have_times(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph;
  (void)state;
  berth_session *session = start(ctx, "webgpu", &graph);
  berth__engine *engine = session->engine;
  const berth__wgpu times = engine->times;
  if (times != NULL) {
    assert_int_equal(berth_session_clock(session), BERTH_CLOCK_DEVICE);
    const double start_ms = berth__now_ms(), ms = observe(session, 200, 2, 1);
    assert_true(ms > 0 && ms < berth__now_ms() - start_ms);
  } else {
    print_message("# skip: the device's own clock: this one has none\n");
  }
  engine->times = NULL; /* where there is none, steps are waited for one by one */
  assert_int_equal(berth_session_clock(session), BERTH_CLOCK_HOST);
  const double start_ms = berth__now_ms(), ms = observe(session, 10, 2, 2);
  assert_true(ms > 0 && ms < berth__now_ms() - start_ms);
  engine->times = times;
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* More steps than times are read at once, and steps of several kernels. */
static void many_steps_have_times(void **state) {
  static char text[24000];
  const uint32_t n = BERTH__WEBGPU_TIMED + 44;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  size_t size = (size_t)snprintf(text, sizeof text, "graph \"g\" { input %%v0 : f32[2, 5]\n");
  (void)state;
  for (uint32_t i = 0; i < n; i++)
    size += (size_t)snprintf(text + size, sizeof text - size, "%%v%u = %s(%%v%u) { axis = 1 }\n", i + 1,
                             i % 2 == 0 ? "softmax" : "cumsum", i);
  size += (size_t)snprintf(text + size, sizeof text - size, "output \"y\" = %%v%u }", n);
  assert_true(size < sizeof text);
  berth_context *ctx = test_context();
  desc.device = "webgpu";
  TEST_OK(berth_graph_parse(ctx, text, size, &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  observe(session, 3, n, session->engine->times != NULL ? 2 : n);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* An implementation that lacks what times need is used without them. */
static void times_are_optional(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth_error err;
  uint32_t features[2];
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  const berth__wgpu_calls *all = engine->gpu;
  berth__wgpu_calls some = *all;
  some.CommandEncoderResolveQuerySet = NULL;
  engine->gpu = &some;
  assert_int_equal(berth__webgpu_times_features(engine, features), 0);
  berth__webgpu_free_times(engine);
  TEST_OK(berth__webgpu_make_times(engine, &err));
  assert_null(engine->times);
  assert_int_equal(device->clock(engine), BERTH_CLOCK_HOST);
  engine->gpu = all;
  device->close(engine);
  test_context_done(ctx, &alloc);
}

static void windows_give_the_same(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  float out[N_OUT];
  (void)state;
  char *binding = set_option("BERTH_WEBGPU_MAX_BINDING", "16384");
  test_read_options(ctx);
  session = start(ctx, "webgpu", &graph);
  compute(session, out);
  expect_right(ctx, out);
  berth_session_destroy(session);
  setenv("BERTH_WEBGPU_MAX_BINDING", "4096", 1); /* less than a tensor */
  test_read_options(ctx);
  desc.device = "webgpu";
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_UNSUPPORTED, &err, "at once");
  put_back("BERTH_WEBGPU_MAX_BINDING", binding);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* Without dynamic offsets, too. */
static void static_offsets_give_the_same(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph;
  float out[N_OUT];
  (void)state;
  char *offsets = set_option("BERTH_WEBGPU_OFFSETS", "static"), *binding = set_option("BERTH_WEBGPU_MAX_BINDING", "");
  for (int i = 0; i < 2; i++) {
    test_read_options(ctx);
    berth_session *session = start(ctx, "webgpu", &graph);
    compute(session, out);
    expect_right(ctx, out);
    berth_session_destroy(session);
    berth_graph_destroy(graph);
    setenv("BERTH_WEBGPU_MAX_BINDING", "16384", 1); /* and then in windows */
  }
  put_back("BERTH_WEBGPU_MAX_BINDING", binding);
  put_back("BERTH_WEBGPU_OFFSETS", offsets);
  test_context_done(ctx, &alloc);
}

/* ---- Errors ---- */

static berth__wgpu no_pipeline(berth__wgpu gpu, const berth__wgpu_pipeline_desc *desc) {
  (void)gpu, (void)desc;
  return NULL;
}

/* There are implementations that print why a kernel cannot be compiled, and give no error. */
static void nothing_made_is_an_error(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph;
  berth_plan *plan;
  berth__engine *engine;
  berth__program *program;
  berth_error err;
  (void)state;
  desc.device = "webgpu";
  TEST_OK(berth_graph_parse(ctx, model, sizeof model - 1, &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  const berth__wgpu_calls *all = engine->gpu;
  berth__wgpu_calls some = *all;
  some.DeviceCreateComputePipeline = no_pipeline;
  engine->gpu = &some;
  test_expect_error(device->program_create(engine, plan, false, &program, &err), BERTH_INTERNAL, &err,
                    "compiling a kernel");
  engine->gpu = all;
  device->close(engine);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static berth__wgpu_future no_scope(berth__wgpu gpu, berth__wgpu_callback callback) {
  void (*const answer)(uint32_t, uint32_t, berth__wgpu_string, void *, void *) =
      (void (*)(uint32_t, uint32_t, berth__wgpu_string, void *, void *))callback.call;
  (void)gpu;
  answer(3, BERTH__WGPU_NO_ERROR, (berth__wgpu_string){"no scope is open", SIZE_MAX}, callback.user1, callback.user2);
  return (berth__wgpu_future){0};
}

/* An implementation that does not say whether something failed has not said that it did not. */
static void a_scope_without_an_answer_is_an_error(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  const berth__wgpu_calls *all = engine->gpu;
  berth__wgpu_calls some = *all;
  some.DevicePopErrorScope = no_scope;
  engine->gpu = &some;
  test_expect_error(device->block_create(engine, 4096, 64, NULL, &block, &err), BERTH_INTERNAL, &err,
                    "no scope is open");
  assert_null(block);
  engine->gpu = all;
  device->close(engine);
  test_context_done(ctx, &alloc);
}

static void what_the_implementation_says_arrives(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  const uint32_t word = 1;
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  TEST_OK(device->block_create(engine, 64, 64, NULL, &block, &err));
  engine->gpu->QueueWriteBuffer(engine->queue, block->buffer, 1 << 20, &word, 4); /* outside */
  uint32_t got;
  test_expect_error(device->read(block, 0, &got, 4, &err), BERTH_INTERNAL, &err, "copying from the device");
  TEST_OK(device->write(block, 0, &word, 4, &err)); /* and that was that */
  TEST_OK(device->read(block, 0, &got, 4, &err));
  assert_int_equal(got, word);
  berth__webgpu_on_lost(NULL, 1, (berth__wgpu_string){"pulled out", SIZE_MAX}, engine, NULL);
  test_expect_error(device->read(block, 0, &got, 4, &err), BERTH_DEVICE_LOST, &err, "pulled out");
  test_expect_error(device->write(block, 0, &word, 4, &err), BERTH_DEVICE_LOST, &err, "pulled out");
  device->block_destroy(block);
  device->close(engine);
  test_context_done(ctx, &alloc);
}

/* More than there is: blocks that do not fit are refused, and small ones can still be allocated. */
static void no_memory_left(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *blocks[8] = {NULL};
  berth_error err;
  berth_status status = BERTH_OK;
  size_t n = 0;
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  for (; n < 8 && status == BERTH_OK; n++)
    status = device->block_create(engine, engine->limits.buffer, 64, NULL, &blocks[n], &err);
  if (status != BERTH_OK)
    test_expect_error(status, BERTH_DEVICE_NOMEM, &err, "no memory left for making a buffer");
  else
    print_message("# skip: memory that runs out: this device has more than eight of its largest buffers\n");
  while (n-- > 0) device->block_destroy(blocks[n]);
  TEST_OK(device->block_create(engine, 64, 64, NULL, &blocks[0], &err));
  device->block_destroy(blocks[0]);
  device->close(engine);
  test_context_done(ctx, &alloc);
}

/* A device that is really lost, where the implementation can be told to lose it (Dawn). */
static void a_lost_device_stays_lost(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const char *path = getenv("BERTH_WEBGPU_LIBRARY");
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL, *found = NULL;
  void (*lose)(berth__wgpu gpu, uint32_t reason, berth__wgpu_string message);
  berth_graph *graph;
  berth_error err;
  float out[N_OUT];
  (void)state;
  if (library != NULL) found = dlsym(library, "wgpuDeviceForceLoss");
  if (found == NULL) {
    test_context_done(ctx, &alloc);
    print_message("# skip: the implementation cannot be told to lose a device\n");
    skip();
  }
  memcpy(&lose, &found, sizeof found);
  berth_session *session = start(ctx, "webgpu", &graph);
  compute(session, out);
  lose(session->engine->device, 1, (berth__wgpu_string){"pulled out", SIZE_MAX});
  for (int i = 0; i < 2; i++)
    test_expect_error(berth_session_run(session, &err), BERTH_DEVICE_LOST, &err, "pulled out");
  test_expect_error(berth_session_read(session, "y", out, sizeof out, &err), BERTH_DEVICE_LOST, &err, "pulled out");
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  session = start(ctx, "webgpu", &graph); /* and a new one works */
  compute(session, out);
  expect_right(ctx, out);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  dlclose(library);
  test_context_done(ctx, &alloc);
}

static void hear_nothing(berth__wgpu instance) { (void)instance; }

static void a_wait_has_an_end(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth__block *block;
  berth_error err;
  unsigned char bytes[4];
  (void)state;
  TEST_OK(device->open(ctx, NULL, 1, &engine, &err));
  TEST_OK(device->block_create(engine, 64, 64, NULL, &block, &err));
  TEST_OK(device->read(block, 0, bytes, 4, &err));
  const berth__wgpu_calls *hearing = engine->gpu;
  berth__wgpu_calls deaf = *hearing; /* otherwise the answer may be there at once */
  deaf.InstanceProcessEvents = hear_nothing;
  engine->gpu = &deaf;
  engine->timeout = -1;
  test_expect_error(device->read(block, 0, bytes, 4, &err), BERTH_DEVICE_LOST, &err, "BERTH_WEBGPU_TIMEOUT");
  engine->gpu = hearing;
  test_expect_error(device->fill(block, 0, 4, 1, &err), BERTH_DEVICE_LOST, &err, "BERTH_WEBGPU_TIMEOUT");
  device->block_destroy(block); /* with the answer still under way */
  device->close(engine);
  test_context_done(ctx, &alloc);
}

static berth_status use_once(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session = NULL;
  berth_graph *graph;
  desc.device = "webgpu";
  BERTH__TRY(berth_graph_parse(ctx, model, sizeof model - 1, &graph, err));
  const berth_status status = berth_session_create(graph, &desc, &session, err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return status;
}

static void memory_that_runs_out(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(use_once, NULL) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_wrong_options),
      cmocka_unit_test(blocks_are_memory),
      cmocka_unit_test(blocks_that_cannot_be),
      cmocka_unit_test(lengths_are_true),
      cmocka_unit_test(runs_take_nothing),
      cmocka_unit_test(steps_have_times),
      cmocka_unit_test(many_steps_have_times),
      cmocka_unit_test(times_are_optional),
      cmocka_unit_test(windows_give_the_same),
      cmocka_unit_test(static_offsets_give_the_same),
      cmocka_unit_test(nothing_made_is_an_error),
      cmocka_unit_test(what_the_implementation_says_arrives),
      cmocka_unit_test(a_scope_without_an_answer_is_an_error),
      cmocka_unit_test(no_memory_left),
      cmocka_unit_test(a_lost_device_stays_lost),
      cmocka_unit_test(a_wait_has_an_end),
      cmocka_unit_test(memory_that_runs_out),
  };
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_context *ctx = test_context();
  device->describe(ctx, 0, &info);
  berth_context_destroy(ctx);
  if (info.available) return cmocka_run_group_tests(tests, NULL, NULL);
  return test_skip_all("device webgpu", info.reason);
}
#else
int main(void) { return test_skip_all("device webgpu", "this build has none"); }
#endif
