/* Weights in a file that becomes shorter while a graph or a session uses it: an error, never a SIGBUS. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sigbus.h"
#include "session/session.h"
#include "sessions.h"

enum {
  ROWS = 64,
  COLUMNS = 1024,
  PARAM_BYTES = ROWS * COLUMNS * 4
};

static const char text[] =
    "graph \"g\" {\n"
    "  weights \"w.safetensors\"\n"
    "  input %x : f32[n, 64]\n"
    "  param %a : f32[64, 1024]\n"
    "  param %b : f32[64, 1024]\n"
    "  param %s : f32[1024]\n"
    "  %p = matmul(%x, %a)\n"
    "  %q = matmul(%x, %b)\n"
    "  %r = add(%p, %q)\n"
    "  %t = add(%r, %s)\n"
    "  output \"t\" = %t\n"
    "}\n";

static char weights_path[512];

static void write_files(void) {
  static char bytes[8 + 512 + 2 * PARAM_BYTES + COLUMNS * 4];
  char header[512];
  const int n = snprintf(header, sizeof header,
                         "{\"a\":{\"dtype\":\"F32\",\"shape\":[64,1024],\"data_offsets\":[0,%d]},"
                         "\"b\":{\"dtype\":\"F32\",\"shape\":[64,1024],\"data_offsets\":[%d,%d]},"
                         "\"s\":{\"dtype\":\"F32\",\"shape\":[1024],\"data_offsets\":[%d,%d]}}",
                         PARAM_BYTES, PARAM_BYTES, 2 * PARAM_BYTES, 2 * PARAM_BYTES, 2 * PARAM_BYTES + COLUMNS * 4);
  const uint64_t size = 512;
  memset(bytes, 0, sizeof bytes);
  memset(bytes + 8, ' ', 512);
  memcpy(bytes, &size, 8);
  memcpy(bytes + 8, header, (size_t)n);
  snprintf(weights_path, sizeof weights_path, "%s", test_path("w.safetensors"));
  test_write_file(weights_path, bytes, sizeof bytes);
  test_write_file(test_path("g.berth"), text, strlen(text));
}

static void shrink(void) { assert_int_equal(truncate(weights_path, 8 + 512 + PARAM_BYTES / 2), 0); }

#define EXPECT_SHRUNK(call) test_expect_error(call, BERTH_IO, &err, "\"w.safetensors\" has shrunk")

typedef struct setup {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan_desc plan;
  berth_session_desc session;
  berth_dim n;
  const char *shrink_at; /* a stage of making a session; NULL: none */
} setup;

static void *setup_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
  return test_alloc_callback(&((setup *)user)->alloc, ptr, old_size, new_size);
}

static void setup_progress(void *user, const char *stage, uint64_t done, uint64_t total) {
  const setup *s = user;
  (void)done, (void)total;
  if (s->shrink_at != NULL && strcmp(stage, s->shrink_at) == 0) shrink();
}

static void start(setup *s, uint32_t plan_flags) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_error err;
  memset(s, 0, sizeof *s);
  desc.alloc = setup_alloc;
  desc.progress = setup_progress;
  desc.user = s;
  desc.n_threads = 2;
  write_files();
  TEST_OK(berth_context_create(&desc, &s->ctx, &err));
  TEST_OK(berth_graph_load(s->ctx, test_path("g.berth"), &s->graph, &err));
  s->n = (berth_dim){"n", 2};
  s->plan = (berth_plan_desc)BERTH_PLAN_DESC_INIT;
  s->plan.flags = plan_flags;
  s->plan.dims = &s->n;
  s->plan.n_dims = 1;
  s->session = (berth_session_desc)BERTH_SESSION_DESC_INIT;
  s->session.plan = &s->plan;
}

static void finish(setup *s) {
  berth_graph_destroy(s->graph);
  test_context_done(s->ctx, &s->alloc);
}

static void between_loading_and_everything_else(void **state) {
  (void)state;
  setup s;
  berth_error err;
  berth_plan *plan;
  berth_session *session;
  berth_graph *bound;
  start(&s, 0);
  shrink();
  EXPECT_SHRUNK(berth_plan_create(s.graph, &s.plan, &plan, &err));
  assert_null(plan);
  EXPECT_SHRUNK(berth_session_create(s.graph, &s.session, &session, &err));
  assert_null(session);
  EXPECT_SHRUNK(berth_graph_bind(s.graph, &s.n, 1, &bound, &err));
  assert_null(bound);
  finish(&s);
}

static void while_a_session_is_made(void **state) {
  (void)state;
  static const char *const stages[] = {"planning", "compiling kernels", "writing weights", "preparing weights"};
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    setup s;
    berth_error err;
    berth_session *session;
    start(&s, 0);
    s.shrink_at = stages[i];
    EXPECT_SHRUNK(berth_session_create(s.graph, &s.session, &session, &err));
    assert_null(session);
    finish(&s);
  }
}

/* What is in the arena is there for good; a new binding reads nothing from the file but is planned from the graph. */
static void after_a_session_is_made(void **state) {
  (void)state;
  setup s;
  berth_error err;
  berth_session *session;
  static float x[2 * ROWS], y[2 * COLUMNS];
  start(&s, 0);
  TEST_OK(berth_session_create(s.graph, &s.session, &session, &err));
  shrink();
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  EXPECT_SHRUNK(berth_session_bind(session, &(berth_dim){"n", 3}, 1, &err));
  TEST_OK(berth_session_read(session, "t", y, sizeof y, &err)); /* the failed bind changed nothing */
  TEST_OK(berth_session_run(session, &err));
  berth_session_destroy(session);
  finish(&s);
}

static void while_runs_read_it(void **state) {
  (void)state;
  setup s;
  berth_error err;
  berth_session *session;
  static float x[2 * ROWS];
  start(&s, BERTH_PLAN_PARAMS_OUTSIDE);
  TEST_OK(berth_session_create(s.graph, &s.session, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  shrink();
  EXPECT_SHRUNK(berth_session_run(session, &err));
  berth_session_destroy(session);
  finish(&s);
}

/* Whoever runs the tests catches it too, anew for each. */
static void catch_sigbus(void) {
  static struct sigaction caught;
  berth_error err;
  if (caught.sa_sigaction != NULL) assert_int_equal(sigaction(SIGBUS, &caught, NULL), 0);
  TEST_OK(berth__sigbus_catch(&err));
  assert_int_equal(sigaction(SIGBUS, NULL, &caught), 0);
}

/* A file that shrinks during a run has zeros there, of which states are not to be made. */
static void states_of_a_run_that_lost_it(void **state) {
  (void)state;
  static const char more[] = "  state %m : f32[2, 1024] = zeros\n  %u = add(%m, %t)\n  update %m = %u\n}\n";
  char whole[sizeof text + sizeof more];
  setup s;
  berth_error err;
  berth_session *session;
  static float x[2 * ROWS], m[2 * COLUMNS];
  start(&s, BERTH_PLAN_PARAMS_OUTSIDE);
  berth_graph_destroy(s.graph);
  catch_sigbus();
  memcpy(whole, text, sizeof text);
  memcpy(strrchr(whole, '}'), more, sizeof more);
  for (char *at; (at = strstr(whole, "[n,")) != NULL;) at[1] = '2';
  test_write_file(test_path("g.berth"), whole, strlen(whole));
  TEST_OK(berth_graph_load(s.ctx, test_path("g.berth"), &s.graph, &err));
  s.plan.n_dims = 0;
  TEST_OK(berth_session_create(s.graph, &s.session, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  assert_false(berth_session_states_lost(session));
  TEST_OK(berth_session_submit(session, &err)); /* the CPU begins when it is waited for */
  shrink();
  EXPECT_SHRUNK(berth_session_wait(session, &err));
  assert_true(berth_session_states_lost(session));
  test_expect_error(berth_session_state_read(session, "m", m, sizeof m, &err), BERTH_INVALID, &err, "are lost");
  berth_session_destroy(session);
  finish(&s);
}

/* An arena with pages of a file that was shorter for a while: a larger one is not made of what is left of it. */
static void an_arena_that_lost_pages_does_not_move(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  session_start(&f);
  catch_sigbus();
  test_write_file(test_path("page"), "page", 4);
  const int fd = open(test_path("page"), O_RDWR);
  volatile unsigned char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  assert_true(fd >= 0 && page != MAP_FAILED);
  f.session->mapped_end = 64; /* as if these were pages of the arena */
  f.session->watch = berth__sigbus_watch((const void *)page, 4096);
  assert_non_null(f.session->watch);
  assert_int_equal(ftruncate(fd, 0), 0);
  assert_int_equal(page[0], 0);
  const berth_dim more = {"n", 32};
  test_expect_error(berth_session_bind(f.session, &more, 1, &err), BERTH_IO, &err, "some weights are lost");
  test_expect_error(berth_session_run(f.session, &err), BERTH_IO, &err, "some weights are lost");
  session_finish(&f);
  munmap((void *)page, 4096);
  close(fd);
}

static void weights_that_are_looked_at(void **state) {
  (void)state;
  setup s;
  berth_error err;
  berth_weights *weights;
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  start(&s, 0);
  TEST_OK(berth_weights_open(s.ctx, weights_path, &weights, &err));
  TEST_OK(berth_weights_at(weights, 0, &info, &err));
  shrink();
  EXPECT_SHRUNK(berth_weights_at(weights, 0, &info, &err));
  berth_weights_destroy(weights);
  finish(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(between_loading_and_everything_else),
      cmocka_unit_test(while_a_session_is_made),
      cmocka_unit_test(after_a_session_is_made),
      cmocka_unit_test(while_runs_read_it),
      cmocka_unit_test(states_of_a_run_that_lost_it),
      cmocka_unit_test(an_arena_that_lost_pages_does_not_move),
      cmocka_unit_test(weights_that_are_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
