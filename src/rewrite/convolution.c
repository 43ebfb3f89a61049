/* Convolutions on channels-last values, with weights packed in the prelude. */
#include "rewrite/convolution.h"

#include "ops/chain.h"
#include "ops/conv.h"
#include "ops/conv_last.h"

berth_status berth__rewrite_norm(berth__rewrite *r, const berth__node *norm, berth_value bias, berth_value *scale,
                                 berth_value *shift, berth_error *err) {
  const double epsilon = norm->attrs[BERTH__BATCH_NORM_EPSILON].f;
  const int64_t scale_code[] = {BERTH__CHAIN_add, 1, 2, 0, BERTH__CHAIN_rsqrt, 3, 0, 0, BERTH__CHAIN_mul, 0, 4, 0};
  const berth_attr scale_attrs[] = {berth_attr_ints("code", scale_code, 12), berth_attr_floats("numbers", &epsilon, 1)};
  const berth_value of_scale[] = {norm->in[BERTH__NORM_SCALE], norm->in[BERTH__NORM_VARIANCE]};
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_chain, of_scale, 2, scale_attrs, 2, norm->out[0], "#scale", scale, err));
  /* norm bias - mean scale, or with a bias before the norm: norm bias + (bias - mean) scale */
  const int64_t plain_code[] = {BERTH__CHAIN_mul, 1, 2, 0, BERTH__CHAIN_sub, 0, 3, 0};
  const int64_t bias_code[] = {BERTH__CHAIN_sub, 3, 1, 0, BERTH__CHAIN_mul, 4, 2, 0, BERTH__CHAIN_add, 5, 0, 0};
  const berth_value of_shift[] = {norm->in[BERTH__NORM_BIAS], norm->in[BERTH__NORM_MEAN], *scale, bias};
  const bool has_bias = bias != BERTH_VALUE_NONE;
  const berth_attr code = has_bias ? berth_attr_ints("code", bias_code, 12) : berth_attr_ints("code", plain_code, 8);
  return berth__rewrite_add(r, BERTH__OP_chain, of_shift, has_bias ? 4 : 3, &code, 1, norm->out[0], "#shift", shift,
                            err);
}

/* [O, C / group, kernel...] viewed as [kernel..., C / group, O]. */
static berth_status turn_weight(berth__rewrite *r, berth_value weight, berth_value *out, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = r->graph->values[weight].shape.rank;
  for (uint32_t k = 0; k + 2 < rank; k++) perm[k] = k + 2;
  perm[rank - 2] = 1;
  perm[rank - 1] = 0;
  const berth_attr attr = berth_attr_ints("perm", perm, rank);
  return berth__rewrite_add(r, BERTH__OP_transpose, &weight, 1, &attr, 1, weight, "#turned", out, err);
}

void berth__windows_of(const berth_graph *graph, const berth__node *conv, berth__windows *w) {
  const berth__shape *x = &graph->values[conv->in[BERTH__CONV_X]].shape,
                     *weight = &graph->values[conv->in[BERTH__CONV_WEIGHT]].shape;
  const berth__window_attrs attrs = berth__conv_window(conv->attrs);
  w->spatial = x->rank - 2;
  for (uint32_t k = 0; k < w->spatial; k++) {
    const berth__window_axis axis = berth__window_axis_of(&attrs, w->spatial, k, x->dim[2 + k], weight->dim[2 + k]);
    w->kernel[k] = axis.kernel;
    w->strides[k] = axis.stride;
    w->dilations[k] = axis.dilation;
    w->pads[k] = axis.begin;
    w->pads[w->spatial + k] = axis.end;
  }
}

bool berth__windows_are_known(const berth_graph *graph, const berth__node *conv) {
  const berth__value *x = &graph->values[conv->in[BERTH__CONV_X]];
  const berth__window_attrs attrs = berth__conv_window(conv->attrs);
  if (graph->values[conv->in[BERTH__CONV_WEIGHT]].bounded != 0 || (x->bounded >> 1 & 1u)) return false;
  return x->bounded >> 2 == 0 || !berth__window_is_auto(&attrs);
}

uint32_t berth__windows_attrs(const berth__windows *w, berth_attr *attrs) {
  uint32_t n = 0;
  attrs[n++] = berth_attr_ints("kernel", w->kernel, w->spatial);
  attrs[n++] = berth_attr_ints("strides", w->strides, w->spatial);
  attrs[n++] = berth_attr_ints("dilations", w->dilations, w->spatial);
  attrs[n++] = berth_attr_ints("pads", w->pads, 2 * w->spatial);
  return n;
}

/* A convolution being converted to channels last. */
typedef struct form {
  const berth__rewrite_target *target;
  berth_value x, weight, bias, scale, sum; /* the last three may be BERTH_VALUE_NONE */
  berth_value base;                        /* base of new names */
  berth__windows w;
  int64_t group, tile; /* tile: for Winograd; 0: not used */
} form;

/* Small operands of f16 and bf16 convolutions become f32 in the prelude. */
static berth_status rewrite_convolution_widen(berth__rewrite *r, berth_value *value, berth_error *err) {
  const berth_attr to = berth_attr_string("to", "f32");
  if (*value == BERTH_VALUE_NONE || r->graph->values[*value].type == BERTH_F32) return BERTH_OK;
  return berth__rewrite_add(r, BERTH__OP_cast, value, 1, &to, 1, *value, "#f32", value, err);
}

static int64_t rewrite_convolution_outputs_of(const berth__rewrite *r, const form *f) {
  return r->graph->values[f->weight].shape.dim[0];
}

/* Weights [O, 1, kernel...] as [kernel..., O], times the scale. */
static berth_status taps_of_each(berth__rewrite *r, const form *f, berth_value *out, berth_error *err) {
  berth_value turned;
  berth_dim dims[BERTH_MAX_RANK];
  for (uint32_t k = 0; k < f->w.spatial; k++) dims[k] = (berth_dim){.extent = f->w.kernel[k]};
  dims[f->w.spatial] = (berth_dim){.extent = rewrite_convolution_outputs_of(r, f)};
  const berth_attr shape = berth_attr_dims("shape", dims, f->w.spatial + 1);
  BERTH__TRY(turn_weight(r, f->weight, &turned, err));
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_reshape, &turned, 1, &shape, 1, f->weight, "#taps", out, err));
  BERTH__TRY(rewrite_convolution_widen(r, out, err));
  if (f->scale == BERTH_VALUE_NONE) return BERTH_OK;
  const berth_value scaled[] = {*out, f->scale};
  return berth__rewrite_add(r, BERTH__OP_mul, scaled, 2, NULL, 0, f->base, "#taps", out, err);
}

static berth_status emit_depthwise(berth__rewrite *r, const form *f, berth_value *out, berth_error *err) {
  berth_value in[3] = {f->x, BERTH_VALUE_NONE, f->bias};
  BERTH__TRY(taps_of_each(r, f, &in[1], err));
  berth_attr attrs[4];
  const uint32_t n_attrs = berth__windows_attrs(&f->w, attrs), n_in = f->bias != BERTH_VALUE_NONE ? 3 : 2;
  return berth__rewrite_add(r, BERTH__OP_depthwise, in, n_in, attrs, n_attrs, f->base, "#last", out, err);
}

static int64_t panel_of(const berth__rewrite *r, const form *f) {
  return f->target->panel != 0 ? f->target->panel : rewrite_convolution_outputs_of(r, f) / f->group;
}

static berth_status rewrite_convolution_pack(berth__rewrite *r, const form *f, berth_value *out, berth_error *err) {
  const bool has_scale = f->scale != BERTH_VALUE_NONE;
  berth_value in[2] = {BERTH_VALUE_NONE, f->scale};
  /* f16 stays f16, unless it is multiplied or transformed first, which would round it again */
  const bool keeps_f16 = r->graph->values[f->weight].type == BERTH_F16 && !has_scale && f->tile == 0;
  const berth_attr attrs[] = {berth_attr_int("panel", panel_of(r, f)),
                              f->tile != 0 ? berth_attr_int("tile", f->tile) : berth_attr_int("groups", f->group),
                              berth_attr_string("to", keeps_f16 ? "f16" : "f32")};
  BERTH__TRY(turn_weight(r, f->weight, &in[0], err));
  return berth__rewrite_add(r, f->tile != 0 ? BERTH__OP_pack_winograd : BERTH__OP_pack_weights, in, has_scale ? 2 : 1,
                            attrs, f->tile != 0 ? 2 : 3, has_scale ? f->base : f->weight,
                            f->tile != 0 ? "#winograd" : "#packed", out, err);
}

/* Whether its kernel also reads x as it lies with channels first, line by line. */
static bool reads_turned(const berth__rewrite *r, const form *f) {
  const uint32_t last = f->w.spatial - 1;
  const berth__value *x = &r->graph->values[f->x];
  return f->group == 1 && x->type == BERTH_F32 && x->shape.dim[x->shape.rank - 1] <= f->target->turned_channels &&
         f->w.kernel[last] > 1 && f->w.dilations[last] == 1;
}

static berth_status emit_packed(berth__rewrite *r, const form *f, berth_value *out, berth_error *err) {
  berth_value in[4] = {f->x, BERTH_VALUE_NONE, f->bias, f->sum};
  berth_attr attrs[10];
  uint32_t n_attrs = 0, n_in = f->sum != BERTH_VALUE_NONE ? 4 : f->bias != BERTH_VALUE_NONE ? 3 : 2;
  BERTH__TRY(rewrite_convolution_pack(r, f, &in[1], err));
  if (f->tile != 0) {
    attrs[n_attrs++] = berth_attr_ints("pads", f->w.pads, 2 * f->w.spatial);
    attrs[n_attrs++] = berth_attr_int("tile", f->tile);
  } else {
    n_attrs = berth__windows_attrs(&f->w, attrs);
    attrs[n_attrs++] = berth_attr_int("group", f->group);
    attrs[n_attrs++] = berth_attr_int("turned", reads_turned(r, f));
  }
  attrs[n_attrs++] = berth_attr_int("channels", rewrite_convolution_outputs_of(r, f));
  attrs[n_attrs++] = berth_attr_int("panel", panel_of(r, f));
  attrs[n_attrs++] = berth_attr_int("adds", f->sum != BERTH_VALUE_NONE);
  return berth__rewrite_add(r, f->tile != 0 ? BERTH__OP_conv_winograd : BERTH__OP_conv_last, in, n_in, attrs, n_attrs,
                            f->base, "#last", out, err);
}

/* The tile for which conv_winograd is faster; 0: it is not. */
static int64_t winograd_tile(const berth__rewrite *r, const form *f, const berth__shape *out) {
  const berth__shape *weight = &r->graph->values[f->weight].shape;
  if (f->target->winograd_tile == NULL || f->w.spatial != 2 || f->group != 1) return 0;
  for (uint32_t k = 0; k < 2; k++)
    if (f->w.kernel[k] != 3 || f->w.strides[k] != 1 || f->w.dilations[k] != 1) return 0;
  return f->target->winograd_tile(weight->dim[1], weight->dim[0], out->dim[2], out->dim[3]);
}

/* ---- Few outputs ----
 *
 * Vectors run over output channels, so a convolution with one or two of them would use only a part of each vector.
 * Taking `beside` neighbours of a line as channels of one wider window fills the vectors: the neighbours have the same
 * weights, shifted by the stride. The result has the same elements in the same order. */

#define FEW_OUTPUTS 8

static int64_t count_beside(const berth__rewrite *r, const form *f, const berth__shape *out) {
  const int64_t line = out->dim[out->rank - 1], outputs = rewrite_convolution_outputs_of(r, f),
                lanes = f->target->lanes;
  const uint32_t last = f->w.spatial - 1;
  if (f->group != 1 || outputs > FEW_OUTPUTS || f->w.dilations[last] != 1 || f->w.kernel[last] < 3) return 1;
  if (r->graph->values[f->base].bounded != 0) return 1; /* only a run knows whether it divides the line */
  for (int64_t beside = lanes / outputs; beside > 1; beside /= 2)
    if (line % beside == 0 && line / beside >= 2) return beside;
  return 1;
}

static berth_status rewrite_convolution_repeat(berth__rewrite *r, berth_value *value, int64_t times, berth_error *err) {
  if (*value == BERTH_VALUE_NONE) return BERTH_OK;
  const berth_attr attr = berth_attr_ints("repeats", &times, 1);
  return berth__rewrite_add(r, BERTH__OP_tile, value, 1, &attr, 1, *value, "#beside", value, err);
}

/* Weights [O, C, ..., k] of all neighbours: [beside O, C, ..., k + (beside - 1) stride]. */
static berth_status spread_weight(berth__rewrite *r, form *f, int64_t beside, berth_error *err) {
  const uint32_t rank = r->graph->values[f->weight].shape.rank;
  const int64_t stride = f->w.strides[f->w.spatial - 1];
  berth_value parts[64];
  for (int64_t b = 0; b < beside; b++) {
    int64_t pads[2 * BERTH_MAX_RANK] = {0};
    pads[rank - 1] = b * stride;
    pads[2 * rank - 1] = (beside - 1 - b) * stride;
    const berth_attr attr = berth_attr_ints("pads", pads, 2 * rank);
    BERTH__TRY(berth__rewrite_add(r, BERTH__OP_pad, &f->weight, 1, &attr, 1, f->weight, "#moved", &parts[b], err));
  }
  const berth_attr axis = berth_attr_int("axis", 0);
  BERTH__TRY(
      berth__rewrite_add(r, BERTH__OP_concat, parts, (size_t)beside, &axis, 1, f->weight, "#beside", &f->weight, err));
  f->w.kernel[f->w.spatial - 1] += (beside - 1) * stride;
  f->w.strides[f->w.spatial - 1] *= beside;
  BERTH__TRY(rewrite_convolution_repeat(r, &f->scale, beside, err));
  return rewrite_convolution_repeat(r, &f->bias, beside, err);
}

static berth_status emit_beside(berth__rewrite *r, form *f, int64_t beside, const berth__shape *plain, berth_value *out,
                                berth_error *err) {
  berth_dim dims[BERTH_MAX_RANK];
  berth_value wide;
  const berth__shape shape = *plain; /* [N, O, ...]; a copy, because new values move the array */
  BERTH__TRY(spread_weight(r, f, beside, err));
  BERTH__TRY(emit_packed(r, f, &wide, err));
  dims[0] = (berth_dim){.extent = shape.dim[0]};
  for (uint32_t k = 2; k < shape.rank; k++) dims[k - 1] = (berth_dim){.extent = shape.dim[k]};
  dims[shape.rank - 1] = (berth_dim){.extent = shape.dim[1]};
  const berth_attr attr = berth_attr_dims("shape", dims, shape.rank);
  return berth__rewrite_add(r, BERTH__OP_reshape, &wide, 1, &attr, 1, f->base, "#line", out, err);
}

static form form_of(const berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv) {
  form f = {.target = target,
            .weight = conv->in[BERTH__CONV_WEIGHT],
            .bias = conv->n_in > BERTH__CONV_BIAS ? conv->in[BERTH__CONV_BIAS] : BERTH_VALUE_NONE,
            .scale = BERTH_VALUE_NONE,
            .sum = BERTH_VALUE_NONE,
            .base = conv->out[0],
            .group = conv->attrs[BERTH__CONV_GROUP].i};
  berth__windows_of(r->graph, conv, &f.w);
  return f;
}

/* Channels [first, end) of the input: their part of the weights. */
static berth_status take_channels(berth__rewrite *r, const berth__node *conv, int64_t first, int64_t end, form *f,
                                  berth_error *err) {
  const int64_t axis = 1;
  const berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &first, 1),
                              berth_attr_ints("ends", &end, 1)};
  return berth__rewrite_add(r, BERTH__OP_narrow, &conv->in[BERTH__CONV_WEIGHT], 1, attrs, 3,
                            conv->in[BERTH__CONV_WEIGHT], "#part", &f->weight, err);
}

berth_status berth__rewrite_conv_parts(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                       const berth__node *norm, const berth_value *x_last, uint32_t n_parts,
                                       berth_value *out_last, berth_error *err) {
  const berth__shape out = r->graph->values[conv->out[0]].shape;
  form f = form_of(r, target, conv);
  int64_t first = 0;
  if (norm != NULL) BERTH__TRY(berth__rewrite_norm(r, norm, f.bias, &f.scale, &f.bias, err));
  BERTH__TRY(rewrite_convolution_widen(r, &f.bias, err));
  for (uint32_t i = 0; i < n_parts; i++) {
    const berth__shape *x = &r->graph->values[x_last[i]].shape;
    const int64_t end = first + x->dim[x->rank - 1];
    BERTH__TRY(take_channels(r, conv, first, end, &f, err));
    f.x = x_last[i];
    f.tile = winograd_tile(r, &f, &out);
    BERTH__TRY(emit_packed(r, &f, out_last, err));
    f.sum = *out_last;
    f.bias = BERTH_VALUE_NONE;
    first = end;
  }
  return BERTH_OK;
}

/* [C, O, kernel...] viewed as [kernel..., C, O]. */
static berth_status turn_transposed(berth__rewrite *r, berth_value weight, berth_value *out, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = r->graph->values[weight].shape.rank;
  for (uint32_t k = 0; k + 2 < rank; k++) perm[k] = k + 2;
  perm[rank - 2] = 0;
  perm[rank - 1] = 1;
  const berth_attr attr = berth_attr_ints("perm", perm, rank);
  return berth__rewrite_add(r, BERTH__OP_transpose, &weight, 1, &attr, 1, weight, "#turned", out, err);
}

bool berth__rewrite_takes_transposed(const berth__node *conv) {
  const berth__window_attrs window = berth__conv_window(conv->attrs);
  return conv->attrs[BERTH__CONV_GROUP].i == 1 && !berth__window_is_auto(&window) &&
         conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_SHAPE].count == 0;
}

/* ---- Few outputs of a conv_transpose ----
 *
 * The pixels of a cell of the result, a stride by a stride, need the same elements of x: ceil(kernel / stride) along
 * each axis. With `joined` weights they are columns of one product, zeros where the kernel is no multiple of the
 * stride. Apart, every pixel has taps of its own, and a panel's lanes are filled by outputs alone. */

/* Lanes that a product with that many columns computes: whole vectors, or half of a panel's second one. */
static int64_t lanes_for(const berth__rewrite_target *target, int64_t columns) {
  const int64_t lanes = target->lanes, rest = columns % target->panel;
  const int64_t of_rest = rest == 0                   ? 0
                          : rest <= lanes             ? lanes
                          : rest <= lanes + lanes / 2 ? lanes + lanes / 2
                                                      : target->panel;
  return columns - rest + of_rest;
}

/* The least share of the multiplications that must be saved: sums of cells are copied once more. */
#define JOINED_GAIN 1.1

static bool is_worth_joining(const berth__rewrite *r, const form *f) {
  const int64_t outputs = r->graph->values[f->weight].shape.dim[1];
  int64_t taps = 1, apart = 1, columns = outputs;
  if (f->target->lanes <= 1 || f->w.spatial > 2 || outputs > f->target->panel) return false;
  for (uint32_t k = 0; k < f->w.spatial; k++) {
    const int64_t stride = f->w.strides[k], reach = f->w.kernel[k] / stride + (f->w.kernel[k] % stride != 0);
    if (f->w.dilations[k] != 1 || reach > BERTH__MOST_JOINED_TAPS || stride > f->target->panel) return false;
    taps *= reach;
    apart *= f->w.kernel[k];
    columns *= stride;
  }
  if (taps > BERTH__MOST_JOINED_TAPS || columns == outputs) return false;
  return (double)(taps * lanes_for(f->target, columns)) * JOINED_GAIN <=
         (double)(apart * lanes_for(f->target, outputs));
}

/* [C, O, kernel...] as [ceil(kernel / stride)..., C, strides... O]; scale and bias are for O. */
static berth_status join_weight(berth__rewrite *r, form *f, berth_value *out, berth_error *err) {
  const berth__shape shape = r->graph->values[f->weight].shape;
  const uint32_t spatial = f->w.spatial;
  int64_t pads[2 * BERTH_MAX_RANK] = {0}, perm[BERTH_MAX_RANK], pixels = 1;
  berth_dim apart[BERTH_MAX_RANK] = {{0}}, joined[BERTH_MAX_RANK] = {{0}};
  bool is_whole = true;
  apart[0].extent = joined[spatial].extent = shape.dim[0];
  apart[1].extent = shape.dim[1];
  perm[spatial] = 0;
  perm[2 * spatial + 1] = 1;
  for (uint32_t k = 0; k < spatial; k++) {
    const int64_t stride = f->w.strides[k], reach = (f->w.kernel[k] + stride - 1) / stride;
    pads[shape.rank + 2 + k] = reach * stride - f->w.kernel[k];
    is_whole = is_whole && pads[shape.rank + 2 + k] == 0;
    apart[2 + 2 * k].extent = joined[k].extent = reach;
    apart[3 + 2 * k].extent = stride;
    perm[k] = 2 + 2 * k;
    perm[spatial + 1 + k] = 3 + 2 * k;
    pixels *= stride;
  }
  joined[spatial + 1].extent = pixels * shape.dim[1];
  const berth_attr of_pads = berth_attr_ints("pads", pads, 2 * shape.rank),
                   of_apart = berth_attr_dims("shape", apart, 2 + 2 * spatial),
                   of_perm = berth_attr_ints("perm", perm, 2 + 2 * spatial),
                   of_joined = berth_attr_dims("shape", joined, 2 + spatial);
  *out = f->weight;
  if (!is_whole) BERTH__TRY(berth__rewrite_add(r, BERTH__OP_pad, out, 1, &of_pads, 1, f->weight, "#whole", out, err));
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_reshape, out, 1, &of_apart, 1, f->weight, "#apart", out, err));
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_transpose, out, 1, &of_perm, 1, f->weight, "#turned", out, err));
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_reshape, out, 1, &of_joined, 1, f->weight, "#joined", out, err));
  return rewrite_convolution_repeat(r, &f->scale, pixels, err);
}

berth_status berth__rewrite_conv_transpose(berth__rewrite *r, const berth__rewrite_target *target,
                                           const berth__node *conv, const berth__node *norm, berth_value x_last,
                                           bool is_static, berth_value *out_last, berth_error *err) {
  form f = form_of(r, target, conv);
  berth_value in[3] = {x_last}, of_pack[2];
  const berth_attr panel = berth_attr_int("panel", target->panel), *extra;
  berth_attr attrs[8];
  const bool is_joined = is_static && is_worth_joining(r, &f);
  extra = &conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING];
  if (norm != NULL) BERTH__TRY(berth__rewrite_norm(r, norm, f.bias, &f.scale, &f.bias, err));
  BERTH__TRY(rewrite_convolution_widen(r, &f.bias, err));
  BERTH__TRY(is_joined ? join_weight(r, &f, &of_pack[0], err) : turn_transposed(r, f.weight, &of_pack[0], err));
  of_pack[1] = f.scale;
  const bool has_scale = f.scale != BERTH_VALUE_NONE;
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_pack_weights, of_pack, has_scale ? 2 : 1, &panel, 1,
                                has_scale ? f.base : f.weight, "#packed", &in[1], err));
  in[2] = f.bias;
  uint32_t n_attrs = berth__windows_attrs(&f.w, attrs);
  attrs[n_attrs++] = berth_attr_ints("output_pads", extra->ints, extra->count);
  attrs[n_attrs++] = berth_attr_int("channels", r->graph->values[f.weight].shape.dim[1]);
  attrs[n_attrs++] = berth_attr_int("joined", is_joined);
  attrs[n_attrs++] = panel;
  return berth__rewrite_add(r, BERTH__OP_conv_transpose_last, in, f.bias != BERTH_VALUE_NONE ? 3 : 2, attrs, n_attrs,
                            f.base, "#last", out_last, err);
}

/* ---- conv_transpose, channel by channel ---- */

/* Pads of the convolution over x with zeros between its elements, including stride - 1 after the last one. Negative
 * pads crop. */
static void spread_pads(const form *f, const berth_attr *extra, uint32_t axis, int64_t *begin, int64_t *end) {
  const int64_t reach = (f->w.kernel[axis] - 1) * f->w.dilations[axis];
  *begin = reach - f->w.pads[axis];
  *end =
      reach - f->w.pads[f->w.spatial + axis] + (extra->count != 0 ? extra->ints[axis] : 0) - (f->w.strides[axis] - 1);
}

bool berth__rewrite_takes_spread(const berth__rewrite *r, const berth__rewrite_target *target,
                                 const berth__node *conv) {
  const berth__shape *weight = &r->graph->values[conv->in[BERTH__CONV_WEIGHT]].shape,
                     *x = &r->graph->values[conv->in[BERTH__CONV_X]].shape;
  const berth__window_attrs window = berth__conv_window(conv->attrs);
  const int64_t group = conv->attrs[BERTH__CONV_GROUP].i;
  if (target->lanes <= 1 || x->rank > 4 || r->graph->values[conv->in[BERTH__CONV_X]].type != BERTH_F32) return false;
  if (group == 1 || weight->dim[0] != group || weight->dim[1] != 1 || berth__window_is_auto(&window)) return false;
  if (conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_SHAPE].count != 0) return false;
  const form f = form_of(r, target, conv);
  for (uint32_t k = 0; k < f.w.spatial; k++) {
    int64_t begin, end;
    spread_pads(&f, &conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING], k, &begin, &end);
    if ((begin < 0 ? -begin : 0) + (end < 0 ? -end : 0) >= x->dim[2 + k] * f.w.strides[k]) return false;
  }
  return true;
}

/* x [N, spatial..., C] with stride - 1 zeros after every element. */
static berth_status spread_elements(berth__rewrite *r, form *f, berth_error *err) {
  const berth__shape shape = r->graph->values[f->x].shape;
  int64_t axes[BERTH__WINDOW_AXES], pads[2 * BERTH_MAX_RANK] = {0};
  berth_dim dims[BERTH_MAX_RANK] = {{0}};
  const uint32_t rank = shape.rank + f->w.spatial;
  bool is_spread = false;
  for (uint32_t i = 0; i < shape.rank; i++) dims[i] = (berth_dim){.extent = shape.dim[i]};
  for (uint32_t k = 0; k < f->w.spatial; k++) {
    axes[k] = 2 + 2 * k;
    pads[rank + axes[k]] = f->w.strides[k] - 1;
    dims[1 + k].extent *= f->w.strides[k];
    is_spread = is_spread || f->w.strides[k] > 1;
  }
  if (!is_spread) return BERTH_OK;
  const berth_attr of_axes = berth_attr_ints("axes", axes, f->w.spatial),
                   of_pads = berth_attr_ints("pads", pads, 2 * rank);
  const berth_attr of_shape = berth_attr_dims("shape", dims, shape.rank);
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_unsqueeze, &f->x, 1, &of_axes, 1, f->base, "#apart", &f->x, err));
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_pad, &f->x, 1, &of_pads, 1, f->base, "#zeros", &f->x, err));
  return berth__rewrite_add(r, BERTH__OP_reshape, &f->x, 1, &of_shape, 1, f->base, "#spread", &f->x, err);
}

/* Applies positive pads, and crops for negative ones. */
static berth_status spread_cut(berth__rewrite *r, form *f, const berth_attr *extra, berth_error *err) {
  const berth__shape shape = r->graph->values[f->x].shape;
  int64_t axes[BERTH__WINDOW_AXES] = {0}, starts[BERTH__WINDOW_AXES], ends[BERTH__WINDOW_AXES],
          pads[2 * BERTH__WINDOW_AXES];
  bool is_cut = false;
  for (uint32_t k = 0; k < f->w.spatial; k++) {
    int64_t begin, end;
    spread_pads(f, extra, k, &begin, &end);
    axes[k] = 1 + k;
    starts[k] = begin < 0 ? -begin : 0;
    ends[k] = shape.dim[1 + k] + (end < 0 ? end : 0);
    pads[k] = begin > 0 ? begin : 0;
    pads[f->w.spatial + k] = end > 0 ? end : 0;
    is_cut = is_cut || begin < 0 || end < 0;
  }
  for (uint32_t k = 0; k < f->w.spatial; k++) f->w.strides[k] = 1;
  memcpy(f->w.pads, pads, 2 * f->w.spatial * sizeof *pads);
  const berth_attr attrs[] = {berth_attr_ints("axes", axes, f->w.spatial),
                              berth_attr_ints("starts", starts, f->w.spatial),
                              berth_attr_ints("ends", ends, f->w.spatial)};
  return is_cut ? berth__rewrite_add(r, BERTH__OP_narrow, &f->x, 1, attrs, 3, f->base, "#seen", &f->x, err) : BERTH_OK;
}

/* Reverses every kernel. */
static berth_status turn_taps(berth__rewrite *r, form *f, berth_error *err) {
  int64_t axes[BERTH__WINDOW_AXES], starts[BERTH__WINDOW_AXES], ends[BERTH__WINDOW_AXES], steps[BERTH__WINDOW_AXES];
  for (uint32_t k = 0; k < f->w.spatial; k++) {
    axes[k] = 2 + k;
    starts[k] = -1;
    ends[k] = -f->w.kernel[k] - 1;
    steps[k] = -1;
  }
  const berth_attr attrs[] = {
      berth_attr_ints("axes", axes, f->w.spatial), berth_attr_ints("starts", starts, f->w.spatial),
      berth_attr_ints("ends", ends, f->w.spatial), berth_attr_ints("steps", steps, f->w.spatial)};
  return berth__rewrite_add(r, BERTH__OP_narrow, &f->weight, 1, attrs, 4, f->weight, "#around", &f->weight, err);
}

/* Whether conv_transpose_last does it, without the zeros: a convolution is better where there are none. */
static bool may_transpose_each(const form *f) {
  int64_t taps = 1;
  bool is_spread = false;
  for (uint32_t k = 0; k < f->w.spatial; k++) {
    const int64_t n = (f->w.kernel[k] - 1) / f->w.strides[k] + 1;
    if (f->w.dilations[k] != 1 || n > BERTH__MOST_EACH_TAPS) return false;
    taps *= n;
    is_spread = is_spread || f->w.strides[k] > 1;
  }
  return is_spread && f->w.spatial <= 2 && taps <= BERTH__MOST_EACH_TAPS;
}

/* Weights [C, 1, kernel...]. */
static berth_status transpose_each(berth__rewrite *r, form *f, const berth_attr *extra, berth_value *out_last,
                                   berth_error *err) {
  berth_value in[3] = {f->x, BERTH_VALUE_NONE, f->bias};
  berth_attr attrs[8];
  const int64_t channels = r->graph->values[f->weight].shape.dim[0];
  BERTH__TRY(taps_of_each(r, f, &in[1], err));
  uint32_t n_attrs = berth__windows_attrs(&f->w, attrs);
  attrs[n_attrs++] = berth_attr_ints("output_pads", extra->ints, extra->count);
  attrs[n_attrs++] = berth_attr_int("channels", channels);
  attrs[n_attrs++] = berth_attr_int("panel", 1);
  attrs[n_attrs++] = berth_attr_int("each", 1);
  return berth__rewrite_add(r, BERTH__OP_conv_transpose_last, in, f->bias != BERTH_VALUE_NONE ? 3 : 2, attrs, n_attrs,
                            f->base, "#last", out_last, err);
}

berth_status berth__rewrite_conv_spread(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                        const berth__node *norm, berth_value x_last, berth_value *out_last,
                                        berth_error *err) {
  form f = form_of(r, target, conv);
  f.x = x_last;
  if (norm != NULL) BERTH__TRY(berth__rewrite_norm(r, norm, f.bias, &f.scale, &f.bias, err));
  if (may_transpose_each(&f))
    return transpose_each(r, &f, &conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING], out_last, err);
  BERTH__TRY(spread_elements(r, &f, err));
  BERTH__TRY(spread_cut(r, &f, &conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING], err));
  BERTH__TRY(turn_taps(r, &f, err));
  return emit_depthwise(r, &f, out_last, err);
}

/* out: of the result, [N, O, ...]. */
static berth_status emit_best(berth__rewrite *r, form *f, bool is_static, const berth__shape *out,
                              berth_value *out_last, berth_error *err) {
  const int64_t beside = is_static ? count_beside(r, f, out) : 1;
  if (beside > 1) return emit_beside(r, f, beside, out, out_last, err);
  f->tile = is_static ? winograd_tile(r, f, out) : 0;
  return emit_packed(r, f, out_last, err);
}

/* Several outputs per channel are for kernels whose vectors run over channels. */
static bool is_depthwise(const form *f, const berth__shape *weight) {
  return weight->dim[1] == 1 && f->group > 1 &&
         (weight->dim[0] == f->group || (f->target->lanes > 1 && f->w.spatial <= 2));
}

berth_status berth__rewrite_conv(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                 const berth__node *norm, berth_value x_last, bool is_static, berth_value *out_last,
                                 berth_error *err) {
  const berth__shape weight = r->graph->values[conv->in[BERTH__CONV_WEIGHT]].shape,
                     out = r->graph->values[conv->out[0]].shape;
  form f = form_of(r, target, conv);
  f.x = x_last;
  if (norm != NULL) BERTH__TRY(berth__rewrite_norm(r, norm, f.bias, &f.scale, &f.bias, err));
  BERTH__TRY(rewrite_convolution_widen(r, &f.bias, err));
  if (is_depthwise(&f, &weight)) return emit_depthwise(r, &f, out_last, err);
  return emit_best(r, &f, is_static, &out, out_last, err);
}

/* ---- conv_transpose with strides of 1 ---- */

/* By how much the result may be larger than x. A convolution multiplies zeros for the taps outside x, of which
 * conv_transpose_last skips whole lines; but it is better at few outputs, and Winograd is for convolutions alone. */
#define MOST_AROUND 2
#define MOST_AROUND_WITHOUT_GAIN 1.1

static double most_around(const berth__rewrite *r, const form *f, const berth__shape *out) {
  const berth__shape *weight = &r->graph->values[f->weight].shape;
  bool may_be_winograd = f->target->winograd_tile != NULL && f->w.spatial == 2;
  for (uint32_t k = 0; k < f->w.spatial; k++)
    may_be_winograd = may_be_winograd && f->w.kernel[k] == 3 && f->w.dilations[k] == 1;
  if (may_be_winograd && f->target->winograd_tile(weight->dim[0], weight->dim[1], out->dim[2], out->dim[3]) != 0)
    return MOST_AROUND;
  return 2 * weight->dim[1] >= f->target->panel ? MOST_AROUND_WITHOUT_GAIN : MOST_AROUND;
}

bool berth__rewrite_takes_around(const berth__rewrite *r, const berth__rewrite_target *target,
                                 const berth__node *conv) {
  const berth__shape *x = &r->graph->values[conv->in[BERTH__CONV_X]].shape,
                     *out = &r->graph->values[conv->out[0]].shape;
  if (!berth__rewrite_takes_transposed(conv) || r->graph->values[conv->in[BERTH__CONV_X]].type != BERTH_F32)
    return false;
  const form f = form_of(r, target, conv);
  double wider = 1;
  for (uint32_t k = 0; k < f.w.spatial; k++) {
    int64_t begin, end;
    spread_pads(&f, &conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING], k, &begin, &end);
    if (f.w.strides[k] != 1 || begin < 0 || end < 0) return false;
    wider *= (double)out->dim[2 + k] / (double)x->dim[2 + k];
  }
  return wider <= most_around(r, &f, out);
}

/* Weights [C, O, kernel...] as [O, C, kernel...]. */
static berth_status swap_channels(berth__rewrite *r, form *f, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK] = {1, 0};
  for (uint32_t k = 2; k < BERTH_MAX_RANK; k++) perm[k] = k;
  const berth_attr attr = berth_attr_ints("perm", perm, f->w.spatial + 2);
  return berth__rewrite_add(r, BERTH__OP_transpose, &f->weight, 1, &attr, 1, f->weight, "#swapped", &f->weight, err);
}

berth_status berth__rewrite_conv_around(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                        const berth__node *norm, berth_value x_last, berth_value *out_last,
                                        berth_error *err) {
  const berth__shape out = r->graph->values[conv->out[0]].shape;
  form f = form_of(r, target, conv);
  f.x = x_last;
  if (norm != NULL) BERTH__TRY(berth__rewrite_norm(r, norm, f.bias, &f.scale, &f.bias, err));
  BERTH__TRY(rewrite_convolution_widen(r, &f.bias, err));
  BERTH__TRY(spread_cut(r, &f, &conv->attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING], err));
  BERTH__TRY(swap_channels(r, &f, err));
  BERTH__TRY(turn_taps(r, &f, err));
  return emit_best(r, &f, true, &out, out_last, err);
}
