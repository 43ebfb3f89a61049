/* Quantised models: int8 convolutions and products stay int8, with weights packed once.
 *
 * Convolutions have their channels last: as in channels_last.c an int8 value may have a twin. */
#include "rewrite/quantized.h"

#include <stdio.h>

#include "ops/chain.h"
#include "ops/conv.h"
#include "pass/pass.h"
#include "pass/prelude.h"
#include "rewrite/convolution.h"
#include "rewrite/pattern.h"
#include "rewrite/twins.h"

typedef enum action {
  KEEP,
  LEAVE_OUT, /* absorbed by another node */
  PRODUCT,   /* the sink of a product */
  SUM,
  SAME,
  MEAN,
  RANGE
} action;

typedef struct found {
  action what;
  union {
    berth__quant_product product;
    berth__quant_sum sum;
    berth__quant_same same;
    berth__quant_mean mean;
    berth__quant_range range;
  };
} found;

typedef struct pass {
  const berth__rewrite_target *target;
  berth__rewrite r;
  berth__uses uses;
  bool *is_static;
  berth__twins twins;
  found *found; /* one per node */
  bool changes;
} pass;

static berth_graph *graph_of(const pass *p) { return p->r.graph; }
static const berth__value *rewrite_quantized_value_of(const pass *p, berth_value value) {
  return &graph_of(p)->values[value];
}

static berth_status rewrite_quantized_to_plain(pass *p, berth_value value, berth_error *err) {
  return berth__twins_plain(&p->twins, &p->r, value, err);
}

/* ---- Scales and zero points ---- */

/* As a list, or as a scalar. */
static berth_status flat(pass *p, berth_value *value, berth_error *err) {
  int64_t count = 0;
  if (*value == BERTH_VALUE_NONE || rewrite_quantized_value_of(p, *value)->shape.rank <= 1) return BERTH_OK;
  berth__shape_count(&rewrite_quantized_value_of(p, *value)->shape, &count);
  const berth_dim dim = {.extent = count};
  const berth_attr attr = berth_attr_dims("shape", &dim, 1);
  return berth__rewrite_add(&p->r, BERTH__OP_reshape, value, 1, &attr, 1, *value, "#flat", value, err);
}

/* Converts zero points that were widened to i32 back to bytes. */
static berth_status as_byte(pass *p, berth_value *zero, berth_type type, berth_error *err) {
  BERTH__TRY(flat(p, zero, err));
  if (*zero == BERTH_VALUE_NONE || rewrite_quantized_value_of(p, *zero)->type == type) return BERTH_OK;
  const berth_attr attr = berth_attr_string("to", berth_type_name(type));
  return berth__rewrite_add(&p->r, BERTH__OP_cast, zero, 1, &attr, 1, *zero, "#byte", zero, err);
}

static berth_status rewrite_quantized_scale_of(pass *p, const berth__quant_product *q, berth_value *out,
                                               berth_error *err) {
  berth_value both[2] = {q->x.scale, q->weight.scale};
  *out = q->scale;
  if (q->is_raw) return BERTH_OK;
  if (q->scale != BERTH_VALUE_NONE) return flat(p, out, err);
  for (uint32_t k = 0; k < 2; k++) BERTH__TRY(flat(p, &both[k], err));
  return berth__rewrite_add(&p->r, BERTH__OP_mul, both, 2, NULL, 0, q->out, "#scale", out, err);
}

/* Operands of the new node other than x and the weight. */
enum {
  X,
  WEIGHT,
  SCALE,
  X_ZERO,
  WEIGHT_ZERO,
  BIAS,
  N_OPERANDS
};

/* Numbers that are dequantised, multiplied and quantised again are computed in units of the result, so that no element
 * is divided. Sums of integers are scaled and divided as in the graph, which gives the same bytes as its nodes. */
static bool counts_in_steps(const pass *p, const berth__quant_product *q) {
  return q->scale == BERTH_VALUE_NONE && rewrite_quantized_value_of(p, q->out)->type != BERTH_F32;
}

static berth_status in_steps(pass *p, const berth__quant_product *q, berth_value *value, berth_error *err) {
  berth_value both[2] = {*value, q->out_unit};
  if (*value == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(flat(p, &both[1], err));
  return berth__rewrite_add(&p->r, BERTH__OP_div, both, 2, NULL, 0, *value, "#steps", value, err);
}

static berth_status rewrite_quantized_operands_of(pass *p, const berth__quant_product *q, berth_value *in,
                                                  berth_error *err) {
  in[X_ZERO] = q->x.zero;
  in[WEIGHT_ZERO] = q->weight.zero;
  in[BIAS] = q->bias;
  BERTH__TRY(rewrite_quantized_scale_of(p, q, &in[SCALE], err));
  BERTH__TRY(as_byte(p, &in[X_ZERO], rewrite_quantized_value_of(p, q->x.bytes)->type, err));
  BERTH__TRY(as_byte(p, &in[WEIGHT_ZERO], rewrite_quantized_value_of(p, q->weight.bytes)->type, err));
  BERTH__TRY(flat(p, &in[BIAS], err));
  if (!counts_in_steps(p, q)) return BERTH_OK;
  BERTH__TRY(in_steps(p, q, &in[SCALE], err));
  return q->is_bias_counted ? BERTH_OK : in_steps(p, q, &in[BIAS], err);
}

static uint32_t rewrite_quantized_count_operands(const berth_value *in) {
  uint32_t n = N_OPERANDS;
  while (n > SCALE + 1 && in[n - 1] == BERTH_VALUE_NONE) n--;
  return n;
}

/* numbers: those of the epilogue, which the attributes point to. */
static uint32_t result_attrs(const pass *p, const berth__quant_product *q, berth_attr *attrs, double *numbers) {
  const berth_type to = rewrite_quantized_value_of(p, q->out)->type;
  uint32_t n = 0;
  for (uint32_t k = 0; k < q->n_numbers; k++)
    numbers[k] = counts_in_steps(p, q) ? q->numbers[k] / q->out_scale : q->numbers[k];
  attrs[n++] = berth_attr_ints("code", q->code, 4 * q->n_steps);
  attrs[n++] = berth_attr_floats("numbers", numbers, q->n_numbers);
  attrs[n++] = berth_attr_string("weights", berth_type_name(rewrite_quantized_value_of(p, q->weight.bytes)->type));
  if (to == BERTH_F32) return n;
  attrs[n++] = berth_attr_string("to", berth_type_name(to));
  if (q->is_raw) return n;
  attrs[n++] = berth_attr_float("out_scale", counts_in_steps(p, q) ? 1 : q->out_scale);
  attrs[n++] = berth_attr_int("out_zero", q->out_zero);
  return n;
}

/* ---- Products ---- */

static berth_status rewrite_matmul(pass *p, const berth__quant_product *q, berth_error *err) {
  const int64_t panel = p->target->panel, perm[2] = {1, 0};
  const berth_attr pack = berth_attr_int("panel", panel), swap = berth_attr_ints("perm", perm, 2);
  berth_value in[N_OPERANDS] = {q->x.bytes}, weight = q->weight.bytes;
  berth_attr attrs[10] = {berth_attr_int("columns", q->columns), berth_attr_int("panel", panel)};
  double numbers[2];
  BERTH__TRY(rewrite_quantized_to_plain(p, q->x.bytes, err));
  if (q->is_weight_turned)
    BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_transpose, &weight, 1, &swap, 1, weight, "#turned", &weight, err));
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_pack_weights_i8, &weight, 1, &pack, 1, q->weight.bytes, "#packed",
                                &in[WEIGHT], err));
  BERTH__TRY(rewrite_quantized_operands_of(p, q, in, err));
  const uint32_t n_attrs = 2 + result_attrs(p, q, attrs + 2, numbers);
  p->twins.has_plain[q->out] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_qproduct, in, rewrite_quantized_count_operands(in), attrs, n_attrs,
                             q->out, err);
}

/* [O, C / group, kernel...] as [kernel..., C / group, O], packed; or as [kernel..., O] if every channel has its own
 * kernel. */
static berth_status weight_of(pass *p, const berth__quant_product *q, const berth__windows *w, int64_t group,
                              bool is_depthwise, berth_value *out, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  berth_dim dims[BERTH_MAX_RANK];
  const berth_value weight = q->weight.bytes;
  const uint32_t rank = w->spatial + 2;
  for (uint32_t k = 0; k < w->spatial; k++) {
    perm[k] = k + 2;
    dims[k] = (berth_dim){.extent = w->kernel[k]};
  }
  perm[rank - 2] = 1;
  perm[rank - 1] = 0;
  dims[w->spatial] = (berth_dim){.extent = q->columns};
  const berth_attr turned = berth_attr_ints("perm", perm, rank), taps = berth_attr_dims("shape", dims, rank - 1);
  const berth_attr pack[] = {berth_attr_int("panel", p->target->panel), berth_attr_int("groups", group)};
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_transpose, &weight, 1, &turned, 1, weight, "#turned", out, err));
  if (is_depthwise) return berth__rewrite_add(&p->r, BERTH__OP_reshape, out, 1, &taps, 1, weight, "#taps", out, err);
  return berth__rewrite_add(&p->r, BERTH__OP_pack_weights_i8, out, 1, pack, 2, weight, "#packed", out, err);
}

static berth_status quantized_rewrite_conv(pass *p, const berth__quant_product *q, berth_error *err) {
  const berth__node *conv = &p->r.old[q->anchor];
  const int64_t group = conv->attrs[BERTH__CONV_GROUP].i;
  const berth__shape *weight = &rewrite_quantized_value_of(p, q->weight.bytes)->shape;
  const bool is_depthwise = weight->dim[1] == 1 && weight->dim[0] == group;
  berth_value in[N_OPERANDS];
  berth__windows w;
  berth_attr attrs[16];
  double numbers[2];
  uint32_t n = 0;
  berth__windows_of(p->r.graph, conv, &w);
  BERTH__TRY(berth__twins_last(&p->twins, &p->r, q->x.bytes, &in[X], err));
  BERTH__TRY(weight_of(p, q, &w, group, is_depthwise, &in[WEIGHT], err));
  BERTH__TRY(rewrite_quantized_operands_of(p, q, in, err));
  n += berth__windows_attrs(&w, attrs);
  if (!is_depthwise) {
    attrs[n++] = berth_attr_int("channels", q->columns);
    attrs[n++] = berth_attr_int("panel", p->target->panel);
    attrs[n++] = berth_attr_int("group", group);
  }
  n += result_attrs(p, q, attrs + n, numbers);
  return berth__rewrite_add(&p->r, is_depthwise ? BERTH__OP_qdepthwise : BERTH__OP_qconv_last, in,
                            rewrite_quantized_count_operands(in), attrs, n, q->out, "#last", &p->twins.twin[q->out],
                            err);
}

/* ---- Sums ---- */

/* a fa + b fb + c, rounded, plus the zero point; storing it as a byte clamps it. */
static berth_status rewrite_sum(pass *p, const berth__quant_sum *s, berth_error *err) {
  enum {
    A,
    B,
    A_FACTOR,
    B_FACTOR,
    OFFSET,
    OUT_ZERO,
    FIRST_STEP
  };
  const double a_factor = s->a_scale / s->out_scale, b_factor = s->b_scale / s->out_scale;
  const double numbers[] = {a_factor, b_factor, -(double)s->a_zero * a_factor - (double)s->b_zero * b_factor,
                            (double)s->out_zero};
  const int64_t code[] = {BERTH__CHAIN_mul,
                          A,
                          A_FACTOR,
                          0,
                          BERTH__CHAIN_mul,
                          B,
                          B_FACTOR,
                          0,
                          BERTH__CHAIN_add,
                          FIRST_STEP,
                          FIRST_STEP + 1,
                          0,
                          BERTH__CHAIN_add,
                          FIRST_STEP + 2,
                          OFFSET,
                          0,
                          BERTH__CHAIN_round,
                          FIRST_STEP + 3,
                          0,
                          0,
                          BERTH__CHAIN_add,
                          FIRST_STEP + 4,
                          OUT_ZERO,
                          0};
  const berth_attr attrs[] = {berth_attr_ints("code", code, sizeof code / sizeof *code),
                              berth_attr_floats("numbers", numbers, sizeof numbers / sizeof *numbers),
                              berth_attr_string("type", berth_type_name(rewrite_quantized_value_of(p, s->out)->type))};
  berth_value in[2] = {s->a, s->b};
  if (p->twins.twin[s->a] != BERTH_VALUE_NONE && p->twins.twin[s->b] != BERTH_VALUE_NONE) {
    const berth_value twins[2] = {p->twins.twin[s->a], p->twins.twin[s->b]};
    return berth__rewrite_add(&p->r, BERTH__OP_chain, twins, 2, attrs, 3, s->out, "#last", &p->twins.twin[s->out], err);
  }
  for (uint32_t k = 0; k < 2; k++) BERTH__TRY(rewrite_quantized_to_plain(p, in[k], err));
  p->twins.has_plain[s->out] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_chain, in, 2, attrs, 3, s->out, err);
}

/* ---- Bytes that stay what they are ---- */

static bool is_pool_of_bytes(const pass *p, const berth__node *node) {
  if (node->op->code != BERTH__OP_max_pool || node->n_out != 1) return false;
  const berth__value *x = rewrite_quantized_value_of(p, node->in[0]);
  return (x->type == BERTH_U8 || x->type == BERTH_I8) && x->shape.rank <= 5 &&
         p->twins.twin[node->in[0]] != BERTH_VALUE_NONE;
}

/* The same pooling of bytes, which follow their twin. */
static berth_status rewrite_pool_of_bytes(pass *p, const berth__node *pool, berth_value x, berth_value out,
                                          berth_error *err) {
  berth_attr attrs[BERTH__POOL_CHANNELS_LAST + 1];
  const bool is_last = p->twins.twin[x] != BERTH_VALUE_NONE && rewrite_quantized_value_of(p, x)->shape.rank <= 5;
  uint32_t n = 0;
  for (uint32_t i = 0; i < BERTH__POOL_CHANNELS_LAST; i++) /* unset strings are omitted */
    if (pool->attrs[i].kind != BERTH_ATTR_STRING || pool->attrs[i].s != NULL) attrs[n++] = pool->attrs[i];
  if (is_last) {
    attrs[n++] = berth_attr_int("channels_last", 1);
    return berth__rewrite_add(&p->r, BERTH__OP_max_pool, &p->twins.twin[x], 1, attrs, n, out, "#last",
                              &p->twins.twin[out], err);
  }
  BERTH__TRY(rewrite_quantized_to_plain(p, x, err));
  p->twins.has_plain[out] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_max_pool, &x, 1, attrs, n, out, err);
}

static berth_status rewrite_same(pass *p, const berth__quant_same *same, berth_error *err) {
  if (same->pool != BERTH__NO_NODE) return rewrite_pool_of_bytes(p, &p->r.old[same->pool], same->x, same->out, err);
  p->twins.twin[same->out] = p->twins.twin[same->x];
  if (p->twins.twin[same->out] != BERTH_VALUE_NONE) return BERTH_OK;
  p->twins.has_plain[same->out] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_identity, &same->x, 1, NULL, 0, same->out, err);
}

/* ---- Means and ranges ---- */

/* The exact sum of bytes, minus as many zero points, times the scale over their number. */
static berth_status rewrite_mean(pass *p, const berth__quant_mean *m, berth_error *err) {
  enum {
    SUM_OF_BYTES,
    ZEROS,
    FACTOR,
    FIRST_STEP
  };
  const double numbers[] = {(double)(m->zero * m->count), m->scale / (double)m->count};
  const int64_t code[] = {BERTH__CHAIN_sub, SUM_OF_BYTES, ZEROS, 0, BERTH__CHAIN_mul, FIRST_STEP, FACTOR, 0};
  const berth_attr attrs[] = {berth_attr_ints("code", code, sizeof code / sizeof *code),
                              berth_attr_floats("numbers", numbers, sizeof numbers / sizeof *numbers)};
  const uint32_t rank = rewrite_quantized_value_of(p, m->x)->shape.rank;
  const berth__shape out = rewrite_quantized_value_of(p, m->out)->shape;
  int64_t axes[BERTH_MAX_RANK];
  berth_dim dims[BERTH_MAX_RANK];
  berth_value x = m->x;
  bool is_of_places = m->axes->count + 2 == rank && m->axes->count > 0; /* reduces all axes but batch and channels */
  for (uint32_t i = 0; i < m->axes->count; i++) {
    axes[i] = m->axes->ints[i] < 0 ? m->axes->ints[i] + rank : m->axes->ints[i];
    is_of_places = is_of_places && axes[i] > 1;
  }
  if (is_of_places && p->twins.twin[x] != BERTH_VALUE_NONE) {
    x = p->twins.twin[x];
    for (uint32_t i = 0; i < m->axes->count; i++) axes[i] = berth__twins_axis(axes[i], rank);
  } else {
    BERTH__TRY(rewrite_quantized_to_plain(p, x, err));
  }
  for (uint32_t axis = 0; axis < out.rank; axis++) dims[axis] = (berth_dim){.extent = out.dim[axis]};
  const berth_attr reduce[] = {berth_attr_ints("axes", axes, m->axes->count), berth_attr_int("keepdims", 0)};
  const berth_attr shape[] = {berth_attr_dims("shape", dims, out.rank), berth_attr_int("allowzero", 1)};
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_reduce_bytes, &x, 1, reduce, 2, m->out, "#sums", &x, err));
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_reshape, &x, 1, shape, 2, m->out, "#shaped", &x, err));
  p->twins.has_plain[m->out] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_chain, &x, 1, attrs, 2, m->out, err);
}

/* Both results are existing values. */
static berth_status rewrite_range(pass *p, const berth__quant_range *range, berth_error *err) {
  berth_graph *graph = graph_of(p);
  berth_value made[2];
  char names[2][64];
  const char *name[2] = {names[0], names[1]};
  for (uint32_t k = 0; k < 2; k++) snprintf(names[k], sizeof names[k], "#range.%zu.%u", graph->n_nodes, k);
  BERTH__TRY(rewrite_quantized_to_plain(p, range->x, err));
  BERTH__TRY(berth__graph_add_op(graph, berth__op_builtin(BERTH__OP_quantize_range), &range->x, 1, NULL, 0, name, made,
                                 2, err));
  berth__node *node = &graph->nodes[graph->n_nodes - 1];
  node->out[0] = range->scale;
  node->out[1] = range->zero;
  for (uint32_t k = 0; k < 2; k++) {
    graph->values[node->out[k]].node = (uint32_t)graph->n_nodes - 1;
    p->twins.has_plain[node->out[k]] = true;
    berth__graph_drop_last_value(graph);
  }
  return BERTH_OK;
}

/* ---- The pass ---- */

/* Marks the nodes of a product, except its sink, as absorbed. */
static void leave_out_inside(pass *p, const berth_graph *graph, const berth__quant_product *product) {
  berth_value value = graph->nodes[product->anchor].out[0];
  p->found[product->anchor].what = LEAVE_OUT;
  while (value != product->out) {
    const uint32_t reader = p->uses.reader[value];
    p->found[reader].what = LEAVE_OUT;
    value = graph->nodes[reader].out[0];
  }
}

static void rewrite_quantized_find(pass *p, const berth_graph *graph) {
  const berth__quant_view view = {p->target->takes_sums, graph, &p->uses, p->is_static};
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    found f = {.what = PRODUCT};
    uint32_t sink = n;
    if (p->found[n].what != KEEP) continue;
    if (berth__quant_match_product(&view, n, &f.product, &sink))
      leave_out_inside(p, graph, &f.product);
    else if (berth__quant_match_sum(&view, n, &f.sum))
      f.what = SUM;
    else if (berth__quant_match_same(&view, n, &f.same))
      f.what = SAME;
    else if (berth__quant_match_mean(&view, n, &f.mean))
      f.what = MEAN;
    else if (berth__quant_match_range(&view, n, &f.range))
      f.what = RANGE;
    else
      continue;
    p->found[sink] = f;
    if (f.what == RANGE) p->found[f.range.zero_node].what = LEAVE_OUT;
    if (f.what == SAME && f.same.pool != BERTH__NO_NODE) p->found[f.same.pool].what = LEAVE_OUT;
    p->changes = true;
  }
}

/* For other readers of a twin: dequantises in the twin's layout, and transposes by a view for readers that accept
 * one. */
static berth_status follow_dequantize(pass *p, const berth__node *node, berth_error *err) {
  berth_value in[3] = {p->twins.twin[node->in[0]], node->in[1], berth__operand_of(node, BERTH__QUANTIZE_ZERO_POINT)},
              last;
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = rewrite_quantized_value_of(p, node->in[0])->shape.rank;
  for (uint32_t i = 1; i < node->n_in; i++) BERTH__TRY(rewrite_quantized_to_plain(p, node->in[i], err));
  for (uint32_t axis = 0; axis < rank; axis++) perm[axis] = berth__twins_axis(axis, rank);
  const berth_attr attr = berth_attr_ints("perm", perm, rank);
  BERTH__TRY(
      berth__rewrite_add(&p->r, BERTH__OP_dequantize, in, node->n_in, NULL, 0, node->out[0], "#last", &last, err));
  p->twins.has_plain[node->out[0]] = true;
  return berth__rewrite_make(&p->r, BERTH__OP_transpose, &last, 1, &attr, 1, node->out[0], err);
}

static bool rewrite_quantized_is_one(const pass *p, berth_value value) {
  int64_t count;
  return value == BERTH_VALUE_NONE ||
         (berth__shape_count(&rewrite_quantized_value_of(p, value)->shape, &count) && count == 1);
}

/* A result of the graph that nothing else reads must be plain: its bytes are transposed, which are a quarter of it. */
static bool can_follow(const pass *p, const berth__node *node) {
  const berth_value out = node->out[0];
  if (node->op->code != BERTH__OP_dequantize || (p->uses.is_output[out] && p->uses.reader[out] == UINT32_MAX))
    return false;
  return !p->twins.has_plain[node->in[0]] && rewrite_quantized_is_one(p, node->in[1]) &&
         (node->n_in <= BERTH__QUANTIZE_ZERO_POINT ||
          rewrite_quantized_is_one(p, node->in[BERTH__QUANTIZE_ZERO_POINT]));
}

static berth_status quantized_rewrite_node(pass *p, uint32_t n, berth_error *err) {
  const found *f = &p->found[n];
  switch (f->what) {
    case LEAVE_OUT: return BERTH_OK;
    case PRODUCT:
      return f->product.is_conv ? quantized_rewrite_conv(p, &f->product, err) : rewrite_matmul(p, &f->product, err);
    case SUM: return rewrite_sum(p, &f->sum, err);
    case SAME: return rewrite_same(p, &f->same, err);
    case MEAN: return rewrite_mean(p, &f->mean, err);
    case RANGE: return rewrite_range(p, &f->range, err);
    case KEEP: break;
  }
  const berth__node *node = &p->r.old[n];
  if (is_pool_of_bytes(p, node)) return rewrite_pool_of_bytes(p, node, node->in[0], node->out[0], err);
  return can_follow(p, &p->r.old[n]) ? follow_dequantize(p, &p->r.old[n], err)
                                     : berth__twins_keep(&p->twins, &p->r, n, err);
}

static berth_status rewrite_quantized_allocate(pass *p, const berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  BERTH__TRY(berth__twins_create(&p->twins, graph, err));
  p->found = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *p->found);
  return p->found != NULL ? BERTH_OK : berth__fail_nomem(err, "rewriting a graph");
}

static berth_status quantized_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(rewrite_quantized_allocate(p, graph, err));
  rewrite_quantized_find(p, graph);
  if (!p->changes) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (uint32_t n = 0; n < p->r.n_old; n++) BERTH__TRY(quantized_rewrite_node(p, n, err));
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++)
    BERTH__TRY(rewrite_quantized_to_plain(p, berth__graph_kept(graph, i), err));
  return BERTH_OK;
}

static bool has_bytes(const berth_graph *graph) {
  for (size_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].type == BERTH_U8 || graph->values[v].type == BERTH_I8) return true;
  return false;
}

berth_status berth__rewrite_quantized(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  pass p = {.target = target};
  if (!has_bytes(graph)) return BERTH_OK;
  berth_status status = quantized_rewrite(&p, graph, err);
  berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.is_static);
  berth__twins_free(&p.twins, graph->ctx);
  berth__free(graph->ctx, p.found);
  if (status != BERTH_OK || !p.changes) return status;
  return berth__pass_dead(graph, err);
}
