/* Random numbers over several runs: what the cases, which are one call each, cannot tell. */
#include <math.h>
#include <stdio.h>

#include "ops/draws.h"
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

/* The test vectors that its authors publish with Philox4x32-10. */
static void counters_become_the_published_words(void **state) {
  static const struct {
    uint32_t counter[4], key[2], want[4];
  } vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
       {UINT32_MAX, UINT32_MAX},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    uint32_t words[4];
    memcpy(words, vectors[i].counter, sizeof words);
    berth__draws_words(words, vectors[i].key[0], vectors[i].key[1]);
    assert_memory_equal(words, vectors[i].want, sizeof words);
  }
}

#define MANY 100000

/* A share of MANY draws, within seven standard deviations of what is expected. */
static void share_is(int64_t count, double expected) {
  const double bound = 7 * sqrt(MANY * expected * (1 - expected));
  if (fabs((double)count - MANY * expected) > bound)
    fail_msg("%lld of %d draws, expected %g", (long long)count, MANY, MANY * expected);
}

static int64_t count_below(const double *values, double limit) {
  int64_t count = 0;
  for (int64_t i = 0; i < MANY; i++) count += values[i] < limit;
  return count;
}

/* Every type, on two threads: shares below several limits, no two pieces alike, and neighbours that do not depend on
 * each other. */
static void many_draws_without_a_seed_are_distributed_well(void **state) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16"};
  static const double normal_limits[][2] = {{-3, 0.00134990}, {-2, 0.0227501}, {-1, 0.158655}, {0, 0.5},
                                            {0.5, 0.691462},  {1, 0.841345},   {2, 0.977250},  {3, 0.998650}};
  static double uniform[MANY], normal[MANY];
  (void)state;
  berth_context *ctx = test_context();
  for (int t = 0; t < 4; t++) {
    char text[400];
    berth_error err;
    snprintf(text, sizeof text,
             "graph \"g\" {\n  %%a = random_uniform() {shape = [%d], type = \"%s\"} : %s[%d]\n"
             "  %%b = random_normal(%%a) : %s[%d]\n  %%c = cast(%%a) {to = \"f64\"}\n"
             "  %%d = cast(%%b) {to = \"f64\"}\n  output \"c\" = %%c\n  output \"d\" = %%d\n}\n",
             MANY, types[t], types[t], MANY, types[t], MANY);
    berth_session *session = session_of(ctx, text);
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read_at(session, 0, uniform, sizeof uniform, &err));
    TEST_OK(berth_session_read_at(session, 1, normal, sizeof normal, &err));
    for (int64_t i = 0; i < MANY; i++) assert_true(uniform[i] >= 0 && uniform[i] <= 1 && isfinite(normal[i]));
    for (int k = 1; k < 8 && t < 2; k++) share_is(count_below(uniform, k / 8.0), k / 8.0); /* halves round at limits */
    for (int k = 0; k < 8 && t < 2; k++) share_is(count_below(normal, normal_limits[k][0]), normal_limits[k][1]);
    int64_t rising = 0, both = 0;
    for (int64_t i = 0; i < MANY; i++) {
      rising += uniform[i] < 0.5 && uniform[(i + 1) % MANY] < 0.5;
      both += normal[i] < 0 && normal[(i + 64) % MANY] < 0;
    }
    share_is(rising, 0.25);
    share_is(both, 0.25);
    assert_memory_not_equal(uniform, uniform + 4096, 256 * sizeof *uniform);
    assert_memory_not_equal(uniform, uniform + 256, 256 * sizeof *uniform);
    berth_session_destroy(session);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_seed_every_draw_is_another),
      cmocka_unit_test(a_seed_gives_the_same_at_every_run),
      cmocka_unit_test(draws_without_a_seed_have_the_right_moments),
      cmocka_unit_test(counters_become_the_published_words),
      cmocka_unit_test(many_draws_without_a_seed_are_distributed_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
