/* Gradients of resampling and transforms: resize, dft, max_unpool; and of quantisation, ignoring the rounding
 * (straight-through estimator). */
#include "grad/grad.h"

/* [n, n], 1 on the diagonal. */
static berth_value grad_eye(berth__grad *d, berth_type type, int64_t n) {
  const int64_t dim[] = {n, n};
  double *entries = berth__alloc_array_zero(d->graph->ctx, (size_t)(n * n), sizeof *entries);
  if (entries == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return BERTH_VALUE_NONE;
  }
  for (int64_t i = 0; i < n; i++) entries[i * n + i] = 1;
  const berth_value out = berth__grad_tensor(d, type, 2, dim, entries);
  berth__free(d->graph->ctx, entries);
  return out;
}

/* The effect of resize along an axis, as a matrix [out, in], computed by resize itself. `entry` is the axis's entry in
 * its operands. */
static berth_value grad_resize_matrix(berth__grad *d, int64_t extent, uint32_t entry, uint32_t n_entries) {
  const int64_t axes[] = {0}, target[] = {entry}, region[] = {entry, (int64_t)n_entries + entry};
  berth_attr attrs[BERTH__RESIZE_ASPECT + 1];
  const berth_value x = berth__grad_in(d, BERTH__RESIZE_X);
  memcpy(attrs, d->node.attrs, sizeof attrs);
  attrs[BERTH__RESIZE_AXES] = berth_attr_ints("axes", axes, 1);
  attrs[BERTH__RESIZE_EXTRAPOLATION].f = 0;
  const berth_value which[] = {berth__grad_in(d, BERTH__RESIZE_TARGET), berth__grad_ints(d, target, 1)};
  berth_value in[] = {grad_eye(d, berth__grad_type(d, x), extent),
                      berth__grad_op(d, BERTH__OP_gather, which, 2, NULL, 0), BERTH_VALUE_NONE};
  const bool has_region = berth__grad_has(d, BERTH__RESIZE_ROI);
  if (has_region) {
    const berth_value ends[] = {berth__grad_in(d, BERTH__RESIZE_ROI), berth__grad_ints(d, region, 2)};
    in[2] = berth__grad_op(d, BERTH__OP_gather, ends, 2, NULL, 0);
  }
  return berth__grad_op(d, BERTH__OP_resize, in, has_region ? 3 : 2, attrs, BERTH__RESIZE_ASPECT + 1);
}

/* Axis by axis it is a product with a matrix. */
void berth__grad_of_resize(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  berth_value y = berth__grad_in(d, BERTH__RESIZE_X);
  const berth__shape shape = berth__grad_shape(d, y);
  const berth_attr *axes = &d->node.attrs[BERTH__RESIZE_AXES];
  const uint32_t n = axes->count != 0 ? axes->count : shape.rank;
  if (!berth__grad_fixed(d, y) || !berth__grad_fixed(d, berth__grad_out(d))) return;
  if (strcmp(d->node.attrs[BERTH__RESIZE_ASPECT].s, "stretch") != 0) {
    berth__grad_fail(d, BERTH_UNSUPPORTED, "a gradient of resize that keeps the aspect is not supported");
    return;
  }
  const bool crops = berth__grad_has(d, BERTH__RESIZE_ROI);
  const berth__shape made = berth__grad_shape(d, berth__grad_out(d));
  for (uint32_t i = 0; i < n && berth__grad_ok(d); i++) {
    const uint32_t axis = axes->count != 0 ? berth__grad_axis(d, axes->ints[i], shape.rank) : i;
    if (made.dim[axis] == shape.dim[axis] && !crops) continue;
    const berth_value matrix = grad_resize_matrix(d, shape.dim[axis], i, n);
    y = berth__grad_move_axis(d, y, axis, shape.rank - 1);
    y = berth__grad_2(d, BERTH__OP_matmul, y, berth__grad_swap_last(d, matrix));
    y = berth__grad_move_axis(d, y, shape.rank - 1, axis);
  }
  if (y == berth__grad_in(d, BERTH__RESIZE_X)) {
    berth__grad_give(d, BERTH__RESIZE_X, berth__grad_dy(d));
    return;
  }
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

/* Puts elements at their indices, the last one if indices coincide: scatter over zeros. */
void berth__grad_of_max_unpool(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__MAX_UNPOOL_X), like = berth__grad_out(d);
  const berth__shape of_x = berth__grad_shape(d, x), of_y = berth__grad_shape(d, like);
  int64_t n = 0, total = 0;
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, like)) return;
  if (berth__grad_has(d, BERTH__MAX_UNPOOL_OUTPUT_SHAPE)) {
    berth__grad_fail(d, BERTH_UNSUPPORTED, "a gradient of max_unpool with a shape of its own is not supported");
    return;
  }
  if (!berth__shape_count(&of_x, &n) || !berth__shape_count(&of_y, &total)) return;
  const berth__shape line = {.rank = 1, .dim = {n}}, whole = {.rank = 1, .dim = {total}};
  const berth_value in[] = {berth__grad_reshape(d, berth__grad_full_like(d, like, 0), &whole),
                            berth__grad_reshape(d, berth__grad_in(d, BERTH__MAX_UNPOOL_PLACES), &line),
                            berth__grad_reshape(d, x, &line)};
  const berth_value y = berth__grad_reshape(d, berth__grad_op(d, BERTH__OP_scatter, in, 3, NULL, 0), &of_y);
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

/* ---- quantisation: as if nothing were rounded, and no gradient passes outside the range ---- */

static berth_value grad_zero_point(berth__grad *d, berth_type type) {
  if (!berth__grad_has(d, BERTH__QUANTIZE_ZERO_POINT)) return berth__grad_scalar(d, type, 0);
  return berth__grad_cast(d, berth__grad_in(d, BERTH__QUANTIZE_ZERO_POINT), type);
}

void berth__grad_of_quantize(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__QUANTIZE_X), dy = berth__grad_dy(d);
  const berth_type type = berth__grad_type(d, x);
  const berth_value scale = berth__grad_cast(d, berth__grad_in(d, BERTH__QUANTIZE_SCALE), type);
  int64_t low, high;
  berth__int_limits(berth__grad_type(d, berth__grad_out(d)), &low, &high);
  const berth_value ratio = berth__grad_div(d, x, scale);
  const berth_value place = berth__grad_add(d, ratio, grad_zero_point(d, type));
  const berth_value inside = berth__grad_2(d, BERTH__OP_and, berth__grad_num(d, BERTH__OP_ge, place, (double)low),
                                           berth__grad_num(d, BERTH__OP_le, place, (double)high));
  const berth_value passes = berth__grad_where(d, inside, dy, berth__grad_scalar(d, type, 0));
  const berth_value dx = berth__grad_div(d, passes, scale);
  berth__grad_give(d, BERTH__QUANTIZE_X, dx);
  if (berth__grad_wants(d, BERTH__QUANTIZE_SCALE))
    berth__grad_give(d, BERTH__QUANTIZE_SCALE, berth__grad_neg(d, berth__grad_mul(d, dx, ratio)));
}

void berth__grad_of_dequantize(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), scale = berth__grad_in(d, BERTH__QUANTIZE_SCALE);
  const berth_type type = berth__grad_type(d, scale);
  if (berth__grad_wants(d, BERTH__QUANTIZE_X)) berth__grad_give(d, BERTH__QUANTIZE_X, berth__grad_mul(d, dy, scale));
  if (!berth__grad_wants(d, BERTH__QUANTIZE_SCALE)) return;
  const berth_value x = berth__grad_cast(d, berth__grad_in(d, BERTH__QUANTIZE_X), type);
  berth__grad_give(d, BERTH__QUANTIZE_SCALE, berth__grad_mul(d, dy, berth__grad_sub(d, x, grad_zero_point(d, type))));
}

/* ---- dft: a complex matrix, whose adjoint is itself up to a factor ---- */

static berth_value grad_dft(berth__grad *d, berth_value a, uint32_t axis, bool is_inverse, bool is_half) {
  const berth_attr attrs[3] = {berth_attr_int("axis", axis), berth_attr_int("inverse", is_inverse),
                               berth_attr_int("onesided", is_half)};
  return berth__grad_op(d, BERTH__OP_dft, &a, 1, attrs, 3);
}

/* The first `extent` elements of an axis, padded with zeros. */
static berth_value grad_fit(berth__grad *d, berth_value a, uint32_t axis, int64_t extent) {
  const int64_t axes[] = {axis}, has = berth__grad_shape(d, a).dim[axis], ends[] = {0, extent - has};
  const berth_attr attrs[2] = {berth_attr_ints("pads", ends, 2), berth_attr_ints("axes", axes, 1)};
  return has == extent || !berth__grad_ok(d) ? a : berth__grad_op(d, BERTH__OP_pad, &a, 1, attrs, 2);
}

/* Every element of half a spectrum except the first, and the last for even lengths, stands for two. */
static berth_value grad_double_inner(berth__grad *d, berth_value a, uint32_t axis, int64_t length) {
  const int64_t half = length / 2 + 1;
  int64_t dim[BERTH_MAX_RANK];
  double *factor = berth__alloc_array(d->graph->ctx, (size_t)half, sizeof *factor);
  if (factor == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return a;
  }
  const uint32_t rank = berth__grad_rank(d, a);
  for (int64_t i = 0; i < half; i++) factor[i] = (i == 0 || 2 * i == length ? 1.0 : 2.0) / (double)length;
  dim[0] = half;
  for (uint32_t i = axis + 1; i < rank; i++) dim[i - axis] = 1;
  const berth_value factors = berth__grad_tensor(d, berth__grad_type(d, a), rank - axis, dim, factor);
  berth__free(d->graph->ctx, factor);
  return berth__grad_mul(d, a, factors);
}

void berth__grad_of_dft(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__DFT_X);
  const berth__shape shape = berth__grad_shape(d, x);
  const bool is_inverse = d->node.attrs[BERTH__DFT_INVERSE].i != 0, is_half = d->node.attrs[BERTH__DFT_ONESIDED].i != 0;
  berth__grad_list axes = {.n = 1, .entry = {d->node.attrs[BERTH__DFT_AXIS].i}}, lengths;
  berth_value dy = berth__grad_dy(d);
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, berth__grad_out(d))) return;
  if (berth__grad_has(d, BERTH__DFT_AXIS_OPERAND) &&
      !berth__grad_read_list(d, BERTH__DFT_AXIS_OPERAND, BERTH__DFT_AXIS, &axes))
    return;
  if (!berth__grad_read_list(d, BERTH__DFT_LENGTH_OPERAND, BERTH__DFT_LENGTH, &lengths)) return;
  const uint32_t axis = berth__grad_axis(d, axes.entry[0], shape.rank);
  const int64_t length = lengths.n != 0          ? lengths.entry[0]
                         : is_inverse && is_half ? 2 * (shape.dim[axis] - 1)
                                                 : shape.dim[axis];
  if (is_inverse && is_half) {
    dy = grad_double_inner(d, grad_dft(d, dy, axis, false, true), axis, length);
  } else {
    dy = grad_dft(d, grad_fit(d, dy, axis, length), axis, !is_inverse, false);
    dy = berth__grad_scale(d, dy, is_inverse ? 1 / (double)length : (double)length);
  }
  if (shape.dim[shape.rank - 1] == 1) dy = berth__grad_narrow(d, dy, shape.rank - 1, 0, 1);
  berth__grad_give(d, BERTH__DFT_X, grad_fit(d, dy, axis, shape.dim[axis]));
}
