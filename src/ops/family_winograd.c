/* pack_winograd and conv_winograd: 3x3 convolutions with stride 1 as products of transformed tiles. A tile of the
 * result, `tile` pixels high and wide, depends on a tile of x of tile + 2, so that size = tile + 2 values per axis are
 * multiplied where a direct convolution needs 3 times `tile`.
 *   pack_winograd: w [3, 3, C, O] (any strides), scale [O]? -> [size * size, panels of O, C, panel]
 *   conv_winograd: x [N, H, W, C], that weight, bias [O]?, the operands of the epilogue -> [N, out H, out W, O] */
#include <inttypes.h>

#include "ops/conv_last.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr pack_attrs[] = {
    [BERTH__PACK_WINOGRAD_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__PACK_WINOGRAD_TILE] = {.name = "tile", .kind = BERTH_ATTR_INT, .i = 4},
};
static const berth_attr conv_attrs[] = {
    [BERTH__WINOGRAD_CHANNELS] = {.name = "channels", .kind = BERTH_ATTR_INT},
    [BERTH__WINOGRAD_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__WINOGRAD_TILE] = {.name = "tile", .kind = BERTH_ATTR_INT, .i = 4},
    [BERTH__WINOGRAD_PADS] = {.name = "pads", .kind = BERTH_ATTR_INTS},
    [BERTH__WINOGRAD_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},
    [BERTH__WINOGRAD_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS},
    [BERTH__WINOGRAD_ADDS] = BERTH__ADDS_ATTR,
};

static berth_status check_tile(const berth_attr *tile, berth_error *err) {
  if (tile->i == 2 || tile->i == 4) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "`tile` is %" PRId64 ", expected 2 or 4", tile->i);
}

static int64_t panels_of(int64_t outputs, int64_t panel) { return outputs / panel + (outputs % panel != 0); }

static berth_status pack_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *w = &infer->in_shape[0];
  const int64_t panel = infer->attrs[BERTH__PACK_WINOGRAD_PANEL].i,
                size = infer->attrs[BERTH__PACK_WINOGRAD_TILE].i + 2;
  int64_t same;
  if (infer->in_type[0] != BERTH_F16 && infer->in_type[0] != BERTH_BF16)
    BERTH__TRY(berth__want_type(infer, 0, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, 0, 4, 4, err));
  BERTH__TRY(berth__last_check_count(&infer->attrs[BERTH__PACK_WINOGRAD_PANEL], err));
  BERTH__TRY(check_tile(&infer->attrs[BERTH__PACK_WINOGRAD_TILE], err));
  for (uint32_t axis = 0; axis < 2; axis++) BERTH__TRY(berth__same_dim(3, w->dim[axis], "the kernel", &same, err));
  if (berth__infer_has(infer, 1)) {
    BERTH__TRY(berth__want_type(infer, 1, BERTH_F32, err));
    BERTH__TRY(berth__want_rank(infer, 1, 1, 1, err));
    BERTH__TRY(berth__same_dim(w->dim[3], infer->in_shape[1].dim[0], "columns and scale", &same, err));
  }
  infer->out_type[0] = BERTH_F32;
  const int64_t panels = berth__dim_is_fixed(w->dim[3]) ? panels_of(w->dim[3], panel) : BERTH__DIM_UNKNOWN;
  infer->out_shape[0] = (berth__shape){.rank = 4, .dim = {size * size, panels, w->dim[2], panel}};
  return BERTH_OK;
}

/* Rows of one panel: an item is a channel of a panel. */
static int64_t winograd_pack_items(const berth_op_call *call) { return call->out[0].dim[1] * call->out[0].dim[2]; }

static double transformed(const berth_op_call *call, const berth__winograd *m, int64_t channel, int64_t output,
                          int64_t row, int64_t column) {
  const berth_tensor *w = &call->in[0];
  double sum = 0;
  for (int64_t i = 0; i < 3; i++)
    for (int64_t k = 0; k < 3; k++)
      sum += m->kernel_side[row][i] * m->kernel_side[column][k] *
             berth__load_f64(w, i * w->stride[0] + k * w->stride[1] + channel * w->stride[2] + output * w->stride[3]);
  return berth__call_has(call, 1) ? sum * berth__load_f64(&call->in[1], output * call->in[1].stride[0]) : sum;
}

static berth_status pack_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *out = &call->out[0];
  const int64_t channels = out->dim[2], panel = out->dim[3], outputs = call->in[0].dim[3];
  berth__winograd m;
  (void)err;
  berth__winograd_matrices(call->attrs[BERTH__PACK_WINOGRAD_TILE].i, &m);
  for (int64_t item = call->begin; item < call->end; item++)
    for (int64_t at = 0; at < m.size * m.size; at++)
      for (int64_t k = 0; k < panel; k++) {
        const int64_t output = item / channels * panel + k, to = (at * out->dim[1] * channels + item) * panel + k;
        const bool is_there = output < outputs;
        berth__store_f64(
            out, to,
            is_there ? berth__packed_weight(transformed(call, &m, item % channels, output, at / m.size, at % m.size))
                     : 0);
      }
  return BERTH_OK;
}

const berth__family berth__family_pack_winograd = {
    .attrs = pack_attrs,
    .n_attrs = sizeof pack_attrs / sizeof *pack_attrs,
    .required = 1u << BERTH__PACK_WINOGRAD_PANEL,
    .infer = pack_infer,
    .items = winograd_pack_items,
    .kernel = pack_kernel,
    .packs = true,
};

static berth_status conv_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  const berth_attr *attr = infer->attrs;
  const berth__window_attrs window = berth__winograd_window(attr);
  const int64_t outputs = attr[BERTH__WINOGRAD_CHANNELS].i, panel = attr[BERTH__WINOGRAD_PANEL].i;
  const int64_t size = attr[BERTH__WINOGRAD_TILE].i + 2;
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, 0, 4, 4, err));
  BERTH__TRY(berth__last_check(infer, &window, err));
  BERTH__TRY(berth__last_check_count(&attr[BERTH__WINOGRAD_CHANNELS], err));
  BERTH__TRY(berth__last_check_count(&attr[BERTH__WINOGRAD_PANEL], err));
  BERTH__TRY(check_tile(&attr[BERTH__WINOGRAD_TILE], err));
  BERTH__TRY(berth__want_rank(infer, 1, 4, 4, err));
  BERTH__TRY(berth__same_dim(size * size, weight->dim[0], "`tile` and weight", &same, err));
  BERTH__TRY(berth__same_dim(panels_of(outputs, panel), weight->dim[1],
                             "panels of the output channels and of the weight", &same, err));
  BERTH__TRY(berth__same_dim(x->dim[3], weight->dim[2], "channels of x and of the weight", &same, err));
  BERTH__TRY(berth__same_dim(panel, weight->dim[3], "`panel` and columns of the weight's panels", &same, err));
  infer->out_shape[0] = (berth__shape){.rank = 4, .dim = {x->dim[0], 0, 0, outputs}};
  BERTH__TRY(berth__last_infer_windows(infer, &window, (const int64_t[]){3, 3}, &infer->out_shape[0], err));
  BERTH__TRY(berth__epilogue_check_sum(infer, &attr[BERTH__WINOGRAD_ADDS], &infer->out_shape[0], err));
  return berth__last_check_rest(infer, berth__epilogue_first(&attr[BERTH__WINOGRAD_ADDS]), &attr[BERTH__WINOGRAD_CODE],
                                &attr[BERTH__WINOGRAD_NUMBERS], err);
}

static int64_t winograd_tiles_of(int64_t extent, int64_t tile) { return extent / tile + (extent % tile != 0); }

/* Items are the tiles of the result. */
static int64_t conv_items(const berth_op_call *call) {
  const int64_t *dim = call->out[0].dim, tile = call->attrs[BERTH__WINOGRAD_TILE].i;
  return dim[0] * winograd_tiles_of(dim[1], tile) * winograd_tiles_of(dim[2], tile);
}

/* The transformed tile of x: size * size values per channel. */
static uint64_t conv_scratch(const berth_op_call *call) {
  const int64_t size = call->attrs[BERTH__WINOGRAD_TILE].i + 2;
  return (uint64_t)(size * size * call->in[0].dim[3]) * sizeof(double);
}

typedef struct place {
  int64_t image, row, column; /* position of the tile's first pixel in the result */
} place;

static double winograd_input_at(const berth_op_call *call, const berth__last *last, const place *at, int64_t i,
                                int64_t k, int64_t channel) {
  const berth__window_axis *w = last->window.axis;
  const int64_t row = at->row - w[1].begin + i, column = at->column - w[2].begin + k;
  if (row < 0 || row >= w[1].in || column < 0 || column >= w[2].in) return 0;
  return berth__load_f64(&call->in[0], at->image * last->image_stride + row * last->axis_stride[1] +
                                           column * last->axis_stride[2] + channel * last->channel_stride);
}

static void transform_input(const berth_op_call *call, const berth__last *last, const berth__winograd *m,
                            const place *at) {
  double *to = call->scratch;
  for (int64_t channel = 0; channel < last->channels; channel++)
    for (int64_t row = 0; row < m->size; row++)
      for (int64_t column = 0; column < m->size; column++) {
        double sum = 0;
        for (int64_t i = 0; i < m->size; i++)
          for (int64_t k = 0; k < m->size; k++)
            sum += m->input_side[row][i] * m->input_side[column][k] * winograd_input_at(call, last, at, i, k, channel);
        to[(row * m->size + column) * last->channels + channel] = sum;
      }
}

/* One value of the product of the transformed tiles. */
static double winograd_multiply(const berth_op_call *call, const berth__last *last, int64_t value, int64_t output) {
  const berth_tensor *weight = &call->in[1];
  const double *x = (const double *)call->scratch + value * last->channels;
  const int64_t panel = weight->dim[3];
  double sum = 0;
  for (int64_t c = 0; c < last->channels; c++)
    sum += x[c] * berth__load_f64(weight, value * weight->stride[0] + output / panel * weight->stride[1] +
                                              c * weight->stride[2] + output % panel * weight->stride[3]);
  return sum;
}

static void store_tile(const berth_op_call *call, const berth__last *last, const berth__winograd *m,
                       const berth__epilogue *epilogue, const place *at, int64_t output) {
  const berth__window_axis *w = last->window.axis;
  double product[36];
  for (int64_t value = 0; value < m->size * m->size; value++)
    product[value] = winograd_multiply(call, last, value, output);
  for (int64_t row = 0; row < m->tile && at->row + row < w[1].out; row++)
    for (int64_t column = 0; column < m->tile && at->column + column < w[2].out; column++) {
      const int64_t pixel = (at->image * w[1].out + at->row + row) * w[2].out + at->column + column;
      double sum = berth__last_bias(call, last, output);
      if (call->attrs[BERTH__WINOGRAD_ADDS].i != 0)
        sum += berth__load_f64(&call->in[BERTH__EPILOGUE_SUM], pixel * last->outputs + output);
      for (int64_t i = 0; i < m->size; i++)
        for (int64_t k = 0; k < m->size; k++)
          sum += m->output_side[row][i] * m->output_side[column][k] * product[i * m->size + k];
      berth__store_f64(&call->out[0], pixel * last->outputs + output,
                       berth__epilogue_value(epilogue, pixel * last->outputs + output, sum));
    }
}

static berth_status conv_kernel(const berth_op_call *call, berth_error *err) {
  berth__last last;
  berth__epilogue epilogue;
  berth__winograd m;
  berth__winograd_read(call, &last);
  berth__winograd_matrices(call->attrs[BERTH__WINOGRAD_TILE].i, &m);
  BERTH__TRY(berth__epilogue_read(&epilogue, call, berth__epilogue_first(&call->attrs[BERTH__WINOGRAD_ADDS]),
                                  &call->attrs[BERTH__WINOGRAD_CODE], &call->attrs[BERTH__WINOGRAD_NUMBERS], err));
  const int64_t across = winograd_tiles_of(last.window.axis[2].out, m.tile),
                down = winograd_tiles_of(last.window.axis[1].out, m.tile);
  for (int64_t item = call->begin; item < call->end; item++) {
    const place at = {item / across / down, item / across % down * m.tile, item % across * m.tile};
    transform_input(call, &last, &m, &at);
    for (int64_t output = 0; output < last.outputs; output++) store_tile(call, &last, &m, &epilogue, &at, output);
  }
  return BERTH_OK;
}

static uint32_t winograd_in_place_of(const berth_attr *attr) {
  return berth__epilogue_in_place(&attr[BERTH__WINOGRAD_ADDS]);
}

const berth__family berth__family_conv_winograd = {
    .attrs = conv_attrs,
    .n_attrs = sizeof conv_attrs / sizeof *conv_attrs,
    .required = 1u << BERTH__WINOGRAD_CHANNELS | 1u << BERTH__WINOGRAD_PANEL,
    .in_place_of = winograd_in_place_of,
    .may_lack = 1u << 2,
    .unit_last = 1u,
    .infer = conv_infer,
    .items = conv_items,
    .scratch = conv_scratch,
    .kernel = conv_kernel,
};
