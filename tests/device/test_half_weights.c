/* Weights that a GPU keeps as f16. BERTH_TEST_DEVICE names one; without it, it is "interp". */
#include <math.h>
#include <stdbool.h>

#include "base/half.h"
#include "support.h"

/* Three ways to read a weight, one of them through a transpose; `t` is read in another way too. */
static const char text[] =
    "graph \"h\" { input %x : f32[3, 6] input %i : i64[2] input %p : f32[1, 1, 5, 5] param %w : f32[6, 4] "
    "param %v : f32[7, 6] param %e : f32[40, 5] param %c : f32[2, 1, 3, 3] param %t : f32[6, 2] "
    "%a = matmul(%x, %w) %vt = transpose(%v) {perm = [1, 0]} %b = matmul(%x, %vt) %g = gather(%e, %i) "
    "%d = conv(%p, %c) %m = matmul(%x, %t) %n = neg(%t) output \"a\" = %a output \"b\" = %b output \"g\" = %g "
    "output \"d\" = %d output \"m\" = %m output \"n\" = %n }";

static const struct {
  const char *name;
  size_t count;
} params[] = {{"w", 24}, {"v", 42}, {"e", 200}, {"c", 18}, {"t", 12}},
  outputs[] = {{"a", 12}, {"b", 21}, {"g", 10}, {"d", 18}, {"m", 6}, {"n", 12}};

/* rounded: weights that f16 holds. */
static void run(berth_context *ctx, uint32_t flags, bool rounded, float *out, uint64_t *weights) {
  berth_error err;
  berth_graph *graph;
  berth_session *session;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  const int64_t ids[2] = {8, 3};
  float values[200];
  uint64_t seed = 7;
  plan.flags |= flags;
  desc.plan = &plan;
  desc.device = test_gpu();
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
    uint16_t half[200];
    for (size_t k = 0; k < params[i].count; k++) values[k] = test_random_f32(&seed);
    if (rounded) berth__convert_from_f32(BERTH_F16, half, values, params[i].count);
    if (rounded) berth__convert_to_f32(BERTH_F16, values, half, params[i].count);
    TEST_OK(berth_session_set_param(session, params[i].name, values, params[i].count * sizeof(float), &err));
  }
  for (size_t k = 0; k < 25; k++) values[k] = test_random_f32(&seed);
  TEST_OK(berth_session_write(session, "x", values, 18 * sizeof(float), &err));
  TEST_OK(berth_session_write(session, "p", values, 25 * sizeof(float), &err));
  TEST_OK(berth_session_write(session, "i", ids, sizeof ids, &err));
  TEST_OK(berth_session_run(session, &err));
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
    TEST_OK(berth_session_read(session, outputs[i].name, out, outputs[i].count * sizeof(float), &err));
    out += outputs[i].count;
  }
  *weights = test_plan_info(berth_session_plan(session)).weights_size;
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

#define COUNT 79

static void f16_weights_are_used_as_they_are(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  float whole[COUNT], half[COUNT];
  uint64_t all, fewer;
  run(ctx, 0, true, whole, &all);
  run(ctx, BERTH_PLAN_F16_WEIGHTS, true, half, &fewer);
  assert_memory_equal(whole, half, sizeof whole);
  assert_true(fewer < all);
  berth_context_destroy(ctx);
}

/* Eleven bits of each weight: the error of a sum of six is below 6 * 2^-11 of the largest product. */
static void others_are_rounded(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  float whole[COUNT], half[COUNT];
  uint64_t ignored;
  run(ctx, 0, false, whole, &ignored);
  run(ctx, BERTH_PLAN_F16_WEIGHTS, false, half, &ignored);
  for (size_t i = 0; i < COUNT; i++) assert_true(fabsf(whole[i] - half[i]) < 9.0f / 2048);
  assert_true(memcmp(whole, half, 12 * sizeof(float)) != 0);
  assert_memory_equal(whole + COUNT - 18, half + COUNT - 18, 18 * sizeof(float)); /* what reads t, which stays f32 */
  berth_context_destroy(ctx);
}

/* A device that has no use for a flag says so. */
static void the_wrong_device_refuses(void **state) {
  static const struct {
    const char *device, *part;
    uint32_t flag;
  } wrong[] = {{"cpu", "for GPUs", BERTH_PLAN_F16_WEIGHTS}, {"interp", "F16_WEIGHTS", BERTH_PLAN_BF16_WEIGHTS}};
  berth_error err;
  berth_graph *graph;
  berth_plan *plan;
  (void)state;
  berth_context *ctx = test_context();
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  for (size_t i = 0; i < 2; i++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.device = wrong[i].device;
    desc.flags |= wrong[i].flag;
    test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_UNSUPPORTED, &err, wrong[i].part);
    assert_null(plan);
  }
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(f16_weights_are_used_as_they_are),
                                     cmocka_unit_test(others_are_rounded), cmocka_unit_test(the_wrong_device_refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
