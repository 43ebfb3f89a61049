/* Shared by the tests of the planner: graphs from text, plans, and comparison of runs. */
#ifndef BERTH_TESTS_PLANNING_H
#define BERTH_TESTS_PLANNING_H

#include "plan/plan.h"
#include "support.h"

/* One per test, made by setup and freed by teardown, which also frees its graph and plan. */
typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
} fixture;

int planning_setup(void **state);
int planning_teardown(void **state);
#define PLAN_TEST(name) cmocka_unit_test_setup_teardown(name, planning_setup, planning_teardown)

/* A graph from the statements of the text form (without the braces around them). The caller frees it. */
berth_graph *parse_graph(berth_context *ctx, const char *statements);
/* Also checked: the independent checker examines every plan of these tests. The caller frees it. */
berth_plan *make_plan(const berth_graph *graph, const berth_plan_desc *desc);
berth_plan_desc desc_with(uint32_t flags);

/* Both together, stored in the fixture; replaces the previous ones. */
const berth_plan *plan_text(fixture *f, const char *statements, uint32_t flags);
const berth_plan *plan_again(fixture *f, uint32_t flags); /* the same graph */

berth_value find(const berth_plan *plan, const char *name);
berth_slot slot_of(const berth_plan *plan, const char *name);
const berth__place *place_of(const berth_plan *plan, const char *name);
berth__buffer *buffer_of(const berth_plan *plan, const char *name);
/* Whether the two share at least one byte of the arena, at any time. */
int share_bytes(const berth_plan *plan, const char *a, const char *b);
void assert_view(const berth_plan *plan, const char *view, const char *root, uint64_t root_offset);
void assert_owner(const berth_plan *plan, const char *name); /* bytes of its own */
void assert_in_place(const berth_plan *plan, const char *result, const char *operand);
/* The sum of the arena's contents at its fullest step, without weights: no packing is smaller. */
uint64_t activations_size(const berth_plan *plan);

/* Runs the graph with desc's plan (one and two threads, checked and not, each twice) and once without sharing, on the
 * same numbers. Returns the first difference as text, or NULL. Ints are small, so that they can serve as indices. */
const char *compare_runs(const berth_graph *graph, const berth_plan_desc *desc);
void assert_runs_alike(const berth_graph *graph, const berth_plan_desc *desc);

#endif
