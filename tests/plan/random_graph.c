#include "plan/random_graph.h"

#include <stdio.h>

#include "support.h"

#define LARGEST 600 /* elements of one value */
#define MAX_LOOPS 8

typedef struct maker {
  berth_graph *graph;
  uint64_t random;
  uint32_t n_sources;
  berth_value hidden[MAX_LOOPS][2]; /* from and to: values made inside loops */
  uint32_t n_loops, depth;
} maker;

static uint32_t below(maker *m, uint32_t n) { return (uint32_t)(test_random(&m->random) % n); }

static berth_value_info info_of(const maker *m, berth_value value) {
  berth_error err;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  TEST_OK(berth_graph_value(m->graph, value, &info, &err));
  return info;
}

static int64_t count_of(const berth_shape *shape) {
  int64_t count = 1;
  for (uint32_t i = 0; i < shape->rank; i++) count *= shape->dim[i].extent;
  return count;
}

/* Inside a loop that has ended. */
static int is_hidden(const maker *m, berth_value value) {
  if (info_of(m, value).kind != BERTH_VALUE_NODE) return 0;
  for (uint32_t i = 0; i < m->n_loops; i++)
    if (value >= m->hidden[i][0] && value < m->hidden[i][1]) return 1;
  return 0;
}

/* Newer values more often than old ones, so that graphs become deep; no large ones. */
static berth_value pick(maker *m) {
  uint32_t n = berth_graph_n_values(m->graph), window = 8;
  berth_value value = below(m, 3) == 0 || n < window ? below(m, n) : n - 1 - below(m, window);
  berth_value_info info = info_of(m, value);
  return count_of(&info.shape) <= LARGEST && !is_hidden(m, value) ? value : 0;
}

/* One of this type, or after some attempts any. */
static berth_value pick_typed(maker *m, berth_type type) {
  berth_value value = pick(m);
  for (int i = 0; i < 20 && info_of(m, value).type != type; i++) value = pick(m);
  return value;
}

/* Ops that do not accept these operands are skipped: the graph is unchanged. */
static int add(maker *m, const char *op, const berth_value *in, size_t n_in, const berth_attr *attrs, size_t n_attrs,
               size_t n_out) {
  berth_error err;
  berth_value out[8];
  return berth_graph_add(m->graph, op, in, n_in, attrs, n_attrs, out, n_out, &err) == BERTH_OK;
}

static berth_value add_source(maker *m, berth_type type, berth_shape shape) {
  berth_error err;
  berth_value value;
  char name[32];
  static const float numbers[LARGEST] = {0.5f, -1, 2};
  snprintf(name, sizeof name, "s%u", m->n_sources++);
  uint32_t kind = below(m, 5);
  if (kind < 2)
    TEST_OK(berth_graph_param(m->graph, name, type, shape, &value, &err));
  else if (kind < 4 || type != BERTH_F32)
    TEST_OK(berth_graph_input(m->graph, name, type, shape, &value, &err));
  else
    TEST_OK(berth_graph_constant(m->graph, name, type, shape, numbers, (size_t)count_of(&shape) * 4, &value, &err));
  return value;
}

static berth_shape random_shape(maker *m) {
  berth_shape shape = {.rank = 1 + below(m, 3)};
  for (uint32_t i = 0; i < shape.rank; i++) shape.dim[i].extent = below(m, 40) == 0 ? 0 : 1 + below(m, 6);
  return shape;
}

static void add_unary(maker *m) {
  static const char *const ops[] = {"relu", "neg", "abs", "tanh", "sigmoid", "identity", "gelu", "sign"};
  berth_value x = pick(m);
  add(m, ops[below(m, 8)], &x, 1, NULL, 0, 1);
}

static void add_cast(maker *m) {
  static const char *const types[] = {"f32", "f32", "f64", "f16", "i32", "i8", "bool", "i64"};
  berth_value x = pick(m);
  berth_attr to = berth_attr_string("to", types[below(m, 8)]);
  add(m, "cast", &x, 1, &to, 1, 1);
}

static void add_binary(maker *m) {
  static const char *const ops[] = {"add", "sub", "mul", "max", "lt", "eq", "sub", "min"};
  berth_value in[2] = {pick(m), 0};
  berth_value_info x = info_of(m, in[0]);
  berth_shape other = x.shape;
  if (below(m, 4) == 0)
    in[1] = in[0];
  else if (below(m, 3) == 0) { /* broadcast */
    for (uint32_t i = 0; i < other.rank; i++)
      if (below(m, 2)) other.dim[i].extent = 1;
    in[1] = add_source(m, x.type, other);
  } else
    in[1] = pick_typed(m, x.type);
  if (below(m, 2)) {
    berth_value swap = in[0];
    in[0] = in[1];
    in[1] = swap;
  }
  if (!add(m, ops[below(m, 8)], in, 2, NULL, 0, 1)) {
    in[1] = in[0];
    add(m, "add", in, 2, NULL, 0, 1);
  }
}

static void add_where(maker *m) {
  berth_value in[3] = {pick_typed(m, BERTH_BOOL), pick(m), 0};
  in[2] = pick_typed(m, info_of(m, in[1]).type);
  add(m, "where", in, 3, NULL, 0, 1);
}

/* Factors of the count, in any order. */
static void add_reshape(maker *m) {
  berth_value x = pick(m);
  berth_value_info info = info_of(m, x);
  int64_t rest = count_of(&info.shape);
  berth_dim dims[4] = {{0}};
  uint32_t rank = 1 + below(m, 4);
  for (uint32_t i = 0; i < rank; i++) {
    int64_t part = i + 1 == rank ? rest : 1 + below(m, 6);
    if (i + 1 != rank && (rest == 0 || rest % part != 0)) part = 1;
    dims[i].extent = part;
    if (rest != 0) rest /= part;
  }
  berth_attr attrs[] = {berth_attr_dims("shape", dims, rank), berth_attr_int("allowzero", 1)};
  add(m, "reshape", &x, 1, attrs, 2, 1);
}

static void add_squeeze(maker *m) {
  berth_value x = pick(m);
  int64_t axis = below(m, info_of(m, x).shape.rank + 1);
  berth_attr axes = berth_attr_ints("axes", &axis, 1);
  if (info_of(m, x).shape.rank >= 5 || below(m, 2))
    add(m, "squeeze", &x, 1, NULL, 0, 1);
  else
    add(m, "unsqueeze", &x, 1, &axes, 1, 1);
}

static void add_transpose(maker *m) {
  berth_value x = pick(m);
  int64_t perm[BERTH_MAX_RANK];
  uint32_t rank = info_of(m, x).shape.rank;
  for (uint32_t i = 0; i < rank; i++) perm[i] = i;
  for (uint32_t i = rank; i > 1; i--) {
    uint32_t k = below(m, i);
    int64_t swap = perm[k];
    perm[k] = perm[i - 1];
    perm[i - 1] = swap;
  }
  berth_attr attr = berth_attr_ints("perm", perm, rank);
  add(m, "transpose", &x, 1, &attr, 1, 1);
}

static void add_narrow(maker *m) {
  berth_value x = pick(m);
  berth_shape shape = info_of(m, x).shape;
  if (shape.rank == 0) return;
  int64_t axis = below(m, shape.rank), extent = shape.dim[axis].extent;
  int64_t start = below(m, (uint32_t)extent + 1), end = start + below(m, (uint32_t)(extent - start) + 1), step = 1;
  if (below(m, 3) == 0) step = 2;
  if (below(m, 6) == 0) {
    int64_t swap = start;
    start = end - 1;
    end = swap - 1 < 0 ? -100 : swap - 1;
    step = -1;
  }
  if (below(m, 3) != 0 && step > 0 && start == end) end = start + 1;
  berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                        berth_attr_ints("ends", &end, 1), berth_attr_ints("steps", &step, 1)};
  add(m, "narrow", &x, 1, attrs, 4, 1);
}

static void add_split(maker *m) {
  berth_value x = pick(m);
  berth_shape shape = info_of(m, x).shape;
  if (shape.rank == 0) return;
  uint32_t axis = below(m, shape.rank);
  int64_t extent = shape.dim[axis].extent, first = below(m, (uint32_t)extent + 1);
  int64_t parts[2] = {first, extent - first};
  berth_attr attrs[] = {berth_attr_int("axis", axis), berth_attr_ints("parts", parts, 2)};
  add(m, "split", &x, 1, attrs, 2, 2);
}

static void add_expand(maker *m) {
  berth_value x = pick(m);
  berth_shape shape = info_of(m, x).shape;
  if (shape.rank >= 5) return;
  berth_dim dims[BERTH_MAX_RANK];
  uint32_t more = below(m, 2);
  if (more) dims[0] = (berth_dim){.extent = 1 + below(m, 3)};
  for (uint32_t i = 0; i < shape.rank; i++) {
    dims[i + more] = (berth_dim){.extent = shape.dim[i].extent};
    if (shape.dim[i].extent == 1) dims[i + more].extent = 1 + below(m, 4);
  }
  berth_attr attr = berth_attr_dims("shape", dims, shape.rank + more);
  int64_t count = 1;
  for (uint32_t i = 0; i < shape.rank + more; i++) count *= dims[i].extent;
  if (count <= LARGEST) add(m, "expand", &x, 1, &attr, 1, 1);
}

static int joins(const berth_value_info *a, const berth_value_info *b, uint32_t axis) {
  if (a->type != b->type || a->shape.rank != b->shape.rank) return 0;
  for (uint32_t i = 0; i < a->shape.rank; i++)
    if (i != axis && a->shape.dim[i].extent != b->shape.dim[i].extent) return 0;
  return 1;
}

/* Of values that have the right shape, or of parts that are made for it. */
static void add_concat(maker *m) {
  berth_value in[4] = {pick(m)};
  berth_value_info first = info_of(m, in[0]);
  if (first.shape.rank == 0 || count_of(&first.shape) * 4 > LARGEST) return;
  uint32_t axis = below(m, 3) != 0 ? 0 : below(m, first.shape.rank), n = 1 + below(m, 4), n_in = 1;
  for (uint32_t i = 1; i < n; i++) {
    berth_value value = pick_typed(m, first.type);
    for (int tries = 0; tries < 20; tries++) {
      berth_value_info info = info_of(m, value);
      if (joins(&first, &info, axis)) break;
      value = pick(m);
    }
    berth_value_info info = info_of(m, value);
    if (!joins(&first, &info, axis)) {
      value = in[0];
      if (add(m, below(m, 2) ? "exp" : "neg", in, 1, NULL, 0, 1)) value = berth_graph_n_values(m->graph) - 1;
    }
    in[n_in++] = value;
  }
  berth_attr attr = berth_attr_int("axis", axis);
  int64_t count = 0;
  for (uint32_t i = 0; i < n_in; i++) {
    berth_value_info info = info_of(m, in[i]);
    count += count_of(&info.shape);
  }
  if (count <= LARGEST) add(m, "concat", in, n_in, &attr, 1, 1);
}

static void add_reduce(maker *m) {
  static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max"};
  berth_value x = pick(m);
  uint32_t rank = info_of(m, x).shape.rank;
  int64_t axis = below(m, rank + 1);
  berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_int("keepdims", below(m, 2))};
  add(m, ops[below(m, 3)], &x, 1, attrs, 2, 1);
}

static void add_line_op(maker *m) {
  static const char *const ops[] = {"softmax", "layer_norm", "cumsum", "log_softmax", "rms_norm"};
  berth_value x = pick(m);
  uint32_t rank = info_of(m, x).shape.rank;
  berth_attr axis = berth_attr_int("axis", below(m, 2) || rank == 0 ? -1 : (int64_t)below(m, rank));
  add(m, ops[below(m, 5)], &x, 1, &axis, 1, 1);
}

static berth_value add_number(maker *m, int64_t number) {
  berth_error err;
  berth_value value;
  char name[32];
  snprintf(name, sizeof name, "s%u", m->n_sources++);
  TEST_OK(
      berth_graph_constant(m->graph, name, BERTH_I64, (berth_shape){.rank = 0}, &number, sizeof number, &value, &err));
  return value;
}

/* Rows that are part of the value they are written to, or that come from elsewhere. */
static void add_write_rows(maker *m) {
  berth_value in[3] = {pick(m)};
  berth_value_info x = info_of(m, in[0]);
  if (x.shape.rank == 0 || count_of(&x.shape) == 0) return;
  int64_t axis = below(m, x.shape.rank), start = 0, end = 1 + below(m, (uint32_t)x.shape.dim[axis].extent);
  const int64_t room = x.shape.dim[axis].extent - end;
  berth_attr part[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                       berth_attr_ints("ends", &end, 1)};
  x.shape.dim[axis].extent = end;
  if (below(m, 2))
    in[1] = add_source(m, x.type, x.shape);
  else if (add(m, "narrow", in, 1, part, 3, 1))
    in[1] = berth_graph_n_values(m->graph) - 1;
  in[2] = add_number(m, below(m, (uint32_t)room + 1));
  berth_attr attrs[] = {berth_attr_int("axis", axis), berth_attr_int("ring", below(m, 2))};
  add(m, "write_rows", in, 3, attrs, 2, 1);
}

static void add_top_k(maker *m) {
  berth_value x = pick(m);
  berth_attr k = berth_attr_int("k", 1 + below(m, 2));
  add(m, "top_k", &x, 1, &k, 1, 2);
}

static void add_matmul(maker *m) {
  berth_value in[2] = {pick_typed(m, BERTH_F32), 0};
  berth_value_info info = info_of(m, in[0]);
  if (info.shape.rank < 2 || info.shape.rank > 4) return;
  berth_shape right = {.rank = 2};
  right.dim[0].extent = info.shape.dim[info.shape.rank - 1].extent;
  right.dim[1].extent = 1 + below(m, 5);
  if (below(m, 2) && right.dim[0].extent * right.dim[1].extent <= LARGEST)
    in[1] = add_source(m, info.type, right);
  else
    in[1] = pick_typed(m, BERTH_F32);
  add(m, "matmul", in, 2, NULL, 0, 1);
}

/* One packed matrix, sliced in three. */
static void add_attention(maker *m) {
  berth_value x = pick_typed(m, BERTH_F32), in[3];
  berth_value_info info = info_of(m, x);
  if (info.shape.rank != 2 || info.type != BERTH_F32) return;
  int64_t width = info.shape.dim[1].extent / 3, axis = 1;
  if (width == 0) return;
  for (int64_t i = 0; i < 3; i++) {
    int64_t start = i * width, end = start + width;
    berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                          berth_attr_ints("ends", &end, 1)};
    if (!add(m, "narrow", &x, 1, attrs, 3, 1)) return;
    in[i] = berth_graph_n_values(m->graph) - 1;
  }
  berth_attr heads = berth_attr_int("heads", width % 2 == 0 ? 2 : 1);
  add(m, "attention", in, 3, &heads, 1, 1);
}

/* A chain of a few ops on a value; they keep its type and shape. */
static berth_value add_chain(maker *m, berth_value x, uint32_t length) {
  static const char *const ops[] = {"relu", "neg", "abs", "identity", "tanh", "softmax"};
  for (uint32_t i = 0; i < length; i++) {
    berth_value in[2] = {x, x};
    if (below(m, 5) == 0 ? add(m, "add", in, 2, NULL, 0, 1) : add(m, ops[below(m, 6)], in, 1, NULL, 0, 1))
      x = berth_graph_n_values(m->graph) - 1;
  }
  return x;
}

static berth_value pick_condition(maker *m) {
  berth_value value = pick_typed(m, BERTH_BOOL);
  berth_value_info info = info_of(m, value);
  if (info.type == BERTH_BOOL && count_of(&info.shape) == 1) return value;
  return add_source(m, BERTH_BOOL, (berth_shape){.rank = 0});
}

/* Of one value or of two alike, sometimes with a nested choice, sometimes with two choices by one condition. */
static void add_choose(maker *m) {
  berth_value in[3] = {pick_condition(m)}, x = pick_typed(m, BERTH_F32), y = x;
  berth_value_info info = info_of(m, x);
  if (below(m, 2)) y = add_source(m, info.type, info.shape);
  for (uint32_t times = 1 + below(m, 2); times > 0; times--) {
    in[1] = add_chain(m, x, below(m, 4));
    if (below(m, 3) == 0) {
      berth_value inner[3] = {pick_condition(m), add_chain(m, y, below(m, 3)), add_chain(m, x, below(m, 3))};
      if (add(m, "choose", inner, 3, NULL, 0, 1)) y = berth_graph_n_values(m->graph) - 1;
    }
    in[2] = add_chain(m, y, below(m, 4));
    if (!add(m, "choose", in, 3, NULL, 0, 1)) return;
    if (below(m, 2)) x = berth_graph_n_values(m->graph) - 1;
  }
}

static void add_something(maker *m);

#define CARRIED 3

/* A value like this one, derived from it or found among the others. */
static berth_value pick_like(maker *m, berth_value value) {
  berth_value_info want = info_of(m, value);
  for (int i = 0; i < 4; i++) {
    berth_value other = pick_typed(m, want.type);
    berth_value_info info = info_of(m, other);
    int fits = info.type == want.type && info.shape.rank == want.shape.rank;
    for (uint32_t d = 0; fits && d < want.shape.rank; d++) fits = info.shape.dim[d].extent == want.shape.dim[d].extent;
    if (fits) return other;
  }
  return add_chain(m, value, 1 + below(m, 3));
}

static berth_value add_trips(maker *m) { return add_number(m, below(m, 4)); }

/* A loop with a few nodes inside, including loops and choices; trips and conditions are known or not. */
static void add_loop(maker *m) {
  berth_error err;
  uint32_t k = 1 + below(m, CARRIED), n_scanned = below(m, 3);
  berth_value in[4 + 2 * CARRIED + 2], begin[2 + CARRIED], out[2 + CARRIED + 2];
  if (m->depth == 2 || m->n_loops + m->depth >= MAX_LOOPS) return;
  berth_value trips = n_scanned != 0 || below(m, 2) ? add_trips(m) : add_source(m, BERTH_I64, (berth_shape){.rank = 0});
  in[0] = trips;
  in[1] = pick_condition(m);
  for (uint32_t i = 0; i < k; i++) in[2 + i] = i != 0 && below(m, 3) == 0 ? in[2] : pick(m);
  if (berth_graph_add(m->graph, "loop_begin", in, 2 + k, NULL, 0, begin, 2 + k, &err) != BERTH_OK) return;
  m->depth++;
  for (uint32_t n = 1 + below(m, 6); n > 0; n--) add_something(m);
  in[0] = begin[0];
  in[1] = begin[1];
  in[2] = trips;
  in[3] = pick_condition(m);
  for (uint32_t i = 0; i < k; i++) in[4 + i] = begin[2 + i];
  for (uint32_t i = 0; i < k; i++)
    in[4 + k + i] = below(m, 4) == 0 ? pick_like(m, begin[2 + i]) : add_chain(m, begin[2 + i], below(m, 4));
  for (uint32_t i = 0; i < n_scanned; i++) in[4 + 2 * k + i] = pick(m);
  m->depth--;
  TEST_OK(berth_graph_add(m->graph, "loop_end", in, 4 + 2 * k + n_scanned, NULL, 0, out, 2 + k + n_scanned, &err));
  m->hidden[m->n_loops][0] = begin[0];
  m->hidden[m->n_loops++][1] = out[0];
}

static void add_something(maker *m) {
  static void (*const makers[])(maker *) = {
      add_unary,   add_unary,   add_unary,   add_binary, add_binary,    add_binary,  add_cast,      add_where,
      add_reshape, add_reshape, add_squeeze, add_narrow, add_narrow,    add_split,   add_expand,    add_transpose,
      add_concat,  add_concat,  add_concat,  add_reduce, add_line_op,   add_line_op, add_attention, add_matmul,
      add_top_k,   add_choose,  add_choose,  add_loop,   add_write_rows};
  makers[below(m, sizeof makers / sizeof *makers)](m);
}

static void add_outputs(maker *m) {
  berth_error err;
  uint32_t n = berth_graph_n_values(m->graph), n_outputs = 0;
  for (berth_value v = n; v-- > 0;) {
    char name[32];
    int last = v + 1 == n;
    if (!last && below(m, 8) != 0) continue;
    if (is_hidden(m, v)) continue;
    if (!last && info_of(m, v).kind != BERTH_VALUE_NODE && below(m, 4) != 0) continue;
    snprintf(name, sizeof name, "out%u", n_outputs++);
    TEST_OK(berth_graph_output(m->graph, name, v, &err));
  }
}

berth_graph *random_graph(berth_context *ctx, uint64_t seed, uint32_t n_nodes) {
  static const berth_type types[] = {BERTH_F32, BERTH_F32, BERTH_F32, BERTH_F16, BERTH_I32, BERTH_BOOL, BERTH_F64};
  maker m = {.random = seed};
  berth_error err;
  char name[32];
  snprintf(name, sizeof name, "random %llu", (unsigned long long)seed);
  TEST_OK(berth_graph_create(ctx, name, &m.graph, &err));
  for (uint32_t i = 1 + below(&m, 3); i > 0; i--) add_source(&m, types[below(&m, 7)], random_shape(&m));
  for (uint32_t tries = 0; berth_graph_n_nodes(m.graph) < n_nodes && tries < 8 * n_nodes; tries++) add_something(&m);
  add_outputs(&m);
  return m.graph;
}

berth_plan_desc random_options(uint64_t seed) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  uint64_t random = seed, bits = test_random(&random);
  static const uint32_t flags[] = {BERTH_PLAN_PARAMS_OUTSIDE, BERTH_PLAN_INPUTS_OUTSIDE, BERTH_PLAN_CONSTANTS_OUTSIDE,
                                   BERTH_PLAN_INPUTS_DIE,     BERTH_PLAN_NO_INPLACE,     BERTH_PLAN_NO_CONCAT,
                                   BERTH_PLAN_NO_STRIDED,     BERTH_PLAN_NO_REUSE};
  static const uint32_t rarity[] = {4, 4, 4, 2, 5, 5, 5, 16};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (test_random(&random) % rarity[i] == 0) desc.flags |= flags[i];
  desc.order = bits & 1 ? BERTH_ORDER_MEMORY : BERTH_ORDER_SOURCE;
  desc.align = bits & 2 ? 0 : (uint64_t)16 << (bits >> 8) % 6;
  if (bits & 4) desc.guard = bits & 8 ? BERTH_GUARD_AUTO : (bits >> 16) % 100;
  return desc;
}
