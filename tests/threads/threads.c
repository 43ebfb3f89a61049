#include "threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Not pthread_barrier_t: the start itself is to order as little as possible between the threads. */
struct crew {
  crew_fn fn;
  void *user;
  uint32_t n;
  _Atomic uint32_t n_ready;
  crew_member members[THREADS_MOST];
};

static void *member_main(void *user) {
  crew_member *self = user;
  crew *c = self->crew;
  atomic_fetch_add_explicit(&c->n_ready, 1, memory_order_relaxed);
  while (atomic_load_explicit(&c->n_ready, memory_order_relaxed) < c->n) continue;
  c->fn(self, c->user);
  return NULL;
}

void crew_run(uint32_t n, crew_fn fn, void *user) {
  crew c = {.fn = fn, .user = user, .n = n};
  pthread_t threads[THREADS_MOST];
  assert_in_range(n, 1, THREADS_MOST);
  for (uint32_t i = 0; i < n; i++) {
    c.members[i].crew = &c;
    c.members[i].number = i;
  }
  for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_create(&threads[i], NULL, member_main, &c.members[i]), 0);
  for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (uint32_t i = 0; i < n; i++)
    if (c.members[i].failed) fail_msg("thread %u: %s", (unsigned)i, c.members[i].message);
}

bool crew_true(crew_member *self, bool holds, const char *what) {
  if (holds || self->failed) return holds;
  self->failed = true;
  (void)snprintf(self->message, sizeof self->message, "%s does not hold", what);
  return false;
}

bool crew_ok(crew_member *self, berth_status status, const berth_error *err, const char *what) {
  if (status == BERTH_OK) return true;
  if (!self->failed) (void)snprintf(self->message, sizeof self->message, "%.200s: %.300s", what, err->message);
  self->failed = true;
  return false;
}

/* ---- One small network ---------------------------------------------------------------------------------------- */

const char crew_text[] =
    "graph \"crew\" { input %x : f32[n, 48] param %w : f32[48, 96] param %v : f32[96, 24]\n"
    "  const %c : f32[] = [0.125] %m = matmul(%x, %w) %s = add(%m, %c) %r = relu(%s) %p = matmul(%r, %v)\n"
    "  %y = softmax(%p) output \"y\" = %y }";

berth_session *crew_session(crew_member *self, const berth_graph *graph, const char *device, uint32_t n_threads,
                            const crew_data *data) {
  berth_error err;
  berth_session *session = NULL;
  berth_dim dim = {"n", data->rows};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.device = device;
  plan.dims = &dim;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.n_threads = n_threads;
  if (!CREW_OK(berth_session_create(graph, &desc, &session, &err))) return NULL;
  if (CREW_OK(berth_session_set_param(session, "w", data->w, sizeof data->w, &err)) &&
      CREW_OK(berth_session_set_param(session, "v", data->v, sizeof data->v, &err)))
    return session;
  berth_session_destroy(session);
  return NULL;
}

static size_t size_of_y(const crew_data *data) { return (size_t)data->rows * CREW_OUT * sizeof(float); }

static bool run_into(crew_member *self, berth_session *session, const crew_data *data, float *y) {
  const size_t size_of_x = (size_t)data->rows * CREW_IN * sizeof(float);
  berth_error err;
  return CREW_OK(berth_session_write(session, "x", data->x, size_of_x, &err)) &&
         CREW_OK(berth_session_run(session, &err)) &&
         CREW_OK(berth_session_read(session, "y", y, size_of_y(data), &err));
}

bool crew_session_run(crew_member *self, berth_session *session, const crew_data *data) {
  float y[CREW_ROWS * CREW_OUT];
  return run_into(self, session, data, y) &&
         crew_true(self, memcmp(y, data->y, size_of_y(data)) == 0, "the same y as on one thread");
}

static void fill(float *values, size_t n, uint64_t *seed) {
  for (size_t i = 0; i < n; i++) values[i] = test_random_f32(seed);
}

crew_data *crew_data_make(const char *device) {
  crew_data *data = malloc(sizeof *data);
  crew_member self = {.number = 0};
  berth_graph *graph;
  berth_error err;
  uint64_t seed = 7;
  assert_non_null(data);
  data->rows = strcmp(device, "cpu") == 0 ? CREW_ROWS : 24;
  fill(data->w, sizeof data->w / sizeof *data->w, &seed);
  fill(data->v, sizeof data->v / sizeof *data->v, &seed);
  fill(data->x, sizeof data->x / sizeof *data->x, &seed);
  berth_context *ctx = test_context();
  TEST_OK(berth_graph_parse(ctx, crew_text, strlen(crew_text), &graph, &err));
  berth_session *session = crew_session(&self, graph, device, 1, data);
  if (session == NULL || !run_into(&self, session, data, data->y)) fail_msg("%s", self.message);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return data;
}
