/* Gradients of convolutions and of average pooling, all expressed as convolutions:
 * - by x: conv_transpose of the incoming gradient with the same weight (and conversely);
 * - by the weight: a convolution of x with the incoming gradient as its kernel, with batch and channels, and strides
 * and dilations, swapped. If every group has one channel (depthwise), that product would have one row or one column,
 * so a separate op does it. */
#include "grad/grad.h"
#include "ops/conv.h"
#include "ops/pool.h"

typedef struct windows {
  uint32_t spatial;
  berth__window_axis axis[BERTH__WINDOW_AXES];
  int64_t group;
} windows;

/* The windows slide over x, and y has one element per window: for conv_transpose they are swapped. */
static bool grad_read_windows(berth__grad *d, const berth__window_attrs *attrs, berth_value x, berth_value y,
                              const int64_t *kernel, windows *w) {
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, y)) return false;
  const berth__shape of_x = berth__grad_shape(d, x), of_y = berth__grad_shape(d, y);
  w->spatial = of_x.rank - 2;
  for (uint32_t i = 0; i < w->spatial; i++) {
    w->axis[i] = berth__window_axis_of(attrs, w->spatial, i, of_x.dim[2 + i], kernel[i]);
    w->axis[i].out = of_y.dim[2 + i];
  }
  return true;
}

/* conv_transpose of dy with exactly the extents of x: pads the end that windows do not reach, and crops what they reach
 * beyond it. */
static berth_value grad_spread_windows(berth__grad *d, const windows *w, berth_value dy, berth_value weight) {
  int64_t strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES], pads[2 * BERTH__WINDOW_AXES];
  int64_t extra[BERTH__WINDOW_AXES];
  for (uint32_t i = 0; i < w->spatial; i++) {
    const berth__window_axis *a = &w->axis[i];
    const int64_t over = berth__window_over(a);
    strides[i] = a->stride;
    dilations[i] = a->dilation;
    pads[i] = a->begin;
    pads[w->spatial + i] = over > 0 ? over : 0;
    extra[i] = over < 0 ? -over : 0;
  }
  const berth_value in[] = {dy, weight};
  const berth_attr attrs[5] = {berth_attr_ints("strides", strides, w->spatial),
                               berth_attr_ints("dilations", dilations, w->spatial),
                               berth_attr_ints("pads", pads, 2 * w->spatial), berth_attr_int("group", w->group),
                               berth_attr_ints("output_padding", extra, w->spatial)};
  return berth__grad_op(d, BERTH__OP_conv_transpose, in, 2, attrs, 5);
}

/* [N, G c, ...] to [c, G N, ...]: the images become the channels of each group. */
static berth_value grad_images_as_channels(berth__grad *d, berth_value x, int64_t group) {
  const berth__shape shape = berth__grad_shape(d, x);
  berth__shape apart = {.rank = shape.rank + 1, .dim = {shape.dim[0], group, shape.dim[1] / group}};
  berth__shape merged = shape;
  int64_t perm[BERTH_MAX_RANK] = {2, 1, 0};
  for (uint32_t i = 2; i < shape.rank; i++) {
    apart.dim[i + 1] = shape.dim[i];
    perm[i + 1] = i + 1;
  }
  merged.dim[0] = shape.dim[1] / group;
  merged.dim[1] = group * shape.dim[0];
  return berth__grad_reshape(d, berth__grad_transpose(d, berth__grad_reshape(d, x, &apart), perm), &merged);
}

static berth_value grad_swap_first(berth__grad *d, berth_value a) { return berth__grad_move_axis(d, a, 1, 0); }

static berth_value grad_depthwise_weight(berth__grad *d, const windows *w, berth_value x, berth_value dy) {
  int64_t kernel[BERTH__WINDOW_AXES], strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES],
      pads[2 * BERTH__WINDOW_AXES];
  for (uint32_t i = 0; i < w->spatial; i++) {
    kernel[i] = w->axis[i].kernel;
    strides[i] = w->axis[i].stride;
    dilations[i] = w->axis[i].dilation;
    pads[i] = w->axis[i].begin;
    pads[w->spatial + i] = w->axis[i].end;
  }
  const berth_value in[] = {x, dy};
  const berth_attr attrs[5] = {berth_attr_ints("kernel", kernel, w->spatial),
                               berth_attr_ints("strides", strides, w->spatial),
                               berth_attr_ints("dilations", dilations, w->spatial),
                               berth_attr_ints("pads", pads, 2 * w->spatial), berth_attr_int("group", w->group)};
  return berth__grad_op(d, BERTH__OP_conv_weight_grad, in, 2, attrs, 5);
}

/* [O, C / group, kernel...] from x [N, C, ...] and dy [N, O, ...]. */
static berth_value grad_window_weight(berth__grad *d, const windows *w, berth_value x, berth_value dy) {
  int64_t strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES], pads[2 * BERTH__WINDOW_AXES];
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  if (w->group > 1 && berth__grad_shape(d, x).dim[1] == w->group) return grad_depthwise_weight(d, w, x, dy);
  for (uint32_t i = 0; i < w->spatial; i++) {
    const berth__window_axis *a = &w->axis[i];
    const int64_t over = berth__window_over(a);
    strides[i] = a->dilation;
    dilations[i] = a->stride;
    pads[i] = a->begin;
    pads[w->spatial + i] = over > 0 ? over : 0;
  }
  const berth_value in[] = {grad_images_as_channels(d, x, w->group), grad_swap_first(d, dy)};
  const berth_attr attrs[4] = {berth_attr_ints("strides", strides, w->spatial),
                               berth_attr_ints("dilations", dilations, w->spatial),
                               berth_attr_ints("pads", pads, 2 * w->spatial), berth_attr_int("group", w->group)};
  berth_value weight = berth__grad_op(d, BERTH__OP_conv, in, 2, attrs, 4);
  for (uint32_t i = 0; i < w->spatial && berth__grad_ok(d); i++)
    if (berth__grad_shape(d, weight).dim[2 + i] != w->axis[i].kernel)
      weight = berth__grad_narrow(d, weight, 2 + i, 0, w->axis[i].kernel);
  return grad_swap_first(d, weight);
}

static void grad_give_bias(berth__grad *d, berth_value dy, uint32_t spatial) {
  static const int64_t axes[1 + BERTH__WINDOW_AXES] = {0, 2, 3, 4}; /* all but the channels */
  if (!berth__grad_wants(d, BERTH__CONV_BIAS)) return;
  berth__grad_give(d, BERTH__CONV_BIAS, berth__grad_reduce(d, BERTH__OP_reduce_sum, dy, axes, 1 + spatial, false));
}

void berth__grad_of_conv(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__CONV_X), weight = berth__grad_in(d, BERTH__CONV_WEIGHT);
  const berth_value dy = berth__grad_dy(d);
  const berth__window_attrs attrs = berth__conv_window(d->node.attrs);
  const berth__shape kernel = berth__grad_shape(d, weight);
  windows w = {.group = d->node.attrs[BERTH__CONV_GROUP].i};
  if (berth__conv_has_epilogue(d->node.attrs)) {
    berth__grad_fail(d, BERTH_UNSUPPORTED,
                     "a convolution with an epilogue has no gradient; differentiate before "
                     "rewriting");
    return;
  }
  if (!berth__grad_fixed(d, weight) || !grad_read_windows(d, &attrs, x, dy, kernel.dim + 2, &w)) return;
  if (berth__grad_wants(d, BERTH__CONV_X)) berth__grad_give(d, BERTH__CONV_X, grad_spread_windows(d, &w, dy, weight));
  if (berth__grad_wants(d, BERTH__CONV_WEIGHT))
    berth__grad_give(d, BERTH__CONV_WEIGHT, grad_window_weight(d, &w, x, dy));
  grad_give_bias(d, dy, w.spatial);
}

/* The windows of conv_transpose slide over its result. If its pads depend on the extent, they are computed here. */
static bool grad_read_transposed(berth__grad *d, berth_value x, berth_value dy, berth_value weight, windows *w) {
  const berth__window_attrs attrs = berth__conv_window(d->node.attrs);
  const berth_attr *wanted = &d->node.attrs[BERTH__CONV_TRANSPOSE_OUTPUT_SHAPE];
  const berth__shape kernel = berth__grad_shape(d, weight);
  if (!berth__grad_fixed(d, weight) || !grad_read_windows(d, &attrs, dy, x, kernel.dim + 2, w)) return false;
  if (wanted->count == 0 && !berth__window_is_auto(&attrs)) return true;
  const berth_attr *padding = &d->node.attrs[BERTH__CONV_TRANSPOSE_OUTPUT_PADDING];
  for (uint32_t i = 0; i < w->spatial; i++) {
    berth__window_axis *a = &w->axis[i];
    const int64_t whole =
        (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 + (padding->count != 0 ? padding->ints[i] : 0);
    berth__window_split_pad(&attrs, whole > a->in ? whole - a->in : 0, &a->begin, &a->end);
  }
  return true;
}

/* conv of the incoming gradient; x had `out` windows, even if more would fit. */
static berth_value grad_collect_windows(berth__grad *d, const windows *w, berth_value dy, berth_value weight) {
  int64_t strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES], pads[2 * BERTH__WINDOW_AXES];
  for (uint32_t i = 0; i < w->spatial; i++) {
    const berth__window_axis *a = &w->axis[i];
    const int64_t over = berth__window_over(a);
    strides[i] = a->stride;
    dilations[i] = a->dilation;
    pads[i] = a->begin;
    pads[w->spatial + i] = over > 0 ? over : 0;
  }
  const berth_value in[] = {dy, weight};
  const berth_attr attrs[4] = {berth_attr_ints("strides", strides, w->spatial),
                               berth_attr_ints("dilations", dilations, w->spatial),
                               berth_attr_ints("pads", pads, 2 * w->spatial), berth_attr_int("group", w->group)};
  berth_value dx = berth__grad_op(d, BERTH__OP_conv, in, 2, attrs, 4);
  for (uint32_t i = 0; i < w->spatial && berth__grad_ok(d); i++)
    if (berth__grad_shape(d, dx).dim[2 + i] != w->axis[i].out) dx = berth__grad_narrow(d, dx, 2 + i, 0, w->axis[i].out);
  return dx;
}

void berth__grad_of_conv_transpose(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__CONV_X), weight = berth__grad_in(d, BERTH__CONV_WEIGHT);
  const berth_value dy = berth__grad_dy(d);
  windows w = {.group = d->node.attrs[BERTH__CONV_GROUP].i};
  if (!grad_read_transposed(d, x, dy, weight, &w)) return;
  if (berth__grad_wants(d, BERTH__CONV_X)) berth__grad_give(d, BERTH__CONV_X, grad_collect_windows(d, &w, dy, weight));
  if (berth__grad_wants(d, BERTH__CONV_WEIGHT))
    berth__grad_give(d, BERTH__CONV_WEIGHT, grad_window_weight(d, &w, dy, x));
  grad_give_bias(d, dy, w.spatial);
}

/* To and from channels second, if the node has them last. */
static berth_value grad_weight_channels(berth__grad *d, berth_value a, bool to_second) {
  if (!berth__grad_ok(d) || d->node.attrs[BERTH__WEIGHT_GRAD_CHANNELS_LAST].i == 0) return a;
  const uint32_t last = berth__grad_rank(d, a) - 1;
  return to_second ? berth__grad_move_axis(d, a, last, 1) : berth__grad_move_axis(d, a, 1, last);
}

/* It is linear in both: by x a conv_transpose of dy and by dy a conv of x, each with the incoming gradient as the
 * weight. */
void berth__grad_of_conv_weight_grad(berth__grad *d) {
  const berth_value x = grad_weight_channels(d, berth__grad_in(d, BERTH__WEIGHT_GRAD_X), true);
  const berth_value dy = grad_weight_channels(d, berth__grad_in(d, BERTH__WEIGHT_GRAD_DY), true);
  const berth__window_attrs attrs = berth__conv_window(d->node.attrs);
  const int64_t *kernel = d->node.attrs[BERTH__WEIGHT_GRAD_KERNEL].ints;
  windows w = {.group = d->node.attrs[BERTH__CONV_GROUP].i};
  if (!berth__grad_ok(d) || !grad_read_windows(d, &attrs, x, dy, kernel, &w)) return;
  const berth_value weight = berth__grad_dy(d);
  if (berth__grad_wants(d, BERTH__WEIGHT_GRAD_X))
    berth__grad_give(d, BERTH__WEIGHT_GRAD_X, grad_weight_channels(d, grad_spread_windows(d, &w, dy, weight), false));
  if (berth__grad_wants(d, BERTH__WEIGHT_GRAD_DY))
    berth__grad_give(d, BERTH__WEIGHT_GRAD_DY, grad_weight_channels(d, grad_collect_windows(d, &w, x, weight), false));
}
