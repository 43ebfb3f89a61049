/* Channels last (NHWC).
 *
 * Going through the nodes in order, every value of three or more axes may get a twin (twins.h). Convolutions and
 * poolings make twins; nodes that treat all axes alike follow the twins of their operands, so that a whole region
 * becomes channels last. */
#include "ops/chain.h"
#include "ops/conv.h"
#include "pass/prelude.h"
#include "rewrite/convolution.h"
#include "rewrite/pattern.h"
#include "rewrite/twins.h"

#define MAX_ATTRS 16 /* most attributes of the ops rewritten here */

typedef struct pass {
  const berth__rewrite_target *target;
  berth__rewrite r;
  berth__uses uses;
  berth__twins twins;
  bool *is_static; /* one per value that existed before */
  uint32_t *maker; /* one per value that existed before: the old node that makes it; UINT32_MAX: none */
} pass;

static const berth__shape *rewrite_channels_last_shape_of(const pass *p, berth_value value) {
  return &p->r.graph->values[value].shape;
}

static bool has_twin(const pass *p, berth_value value) {
  return value != BERTH_VALUE_NONE && p->twins.twin[value] != BERTH_VALUE_NONE;
}

static int64_t rewrite_channels_last_axis(int64_t axis, uint32_t rank) { return berth__twins_axis(axis, rank); }

static berth_status to_last(pass *p, berth_value value, berth_value *out, berth_error *err) {
  return berth__twins_last(&p->twins, &p->r, value, out, err);
}

static berth_status rewrite_channels_last_to_plain(pass *p, berth_value value, berth_error *err) {
  return berth__twins_plain(&p->twins, &p->r, value, err);
}

static berth_status rewrite_channels_last_keep(pass *p, size_t n, berth_error *err) {
  return berth__twins_keep(&p->twins, &p->r, n, err);
}

/* ---- Convolutions ---- */

static bool can_convolve(const pass *p, const berth__node *node) {
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->in[0])->rank;
  const bool is_plain = node->op->code == BERTH__OP_conv && node->attrs[BERTH__CONV_GROUP].i == 1;
  if (!berth__is_float(p->r.graph->values[node->in[0]].type) || rank < 3 || rank > (is_plain ? 5u : 4u)) return false;
  if (node->op->code == BERTH__OP_conv && berth__conv_has_epilogue(node->attrs)) return false;
  for (uint32_t i = 0; i < 2; i++) { /* empty values are not worth it */
    int64_t count = 0;
    if (!berth__shape_count(rewrite_channels_last_shape_of(p, node->in[i]), &count) || count == 0) return false;
  }
  return true;
}

/* A weight that a run computes is packed in every run, without changes that pay off only in the prelude. */
static bool has_static_weight(const pass *p, const berth__node *node) {
  return p->is_static[node->in[BERTH__CONV_WEIGHT]];
}

static berth_status weights_to_plain(pass *p, const berth__node *node, berth_error *err) {
  for (uint32_t i = 1; i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE) BERTH__TRY(rewrite_channels_last_to_plain(p, node->in[i], err));
  return BERTH_OK;
}

/* The batch_norm that is the only reader of this value; NULL: none. */
static const berth__node *norm_behind(const pass *p, berth_value value) {
  if (p->uses.count[value] != 1 || p->uses.is_output[value]) return NULL;
  const berth__node *node = &p->r.old[p->uses.reader[value]];
  if (node->op == NULL || node->op->code != BERTH__OP_batch_norm || node->in[0] != value) return NULL;
  for (uint32_t i = 1; i < node->n_in; i++)
    if (!p->is_static[node->in[i]] || !berth__is_float(p->r.graph->values[node->in[i]].type)) return NULL;
  return node;
}

#define MAX_PARTS 8
#define MIN_CHANNELS 16 /* per part: smaller ones are not worth another pass over the result */

/* Whether a concat of channels is read only by one convolution, which can process its parts one after the other. */
static bool is_split(const pass *p, const berth__node *concat) {
  if (concat->op == NULL || concat->op->code != BERTH__OP_concat || concat->n_in > MAX_PARTS) return false;
  const berth_value whole = concat->out[0];
  const uint32_t rank = rewrite_channels_last_shape_of(p, whole)->rank;
  if (rank < 3 || p->r.graph->values[whole].type != BERTH_F32) return false; /* sums of parts would be rounded */
  if (p->uses.count[whole] != 1 || p->uses.is_output[whole] || p->r.graph->values[whole].bounded != 0) return false;
  const int64_t axis = concat->attrs[BERTH__CONCAT_AXIS].i < 0 ? concat->attrs[BERTH__CONCAT_AXIS].i + rank
                                                               : concat->attrs[BERTH__CONCAT_AXIS].i;
  const berth__node *reader = &p->r.old[p->uses.reader[whole]];
  if (axis != 1 || reader->op == NULL || reader->op->code != BERTH__OP_conv || reader->in[0] != whole ||
      !can_convolve(p, reader) || !has_static_weight(p, reader))
    return false;
  for (uint32_t i = 0; i < concat->n_in; i++)
    if (rewrite_channels_last_shape_of(p, concat->in[i])->dim[1] < MIN_CHANNELS) return false;
  return reader->attrs[BERTH__CONV_GROUP].i == 1 &&
         rewrite_channels_last_shape_of(p, reader->out[0])->dim[1] >= MIN_CHANNELS;
}

static berth_status rewrite_parts(pass *p, const berth__node *conv, const berth__node *concat, berth_error *err) {
  const berth__node *norm = norm_behind(p, conv->out[0]);
  berth_value parts[MAX_PARTS], out;
  for (uint32_t i = 0; i < concat->n_in; i++) BERTH__TRY(to_last(p, concat->in[i], &parts[i], err));
  BERTH__TRY(berth__rewrite_conv_parts(&p->r, p->target, conv, norm, parts, concat->n_in, &out, err));
  p->twins.twin[norm != NULL ? norm->out[0] : conv->out[0]] = out;
  return BERTH_OK;
}

static berth_status rewrite_transposed(pass *p, const berth__node *node, berth_error *err) {
  const berth__node *norm = norm_behind(p, node->out[0]);
  berth_value x, out;
  BERTH__TRY(weights_to_plain(p, node, err));
  BERTH__TRY(to_last(p, node->in[0], &x, err));
  if (has_static_weight(p, node) && berth__rewrite_takes_around(&p->r, p->target, node))
    BERTH__TRY(berth__rewrite_conv_around(&p->r, p->target, node, norm, x, &out, err));
  else if (berth__rewrite_takes_transposed(node))
    BERTH__TRY(berth__rewrite_conv_transpose(&p->r, p->target, node, norm, x, has_static_weight(p, node), &out, err));
  else
    BERTH__TRY(berth__rewrite_conv_spread(&p->r, p->target, node, norm, x, &out, err));
  p->twins.twin[norm != NULL ? norm->out[0] : node->out[0]] = out;
  return BERTH_OK;
}

static bool may_transpose(const pass *p, const berth__node *node) {
  return can_convolve(p, node) &&
         (berth__rewrite_takes_transposed(node) ||
          (!berth__node_is_bounded(p->r.graph, node) && berth__rewrite_takes_spread(&p->r, p->target, node)));
}

static berth_status channels_last_rewrite_conv(pass *p, const berth__node *node, berth_error *err) {
  const berth__node *norm = norm_behind(p, node->out[0]);
  berth_value x, out;
  const uint32_t maker = p->maker[node->in[0]];
  if (maker != UINT32_MAX && is_split(p, &p->r.old[maker])) return rewrite_parts(p, node, &p->r.old[maker], err);
  BERTH__TRY(weights_to_plain(p, node, err));
  BERTH__TRY(to_last(p, node->in[0], &x, err));
  BERTH__TRY(berth__rewrite_conv(&p->r, p->target, node, norm, x, has_static_weight(p, node), &out, err));
  p->twins.twin[norm != NULL ? norm->out[0] : node->out[0]] = out;
  return BERTH_OK;
}

/* ---- Nodes that treat all axes alike ---- */

static bool is_elementwise(const berth__node *node) {
  return berth__chain_code_of(node->op->code) != BERTH__CHAIN_COUNT || node->op->code == BERTH__OP_clamp ||
         node->op->code == BERTH__OP_cast;
}

/* An operand with fewer axes, or with axes of extent 1, for the twin of a result of `rank` axes. */
static berth_status operand_last(pass *p, berth_value value, uint32_t rank, berth_value *out, berth_error *err) {
  berth_dim dims[BERTH_MAX_RANK];
  const berth__shape *shape = rewrite_channels_last_shape_of(p, value);
  int64_t count;
  if (has_twin(p, value)) return to_last(p, value, out, err);
  BERTH__TRY(rewrite_channels_last_to_plain(p, value, err));
  *out = value;
  if (berth__shape_count(shape, &count) && count == 1) return BERTH_OK; /* broadcasts in any layout */
  if (shape->rank == rank) return to_last(p, value, out, err);
  for (uint32_t axis = 0; axis < rank; axis++) {
    const uint32_t missing = rank - shape->rank;
    dims[rewrite_channels_last_axis(axis, rank)] =
        (berth_dim){.extent = axis < missing ? 1 : shape->dim[axis - missing]};
  }
  /* moving one axis across axes of extent 1 is a reshape */
  uint32_t wide = 0;
  for (uint32_t axis = 0; axis < rank; axis++) wide += dims[axis].extent != 1;
  if (wide <= 1) {
    const berth_attr attr = berth_attr_dims("shape", dims, rank);
    return berth__rewrite_add(&p->r, BERTH__OP_reshape, &value, 1, &attr, 1, value, "#last", out, err);
  }
  for (uint32_t axis = 0; axis < rank; axis++) {
    const uint32_t missing = rank - shape->rank;
    dims[axis] = (berth_dim){.extent = axis < missing ? 1 : shape->dim[axis - missing]};
  }
  const berth_attr attr = berth_attr_dims("shape", dims, rank);
  berth_value full;
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_reshape, &value, 1, &attr, 1, value, "#full", &full, err));
  int64_t perm[BERTH_MAX_RANK];
  for (uint32_t axis = 0; axis < rank; axis++) perm[rewrite_channels_last_axis(axis, rank)] = axis;
  const berth_attr turn = berth_attr_ints("perm", perm, rank);
  return berth__rewrite_add(&p->r, BERTH__OP_transpose, &full, 1, &turn, 1, value, "#last", out, err);
}

/* Adds the same node on twins, with these attributes. All operands become channels last. */
static berth_status rewrite_channels_last_follow(pass *p, const berth__node *node, const berth_attr *attrs,
                                                 uint32_t n_moved, berth_error *err) {
  berth_context *ctx = p->r.graph->ctx;
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->out[0])->rank;
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in), out = BERTH_VALUE_NONE;
  if (in == NULL) return berth__fail_nomem(err, "rewriting a graph");
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < node->n_in && status == BERTH_OK; i++) {
    in[i] = node->in[i];
    if (in[i] == BERTH_VALUE_NONE) continue;
    if (i < n_moved)
      status = operand_last(p, node->in[i], rank, &in[i], err);
    else
      status = rewrite_channels_last_to_plain(p, node->in[i], err);
  }
  berth_attr given[MAX_ATTRS];
  uint32_t n_given = 0;
  for (uint32_t i = 0; i < node->op->family->n_attrs; i++) /* unset strings are omitted */
    if (attrs[i].kind != BERTH_ATTR_STRING || attrs[i].s != NULL) given[n_given++] = attrs[i];
  if (status == BERTH_OK)
    status =
        berth__rewrite_add(&p->r, node->op->code, in, node->n_in, given, n_given, node->out[0], "#last", &out, err);
  berth__free(ctx, in);
  if (status == BERTH_OK) p->twins.twin[node->out[0]] = out;
  return status;
}

static berth_attr *attr_named(berth_attr *attrs, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(attrs[i].name, name) == 0) return &attrs[i];
  return NULL;
}

/* Follows with the axis, or the list of axes, mapped to the twin. `all`: an empty list stands for this many first axes;
 * 0: it may stay empty. */
static berth_status follow_axes(pass *p, const berth__node *node, uint32_t all, uint32_t n_moved, berth_error *err) {
  berth_attr attrs[MAX_ATTRS];
  int64_t axes[BERTH_MAX_RANK];
  const uint32_t n = node->op->family->n_attrs, rank = rewrite_channels_last_shape_of(p, node->in[0])->rank;
  memcpy(attrs, node->attrs, n * sizeof *attrs);
  berth_attr *axis = attr_named(attrs, n, "axis"), *list = attr_named(attrs, n, "axes");
  if (axis != NULL) axis->i = rewrite_channels_last_axis(axis->i, rank);
  if (list != NULL) {
    const uint32_t count = list->count != 0 ? list->count : all;
    for (uint32_t k = 0; k < count; k++)
      axes[k] = rewrite_channels_last_axis(list->count != 0 ? list->ints[k] : k, rank);
    *list = berth_attr_ints("axes", axes, count);
  }
  return rewrite_channels_last_follow(p, node, attrs, n_moved, err);
}

static bool all_have_twins(const pass *p, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (!has_twin(p, node->in[i]) && !p->is_static[node->in[i]]) return false;
  return true;
}

/* A wide operand without a twin would have to be transposed: only worth it if most operands have twins. */
static bool is_worth_following(const pass *p, const berth__node *node) {
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->out[0])->rank;
  uint32_t with = 0, without = 0;
  for (uint32_t i = 0; i < node->n_in; i++) {
    int64_t count = 0;
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    berth__shape_count(rewrite_channels_last_shape_of(p, node->in[i]), &count);
    if (has_twin(p, node->in[i]))
      with += rewrite_channels_last_shape_of(p, node->in[i])->rank == rank;
    else
      without += count > 4096 && !p->is_static[node->in[i]];
  }
  return with > 0 && with >= without;
}

/* Whether only axes of spatial extent 1 are moved: then both layouts have the same elements in the same order. */
static bool is_flat(const berth__shape *shape) {
  for (uint32_t axis = 2; axis < shape->rank; axis++)
    if (shape->dim[axis] != 1) return false;
  return true;
}

static berth_status rewrite_channels_last_reshape_to(pass *p, berth_value from, berth_value out, berth_error *err) {
  berth_dim dims[BERTH_MAX_RANK];
  const berth__shape *shape = rewrite_channels_last_shape_of(p, out);
  for (uint32_t axis = 0; axis < shape->rank; axis++) dims[axis] = (berth_dim){.extent = shape->dim[axis]};
  const berth_attr attrs[] = {berth_attr_dims("shape", dims, shape->rank), berth_attr_int("allowzero", 1)};
  p->twins.has_plain[out] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_reshape, &from, 1, attrs, 2, out, err);
}

/* A transpose of a value with a twin: made from the twin, possibly without moving anything. */
static berth_status rewrite_transpose(pass *p, const berth__node *node, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->in[0])->rank;
  const berth_attr *old = &node->attrs[BERTH__TRANSPOSE_PERM];
  for (uint32_t axis = 0; axis < rank; axis++)
    perm[axis] = rewrite_channels_last_axis(old->count != 0 ? old->ints[axis] : (int64_t)(rank - 1 - axis), rank);
  const berth_attr attr = berth_attr_ints("perm", perm, rank);
  p->twins.has_plain[node->out[0]] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_transpose, &p->twins.twin[node->in[0]], 1, &attr, 1, node->out[0], err);
}

/* A transpose of a result that quantized.c left channels last: it gets a twin again. */
static bool is_of_bytes_last(const berth_graph *graph, const berth__node *maker) {
  switch (maker->op != NULL ? maker->op->code : BERTH__OP_CUSTOM) {
    case BERTH__OP_qconv_last:
    case BERTH__OP_qdepthwise:
    case BERTH__OP_dequantize: return graph->values[maker->out[0]].type == BERTH_F32;
    default: return false;
  }
}

static bool turns_back(const pass *p, const berth__node *node) {
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->in[0])->rank;
  const berth__value *x = &p->r.graph->values[node->in[0]];
  if (rank < 3 || node->attrs[BERTH__TRANSPOSE_PERM].count != rank || x->kind != BERTH_VALUE_NODE) return false;
  for (uint32_t axis = 0; axis < rank; axis++)
    if (node->attrs[BERTH__TRANSPOSE_PERM].ints[axis] != rewrite_channels_last_axis(axis, rank)) return false;
  return is_of_bytes_last(p->r.graph, &p->r.graph->nodes[x->node]);
}

/* A reduction over all spatial axes: the result has the same order in both layouts. */
static bool leaves_order(const pass *p, const berth__node *node) {
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->in[0])->rank;
  uint32_t gone = 0;
  const berth_attr *axes = &node->attrs[BERTH__REDUCE_AXES];
  for (uint32_t k = 0; k < axes->count; k++) gone |= 1u << (axes->ints[k] < 0 ? axes->ints[k] + rank : axes->ints[k]);
  for (uint32_t axis = 2; axis < rank; axis++)
    if (!(gone >> axis & 1u)) return false;
  return true;
}

static berth_status rewrite_reduce(pass *p, size_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  int64_t axes[BERTH_MAX_RANK];
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->in[0])->rank,
                 count = node->attrs[BERTH__REDUCE_AXES].count;
  if (!has_twin(p, node->in[0]) || node->n_in > 1 || count == 0) return rewrite_channels_last_keep(p, n, err);
  if (node->attrs[BERTH__REDUCE_KEEPDIMS].i) return follow_axes(p, node, 0, 1, err);
  if (!leaves_order(p, node)) return rewrite_channels_last_keep(p, n, err);
  for (uint32_t k = 0; k < count; k++)
    axes[k] = rewrite_channels_last_axis(node->attrs[BERTH__REDUCE_AXES].ints[k], rank);
  const berth_attr attrs[] = {berth_attr_ints("axes", axes, count), berth_attr_int("keepdims", 0)};
  p->twins.has_plain[node->out[0]] = true;
  return berth__rewrite_make(&p->r, node->op->code, &p->twins.twin[node->in[0]], 1, attrs, 2, node->out[0], err);
}

static berth_status rewrite_pool(pass *p, size_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  berth_attr attrs[MAX_ATTRS];
  const uint32_t n_attrs = node->op->family->n_attrs;
  if (!has_twin(p, node->in[0]) || node->n_out != 1) return rewrite_channels_last_keep(p, n, err);
  memcpy(attrs, node->attrs, n_attrs * sizeof *attrs);
  attr_named(attrs, n_attrs, "channels_last")->i = 1;
  return rewrite_channels_last_follow(p, node, attrs, 1, err);
}

/* An output of the graph must be plain. It is better turned before it grows: the last upsampling of a segmentation, and
 * what is computed element by element behind it. */
static bool grows_to_an_output(const pass *p, const berth__node *node) {
  const berth__value *values = p->r.graph->values;
  berth_value value = node->out[0];
  if (berth__value_count(&values[value]) <= berth__value_count(&values[node->in[0]])) return false;
  while (!p->uses.is_output[value] && p->uses.count[value] == 1) {
    const berth__node *reader = &p->r.old[p->uses.reader[value]];
    if (reader->op == NULL || !is_elementwise(reader) || reader->n_in != 1 || reader->n_out != 1) return false;
    value = reader->out[0];
  }
  return p->uses.is_output[value] && p->uses.reader[value] == UINT32_MAX;
}

/* With one scale and one zero point all axes are alike. */
static berth_status rewrite_quantize(pass *p, size_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  bool follows = has_twin(p, node->in[0]);
  for (uint32_t i = 1; i < node->n_in; i++)
    follows = follows && (node->in[i] == BERTH_VALUE_NONE || berth__value_count(&p->r.graph->values[node->in[i]]) == 1);
  return follows ? rewrite_channels_last_follow(p, node, node->attrs, 1, err) : rewrite_channels_last_keep(p, n, err);
}

/* The weights of a depthwise convolution: vectors run over channels. */
static berth_status rewrite_weight_grad(pass *p, size_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  const int64_t group = node->attrs[BERTH__CONV_GROUP].i;
  const bool is_depthwise = group > 1 && rewrite_channels_last_shape_of(p, node->in[0])->dim[1] == group &&
                            rewrite_channels_last_shape_of(p, node->in[1])->dim[1] == group;
  berth_attr attrs[MAX_ATTRS];
  berth_value in[2];
  const uint32_t n_attrs = node->op->family->n_attrs;
  if (p->target->lanes <= 1 || !is_depthwise || p->r.graph->values[node->in[0]].type != BERTH_F32 ||
      node->attrs[BERTH__WEIGHT_GRAD_CHANNELS_LAST].i != 0)
    return rewrite_channels_last_keep(p, n, err);
  memcpy(attrs, node->attrs, n_attrs * sizeof *attrs);
  attrs[BERTH__WEIGHT_GRAD_CHANNELS_LAST].i = 1;
  for (uint32_t i = 0; i < 2; i++) BERTH__TRY(to_last(p, node->in[i], &in[i], err));
  p->twins.has_plain[node->out[0]] = true;
  return berth__rewrite_make(&p->r, node->op->code, in, 2, attrs, n_attrs, node->out[0], err);
}

/* A batch_norm that was not folded into a convolution: a scale and a shift. */
static berth_status rewrite_norm(pass *p, size_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  berth_value scale, shift, x, product;
  bool is_static = p->r.graph->values[node->in[0]].type == BERTH_F32;
  for (uint32_t i = 1; i < node->n_in; i++) is_static = is_static && p->is_static[node->in[i]];
  if (!has_twin(p, node->in[0]) || !is_static) return rewrite_channels_last_keep(p, n, err);
  BERTH__TRY(berth__rewrite_norm(&p->r, node, BERTH_VALUE_NONE, &scale, &shift, err));
  BERTH__TRY(to_last(p, node->in[0], &x, err));
  const berth_value of_product[] = {x, scale};
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_mul, of_product, 2, NULL, 0, node->out[0], "#scaled", &product, err));
  const berth_value of_sum[] = {product, shift};
  return berth__rewrite_add(&p->r, BERTH__OP_add, of_sum, 2, NULL, 0, node->out[0], "#last",
                            &p->twins.twin[node->out[0]], err);
}

/* Splits have several results, which all become twins. */
static berth_status rewrite_split(pass *p, size_t n, berth_error *err) {
  /* as narrows, one per part, which are views as well */
  const berth__node *node = &p->r.old[n];
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->in[0])->rank;
  int64_t axis = node->attrs[BERTH__SPLIT_AXIS].i, at = 0;
  if (axis < 0) axis += rank;
  if (!has_twin(p, node->in[0]) || node->n_in > 1) return rewrite_channels_last_keep(p, n, err);
  const int64_t to = rewrite_channels_last_axis(axis, rank);
  for (uint32_t i = 0; i < node->n_out; i++) {
    const int64_t end = at + rewrite_channels_last_shape_of(p, node->out[i])->dim[axis];
    const berth_attr attrs[] = {berth_attr_ints("axes", &to, 1), berth_attr_ints("starts", &at, 1),
                                berth_attr_ints("ends", &end, 1)};
    BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_narrow, &p->twins.twin[node->in[0]], 1, attrs, 3, node->out[i],
                                  "#last", &p->twins.twin[node->out[i]], err));
    at = end;
  }
  return BERTH_OK;
}

/* ---- Extents that only a run knows ---- */

static uint32_t channels_last_bounds_of(const pass *p, berth_value value) {
  return value != BERTH_VALUE_NONE ? p->r.graph->values[value].bounded : 0;
}

/* Operands with fewer axes would get their bounds as extents. */
static bool has_full_ranks(const pass *p, const berth__node *node) {
  const uint32_t rank = rewrite_channels_last_shape_of(p, node->out[0])->rank;
  for (uint32_t i = 0; i < node->n_in; i++)
    if (channels_last_bounds_of(p, node->in[i]) != 0 && rewrite_channels_last_shape_of(p, node->in[i])->rank != rank)
      return false;
  return true;
}

/* Whether a node with such extents may be rewritten: nothing that is made may use a bound as an extent. */
static bool may_be_bounded(const pass *p, const berth__node *node) {
  const uint32_t x = node->n_in != 0 ? channels_last_bounds_of(p, node->in[0]) : 0;
  switch (node->op->code) {
    case BERTH__OP_conv: return berth__windows_are_known(p->r.graph, node);
    case BERTH__OP_conv_transpose:
      return (x >> 1 & 1u) == 0 && channels_last_bounds_of(p, node->in[BERTH__CONV_WEIGHT]) == 0;
    case BERTH__OP_batch_norm: return (x >> 1 & 1u) == 0;
    case BERTH__OP_split: {
      const int64_t axis = node->attrs[BERTH__SPLIT_AXIS].i;
      return (x >> (axis < 0 ? axis + rewrite_channels_last_shape_of(p, node->in[0])->rank : axis) & 1u) == 0;
    }
    case BERTH__OP_max_pool:
    case BERTH__OP_avg_pool:
    case BERTH__OP_lp_pool:
    case BERTH__OP_reduce_mean:
    case BERTH__OP_reduce_sum:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min:
    case BERTH__OP_transpose:
    case BERTH__OP_softmax:
    case BERTH__OP_log_softmax:
    case BERTH__OP_narrow:
    case BERTH__OP_pad:
    case BERTH__OP_resize: return true;
    case BERTH__OP_concat: return !is_split(p, node);
    default: return is_elementwise(node) && has_full_ranks(p, node);
  }
}

/* ---- Every node ---- */

static bool is_convolution(const pass *p, const berth__node *node) {
  if (node->op == NULL || (berth__node_is_bounded(p->r.graph, node) && !may_be_bounded(p, node))) return false;
  if (node->op->code == BERTH__OP_conv_transpose) return may_transpose(p, node);
  return node->op->code == BERTH__OP_conv && can_convolve(p, node);
}

/* The convolution that a norm is folded into; NULL: none. It is placed at the norm, since the norm's operands may be
 * computed between the two. */
static const berth__node *convolution_before(const pass *p, const berth__node *norm) {
  const uint32_t maker = p->maker[norm->in[0]];
  if (maker == UINT32_MAX || norm_behind(p, norm->in[0]) != norm) return NULL;
  return is_convolution(p, &p->r.old[maker]) ? &p->r.old[maker] : NULL;
}

static berth_status rewrite_any_convolution(pass *p, const berth__node *node, berth_error *err) {
  return node->op->code == BERTH__OP_conv ? channels_last_rewrite_conv(p, node, err) : rewrite_transposed(p, node, err);
}

static berth_status channels_last_rewrite_node(pass *p, size_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  const bool has = node->n_in != 0 && has_twin(p, node->in[0]);
  const uint32_t rank =
      node->n_in != 0 && node->in[0] != BERTH_VALUE_NONE ? rewrite_channels_last_shape_of(p, node->in[0])->rank : 0;
  if (berth__node_is_bounded(p->r.graph, node) && !may_be_bounded(p, node))
    return rewrite_channels_last_keep(p, n, err);
  switch (node->op->code) {
    case BERTH__OP_conv:
    case BERTH__OP_conv_transpose:
      if (!is_convolution(p, node)) return rewrite_channels_last_keep(p, n, err);
      return norm_behind(p, node->out[0]) != NULL ? BERTH_OK : rewrite_any_convolution(p, node, err);
    case BERTH__OP_batch_norm:
      return convolution_before(p, node) != NULL ? rewrite_any_convolution(p, convolution_before(p, node), err)
                                                 : rewrite_norm(p, n, err);
    case BERTH__OP_max_pool:
    case BERTH__OP_avg_pool:
    case BERTH__OP_lp_pool: return rewrite_pool(p, n, err);
    case BERTH__OP_quantize: return rewrite_quantize(p, n, err);
    case BERTH__OP_reduce_mean:
    case BERTH__OP_reduce_sum:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min: return rewrite_reduce(p, n, err);
    case BERTH__OP_transpose:
      if (!has && turns_back(p, node)) {
        p->twins.twin[node->out[0]] = node->in[0];
        return BERTH_OK;
      }
      return has ? rewrite_transpose(p, node, err) : rewrite_channels_last_keep(p, n, err);
    case BERTH__OP_split: return rewrite_split(p, n, err);
    case BERTH__OP_softmax:
    case BERTH__OP_log_softmax: return has ? follow_axes(p, node, 0, 1, err) : rewrite_channels_last_keep(p, n, err);
    case BERTH__OP_conv_weight_grad: return rewrite_weight_grad(p, n, err);
    case BERTH__OP_concat:
      if (is_split(p, node)) return BERTH_OK; /* its reader takes the parts */
      return all_have_twins(p, node) ? follow_axes(p, node, 0, node->n_in, err) : rewrite_channels_last_keep(p, n, err);
    case BERTH__OP_narrow:
      return has && node->n_in == 1 ? follow_axes(p, node, node->attrs[BERTH__NARROW_STARTS].count, 1, err)
                                    : rewrite_channels_last_keep(p, n, err);
    case BERTH__OP_pad:
      return has && node->n_in == 1 ? follow_axes(p, node, rank, 1, err) : rewrite_channels_last_keep(p, n, err);
    case BERTH__OP_resize:
      return has && node->n_in == 2 && !grows_to_an_output(p, node) ? follow_axes(p, node, rank, 1, err)
                                                                    : rewrite_channels_last_keep(p, n, err);
    case BERTH__OP_reshape:
    case BERTH__OP_flatten:
    case BERTH__OP_squeeze:
      return has && is_flat(rewrite_channels_last_shape_of(p, node->in[0]))
                 ? rewrite_channels_last_reshape_to(p, p->twins.twin[node->in[0]], node->out[0], err)
                 : rewrite_channels_last_keep(p, n, err);
    default: break;
  }
  const bool follows = is_elementwise(node) && node->n_out == 1 && is_worth_following(p, node);
  return follows ? rewrite_channels_last_follow(p, node, node->attrs, node->n_in, err)
                 : rewrite_channels_last_keep(p, n, err);
}

static berth_status rewrite_channels_last_allocate(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  BERTH__TRY(berth__twins_create(&p->twins, graph, err));
  p->maker = berth__alloc_array(graph->ctx, graph->n_values, sizeof *p->maker);
  if (p->maker == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t v = 0; v < graph->n_values; v++)
    p->maker[v] = graph->values[v].kind == BERTH_VALUE_NODE ? graph->values[v].node : UINT32_MAX;
  return BERTH_OK;
}

static berth_status channels_last_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (size_t n = 0; n < p->r.n_old; n++) BERTH__TRY(channels_last_rewrite_node(p, n, err));
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++)
    BERTH__TRY(rewrite_channels_last_to_plain(p, berth__graph_kept(graph, i), err));
  return BERTH_OK;
}

static bool has_convolution(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->code == BERTH__OP_conv || graph->nodes[n].op->code == BERTH__OP_conv_transpose ||
        is_of_bytes_last(graph, &graph->nodes[n]))
      return true;
  return false;
}

berth_status berth__rewrite_channels_last(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  pass p = {.target = target};
  if (!has_convolution(graph)) return BERTH_OK;
  berth_status status = rewrite_channels_last_allocate(&p, graph, err);
  if (status == BERTH_OK) status = channels_last_rewrite(&p, graph, err);
  berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.is_static);
  berth__twins_free(&p.twins, graph->ctx);
  berth__free(graph->ctx, p.maker);
  return status;
}
