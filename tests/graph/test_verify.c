/* The verifier, on graphs that were broken from the inside. */
#include "graphs.h"

static const char text[] =
    "graph \"v\" { input %x : f32[n, 4] param %w : f32[4, 4] const %c : f32[4] = [1, 2, 3, 4]\n"
    "  %a = matmul(%x, %w)  %b = add(%a, %c)  %p, %q = split(%b) {axis = 1}  %r = relu(%p)  output \"r\" = %r }";
enum {
  X,
  W,
  C,
  A,
  B,
  P,
  Q,
  R
}; /* values */
enum {
  MATMUL,
  ADD,
  SPLIT,
  RELU,
  N_NODES
}; /* nodes */

static int make(void **state) {
  *state = graph_parse(test_context(), text);
  return 0;
}

static int drop(void **state) {
  berth_graph *g = *state;
  berth_context *ctx = g->ctx;
  berth_graph_destroy(g);
  berth_context_destroy(ctx);
  return 0;
}

static void refused(const berth_graph *g, const char *node, const char *part) {
  berth_error err = {BERTH_OK, ""};
  test_expect_error(berth_graph_verify(g, &err), BERTH_INVALID, &err, part);
  if (strstr(err.message, node) == NULL) fail_msg("the message does not name %s: %s", node, err.message);
  assert_int_equal(berth_graph_verify(g, NULL), BERTH_INVALID);
}

static void accepts_a_sound_graph(void **state) {
  berth_error err;
  TEST_OK(berth_graph_verify(*state, &err));
}

static void finds_a_cycle(void **state) {
  berth_graph *g = *state;
  g->nodes[ADD].in[0] = R;
  refused(g, "node 'b' (add)", "cycle");
  g->nodes[ADD].in[0] = B;
  refused(g, "node 'b' (add)", "cycle");
}

static void finds_a_dangling_operand(void **state) {
  berth_graph *g = *state;
  g->nodes[RELU].in[0] = 77;
  refused(g, "node 'r' (relu)", "operand 0 is value 77");
}

static void finds_an_operand_that_is_left_out(void **state) {
  berth_graph *g = *state;
  g->nodes[ADD].in[1] = BERTH_VALUE_NONE;
  refused(g, "node 'b' (add)", "operand 1");
}

static void finds_a_wrong_producer(void **state) {
  berth_graph *g = *state;
  g->values[Q].node = RELU;
  refused(g, "node 'p' (split)", "'q'");
  g->values[Q].node = SPLIT;
  g->values[Q].kind = BERTH_VALUE_INPUT;
  refused(g, "node 'p' (split)", "'q'");
}

static void finds_a_dangling_result(void **state) {
  berth_graph *g = *state;
  g->nodes[SPLIT].out[1] = 1000;
  refused(g, "node 'p' (split)", "result 1 is value 1000");
  g->nodes[SPLIT].out[1] = Q;
  g->nodes[SPLIT].out[0] = 1000;
  refused(g, "(split)", "result 0 is value 1000");
  g->nodes[SPLIT].out[0] = P;
}

static void finds_one_value_made_twice(void **state) {
  berth_graph *g = *state;
  g->nodes[SPLIT].out[1] = P;
  refused(g, "'q'", "no node makes it");
}

static void finds_a_value_that_no_node_makes(void **state) {
  berth_graph *g = *state;
  berth_value v;
  berth_error err;
  berth__value like = {.kind = BERTH_VALUE_NODE, .type = BERTH_F32, .node = 999};
  TEST_OK(berth__graph_new_value(g, "orphan", &like, &v, &err));
  refused(g, "'orphan'", "no node makes it");
}

static void finds_a_wrong_shape(void **state) {
  berth_graph *g = *state;
  g->values[R].shape.dim[1] = 3;
  refused(g, "node 'r' (relu)", "'r' is f32[");
  g->values[R].shape.dim[1] = 2;
  g->values[A].shape.rank = 1;
  refused(g, "node 'a' (matmul)", "'a'");
}

static void finds_a_wrong_type(void **state) {
  berth_graph *g = *state;
  g->values[R].type = BERTH_F16;
  refused(g, "node 'r' (relu)", "'r' is f16[");
  g->values[R].type = BERTH_F32;
  g->values[W].type = BERTH_I8;
  refused(g, "node 'a' (matmul)", "i8");
}

static void finds_a_wrong_attribute(void **state) {
  berth_graph *g = *state;
  g->nodes[SPLIT].attrs[0].i = 7;
  refused(g, "node 'p' (split)", "axis");
}

static void finds_missing_outputs(void **state) {
  berth_graph *g = *state;
  g->outputs[0].value = 500;
  refused(g, "'r'", "value 500");
  size_t n = g->n_outputs;
  g->n_outputs = 0;
  refused(g, "'v'", "no output");
  g->n_outputs = n;
  g->outputs[0].value = R;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(accepts_a_sound_graph),      TEST(finds_a_cycle),
      TEST(finds_a_dangling_operand),   TEST(finds_an_operand_that_is_left_out),
      TEST(finds_a_wrong_producer),     TEST(finds_a_dangling_result),
      TEST(finds_one_value_made_twice), TEST(finds_a_value_that_no_node_makes),
      TEST(finds_a_wrong_shape),        TEST(finds_a_wrong_type),
      TEST(finds_a_wrong_attribute),    TEST(finds_missing_outputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
