#include "sessions.h"

#include <math.h>

const char session_text[] =
    "graph \"net\" { input %x : f32[n, 8] param %w : f32[8, 6] const %c : f32[6] = [1, 2, 3, 4, 5, 6]\n"
    "  %m = matmul(%x, %w) %s = add(%m, %c) %y = softmax(%s) %z = relu(%x) output \"y\" = %y output \"z\" = %z }";

float session_w[48], session_x[256];

static void fill(void) {
  uint64_t seed = 42;
  for (int i = 0; i < 48; i++) session_w[i] = test_random_f32(&seed);
  for (int i = 0; i < 256; i++) session_x[i] = test_random_f32(&seed);
}

berth_graph *session_parse(berth_context *ctx, const char *text) {
  berth_graph *graph;
  berth_error err;
  OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  return graph;
}

void session_start_with(fixture *f, const char *text, int64_t n, uint32_t flags, uint32_t n_threads) {
  berth_error err;
  berth_dim dim = {"n", n};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(f, 0, sizeof *f);
  fill();
  f->ctx = test_context_counting(&f->alloc);
  f->graph = session_parse(f->ctx, text);
  plan.flags = flags;
  plan.dims = &dim;
  plan.n_dims = berth_graph_n_dims(f->graph);
  desc.plan = &plan;
  desc.n_threads = n_threads;
  OK(berth_session_create(f->graph, &desc, &f->session, &err));
}

void session_start_on(fixture *f, const char *text, const char *device, const berth_dim *dims, size_t n_dims,
                      uint32_t plan_flags, uint32_t session_flags) {
  berth_error err;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  f->graph = session_parse(f->ctx, text);
  plan.flags = plan_flags;
  plan.dims = dims;
  plan.n_dims = n_dims;
  plan.effort = 1; /* constructing is enough */
  desc.plan = &plan;
  desc.flags = session_flags;
  desc.device = device;
  OK(berth_session_create(f->graph, &desc, &f->session, &err));
}

void session_start(fixture *f) {
  berth_error err;
  session_start_with(f, session_text, 2, 0, 0);
  OK(berth_session_set_param(f->session, "w", session_w, sizeof session_w, &err));
}

void session_finish(fixture *f) {
  berth_session_destroy(f->session);
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
}

void session_bind(berth_session *session, int64_t n) {
  berth_error err;
  OK(berth_session_bind(session, (berth_dim[]){{"n", n}}, 1, &err));
}

void session_run(berth_session *session, int64_t n, float *y) {
  berth_error err;
  OK(berth_session_write(session, "x", session_x, (size_t)n * 32, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "y", y, (size_t)n * 24, &err));
}

void session_assert_close(const float *got, const float *want, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
      fail_msg("%g at %zu, expected %g", got[i], i, want[i]);
}
