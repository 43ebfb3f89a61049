/* Binding named dimensions, and cloning. */
#include "graphs.h"

static const char text[] =
    "graph \"b\" { weights \"w\" input %x : f32[batch, seq, 4] input %i : i64[seq]\n"
    "  param %w : f32[4, 6] const %c : f32[6] = [1, 2, 3, 4, 5, 6]\n"
    "  %m = matmul(%x, %w) %s = add(%m, %c)\n"
    "  %r = reshape(%s) {shape = [batch, -1, 3]} %e = expand(%c) {shape = [seq, 6]}\n"
    "  %j = concat(%x, %x) {axis = 1} %p, %q = split(%m) {axis = 2}\n"
    "  output \"r\" = %r output \"e\" = %e output \"j\" = %j output \"q\" = %q output \"i\" = %i }";

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

static void expect_fixed(const berth_graph *g, const char *name, uint32_t rank, const int64_t *extents) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  TEST_OK(berth_graph_value(g, berth_graph_find(g, name), &info, &err));
  assert_int_equal(info.shape.rank, rank);
  uint64_t size = berth_type_size(info.type);
  for (uint32_t i = 0; i < rank; i++) {
    assert_null(info.shape.dim[i].name);
    assert_int_equal(info.shape.dim[i].extent, extents[i]);
    size *= (uint64_t)extents[i];
  }
  assert_int_equal(info.size, size);
}
#define EXPECT(g, name, ...) \
  expect_fixed(g, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void binds_and_infers_again(void **state) {
  berth_graph *g = *state, *bound;
  berth_error err;
  const berth_dim dims[] = {{"seq", 5}, {"batch", 2}};
  test_buffer before = graph_text(g);
  TEST_OK(berth_graph_bind(g, dims, 2, &bound, &err));
  EXPECT(bound, "x", 2, 5, 4);
  EXPECT(bound, "i", 5);
  EXPECT(bound, "m", 2, 5, 6);
  EXPECT(bound, "r", 2, 10, 3);
  EXPECT(bound, "e", 5, 6);
  EXPECT(bound, "j", 2, 10, 4);
  EXPECT(bound, "q", 2, 5, 3);
  assert_int_equal(berth_graph_n_dims(bound), 0);
  assert_int_equal(berth_graph_n_values(bound), berth_graph_n_values(g));
  assert_int_equal(berth_graph_n_nodes(bound), berth_graph_n_nodes(g));
  for (berth_value v = 0; v < berth_graph_n_values(g); v++) {
    assert_string_equal(bound->values[v].name, g->values[v].name);
    assert_int_equal(bound->values[v].kind, g->values[v].kind);
    assert_int_equal(bound->values[v].node, g->values[v].node);
  }
  assert_ptr_equal(bound->values[berth_graph_find(g, "c")].data, g->values[berth_graph_find(g, "c")].data);
  TEST_OK(berth_graph_verify(bound, &err));
  graph_round_trip(bound);
  test_buffer after = graph_text(g);
  assert_string_equal(before.data, after.data);
  test_buffer_free(&before);
  test_buffer_free(&after);
  berth_graph_destroy(bound);
}

/* The node's DIMS attribute holds the extent afterwards. */
static void binds_attributes(void **state) {
  berth_graph *g = *state, *bound;
  berth_node_info node = BERTH_NODE_INFO_INIT;
  berth_error err;
  const berth_dim dims[] = {{"batch", 7}, {"seq", 3}};
  TEST_OK(berth_graph_bind(g, dims, 2, &bound, &err));
  TEST_OK(berth_graph_node(bound, bound->values[berth_graph_find(bound, "r")].node, &node, &err));
  assert_string_equal(node.op, "reshape");
  assert_null(node.attrs[0].dims[0].name);
  assert_int_equal(node.attrs[0].dims[0].extent, 7);
  assert_int_equal(node.attrs[0].dims[1].extent, -1);
  berth_graph_destroy(bound);
}

static void the_bound_graph_outlives_its_origin(void **state) {
  berth_graph *g = *state, *bound, *other;
  berth_error err;
  const berth_dim dims[] = {{"batch", 1}, {"seq", 1}};
  other = graph_parse(g->ctx, text);
  TEST_OK(berth_graph_bind(other, dims, 2, &bound, &err));
  berth_graph_destroy(other);
  const float *c = bound->values[berth_graph_find(bound, "c")].data;
  assert_true(c[5] == 6);
  graph_round_trip(bound);
  berth_graph_destroy(bound);
}

static void binds_to_zero(void **state) {
  berth_graph *g = *state, *bound;
  berth_error err;
  const berth_dim dims[] = {{"batch", 0}, {"seq", 3}};
  berth_status status = berth_graph_bind(g, dims, 2, &bound, &err);
  test_expect_error(status, BERTH_INVALID, &err,
                    "node 'r' (reshape)"); /* -1 is any number when there are no elements */
  berth_graph *simple = graph_parse(g->ctx, "graph \"z\" { input %x : f32[n, 3] %y = relu(%x) output \"y\" = %y }");
  TEST_OK(berth_graph_bind(simple, (berth_dim[]){{"n", 0}}, 1, &bound, &err));
  EXPECT(bound, "y", 0, 3);
  berth_graph_destroy(bound);
  berth_graph_destroy(simple);
}

static void refuses(berth_graph *g, const berth_dim *dims, size_t n, const char *part) {
  berth_graph *bound = g;
  berth_error err = {BERTH_OK, ""};
  test_expect_error(berth_graph_bind(g, dims, n, &bound, &err), BERTH_INVALID, &err, part);
  assert_null(bound);
}

static void refuses_wrong_bindings(void **state) {
  berth_graph *g = *state;
  refuses(g, NULL, 0, "dimension 'batch' of graph 'b' is not bound");
  refuses(g, (berth_dim[]){{"batch", 1}}, 1, "dimension 'seq' of graph 'b' is not bound");
  refuses(g, (berth_dim[]){{"batch", 1}, {"seq", 1}, {"n", 1}}, 3, "no dimension named 'n'");
  refuses(g, (berth_dim[]){{"batch", 1}, {"seq", 1}, {"batch", 2}}, 3, "'batch' is bound twice");
  refuses(g, (berth_dim[]){{"batch", 1}, {"seq", 1}, {"batch", 1}}, 3, "'batch' is bound twice");
  refuses(g, (berth_dim[]){{"batch", -1}, {"seq", 1}}, 2, "'batch' is bound to -1");
  refuses(g, (berth_dim[]){{"batch", 1}, {NULL, 1}}, 2, "no name");
  refuses(g, (berth_dim[]){{NULL, 1}, {"batch", 1}}, 2, "no name");
  refuses(g, NULL, 2, "counted but not given");
  refuses(g, (berth_dim[]){{"batch", INT64_C(1) << 40}, {"seq", INT64_C(1) << 40}}, 2, "'x'");
  refuses(g, (berth_dim[]){{"batch", INT64_MAX}, {"seq", INT64_MAX}}, 2, "'x'");
  berth_error err;
  berth_graph *bound;
  test_expect_error(berth_graph_bind(NULL, NULL, 0, &bound, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_bind(g, NULL, 0, NULL, &err), BERTH_INVALID, &err, NULL);
}

/* Two names that were let through as equal turn out different. */
static void finds_shapes_that_do_not_fit_once_bound(void **state) {
  berth_graph *g = graph_parse(((berth_graph *)*state)->ctx,
                               "graph \"f\" { input %x : f32[n, 4] input %y : f32[m, 4]\n"
                               "%a = concat(%x, %x) {axis = 0} %z = add(%a, %y) output \"z\" = %z }");
  berth_graph *bound;
  berth_error err;
  refuses(g, (berth_dim[]){{"n", 2}, {"m", 3}}, 2, "node 'z' (add)");
  TEST_OK(berth_graph_bind(g, (berth_dim[]){{"n", 2}, {"m", 4}}, 2, &bound, &err));
  EXPECT(bound, "z", 4, 4);
  berth_graph_destroy(bound);
  berth_graph_destroy(g);
}

static void a_bound_graph_binds_again(void **state) {
  berth_graph *g = *state, *bound, *again;
  berth_error err;
  TEST_OK(berth_graph_bind(g, (berth_dim[]){{"batch", 2}, {"seq", 2}}, 2, &bound, &err));
  TEST_OK(berth_graph_bind(bound, NULL, 0, &again, &err));
  assert_true(berth_graph_equal(bound, again));
  refuses(bound, (berth_dim[]){{"batch", 2}}, 1, "it has none");
  berth_graph_destroy(bound);
  berth_graph_destroy(again);
}

static void clones(void **state) {
  berth_graph *g = *state, *clone;
  berth_error err;
  berth_value v;
  TEST_OK(berth__graph_clone(g, &clone, &err));
  assert_true(berth_graph_equal(g, clone));
  assert_int_equal(berth_graph_n_dims(clone), berth_graph_n_dims(g));
  for (uint32_t i = 0; i < berth_graph_n_dims(g); i++)
    assert_string_equal(berth_graph_dim_name(clone, i), berth_graph_dim_name(g, i));
  TEST_OK(berth_graph_input(clone, "more", BERTH_F32, BERTH_SHAPE(1), &v, &err));
  assert_false(berth_graph_equal(g, clone));
  assert_int_equal(berth_graph_find(g, "more"), BERTH_VALUE_NONE);
  berth_graph_destroy(clone);
}

/* Attributes that are at their default, given as something else, or lists of names, all come over. */
static void clones_every_attribute(void **state) {
  berth_graph *g =
      graph_parse(((berth_graph *)*state)->ctx,
                  "graph \"a\" { input %x : f32[n, 2, 8, 8] %p = pad(%x) {pads = [0,0,1,1,0,0,1,1]}\n"
                  "%q = max_pool(%p) {kernel = [2, 2], strides = [2, 2]} %c = clamp(%q) {max = 6}\n"
                  "%r = reshape(%c) {shape = [n, 50]} %k = cast(%r) {to = \"f16\"} %s = cumsum(%k) {axis = 0}\n"
                  "output \"s\" = %s }");
  berth_graph *clone;
  berth_error err;
  TEST_OK(berth__graph_clone(g, &clone, &err));
  assert_true(berth_graph_equal(g, clone));
  graph_round_trip(clone);
  berth_graph_destroy(clone);
  berth_graph_destroy(g);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(binds_and_infers_again),
      TEST(binds_attributes),
      TEST(the_bound_graph_outlives_its_origin),
      TEST(binds_to_zero),
      TEST(refuses_wrong_bindings),
      TEST(finds_shapes_that_do_not_fit_once_bound),
      TEST(a_bound_graph_binds_again),
      TEST(clones),
      TEST(clones_every_attribute),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
