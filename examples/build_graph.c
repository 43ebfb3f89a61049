/* A graph built by hand, checked, printed, planned, and run for two sizes. */
#include "example.h"

typedef struct text {
  char data[4096];
  size_t size;
} text;

static berth_status append(void *user, const char *part, size_t size) {
  text *t = user;
  if (t->size + size >= sizeof t->data) return BERTH_IO;
  memcpy(t->data + t->size, part, size);
  t->size += size;
  return BERTH_OK;
}

/* y = softmax(x w + b) over rows; x has n of them. */
static berth_graph *build(berth_context *ctx) {
  static const float bias[3] = {0.5f, 0, -0.5f};
  const berth_shape rows = {.rank = 2, .dim = {{"n", 0}, {NULL, 4}}};
  const int64_t weights[2] = {4, 3}, three = 3;
  const berth_attr axis = berth_attr_int("axis", -1);
  berth_value x, w, b, product, sum, y;
  berth_graph *graph;
  MUST(berth_graph_create(ctx, "classifier", &graph, &err));
  MUST(berth_graph_input(graph, "x", berth_type_from_name("f32"), rows, &x, &err));
  MUST(berth_graph_param(graph, "w", BERTH_F32, berth_shape_fixed(2, weights), &w, &err));
  MUST(berth_graph_constant(graph, "b", BERTH_F32, berth_shape_fixed(1, &three), bias, sizeof bias, &b, &err));
  MUST(berth_graph_add(graph, "matmul", (const berth_value[]){x, w}, 2, NULL, 0, &product, 1, &err));
  MUST(berth_graph_add(graph, "add", (const berth_value[]){product, b}, 2, NULL, 0, &sum, 1, &err));
  MUST(berth_graph_add(graph, "softmax", &sum, 1, &axis, 1, &y, 1, &err));
  MUST(berth_graph_rename(graph, sum, "logits", &err));
  MUST(berth_graph_output(graph, "y", y, &err));
  MUST(berth_graph_verify(graph, &err));
  return graph;
}

/* The text form reads back as the same graph; so does a copy in memory that the caller gives up later. */
static void released(void *user, const void *data, size_t size) {
  (void)data, (void)size;
  *(int *)user = 1;
}

static void print_and_read_back(berth_context *ctx, const berth_graph *graph) {
  text t = {.size = 0};
  int is_released = 0;
  berth_graph *again, *from_memory;
  MUST(berth_graph_print(graph, append, &t, &err));
  fwrite(t.data, 1, t.size, stdout);
  MUST(berth_graph_parse(ctx, t.data, t.size, &again, &err));
  CHECK(berth_graph_equal(graph, again));
  MUST(berth_graph_from_memory(ctx, t.data, t.size, released, &is_released, &from_memory, &err));
  CHECK(berth_graph_equal(graph, from_memory));
  berth_graph_destroy(from_memory);
  CHECK(is_released);
  berth_graph_destroy(again);
}

static void look_at_plans(const berth_graph *graph) {
  const berth_dim n = {"n", 5};
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_slot slot = BERTH_SLOT_INIT, scratch = BERTH_SLOT_INIT;
  berth_layout *layout;
  berth_plan *plan, *other, *activations;
  desc.dims = &n;
  desc.n_dims = 1;
  MUST(berth_plan_create(graph, &desc, &plan, &err));
  MUST(berth_plan_check(plan, &err));
  MUST(berth_plan_get_info(plan, &info, &err));
  MUST(berth_plan_slot(plan, berth_graph_output_at(graph, 0), &slot, &err));
  printf("arena of %llu bytes, %u steps; y at %llu\n", (unsigned long long)info.arena_size, info.n_steps,
         (unsigned long long)slot.offset);
  for (uint32_t step = 0; step < info.n_steps; step++) {
    MUST(berth_plan_scratch(plan, step, &scratch, &err));
    CHECK(berth_plan_step_node(plan, step) != UINT32_MAX);
  }
  /* A second plan with its weights where the first has them. */
  MUST(berth_plan_layout(plan, &layout, &err));
  desc.layout = layout;
  MUST(berth_plan_create(graph, &desc, &other, &err));
  CHECK(berth_layout_size(layout) <= berth_plan_arena_size(other));
  berth_layout_offset(layout, "w");
  /* Activations alone: everything else lies elsewhere. */
  berth_plan_desc elsewhere = BERTH_PLAN_DESC_INIT;
  MUST(berth_plan_preset(BERTH_PRESET_BACKWARD, &elsewhere, &err));
  elsewhere.dims = &n;
  elsewhere.n_dims = 1;
  MUST(berth_plan_create(graph, &elsewhere, &activations, &err));
  CHECK(berth_plan_arena_size(activations) < berth_plan_arena_size(plan));
  berth_plan_destroy(activations);
  berth_plan_destroy(other);
  berth_layout_destroy(layout);
  berth_plan_destroy(plan);
}

static void check_rows(const float *y, int n) {
  for (int row = 0; row < n; row++) CHECK(fabsf(y[3 * row] + y[3 * row + 1] + y[3 * row + 2] - 1) < 1e-5f);
}

static void run(const berth_graph *graph) {
  static const float w[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, x[8] = {1, 2, 3, 4, 4, 3, 2, 1};
  berth_dim n = {"n", 1};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session, *twin;
  float y[6], again[6];
  void *in;
  const void *out;
  size_t size;
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  MUST(berth_session_create(graph, &desc, &session, &err));
  MUST(berth_session_set_param(session, "w", w, sizeof w, &err));
  MUST(berth_session_write(session, "x", x, 4 * sizeof(float), &err));
  MUST(berth_session_run(session, &err));
  MUST(berth_session_read(session, "y", y, 3 * sizeof(float), &err));
  check_rows(y, 1);
  n.extent = 2;
  MUST(berth_session_bind(session, &n, 1, &err));
  MUST(berth_session_input_data(session, 0, &in, &size, &err));
  CHECK(size == sizeof x);
  memcpy(in, x, size); /* no copy of berth's in between */
  MUST(berth_session_run(session, &err));
  MUST(berth_session_output_data(session, 0, &out, &size, &err));
  CHECK(size == sizeof y);
  memcpy(y, out, size);
  check_rows(y, 2);
  CHECK(berth_session_n_bindings(session) == 2);
  CHECK(berth_arena_size(berth_session_arena(session)) >= berth_plan_arena_size(berth_session_plan(session)));
  /* A second session in the same state, for another thread. */
  MUST(berth_session_clone(session, &twin, &err));
  MUST(berth_session_write(twin, "x", x, sizeof x, &err));
  MUST(berth_session_run(twin, &err));
  MUST(berth_session_read(twin, "y", again, sizeof again, &err));
  CHECK(memcmp(y, again, sizeof y) == 0);
  n.extent = 1;
  MUST(berth_session_drop(twin, &n, 1, &err));
  CHECK(berth_session_n_bindings(twin) == 1);
  berth_session_destroy(twin);
  berth_session_destroy(session);
}

/* Weights and inputs that stay in the caller's memory. */
static void run_in_place(const berth_graph *graph) {
  static const float w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, x[4] = {1, 0, 0, 0};
  const berth_dim n = {"n", 1};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  float y[3];
  plan.flags = BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_INPUTS_OUTSIDE;
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  MUST(berth_session_create(graph, &desc, &session, &err));
  MUST(berth_session_use(session, "w", w, sizeof w, &err));
  MUST(berth_session_use(session, "x", x, sizeof x, &err));
  MUST(berth_session_run(session, &err));
  MUST(berth_session_read(session, "y", y, sizeof y, &err));
  check_rows(y, 1);
  berth_session_destroy(session);
}

int main(void) {
  berth_context *ctx;
  MUST(berth_context_create(NULL, &ctx, &err));
  berth_graph *graph = build(ctx);
  print_and_read_back(ctx, graph);
  look_at_plans(graph);
  run(graph);
  run_in_place(graph);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  puts("ok");
  return 0;
}
