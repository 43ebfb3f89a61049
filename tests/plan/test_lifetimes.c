/* A value lives from the step that makes it until after its last reader, and nothing is pinned. */
#include <stdio.h>
#include <stdlib.h>

#include "plan/planning.h"

#define INPUT "input %in : f32[64]\n" /* 256 bytes */
#define SIZE 256u

static void assert_life(const berth_plan *plan, const char *name, uint32_t birth, uint32_t death) {
  berth_slot slot = slot_of(plan, name);
  if (slot.birth != birth || slot.death != death)
    fail_msg("'%s' lives over [%u, %u), not [%u, %u)", name, slot.birth, slot.death, birth, death);
}

static void test_ranges(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUT
                                     "%a = exp(%in)\n%b = exp(%a)\n%c = exp(%in)\n%d = add(%b, %c)\n"
                                     "%e = add(%d, %a)\n%f = exp(%e)\noutput \"c\" = %c\noutput \"f\" = %f",
                                     BERTH_PLAN_NO_INPLACE);
  assert_life(plan, "in", 0, 6);
  assert_life(plan, "a", 0, 5);
  assert_life(plan, "b", 1, 4);
  assert_life(plan, "c", 2, 6); /* an output: to the end */
  assert_life(plan, "d", 3, 5);
  assert_life(plan, "e", 4, 6);
  assert_life(plan, "f", 5, 6);
}

static void test_inputs_stay_or_die(void **state) {
  static const char text[] = INPUT
      "param %w : f32[64]\nconst %one : f32[] = [1]\n%a = add(%in, %w)\n%b = exp(%a)\n"
      "%c = add(%b, %one)\n%d = exp(%c)\noutput \"d\" = %d";
  const berth_plan *plan = plan_text(*state, text, BERTH_PLAN_NO_INPLACE);
  assert_life(plan, "in", 0, 4);
  assert_life(plan, "w", 0, 4);
  assert_life(plan, "one", 0, 4);
  assert_int_equal(activations_size(plan), 3 * SIZE);
  plan = plan_again(*state, BERTH_PLAN_NO_INPLACE | BERTH_PLAN_INPUTS_DIE);
  assert_life(plan, "in", 0, 1);
  assert_life(plan, "w", 0, 4);
  assert_life(plan, "one", 0, 4);
  assert_int_equal(activations_size(plan), 2 * SIZE);
  plan = plan_again(*state, BERTH_PLAN_INPUTS_DIE);
  assert_int_equal(activations_size(plan), SIZE);
  berth_plan_desc desc = desc_with(BERTH_PLAN_INPUTS_DIE);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_an_input_that_is_an_output_does_not_die(void **state) {
  const berth_plan *plan = plan_text(
      *state, INPUT "%a = exp(%in)\n%b = exp(%a)\noutput \"in\" = %in\noutput \"b\" = %b", BERTH_PLAN_INPUTS_DIE);
  assert_life(plan, "in", 0, 2);
  assert_false(share_bytes(plan, "in", "b"));
  berth_plan_desc desc = desc_with(BERTH_PLAN_INPUTS_DIE);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_an_input_that_nobody_reads(void **state) {
  const berth_plan *plan =
      plan_text(*state, INPUT "input %other : f32[64]\n%a = exp(%in)\n%b = exp(%a)\noutput \"b\" = %b",
                BERTH_PLAN_INPUTS_DIE | BERTH_PLAN_NO_INPLACE);
  assert_life(plan, "other", 0, 1);
  assert_int_equal(activations_size(plan), 3 * SIZE);
}

static char *chain(uint32_t n) {
  char *text = malloc(64 * ((size_t)n + 2));
  assert_non_null(text);
  size_t at = (size_t)sprintf(text, "%s", INPUT "%v0 = exp(%in)\n");
  for (uint32_t i = 1; i < n; i++) at += (size_t)sprintf(text + at, "%%v%u = tanh(%%v%u)\n", i, i - 1);
  sprintf(text + at, "output \"y\" = %%v%u\n", n - 1);
  return text;
}

/* Every value here is an ancestor of the output; keeping those alive would save nothing. */
static void test_a_deep_chain_needs_two_buffers(void **state) {
  char *text = chain(100);
  const berth_plan *plan = plan_text(*state, text, BERTH_PLAN_NO_INPLACE | BERTH_PLAN_INPUTS_OUTSIDE);
  assert_int_equal(activations_size(plan), 2 * SIZE);
  assert_int_equal(test_plan_info(plan).optimal, 1);
  assert_int_equal(test_plan_info(plan).total_unshared, 100 * SIZE);
  plan = plan_again(*state, BERTH_PLAN_INPUTS_OUTSIDE);
  assert_int_equal(activations_size(plan), SIZE);
  assert_int_equal(test_plan_info(plan).n_buffers, 1);
  plan = plan_again(*state, BERTH_PLAN_INPUTS_DIE);
  assert_int_equal(activations_size(plan), SIZE);
  plan = plan_again(*state, 0); /* the input stays */
  assert_int_equal(activations_size(plan), 2 * SIZE);
  free(text);
}

/* Matmul cannot run in place. */
static void test_products_take_turns(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %in : f32[8, 8]\nparam %w : f32[8, 8]\n%a = matmul(%in, %w)\n"
                                     "%b = matmul(%a, %w)\n%c = matmul(%b, %w)\n%d = matmul(%c, %w)\noutput \"d\" = %d",
                                     BERTH_PLAN_INPUTS_OUTSIDE);
  assert_int_equal(activations_size(plan), 2 * SIZE);
}

static void test_results_that_nobody_reads(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUT
                                     "%a = exp(%in)\n%unused = exp(%in)\n%b = exp(%a)\n"
                                     "%top, %where = top_k(%b) {k = 64}\n%c = exp(%top)\noutput \"c\" = %c",
                                     BERTH_PLAN_NO_INPLACE);
  assert_life(plan, "unused", 1, 2);
  assert_life(plan, "where", 3, 4); /* its kernel writes it all the same */
  assert_false(share_bytes(plan, "unused", "a"));
  assert_false(share_bytes(plan, "where", "top"));
  assert_false(share_bytes(plan, "where", "b"));
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_several_outputs(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     INPUT
                                     "%a = exp(%in)\n%b = exp(%a)\n%c = exp(%b)\n%d = exp(%c)\n"
                                     "output \"a\" = %a\noutput \"b\" = %b\noutput \"d\" = %d\n"
                                     "output \"a again\" = %a",
                                     0);
  const char *outputs[] = {"a", "b", "d"};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(slot_of(plan, outputs[i]).death, 4);
    for (size_t k = 0; k < i; k++) assert_false(share_bytes(plan, outputs[i], outputs[k]));
    assert_false(share_bytes(plan, outputs[i], "in"));
  }
  assert_int_equal(activations_size(plan), 4 * SIZE); /* c becomes d in place */
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_a_graph_without_nodes(void **state) {
  const berth_plan *plan = plan_text(*state, INPUT "output \"y\" = %in", 0);
  berth_plan_info info = test_plan_info(plan);
  assert_int_equal(info.n_steps, 0);
  assert_int_equal(info.arena_size, SIZE);
  assert_life(plan, "in", 0, 1);
  berth_plan_desc desc = desc_with(0);
  assert_runs_alike(((fixture *)*state)->graph, &desc);
}

static void test_a_graph_without_outputs(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_plan *plan = (berth_plan *)(uintptr_t)1;
  TEST_OK(berth_graph_create(f->ctx, "empty", &f->graph, &err));
  test_expect_error(berth_plan_create(f->graph, NULL, &plan, &err), BERTH_INVALID, &err, "no output");
  assert_null(plan);
}

/* Scratch lives for its own step alone. */
static void test_scratch_lives_for_one_step(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %q : f32[32, 64]\n%a = attention(%q, %q, %q) {heads = 4}\n"
                                     "%b = attention(%a, %a, %a) {heads = 4}\noutput \"b\" = %b",
                                     0);
  uint32_t found = 0;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    if (plan->scratch[step] == BERTH__NO_BUFFER) continue;
    const berth__buffer *buffer = &plan->buffers[plan->scratch[step]];
    assert_int_equal(buffer->kind, BERTH__BUFFER_SCRATCH);
    assert_int_equal(buffer->birth, step);
    assert_int_equal(buffer->death, step + 1);
    found++;
  }
  assert_int_equal(found, 2);
}

/* Any allocation may fail: nothing leaks, and the status says so. */
static berth_status plan_all(berth_context *ctx, berth_error *err, void *user) {
  static const char text[] =
      "graph \"t\" {\ninput %in : f32[8, 12]\n%n = narrow(%in) {axes = [1], starts = [2], ends = [6]}\n"
      "%a = add(%n, %n)\n%b = exp(%a)\n%c = concat(%a, %b) {axis = 0}\n%s = attention(%c, %c, %c) {heads = 2}\n"
      "output \"c\" = %s\n}";
  (void)user;
  berth_graph *graph = NULL;
  berth_plan *plan = NULL, *other = NULL;
  berth_layout *layout = NULL;
  test_buffer report = {0};
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, NULL, &plan, err);
  if (status == BERTH_OK) status = berth_plan_layout(plan, &layout, err);
  desc.order = BERTH_ORDER_MEMORY;
  desc.layout = layout;
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &other, err);
  if (status == BERTH_OK) status = berth_plan_check(plan, err);
  for (int kind = BERTH_REPORT_TEXT; kind <= BERTH_REPORT_HTML && status == BERTH_OK; kind++)
    status = berth_plan_report(plan, (berth_report_kind)kind, test_buffer_write, &report, err);
  test_buffer_free(&report);
  berth_layout_destroy(layout);
  berth_plan_destroy(other);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static void test_no_memory(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(plan_all, NULL) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_ranges),
      PLAN_TEST(test_inputs_stay_or_die),
      PLAN_TEST(test_an_input_that_is_an_output_does_not_die),
      PLAN_TEST(test_an_input_that_nobody_reads),
      PLAN_TEST(test_a_deep_chain_needs_two_buffers),
      PLAN_TEST(test_products_take_turns),
      PLAN_TEST(test_results_that_nobody_reads),
      PLAN_TEST(test_several_outputs),
      PLAN_TEST(test_a_graph_without_nodes),
      PLAN_TEST(test_a_graph_without_outputs),
      PLAN_TEST(test_scratch_lives_for_one_step),
      PLAN_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
