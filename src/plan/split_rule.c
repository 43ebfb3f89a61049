/* Which rows of its operands a node needs for some rows of its result.
 *
 * Rows are slices along one axis of the result, and along the same axis of the operands that have it. */
#include "ops/registry.h"
#include "plan/split.h"

typedef enum kind {
  KIND_NONE,
  KIND_ELEMENTS, /* every operand broadcasts to the result */
  KIND_LINES,    /* operand 0 line by line, along an axis or from it on; for a norm's gradient, dy too */
  KIND_PRODUCT,  /* operand 0 row by row, then weights, then operands that broadcast */
  KIND_WINDOW,   /* operand 0 through windows, then weights, then operands that broadcast */
  KIND_SPREAD,   /* operand 0 is spread through windows, then weights, then operands that broadcast */
  KIND_POOL,
  KIND_TRANSPOSE,
  KIND_ROWS /* operand 0 row by row, along the same axis; of a concat, all operands */
} kind;

static kind plan_split_rule_kind_of(const berth__op *op) {
  const berth__family *f = op->family;
  if (f == &berth__family_unary || f == &berth__family_clamp || f == &berth__family_cast ||
      f == &berth__family_binary || f == &berth__family_compare || f == &berth__family_where ||
      f == &berth__family_chain || f == &berth__family_identity)
    return KIND_ELEMENTS;
  switch (op->code) {
    case BERTH__OP_softmax:
    case BERTH__OP_log_softmax:
    case BERTH__OP_layer_norm:
    case BERTH__OP_rms_norm:
    case BERTH__OP_layer_norm_grad:
    case BERTH__OP_rms_norm_grad: return KIND_LINES;
    case BERTH__OP_product:
    case BERTH__OP_qproduct:
    case BERTH__OP_matmul: return KIND_PRODUCT;
    case BERTH__OP_conv_last:
    case BERTH__OP_depthwise:
    case BERTH__OP_conv_winograd:
    case BERTH__OP_qconv_last:
    case BERTH__OP_qdepthwise: return KIND_WINDOW;
    case BERTH__OP_conv_transpose_last: return KIND_SPREAD;
    case BERTH__OP_max_pool:
    case BERTH__OP_avg_pool: return KIND_POOL;
    case BERTH__OP_transpose: return KIND_TRANSPOSE;
    case BERTH__OP_concat:
    case BERTH__OP_narrow:
    case BERTH__OP_reshape:
    case BERTH__OP_squeeze:
    case BERTH__OP_unsqueeze:
    case BERTH__OP_reduce_sum:
    case BERTH__OP_reduce_mean:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min: return KIND_ROWS;
    default: return KIND_NONE;
  }
}

/* The first operand after the weights: it and what follows broadcast. */
static uint32_t first_extra(const berth__op *op) {
  const bool is_quantised =
      op->code == BERTH__OP_qproduct || op->code == BERTH__OP_qconv_last || op->code == BERTH__OP_qdepthwise;
  return is_quantised ? 6 : 3;
}

static const berth_attr *plan_split_rule_find_attr(const berth__node *node, const char *name) {
  for (uint32_t i = 0; i < node->op->family->n_attrs; i++)
    if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
  return NULL;
}

static int64_t plan_split_rule_int_attr(const berth__node *node, const char *name, int64_t otherwise) {
  const berth_attr *attr = plan_split_rule_find_attr(node, name);
  return attr != NULL ? attr->i : otherwise;
}

static int64_t list_attr(const berth__node *node, const char *name, uint32_t at, int64_t otherwise) {
  const berth_attr *attr = plan_split_rule_find_attr(node, name);
  return attr != NULL && at < attr->count ? attr->ints[at] : otherwise;
}

static const berth__shape *plan_split_rule_shape_of(const berth_graph *graph, berth_value value) {
  return &graph->values[value].shape;
}

uint32_t berth__split_axis(const berth_graph *graph, berth_value value) {
  const berth__shape *shape = plan_split_rule_shape_of(graph, value);
  uint32_t axis = 0;
  while (axis < shape->rank && shape->dim[axis] == 1) axis++;
  return axis;
}

/* ---- Windows ---- */

static bool is_window(const berth__node *node) {
  const kind what = plan_split_rule_kind_of(node->op);
  return what == KIND_WINDOW || what == KIND_POOL || what == KIND_SPREAD;
}

static uint32_t first_spatial(const berth__node *node) {
  return plan_split_rule_kind_of(node->op) == KIND_POOL && plan_split_rule_int_attr(node, "channels_last", 0) == 0 ? 2
                                                                                                                   : 1;
}

/* The spatial axis that is split; false: windows do not run along it. */
static bool spatial_axis(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t *spatial) {
  const uint32_t first = first_spatial(node), n = plan_split_rule_shape_of(graph, node->out[0])->rank - 2;
  if (!is_window(node) || axis < first || axis >= first + n) return false;
  *spatial = axis - first;
  return true;
}

typedef struct window {
  int64_t kernel, stride, dilation, begin, end; /* along one axis, with its padding */
} window;

static window window_of(const berth_graph *graph, const berth__node *node, uint32_t spatial) {
  const uint32_t n = plan_split_rule_shape_of(graph, node->out[0])->rank - 2;
  return (window){.kernel = list_attr(node, "kernel", spatial, 3), /* conv_winograd has no attribute for it: it is 3 */
                  .stride = list_attr(node, "strides", spatial, 1),
                  .dilation = list_attr(node, "dilations", spatial, 1),
                  .begin = list_attr(node, "pads", spatial, 0),
                  .end = list_attr(node, "pads", spatial + n, 0)};
}

/* The rows under the windows of these rows, including padding: they may begin before 0 and end after the last. */
static berth__rows rows_under(const window *w, berth__rows rows) {
  const int64_t begin = rows.begin * w->stride - w->begin;
  return (berth__rows){begin, (rows.end - 1) * w->stride - w->begin + (w->kernel - 1) * w->dilation + 1};
}

static int64_t window_reach(const window *w) { return (w->kernel - 1) * w->dilation + 1; }

/* The rows that windows spread over these rows. */
static berth__rows rows_spread(const window *w, berth__rows rows, int64_t in) {
  const int64_t first = rows.begin + w->begin - window_reach(w) + w->stride, last = rows.end - 1 + w->begin;
  const int64_t end = last / w->stride + 1;
  return (berth__rows){first > 0 ? first / w->stride : 0, end < in ? end : in};
}

uint32_t berth__split_unit(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  uint32_t spatial;
  const bool has_tiles = node->op->code == BERTH__OP_conv_winograd && spatial_axis(graph, node, axis, &spatial);
  return has_tiles ? (uint32_t)node->attrs[BERTH__WINOGRAD_TILE].i : 1;
}

static bool has_plain_windows(const berth__node *node) {
  const berth_attr *automatic = plan_split_rule_find_attr(node, "auto_pad");
  return plan_split_rule_int_attr(node, "ceil_mode", 0) == 0 &&
         (automatic == NULL || automatic->s == NULL || strcmp(automatic->s, "none") == 0);
}

/* Every slice must read some rows of x: if windows are entirely in the padding, the node is not split. */
static bool reads_something(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t spatial) {
  const window w = window_of(graph, node, spatial);
  const int64_t in = plan_split_rule_shape_of(graph, node->in[0])->dim[axis], reach = window_reach(&w);
  if (plan_split_rule_kind_of(node->op) == KIND_SPREAD)
    return w.stride <= reach && w.begin < reach && w.end < reach && list_attr(node, "output_pads", spatial, 0) == 0;
  return w.begin < reach && w.end < reach && in > 0;
}

/* ---- All kinds ---- */

static bool lines_may(const berth__node *node, uint32_t axis, uint32_t rank) {
  int64_t along = plan_split_rule_int_attr(node, "axis", -1);
  if (along < 0) along += rank;
  const berth__family *f = node->op->family;
  const bool is_norm = f == &berth__family_layer_norm || f == &berth__family_layer_norm_grad;
  return is_norm ? (int64_t)axis < along : (int64_t)axis != along;
}

static bool product_may(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  const berth__shape *out = plan_split_rule_shape_of(graph, node->out[0]),
                     *weight = plan_split_rule_shape_of(graph, node->in[1]);
  const bool is_packed = node->op->code != BERTH__OP_matmul && plan_split_rule_int_attr(node, "panel", 0) > 0;
  return plan_split_rule_shape_of(graph, node->in[0])->rank == out->rank && axis + 2 <= out->rank &&
         (is_packed || weight->rank == 2);
}

static bool window_may(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  const uint32_t rank = plan_split_rule_shape_of(graph, node->out[0])->rank;
  uint32_t spatial;
  if (axis == 0) return true;
  if (!has_plain_windows(node) || 2 * (rank - 2) > BERTH__SPLIT_INTS) return false;
  if (spatial_axis(graph, node, axis, &spatial)) return reads_something(graph, node, axis, spatial);
  return plan_split_rule_kind_of(node->op) == KIND_POOL; /* channels */
}

/* Whether a list of axes leaves this one alone; an empty list does not. */
static bool axes_spare(const berth__node *node, uint32_t axis, uint32_t rank) {
  const berth_attr *axes = plan_split_rule_find_attr(node, "axes");
  bool spares = axes != NULL && axes->count != 0;
  for (uint32_t i = 0; spares && i < axes->count; i++)
    spares = axes->ints[i] != (int64_t)axis && axes->ints[i] + rank != (int64_t)axis;
  return spares;
}

/* Whether operand 0 and the result have the same axes up to this one. */
static bool begins_alike(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  const berth__shape *in = plan_split_rule_shape_of(graph, node->in[0]),
                     *out = plan_split_rule_shape_of(graph, node->out[0]);
  for (uint32_t i = 0; i <= axis; i++)
    if (i >= in->rank || in->dim[i] != out->dim[i]) return false;
  return true;
}

static bool rows_may(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  const uint32_t rank = plan_split_rule_shape_of(graph, node->in[0])->rank;
  if (node->op->code == BERTH__OP_concat) {
    const int64_t along = plan_split_rule_int_attr(node, "axis", 0);
    return along != (int64_t)axis && along + rank != (int64_t)axis;
  }
  for (uint32_t k = 1; k < node->n_in; k++)
    if (node->in[k] != BERTH_VALUE_NONE) return false; /* lists that are operands */
  if (!begins_alike(graph, node, axis)) return false;
  return node->op->code == BERTH__OP_reshape || node->op->code == BERTH__OP_unsqueeze || axes_spare(node, axis, rank);
}

bool berth__split_may(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  const berth__shape *out = plan_split_rule_shape_of(graph, node->out[0]);
  if (node->n_out != 1 || node->n_in == 0 || node->op->custom != NULL || axis >= out->rank) return false;
  if (out->dim[axis] < 2 || graph->values[node->out[0]].bounded != 0) return false;
  for (uint32_t i = 0; i < axis; i++)
    if (out->dim[i] != 1) return false;
  switch (plan_split_rule_kind_of(node->op)) {
    case KIND_ELEMENTS:
    case KIND_TRANSPOSE: return true;
    case KIND_LINES: return lines_may(node, axis, out->rank);
    case KIND_PRODUCT: return product_may(graph, node, axis);
    case KIND_WINDOW:
    case KIND_SPREAD:
    case KIND_POOL: return window_may(graph, node, axis);
    case KIND_ROWS: return rows_may(graph, node, axis);
    case KIND_NONE: break;
  }
  return false;
}

/* An operand that broadcasts: its axes correspond to the last ones of the result. */
static bool broadcast_rows(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k,
                           berth__rows rows, berth__rows *out) {
  const berth__shape *whole = plan_split_rule_shape_of(graph, node->out[0]),
                     *operand = plan_split_rule_shape_of(graph, node->in[k]);
  *out = rows;
  return axis + operand->rank >= whole->rank && operand->dim[axis + operand->rank - whole->rank] != 1;
}

bool berth__split_operand(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k,
                          berth__rows rows, berth__rows *out) {
  uint32_t spatial;
  const kind what = plan_split_rule_kind_of(node->op);
  if (node->in[k] == BERTH_VALUE_NONE) return false;
  if (what == KIND_ELEMENTS) return broadcast_rows(graph, node, axis, k, rows, out);
  if (what == KIND_TRANSPOSE || what == KIND_ROWS) {
    *out = rows;
    return true;
  }
  const bool is_dy = k == BERTH__NORM_GRAD_DY && node->op->family == &berth__family_layer_norm_grad;
  if (k != 0 && !is_dy && (what == KIND_LINES || what == KIND_POOL || k < first_extra(node->op))) return false;
  if (k != 0 && !is_dy) return broadcast_rows(graph, node, axis, k, rows, out);
  *out = rows;
  if (!spatial_axis(graph, node, axis, &spatial)) return true;
  const window w = window_of(graph, node, spatial);
  const int64_t in = plan_split_rule_shape_of(graph, node->in[0])->dim[axis];
  *out = what == KIND_SPREAD ? rows_spread(&w, rows, in) : rows_under(&w, rows);
  if (out->begin < 0) out->begin = 0;
  if (out->end > in) out->end = in;
  return true;
}

/* Rounded down, also below 0. */
static int64_t plan_split_rule_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

int64_t berth__split_operand_end(const berth_graph *graph, const berth__node *node, uint32_t axis, int64_t end) {
  uint32_t spatial;
  if (!spatial_axis(graph, node, axis, &spatial)) return end;
  const window w = window_of(graph, node, spatial);
  if (plan_split_rule_kind_of(node->op) == KIND_SPREAD)
    return plan_split_rule_floor_div(end - 1 + w.begin, w.stride) + 1;
  return rows_under(&w, (berth__rows){end - 1, end}).end;
}

uint32_t berth__split_operand_axis(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k) {
  const uint32_t rank = plan_split_rule_shape_of(graph, node->out[0])->rank;
  if (plan_split_rule_kind_of(node->op) == KIND_TRANSPOSE)
    return (uint32_t)list_attr(node, "perm", axis, (int64_t)(rank - 1 - axis));
  if (plan_split_rule_kind_of(node->op) == KIND_ROWS) return axis;
  return axis + plan_split_rule_shape_of(graph, node->in[k])->rank - rank;
}

void berth__split_attrs(const berth_graph *graph, const berth__node *node, uint32_t axis, berth__rows rows,
                        berth_attr *attrs, int64_t *ints) {
  const uint32_t n_attrs = node->op->family->n_attrs, n = plan_split_rule_shape_of(graph, node->out[0])->rank - 2;
  uint32_t spatial;
  for (uint32_t i = 0; i < n_attrs; i++) attrs[i] = node->attrs[i];
  if (node->op->code == BERTH__OP_reshape) {
    const berth__shape *shape = plan_split_rule_shape_of(graph, node->out[0]);
    for (uint32_t i = 0; i < shape->rank; i++) ints[i] = i == axis ? rows.end - rows.begin : shape->dim[i];
    attrs[BERTH__RESHAPE_SHAPE] = berth_attr_ints("shape", ints, shape->rank);
    attrs[BERTH__RESHAPE_ALLOW_ZERO] = berth_attr_int("allowzero", 1); /* these are extents */
  }
  if (!is_window(node) || !spatial_axis(graph, node, axis, &spatial)) return;
  const window w = window_of(graph, node, spatial);
  const berth__rows under = rows_under(&w, rows);
  const int64_t in = plan_split_rule_shape_of(graph, node->in[0])->dim[axis];
  for (uint32_t i = 0; i < 2 * n; i++) ints[i] = list_attr(node, "pads", i, 0);
  if (plan_split_rule_kind_of(node->op) == KIND_SPREAD) {
    const berth__rows from = rows_spread(&w, rows, in);
    ints[spatial] = rows.begin + w.begin - from.begin * w.stride;
    ints[spatial + n] = (from.end - 1) * w.stride + window_reach(&w) - w.begin - rows.end;
  } else {
    ints[spatial] = under.begin < 0 ? -under.begin : 0;
    ints[spatial + n] = under.end > in ? under.end - in : 0;
  }
  for (uint32_t i = 0; i < n_attrs; i++)
    if (strcmp(attrs[i].name, "pads") == 0) {
      attrs[i].ints = ints;
      attrs[i].count = 2 * n;
    }
}
