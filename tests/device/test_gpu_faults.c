/* The runtime of GPUs where a driver fails: whatever call it is, programs and blocks are as they were. On "interp", any
 * call of whose driver can be made to fail, so that no GPU is needed. */
#include "device/gpu/driver.h"
#include "device/interp/interp.h"
#include "plan/plan.h"
#include "support.h"

/* The step in the middle has no kernels for a GPU, so a run has three parts, one of them on the host. */
static const char text[] =
    "graph \"f\" { input %x : f32[6, 8] param %w : f32[8, 8] %a = matmul(%x, %w) %b = test.twice(%a) %c = tanh(%b) "
    "output \"c\" = %c }";

#define N_IN 48
#define N_OUT 48

static berth_status twice_infer(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status twice_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  for (int64_t i = 0; i < N_OUT; i++) ((float *)call->out[0].data)[i] = 2 * ((const float *)call->in[0].data)[i];
  return BERTH_OK;
}

typedef struct bench {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
  berth__engine *engine;
  uint64_t x, w, c; /* where they lie */
  float want[N_OUT];
} bench;

static const berth__device *const device = &berth__interp_device;
static const berth__observer nobody = {0};

static uint64_t offset_of(const berth_plan *plan, const char *name) {
  const berth_value value = berth_graph_find(plan->graph, name);
  return plan->buffers[plan->places[value].buffer].offset + plan->places[value].root_offset;
}

static void set_up(bench *b) {
  berth_error err;
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  memset(b, 0, sizeof *b);
  b->ctx = test_context_counting(&b->alloc);
  op.name = "test.twice";
  op.min_in = op.max_in = 1;
  op.infer = twice_infer;
  op.kernel = twice_kernel;
  TEST_OK(berth_op_register(b->ctx, &op, &err));
  TEST_OK(berth_graph_parse(b->ctx, text, sizeof text - 1, &b->graph, &err));
  desc.device = "interp";
  desc.flags |= BERTH_PLAN_FALLBACK_CPU;
  TEST_OK(berth_plan_create(b->graph, &desc, &b->plan, &err));
  TEST_OK(device->open(b->ctx, NULL, 2, &b->engine, &err));
  b->x = offset_of(b->plan, "x");
  b->w = offset_of(b->plan, "w");
  b->c = offset_of(b->plan, "c");
}

static void take_down(bench *b) {
  device->close(b->engine);
  berth_plan_destroy(b->plan);
  berth_graph_destroy(b->graph);
  test_context_done(b->ctx, &b->alloc);
}

static berth_status make_block(bench *b, berth__block **out, berth_error *err) {
  float numbers[64];
  uint64_t seed = 3;
  berth_status status = device->block_create(b->engine, berth_plan_arena_size(b->plan), 64, NULL, out, err);
  for (int i = 0; i < 64; i++) numbers[i] = test_random_f32(&seed);
  return status == BERTH_OK ? device->write(*out, b->w, numbers, sizeof numbers, err) : status;
}

static berth_status run(bench *b, berth__program *program, berth__block *block, float out[N_OUT], berth_error *err) {
  float numbers[N_IN];
  uint64_t seed = 5;
  for (int i = 0; i < N_IN; i++) numbers[i] = test_random_f32(&seed);
  berth_status status = device->write(block, b->x, numbers, sizeof numbers, err);
  if (status == BERTH_OK) status = berth__device_run(device, program, &nobody, err);
  return status == BERTH_OK ? device->read(block, b->c, out, N_OUT * sizeof *out, err) : status;
}

static void expect_right(bench *b, berth__program *program, berth__block *block) {
  float got[N_OUT] = {0};
  berth_error err;
  TEST_OK(run(b, program, block, got, &err));
  assert_memory_equal(got, b->want, sizeof got);
}

/* A block, a program, and a run: all of it; frees what it made. */
static berth_status use_once(bench *b, float out[N_OUT], berth_error *err) {
  berth__block *block = NULL;
  berth__program *program = NULL;
  berth_status status = make_block(b, &block, err);
  if (status == BERTH_OK) status = device->program_create(b->engine, b->plan, false, &program, err);
  if (status == BERTH_OK) status = device->program_bind(program, block, NULL, err);
  if (status == BERTH_OK) status = run(b, program, block, out, err);
  device->program_destroy(program);
  device->block_destroy(block);
  return status;
}

/* The first use says how many calls there are; then each fails once, and the engine goes on. */
static void any_call_may_fail(void **state) {
  bench b;
  berth_error err;
  (void)state;
  set_up(&b);
  const uint64_t before = berth__interp_calls(b.engine);
  TEST_OK(use_once(&b, b.want, &err));
  const uint64_t n_calls = berth__interp_calls(b.engine) - before;
  assert_true(n_calls > 10);
  for (uint64_t n = 0; n < n_calls; n++) {
    float got[N_OUT] = {0};
    berth__interp_fail_after(b.engine, n, BERTH_DEVICE_NOMEM);
    test_expect_error(use_once(&b, got, &err), BERTH_DEVICE_NOMEM, &err, "told to fail");
    TEST_OK(use_once(&b, got, &err));
    assert_memory_equal(got, b.want, sizeof got);
  }
  take_down(&b);
}

/* A bind that fails changes nothing; one that does not can be taken back, without a call of the driver. */
static void binding_is_all_or_nothing(void **state) {
  bench b;
  berth_error err;
  berth__block *one = NULL, *two = NULL;
  berth__program *program = NULL;
  uint64_t n = 0;
  (void)state;
  set_up(&b);
  TEST_OK(use_once(&b, b.want, &err));
  TEST_OK(make_block(&b, &one, &err));
  TEST_OK(make_block(&b, &two, &err));
  TEST_OK(device->program_create(b.engine, b.plan, false, &program, &err));
  TEST_OK(device->program_bind(program, one, NULL, &err));
  for (berth_status status = BERTH_INTERNAL; status != BERTH_OK; n++) {
    berth__interp_fail_after(b.engine, n, BERTH_INTERNAL);
    status = device->program_bind(program, two, NULL, &err);
    berth__interp_fail_after(b.engine, UINT64_MAX / 2, BERTH_OK);
    expect_right(&b, program, status == BERTH_OK ? two : one);
  }
  assert_true(n > 3); /* parts are recorded one by one */
  berth__interp_fail_after(b.engine, 0, BERTH_INTERNAL);
  TEST_OK(device->program_bind(program, one, NULL, &err));
  TEST_OK(device->program_bind(program, two, NULL, &err));
  TEST_OK(device->program_bind(program, one, NULL, &err));
  berth__interp_fail_after(b.engine, UINT64_MAX / 2, BERTH_OK);
  expect_right(&b, program, one);
  device->block_destroy(two); /* the one before: nobody needs it */
  expect_right(&b, program, one);
  device->block_destroy(one);
  test_expect_error(berth__device_run(device, program, &nobody, &err), BERTH_INTERNAL, &err, "gone");
  device->program_destroy(program);
  take_down(&b);
}

/* The halves of a run; and what is under way when its program goes, or its block. */
static void halves_of_a_run(void **state) {
  bench b;
  berth_error err;
  (void)state;
  set_up(&b);
  TEST_OK(use_once(&b, b.want, &err));
  for (int goes = 0; goes < 3; goes++) {
    berth__block *block = NULL;
    berth__program *program = NULL;
    float got[N_OUT] = {0};
    TEST_OK(make_block(&b, &block, &err));
    TEST_OK(device->program_create(b.engine, b.plan, false, &program, &err));
    TEST_OK(device->program_bind(program, block, NULL, &err));
    expect_right(&b, program, block);
    memset(got, 0, sizeof got);
    TEST_OK(device->write(block, b.c, got, sizeof got, &err));
    TEST_OK(device->submit(program, &nobody, &err));
    if (goes == 1) device->block_destroy(block);
    if (goes == 0) {
      TEST_OK(device->wait(program, &err));
      TEST_OK(device->read(block, b.c, got, sizeof got, &err));
      assert_memory_equal(got, b.want, sizeof got);
    }
    device->program_destroy(program);
    if (goes != 1) device->block_destroy(block);
  }
  take_down(&b);
}

/* A plan whose profile asks for more than the device has. */
static void kernels_that_do_not_fit(void **state) {
  bench b;
  berth_error err;
  berth__program *program;
  (void)state;
  set_up(&b);
  berth__gpu_engine *core = berth__gpu_core(b.engine);
  core->max_threads = 16;
  test_expect_error(device->program_create(b.engine, b.plan, false, &program, &err), BERTH_UNSUPPORTED, &err,
                    "too many for generic");
  assert_null(program);
  core->max_threads = 1024;
  core->max_groups = 0;
  test_expect_error(device->program_create(b.engine, b.plan, false, &program, &err), BERTH_UNSUPPORTED, &err,
                    "workgroups");
  core->max_groups = UINT32_MAX;
  TEST_OK(use_once(&b, b.want, &err));
  take_down(&b);
}

static void a_lost_device_stays_lost(void **state) {
  bench b;
  berth_error err;
  float got[N_OUT];
  (void)state;
  set_up(&b);
  berth__interp_fail_after(b.engine, 4, BERTH_DEVICE_LOST);
  test_expect_error(use_once(&b, got, &err), BERTH_DEVICE_LOST, &err, "");
  test_expect_error(use_once(&b, got, &err), BERTH_DEVICE_LOST, &err, "was lost");
  take_down(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_call_may_fail), cmocka_unit_test(binding_is_all_or_nothing),
                                     cmocka_unit_test(halves_of_a_run), cmocka_unit_test(kernels_that_do_not_fit),
                                     cmocka_unit_test(a_lost_device_stays_lost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
