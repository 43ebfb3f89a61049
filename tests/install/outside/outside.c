/* A program that knows berth from its installed header alone: y = relu(a + b), planned and run. */
#include <berth/berth.h>
#include <stdio.h>

static int fail(const berth_error *err) {
  fprintf(stderr, "%s\n", err->message);
  return 1;
}

int main(void) {
  berth_error err;
  berth_context *ctx = NULL;
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_value in[2], sum, y;
  const float a[4] = {1, -2, 3, -4}, b[4] = {1, 1, 1, 1}, want[4] = {2, 0, 4, 0};
  float got[4];

  if (strcmp(berth_version(), BERTH_VERSION) != 0) return 2;
  if (berth_context_create(NULL, &ctx, &err) || berth_graph_create(ctx, "outside", &graph, &err) ||
      berth_graph_input(graph, "a", BERTH_F32, BERTH_SHAPE(4), &in[0], &err) ||
      berth_graph_input(graph, "b", BERTH_F32, BERTH_SHAPE(4), &in[1], &err) ||
      berth_graph_add(graph, "add", in, 2, NULL, 0, &sum, 1, &err) ||
      berth_graph_add(graph, "relu", &sum, 1, NULL, 0, &y, 1, &err) || berth_graph_output(graph, "y", y, &err) ||
      berth_session_create(graph, NULL, &session, &err) || berth_session_write(session, "a", a, sizeof a, &err) ||
      berth_session_write(session, "b", b, sizeof b, &err) || berth_session_run(session, &err) ||
      berth_session_read(session, "y", got, sizeof got, &err)) {
    return fail(&err);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return memcmp(got, want, sizeof want) != 0;
}
