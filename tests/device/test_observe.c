/* Observers that look into the arena: what a step made is there when they are called, also where steps are recorded
 * together. On every device of this machine. */
#include <math.h>
#include <stdbool.h>

#include "support.h"

#define ROWS 4
#define SIDE 8
#define COUNT (ROWS * SIDE)
#define NODES                                                                                           \
  "input %x : f32[4, 8] param %w : f32[8, 8] %a = matmul(%x, %w) %b = softmax(%a) %c = matmul(%b, %w) " \
  "%d = softmax(%c) %e = matmul(%d, %w) "
static const char last_text[] = "graph \"last\" { " NODES "output \"e\" = %e }";
static const char all_text[] = "graph \"all\" { " NODES
                               "output \"a\" = %a output \"b\" = %b output \"c\" = %c output \"d\" = %d output \"e\" = "
                               "%e }";
static const char *const names[] = {"a", "b", "c", "d", "e"};
#define N_NAMES 5

static berth_session *start(berth_context *ctx, const char *text, const char *device, berth_graph **graph) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session *session;
  berth_error err;
  float w[SIDE * SIDE], x[COUNT];
  uint64_t seed = 7;
  desc.device = plan.device = device;
  desc.plan = &plan;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), graph, &err));
  const berth_status status = berth_session_create(*graph, &desc, &session, &err);
  if (status != BERTH_OK) {
    berth_graph_destroy(*graph);
    return NULL;
  }
  for (size_t i = 0; i < SIDE * SIDE; i++) w[i] = test_random_f32(&seed);
  for (size_t i = 0; i < COUNT; i++) x[i] = test_random_f32(&seed);
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  return session;
}

typedef struct seen {
  berth_session *session;
  float values[N_NAMES][COUNT];
  bool is_there[N_NAMES];
  uint32_t n, last;
} seen;

static void see(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  seen *s = user;
  const berth_graph *graph = berth_plan_graph(berth_session_plan(s->session));
  berth_node_info info = BERTH_NODE_INFO_INIT;
  berth_value_info value = BERTH_VALUE_INFO_INIT;
  berth_error err;
  (void)out, (void)n_out, (void)ms;
  assert_true(s->n++ == 0 || step > s->last);
  s->last = step;
  TEST_OK(berth_graph_node(graph, node, &info, &err));
  TEST_OK(berth_graph_value(graph, info.out[0], &value, &err));
  for (size_t i = 0; i < N_NAMES; i++) {
    if (strcmp(value.name, names[i]) != 0) continue;
    TEST_OK(berth_arena_read(berth_session_arena(s->session), info.out[0], 0, s->values[i], sizeof s->values[i], &err));
    s->is_there[i] = true;
  }
}

/* Whether there is such a device. */
static bool look_on(berth_context *ctx, const char *device, float wanted[N_NAMES][COUNT]) {
  seen s = {0};
  berth_graph *graph;
  berth_error err;
  size_t n = 0;
  s.session = start(ctx, last_text, device, &graph);
  if (s.session == NULL) return false;
  if (berth_session_observe_apart(s.session, see, &s, &err) != BERTH_OK) {
    assert_int_equal(err.status, BERTH_UNSUPPORTED);
    assert_non_null(strstr(err.message, device));
    assert_true(strcmp(device, "vulkan") == 0 || strcmp(device, "cuda") == 0);
  }
  TEST_OK(berth_session_run(s.session, &err));
  berth_session_observe(s.session, NULL, NULL);
  for (size_t i = 0; i < N_NAMES; i++) {
    n += s.is_there[i];
    for (size_t k = 0; s.is_there[i] && k < COUNT; k++)
      if (!(fabsf(s.values[i][k] - wanted[i][k]) < 1e-4f))
        fail_msg("%s: element %zu of %s is %g and should be %g", device, k, names[i], (double)s.values[i][k],
                 (double)wanted[i][k]);
  }
  assert_true(s.n == 0 || n >= 3); /* some may be made inside another step */
  TEST_OK(berth_session_run(s.session, &err));
  berth_session_destroy(s.session);
  berth_graph_destroy(graph);
  return true;
}

static void a_step_is_over_and_the_next_has_not_begun(void **state) {
  static const char *const devices[] = {"cpu", "interp", "vulkan", "webgpu", "cuda"};
  berth_context *ctx = test_context();
  float wanted[N_NAMES][COUNT];
  berth_graph *graph;
  berth_error err;
  (void)state;
  berth_session *all = start(ctx, all_text, "cpu", &graph);
  assert_non_null(all);
  TEST_OK(berth_session_run(all, &err));
  for (size_t i = 0; i < N_NAMES; i++) TEST_OK(berth_session_read(all, names[i], wanted[i], sizeof wanted[i], &err));
  for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
    if (!look_on(ctx, devices[i], wanted)) print_message("# skip: there is no device %s here\n", devices[i]);
  berth_session_destroy(all);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_is_over_and_the_next_has_not_begun)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
