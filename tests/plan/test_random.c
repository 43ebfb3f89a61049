/* Properties of random graphs under random options: the checker accepts every plan, and a planned run equals an
 * unplanned one bit for bit, checked or not, with one thread or two.
 *
 *   test_random [first seed [seeds]]   looks at other seeds than the usual ones */
#include <stdio.h>
#include <stdlib.h>

#include "plan/planning.h"
#include "plan/random_graph.h"

static uint64_t first_seed = 1;
static uint64_t n_seeds = 400;

static berth_status print_text(void *user, const char *text, size_t size) {
  (void)user;
  fwrite(text, 1, size, stdout); /* print_message would cut it */
  return BERTH_OK;
}

static void describe(const berth_graph *graph, uint64_t seed, uint32_t n_nodes, const berth_plan_desc *desc) {
  berth_error err;
  print_message("seed %llu with %u nodes, flags 0x%x, align %llu, guard %llu, order %d\n", (unsigned long long)seed,
                n_nodes, desc->flags, (unsigned long long)desc->align, (unsigned long long)desc->guard, desc->order);
  TEST_OK(berth_graph_print(graph, print_text, NULL, &err));
}

/* What must hold between the numbers of any plan. */
static const char *check_info(const berth_plan *plan, const berth_plan *apart, const berth_plan_desc *desc) {
  berth_plan_info info = test_plan_info(plan), none = test_plan_info(apart);
  if (info.activations_lower_bound > info.activations_size) return "the lower bound is above the size";
  if (info.arena_size != info.weights_size + info.activations_size + info.scratch_size)
    return "the parts do not add up";
  if (info.total_unshared != none.arena_size) return "total_unshared is not what the plan without reuse takes";
  if (info.saved != info.total_unshared - info.arena_size) return "saved is wrong";
  if (info.total_unshared < info.arena_size) return "sharing made it larger";
  if ((desc->flags & BERTH_PLAN_NO_REUSE) && info.saved != 0) return "it saves something without reuse";
  return NULL;
}

static const char *check_plan(const berth_graph *graph, const berth_plan_desc *desc) {
  berth_plan_desc none = *desc, other = *desc, uniform = *desc;
  none.flags |= BERTH_PLAN_NO_REUSE;
  uniform.flags |= BERTH_PLAN_F32_UNIFORM;
  berth_plan_destroy(make_plan(graph, &uniform)); /* checked; the cpu does not run these */
  other.order = desc->order == BERTH_ORDER_SOURCE ? BERTH_ORDER_MEMORY : BERTH_ORDER_SOURCE;
  berth_plan *plan = make_plan(graph, desc), *apart = make_plan(graph, &none), *ordered = make_plan(graph, &other);
  const char *found = check_info(plan, apart, desc);
  const berth_plan *memory = desc->order == BERTH_ORDER_MEMORY ? plan : ordered;
  const berth_plan *source = memory == plan ? ordered : plan;
  if (berth_plan_arena_size(memory) > berth_plan_arena_size(source)) found = "the order for memory needs more";
  berth_plan_destroy(plan);
  berth_plan_destroy(apart);
  berth_plan_destroy(ordered);
  return found;
}

/* Returns whether seed and size are fine. */
static int try_one(uint64_t seed, uint32_t n_nodes, int say) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = random_graph(ctx, seed, n_nodes);
  berth_plan_desc desc = random_options(seed * 7919);
  berth_plan *plan = NULL;
  berth_error err;
  const char *found = NULL;
  if (berth_plan_create(graph, &desc, &plan, &err) != BERTH_OK) found = err.message;
  berth_plan_destroy(plan);
  if (found == NULL) found = check_plan(graph, &desc);
  if (found == NULL) found = compare_runs(graph, &desc);
  if (found != NULL && say) {
    describe(graph, seed, n_nodes, &desc);
    print_message("%s\n", found);
  }
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  return found == NULL;
}

/* The fewest nodes with which the same seed still fails: a graph grows node by node, so that less of it is a smaller
 * example of the same thing. */
static void shrink_and_fail(uint64_t seed, uint32_t n_nodes) {
  uint32_t smallest = n_nodes;
  for (uint32_t n = 1; n < n_nodes && smallest == n_nodes; n++)
    if (!try_one(seed, n, 0)) smallest = n;
  try_one(seed, smallest, 1);
  fail_msg("seed %llu fails with %u nodes (found with %u)", (unsigned long long)seed, smallest, n_nodes);
}

static void test_random_graphs(void **state) {
  (void)state;
  for (uint64_t seed = first_seed; seed < first_seed + test_share(n_seeds); seed++) {
    uint32_t n_nodes = 5 + (uint32_t)(seed * 31 % 56);
    if (!try_one(seed, n_nodes, 0)) shrink_and_fail(seed, n_nodes);
  }
}

/* The graphs are worth their name: what the planner can do with a value does happen in them. */
static void test_everything_happens(void **state) {
  fixture *f = *state;
  uint32_t views = 0, strided = 0, in_place = 0, born_inside = 0, scratch = 0, guarded = 0, values = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    berth_graph *graph = random_graph(f->ctx, seed, 40);
    berth_plan *plan = make_plan(graph, NULL);
    for (size_t v = 0; v < plan->graph->n_values; v++, values++) {
      const berth__place *place = &plan->places[v];
      berth_tensor tensor = berth__plan_tensor(plan->graph, (berth_value)v, place->stride);
      views += place->is_view;
      strided += !berth__is_contiguous(&tensor);
      in_place += place->in_place;
      born_inside += place->born_inside;
    }
    for (uint32_t step = 0; step < plan->n_steps; step++) scratch += plan->scratch[step] != BERTH__NO_BUFFER;
    for (uint32_t step = 0; step < plan->n_steps; step++)
      guarded += plan->conditions.of_step[step] != BERTH__NO_CONDITION;
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
  print_message("of %u values: %u views, %u strided, %u in place, %u born inside; %u steps with scratch, %u guarded\n",
                values, views, strided, in_place, born_inside, scratch, guarded);
  assert_true(views > 100 && strided > 30 && in_place > 100 && born_inside > 30 && scratch > 10 && guarded > 100);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) n_seeds = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_graphs),
      PLAN_TEST(test_everything_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
