/* What products and convolutions by matrix units load before the kernels before them have ended: their weights alone.
 */
#include "graph/graph.h"
#include "kernel/lower.h"
#include "run.h"

static const berth__kernel_limits limits = {.group_size = 256,
                                            .lanes = 32,
                                            .exchanges = true,
                                            .begins_early = true,
                                            .shared_bytes = 49152,
                                            .shares_well = true,
                                            .multiplies = BERTH__MATRIX_UNITS,
                                            .tile_bytes = 114688,
                                            .compute = BERTH_COMPUTE_TF32};

static void lower(const char *text, uint32_t n_conditions, bool is_early) {
  static const berth__step_condition condition = {.sense = true, .storage = BERTH_BOOL};
  berth_context *ctx = test_context();
  berth_tensor tensors[3];
  berth_graph *graph;
  berth_error err;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  assert_int_equal(graph->n_nodes, 1);
  const berth__node *node = &graph->nodes[0];
  for (uint32_t i = 0; i < 3; i++) {
    const berth__value *value = &graph->values[i < 2 ? node->in[i] : node->out[0]];
    tensors[i] = (berth_tensor){.type = value->type, .rank = value->shape.rank};
    memcpy(tensors[i].dim, value->shape.dim, sizeof tensors[i].dim);
    berth__contiguous_strides(tensors[i].rank, tensors[i].dim, tensors[i].stride);
  }
  const berth_op_call call = {.in = tensors,
                              .out = tensors + 2,
                              .n_in = 2,
                              .n_out = 1,
                              .attrs = node->attrs,
                              .n_attrs = node->op->family->n_attrs};
  berth__lowering l = {.ctx = ctx,
                       .limits = &limits,
                       .op = node->op,
                       .call = &call,
                       .conditions = &condition,
                       .n_conditions = n_conditions};
  TEST_OK(berth__lower_call(&l, &err));
  const berth__kernel *k = l.kernels[0];
  assert_int_equal(count_of(k, BERTH__INST_await), is_early);
  assert_int_equal(count_of(k, BERTH__INST_release), is_early);
  for (uint32_t i = 0; i < k->n_buffers; i++)
    assert_int_equal(k->buffers[i].is_early, is_early && k->buffers[i].operand == 1);
  berth__lowering_free(&l);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

#define TWO(a, b) "graph \"g\" { input %a : " a " input %b : " b " "
#define OUT " output \"o\" = %o }"

static void weights_alone(void **state) {
  (void)state;
  lower(TWO("f32[64, 128]", "f32[128, 64]") "%o = product(%a, %b) {columns = 64}" OUT, 0, true);
  lower(TWO("f32[1, 8, 8, 64]", "f32[1, 576, 64]") "%o = conv_last(%a, %b) {kernel = [3, 3], channels = 64, panel = 64, "
        "pads = [1, 1, 1, 1]}" OUT, 0, true);
  /* neither side of it is known to be a weight */
  lower(TWO("f32[64, 128]", "f32[128, 64]") "%o = matmul(%a, %b)" OUT, 0, false);
  /* a side that goes through registers */
  lower(TWO("f32[64, 127]", "f32[127, 65]") "%o = product(%a, %b) {columns = 65}" OUT, 0, false);
}

/* A kernel that runs only where a condition holds asks for that first, which kernels before it may have made. */
static void not_in_conditions(void **state) {
  (void)state;
  lower(TWO("f32[64, 128]", "f32[128, 64]") "%o = product(%a, %b) {columns = 64}" OUT, 1, false);
  lower(TWO("f32[1, 512]", "f32[512, 64]") "%o = product(%a, %b) {columns = 64}" OUT, 1, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights_alone), cmocka_unit_test(not_in_conditions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
