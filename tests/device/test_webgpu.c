/* The device "webgpu": what it is told by the environment, bytes in and out of its blocks, programs, and errors. */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#ifdef BERTH__HAS_WEBGPU
#include "device/webgpu/program.h"
#include "session/session.h"

static const berth__device *const device = &berth__webgpu_device;

/* ---- Options ---- */

static void refuses_wrong_options(void **state) {
  static const struct {
    const char *name, *value;
  } wrong[] = {{"BERTH_WEBGPU_TIMEOUT", "soon"},
               {"BERTH_WEBGPU_TIMEOUT", "-1"},
               {"BERTH_WEBGPU_TIMEOUT", "nan"},
               {"BERTH_WEBGPU_MAX_BINDING", "0"},
               {"BERTH_WEBGPU_MAX_BINDING", "12 apples"}};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engine;
  berth_error err;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    setenv(wrong[i].name, wrong[i].value, 1);
    test_expect_error(device->open(ctx, NULL, 1, &engine, &err), BERTH_INVALID, &err, wrong[i].name);
    unsetenv(wrong[i].name);
  }
  test_context_done(ctx, &alloc);
}

/* ---- Blocks against a model of them: an array on the host ---- */

#define SIZE ((size_t)9 << 19) /* more than is read back at once */

typedef struct pair {
  berth__block *block;
  unsigned char *model;
} pair;

static void expect_same(const pair *p, uint64_t offset, uint64_t size) {
  unsigned char *bytes = malloc((size_t)size);
  berth_error err;
  assert_non_null(bytes);
  TEST_OK(device->read(p->block, offset, bytes, size, &err));
  assert_memory_equal(bytes, p->model + offset, (size_t)size);
  free(bytes);
}

/* Mostly small, sometimes large; anywhere, or in whole words. */
static uint64_t random_range(uint64_t *seed, uint64_t *offset) {
  const bool in_words = test_random(seed) % 2 == 0;
  const uint64_t most = in_words && test_random(seed) % 4 == 0 ? SIZE : 5000;
  uint64_t size = 1 + test_random(seed) % most;
  if (in_words) size = (size + 3) & ~(uint64_t)3;
  *offset = test_random(seed) % (SIZE - size + 1);
  if (in_words) *offset &= ~(uint64_t)3;
  return size;
}

static void copy_somewhere(pair *to, pair *from, uint64_t offset, uint64_t size, uint64_t *seed) {
  const uint64_t near = offset - (offset < 12 ? offset : 12); /* ranges that overlap */
  uint64_t other = test_random(seed) % 2 == 0 ? test_random(seed) % (SIZE - size + 1) : near;
  berth_error err;
  if (size % 4 == 0) other &= ~(uint64_t)3;
  TEST_OK(device->copy(to->block, offset, from->block, other, size, &err));
  memmove(to->model + offset, from->model + other, (size_t)size);
  if (to != from) return;
  TEST_OK(device->copy(to->block, other, to->block, offset, size, &err)); /* and back */
  memmove(to->model + other, to->model + offset, (size_t)size);
}

static void do_something(pair *pairs, uint64_t *seed, const unsigned char *source) {
  pair *to = &pairs[test_random(seed) % 3], *from = &pairs[test_random(seed) % 3];
  uint64_t offset;
  berth_error err;
  const uint64_t size = random_range(seed, &offset);
  switch (test_random(seed) % 4) {
    case 0: {
      const unsigned char *bytes = source + test_random(seed) % 100;
      TEST_OK(device->write(to->block, offset, bytes, size, &err));
      memcpy(to->model + offset, bytes, (size_t)size);
      break;
    }
    case 1: {
      const uint8_t byte = test_random(seed) % 2 == 0 ? 0 : (uint8_t)size;
      TEST_OK(device->fill(to->block, offset, size, byte, &err));
      memset(to->model + offset, byte, (size_t)size);
      break;
    }
    case 2: expect_same(to, offset, size); break;
    default: copy_somewhere(to, from, offset, size, seed); break;
  }
}

/* Two blocks of one engine and one of another. */
static void blocks_are_memory(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engines[2];
  pair pairs[3];
  berth_error err;
  uint64_t seed = 7;
  unsigned char *source = malloc(SIZE + 100);
  (void)state;
  assert_non_null(source);
  for (size_t i = 0; i < SIZE + 100; i++) source[i] = (unsigned char)test_random(&seed);
  for (int i = 0; i < 2; i++) TEST_OK(device->open(ctx, NULL, 1, &engines[i], &err));
  for (int i = 0; i < 3; i++) {
    TEST_OK(device->block_create(engines[i / 2], SIZE, 64, NULL, &pairs[i].block, &err));
    pairs[i].model = calloc(1, SIZE);
    assert_non_null(pairs[i].model);
  }
  for (int i = 0; i < 100; i++) do_something(pairs, &seed, source);
  for (int i = 0; i < 3; i++) {
    expect_same(&pairs[i], 0, SIZE);
    device->block_destroy(pairs[i].block);
    free(pairs[i].model);
  }
  for (int i = 0; i < 2; i++) device->close(engines[i]);
  free(source);
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

/* Nothing is taken for a run, and nothing stays behind. */
static void runs_take_nothing(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph;
  float out[N_OUT];
  (void)state;
  berth_session *session = start(ctx, "webgpu", &graph);
  compute(session, out);
  const uint64_t n_alloc = alloc.calls, objects = session->engine->counts.objects;
  for (int i = 0; i < 100; i++) compute(session, out);
  assert_int_equal(alloc.calls, n_alloc);
  assert_int_equal(session->engine->counts.objects, objects);
  expect_right(ctx, out);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
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
  setenv("BERTH_WEBGPU_MAX_BINDING", "16384", 1);
  session = start(ctx, "webgpu", &graph);
  compute(session, out);
  expect_right(ctx, out);
  berth_session_destroy(session);
  setenv("BERTH_WEBGPU_MAX_BINDING", "4096", 1); /* less than a tensor */
  desc.device = "webgpu";
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_UNSUPPORTED, &err, "at once");
  unsetenv("BERTH_WEBGPU_MAX_BINDING");
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* ---- Errors ---- */

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
      cmocka_unit_test(refuses_wrong_options), cmocka_unit_test(blocks_are_memory),
      cmocka_unit_test(blocks_that_cannot_be), cmocka_unit_test(runs_take_nothing),
      cmocka_unit_test(windows_give_the_same), cmocka_unit_test(what_the_implementation_says_arrives),
      cmocka_unit_test(a_wait_has_an_end),     cmocka_unit_test(memory_that_runs_out),
  };
  berth_device_info info = {0};
  berth_context *ctx = test_context();
  device->describe(ctx, 0, &info);
  berth_context_destroy(ctx);
  if (info.available) return cmocka_run_group_tests(tests, NULL, NULL);
  return test_skip_all("device webgpu", info.reason);
}
#else
int main(void) { return test_skip_all("device webgpu", "this build has none"); }
#endif
