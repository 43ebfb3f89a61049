/* Rules: the axis along which the results of a node are cut. An op without a rule runs on the whole batch at once,
 * after the last slice. */
#include "ops/registry.h"
#include "plan/batch.h"

typedef enum kind {
  KIND_NONE,
  KIND_ELEMENTS,  /* every operand broadcasts to the result */
  KIND_LINES,     /* operand 0 along all axes but the last ones, or but one; the others are whole */
  KIND_PRODUCT,   /* x, weight, whole ones, then operands that broadcast */
  KIND_IMAGES,    /* per image: x, weight, whole ones, then operands that broadcast */
  KIND_ATTENTION, /* per sequence */
  KIND_ROPE,
  KIND_NORM_GRAD,       /* x and the gradient, along the axes before the normalised ones */
  KIND_NORM_SCALE_GRAD, /* the same, with results summed over these axes */
  KIND_WEIGHT_GRAD,     /* per image, with the result summed over images */
  KIND_ROWS,            /* cross entropy: all operands along the axes of the labels */
  KIND_GATHER,
  KIND_REDUCE,
  KIND_TRANSPOSE,
  KIND_RESHAPE,
  KIND_PARTS /* split, narrow, concat, pad: along other axes */
} kind;

static kind batch_kind_of(const berth__node *node) {
  const berth__family *f = node->op->family;
  if (f == &berth__family_unary || f == &berth__family_clamp || f == &berth__family_cast ||
      f == &berth__family_binary || f == &berth__family_compare || f == &berth__family_where ||
      f == &berth__family_chain || f == &berth__family_identity || f == &berth__family_expand)
    return KIND_ELEMENTS;
  switch (node->op->code) {
    case BERTH__OP_softmax:
    case BERTH__OP_log_softmax:
    case BERTH__OP_layer_norm:
    case BERTH__OP_rms_norm: return KIND_LINES;
    case BERTH__OP_layer_norm_grad:
    case BERTH__OP_rms_norm_grad: return KIND_NORM_GRAD;
    case BERTH__OP_layer_norm_scale_grad:
    case BERTH__OP_rms_norm_scale_grad: return KIND_NORM_SCALE_GRAD;
    case BERTH__OP_matmul:
    case BERTH__OP_product:
    case BERTH__OP_qproduct: return KIND_PRODUCT;
    case BERTH__OP_max_pool: return node->n_out == 1 ? KIND_IMAGES : KIND_NONE; /* indices count over all images */
    case BERTH__OP_conv:
    case BERTH__OP_conv_last:
    case BERTH__OP_conv_winograd:
    case BERTH__OP_depthwise:
    case BERTH__OP_qconv_last:
    case BERTH__OP_qdepthwise:
    case BERTH__OP_conv_transpose:
    case BERTH__OP_conv_transpose_last:
    case BERTH__OP_avg_pool:
    case BERTH__OP_lp_pool:
    case BERTH__OP_group_norm:
    case BERTH__OP_batch_norm: return KIND_IMAGES;
    case BERTH__OP_conv_weight_grad: return KIND_WEIGHT_GRAD;
    case BERTH__OP_attention:
    case BERTH__OP_attention_grad: return KIND_ATTENTION;
    case BERTH__OP_rope: return KIND_ROPE;
    case BERTH__OP_cross_entropy:
    case BERTH__OP_cross_entropy_grad: return KIND_ROWS;
    case BERTH__OP_gather:
    case BERTH__OP_embedding: return KIND_GATHER;
    case BERTH__OP_reduce_sum:
    case BERTH__OP_reduce_mean:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min: return KIND_REDUCE;
    case BERTH__OP_transpose: return KIND_TRANSPOSE;
    case BERTH__OP_reshape:
    case BERTH__OP_flatten:
    case BERTH__OP_squeeze:
    case BERTH__OP_unsqueeze: return KIND_RESHAPE;
    case BERTH__OP_split:
    case BERTH__OP_narrow:
    case BERTH__OP_concat:
    case BERTH__OP_pad: return KIND_PARTS;
    default: return KIND_NONE;
  }
}

static const berth__shape *batch_shape(const berth_graph *graph, berth_value value) {
  return &graph->values[value].shape;
}

static bool batch_has(const berth__node *node, uint32_t k) { return k < node->n_in && node->in[k] != BERTH_VALUE_NONE; }

static uint32_t batch_axis_of(int64_t axis, uint32_t rank) { return (uint32_t)(axis < 0 ? axis + rank : axis); }

static const berth_attr *batch_attr(const berth__node *node, const char *name) {
  for (uint32_t i = 0; i < node->op->family->n_attrs; i++)
    if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
  return NULL;
}

static bool batch_is_empty(const berth__node *node, const char *name) {
  const berth_attr *attr = batch_attr(node, name);
  return attr == NULL || attr->count == 0;
}

/* Whether a list contains an axis; an empty list contains all. */
static bool batch_lists(const berth_attr *attr, uint32_t axis, uint32_t rank) {
  bool has = attr == NULL || attr->count == 0;
  for (size_t i = 0; attr != NULL && i < attr->count; i++) has = has || batch_axis_of(attr->ints[i], rank) == axis;
  return has;
}

/* Sums of narrow types would be rounded in every slice. */
static bool batch_may_sum(const berth_graph *graph, const berth__node *node) {
  const berth_type type = graph->values[node->out[0]].type;
  return type == BERTH_F32 || type == BERTH_F64;
}

/* ---- From an operand to the results ---- */

static berth__batch_label batch_cut(uint32_t axis) { return (berth__batch_label){BERTH__BATCH_CUT, axis}; }
static berth__batch_label batch_late(void) { return (berth__batch_label){BERTH__BATCH_LATE, BERTH__BATCH_NO_AXIS}; }
static berth__batch_label batch_sum(const berth_graph *graph, const berth__node *node) {
  return batch_may_sum(graph, node) ? (berth__batch_label){BERTH__BATCH_SUM, BERTH__BATCH_NO_AXIS} : batch_late();
}

static berth__batch_label batch_broadcast(const berth_graph *graph, const berth__node *node, uint32_t k,
                                          uint32_t axis) {
  return batch_cut(axis + batch_shape(graph, node->out[0])->rank - batch_shape(graph, node->in[k])->rank);
}

static berth__batch_label batch_lines(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis) {
  const uint32_t along = batch_axis_of(batch_attr(node, "axis")->i, batch_shape(graph, node->in[0])->rank);
  const bool is_norm = node->op->code == BERTH__OP_layer_norm || node->op->code == BERTH__OP_rms_norm;
  return k == 0 && (is_norm ? axis < along : axis != along) ? batch_cut(axis) : batch_late();
}

static berth__batch_label batch_norm_grad(const berth_graph *graph, const berth__node *node, uint32_t k,
                                          uint32_t axis) {
  const uint32_t along =
      batch_axis_of(node->attrs[BERTH__LAYER_NORM_AXIS].i, batch_shape(graph, node->in[BERTH__NORM_X])->rank);
  const bool sums = batch_kind_of(node) == KIND_NORM_SCALE_GRAD;
  if (axis >= along || (!sums && k == BERTH__NORM_SCALE)) return batch_late();
  return sums ? batch_sum(graph, node) : batch_cut(axis);
}

static bool batch_is_packed(const berth__node *node) {
  const berth_attr *panel = batch_attr(node, "panel");
  return panel != NULL && panel->i > 0;
}

static bool batch_has_extras(const berth__node *node) {
  for (uint32_t k = 2; k < node->n_in; k++)
    if (batch_has(node, k)) return true;
  return false;
}

/* A product whose rows or sums are cut. An epilogue cannot run on a partial sum. */
static berth__batch_label batch_product(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis) {
  const uint32_t rank = batch_shape(graph, node->in[k])->rank, out = batch_shape(graph, node->out[0])->rank;
  const bool is_plain = !batch_has_extras(node) && batch_is_empty(node, "code") && node->op->code != BERTH__OP_qproduct;
  if (rank < 2 || out < 2 || (k == 1 && batch_is_packed(node))) return batch_late();
  if (k > 1) return axis + out - rank + 1 < out ? batch_broadcast(graph, node, k, axis) : batch_late();
  if (axis == (k == 0 ? rank - 1 : rank - 2)) return is_plain ? batch_sum(graph, node) : batch_late();
  if (k == 1 && axis == rank - 1) return node->op->code == BERTH__OP_matmul ? batch_cut(out - 1) : batch_late();
  return batch_broadcast(graph, node, k, axis);
}

/* Channels that are summed over: the gradient of a weight is a convolution in which images play the role of
 * channels. */
static berth__batch_label batch_images(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis) {
  if (axis == 0 && k == 0) return batch_cut(0);
  const bool is_plain = node->op->code == BERTH__OP_conv && !batch_has_extras(node) && batch_is_empty(node, "code") &&
                        node->attrs[BERTH__CONV_GROUP].i == 1;
  return is_plain && axis == 1 ? batch_sum(graph, node) : batch_late();
}

static berth__batch_label batch_gather(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis) {
  const uint32_t rank = batch_shape(graph, node->in[0])->rank;
  const uint32_t indices = batch_shape(graph, node->in[1])->rank;
  const bool is_gather = node->op->code == BERTH__OP_gather;
  const uint32_t along = is_gather ? batch_axis_of(node->attrs[BERTH__GATHER_AXIS].i, rank) : 0;
  if (k == 1) return batch_cut(along + axis);
  if (axis == along) return batch_late();
  return batch_cut(axis < along ? axis : axis + indices - 1);
}

static berth__batch_label batch_reduce(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis) {
  const uint32_t rank = batch_shape(graph, node->in[0])->rank;
  const berth_attr *axes = &node->attrs[BERTH__REDUCE_AXES];
  const bool sums = node->op->code == BERTH__OP_reduce_sum || node->op->code == BERTH__OP_reduce_mean;
  uint32_t gone = 0;
  if (k != 0 || batch_has(node, BERTH__REDUCE_AXES_OPERAND)) return batch_late();
  if (batch_lists(axes, axis, rank)) return sums ? batch_sum(graph, node) : batch_late();
  for (uint32_t i = 0; i < axis; i++) gone += batch_lists(axes, i, rank);
  return batch_cut(node->attrs[BERTH__REDUCE_KEEPDIMS].i != 0 ? axis : axis - gone);
}

static int64_t batch_perm(const berth__node *node, uint32_t i, uint32_t rank) {
  const berth_attr *perm = &node->attrs[BERTH__TRANSPOSE_PERM];
  return perm->count == 0 ? (int64_t)(rank - 1 - i) : perm->ints[i];
}

static berth__batch_label batch_transpose(const berth_graph *graph, const berth__node *node, uint32_t axis) {
  const uint32_t rank = batch_shape(graph, node->in[0])->rank;
  for (uint32_t i = 0; i < rank; i++)
    if (batch_axis_of(batch_perm(node, i, rank), rank) == axis) return batch_cut(i);
  return batch_late();
}

/* The axis with the same number of elements before it and whole rows of the batch. */
static berth__batch_label batch_reshape(const berth_graph *graph, const berth__node *node, uint32_t axis,
                                        int64_t extent) {
  const berth__shape *from = batch_shape(graph, node->in[0]), *to = batch_shape(graph, node->out[0]);
  int64_t before = 1, so_far = 1;
  for (uint32_t i = 0; i < axis; i++) before *= from->dim[i];
  for (uint32_t i = 0; i < to->rank && so_far <= before; so_far *= to->dim[i++])
    if (so_far == before && to->dim[i] != 1) return to->dim[i] % extent == 0 ? batch_cut(i) : batch_late();
  return batch_late();
}

static berth__batch_label batch_parts(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis) {
  const uint32_t rank = batch_shape(graph, node->in[0])->rank;
  const berth_attr *along = batch_attr(node, "axis"), *axes = batch_attr(node, "axes");
  if (node->op->code == BERTH__OP_concat) return axis != batch_axis_of(along->i, rank) ? batch_cut(axis) : batch_late();
  if (k != 0) return batch_late();
  if (node->op->code == BERTH__OP_split) return axis != batch_axis_of(along->i, rank) ? batch_cut(axis) : batch_late();
  for (uint32_t i = 1; i < node->n_in; i++)
    if (batch_has(node, i)) return batch_late(); /* lists given as operands */
  if (node->op->code == BERTH__OP_pad && batch_is_empty(node, "axes") &&
      axis + rank < batch_attr(node, "pads")->count) {
    const int64_t *pads = batch_attr(node, "pads")->ints;
    return pads[axis] == 0 && pads[axis + rank] == 0 ? batch_cut(axis) : batch_late();
  }
  return batch_lists(axes, axis, rank) ? batch_late() : batch_cut(axis);
}

berth__batch_label berth__batch_result(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis,
                                       int64_t extent) {
  if (node->op->custom != NULL || node->op->family->is_random) return batch_late();
  switch (batch_kind_of(node)) {
    case KIND_ELEMENTS:
      return node->op->code == BERTH__OP_expand && k != 0 ? batch_late() : batch_broadcast(graph, node, k, axis);
    case KIND_LINES: return batch_lines(graph, node, k, axis);
    case KIND_NORM_GRAD:
    case KIND_NORM_SCALE_GRAD: return batch_norm_grad(graph, node, k, axis);
    case KIND_WEIGHT_GRAD: return axis == 0 ? batch_sum(graph, node) : batch_late();
    case KIND_PRODUCT: return batch_product(graph, node, k, axis);
    case KIND_IMAGES: return batch_images(graph, node, k, axis);
    case KIND_ATTENTION:
    case KIND_ROPE: /* if it has two axes, x is one sequence */
      return axis == 0 && batch_shape(graph, node->in[0])->rank > 2 ? batch_cut(0) : batch_late();
    case KIND_ROWS:
      return axis + 1 < batch_shape(graph, node->in[BERTH__CROSS_ENTROPY_LOGITS])->rank ? batch_cut(axis)
                                                                                        : batch_late();
    case KIND_GATHER: return batch_gather(graph, node, k, axis);
    case KIND_REDUCE: return batch_reduce(graph, node, k, axis);
    case KIND_TRANSPOSE: return batch_transpose(graph, node, axis);
    case KIND_RESHAPE: return k == 0 ? batch_reshape(graph, node, axis, extent) : batch_late();
    case KIND_PARTS: return batch_parts(graph, node, k, axis);
    case KIND_NONE: break;
  }
  return batch_late();
}

/* ---- From the results to an operand ---- */

/* For an operand that broadcasts to the result. */
static uint32_t batch_beside(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k) {
  const berth__shape *out = batch_shape(graph, node->out[0]), *in = batch_shape(graph, node->in[k]);
  if (axis + in->rank < out->rank) return BERTH__BATCH_NO_AXIS;
  const uint32_t at = axis + in->rank - out->rank;
  return in->dim[at] == 1 ? BERTH__BATCH_NO_AXIS : at;
}

/* The first broadcast operand after the weights. */
static uint32_t batch_first_extra(const berth__node *node) {
  const berth__op_code op = node->op->code;
  return op == BERTH__OP_qproduct || op == BERTH__OP_qconv_last || op == BERTH__OP_qdepthwise ? 6 : 3;
}

static uint32_t batch_product_operand(const berth_graph *graph, const berth__node *node, berth__batch_label result,
                                      uint32_t k) {
  const uint32_t rank = batch_shape(graph, node->in[k])->rank, out = batch_shape(graph, node->out[0])->rank;
  if (result.kind == BERTH__BATCH_SUM) return k == 0 ? rank - 1 : rank - 2;
  if (result.axis == out - 1) return k == 1 ? rank - 1 : BERTH__BATCH_NO_AXIS; /* a matmul's columns */
  if (k == 0 || k >= batch_first_extra(node)) return batch_beside(graph, node, result.axis, k);
  return k == 1 && result.axis + 2 < out && !batch_is_packed(node) ? batch_beside(graph, node, result.axis, k)
                                                                   : BERTH__BATCH_NO_AXIS;
}

static uint32_t batch_attention_operand(const berth_graph *graph, const berth__node *node, uint32_t k) {
  const berth__shape *shape = batch_shape(graph, node->in[k]);
  switch (k) {
    case BERTH__ATTENTION_MASK:
    case BERTH__ATTENTION_BIAS: return shape->rank == 4 && shape->dim[0] != 1 ? 0 : BERTH__BATCH_NO_AXIS;
    case BERTH__ATTENTION_LENGTH: return shape->rank == 1 && shape->dim[0] != 1 ? 0 : BERTH__BATCH_NO_AXIS;
    case BERTH__ATTENTION_SINKS: return BERTH__BATCH_NO_AXIS;
    default: return 0; /* q, k, v and the gradient */
  }
}

/* Positions [B, S] and tables of them are cut with x; [S] is shared. */
static uint32_t batch_rope_operand(const berth_graph *graph, const berth__node *node, uint32_t k) {
  const berth__shape *x = batch_shape(graph, node->in[BERTH__ROPE_X]), *shape = batch_shape(graph, node->in[k]);
  const bool is_table = batch_has(node, BERTH__ROPE_SIN);
  if (k == BERTH__ROPE_X) return 0;
  return shape->rank == (is_table ? 3u : 2u) && shape->dim[0] == x->dim[0] ? 0 : BERTH__BATCH_NO_AXIS;
}

static uint32_t batch_gather_operand(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k) {
  const uint32_t rank = batch_shape(graph, node->in[0])->rank;
  const uint32_t indices = batch_shape(graph, node->in[1])->rank;
  const bool is_gather = node->op->code == BERTH__OP_gather;
  const uint32_t along = is_gather ? batch_axis_of(node->attrs[BERTH__GATHER_AXIS].i, rank) : 0;
  if (axis < along) return k == 0 ? axis : BERTH__BATCH_NO_AXIS;
  if (axis < along + indices) return k == 1 ? axis - along : BERTH__BATCH_NO_AXIS;
  return k == 0 ? axis + 1 - indices : BERTH__BATCH_NO_AXIS;
}

uint32_t berth__batch_operand(const berth_graph *graph, const berth__node *node, berth__batch_label result, uint32_t k,
                              uint32_t cut) {
  switch (batch_kind_of(node)) {
    case KIND_ELEMENTS:
      return node->op->code == BERTH__OP_expand && k != 0 ? BERTH__BATCH_NO_AXIS
                                                          : batch_beside(graph, node, result.axis, k);
    case KIND_PRODUCT: return batch_product_operand(graph, node, result, k);
    case KIND_IMAGES:
      if (result.kind == BERTH__BATCH_SUM) return 1;
      if (k == 0) return 0;
      return k >= batch_first_extra(node) && node->op->family != &berth__family_batch_norm
                 ? batch_beside(graph, node, result.axis, k)
                 : BERTH__BATCH_NO_AXIS;
    case KIND_ATTENTION: return batch_attention_operand(graph, node, k);
    case KIND_ROPE: return batch_rope_operand(graph, node, k);
    case KIND_GATHER: return batch_gather_operand(graph, node, result.axis, k);
    case KIND_TRANSPOSE: {
      const uint32_t rank = batch_shape(graph, node->in[0])->rank;
      return batch_axis_of(batch_perm(node, result.axis, rank), rank);
    }
    case KIND_NORM_GRAD: return k == BERTH__NORM_SCALE ? BERTH__BATCH_NO_AXIS : result.axis;
    case KIND_WEIGHT_GRAD:
    case KIND_NORM_SCALE_GRAD: return cut;
    case KIND_ROWS: return result.axis;
    case KIND_PARTS: return k == 0 || node->op->code == BERTH__OP_concat ? result.axis : BERTH__BATCH_NO_AXIS;
    case KIND_LINES:
    case KIND_REDUCE:
    case KIND_RESHAPE: return k == 0 ? cut : BERTH__BATCH_NO_AXIS;
    case KIND_NONE: break;
  }
  return BERTH__BATCH_NO_AXIS;
}
