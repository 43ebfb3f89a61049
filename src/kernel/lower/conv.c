/* conv, conv_transpose: channels first. Rows are the output channels of a group, columns the positions of the result,
 * so that neighbouring threads have neighbouring positions. */
#include "ops/conv.h"

#include "kernel/lower/tile.h"
#include "ops/epilogue.h"

/* Whether each position of the result always reads the same position of x: x is a plain matrix then. */
static bool covers_one(const berth__window *window) {
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++)
    if (window->axis[i].kernel != 1 || window->axis[i].begin != 0 || window->axis[i].end != 0) return false;
  return true;
}

/* The positions of the result, always with three axes, the taps, and x's strides along both. */
static void describe_window(berth__tile *tile, const berth__window *window) {
  const berth_tensor *x = &tile->l->call->in[0];
  const uint32_t missing = BERTH__WINDOW_AXES - (x->rank - 2);
  const bool is_pointwise = !tile->right.is_transposed && covers_one(window);
  if (!is_pointwise) tile->right.window = window;
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++) {
    const bool is_there = i >= missing;
    berth__tile_axis(&tile->columns, window->axis[i].out, is_there ? 2 + i - missing : 0, is_there ? 1 : 0);
    tile->right.window_stride[i] = is_there ? x->stride[2 + i - missing] : 0;
    if (is_pointwise) tile->right.line[i] = tile->right.window_stride[i] * window->axis[i].stride;
  }
}

/* The depth: the channels of a group and the taps. In weights, taps are the last axes, so this order reads them
 * contiguously; if threads load for themselves, it is better to check once per tap whether it is inside. */
static void describe_depth(berth__tile *tile, const berth__conv *c, int64_t channels, int64_t weight_channel) {
  const berth_tensor *x = &tile->l->call->in[0];
  const bool taps_first = !tile->l->limits->shares_well;
  const int64_t tap_stride[BERTH__WINDOW_AXES] = {c->window.axis[1].kernel * c->window.axis[2].kernel,
                                                  c->window.axis[2].kernel, 1};
  const uint32_t channel = taps_first ? BERTH__WINDOW_AXES : 0;
  tile->right.taps = taps_first ? 0 : 1;
  for (uint32_t axis = 0; axis <= BERTH__WINDOW_AXES; axis++) {
    const uint32_t i = axis - tile->right.taps;
    berth__tile_axis(&tile->depth, axis == channel ? channels : c->window.axis[i].kernel, 0, 0);
    tile->left.depth[axis] = axis == channel ? weight_channel : tap_stride[i];
  }
  tile->right.depth[channel] = x->stride[1];
}

static void lower_conv_describe(berth__tile *tile, const berth__conv *c, int64_t channels, int64_t outputs) {
  const berth_tensor *x = &tile->l->call->in[0];
  berth__tile_axis(&tile->batch, x->dim[0], 0, 1);
  berth__tile_axis(&tile->batch, tile->l->call->attrs[BERTH__CONV_GROUP].i, 1, outputs);
  berth__tile_axis(&tile->rows, outputs, 1, 1);
  tile->left.operand = 1;
  tile->right.operand = 0;
  tile->right.batch[0] = x->stride[0];
  tile->right.batch[1] = channels * x->stride[1];
  describe_window(tile, &c->window);
}

/* The tile keeps a pointer to the window of `conv`. */
static void lower_conv_plain(berth__tile *tile, berth__lowering *l, berth__conv *conv) {
  const berth_tensor *weight = &l->call->in[1];
  const int64_t channels = weight->dim[1], outputs = weight->dim[0] / l->call->attrs[BERTH__CONV_GROUP].i;
  berth__conv_read(l->call, conv);
  berth__tile_init(tile, l, berth__l_number(l->call->in[0].type));
  lower_conv_describe(tile, conv, channels, outputs);
  describe_depth(tile, conv, channels, conv->taps);
  tile->left.batch[1] = outputs * channels * conv->taps;
  tile->left.line[0] = channels * conv->taps;
}

/* weight [C, O / group, kernel...] */
static void lower_conv_transposed(berth__tile *tile, berth__lowering *l, berth__conv *conv) {
  const berth_tensor *weight = &l->call->in[1];
  const int64_t outputs = weight->dim[1], channels = weight->dim[0] / l->call->attrs[BERTH__CONV_GROUP].i;
  berth__conv_read_transposed(l->call, conv);
  berth__tile_init(tile, l, berth__l_number(l->call->in[0].type));
  tile->right.is_transposed = true;
  lower_conv_describe(tile, conv, channels, outputs);
  describe_depth(tile, conv, channels, outputs * conv->taps);
  tile->left.batch[1] = channels * outputs * conv->taps;
  tile->left.line[0] = conv->taps;
}

uint64_t berth__scratch_of_convolution(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__lowering l = {.limits = limits, .call = call};
  berth__tile tile;
  berth__conv conv;
  lower_conv_plain(&tile, &l, &conv);
  return berth__tile_scratch(&tile);
}

uint64_t berth__scratch_of_transposed_convolution(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__lowering l = {.limits = limits, .call = call};
  berth__tile tile;
  berth__conv conv;
  lower_conv_transposed(&tile, &l, &conv);
  return berth__tile_scratch(&tile);
}

berth_status berth__lower_convolution(berth__lowering *l, berth_error *err) {
  const berth_attr *attr = l->call->attrs;
  berth__tile tile;
  berth__tile_epilogue epilogue;
  berth__conv conv;
  lower_conv_plain(&tile, l, &conv);
  BERTH__TRY(berth__tile_epilogue_read(&tile, &epilogue, 2, 1, &attr[BERTH__CONV_ADDS],
                                       berth__epilogue_first(&attr[BERTH__CONV_ADDS]), &attr[BERTH__CONV_CODE],
                                       &attr[BERTH__CONV_NUMBERS], err));
  return berth__tile_lower_sections(&tile, err);
}

berth_status berth__lower_transposed_convolution(berth__lowering *l, berth_error *err) {
  berth__tile tile;
  berth__tile_epilogue epilogue;
  berth__conv conv;
  lower_conv_transposed(&tile, l, &conv);
  BERTH__TRY(berth__tile_epilogue_read(&tile, &epilogue, 2, 1, NULL, 0, NULL, NULL, err));
  return berth__tile_lower_sections(&tile, err);
}
