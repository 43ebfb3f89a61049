/* One interval for all elements of a value: sizes that a run computes from data (the height of a box) have an upper
 * bound if the data was clipped before, however many boxes there are. Intervals follow elements through nodes that move
 * them and through arithmetic; where a size is needed, enclose.c makes bounds of its elements from its interval.
 *
 * Bounds are rounded outwards, since kernels round. NaN is in no interval: a size computed from it fails the run, which
 * checks every extent against its bound.
 *
 * Before a graph is bound, its extents and what follows from them have no numbers yet. They get a nominal interval: it
 * only says that there will be one, which tells whether sizes will have bounds (fix.c). */
#include <math.h>

#include "graph/graph.h"

#define MOST_READ 256 /* elements of a constant that are looked at */
#define EXACT 0x1p53  /* larger integers would be rounded */

typedef berth__interval interval;

static const interval everything = {.low = -INFINITY, .high = INFINITY};

static const interval nominal = {.low = 1, .high = 0x1p30, .is_known = true, .is_nominal = true};

static interval make(double low, double high) {
  return low <= high ? (interval){.low = low, .high = high, .is_known = true} : everything;
}
static interval hull(interval a, interval b) { return make(fmin(a.low, b.low), fmax(a.high, b.high)); }
static interval from_zero_to(double high) { return make(0, fmax(high, 0)); }

static interval of_elements(const berth__value *value, const berth__blob *low, const berth__blob *high) {
  const berth_tensor least = berth__value_tensor(value, berth__blob_data(low));
  const berth_tensor most = berth__value_tensor(value, berth__blob_data(high));
  interval all = {.low = INFINITY, .high = -INFINITY};
  int64_t count;
  if (!berth__shape_count(&value->shape, &count) || count > MOST_READ) return everything;
  for (int64_t i = 0; i < count; i++) {
    const double a = berth__load_f64(&least, i), b = berth__load_f64(&most, i);
    if (isnan(a) || isnan(b)) return everything;
    all = (interval){.low = fmin(all.low, a), .high = fmax(all.high, b)};
  }
  return make(all.low, all.high);
}

static interval of_type(berth_type type) {
  int64_t low, high;
  if (type != BERTH_BOOL && type != BERTH_I8 && type != BERTH_U8) return everything;
  berth__int_limits(type, &low, &high);
  return make((double)low, (double)high);
}

static interval of_value(const berth_graph *graph, berth_value id) {
  if (id == BERTH_VALUE_NONE) return everything;
  const berth__value *value = &graph->values[id];
  if (berth_type_storage(value->type).elements > 1) return everything;
  if (value->blob != NULL) return of_elements(value, value->blob, value->blob);
  if (value->interval.is_known) return value->interval;
  return value->low != NULL ? of_elements(value, value->low, value->high) : of_type(value->type);
}

/* The largest extent that an operand can have: indices are below it. */
static double largest_extent(const berth_graph *graph, berth_value id) {
  const berth__shape *shape = &graph->values[id].shape;
  double most = 0;
  for (uint32_t i = 0; i < shape->rank; i++)
    most = fmax(most, berth__dim_is_fixed(shape->dim[i]) ? (double)shape->dim[i] : nominal.high);
  return most;
}

/* ---- Arithmetic ---- */

/* Of the four results at the ends. */
static interval corners(const double at[4]) {
  for (int i = 0; i < 4; i++)
    if (isnan(at[i])) return everything;
  return make(fmin(fmin(at[0], at[1]), fmin(at[2], at[3])), fmax(fmax(at[0], at[1]), fmax(at[2], at[3])));
}

static interval product_of(interval a, interval b) {
  return corners((double[]){a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
}

/* Integers are divided towards zero. */
static interval quotient_of(interval a, interval b) {
  if (!(b.low > 0)) return everything;
  return corners((double[]){a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
}

static interval of_unary(berth__op_code code, const berth_attr *attrs, interval a) {
  switch (code) {
    case BERTH__OP_neg: return make(-a.high, -a.low);
    case BERTH__OP_abs: return make(a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, fmax(-a.low, a.high));
    case BERTH__OP_relu: return make(fmax(a.low, 0), fmax(a.high, 0));
    case BERTH__OP_floor: return make(floor(a.low), floor(a.high));
    case BERTH__OP_ceil: return make(ceil(a.low), ceil(a.high));
    case BERTH__OP_round: return make(floor(a.low), ceil(a.high));
    case BERTH__OP_exp: return make(exp(a.low), exp(a.high));
    case BERTH__OP_sqrt: return a.low >= 0 ? make(sqrt(a.low), sqrt(a.high)) : everything;
    case BERTH__OP_clamp: {
      const double low = attrs[BERTH__CLAMP_MIN].f, high = attrs[BERTH__CLAMP_MAX].f;
      return make(fmin(fmax(a.low, low), high), fmin(fmax(a.high, low), high));
    }
    case BERTH__OP_sigmoid:
    case BERTH__OP_softmax: return make(0, 1);
    case BERTH__OP_tanh:
    case BERTH__OP_sign: return make(-1, 1);
    default: return everything;
  }
}

static interval of_binary(berth__op_code code, interval a, interval b) {
  switch (code) {
    case BERTH__OP_add: return make(a.low + b.low, a.high + b.high);
    case BERTH__OP_sub: return make(a.low - b.high, a.high - b.low);
    case BERTH__OP_mul: return product_of(a, b);
    case BERTH__OP_div: return quotient_of(a, b);
    case BERTH__OP_min: return make(fmin(a.low, b.low), fmin(a.high, b.high));
    case BERTH__OP_max: return make(fmax(a.low, b.low), fmax(a.high, b.high));
    default: return everything;
  }
}

/* ---- Nodes ---- */

static interval of_all_operands(const berth_graph *graph, const berth__node *node, uint32_t from) {
  interval all = of_value(graph, node->in[from]);
  for (uint32_t i = from + 1; i < node->n_in; i++) all = hull(all, of_value(graph, node->in[i]));
  return all;
}

/* Result 0 of ops whose results are elements of operands, or places in them. */
static interval of_moved(const berth_graph *graph, const berth__node *node) {
  switch (node->op->code) {
    case BERTH__OP_identity:
    case BERTH__OP_reshape:
    case BERTH__OP_flatten:
    case BERTH__OP_squeeze:
    case BERTH__OP_unsqueeze:
    case BERTH__OP_transpose:
    case BERTH__OP_narrow:
    case BERTH__OP_split:
    case BERTH__OP_expand:
    case BERTH__OP_tile:
    case BERTH__OP_gather:
    case BERTH__OP_gather_elements:
    case BERTH__OP_gather_nd:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min:
    case BERTH__OP_top_k:
    case BERTH__OP_cast: return of_value(graph, node->in[0]);
    case BERTH__OP_concat: return of_all_operands(graph, node, 0);
    case BERTH__OP_where: return of_all_operands(graph, node, BERTH__WHERE_A);
    case BERTH__OP_choose: return of_all_operands(graph, node, BERTH__CHOOSE_THEN);
    case BERTH__OP_shape: return from_zero_to(largest_extent(graph, node->in[0]));
    case BERTH__OP_non_zero:
    case BERTH__OP_arg_max:
    case BERTH__OP_arg_min: return from_zero_to(largest_extent(graph, node->in[0]) - 1);
    case BERTH__OP_loop_begin: return from_zero_to(of_value(graph, node->in[BERTH__LOOP_TRIPS]).high - 1);
    default: return everything;
  }
}

/* These may exceed what the type holds, and then wrap. */
static bool may_overflow(berth__op_code code) {
  return code == BERTH__OP_add || code == BERTH__OP_sub || code == BERTH__OP_mul || code == BERTH__OP_div ||
         code == BERTH__OP_neg || code == BERTH__OP_abs || code == BERTH__OP_cast;
}

static interval in_integers(berth__op_code code, berth_type type, interval a) {
  int64_t low, high;
  if (type == BERTH_BOOL) return of_type(type);
  if (!berth__type_is_int(type)) return everything;
  berth__int_limits(type, &low, &high);
  if (code == BERTH__OP_cast || code == BERTH__OP_div) a = make(floor(a.low), ceil(a.high));
  const bool fits = a.low >= (double)low && a.high <= (double)high && a.low >= -EXACT && a.high <= EXACT;
  return fits || !may_overflow(code) ? a : everything;
}

/* The end of an interval of floats, moved outwards by `slack` of itself. Rounding to nearest never passes a number that
 * the type has, so whole numbers stay. */
static double outwards(double end, double direction, berth_type type, bool is_approximate) {
  const bool is_short = type == BERTH_F16 || type == BERTH_BF16;
  const bool is_whole = end == floor(end) && fabs(end) <= (is_short ? 0x1p8 : 0x1p24);
  return is_whole && !is_approximate ? end : end + direction * fabs(end) * (is_short ? 0x1p-7 : 0x1p-20);
}

static interval in_type(berth__op_code code, berth_type type, interval a) {
  const bool is_approximate =
      code == BERTH__OP_exp || code == BERTH__OP_sigmoid || code == BERTH__OP_softmax || code == BERTH__OP_tanh;
  if (!a.is_known || !berth__type_is_float(type)) return a.is_known ? in_integers(code, type, a) : everything;
  return make(outwards(a.low, -1, type, is_approximate), outwards(a.high, 1, type, is_approximate));
}

static interval of_node(const berth_graph *graph, const berth__node *node) {
  const interval moved = of_moved(graph, node);
  if (moved.is_known || node->in[0] == BERTH_VALUE_NONE) return moved;
  if (node->n_in == 1) return of_unary(node->op->code, node->attrs, of_value(graph, node->in[0]));
  return node->n_in == 2 ? of_binary(node->op->code, of_value(graph, node->in[0]), of_value(graph, node->in[1]))
                         : everything;
}

/* Whether it follows from constants and extents, though perhaps not from known ones. */
static bool is_nominal(const berth_graph *graph, const berth__node *node) {
  if (graph->is_bound || node->op->family->is_loop || node->op->family->is_random) return false;
  for (uint32_t i = 0; i < node->n_in && !berth__op_reads_shape_only(node->op); i++) {
    const berth__value *value = node->in[i] != BERTH_VALUE_NONE ? &graph->values[node->in[i]] : NULL;
    if (value != NULL && value->blob == NULL && !value->interval.is_nominal) return false;
  }
  return true;
}

/* Rows that no iteration has filled are 0. */
static void of_stacked(berth_graph *graph, const berth__node *node) {
  const uint32_t n_carried = berth__loop_end_carried(node->n_in, node->n_out);
  const uint32_t scanned = BERTH__LOOP_END_CARRIED + 2 * n_carried, stacked = BERTH__LOOP_LAST + n_carried;
  for (uint32_t i = 0; scanned + i < node->n_in; i++)
    graph->values[node->out[stacked + i]].interval = hull(of_value(graph, node->in[scanned + i]), make(0, 0));
}

void berth__graph_find_interval(berth_graph *graph, uint32_t index) {
  const berth__node *node = &graph->nodes[index];
  if (node->op->code == BERTH__OP_CUSTOM || node->n_in == 0) return;
  if (node->op->code == BERTH__OP_loop_end) {
    of_stacked(graph, node);
    return;
  }
  const bool follows = is_nominal(graph, node);
  const interval found = follows ? nominal : of_node(graph, node);
  const uint32_t n = follows || node->op->code == BERTH__OP_split ? node->n_out : 1;
  for (uint32_t i = 0; i < n; i++) {
    berth__value *result = &graph->values[node->out[i]];
    result->interval = follows ? nominal : in_type(node->op->code, result->type, found);
  }
}
