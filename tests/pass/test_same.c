/* Common subexpressions: equal nodes are computed once, and nothing else changes. */
#include <stdio.h>

#include "pass/pass.h"
#include "support.h"

static berth_graph *parse(berth_context *ctx, const char *statements) {
  berth_error err;
  berth_graph *graph = NULL, *bound = NULL;
  char text[2048];
  int size = snprintf(text, sizeof text, "graph \"g\" {\n%s\n}", statements);
  TEST_OK(berth_graph_parse(ctx, text, (size_t)size, &graph, &err));
  TEST_OK(berth_graph_bind(graph, NULL, 0, &bound, &err));
  berth_graph_destroy(graph);
  return bound;
}

/* Nodes that are left when all passes have run. */
static size_t nodes_left(const char *statements) {
  berth_error err;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx, statements);
  TEST_OK(berth__pass_all(graph, &err));
  TEST_OK(berth_graph_verify(graph, &err));
  size_t left = graph->n_nodes;
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  return left;
}

#define X "input %x : f32[4, 4]\n"

static void equal_nodes_are_computed_once(void **state) {
  (void)state;
  assert_int_equal(nodes_left(X "%a = exp(%x)\n%b = exp(%x)\n%y = add(%a, %b)\noutput \"y\" = %y"), 2);
  /* and what follows from them becomes equal too */
  assert_int_equal(nodes_left(X "%a = exp(%x)\n%b = exp(%x)\n%c = neg(%a)\n%d = neg(%b)\n%y = mul(%c, %d)\n"
                                "output \"y\" = %y"),
                   3);
  assert_int_equal(nodes_left(X "%a, %b = split(%x) {axis = 1}\n%c, %d = split(%x) {axis = 1}\n%y = add(%a, %d)\n"
                                "output \"y\" = %y"),
                   2);
}

static void different_nodes_stay(void **state) {
  (void)state;
  assert_int_equal(nodes_left(X "%a = exp(%x)\n%b = neg(%x)\n%y = add(%a, %b)\noutput \"y\" = %y"), 3);
  assert_int_equal(nodes_left(X "%a = softmax(%x) {axis = 0}\n%b = softmax(%x) {axis = 1}\n%y = add(%a, %b)\n"
                                "output \"y\" = %y"),
                   3);
  assert_int_equal(
      nodes_left(X "%e = exp(%x)\n%a = sub(%x, %e)\n%b = sub(%e, %x)\n%y = add(%a, %b)\noutput \"y\" = %y"), 4);
}

static void outputs_and_random_results_stay(void **state) {
  (void)state;
  assert_int_equal(nodes_left(X "%a = exp(%x)\n%b = exp(%x)\noutput \"a\" = %a\noutput \"b\" = %b"), 2);
  assert_int_equal(
      nodes_left(X "%a = random_uniform(%x)\n%b = random_uniform(%x)\n%y = sub(%a, %b)\noutput \"y\" = %y"), 3);
}

static berth_status run_pass(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  static const char text[] = "graph \"g\" {\n" X "%a = exp(%x)\n%b = exp(%x)\n%y = add(%a, %b)\noutput \"y\" = %y\n}";
  berth_graph *graph = NULL;
  berth_status status = berth_graph_parse(ctx, text, sizeof text - 1, &graph, err);
  if (status == BERTH_OK) status = berth__pass_same(graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(run_pass, NULL) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_nodes_are_computed_once),
      cmocka_unit_test(different_nodes_stay),
      cmocka_unit_test(outputs_and_random_results_stay),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
