/* Random numbers over several runs: what the cases, which are one call each, cannot tell. */
#include "support.h"

#define COUNT 4096

/* A graph with two outputs of COUNT elements, as text. */
static berth_session *session_of(berth_context *ctx, const char *text) {
  berth_error err = {0};
  berth_graph *graph;
  berth_session *session;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  berth_graph_destroy(graph);
  return session;
}

static void run_and_read(berth_session *session, float first[COUNT], float second[COUNT]) {
  berth_error err = {0};
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read_at(session, 0, first, COUNT * sizeof *first, &err));
  TEST_OK(berth_session_read_at(session, 1, second, COUNT * sizeof *second, &err));
}

static void without_a_seed_every_draw_is_another(void **state) {
  static float a[COUNT], b[COUNT], again[COUNT], other[COUNT];
  (void)state;
  berth_context *ctx = test_context();
  berth_session *session = session_of(ctx,
                                      "graph \"g\" {\n"
                                      "  %a = random_uniform() {shape = [4096]} : f32[4096]\n"
                                      "  %b = random_uniform() {shape = [4096]} : f32[4096]\n"
                                      "  output \"a\" = %a\n  output \"b\" = %b\n}\n");
  run_and_read(session, a, b);
  assert_memory_not_equal(a, b, sizeof a);
  run_and_read(session, again, other);
  assert_memory_not_equal(a, again, sizeof a);
  assert_memory_not_equal(b, other, sizeof b);
  berth_session_destroy(session);
  berth_context_destroy(ctx);
}

static void a_seed_gives_the_same_at_every_run(void **state) {
  static float a[COUNT], b[COUNT], again[COUNT], other[COUNT];
  (void)state;
  berth_context *ctx = test_context();
  berth_session *session = session_of(ctx,
                                      "graph \"g\" {\n"
                                      "  %a = random_normal() {shape = [4096], seed = 1} : f32[4096]\n"
                                      "  %b = random_normal() {shape = [4096], seed = 2} : f32[4096]\n"
                                      "  output \"a\" = %a\n  output \"b\" = %b\n}\n");
  run_and_read(session, a, b);
  assert_memory_not_equal(a, b, sizeof a);
  run_and_read(session, again, other);
  assert_memory_equal(a, again, sizeof a);
  assert_memory_equal(b, other, sizeof b);
  berth_session_destroy(session);
  berth_context_destroy(ctx);
}

static double moment(const float *values, int power) {
  double sum = 0;
  for (int i = 0; i < COUNT; i++) sum += power == 1 ? (double)values[i] : (double)values[i] * (double)values[i];
  return sum / COUNT;
}

/* Five standard deviations of the mean either way: a sound generator fails less than once in 100,000 runs. */
static void draws_without_a_seed_have_the_right_moments(void **state) {
  static float uniform[COUNT], normal[COUNT];
  (void)state;
  berth_context *ctx = test_context();
  berth_session *session = session_of(ctx,
                                      "graph \"g\" {\n"
                                      "  %a = random_uniform() {shape = [4096]} : f32[4096]\n"
                                      "  %b = random_normal(%a) : f32[4096]\n"
                                      "  output \"a\" = %a\n  output \"b\" = %b\n}\n");
  run_and_read(session, uniform, normal);
  for (int i = 0; i < COUNT; i++) assert_true(uniform[i] >= 0.0f && uniform[i] <= 1.0f);
  assert_true(moment(uniform, 1) > 0.477 && moment(uniform, 1) < 0.523);
  assert_true(moment(uniform, 2) > 0.310 && moment(uniform, 2) < 0.357);
  assert_true(moment(normal, 1) > -0.079 && moment(normal, 1) < 0.079);
  assert_true(moment(normal, 2) > 0.889 && moment(normal, 2) < 1.111);
  berth_session_destroy(session);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_seed_every_draw_is_another),
      cmocka_unit_test(a_seed_gives_the_same_at_every_run),
      cmocka_unit_test(draws_without_a_seed_have_the_right_moments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
