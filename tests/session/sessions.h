/* What the tests of sessions share: one small network and a session of it. */
#ifndef BERTH_TESTS_SESSIONS_H
#define BERTH_TESTS_SESSIONS_H

#include "support.h"

/* These need a berth_error err in scope. */
#define OK(call) TEST_OK(call)
#define REFUSED(call, part) test_expect_error(call, BERTH_INVALID, &err, part)

/* y = softmax(x w + c), z = relu(x); x is f32[n, 8] */
extern const char session_text[];
/* Its weights, and input for up to 32 rows. */
extern float session_w[48], session_x[256];

typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
} fixture;

berth_graph *session_parse(berth_context *ctx, const char *text);
/* A session of any graph with at most one dimension, n; flags are the plan's. */
void session_start_with(fixture *f, const char *text, int64_t n, uint32_t flags, uint32_t n_threads);
/* A session of any graph on any device. */
void session_start_on(fixture *f, const char *text, const char *device, const berth_dim *dims, size_t n_dims,
                      uint32_t plan_flags, uint32_t session_flags);
/* One of session_text with two rows and its weights set. */
void session_start(fixture *f);
void session_finish(fixture *f); /* asserts that nothing leaks */
void session_bind(berth_session *session, int64_t n);
/* Runs with session_x and gives y, [n, 6]. */
void session_run(berth_session *session, int64_t n, float *y);

/* Other kernels, other roundings: equal but for those. */
void session_assert_close(const float *got, const float *want, size_t n);

#endif
