/* attention over keys with a capacity: one session, one plan, every length, on every device that is there. */
#include <stdio.h>
#include <stdlib.h>

#include "sessions.h"

#define TEXT                                                                                              \
  "graph \"g\" { input %%q : f32[1, 2, %d, 8] input %%k : f32[1, 1, %d, 8] input %%v : f32[1, 1, %d, 8] " \
  "input %%n : i32[] %%o = attention(%%q, %%k, %%v, _, _, %%n) {mode = \"%s\"} output \"o\" = %%o }"

static void fill(berth_session *session, const char *input, size_t count, uint64_t seed) {
  berth_error err;
  float *numbers = malloc(count * sizeof *numbers);
  assert_non_null(numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = test_random_f32(&seed);
  OK(berth_session_write(session, input, numbers, count * sizeof *numbers, &err));
  free(numbers);
}

static berth_session *start(const berth_graph *graph, const char *device, int queries, int capacity) {
  berth_error err;
  berth_session *session;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  desc.device = device;
  OK(berth_session_create(graph, &desc, &session, &err));
  fill(session, "q", 2 * 8 * (size_t)queries, 1);
  fill(session, "k", 8 * (size_t)capacity, 2);
  fill(session, "v", 8 * (size_t)capacity, 3);
  return session;
}

static void attend(berth_session *session, int32_t length, float *out, size_t count) {
  berth_error err;
  OK(berth_session_write(session, "n", &length, sizeof length, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "o", out, count * sizeof *out, &err));
}

static void check(berth_context *ctx, const char *device, int queries, int capacity, const char *mode) {
  static float want[2 * 64 * 8], got[2 * 64 * 8];
  const int32_t lengths[] = {capacity, 1, capacity / 2 + 1};
  const size_t count = 2 * 8 * (size_t)queries;
  char text[512];
  snprintf(text, sizeof text, TEXT, queries, capacity, capacity, mode);
  berth_graph *graph = session_parse(ctx, text);
  berth_session *cpu = start(graph, "cpu", queries, capacity), *other = start(graph, device, queries, capacity);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    attend(cpu, lengths[i], want, count);
    attend(other, lengths[i], got, count);
    session_assert_close(got, want, count);
  }
  berth_session_destroy(cpu);
  berth_session_destroy(other);
  berth_graph_destroy(graph);
}

static void one_plan_serves_every_length(void **state) {
  static const int capacities[] = {1, 255, 256, 1000, 4096}, queries[] = {1, 7, 64};
  berth_context *ctx = test_context();
  (void)state;
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    berth_error err;
    OK(berth_device_at(ctx, d, &info, &err));
    if (!info.available || strcmp(info.name, "cpu") == 0) continue;
    print_message("# %s\n", info.name);
    for (size_t c = 0; c < 5; c++)
      for (size_t q = 0; q < 3; q++)
        check(ctx, info.name, queries[q], capacities[c], (c + q) % 2 != 0 ? "causal" : "none");
  }
  berth_context_destroy(ctx);
}

/* The CPU says so; a GPU brings it into range. */
static void lengths_out_of_range(void **state) {
  static const int32_t wrong[] = {-1, 41, INT32_MAX, INT32_MIN};
  berth_context *ctx = test_context();
  berth_error err;
  float all[2 * 8], got[2 * 8], none[2 * 8] = {0};
  char text[512];
  (void)state;
  snprintf(text, sizeof text, TEXT, 1, 40, 40, "causal");
  berth_graph *graph = session_parse(ctx, text);
  berth_session *session = start(graph, "cpu", 1, 40);
  for (int i = 0; i < 4; i++) {
    OK(berth_session_write(session, "n", &wrong[i], sizeof wrong[i], &err));
    test_expect_error(berth_session_run(session, &err), BERTH_INVALID, &err, "node 'o' (attention)");
    assert_non_null(strstr(err.message, "is not within 0 and the capacity of 40"));
  }
  berth_session_destroy(session);
  session = start(graph, "interp", 1, 40);
  attend(session, 40, all, 2 * 8);
  for (int i = 0; i < 4; i++) {
    attend(session, wrong[i], got, 2 * 8);
    session_assert_close(got, wrong[i] > 0 ? all : none, 2 * 8);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* Of no keys the result is zeros, one by one and in tiles. */
static void no_keys(void **state) {
  static const char *const devices[] = {"cpu", "interp"}, *const modes[] = {"causal", "none"};
  static const int rows[] = {1, 3, 40};
  berth_context *ctx = test_context();
  float got[2 * 8 * 40], none[2 * 8 * 40] = {0};
  char text[512];
  (void)state;
  for (int i = 0; i < 12; i++) {
    const int n = rows[i / 4];
    snprintf(text, sizeof text, TEXT, n, 40, 40, modes[i % 2]);
    berth_graph *graph = session_parse(ctx, text);
    berth_session *session = start(graph, devices[i / 2 % 2], n, 40);
    attend(session, 0, got, 2 * 8 * (size_t)n);
    session_assert_close(got, none, 2 * 8 * (size_t)n);
    berth_session_destroy(session);
    berth_graph_destroy(graph);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_plan_serves_every_length),
                                     cmocka_unit_test(lengths_out_of_range), cmocka_unit_test(no_keys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
