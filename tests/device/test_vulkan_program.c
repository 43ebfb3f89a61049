/* Programs on the device "vulkan": what they give, what a run costs, barriers and times. */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"
#include "vulkan.h"
#include "vulkan_use.h"

#ifdef BERTH__HAS_VULKAN
#include "base/thread.h"
#include "generate/generator.h"
static void gives_what_the_cpu_gives(void **state) {
  vulkan_fixture f;
  (void)state;
  for (size_t way = 0; way < VULKAN_WAYS; way++) {
    for (int checked = 0; checked < 2; checked++) {
      berth_session *clone;
      berth_error err;
      vulkan_start_in(&f, way, checked ? BERTH_SESSION_CHECKED : 0);
      assert_true(berth__session_current(f.use.session)->program->code->windows ==
                  (vulkan_ways[way].max_binding != NULL));
      vulkan_expect_right(f.use.session);
      vulkan_expect_right(f.use.session);
      TEST_OK(berth_session_clone(f.use.session, &clone, &err));
      vulkan_expect_right(clone);
      berth_session_destroy(f.use.session);
      f.use.session = NULL;
      vulkan_expect_right(clone);
      berth_session_destroy(clone);
      vulkan_finish(&f);
    }
  }
}

/* Bindings share the arena, which grows: every program is made for the new one. */
static void bindings_follow_the_arena(void **state) {
  static const char open_text[] =
      "graph \"n\" { input %x : f32[n, 16] param %w : f32[16, 16] %p = matmul(%x, %w) %y = relu(%p) output \"y\" = %y "
      "}";
  static const int64_t extents[] = {2, 300, 2, 40, 300};
  static float x[300 * 16], w[256], y[300 * 16];
  (void)state;
  for (int i = 0; i < 300 * 16; i++) x[i] = (float)(i % 7 - 3);
  for (int i = 0; i < 256; i++) w[i] = i % 17 == 0 ? 2 : 0; /* twice the identity */
  for (size_t way = 0; way < 2; way++) {
    berth_session_desc desc = BERTH_SESSION_DESC_INIT;
    berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
    berth_dim dim = {"n", 1};
    berth_context *ctx = test_context();
    berth_session *session;
    berth_graph *graph;
    berth_error err;
    desc.device = "vulkan";
    desc.plan = &plan;
    plan.dims = &dim;
    plan.n_dims = 1;
    vulkan_test_memory(vulkan_ways[way].memory);
    test_read_options(ctx);
    TEST_OK(berth_graph_parse(ctx, open_text, sizeof open_text - 1, &graph, &err));
    TEST_OK(berth_session_create(graph, &desc, &session, &err));
    vulkan_test_memory(NULL);
    TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
      const size_t count = (size_t)extents[i] * 16;
      dim.extent = extents[i];
      TEST_OK(berth_session_bind(session, &dim, 1, &err));
      TEST_OK(berth_session_write(session, "x", x, count * 4, &err));
      TEST_OK(berth_session_run(session, &err));
      TEST_OK(berth_session_read(session, "y", y, count * 4, &err));
      for (size_t k = 0; k < count; k++) assert_true(y[k] == (x[k] > 0 ? 2 * x[k] : 0));
    }
    berth_session_destroy(session);
    berth_graph_destroy(graph);
    berth_context_destroy(ctx);
    vulkan_test_silent();
  }
}

/* ---- What a run costs ---- */

static void runs_leave_nothing_behind(void **state) {
  const int n = (int)test_share(2000);
  vulkan_fixture f;
  berth_error err;
  (void)state;
  for (size_t way = 0; way < VULKAN_WAYS; way += 3) {
    vulkan_start_in(&f, way, 0);
    vulkan_expect_right(f.use.session); /* staged, writing records */
    const berth__vulkan_counts before = f.engine->counts;
    const uint64_t calls = atomic_load(&f.use.alloc.calls), live = f.engine->host.n_live;
    for (int i = 0; i < n; i++) TEST_OK(berth_session_run(f.use.session, &err));
    const berth__vulkan_counts after = f.engine->counts;
    assert_int_equal(atomic_load(&f.use.alloc.calls), calls);
    assert_true(f.engine->host.n_live <= live + 2); /* a driver frees the last submission when it comes to it */
    assert_int_equal(after.handles, before.handles);
    assert_int_equal(after.memory, before.memory);
    assert_int_equal(after.peak_memory, before.peak_memory);
    assert_int_equal(after.pipelines, before.pipelines);
    assert_int_equal(after.descriptors, before.descriptors);
    assert_int_equal(after.recordings, before.recordings);
    assert_int_equal(after.submissions, before.submissions + (uint64_t)n);
    vulkan_expect_right(f.use.session);
    vulkan_finish(&f);
  }
}

/* Tokens in, the best one out: the prompt is read, and from then on a token is one submission, however the host reaches
 * the device's memory. Where all buffers are one, the validation layer cannot tell apart what kernels do beside each
 * other there. */
static void a_token_is_one_submission(void **state) {
  char path[1024];
  (void)state;
  const char *source = getenv("BERTH_SRC");
  snprintf(path, sizeof path, "%s/examples/tale/tale.gguf", source != NULL ? source : ".");
  for (size_t way = 0; way < VULKAN_WAYS; way++) {
    berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
    berth_sampling_desc greedy = BERTH_SAMPLING_DESC_INIT;
    berth_piece piece = BERTH_PIECE_INIT;
    berth_generator *g = NULL, *plain = NULL;
    berth_error err;
    int32_t tokens[8];
    berth_context *ctx = test_context();
    greedy.temperature = 0;
    desc.sampling = &greedy;
    desc.ctx = 64;
    TEST_OK(berth_generator_create(ctx, path, &desc, &plain, &err));
    desc.device = "vulkan";
    const bool has_windows = vulkan_ways[way].max_binding != NULL,
               validates = getenv("BERTH_VULKAN_VALIDATION") != NULL;
    vulkan_test_memory(vulkan_ways[way].memory);
    vulkan_test_max_binding(has_windows ? "100000" : NULL);
    if (validates && !has_windows) setenv("BERTH_VULKAN_VALIDATION", "1", 1);
    test_read_options(ctx);
    TEST_OK(berth_generator_create(ctx, path, &desc, &g, &err));
    if (validates) setenv("BERTH_VULKAN_VALIDATION", "sync", 1);
    vulkan_test_memory(NULL);
    vulkan_test_max_binding(NULL);
    TEST_OK(berth_generator_feed(plain, "Once", 4, 0, &err));
    TEST_OK(berth_generator_feed(g, "Once", 4, 0, &err));
    TEST_OK(berth_generator_next(plain, &piece, &err));
    tokens[0] = piece.token;
    TEST_OK(berth_generator_next(g, &piece, &err)); /* from the logits that feeding has brought */
    assert_int_equal(piece.token, tokens[0]);
    const uint64_t before = g->session->engine->counts.submissions;
    for (uint64_t i = 1; i < 8; i++) {
      TEST_OK(berth_generator_next(plain, &piece, &err));
      tokens[i] = piece.token;
      TEST_OK(berth_generator_next(g, &piece, &err));
      assert_int_equal(piece.token, tokens[i]);
      assert_int_equal(g->session->engine->counts.submissions, before + i);
    }
    const float *logits = NULL;
    uint32_t n = 0, best = 0;
    TEST_OK(berth_generator_logits(g, &logits, &n, &err)); /* they are there for those who ask */
    for (uint32_t i = 1; i < n; i++) best = logits[i] > logits[best] ? i : best;
    TEST_OK(berth_generator_next(g, &piece, &err));
    assert_int_equal(piece.token, best);
    berth_generator_destroy(plain);
    berth_generator_destroy(g);
    berth_context_destroy(ctx);
    vulkan_test_silent();
  }
}

static void binding_again_records_nothing(void **state) {
  vulkan_fixture f;
  berth_error err;
  (void)state;
  vulkan_start(&f, "vulkan", 0);
  const uint64_t recordings = f.engine->counts.recordings, descriptors = f.engine->counts.descriptors;
  TEST_OK(berth__session_rebind(f.use.session, &err));
  assert_int_equal(f.engine->counts.recordings, recordings);
  assert_int_equal(f.engine->counts.descriptors, descriptors);
  vulkan_finish(&f);
}

static void everything_is_given_back(void **state) {
  vulkan_bench b;
  (void)state;
  vulkan_set_up(&b, "mapped");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(vulkan_use_once(&b), BERTH_OK);
    assert_int_equal(b.engine->counts.handles, b.handles);
    assert_int_equal(b.engine->counts.memory, 0);
  }
  vulkan_take_down(&b);
}

/* Of three products the last needs the first; the first two do not wait for each other. */
static void barriers_stand_where_bytes_conflict(void **state) {
  static const char products[] =
      "graph \"b\" { input %x : f32[8, 8] input %y : f32[8, 8] %p = matmul(%x, %y) %q = matmul(%y, %x)\n"
      " %r = matmul(%p, %x) output \"p\" = %p output \"q\" = %q output \"r\" = %r }";
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_context *ctx = test_context();
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  (void)state;
  desc.device = "vulkan";
  TEST_OK(berth_graph_parse(ctx, products, sizeof products - 1, &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  const berth__recipe *recipe = berth__session_current(session)->program->recipe;
  assert_int_equal(recipe->n_dispatches, 3);
  assert_int_equal(recipe->dispatches[0].waits + recipe->dispatches[1].waits + recipe->dispatches[2].waits, 1);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* ---- Times ---- */

typedef struct seen {
  uint32_t count, last;
  double ms;
} seen;

static void look(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  seen *s = user;
  (void)node, (void)out, (void)n_out;
  assert_true(s->count == 0 || step > s->last);
  assert_true(ms >= 0);
  s->last = step;
  s->count++;
  s->ms += ms;
}

static void tells_the_time_of_every_step(void **state) {
  vulkan_fixture f;
  (void)state;
  for (size_t way = 0; way < VULKAN_WAYS; way += 3) {
    seen s = {0};
    vulkan_start_in(&f, way, 0);
    berth_session_observe(f.use.session, look, &s);
    const double begin = berth__now_ms();
    vulkan_expect_right(f.use.session);
    assert_true(s.count >= 2 && s.ms > 0 && s.ms < berth__now_ms() - begin);
    berth_session_observe(f.use.session, NULL, NULL);
    vulkan_expect_right(f.use.session);
    vulkan_finish(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_what_the_cpu_gives),
      cmocka_unit_test(bindings_follow_the_arena),
      cmocka_unit_test(runs_leave_nothing_behind),
      cmocka_unit_test(a_token_is_one_submission),
      cmocka_unit_test(binding_again_records_nothing),
      cmocka_unit_test(everything_is_given_back),
      cmocka_unit_test(barriers_stand_where_bytes_conflict),
      cmocka_unit_test(tells_the_time_of_every_step),
  };
  const char *reason = vulkan_test_start();
  if (reason == NULL) return cmocka_run_group_tests(tests, NULL, NULL);
  return test_skip_all("device vulkan", reason);
}
#else
int main(void) { return test_skip_all("device vulkan", vulkan_test_start()); }
#endif
