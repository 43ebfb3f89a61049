/* The rules that order nodes, each by itself: the planner takes the best of them. */
#include "plan/schedule.h"

#include <stdlib.h>

#include "plan/alias.h"
#include "plan/planning.h"
#include "plan/random_graph.h"

static uint32_t *order_of(const berth_graph *graph, berth__schedule_rule rule) {
  berth_error err;
  uint32_t *order = calloc(graph->n_nodes + 1, sizeof *order);
  assert_non_null(order);
  TEST_OK(berth__schedule(graph, rule, order, &err));
  return order;
}

static uint64_t load_of(const berth_graph *graph, berth__schedule_rule rule) {
  berth_error err;
  berth__alias alias;
  uint32_t *order = order_of(graph, rule);
  TEST_OK(berth__alias_create(&alias, graph, NULL, BERTH_PLAN_INPUTS_OUTSIDE, order, 0, &err));
  uint64_t load = berth__alias_load(&alias, 64, 0);
  berth__alias_free(&alias);
  free(order);
  return load;
}

static uint32_t step_of(const berth_graph *graph, const uint32_t *order, const char *name) {
  uint32_t node = graph->values[berth_graph_find(graph, name)].node;
  for (uint32_t step = 0; step < graph->n_nodes; step++)
    if (order[step] == node) return step;
  fail_msg("'%s' is not in the order", name);
  return 0;
}

/* Every node once, after all that it reads. */
static void assert_valid(const berth_graph *graph, const uint32_t *order) {
  bool *made = calloc(graph->n_values + 1, sizeof *made);
  assert_non_null(made);
  for (size_t v = 0; v < graph->n_values; v++) made[v] = graph->values[v].kind != BERTH_VALUE_NODE;
  for (uint32_t step = 0; step < graph->n_nodes; step++) {
    assert_true(order[step] < graph->n_nodes);
    const berth__node *node = &graph->nodes[order[step]];
    for (uint32_t i = 0; i < node->n_in; i++) assert_true(node->in[i] == BERTH_VALUE_NONE || made[node->in[i]]);
    for (uint32_t i = 0; i < node->n_out; i++) {
      assert_false(made[node->out[i]]);
      made[node->out[i]] = true;
    }
  }
  free(made);
}

static void test_orders_are_valid(void **state) {
  fixture *f = *state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    berth_graph *graph = random_graph(f->ctx, seed, 5 + (uint32_t)seed);
    for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) {
      uint32_t *order = order_of(graph, (berth__schedule_rule)rule);
      assert_valid(graph, order);
      for (uint32_t i = 0; rule == BERTH__SCHEDULE_SOURCE && i < graph->n_nodes; i++) assert_int_equal(order[i], i);
      free(order);
    }
    berth_graph_destroy(graph);
  }
}

/* A product (4 KiB) is summed into a row (128 bytes); the graph has all products first. */
#define PRODUCT(n) "%x" n " = matmul(%m, %m)\n"
#define SUM(n) "%r" n " = reduce_sum(%x" n ") {axes = [0]}\n"
#define BRANCHES                                                                                            \
  "param %m : f32[32, 32]\n" PRODUCT("0") PRODUCT("1") PRODUCT("2") PRODUCT("3") SUM("0") SUM("1") SUM("2") \
      SUM("3") "%s = add(%r0, %r1)\n%t = add(%r2, %r3)\n%u = add(%s, %t)\noutput \"u\" = %u"

static void test_each_rule_finishes_what_it_began(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, BRANCHES);
  assert_true(load_of(f->graph, BERTH__SCHEDULE_SOURCE) > 4 * 4096);
  assert_true(load_of(f->graph, BERTH__SCHEDULE_GREEDY) < 2 * 4096);
  assert_true(load_of(f->graph, BERTH__SCHEDULE_DEPTH) < 2 * 4096);
}

/* The branch that needs more comes first: the other's result is then not alive beside it. */
static void test_the_needier_branch_first(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx,
                         "param %row : f32[1, 256]\nparam %w : f32[256, 1024]\n%small = matmul(%row, %v)\n"
                         "%v = transpose(%w2)\nparam %w2 : f32[256, 256]\n%big = matmul(%row, %w)\n"
                         "%sum = reduce_sum(%big)\n%y = add(%small, %sum)\noutput \"y\" = %y");
  uint32_t *order = order_of(f->graph, BERTH__SCHEDULE_DEPTH);
  assert_true(step_of(f->graph, order, "sum") < step_of(f->graph, order, "small"));
  free(order);
}

static void test_few_nodes(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, "input %in : f32[4]\noutput \"y\" = %in");
  for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) free(order_of(f->graph, (berth__schedule_rule)rule));
  berth_graph_destroy(f->graph);
  f->graph = NULL;
  f->graph = parse_graph(f->ctx, "input %in : f32[4]\n%a = exp(%in)\n%b = exp(%a)\noutput \"y\" = %b");
  for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) {
    uint32_t *order = order_of(f->graph, (berth__schedule_rule)rule);
    assert_valid(f->graph, order);
    free(order);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_orders_are_valid),
      PLAN_TEST(test_each_rule_finishes_what_it_began),
      PLAN_TEST(test_the_needier_branch_first),
      PLAN_TEST(test_few_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
