/* Large graphs are no trouble. Times are printed, never asserted: this runs under sanitizers, along with other tests.
 */
#include <stdio.h>
#include <time.h>

#include "plan/planning.h"

#define N_NODES 3000u

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static berth_value add(berth_graph *graph, const char *op, const berth_value *in, size_t n_in, const berth_attr *attr) {
  berth_error err;
  berth_value out;
  TEST_OK(berth_graph_add(graph, op, in, n_in, attr, attr != NULL, &out, 1, &err));
  return out;
}

static berth_graph *start(berth_context *ctx, const char *name, int64_t rows, int64_t columns, berth_value *x) {
  berth_error err;
  berth_graph *graph = NULL;
  TEST_OK(berth_graph_create(ctx, name, &graph, &err));
  TEST_OK(berth_graph_input(graph, "in", BERTH_F32, BERTH_SHAPE(rows, columns), x, &err));
  return graph;
}

static berth_graph *finish(berth_graph *graph, berth_value y) {
  berth_error err;
  TEST_OK(berth_graph_output(graph, "y", y, &err));
  return graph;
}

/* Plans it in both orders and says what it took. */
static void plan_it(fixture *f, uint32_t flags, uint64_t most) {
  for (int order = BERTH_ORDER_SOURCE; order <= BERTH_ORDER_MEMORY; order++) {
    berth_plan_desc desc = desc_with(flags | BERTH_PLAN_NO_PASSES); /* most of these results are dead */
    berth_error err;
    desc.order = (berth_order)order;
    berth_plan_destroy(f->plan);
    f->plan = NULL;
    double begin = now_ms();
    TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
    double took = now_ms() - begin;
    TEST_OK(berth_plan_check(f->plan, &err));
    berth_plan_info info = test_plan_info(f->plan);
    print_message("%-9s order %d: %u steps, %u buffers, %llu of %llu bytes (bound %llu), %.1f ms, checked\n",
                  berth_graph_name(f->graph), order, info.n_steps, info.n_buffers,
                  (unsigned long long)info.activations_size, (unsigned long long)info.total_unshared,
                  (unsigned long long)info.activations_lower_bound, took);
    assert_true(info.activations_size <= most);
    assert_true(info.activations_lower_bound <= info.activations_size);
    assert_int_equal(info.saved, info.total_unshared - info.arena_size);
  }
}

static void test_chain(void **state) {
  fixture *f = *state;
  berth_value x;
  f->graph = start(f->ctx, "chain", 16, 16, &x);
  for (uint32_t i = 0; i < N_NODES; i++) x = add(f->graph, i % 3 ? "tanh" : "softmax", &x, 1, NULL);
  finish(f->graph, x);
  plan_it(f, 0, 2 * 1024);
  plan_it(f, BERTH_PLAN_NO_INPLACE, 3 * 1024);
  plan_it(f, BERTH_PLAN_NO_REUSE, (N_NODES + 1) * 1024);
}

/* All read the input; a tree joins them. */
static void test_wide(void **state) {
  fixture *f = *state;
  berth_value level[N_NODES / 2], x;
  f->graph = start(f->ctx, "wide", 16, 16, &x);
  uint32_t n = N_NODES / 2;
  for (uint32_t i = 0; i < n; i++) level[i] = add(f->graph, "exp", &x, 1, NULL);
  for (; n > 1; n = (n + 1) / 2) {
    for (uint32_t i = 0; i < n / 2; i++) level[i] = add(f->graph, "add", &level[2 * i], 2, NULL);
    if (n % 2 != 0) level[n / 2] = level[n - 1];
  }
  finish(f->graph, level[0]);
  plan_it(f, 0, (N_NODES / 2 + 1) * 1024);
  /* One branch at a time: a value for each level of the tree, and the input. */
  assert_true(activations_size(f->plan) <= 16 * 1024);
}

static void test_residual(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_value x, w;
  f->graph = start(f->ctx, "residual", 16, 16, &x);
  TEST_OK(berth_graph_param(f->graph, "w", BERTH_F32, BERTH_SHAPE(16, 16), &w, &err));
  while (berth_graph_n_nodes(f->graph) < N_NODES) {
    berth_value product[] = {x, w}, sum[] = {add(f->graph, "matmul", product, 2, NULL), x};
    sum[0] = add(f->graph, "gelu", sum, 1, NULL);
    x = add(f->graph, "add", sum, 2, NULL);
  }
  finish(f->graph, x);
  plan_it(f, 0, 3 * 1024); /* the input, x, and what is added to it */
}

/* Each layer reads all before it; every concat holds the one before. */
static void test_densenet(void **state) {
  fixture *f = *state;
  berth_value x;
  int64_t first = 0;
  berth_attr axis = berth_attr_int("axis", 0), axes = berth_attr_ints("axes", &first, 1);
  f->graph = start(f->ctx, "densenet", 1, 16, &x);
  x = add(f->graph, "exp", &x, 1, NULL);
  while (berth_graph_n_nodes(f->graph) < N_NODES) {
    berth_value parts[] = {x, add(f->graph, "reduce_max", &x, 1, &axes)};
    parts[1] = add(f->graph, "tanh", &parts[1], 1, NULL);
    x = add(f->graph, "concat", parts, 2, &axis);
  }
  finish(f->graph, x);
  plan_it(f, 0, (N_NODES / 3 + 1) * 64 + 2 * 64);
  assert_int_equal(f->plan->places[x].root, x); /* the last concat holds them all */
  for (size_t v = 1; v < x; v++) assert_int_equal(f->plan->places[v].root, x);
}

/* A node that reads 2,000 values. */
static void test_many_operands(void **state) {
  fixture *f = *state;
  berth_value parts[2000], x;
  berth_attr axis = berth_attr_int("axis", 0);
  f->graph = start(f->ctx, "operands", 1, 16, &x);
  for (uint32_t i = 0; i < 2000; i++)
    parts[i] = add(f->graph, i % 2 ? "exp" : "neg", i % 2 ? &parts[i - 1] : &x, 1, NULL);
  finish(f->graph, add(f->graph, "concat", parts, 2000, &axis));
  plan_it(f, 0, 2000 * 64 + 64);
}

/* 2,786 buffers of mixed sizes and lives. A row is laid out wide, or something wide is summed into a row: neither can
 * share its operand's bytes, and each waits a while for its reader. */
static void test_2786_buffers(void **state) {
  fixture *f = *state;
  berth_value recent[12], x;
  bool is_wide[12] = {false};
  uint64_t random = 7;
  int64_t first = 0;
  f->graph = start(f->ctx, "mixed", 1, 8, &x);
  for (uint32_t i = 0; i < 12; i++) recent[i] = x;
  for (uint32_t i = 0; i < 2785; i++) {
    uint32_t from = (uint32_t)(test_random(&random) % 12);
    berth_dim dims[] = {{NULL, 2 + (int64_t)(test_random(&random) % 64)}, {NULL, 8}};
    berth_attr shape = berth_attr_dims("shape", dims, 2), axes = berth_attr_ints("axes", &first, 1);
    x = is_wide[from] ? add(f->graph, "reduce_sum", &recent[from], 1, &axes)
                      : add(f->graph, "expand", &recent[from], 1, &shape);
    recent[from] = x;
    is_wide[from] = !is_wide[from];
  }
  finish(f->graph, x);
  plan_it(f, 0, 12 * 2048 + 32);
  plan_it(f, BERTH_PLAN_NO_STRIDED, 13 * 2112 + 64);
  assert_int_equal(test_plan_info(f->plan).n_buffers, 2786);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_chain),    PLAN_TEST(test_wide),          PLAN_TEST(test_residual),
      PLAN_TEST(test_densenet), PLAN_TEST(test_many_operands), PLAN_TEST(test_2786_buffers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
