/* The functions of test_lower_math.c on every device that runs kernels of the kernel language: what its driver and its
 * compiler make of them. Numbers that are subnormal, here or on the way, may be 0 there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "functions.h"
#include "support.h"

static berth_session *session_of(berth_context *ctx, const char *device, const char *op) {
  const int64_t dim[] = {ARGUMENTS};
  berth_graph *graph;
  berth_session *session;
  berth_value in, out;
  berth_error err;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  desc.device = device;
  TEST_OK(berth_graph_create(ctx, op, &graph, &err));
  TEST_OK(berth_graph_input(graph, "x", BERTH_F32, berth_shape_fixed(1, dim), &in, &err));
  TEST_OK(berth_graph_add(graph, op, &in, 1, NULL, 0, &out, 1, &err));
  TEST_OK(berth_graph_output(graph, "y", out, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  berth_graph_destroy(graph);
  return session;
}

static bool is_subnormal(double x) { return x != 0 && fabs(x) < 0x1p-126; }

/* Devices may flush subnormals, and divide and take roots with an error of a few units in the last place. */
static bool is_good(const function *f, float x, float y) {
  const double expected = f->of((double)x), relative = f->relative == 0 ? 0 : f->relative + 1e-6;
  if (is_close(expected, y, relative, f->far_out != 0 ? f->far_out : f->absolute)) return true;
  if (is_subnormal(expected) && fabsf(y) <= 0x1p-126f) return true;
  return is_subnormal((double)x) && is_close(f->of(x < 0 ? -0.0 : 0.0), y, relative, 0x1p-126);
}

static uint32_t wrong_of(berth_context *ctx, const char *device, const function *f) {
  static float x[ARGUMENTS], y[ARGUMENTS];
  berth_error err;
  uint32_t n_wrong = 0;
  berth_session *session = session_of(ctx, device, f->name);
  for (uint32_t i = 0; i < ARGUMENTS; i++) x[i] = argument_at(i);
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
  for (uint32_t i = 0; i < ARGUMENTS; i++) {
    if (is_good(f, x[i], y[i]) || n_wrong++ >= 8) continue;
    fprintf(stderr, "%s(%.9g) on %s is %.9g, expected %.9g\n", f->name, (double)x[i], device, (double)y[i],
            f->of((double)x[i]));
  }
  berth_session_destroy(session);
  return n_wrong;
}

static void functions_hold_on_every_device(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  uint32_t n_wrong = 0;
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    TEST_OK(berth_device_at(ctx, d, &info, &err));
    if (strcmp(info.name, "cpu") == 0 || !info.available) continue;
    for (uint32_t i = 0; i < N_FUNCTIONS; i++) n_wrong += wrong_of(ctx, info.name, &functions[i]);
  }
  assert_int_equal(n_wrong, 0);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_hold_on_every_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
