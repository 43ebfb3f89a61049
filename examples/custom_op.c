/* An op of your own: y = scale * x + shift, with attributes of every kind. */
#include "example.h"

static berth_status infer_affine(const berth_op_infer *call, berth_error *error) {
  (void)error;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

enum {
  SCALE,
  SHIFT,
  MODE,
  STEPS,
  TABLE,
  SHAPE,
  N_ATTRS
};

static berth_status run_affine(const berth_op_call *call, berth_error *error) {
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  int64_t count = 1;
  (void)error;
  for (uint32_t k = 0; k < call->in[0].rank; k++) count *= call->in[0].dim[k];
  const float shift = strcmp(call->attrs[MODE].s, "exact") == 0 ? (float)call->attrs[SHIFT].i : 0;
  for (int64_t i = 0; i < count; i++) y[i] = (float)call->attrs[SCALE].f * x[i] + shift;
  return BERTH_OK;
}

int main(void) {
  static const int64_t steps[2] = {1, 2};
  static const double table[1] = {0.5};
  static const berth_dim shape[1] = {{NULL, 4}};
  static const float x[4] = {1, 2, 3, 4};
  const berth_attr attrs[N_ATTRS] = {berth_attr_float("scale", 1),         berth_attr_int("shift", 0),
                                     berth_attr_string("mode", "exact"),   berth_attr_ints("steps", steps, 2),
                                     berth_attr_floats("table", table, 1), berth_attr_dims("shape", shape, 1)};
  const berth_attr given[2] = {berth_attr_float("scale", 3), berth_attr_int("shift", 1)};
  const int64_t four = 4;
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  berth_value in, out;
  float y[4];
  int is_listed = 0;
  MUST(berth_context_create(NULL, &ctx, &err));
  op.name = "example.affine";
  op.min_in = op.max_in = 1;
  op.attrs = attrs;
  op.n_attrs = N_ATTRS;
  op.in_place = 1; /* the result may lie where the operand lay */
  op.infer = infer_affine;
  op.kernel = run_affine;
  MUST(berth_op_register(ctx, &op, &err));
  for (uint32_t i = 0; i < berth_op_count(ctx); i++) is_listed |= strcmp(berth_op_name(ctx, i), op.name) == 0;
  CHECK(is_listed);
  MUST(berth_graph_create(ctx, "affine", &graph, &err));
  MUST(berth_graph_input(graph, "x", BERTH_F32, berth_shape_fixed(1, &four), &in, &err));
  MUST(berth_graph_add(graph, op.name, &in, 1, given, 2, &out, 1, &err));
  MUST(berth_graph_output(graph, "y", out, &err));
  MUST(berth_session_create(graph, NULL, &session, &err));
  MUST(berth_session_write(session, "x", x, sizeof x, &err));
  MUST(berth_session_run(session, &err));
  MUST(berth_session_read(session, "y", y, sizeof y, &err));
  for (int i = 0; i < 4; i++) CHECK(y[i] == 3 * x[i] + 1);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  puts("ok");
  return 0;
}
