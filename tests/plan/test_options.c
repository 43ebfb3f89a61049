/* The options of a plan, and the numbers that it reports. */
#include <stdio.h>
#include <stdlib.h>

#include "plan/planning.h"

#define SOURCES "input %in : f32[10]\nparam %w : f32[10]\nconst %k : f32[2] = [1, 2]\n"
#define GRAPH SOURCES "%a = add(%in, %w)\n%s = reduce_sum(%k)\n%y = add(%a, %s)\noutput \"y\" = %y"

static berth_plan *plan_with(fixture *f, const berth_plan_desc *desc) {
  berth_plan_destroy(f->plan);
  f->plan = NULL;
  return f->plan = make_plan(f->graph, desc);
}

static void expect_refused(const fixture *f, const berth_plan_desc *desc, berth_status want, const char *part) {
  berth_error err;
  berth_plan *plan = (berth_plan *)(uintptr_t)1;
  test_expect_error(berth_plan_create(f->graph, desc, &plan, &err), want, &err, part);
  assert_null(plan);
}

/* ---- In the arena or not ---- */

static void test_outside(void **state) {
  const berth_plan *plan = plan_text(*state, GRAPH, 0);
  const char *sources[] = {"in", "w", "k"};
  const uint32_t flags[] = {BERTH_PLAN_INPUTS_OUTSIDE, BERTH_PLAN_PARAMS_OUTSIDE, BERTH_PLAN_CONSTANTS_OUTSIDE};
  for (size_t i = 0; i < 3; i++) assert_int_not_equal(slot_of(plan, sources[i]).offset, BERTH_OFFSET_NONE);
  assert_int_equal(test_plan_info(plan).weights_size, 128);
  for (uint32_t bits = 0; bits < 8; bits++) {
    uint32_t all = 0;
    for (size_t i = 0; i < 3; i++) all |= bits >> i & 1 ? flags[i] : 0;
    plan = plan_again(*state, all);
    for (size_t i = 0; i < 3; i++) {
      berth_slot slot = slot_of(plan, sources[i]);
      assert_int_equal(slot.offset == BERTH_OFFSET_NONE, bits >> i & 1);
      assert_int_equal(slot.size, i == 2 ? 8 : 40);
      assert_int_equal(slot.root, find(plan, sources[i]));
    }
    uint64_t weights = (bits & 2 ? 0u : 64u) + (bits & 4 ? 0u : 64u);
    assert_int_equal(test_plan_info(plan).weights_size, weights);
    berth_plan_desc desc = desc_with(all);
    assert_runs_alike(((fixture *)*state)->graph, &desc);
  }
}

static void test_presets(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_plan_desc forward = {.struct_size = (uint32_t)sizeof forward};
  berth_plan_desc backward = BERTH_PLAN_DESC_INIT, init = BERTH_PLAN_DESC_INIT;
  test_expect_error(berth_plan_preset((berth_preset)7, &forward, &err), BERTH_INVALID, &err, "preset 7");
  TEST_OK(berth_plan_preset(BERTH_PRESET_INFERENCE, &forward, &err));
  assert_memory_equal(&forward, &init, sizeof init);
  TEST_OK(berth_plan_preset(BERTH_PRESET_BACKWARD, &backward, &err));
  assert_int_equal(forward.struct_size, sizeof forward);
  assert_int_equal(backward.struct_size, sizeof backward);
  f->graph = parse_graph(f->ctx, GRAPH);
  const berth_plan *plan = plan_with(f, &forward);
  assert_int_equal(test_plan_info(plan).weights_size, 128);
  assert_int_not_equal(slot_of(plan, "in").offset, BERTH_OFFSET_NONE);
  plan = plan_with(f, &backward);
  assert_int_equal(test_plan_info(plan).weights_size, 0);
  assert_int_equal(slot_of(plan, "in").offset, BERTH_OFFSET_NONE);
  assert_int_equal(slot_of(plan, "w").offset, BERTH_OFFSET_NONE);
  assert_int_equal(slot_of(plan, "k").offset, BERTH_OFFSET_NONE);
  assert_int_equal(slot_of(plan, "y").offset, 0);
}

/* ---- No reuse ---- */

#define CHAIN "input %in : f32[100]\n%a = exp(%in)\n%b = exp(%a)\n%c = softmax(%b)\n%d = exp(%c)\noutput \"d\" = %d"

static void assert_all_apart(const berth_plan *plan) {
  const char *names[] = {"in", "a", "b", "c", "d"};
  for (size_t i = 0; i < 5; i++)
    for (size_t k = 0; k < i; k++) assert_false(share_bytes(plan, names[i], names[k]));
  assert_int_equal(activations_size(plan), 5 * 448);
  assert_int_equal(test_plan_info(plan).saved, 0);
  assert_int_equal(test_plan_info(plan).total_unshared, berth_plan_arena_size(plan));
}

static void test_no_reuse(void **state) {
  const berth_plan *plan = plan_text(*state, CHAIN, 0);
  uint64_t unshared = test_plan_info(plan).total_unshared;
  assert_true(share_bytes(plan, "a", "d"));
  plan = plan_again(*state, BERTH_PLAN_NO_REUSE);
  assert_all_apart(plan);
  assert_int_equal(berth_plan_arena_size(plan), unshared);
  berth_plan_desc desc = desc_with(BERTH_PLAN_NO_REUSE);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_no_reuse_by_the_environment(void **state) {
  berth_context *ctx = ((fixture *)*state)->ctx;
  assert_int_equal(setenv("BERTH_ARENA_NO_REUSE", "1", 1), 0);
  test_read_options(ctx);
  const berth_plan *plan = plan_text(*state, CHAIN, 0);
  assert_int_equal(unsetenv("BERTH_ARENA_NO_REUSE"), 0);
  assert_all_apart(plan);
  assert_int_equal(setenv("BERTH_ARENA_NO_REUSE", "0", 1), 0);
  test_read_options(ctx);
  plan = plan_again(*state, 0);
  assert_int_equal(unsetenv("BERTH_ARENA_NO_REUSE"), 0);
  assert_true(share_bytes(plan, "a", "d"));
}

/* ---- Alignment ---- */

static void test_alignments(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx,
                         "input %in : f32[5]\nparam %w : f32[3]\nparam %v : f32[5]\n%a = exp(%in)\n"
                         "%b = add(%a, %v)\n%c = reduce_sum(%w)\n%d = add(%b, %c)\noutput \"a\" = %a\n"
                         "output \"d\" = %d");
  for (uint64_t align = 16; align <= 4096; align *= 2) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.align = align;
    const berth_plan *plan = plan_with(f, &desc);
    for (size_t i = 0; i < plan->n_buffers; i++) assert_int_equal(plan->buffers[i].offset % align, 0);
    assert_int_equal(berth_plan_arena_size(plan) % align, 0);
    assert_int_equal(test_plan_info(plan).weights_size, 2 * (align > 32 ? align : 32) - (align == 16 ? 16 : 0));
    assert_runs_alike(f->graph, &desc);
  }
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  assert_int_equal(plan_with(f, &desc)->align, 64);
  desc.align = 1; /* the device wants more */
  assert_int_equal(plan_with(f, &desc)->align, 16);
}

/* Without an alignment that is asked for, activations take no more than their size, and none lies across two lines of
 * the cache that has room in one. */
static void test_small_values(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx,
                         "input %in : f32[30]\nparam %w : f32[3]\n%a = reduce_sum(%in)\n%b = cast(%a) {to = \"f64\"}\n"
                         "%c = cast(%a) {to = \"i8\"}\n%d = narrow(%in) {axes = [0], starts = [0], ends = [5]}\n"
                         "%e = exp(%d)\noutput \"a\" = %a\noutput \"b\" = %b\noutput \"c\" = %c\noutput \"e\" = %e");
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  const berth_plan *plan = plan_with(f, &desc);
  const berth_plan_info info = test_plan_info(plan);
  assert_true(info.activations_size >= 120 + 20 + 4 + 8 + 1 && info.activations_size <= 160); /* some may be in gaps */
  assert_int_equal(info.activations_lower_bound, 120 + 20 + 4 + 8 + 1);
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    assert_true(buffer->size >= 64 || buffer->offset / 64 == (buffer->offset + buffer->size - 1) / 64);
    assert_int_equal(buffer->offset % (buffer->size >= 64 || buffer->kind == BERTH__BUFFER_PARAM ? 64 : 1), 0);
  }
  assert_runs_alike(f->graph, &desc);
  desc.align = 64;
  plan = plan_with(f, &desc);
  assert_int_equal(test_plan_info(plan).activations_size, 128 + 4 * 64);
  for (size_t i = 0; i < plan->n_buffers; i++) assert_int_equal(plan->buffers[i].offset % 64, 0);
}

static void test_alignments_that_are_none(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, CHAIN);
  const uint64_t wrong[] = {3, 24, 63, 65, UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 41};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.align = wrong[i];
    expect_refused(f, &desc, BERTH_INVALID, "power of two");
  }
}

/* ---- Uniform f32 ---- */

static void test_uniform(void **state) {
  const berth_plan *plan =
      plan_text(*state,
                "input %in : f16[100]\nparam %w : i8[100]\n%a = cast(%in) {to = \"f64\"}\n"
                "%b = cast(%w) {to = \"bool\"}\n%c = cast(%a) {to = \"f16\"}\n"
                "%v = narrow(%c) {starts = [50], ends = [100]}\noutput \"b\" = %b\noutput \"v\" = %v",
                BERTH_PLAN_F32_UNIFORM);
  const char *names[] = {"in", "w", "a", "b", "c"};
  for (size_t i = 0; i < 5; i++) assert_int_equal(slot_of(plan, names[i]).size, 400);
  assert_view(plan, "v", "c", 200);
  assert_int_equal(test_plan_info(plan).weights_size, 448);
}

/* ---- Guards ---- */

static void assert_free_behind(const berth_plan *plan, const char *name, uint64_t guard) {
  const berth__buffer *mine = buffer_of(plan, name);
  uint64_t low = mine->offset + mine->size, high = low + guard;
  assert_int_equal(mine->guard, guard);
  assert_true(high <= berth_plan_arena_size(plan));
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *other = &plan->buffers[i];
    bool meets = other->birth < mine->death && mine->birth < other->death;
    if (other != mine && meets && other->offset < high && low < other->offset + other->size)
      fail_msg("buffer %zu lies in the guard of '%s'", i, name);
  }
}

static void test_guards(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx,
                         "input %in : f32[16]\nparam %w : f32[16]\n%a = matmul(%in, %m)\n"
                         "%m = expand(%w1) {shape = [16, 16]}\n%w1 = reshape(%w) {shape = [1, 16]}\n"
                         "%b = exp(%a)\n%c = add(%b, %w)\noutput \"a\" = %a\noutput \"c\" = %c\n"
                         "output \"w\" = %w");
  const struct {
    uint64_t align, guard, expected;
  } cases[] = {{64, 0, 0}, {64, 1, 1}, {64, 100, 100}, {64, BERTH_GUARD_AUTO, 128}, {256, BERTH_GUARD_AUTO, 256}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.align = cases[i].align;
    desc.guard = cases[i].guard;
    const berth_plan *plan = plan_with(f, &desc);
    assert_free_behind(plan, "in", cases[i].expected);
    assert_free_behind(plan, "a", cases[i].expected);
    assert_free_behind(plan, "c", cases[i].expected);
    assert_int_equal(slot_of(plan, "in").size, 64);   /* not counted */
    assert_int_equal(buffer_of(plan, "w")->guard, 0); /* weights are never written */
    assert_int_equal(test_plan_info(plan).saved, test_plan_info(plan).total_unshared - berth_plan_arena_size(plan));
    assert_runs_alike(f->graph, &desc);
  }
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.guard = UINT64_MAX - 1;
  expect_refused(f, &desc, BERTH_INVALID, "guard");
}

/* ---- Order ---- */

/* Four wide values are made before any of them is made small: an order that finishes one branch at a time needs one. */
#define WIDE(n) "%w" n " = expand(%e" n ") {shape = [64, 64]}\n%e" n " = exp(%in)\n%x" n " = matmul(%w" n ", %m)\n"
#define NARROW(n) "%r" n " = reduce_sum(%x" n ") {axes = [0]}\n"
#define BRANCHES                                                                                                  \
  "input %in : f32[64]\nparam %m : f32[64, 64]\n" WIDE("0") WIDE("1") WIDE("2") WIDE("3") NARROW("0") NARROW("1") \
      NARROW("2") NARROW("3") "%s = add(%r0, %r1)\n%t = add(%r2, %r3)\n%u = add(%s, %t)\noutput \"u\" = %u"

static void test_order(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, BRANCHES);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.order = BERTH_ORDER_SOURCE;
  uint64_t source = activations_size(plan_with(f, &desc));
  for (uint32_t step = 0; step < f->plan->n_steps; step++) assert_int_equal(berth_plan_step_node(f->plan, step), step);
  desc.order = BERTH_ORDER_MEMORY;
  uint64_t memory = activations_size(plan_with(f, &desc));
  assert_true(source > 4 * 64 * 64 * 4);
  assert_true(memory < 2 * 64 * 64 * 4);
  assert_runs_alike(f->graph, &desc);
  desc.order = (berth_order)2;
  expect_refused(f, &desc, BERTH_INVALID, "order 2");
}

static void test_budget(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, BRANCHES);
  berth_plan_desc desc =
      desc_with(BERTH_PLAN_NO_PASSES | BERTH_PLAN_REFERENCE); /* passes would keep one of the equal branches */
  uint64_t source = berth_plan_arena_size(plan_with(f, &desc));
  desc.order = BERTH_ORDER_MEMORY;
  uint64_t memory = berth_plan_arena_size(plan_with(f, &desc));
  desc.order = BERTH_ORDER_SOURCE;
  desc.budget = source; /* met as it is */
  assert_int_equal(berth_plan_arena_size(plan_with(f, &desc)), source);
  desc.budget = source - 1; /* met in another order */
  assert_true(berth_plan_arena_size(plan_with(f, &desc)) < source);
  desc.budget = memory;
  assert_int_equal(berth_plan_arena_size(plan_with(f, &desc)), memory);
  desc.budget = memory - 1;
  berth_error err;
  berth_plan *plan = NULL;
  char wanted[64];
  test_expect_error(berth_plan_create(f->graph, &desc, &plan, &err), BERTH_INFEASIBLE, &err, "budget");
  snprintf(wanted, sizeof wanted, "the budget is %llu bytes", (unsigned long long)memory - 1);
  assert_non_null(strstr(err.message, wanted));
  snprintf(wanted, sizeof wanted, "needs %llu (", (unsigned long long)memory);
  if (strstr(err.message, wanted) == NULL) fail_msg("%s (expected: %s)", err.message, wanted);
  assert_null(plan);
}

/* ---- Scratch ---- */

static void test_threads_scale_scratch(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, "input %q : f32[64, 64]\n%a = attention(%q, %q, %q) {heads = 4}\noutput \"a\" = %a");
  uint64_t one = 0;
  for (uint32_t threads = 1; threads <= 8; threads *= 2) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.n_threads = threads;
    const berth_plan *plan = plan_with(f, &desc);
    assert_int_not_equal(plan->scratch[0], BERTH__NO_BUFFER);
    uint64_t size = plan->buffers[plan->scratch[0]].size;
    if (threads == 1) one = size;
    assert_true(one > 0);
    assert_int_equal(size, threads * one);
    berth_plan_info info = test_plan_info(plan);
    assert_true(info.scratch_size > 0);
    assert_int_equal(info.arena_size, info.weights_size + info.activations_size + info.scratch_size);
    assert_int_equal(info.activations_size, info.activations_lower_bound);
  }
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  assert_int_equal(plan_with(f, &desc)->n_threads, 2); /* the context's */
}

/* What one thread does alone needs its scratch once, however many there are. */
static void test_small_calls_have_one_scratch(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, "input %q : f32[4, 8]\n%a = attention(%q, %q, %q) {heads = 4}\noutput \"a\" = %a");
  uint64_t one = 0;
  for (uint32_t threads = 1; threads <= 8; threads *= 2) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.n_threads = threads;
    const berth_plan *plan = plan_with(f, &desc);
    assert_int_not_equal(plan->scratch[0], BERTH__NO_BUFFER);
    if (threads == 1) one = plan->buffers[plan->scratch[0]].size;
    assert_int_equal(plan->buffers[plan->scratch[0]].size, one);
  }
}

static berth_status infer_same(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}
static uint64_t much_scratch(const berth_op_call *call) { return *(const uint64_t *)call->user; }
static berth_status do_nothing(const berth_op_call *call, berth_error *err) {
  (void)call, (void)err;
  return BERTH_OK;
}

/* One is fine, but their sum is not: a plan without reuse has all of them at once. */
static void test_scratch_that_is_too_much(void **state) {
  fixture *f = *state;
  static uint64_t each = (uint64_t)1 << 60;
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_error err;
  op.name = "test.greedy";
  op.min_in = op.max_in = 1;
  op.infer = infer_same;
  op.scratch = much_scratch;
  op.kernel = do_nothing;
  op.user = &each;
  TEST_OK(berth_op_register(f->ctx, &op, &err));
  f->graph = parse_graph(f->ctx,
                         "input %in : f32[4]\n%a = test.greedy(%in)\n%b = test.greedy(%a)\n"
                         "%c = test.greedy(%b)\n%d = test.greedy(%c)\noutput \"d\" = %d");
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  expect_refused(f, &desc, BERTH_INVALID, "scratch");
  each = UINT64_MAX - 10;
  expect_refused(f, &desc, BERTH_INVALID, "scratch");
  each = 1 << 20;
  assert_int_equal(test_plan_info(plan_with(f, &desc)).scratch_size, 1 << 20);
}

/* ---- Sizes ---- */

static void test_huge(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, "input %in : f64[1152921504606846975]\n%a = exp(%in)\noutput \"a\" = %a");
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  expect_refused(f, &desc, BERTH_INVALID, "'in'");
  berth_graph_destroy(f->graph);
  f->graph = parse_graph(f->ctx,
                         "input %in : i8[576460752303423488]\n%a = exp(%b)\n%b = cast(%in) {to = \"f32\"}\n"
                         "output \"a\" = %a");
  expect_refused(f, &desc, BERTH_INVALID, "'b'");
  berth_graph_destroy(f->graph);
  f->graph = NULL;
  f->graph = parse_graph(f->ctx, "input %in : i8[576460752303423488]\n%a = neg(%in)\noutput \"a\" = %a");
  assert_int_equal(berth_plan_arena_size(plan_with(f, &desc)), (uint64_t)1 << 60); /* large, but it can be said */
  desc.flags = BERTH_PLAN_F32_UNIFORM;
  expect_refused(f, &desc, BERTH_INVALID, "61 bits");
}

static void test_dims(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, "input %in : f32[batch, 8]\n%a = exp(%in)\n%b = softmax(%a)\noutput \"b\" = %b");
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  expect_refused(f, &desc, BERTH_INVALID, "batch");
  berth_dim dims[] = {{"batch", 3}};
  desc.dims = dims;
  desc.n_dims = 1;
  assert_int_equal(slot_of(plan_with(f, &desc), "b").size, 96);
  assert_runs_alike(f->graph, &desc);
  dims[0].extent = INT64_MAX / 8;
  expect_refused(f, &desc, BERTH_INVALID, NULL);
}

static void test_wrong_arguments(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_plan *plan = NULL;
  f->graph = parse_graph(f->ctx, CHAIN);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  test_expect_error(berth_plan_create(NULL, &desc, &plan, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_create(f->graph, &desc, NULL, &err), BERTH_INVALID, &err, NULL);
  desc.device = "abacus";
  expect_refused(f, &desc, BERTH_UNSUPPORTED, "abacus");
  desc.device = NULL;
  desc.flags = 1u << 20;
  expect_refused(f, &desc, BERTH_INVALID, "flag");
  assert_int_equal(berth_plan_create(f->graph, NULL, &plan, NULL), BERTH_OK);
  berth_plan_destroy(plan);
  berth_plan_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_outside),
      PLAN_TEST(test_presets),
      PLAN_TEST(test_no_reuse),
      PLAN_TEST(test_no_reuse_by_the_environment),
      PLAN_TEST(test_alignments),
      PLAN_TEST(test_small_values),
      PLAN_TEST(test_alignments_that_are_none),
      PLAN_TEST(test_uniform),
      PLAN_TEST(test_guards),
      PLAN_TEST(test_order),
      PLAN_TEST(test_budget),
      PLAN_TEST(test_threads_scale_scratch),
      PLAN_TEST(test_small_calls_have_one_scratch),
      PLAN_TEST(test_scratch_that_is_too_much),
      PLAN_TEST(test_huge),
      PLAN_TEST(test_dims),
      PLAN_TEST(test_wrong_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
