/* One op from C: x in, one addition, y out, like bench_python.py does it from Python. Prints nanoseconds for a run,
 * and for a run with writing the input and reading the output.
 *   one_op ELEMENTS CALLS ROUNDS    takes the best of these rounds */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "berth/berth.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static berth_session *one_op_session(berth_context *ctx, int64_t n, berth_error *err) {
  berth_graph *graph;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_value x, y;
  desc.n_threads = 1;
  if (berth_graph_create(ctx, "one_op", &graph, err) != BERTH_OK) return NULL;
  const berth_value twice[2] = {0, 0};
  if (berth_graph_input(graph, "x", BERTH_F32, berth_shape_fixed(1, &n), &x, err) == BERTH_OK &&
      berth_graph_add(graph, "add", twice, 2, NULL, 0, &y, 1, err) == BERTH_OK &&
      berth_graph_output(graph, "y", y, err) == BERTH_OK)
    berth_session_create(graph, &desc, &session, err);
  berth_graph_destroy(graph);
  return session;
}

/* Nanoseconds per call. */
static double one_op_time(berth_session *session, float *x, float *y, size_t size, long calls, int has_arrays) {
  const double start = now();
  for (long i = 0; i < calls; i++) {
    if (has_arrays && berth_session_write_at(session, 0, x, size, NULL) != BERTH_OK) return -1;
    if (berth_session_run(session, NULL) != BERTH_OK) return -1;
    if (has_arrays && berth_session_read_at(session, 0, y, size, NULL) != BERTH_OK) return -1;
  }
  return (now() - start) / (double)calls;
}

int main(int argc, char **argv) {
  const int64_t n = argc > 1 ? atoll(argv[1]) : 8;
  const long calls = argc > 2 ? atol(argv[2]) : 100000, rounds = argc > 3 ? atol(argv[3]) : 20;
  berth_error err = {BERTH_OK, ""};
  berth_context *ctx;
  if (berth_context_create(NULL, &ctx, &err) != BERTH_OK) return 1;
  berth_session *session = one_op_session(ctx, n, &err);
  float *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
  double best[2] = {1e18, 1e18};
  if (session == NULL || x == NULL || y == NULL) {
    fprintf(stderr, "one_op: %s\n", err.message);
    return 1;
  }
  for (long r = 0; r < rounds; r++)
    for (int k = 0; k < 2; k++) {
      const double ns = one_op_time(session, x, y, sizeof *x * (size_t)n, calls, k);
      if (ns < best[k]) best[k] = ns;
    }
  printf("%.1f %.1f\n", best[0], best[1]);
  berth_session_destroy(session);
  berth_context_destroy(ctx);
  free(x);
  free(y);
  return 0;
}
