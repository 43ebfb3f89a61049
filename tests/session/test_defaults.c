/* What a plan says beforehand is what a session takes. */
#include "sessions.h"

/* Four wide values: how they are ordered decides the size. */
#define WIDE(n) "%w" n " = matmul(%in, %m" n ")\n%e" n " = exp(%w" n ")\n"
#define NARROW(n) "%r" n " = reduce_sum(%e" n ") {axes = [1]}\n"
static const char branches[] =
    "graph \"b\" {\ninput %in : f32[64, 8]\nparam %m0 : f32[8, 256]\nparam %m1 : f32[8, 256]\nparam %m2 : f32[8, 256]\n"
    "param %m3 : f32[8, 256]\n" WIDE("0") WIDE("1") WIDE("2") WIDE("3") NARROW("0") NARROW("1") NARROW("2")
        NARROW("3") "%s = add(%r0, %r1)\n%t = add(%r2, %r3)\n%u = add(%s, %t)\noutput \"u\" = %u\n}\n";
static const char convolutions[] =
    "graph \"c\" {\ninput %x : f32[1, 8, 16, 16]\nparam %w : f32[12, 8, 3, 3]\nparam %v : f32[4, 12, 1, 1]\n"
    "%c = conv(%x, %w) {pads = [1, 1, 1, 1]}\n%r = relu(%c)\n%d = conv(%r, %v)\noutput \"d\" = %d\n}\n";
static const char chain[] =
    "graph \"e\" {\ninput %x : f32[300]\n%a = exp(%x)\n%b = tanh(%a)\n%c = add(%b, %x)\noutput \"c\" = %c\n}\n";
static const char *const texts[] = {branches, convolutions, chain};

static void compare(berth_context *ctx, const char *text, const berth_plan_desc *desc, const char *device) {
  berth_session_desc session_desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc with_device = BERTH_PLAN_DESC_INIT;
  berth_graph *graph = session_parse(ctx, text);
  berth_session *session;
  berth_plan *plan;
  berth_error err;
  if (desc != NULL) with_device = *desc;
  with_device.device = device;
  if (device != NULL) desc = &with_device;
  session_desc.plan = desc;
  TEST_OK(berth_plan_create(graph, desc, &plan, &err));
  TEST_OK(berth_session_create(graph, &session_desc, &session, &err));
  assert_int_equal(berth_arena_size(berth_session_arena(session)), berth_plan_arena_size(plan));
  const berth_plan_info told = test_plan_info(plan), taken = test_plan_info(berth_session_plan(session));
  assert_memory_equal(&told, &taken, sizeof told);
  berth_session_destroy(session);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
}

static void nothing_given_is_the_same(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) compare(ctx, texts[i], NULL, NULL);
  test_context_done(ctx, &alloc);
}

/* NULL, the _INIT macro and the first preset are one and the same. */
static void there_is_one_default(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_graph *graph = session_parse(ctx, branches);
  berth_plan_desc init = BERTH_PLAN_DESC_INIT, preset = BERTH_PLAN_DESC_INIT, source = BERTH_PLAN_DESC_INIT;
  berth_session *session;
  berth_error err;
  uint64_t sizes[4];
  TEST_OK(berth_plan_preset(BERTH_PRESET_INFERENCE, &preset, &err));
  source.order = BERTH_ORDER_SOURCE;
  const berth_plan_desc *const descs[] = {NULL, &init, &preset, &source};
  for (size_t i = 0; i < 4; i++) {
    berth_plan *plan;
    TEST_OK(berth_plan_create(graph, descs[i], &plan, &err));
    sizes[i] = berth_plan_arena_size(plan);
    berth_plan_destroy(plan);
  }
  assert_true(sizes[0] == sizes[1] && sizes[1] == sizes[2]);
  assert_true(sizes[3] > sizes[0]); /* otherwise this test would tell nothing */
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  assert_int_equal(berth_arena_size(berth_session_arena(session)), sizes[0]);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void options_mean_the_same_to_both(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const struct {
    uint32_t flags;
    uint64_t align, guard;
    berth_order order;
    uint32_t n_threads;
    const char *device;
  } cases[] = {
      {BERTH_PLAN_INPUTS_DIE, 0, 0, BERTH_ORDER_MEMORY, 0, NULL},
      {BERTH_PLAN_PARAMS_OUTSIDE, 256, 0, BERTH_ORDER_MEMORY, 0, NULL},
      {BERTH_PLAN_NO_REUSE, 0, 0, BERTH_ORDER_SOURCE, 0, NULL},
      {BERTH_PLAN_NO_PASSES, 0, BERTH_GUARD_AUTO, BERTH_ORDER_MEMORY, 0, NULL},
      {0, 0, 0, BERTH_ORDER_SOURCE, 1, NULL},
      {0, 0, 0, BERTH_ORDER_MEMORY, 5, NULL}, /* more workers than the context has: their scratch is planned */
      {BERTH_PLAN_REFERENCE, 0, 100, BERTH_ORDER_MEMORY, 3, NULL},
      {BERTH_PLAN_F32_UNIFORM, 0, 0, BERTH_ORDER_MEMORY, 0, NULL},
      {0, 0, 0, BERTH_ORDER_MEMORY, 0, "interp"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
      berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
      desc.flags = cases[i].flags;
      desc.align = cases[i].align;
      desc.guard = cases[i].guard;
      desc.order = cases[i].order;
      desc.n_threads = cases[i].n_threads;
      compare(ctx, texts[k], &desc, cases[i].device);
    }
  test_context_done(ctx, &alloc);
}

/* The plan's threads are the session's, unless the session says its own. */
static void threads_of_plan_and_session(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_graph *graph = session_parse(ctx, chain);
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  plan.n_threads = 3;
  desc.plan = &plan;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  assert_int_equal(berth_session_n_threads(session), 3);
  berth_session_destroy(session);
  desc.n_threads = 1;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  assert_int_equal(berth_session_n_threads(session), 1);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_given_is_the_same),
      cmocka_unit_test(there_is_one_default),
      cmocka_unit_test(options_mean_the_same_to_both),
      cmocka_unit_test(threads_of_plan_and_session),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
