/* Finds quantised products in a graph: dequantize, compute, quantize as exporters write it (QDQ), and integer
 * products whose x is quantised at run time. */
#include <math.h>

#include "ops/chain.h"
#include "ops/conv.h"
#include "rewrite/convolution.h"
#include "rewrite/pattern.h"
#include "rewrite/quantized.h"

static const berth__value *rewrite_quantized_match_value_of(const berth__quant_view *view, berth_value value) {
  return &view->graph->values[value];
}

static const berth__node *maker(const berth__quant_view *view, berth_value value, berth__op_code op) {
  return berth__maker(view->graph, value, op);
}

static const berth__node *only_reader(const berth__quant_view *view, berth_value value, berth__op_code op) {
  return berth__only_reader(view->graph, view->uses, value, op);
}

static int64_t rewrite_quantized_match_count_of(const berth__quant_view *view, berth_value value) {
  return berth__value_count(rewrite_quantized_match_value_of(view, value));
}

static bool rewrite_quantized_match_is_byte(berth_type type) { return type == BERTH_U8 || type == BERTH_I8; }

static bool rewrite_quantized_match_number_of(const berth__quant_view *view, berth_value value, double *out) {
  return berth__is_number(rewrite_quantized_match_value_of(view, value), out);
}

/* A zero point known to be 0 counts as none. */
static berth_value zero_or_none(const berth__quant_view *view, berth_value zero) {
  if (zero == BERTH_VALUE_NONE || rewrite_quantized_match_value_of(view, zero)->data == NULL) return zero;
  const berth_tensor tensor = berth__value_tensor(rewrite_quantized_match_value_of(view, zero),
                                                  rewrite_quantized_match_value_of(view, zero)->data);
  for (int64_t i = 0; i < rewrite_quantized_match_count_of(view, zero); i++)
    if (berth__load_i64(&tensor, i) != 0) return zero;
  return BERTH_VALUE_NONE;
}

static bool is_dequantized(const berth__quant_view *view, berth_value value, berth__quantized *out) {
  const berth__node *node = maker(view, value, BERTH__OP_dequantize);
  if (node == NULL || !rewrite_quantized_match_is_byte(rewrite_quantized_match_value_of(view, node->in[0])->type))
    return false;
  *out = (berth__quantized){node->in[0], node->in[1], berth__operand_of(node, BERTH__QUANTIZE_ZERO_POINT)};
  return rewrite_quantized_match_value_of(view, out->scale)->type == BERTH_F32;
}

/* Bytes widened to i32, possibly minus a zero point. */
static bool is_widened(const berth__quant_view *view, berth_value value, berth__quantized *out) {
  const berth__node *sub = maker(view, value, BERTH__OP_sub);
  const berth__node *cast = maker(view, sub != NULL ? sub->in[0] : value, BERTH__OP_cast);
  if (cast == NULL || !rewrite_quantized_match_is_byte(rewrite_quantized_match_value_of(view, cast->in[0])->type))
    return false;
  *out = (berth__quantized){cast->in[0], BERTH_VALUE_NONE, sub != NULL ? sub->in[1] : BERTH_VALUE_NONE};
  const berth__node *zero = maker(view, out->zero, BERTH__OP_cast);
  if (zero != NULL && rewrite_quantized_match_value_of(view, zero->in[0])->type ==
                          rewrite_quantized_match_value_of(view, out->bytes)->type)
    out->zero = zero->in[0];
  return true;
}

/* One entry for all, or one per column along an axis of a value with `rank` axes. */
static bool are_entries(const berth__quant_view *view, berth_value value, int64_t columns, uint32_t axis,
                        uint32_t rank) {
  if (value == BERTH_VALUE_NONE || rewrite_quantized_match_count_of(view, value) == 1) return true;
  const berth__shape *shape = &rewrite_quantized_match_value_of(view, value)->shape;
  const uint32_t missing = rank - shape->rank;
  return shape->rank <= rank && axis >= missing && rewrite_quantized_match_count_of(view, value) == columns &&
         shape->dim[axis - missing] == columns;
}

static bool rewrite_quantized_match_is_one(const berth__quant_view *view, berth_value value) {
  return value == BERTH_VALUE_NONE || rewrite_quantized_match_count_of(view, value) == 1;
}

/* An int8 weight [columns of `axis`] that is known before a run. */
static bool fits_weight(const berth__quant_view *view, const berth__quantized *w, int64_t columns, uint32_t axis) {
  const uint32_t rank = rewrite_quantized_match_value_of(view, w->bytes)->shape.rank;
  return view->is_static[w->bytes] && are_entries(view, w->scale, columns, axis, rank) &&
         are_entries(view, w->zero, columns, axis, rank);
}

/* ---- The result ---- */

/* A sum with one bias per column. */
static void take_bias(const berth__quant_view *view, berth__quant_product *p, uint32_t *sink) {
  const berth__node *add = only_reader(view, p->out, BERTH__OP_add);
  if (add == NULL || p->is_conv || p->bias != BERTH_VALUE_NONE) return; /* a conv's columns are not the last axis */
  const berth_value bias = add->in[add->in[0] == p->out ? 1 : 0];
  const berth__shape *shape = &rewrite_quantized_match_value_of(view, bias)->shape;
  if (!view->is_static[bias] || rewrite_quantized_match_value_of(view, bias)->type != BERTH_F32 || shape->rank == 0 ||
      rewrite_quantized_match_count_of(view, bias) != p->columns || shape->dim[shape->rank - 1] != p->columns ||
      !berth__shape_equal(&rewrite_quantized_match_value_of(view, add->out[0])->shape,
                          &rewrite_quantized_match_value_of(view, p->out)->shape))
    return;
  *sink = view->uses->reader[p->out];
  p->bias = bias;
  p->out = add->out[0];
}

static void take_bounds(const berth__quant_view *view, berth__quant_product *p, uint32_t *sink) {
  const berth__node *relu = only_reader(view, p->out, BERTH__OP_relu);
  const berth__node *clamp = only_reader(view, p->out, BERTH__OP_clamp);
  const berth__node *node = relu != NULL ? relu : clamp;
  if (node == NULL) return;
  *sink = view->uses->reader[p->out];
  p->out = node->out[0];
  p->n_steps = 1;
  p->code[0] = relu != NULL ? BERTH__CHAIN_relu : BERTH__CHAIN_clamp;
  if (relu != NULL) return;
  p->n_numbers = 2;
  for (uint32_t k = 0; k < 2; k++) {
    p->numbers[k] = clamp->attrs[BERTH__CLAMP_MIN + k].f;
    p->code[2 + k] = 1 + k; /* after register 0, the result */
  }
}

static void take_quantize(const berth__quant_view *view, berth__quant_product *p, uint32_t *sink) {
  const berth__node *node = only_reader(view, p->out, BERTH__OP_quantize);
  double scale, zero = 0;
  if (node == NULL || node->in[0] != p->out ||
      !rewrite_quantized_match_is_byte(rewrite_quantized_match_value_of(view, node->out[0])->type))
    return;
  if (!rewrite_quantized_match_number_of(view, node->in[1], &scale) || !(scale > 0)) return;
  if (node->n_in > BERTH__QUANTIZE_ZERO_POINT &&
      !rewrite_quantized_match_number_of(view, node->in[BERTH__QUANTIZE_ZERO_POINT], &zero))
    return;
  *sink = view->uses->reader[p->out];
  p->out = node->out[0];
  p->out_scale = scale;
  p->out_unit = node->in[1];
  p->out_zero = (int64_t)zero;
}

/* ---- Products ---- */

/* Element i of a scale, or its single element. */
static double scale_at(const berth__quant_view *view, berth_value scale, int64_t i) {
  const berth__value *value = rewrite_quantized_match_value_of(view, scale);
  const berth_tensor tensor = berth__value_tensor(value, value->data);
  return berth__load_f64(&tensor, berth__value_count(value) == 1 ? 0 : i);
}

/* Whether a bias's scale equals that of the sums, allowing for different rounding of the product by the exporter. */
static bool has_scale_of_sums(const berth__quant_view *view, const berth__quant_product *p, berth_value scale) {
  const berth_value all[] = {scale, p->x.scale, p->weight.scale};
  for (size_t k = 0; k < 3; k++) {
    const berth__value *value = rewrite_quantized_match_value_of(view, all[k]);
    const int64_t count = berth__value_count(value);
    if (value->data == NULL || (count != 1 && count != p->columns)) return false;
  }
  for (int64_t i = 0; i < p->columns; i++) {
    const double sums = scale_at(view, p->x.scale, i) * scale_at(view, p->weight.scale, i);
    if (!(fabs(scale_at(view, scale, i) - sums) <= sums * 0x1p-22)) return false;
  }
  return true;
}

/* An i32 bias that was dequantised with the scale of the sums, as in ONNX's QLinearConv, is used as integers. With
 * another scale it is not a multiple of theirs. */
static void count_bias(const berth__quant_view *view, berth__quant_product *p) {
  const berth__node *node = p->bias != BERTH_VALUE_NONE ? maker(view, p->bias, BERTH__OP_dequantize) : NULL;
  if (node == NULL || rewrite_quantized_match_value_of(view, node->in[0])->type != BERTH_I32) return;
  if (!has_scale_of_sums(view, p, node->in[1]) ||
      zero_or_none(view, berth__operand_of(node, BERTH__QUANTIZE_ZERO_POINT)) != BERTH_VALUE_NONE)
    return;
  p->bias = node->in[0];
  p->is_bias_counted = true;
}

typedef bool (*find_bytes)(const berth__quant_view *view, berth_value value, berth__quantized *out);

/* Integer sums have integer operands. */
static find_bytes finder_of(const berth__quant_view *view, const berth__node *node) {
  return rewrite_quantized_match_value_of(view, node->out[0])->type == BERTH_I32 ? is_widened : is_dequantized;
}

static bool match_conv(const berth__quant_view *view, const berth__node *node, berth__quant_product *p) {
  const berth__shape *x = &rewrite_quantized_match_value_of(view, node->in[0])->shape;
  const find_bytes is_bytes = finder_of(view, node);
  p->is_conv = true;
  p->bias = berth__operand_of(node, BERTH__CONV_BIAS);
  if (berth__conv_has_epilogue(node->attrs)) return false;
  if (berth__node_is_bounded(view->graph, node) && !berth__windows_are_known(view->graph, node)) return false;
  if (x->rank > 5 || !is_bytes(view, node->in[0], &p->x) || !is_bytes(view, node->in[1], &p->weight)) return false;
  p->columns = rewrite_quantized_match_value_of(view, p->weight.bytes)->shape.dim[0];
  return rewrite_quantized_match_is_one(view, p->x.scale) && rewrite_quantized_match_is_one(view, p->x.zero) &&
         fits_weight(view, &p->weight, p->columns, 0) && (p->bias == BERTH_VALUE_NONE || view->is_static[p->bias]);
}

static bool match_matmul(const berth__quant_view *view, const berth__node *node, berth__quant_product *p) {
  const berth__node *turn = maker(view, node->in[1], BERTH__OP_transpose);
  const berth_value weight = turn != NULL ? turn->in[0] : node->in[1];
  const find_bytes is_bytes = finder_of(view, node);
  if (!is_bytes(view, node->in[0], &p->x) || !is_bytes(view, weight, &p->weight)) return false;
  const berth__shape *w = &rewrite_quantized_match_value_of(view, p->weight.bytes)->shape;
  p->is_weight_turned = turn != NULL;
  if (w->rank != 2 || rewrite_quantized_match_value_of(view, p->x.bytes)->shape.rank < 2) return false;
  p->columns = w->dim[turn != NULL ? 0 : 1];
  return rewrite_quantized_match_is_one(view, p->x.scale) && rewrite_quantized_match_is_one(view, p->x.zero) &&
         fits_weight(view, &p->weight, p->columns, turn != NULL ? 0 : 1);
}

/* Integer sums become numbers: cast, then times a scale. */
static bool take_scale(const berth__quant_view *view, berth__quant_product *p, uint32_t *sink) {
  const berth__node *cast = only_reader(view, p->out, BERTH__OP_cast);
  if (cast == NULL || rewrite_quantized_match_value_of(view, cast->out[0])->type != BERTH_F32) return false;
  const berth__node *mul = only_reader(view, cast->out[0], BERTH__OP_mul);
  if (mul == NULL || !berth__shape_equal(&rewrite_quantized_match_value_of(view, mul->out[0])->shape,
                                         &rewrite_quantized_match_value_of(view, p->out)->shape))
    return false;
  p->scale = mul->in[mul->in[0] == cast->out[0] ? 1 : 0];
  const uint32_t rank = rewrite_quantized_match_value_of(view, p->out)->shape.rank;
  if (!are_entries(view, p->scale, p->columns, p->is_conv ? 1 : rank - 1, rank)) return false;
  *sink = view->uses->reader[cast->out[0]];
  p->out = mul->out[0];
  return true;
}

bool berth__quant_match_product(const berth__quant_view *view, uint32_t n, berth__quant_product *out, uint32_t *sink) {
  const berth__node *node = &view->graph->nodes[n];
  *out = (berth__quant_product){.anchor = n,
                                .scale = BERTH_VALUE_NONE,
                                .bias = BERTH_VALUE_NONE,
                                .out = node->n_out > 0 ? node->out[0] : BERTH_VALUE_NONE};
  *sink = n;
  if (node->op->code == BERTH__OP_conv) {
    if (!match_conv(view, node, out)) return false;
  } else if (node->op->code != BERTH__OP_matmul || !match_matmul(view, node, out)) {
    return false;
  }
  const bool is_sum = rewrite_quantized_match_value_of(view, node->out[0])->type == BERTH_I32;
  out->is_raw = is_sum && !take_scale(view, out, sink);
  if (out->is_raw && (!view->takes_sums || out->bias != BERTH_VALUE_NONE)) return false;
  out->weight.zero = zero_or_none(view, out->weight.zero);
  out->x.zero = zero_or_none(view, out->x.zero);
  if (out->is_raw) return true;
  take_bias(view, out, sink);
  if (out->scale == BERTH_VALUE_NONE) count_bias(view, out);
  take_bounds(view, out, sink);
  take_quantize(view, out, sink);
  return true;
}

/* ---- Sums ---- */

static bool known_numbers(const berth__quant_view *view, berth_value scale, berth_value zero, double *scale_out,
                          int64_t *zero_out) {
  double number = 0;
  if (!rewrite_quantized_match_number_of(view, scale, scale_out) ||
      (zero != BERTH_VALUE_NONE && !rewrite_quantized_match_number_of(view, zero, &number)))
    return false;
  *zero_out = (int64_t)number;
  return true;
}

bool berth__quant_match_sum(const berth__quant_view *view, uint32_t n, berth__quant_sum *out) {
  const berth__node *node = &view->graph->nodes[n];
  berth__quantized a, b;
  if (node->op->code != BERTH__OP_quantize ||
      !rewrite_quantized_match_is_byte(rewrite_quantized_match_value_of(view, node->out[0])->type))
    return false;
  if (berth__node_is_bounded(view->graph, node)) return false;
  const berth__node *add = maker(view, node->in[0], BERTH__OP_add);
  if (add == NULL || view->uses->count[node->in[0]] != 1) return false;
  if (!is_dequantized(view, add->in[0], &a) || !is_dequantized(view, add->in[1], &b)) return false;
  *out = (berth__quant_sum){.a = a.bytes, .b = b.bytes, .out = node->out[0]};
  return berth__shape_equal(&rewrite_quantized_match_value_of(view, a.bytes)->shape,
                            &rewrite_quantized_match_value_of(view, b.bytes)->shape) &&
         known_numbers(view, a.scale, a.zero, &out->a_scale, &out->a_zero) &&
         known_numbers(view, b.scale, b.zero, &out->b_scale, &out->b_zero) &&
         known_numbers(view, node->in[1], berth__operand_of(node, BERTH__QUANTIZE_ZERO_POINT), &out->out_scale,
                       &out->out_zero) &&
         out->out_scale > 0;
}

/* ---- Bytes that stay what they are ---- */

/* Whether quantize(dequantize(byte)) is the byte: its distance from the zero point times the scale, divided by the
 * scale again, is rounded to what it was, if nothing underflows or overflows. */
static bool brings_back(double scale) { return scale >= 0x1p-126 && scale <= 0x1p118; }

bool berth__quant_match_same(const berth__quant_view *view, uint32_t n, berth__quant_same *out) {
  const berth__node *node = &view->graph->nodes[n];
  berth__quantized x;
  double scale, own_scale;
  int64_t zero, own_zero;
  if (node->op->code != BERTH__OP_quantize || berth__node_is_bounded(view->graph, node)) return false;
  const berth__node *pool = maker(view, node->in[0], BERTH__OP_max_pool);
  if (pool != NULL && (pool->n_out != 1 || view->uses->count[node->in[0]] != 1)) return false;
  if (!is_dequantized(view, pool != NULL ? pool->in[0] : node->in[0], &x)) return false;
  *out = (berth__quant_same){x.bytes, node->out[0], BERTH__NO_NODE};
  if (pool != NULL) out->pool = rewrite_quantized_match_value_of(view, node->in[0])->node;
  return rewrite_quantized_match_value_of(view, x.bytes)->type ==
             rewrite_quantized_match_value_of(view, node->out[0])->type &&
         known_numbers(view, x.scale, x.zero, &scale, &zero) &&
         known_numbers(view, node->in[1], berth__operand_of(node, BERTH__QUANTIZE_ZERO_POINT), &own_scale, &own_zero) &&
         scale == own_scale && zero == own_zero && brings_back(scale);
}

/* ---- Means ---- */

#define MOST_COUNTED 65536 /* bytes whose sum is exact in f32 */

bool berth__quant_match_mean(const berth__quant_view *view, uint32_t n, berth__quant_mean *out) {
  const berth__node *node = &view->graph->nodes[n];
  berth__quantized x;
  if (node->op->code != BERTH__OP_reduce_mean || node->n_in > 1 || berth__node_is_bounded(view->graph, node))
    return false;
  if (!is_dequantized(view, node->in[0], &x)) return false;
  const int64_t of_result = rewrite_quantized_match_count_of(view, node->out[0]);
  *out = (berth__quant_mean){.x = x.bytes, .out = node->out[0], .axes = &node->attrs[BERTH__REDUCE_AXES]};
  if (of_result == 0) return false;
  out->count = rewrite_quantized_match_count_of(view, x.bytes) / of_result;
  return out->count > 0 && out->count <= MOST_COUNTED && known_numbers(view, x.scale, x.zero, &out->scale, &out->zero);
}

/* ---- Ranges ---- */

static bool rewrite_quantized_match_is_known(const berth__quant_view *view, berth_value value, double wanted) {
  double number;
  return rewrite_quantized_match_number_of(view, value, &number) && number == wanted;
}

/* pick(reduce(x), 0) over all elements. */
static bool rewrite_quantized_match_is_bound(const berth__quant_view *view, berth_value value, berth__op_code pick,
                                             berth__op_code reduce, berth_value *x) {
  const berth__node *node = maker(view, value, pick);
  if (node == NULL || !rewrite_quantized_match_is_known(view, node->in[1], 0)) return false;
  const berth__node *all = maker(view, node->in[0], reduce);
  if (all == NULL || all->n_in > 1 || all->attrs[BERTH__REDUCE_AXES].count != 0 ||
      rewrite_quantized_match_value_of(view, value)->shape.rank != 0)
    return false;
  *x = all->in[0];
  return rewrite_quantized_match_value_of(view, *x)->type == BERTH_F32;
}

/* The zero point that goes with a scale: quantize(neg(low), scale, 0). */
static uint32_t find_zero(const berth__quant_view *view, berth_value low, berth_value scale) {
  for (uint32_t n = 0; n < view->graph->n_nodes; n++) {
    const berth__node *node = &view->graph->nodes[n];
    if (node->op->code != BERTH__OP_quantize || node->in[1] != scale) continue;
    const berth__node *neg = maker(view, node->in[0], BERTH__OP_neg);
    if (neg != NULL && neg->in[0] == low && rewrite_quantized_match_value_of(view, node->out[0])->type == BERTH_U8 &&
        (node->n_in <= BERTH__QUANTIZE_ZERO_POINT ||
         rewrite_quantized_match_is_known(view, node->in[BERTH__QUANTIZE_ZERO_POINT], 0)))
      return n;
  }
  return BERTH__NO_NODE;
}

bool berth__quant_match_range(const berth__quant_view *view, uint32_t n, berth__quant_range *out) {
  const berth__node *node = &view->graph->nodes[n];
  berth_value other;
  if (node->op->code != BERTH__OP_where || !rewrite_quantized_match_is_known(view, node->in[BERTH__WHERE_A], 1))
    return false;
  const berth__node *is_flat = maker(view, node->in[BERTH__WHERE_CONDITION], BERTH__OP_eq),
                    *div = maker(view, node->in[BERTH__WHERE_B], BERTH__OP_div);
  if (is_flat == NULL || div == NULL || !rewrite_quantized_match_is_known(view, is_flat->in[1], 0) ||
      !rewrite_quantized_match_is_known(view, div->in[1], 255))
    return false;
  const berth__node *range = maker(view, div->in[0], BERTH__OP_sub);
  if (range == NULL || is_flat->in[0] != div->in[0]) return false;
  if (!rewrite_quantized_match_is_bound(view, range->in[0], BERTH__OP_max, BERTH__OP_reduce_max, &out->x) ||
      !rewrite_quantized_match_is_bound(view, range->in[1], BERTH__OP_min, BERTH__OP_reduce_min, &other) ||
      out->x != other)
    return false;
  out->scale = node->out[0];
  out->zero_node = find_zero(view, range->in[1], out->scale);
  if (out->zero_node == BERTH__NO_NODE) return false;
  out->zero = view->graph->nodes[out->zero_node].out[0];
  return true;
}
