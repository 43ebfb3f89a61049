/* Ops that write several results over their operands: a registered one with three, and one that updates two states. */
#include <stdbool.h>

#include "plan/plan.h"
#include "sessions.h"

static berth_status same_infer(const berth_op_infer *call, berth_error *err) {
  (void)err;
  for (uint32_t i = 0; i < call->n_out; i++) {
    call->out_type[i] = call->in_type[i];
    call->out_shape[i] = call->in_shape[i];
  }
  return BERTH_OK;
}

static int64_t element_items(const berth_op_call *call) { return call->in[0].dim[0]; }

/* a + b, b + c, c + a: every element of the operands is read before one is written. */
static berth_status turn_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  for (int64_t i = call->begin; i < call->end; i++) {
    const float a = ((const float *)call->in[0].data)[i], b = ((const float *)call->in[1].data)[i],
                c = ((const float *)call->in[2].data)[i];
    ((float *)call->out[0].data)[i] = a + b;
    ((float *)call->out[1].data)[i] = b + c;
    ((float *)call->out[2].data)[i] = c + a;
  }
  return BERTH_OK;
}

/* Of a weight, its momentum and its gradient: the next weight and the next momentum. */
static berth_status sgd_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  for (int64_t i = call->begin; i < call->end; i++) {
    const float w = ((const float *)call->in[0].data)[i], v = ((const float *)call->in[1].data)[i],
                g = ((const float *)call->in[2].data)[i];
    ((float *)call->out[1].data)[i] = 0.5f * v + g;
    ((float *)call->out[0].data)[i] = w - 0.25f * (0.5f * v + g);
  }
  return BERTH_OK;
}

static berth_context *context_with_ops(test_alloc *alloc) {
  berth_error err;
  berth_context *ctx = test_context_counting(alloc);
  uint32_t turn_masks[] = {1, 2, 4};
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  desc.name = "test.turn";
  desc.min_in = desc.max_in = desc.n_out = 3;
  desc.infer = same_infer;
  desc.items = element_items;
  desc.kernel = turn_kernel;
  desc.in_places = turn_masks;
  OK(berth_op_register(ctx, &desc, &err));
  memset(turn_masks, 0, sizeof turn_masks); /* it was copied */
  const uint32_t sgd_masks[] = {1, 2};
  desc.name = "test.sgd";
  desc.n_out = 2;
  desc.kernel = sgd_kernel;
  desc.in_places = sgd_masks;
  OK(berth_op_register(ctx, &desc, &err));
  desc.name = "test.only_first";
  desc.in_place = 1;
  desc.in_places = NULL;
  OK(berth_op_register(ctx, &desc, &err));
  return ctx;
}

static void start(fixture *f, const char *text, uint32_t flags) {
  berth_error err;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(f, 0, sizeof *f);
  f->ctx = context_with_ops(&f->alloc);
  f->graph = session_parse(f->ctx, text);
  plan.flags = flags;
  desc.plan = &plan;
  desc.flags = BERTH_SESSION_CHECKED;
  OK(berth_session_create(f->graph, &desc, &f->session, &err));
  OK(berth_plan_check(berth_session_plan(f->session), &err));
}

static const berth__place *place(const fixture *f, const char *name) {
  return &berth_session_plan(f->session)->places[berth_graph_find(f->graph, name)];
}

static bool lies_over(const fixture *f, const char *result, const char *operand) {
  const berth__place *a = place(f, result), *b = place(f, operand);
  return a->in_place && a->root == b->root && a->root_offset == b->root_offset;
}

#define TURN                                                                                                     \
  "graph \"t\" { input %x : f32[16] %a = exp(%x) %b = neg(%x) %c = abs(%x) %p, %q, %r = test.turn(%a, %b, %c)\n" \
  "  %s = mul(%p, %q) %y = mul(%s, %r) "

static void run_turn(fixture *f) {
  berth_error err;
  float x[16] = {0}, y[16];
  x[1] = -2;
  OK(berth_session_write(f->session, "x", x, sizeof x, &err));
  OK(berth_session_run(f->session, &err));
  OK(berth_session_read(f->session, "y", y, sizeof y, &err));
  assert_true(y[0] == 0); /* (1 + 0) (0 + 0) (0 + 1) */
  session_assert_close(&y[1], &(float){(0.13533528f + 2) * 4 * (2 + 0.13533528f)}, 1);
}

static void three_results_lie_over_three_operands(void **state) {
  fixture f;
  (void)state;
  start(&f, TURN "output \"y\" = %y }", 0);
  assert_true(lies_over(&f, "p", "a") && lies_over(&f, "q", "b") && lies_over(&f, "r", "c"));
  run_turn(&f);
  session_finish(&f);
}

static void a_result_has_its_own_bytes_where_its_operand_is_read_later(void **state) {
  fixture f;
  (void)state;
  start(&f, TURN "%late = neg(%b) output \"y\" = %y output \"late\" = %late }", BERTH_PLAN_NO_PASSES);
  assert_true(lies_over(&f, "p", "a") && lies_over(&f, "r", "c"));
  assert_false(place(&f, "q")->in_place);
  run_turn(&f);
  session_finish(&f);
  start(&f, TURN "output \"y\" = %y }", BERTH_PLAN_NO_INPLACE);
  assert_false(place(&f, "p")->in_place || place(&f, "q")->in_place || place(&f, "r")->in_place);
  run_turn(&f);
  session_finish(&f);
}

/* The same value twice: what lies over it would be written before it is read as the other operand. */
static void an_operand_that_is_given_twice_is_not_written_over(void **state) {
  fixture f;
  berth_error err;
  float x[16] = {3, -1}, y[16];
  (void)state;
  start(&f,
        "graph \"t\" { input %x : f32[16] %a = neg(%x) %c = abs(%x) %p, %q, %r = test.turn(%a, %a, %c)\n"
        "  %s = add(%p, %q) %y = add(%s, %r) output \"y\" = %y }",
        0);
  assert_false(place(&f, "p")->in_place || place(&f, "q")->in_place);
  assert_true(lies_over(&f, "r", "c"));
  OK(berth_session_write(f.session, "x", x, sizeof x, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  assert_true(y[0] == -6 && y[1] == 6);
  session_finish(&f);
}

static void an_op_without_masks_has_its_first_result_in_place(void **state) {
  fixture f;
  (void)state;
  start(&f,
        "graph \"t\" { input %x : f32[16] %a = neg(%x) %b = abs(%x) %c = exp(%x)\n"
        "  %p, %q = test.only_first(%a, %b, %c) %y = add(%p, %q) output \"y\" = %y }",
        0);
  assert_true(lies_over(&f, "p", "a"));
  assert_false(place(&f, "q")->in_place);
  session_finish(&f);
}

static const char sgd_text[] =
    "graph \"sgd\" { input %x : f32[4] state %w : f32[4] = [1, 2, 3, 4] state %v : f32[4] = zeros\n"
    "  %loss = sub(%w, %x) %next, %momentum = test.sgd(%w, %v, %loss) update %w = %next update %v = %momentum }";

static void a_step_of_training_updates_two_states_where_they_lie(void **state) {
  fixture f;
  berth_error err;
  const float x[4] = {0, 0, 0, 0};
  float w = 1, v = 0, got[4];
  (void)state;
  start(&f, sgd_text, 0);
  const berth_plan *plan = berth_session_plan(f.session);
  assert_int_equal(plan->graph->n_nodes, 2); /* nothing is copied */
  assert_true(lies_over(&f, "next", "w") && lies_over(&f, "momentum", "v"));
  assert_int_equal(plan->info.state_size, 128);
  for (int run = 0; run < 5; run++) {
    OK(berth_session_write(f.session, "x", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
    const float g = w;
    w = w - 0.25f * (0.5f * v + g);
    v = 0.5f * v + g;
    OK(berth_session_state_read(f.session, "w", got, sizeof got, &err));
    assert_true(got[0] == w && got[1] == 2 * w);
    OK(berth_session_state_read(f.session, "v", got, sizeof got, &err));
    assert_true(got[0] == v);
  }
  session_finish(&f);
}

/* On a GPU such an op runs on the CPU, between transfers; the states lie on the GPU. */
static void states_go_to_the_cpu_and_back(void **state) {
  fixture f;
  berth_error err;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  const float x[4] = {0, 0, 0, 0};
  float got[4];
  (void)state;
  memset(&f, 0, sizeof f);
  f.ctx = context_with_ops(&f.alloc);
  f.graph = session_parse(f.ctx, sgd_text);
  plan.flags = BERTH_PLAN_FALLBACK_CPU;
  desc.plan = &plan;
  desc.device = test_gpu();
  OK(berth_session_create(f.graph, &desc, &f.session, &err));
  assert_true(lies_over(&f, "next", "w") && lies_over(&f, "momentum", "v"));
  for (int run = 0; run < 2; run++) {
    OK(berth_session_write(f.session, "x", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
  }
  OK(berth_session_state_read(f.session, "v", got, sizeof got, &err));
  assert_true(got[0] == 1.25f && got[3] == 5); /* 0.5 * 1 + 0.75 */
  OK(berth_session_state_read(f.session, "w", got, sizeof got, &err));
  assert_true(got[0] == 0.4375f && got[3] == 1.75f);
  session_finish(&f);
}

/* The checker knows which result may lie over which operand. */
static void the_checker_knows_the_masks(void **state) {
  fixture f;
  berth_error err;
  (void)state;
  start(&f, TURN "output \"y\" = %y }", 0);
  berth_plan *plan = (berth_plan *)(uintptr_t)berth_session_plan(f.session);
  berth__place *p = &plan->places[berth_graph_find(f.graph, "p")], *q = &plan->places[berth_graph_find(f.graph, "q")];
  const berth__place kept[] = {*p, *q};
  p->root = kept[1].root; /* over each other's operand */
  p->buffer = kept[1].buffer;
  q->root = kept[0].root;
  q->buffer = kept[0].buffer;
  test_expect_error(berth_plan_check(plan, &err), BERTH_INTERNAL, &err, NULL);
  *p = kept[0];
  *q = kept[0]; /* both over the same */
  q->birth = kept[1].birth;
  test_expect_error(berth_plan_check(plan, &err), BERTH_INTERNAL, &err, NULL);
  *q = kept[1];
  OK(berth_plan_check(plan, &err));
  session_finish(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_results_lie_over_three_operands),
      cmocka_unit_test(a_result_has_its_own_bytes_where_its_operand_is_read_later),
      cmocka_unit_test(an_operand_that_is_given_twice_is_not_written_over),
      cmocka_unit_test(an_op_without_masks_has_its_first_result_in_place),
      cmocka_unit_test(a_step_of_training_updates_two_states_where_they_lie),
      cmocka_unit_test(states_go_to_the_cpu_and_back),
      cmocka_unit_test(the_checker_knows_the_masks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
