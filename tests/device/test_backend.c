/* Other people's kernels, where this build has them. */
#include <stdlib.h>

#include "fast.h"
#include "patterns.h"

#define F32(...)                                                                                          \
  {                                                                                                       \
    .type = BERTH_F32, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }

static const char text[] =
    "graph \"p\" { input %x : f32[2, 7, 24] param %w : f32[40, 24] %t = transpose(%w) %m = matmul(%x, %t)\n"
    "%g = gelu(%m) output \"g\" = %g }";

static int forget(void **state) {
  (void)state;
  fast_backend = NULL;
  return unsetenv("BERTH_CPU_BACKEND");
}

static void one_that_is_not_there_is_an_error(void **state) {
  assert_int_equal(setenv("BERTH_CPU_BACKEND", "abacus", 1), 0);
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  assert_int_equal(berth_plan_create(graph, NULL, &plan, &err), BERTH_UNSUPPORTED);
  assert_non_null(strstr(err.message, "abacus"));
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void products_of_onednn(void **state) {
  static const pattern product = {text, "matmul", 1, "product", 1e-4};
  fast_case cases[] = {{.op = "matmul", .in = {F32(9, 17), F32(17, 5)}, .absolute = 1e-4},
                       {.op = "matmul", .in = {F32(3, 4, 6, 8), F32(4, 8, 10)}, .absolute = 1e-4},
                       {.op = "matmul", .in = {F32(1, 30), F32(30, 1)}, .absolute = 1e-4}};
  static const fast_layout layouts[] = {FAST_PLAIN, FAST_PADDED, FAST_REVERSED};
  (void)state;
  assert_int_equal(setenv("BERTH_CPU_BACKEND", "dnnl", 1), 0);
  berth_context *ctx = test_context();
  fast_backend = berth__cpu_kernels_of(ctx).backend;
  berth_context_destroy(ctx);
  if (fast_backend == NULL) TEST_SKIP("this build has no oneDNN (-DBERTH_DNNL_BACKEND=ON)");
  pattern_check(&product);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t k = 0; k < 9; k++) {
      cases[i].in[0].layout = layouts[k % 3];
      cases[i].in[1].layout = layouts[k / 3];
      fast_check(&cases[i]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(one_that_is_not_there_is_an_error, forget),
      cmocka_unit_test_teardown(products_of_onednn, forget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
