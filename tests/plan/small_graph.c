#include "plan/small_graph.h"

#include "support.h"

static berth_value add(berth_graph *graph, const char *op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                       size_t n_attrs) {
  berth_error err;
  berth_value out;
  TEST_OK(berth_graph_add(graph, op, in, n_in, attrs, n_attrs, &out, 1, &err));
  return out;
}

/* Rows of 16 floats, up to eight of them; every node is one that the planner treats specially. */
static berth_value add_random(berth_graph *graph, const berth_value *from, uint32_t n, uint64_t *random) {
  berth_error err;
  const berth_value x = from[test_random(random) % n], y = from[test_random(random) % n];
  berth_value_info a = BERTH_VALUE_INFO_INIT, b = BERTH_VALUE_INFO_INIT;
  TEST_OK(berth_graph_value(graph, x, &a, &err));
  TEST_OK(berth_graph_value(graph, y, &b, &err));
  const int64_t rows = a.shape.dim[0].extent, axis = 0, one = 1, keep = rows > 1 ? rows / 2 : 1;
  const berth_value pair[] = {x, y};
  const berth_attr sums[] = {berth_attr_ints("axes", &axis, 1), berth_attr_int("keepdims", one)};
  const int64_t start = 0;
  const berth_attr cuts[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                             berth_attr_ints("ends", &keep, 1)};
  switch (test_random(random) % 7) {
    case 0: return add(graph, "tanh", &x, 1, NULL, 0);
    case 1: return add(graph, "reduce_sum", &x, 1, sums, 2);
    case 2: return add(graph, "narrow", &x, 1, cuts, 3); /* a view */
    case 3:
    case 4:
      if (rows == b.shape.dim[0].extent || rows == 1 || b.shape.dim[0].extent == 1)
        return add(graph, "add", pair, 2, NULL, 0);
      return add(graph, "softmax", &x, 1, NULL, 0);
    case 5:
      if (rows + b.shape.dim[0].extent <= 8) {
        const int64_t repeats[] = {2, 1};
        const berth_attr attr = berth_attr_ints("repeats", repeats, 2);
        return add(graph, "tile", &x, 1, &attr, 1);
      }
      return add(graph, "exp", &x, 1, NULL, 0);
    default: return add(graph, "cumsum", &x, 1, NULL, 0);
  }
}

/* Of two or three values, some of which may be the same. */
static berth_value add_concat(berth_graph *graph, const berth_value *from, uint32_t n, uint64_t *random) {
  berth_value parts[3];
  const uint32_t n_parts = 2 + (uint32_t)(test_random(random) % 2);
  const berth_attr axis = berth_attr_int("axis", 0);
  for (uint32_t i = 0; i < n_parts; i++) parts[i] = from[test_random(random) % n];
  return add(graph, "concat", parts, n_parts, &axis, 1);
}

berth_graph *small_graph_with(berth_context *ctx, uint64_t seed, uint32_t n_nodes, bool with_concats) {
  berth_graph *graph;
  berth_error err;
  berth_value values[SMALL_GRAPH_NODES + 2];
  uint64_t random = seed;
  uint32_t n = 0;
  TEST_OK(berth_graph_create(ctx, "small", &graph, &err));
  TEST_OK(berth_graph_input(graph, "a", BERTH_F32, BERTH_SHAPE(4, 16), &values[n++], &err));
  TEST_OK(berth_graph_input(graph, "b", BERTH_F32, BERTH_SHAPE(1, 16), &values[n++], &err));
  values[n] = add(graph, "add", values, 2, NULL, 0); /* an input without readers exists only at the first step */
  n++;
  while (n < n_nodes + 2) {
    const uint32_t back = test_random(&random) % 3 == 0 ? n : (n < 4 ? n : 4); /* mostly one of the last ones */
    if (with_concats && test_random(&random) % 3 == 0)
      values[n] = add_concat(graph, values + n - back, back, &random);
    else
      values[n] = add_random(graph, values + n - back, back, &random);
    n++;
  }
  TEST_OK(berth_graph_output(graph, "last", values[n - 1], &err));
  if (test_random(&random) % 2)
    TEST_OK(berth_graph_output(graph, "other", values[2 + test_random(&random) % n_nodes], &err));
  return graph;
}
