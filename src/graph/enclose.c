/* Bounds of elements that only a run computes.
 *
 * The shape of a value with a bounded extent is such a tensor: from 0 to the bound. Models compute with it (a count
 * becomes the end of a range, or an extent of a reshape), and the results need upper bounds, too. Monotonic ops get
 * them by running their kernel on the lower bounds and on the upper bounds of the operands. An element whose bounds are
 * equal is known, so the fixed extents of a partly bounded shape are still folded.
 *
 * Sizes may also be computed from data whose elements lie in a known interval (interval.c). */
#include <float.h>
#include <math.h>

#include "graph/graph.h"

#define MAX_BYTES 65536 /* shape arithmetic is small */

typedef enum trend {
  NONE,
  SHAPE,        /* the extents of operand 0 */
  RISES,        /* increasing in every operand */
  RISES_FROM_0, /* increasing in every operand, if none is negative */
  FIRST_RISES,  /* increasing in operand 0; the others must be known */
  DIVIDES,      /* the same, and operand 1 must be positive */
  SUBTRACTS,    /* increasing in operand 0, decreasing in operand 1 */
  FALLS,        /* decreasing in operand 0, increasing in operand 1 */
  EQUALS,       /* eq and ne */
  CHOOSES,      /* where */
} trend;

static trend trend_of(const berth__op *op) {
  switch (op->code) {
    case BERTH__OP_shape:
    case BERTH__OP_size: return SHAPE;
    case BERTH__OP_identity:
    case BERTH__OP_cast:
    case BERTH__OP_floor:
    case BERTH__OP_ceil:
    case BERTH__OP_round:
    case BERTH__OP_relu:
    case BERTH__OP_add:
    case BERTH__OP_min:
    case BERTH__OP_max:
    case BERTH__OP_concat: return RISES;
    case BERTH__OP_mul:
    case BERTH__OP_sqrt:
    case BERTH__OP_reduce_prod: return RISES_FROM_0;
    case BERTH__OP_div: return DIVIDES;
    case BERTH__OP_gt:
    case BERTH__OP_ge:
    case BERTH__OP_sub: return SUBTRACTS;
    case BERTH__OP_lt:
    case BERTH__OP_le: return FALLS;
    case BERTH__OP_eq:
    case BERTH__OP_ne: return EQUALS;
    case BERTH__OP_where: return CHOOSES;
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
    case BERTH__OP_reduce_sum:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min: return FIRST_RISES;
    default: return NONE;
  }
}

static bool is_exact(const berth__value *value) { return value->blob != NULL; }
static bool is_enclosed(const berth__value *value) { return value->blob != NULL || value->low != NULL; }

static berth_tensor graph_enclose_end_of(const berth__value *value, bool upper) {
  const berth__blob *end = value->blob != NULL ? value->blob : upper ? value->high : value->low;
  return berth__value_tensor(value, end != NULL ? berth__blob_data(end) : NULL);
}

static bool is_at_least(const berth_tensor *tensor, double least) {
  const int64_t count = berth__count(tensor);
  for (int64_t i = 0; i < count; i++)
    if (!(berth__load_f64(tensor, i) >= least)) return false;
  return true;
}

/* Whether enough is known about the operands for the trend to hold. */
static bool holds(const berth_graph *graph, const berth__node *node, trend t) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    const berth__value *value = &graph->values[node->in[i]];
    if (value->bounded != 0 || !is_enclosed(value)) return false;
    const bool must_be_known = i > 0 && (t == FIRST_RISES || t == DIVIDES);
    if (must_be_known && !is_exact(value)) return false;
    const berth_tensor low = graph_enclose_end_of(value, false);
    if (t == RISES_FROM_0 && !is_at_least(&low, 0)) return false;
    if (t == DIVIDES && i == 1 && !is_at_least(&low, DBL_MIN)) return false;
  }
  return true;
}

static bool is_of_interest(const berth_graph *graph, const berth__node *node, trend t) {
  bool has_ends = false;
  for (uint32_t i = 0; i < node->n_in; i++)
    has_ends = has_ends || (node->in[i] != BERTH_VALUE_NONE && graph->values[node->in[i]].low != NULL);
  if (t == SHAPE) return graph->values[node->in[0]].bounded != 0;
  return t != NONE && has_ends && holds(graph, node, t);
}

static bool graph_enclose_is_small(const berth_graph *graph, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__value *value = &graph->values[node->out[i]];
    uint64_t size;
    if (value->bounded != 0 || !berth__value_size(value, &size) || size > MAX_BYTES) return false;
  }
  return true;
}

static void set_operands(const berth_graph *graph, const berth__node *node, trend t, bool upper, berth_tensor *in) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    const berth__value *value = &graph->values[node->in[i]];
    const bool is_crossed = (t == SUBTRACTS && i == 1) || (t == FALLS && i == 0);
    in[i] = graph_enclose_end_of(value, upper != is_crossed);
    for (uint32_t d = 0; d < value->shape.rank && t == SHAPE && !upper; d++)
      if (value->bounded >> d & 1u) in[i].dim[d] = 0;
  }
}

/* Two numbers are certainly equal if both are known and the same, and possibly equal if their ranges overlap. */
static void compare_ranges(const berth_graph *graph, const berth__node *node, bool *least, bool *most) {
  const berth__value *a = &graph->values[node->in[0]], *b = &graph->values[node->in[1]];
  const berth__shape *shape = &graph->values[node->out[0]].shape;
  const berth_tensor low_a = graph_enclose_end_of(a, false), high_a = graph_enclose_end_of(a, true);
  const berth_tensor low_b = graph_enclose_end_of(b, false), high_b = graph_enclose_end_of(b, true);
  const bool is_ne = node->op->code == BERTH__OP_ne;
  int64_t count = 0, stride[2][BERTH_MAX_RANK];
  berth__walk walk;
  berth__shape_count(shape, &count);
  berth__broadcast_strides(&low_a, shape->rank, shape->dim, stride[0]);
  berth__broadcast_strides(&low_b, shape->rank, shape->dim, stride[1]);
  berth__walk_start(&walk, shape->rank, shape->dim, 2, (const int64_t *const[]){stride[0], stride[1]}, 0);
  for (int64_t i = 0; i < count; i++, berth__walk_next(&walk)) {
    const double la = berth__load_f64(&low_a, walk.index[0]), ha = berth__load_f64(&high_a, walk.index[0]);
    const double lb = berth__load_f64(&low_b, walk.index[1]), hb = berth__load_f64(&high_b, walk.index[1]);
    const bool surely = la == ha && lb == hb && la == lb, maybe = la <= hb && lb <= ha;
    least[i] = is_ne ? !maybe : surely;
    most[i] = is_ne ? !surely : maybe;
  }
}

static berth_status enclose_equal(const berth_graph *graph, const berth__node *node, berth__blob **ends) {
  uint64_t size = 0;
  berth__value_size(&graph->values[node->out[0]], &size);
  for (int i = 0; i < 2; i++) {
    ends[i] = berth__blob_create(graph->ctx, NULL, size);
    if (ends[i] == NULL) return BERTH_NOMEM;
  }
  compare_ranges(graph, node, (bool *)(uintptr_t)berth__blob_data(ends[0]),
                 (bool *)(uintptr_t)berth__blob_data(ends[1]));
  return BERTH_OK;
}

/* Stores the minimum (or maximum) of two bounds in the first. */
static void merge_end(const berth__value *value, berth__blob *into, const berth__blob *other, bool upper) {
  const berth_tensor a = berth__value_tensor(value, berth__blob_data(into));
  const berth_tensor b = berth__value_tensor(value, berth__blob_data(other));
  const size_t size = berth_type_size(value->type);
  const int64_t count = berth__count(&a);
  for (int64_t i = 0; i < count; i++)
    if ((berth__load_f64(&b, i) > berth__load_f64(&a, i)) == upper)
      memcpy((char *)a.data + (size_t)i * size, (const char *)b.data + (size_t)i * size, size);
}

/* A condition that may go either way combines both. */
static berth_status enclose_where(const berth_graph *graph, const berth__node *node, bool upper, berth_tensor *in,
                                  berth__blob **end) {
  berth__blob *other = NULL;
  in[0] = graph_enclose_end_of(&graph->values[node->in[0]], false);
  berth_status status = berth__graph_compute(graph, node, in, end, NULL);
  in[0] = graph_enclose_end_of(&graph->values[node->in[0]], true);
  if (status == BERTH_OK) status = berth__graph_compute(graph, node, in, &other, NULL);
  if (status == BERTH_OK) merge_end(&graph->values[node->out[0]], *end, other, upper);
  berth__blob_release(other);
  return status;
}

/* A kernel that refuses its operands leaves the results open, like an op without a trend. */
static berth_status compute_ends(const berth_graph *graph, const berth__node *node, trend t, berth_tensor *in,
                                 berth__blob **ends, bool *done, berth_error *err) {
  berth_status status = t == EQUALS ? enclose_equal(graph, node, ends) : BERTH_OK;
  for (uint32_t upper = 0; upper < 2 && t != EQUALS && status == BERTH_OK; upper++) {
    set_operands(graph, node, t, upper != 0, in);
    berth__blob **end = ends + upper * node->n_out;
    status = t == CHOOSES ? enclose_where(graph, node, upper != 0, in, end)
                          : berth__graph_compute(graph, node, in, end, NULL);
  }
  if (status == BERTH_NOMEM) return berth__fail_nomem(err, "the limits of a value");
  *done = status == BERTH_OK;
  return BERTH_OK;
}

static bool ends_meet(const berth_graph *graph, const berth__node *node, berth__blob *const *ends) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    uint64_t size = 0;
    berth__value_size(&graph->values[node->out[i]], &size);
    if (size != 0 && memcmp(berth__blob_data(ends[i]), berth__blob_data(ends[node->n_out + i]), (size_t)size) != 0)
      return false;
  }
  return true;
}

/* Takes ownership of the bounds; the array keeps none. */
static void keep_ends(berth_graph *graph, const berth__node *node, berth__blob **ends) {
  const bool is_known = ends_meet(graph, node, ends);
  for (uint32_t i = 0; i < node->n_out; i++) {
    berth__value *value = &graph->values[node->out[i]];
    if (is_known) {
      value->blob = ends[i];
      value->data = berth__blob_data(ends[i]);
    } else {
      value->low = ends[i];
      value->high = ends[node->n_out + i];
      ends[node->n_out + i] = NULL;
    }
    ends[i] = NULL;
  }
}

static berth_status enclose_results(berth_graph *graph, uint32_t index, berth_error *err) {
  const berth__node *node = &graph->nodes[index];
  const trend t = trend_of(node->op);
  bool done = false;
  if (is_enclosed(&graph->values[node->out[0]]) || !is_of_interest(graph, node, t) ||
      !graph_enclose_is_small(graph, node))
    return BERTH_OK;
  berth__blob **ends = berth__alloc_array_zero(graph->ctx, 2 * (size_t)node->n_out, sizeof *ends);
  berth_tensor *in = berth__alloc_array_zero(graph->ctx, node->n_in, sizeof *in);
  berth_status status = BERTH_OK;
  if (ends == NULL || in == NULL)
    status = berth__fail_nomem(err, "the limits of a value");
  else
    status = compute_ends(graph, node, t, in, ends, &done, err);
  if (done) keep_ends(graph, node, ends);
  for (uint32_t i = 0; ends != NULL && i < 2 * node->n_out; i++) berth__blob_release(ends[i]);
  berth__free(graph->ctx, ends);
  berth__free(graph->ctx, in);
  return status;
}

/* ---- From intervals ---- */

#define MOST_SIZES 64  /* a list of extents is short */
#define LARGEST 0x1p40 /* larger bounds of sizes bound nothing */

/* A short list of integers may be one of sizes: its elements have the bounds of its interval. */
static berth_status enclose_by_interval(berth_graph *graph, berth__value *value, berth_error *err) {
  const berth__interval *all = &value->interval;
  int64_t count;
  uint64_t size;
  if (is_enclosed(value) || value->bounded != 0 || (value->type != BERTH_I64 && value->type != BERTH_I32))
    return BERTH_OK;
  if (!all->is_known || !(all->low >= -LARGEST) || !(all->high <= LARGEST)) return BERTH_OK;
  if (!berth__shape_count(&value->shape, &count) || count == 0 || count > MOST_SIZES) return BERTH_OK;
  berth__value_size(value, &size);
  berth__blob *low = berth__blob_create(graph->ctx, NULL, size), *high = berth__blob_create(graph->ctx, NULL, size);
  if (low == NULL || high == NULL) {
    berth__blob_release(low);
    berth__blob_release(high);
    return berth__fail_nomem(err, "the limits of a value");
  }
  const berth_tensor least = berth__value_tensor(value, berth__blob_data(low));
  const berth_tensor most = berth__value_tensor(value, berth__blob_data(high));
  for (int64_t i = 0; i < count; i++) {
    berth__store_i64(&least, i, (int64_t)floor(all->low));
    berth__store_i64(&most, i, (int64_t)ceil(all->high));
  }
  value->low = low;
  value->high = high;
  return BERTH_OK;
}

berth_status berth__graph_enclose(berth_graph *graph, uint32_t index, berth_error *err) {
  const berth__node *node = &graph->nodes[index];
  BERTH__TRY(enclose_results(graph, index, err));
  for (uint32_t i = 0; i < node->n_out; i++) BERTH__TRY(enclose_by_interval(graph, &graph->values[node->out[i]], err));
  return BERTH_OK;
}
