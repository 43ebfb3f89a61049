/* The search for an order: measured against the planner, and against all orders there are. */
#include "plan/order.h"

#include <stdlib.h>

#include "plan/draft.h"
#include "plan/planning.h"
#include "plan/small_graph.h"

#define ALIGN 64u
#define MOST_NODES SMALL_GRAPH_NODES

static const bool never[MOST_NODES];

static berth__alias alias_of(const berth_graph *graph, uint32_t flags, const uint32_t *order) {
  berth__alias alias;
  berth_error err;
  TEST_OK(berth__alias_create(&alias, graph, NULL, flags, order, 0, &err));
  return alias;
}

/* What the planner says of an order. */
static uint64_t load_of(const berth_graph *graph, uint32_t flags, const uint32_t *order) {
  berth__alias alias = alias_of(graph, flags, order);
  berth__alias_concat(&alias, ALIGN, 0);
  uint64_t load = berth__alias_load(&alias, ALIGN, 0);
  berth__alias_free(&alias);
  return load;
}

static berth__order_model model_of(const berth_graph *graph, uint32_t flags, berth__order_parts parts) {
  berth__order_model model;
  berth_error err;
  uint32_t order[MOST_NODES];
  for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = i;
  berth__alias alias = alias_of(graph, flags | BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_CONCAT, order);
  const berth__order_rules rules = {.align = ALIGN, .in_place = !(flags & BERTH_PLAN_NO_INPLACE), .parts = parts};
  TEST_OK(berth__order_model_create(&model, &alias, never, &rules, &err));
  berth__alias_free(&alias);
  return model;
}

static uint64_t measure(const berth__order_model *model, const uint32_t *order) {
  uint32_t left[4 * MOST_NODES];
  uint64_t cost[MOST_NODES], alive[MOST_NODES + 1];
  return berth__order_measure(model, order, left, (berth__order_load){cost, alive});
}

static berth_graph *small_graph(berth_context *ctx, uint64_t seed, uint32_t n_nodes) {
  return small_graph_with(ctx, seed, n_nodes, false);
}

static uint32_t random_flags(uint64_t *random) {
  static const uint32_t flags[] = {BERTH_PLAN_INPUTS_DIE, BERTH_PLAN_NO_INPLACE, BERTH_PLAN_NO_STRIDED,
                                   BERTH_PLAN_INPUTS_OUTSIDE};
  uint32_t set = 0;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (test_random(random) % (i == 0 ? 2 : 4) == 0) set |= flags[i];
  return set;
}

/* ---- All orders ---- */

typedef struct all_orders {
  const berth_graph *graph;
  uint32_t flags;
  uint32_t order[MOST_NODES];
  bool is_done[MOST_NODES];
  uint64_t least;
  uint32_t n_orders;
} all_orders;

static bool is_ready(const all_orders *all, uint32_t node) {
  const berth__node *n = &all->graph->nodes[node];
  for (uint32_t i = 0; i < n->n_in; i++) {
    const berth__value *value = &all->graph->values[n->in[i]];
    if (value->kind == BERTH_VALUE_NODE && !all->is_done[value->node]) return false;
  }
  return true;
}

#define MOST_ORDERS 4000u

static void try_all(all_orders *all, uint32_t depth) {
  if (depth == all->graph->n_nodes) {
    uint64_t load = load_of(all->graph, all->flags, all->order);
    if (load < all->least) all->least = load;
    all->n_orders++;
    return;
  }
  for (uint32_t n = 0; n < all->graph->n_nodes && all->n_orders < MOST_ORDERS; n++) {
    if (all->is_done[n] || !is_ready(all, n)) continue;
    all->is_done[n] = true;
    all->order[depth] = n;
    try_all(all, depth + 1);
    all->is_done[n] = false;
  }
}

/* The result of the search is the best of all orders, as the planner measures them, and it is known to be. */
static void test_exact(void **state) {
  fixture *f = *state;
  uint32_t n_compared = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    uint64_t random = seed * 7919;
    berth_graph *graph = small_graph(f->ctx, seed, 4 + (uint32_t)(test_random(&random) % 7));
    all_orders all = {.graph = graph, .flags = random_flags(&random), .least = UINT64_MAX};
    berth_error err;
    try_all(&all, 0);
    if (all.n_orders < MOST_ORDERS) {
      berth__order_model model = model_of(graph, all.flags, BERTH__PARTS_APART);
      berth__order_result result;
      uint32_t order[MOST_NODES];
      for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = i;
      assert_true(model.is_exact);
      TEST_OK(berth__order_search(&model, order, &result, &err));
      assert_int_equal(result.needs, all.least);
      assert_int_equal(result.bound, all.least);
      assert_int_equal(load_of(graph, all.flags, order), all.least);
      berth__order_model_free(&model);
      n_compared++;
    }
    berth_graph_destroy(graph);
  }
  assert_true(n_compared > 150);
}

/* Where parts may lie inside their concats: what is said to be least is, and what the planner finds is no less. */
static void test_bounds_with_concats(void **state) {
  fixture *f = *state;
  uint32_t n_compared = 0, n_tight = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    uint64_t random = seed * 104729;
    berth_graph *graph = small_graph_with(f->ctx, seed + 300, 4 + (uint32_t)(test_random(&random) % 6), true);
    all_orders all = {.graph = graph, .flags = random_flags(&random), .least = UINT64_MAX};
    try_all(&all, 0);
    if (all.n_orders < MOST_ORDERS) {
      berth__order_model model = model_of(graph, all.flags, BERTH__PARTS_LEAST);
      berth__order_result result;
      berth_error err;
      uint32_t order[MOST_NODES];
      for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = i;
      TEST_OK(berth__order_search(&model, order, &result, &err));
      if (model.is_exact) { /* inputs inside a concat are not modelled */
        assert_true(result.bound <= all.least);
        n_tight += result.bound == all.least;
        n_compared++;
      }
      berth__order_model_free(&model);
    }
    berth_graph_destroy(graph);
  }
  print_message("the bound is reached for %u of %u graphs with concats\n", n_tight, n_compared);
  assert_true(n_compared > 50 && n_tight > n_compared / 3);
}

/* Whatever the order: the same load, step by step the largest. */
static void test_the_model_measures_as_the_planner_does(void **state) {
  fixture *f = *state;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    uint64_t random = seed;
    berth_graph *graph = small_graph(f->ctx, seed + 1000, 8 + (uint32_t)(test_random(&random) % 40));
    const uint32_t flags = random_flags(&random);
    berth__order_model model = model_of(graph, flags, BERTH__PARTS_APART);
    for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) {
      uint32_t order[MOST_NODES];
      berth_error err;
      TEST_OK(berth__schedule(graph, (berth__schedule_rule)rule, order, &err));
      assert_int_equal(measure(&model, order), load_of(graph, flags, order));
    }
    berth__order_model_free(&model);
    berth_graph_destroy(graph);
  }
}

static void assert_valid(const berth__order_model *model, const uint32_t *order) {
  bool is_done[MOST_NODES] = {false};
  for (uint32_t step = 0; step < model->n_nodes; step++) {
    const uint32_t node = order[step];
    assert_false(is_done[node]);
    for (uint32_t k = model->first_pred[node]; k < model->first_pred[node + 1]; k++)
      assert_true(is_done[model->preds[k]]);
    is_done[node] = true;
  }
}

/* Too many orders to try: never worse than what it began with, and the bound is one. */
static void test_large_pieces(void **state) {
  fixture *f = *state;
  uint32_t n_better = 0, n_proven = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    berth_graph *graph = small_graph(f->ctx, seed + 5000, 60);
    berth__order_model model = model_of(graph, 0, BERTH__PARTS_APART);
    berth__order_result result;
    berth_error err;
    uint32_t order[MOST_NODES];
    for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = i;
    const uint64_t before = measure(&model, order);
    TEST_OK(berth__order_search(&model, order, &result, &err));
    assert_valid(&model, order);
    assert_int_equal(measure(&model, order), result.needs);
    assert_int_equal(load_of(graph, 0, order), result.needs);
    assert_true(result.needs <= before && result.bound <= result.needs);
    n_better += result.needs < before;
    n_proven += result.needs == result.bound;
    berth__order_model_free(&model);
    berth_graph_destroy(graph);
  }
  print_message("of 60 graphs of 60 nodes %u are ordered better than they were, %u are proven\n", n_better, n_proven);
  assert_true(n_better > 30 && n_proven > 10);
}

/* The search stops where it is told to, and says only what it knows then. */
static void test_bounded_effort(void **state) {
  fixture *f = *state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    berth_graph *graph = small_graph(f->ctx, seed + 9000, 30);
    berth__order_model model = model_of(graph, 0, BERTH__PARTS_APART);
    uint32_t order[MOST_NODES], step_of[MOST_NODES], left[4 * MOST_NODES];
    uint64_t cost[MOST_NODES], alive[MOST_NODES + 1];
    berth_error err;
    berth__order_answer few, many;
    for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = step_of[i] = i;
    const uint64_t before = berth__order_measure(&model, order, left, (berth__order_load){cost, alive});
    const berth__order_span all = {0, model.n_nodes};
    berth__order_goal goal = {.above = before, .enough = 0, .tries = 5};
    TEST_OK(berth__order_window(&model, order, step_of, alive[0], all, &goal, &few, &err));
    assert_true(few.tried <= 5);
    goal.tries = 100000;
    goal.above = before + 1;
    TEST_OK(berth__order_window(&model, order, step_of, alive[0], all, &goal, &many, &err));
    assert_true(many.is_found && many.needs == many.bound && few.bound <= many.bound);
    for (uint32_t i = 0; i < graph->n_nodes; i++) assert_int_equal(step_of[order[i]], i);
    berth__order_model_free(&model);
    berth_graph_destroy(graph);
  }
}

/* Two branches that widen and narrow again; the graph has them side by side. */
#define SIDE_BY_SIDE                                                                                               \
  "input %x : f32[16, 16]\nparam %up : f32[16, 64]\nparam %down : f32[64, 16]\n%w0 = matmul(%x, %up)\n"            \
  "%w1 = matmul(%x, %up)\n%n0 = matmul(%w0, %down)\n%n1 = matmul(%w1, %down)\n%s = add(%n0, %n1)\noutput \"s\" = " \
  "%s"

static void test_plans_say_so(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = desc_with(BERTH_PLAN_NO_PASSES | BERTH_PLAN_REFERENCE);
  f->graph = parse_graph(f->ctx, SIDE_BY_SIDE);
  f->plan = make_plan(f->graph, &desc);
  assert_false(test_plan_info(f->plan).order_optimal); /* nobody looked */
  const uint64_t source = berth_plan_arena_size(f->plan);
  berth_plan_destroy(f->plan);
  desc.order = BERTH_ORDER_MEMORY;
  f->plan = make_plan(f->graph, &desc);
  assert_true(test_plan_info(f->plan).order_optimal);
  assert_true(berth_plan_arena_size(f->plan) < source);
  assert_runs_alike(f->graph, &desc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_exact),
      PLAN_TEST(test_bounds_with_concats),
      PLAN_TEST(test_the_model_measures_as_the_planner_does),
      PLAN_TEST(test_large_pieces),
      PLAN_TEST(test_bounded_effort),
      PLAN_TEST(test_plans_say_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
