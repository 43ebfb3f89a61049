/* Weights in a safetensors file (here: in memory) for a graph in text form, and a graph with a state. */
#include "example.h"

static const char source[] =
    "graph \"line\" {\n  input %x : f32[2]\n  param %w : f32[2]\n  %y = mul(%x, %w)\n  output \"y\" = %y\n}\n";
static const char file[] =
    "\x40\0\0\0\0\0\0\0"
    "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}          "
    "\0\0\0\x40\0\0\x40\x40"; /* 2, 3 */

static void use_weights(berth_context *ctx) {
  static const float x[2] = {10, 100};
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  berth_weights *weights;
  berth_graph *graph;
  berth_session *session;
  float y[2];
  MUST(berth_graph_parse(ctx, source, sizeof source - 1, &graph, &err));
  MUST(berth_weights_from_memory(ctx, file, sizeof file - 1, &weights, &err));
  CHECK(berth_weights_count(weights) == 1);
  MUST(berth_weights_at(weights, berth_weights_find(weights, "w"), &info, &err));
  CHECK(info.type == BERTH_F32 && info.rank == 1 && info.dim[0] == 2);
  CHECK(info.size == berth_storage_bytes(berth_type_storage(info.type), 2));
  MUST(berth_graph_attach(graph, weights, &err));
  berth_weights_destroy(weights); /* the graph keeps them */
  MUST(berth_session_create(graph, NULL, &session, &err));
  MUST(berth_session_write(session, "x", x, sizeof x, &err));
  MUST(berth_session_run(session, &err));
  MUST(berth_session_read(session, "y", y, sizeof y, &err));
  CHECK(y[0] == 20 && y[1] == 300);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

/* total = total + x, kept from run to run. */
static berth_graph *declare_state(berth_context *ctx) {
  static const float zero[2] = {0, 0};
  const int64_t two = 2;
  berth_graph *graph;
  berth_value x, total, sum;
  MUST(berth_graph_create(ctx, "sums", &graph, &err));
  MUST(berth_graph_input(graph, "x", BERTH_F32, berth_shape_fixed(1, &two), &x, &err));
  MUST(berth_graph_state(graph, "total", BERTH_F32, berth_shape_fixed(1, &two), zero, sizeof zero, &total, &err));
  MUST(berth_graph_add(graph, "add", (const berth_value[]){total, x}, 2, NULL, 0, &sum, 1, &err));
  MUST(berth_graph_update(graph, total, sum, &err));
  MUST(berth_graph_output(graph, "sum", sum, &err));
  MUST(berth_graph_verify(graph, &err));
  CHECK(berth_graph_n_states(graph) == 1 && berth_graph_state_at(graph, 0) == total);
  CHECK(berth_graph_next(graph, total) == sum);
  return graph;
}

static void expect_total(berth_session *session, float a, float b) {
  float total[2];
  MUST(berth_session_state_read(session, "total", total, sizeof total, &err));
  CHECK(total[0] == a && total[1] == b);
}

static void keep_state(berth_context *ctx) {
  static const float x[2] = {1, 10}, given[2] = {5, 5};
  unsigned char saved[1024];
  berth_graph *graph = declare_state(ctx);
  berth_session *session;
  MUST(berth_session_create(graph, NULL, &session, &err));
  MUST(berth_session_write(session, "x", x, sizeof x, &err));
  for (int i = 0; i < 3; i++) MUST(berth_session_run(session, &err));
  expect_total(session, 3, 30);
  const size_t size = (size_t)berth_session_state_size(session);
  CHECK(size <= sizeof saved);
  MUST(berth_session_state_save(session, saved, size, &err));
  MUST(berth_session_state_write(session, "total", given, sizeof given, &err));
  MUST(berth_session_run(session, &err));
  expect_total(session, 6, 15);
  MUST(berth_session_state_restore(session, saved, size, &err));
  expect_total(session, 3, 30);
  MUST(berth_session_state_reset(session, NULL, &err));
  expect_total(session, 0, 0);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
}

int main(void) {
  berth_context *ctx;
  MUST(berth_context_create(NULL, &ctx, &err));
  use_weights(ctx);
  keep_state(ctx);
  berth_context_destroy(ctx);
  puts("ok");
  return 0;
}
