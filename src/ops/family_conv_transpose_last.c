/* conv_transpose_last: x [N, spatial..., C], a weight packed by pack_weights from [kernel..., C, O], or with `joined`
 * from [ceil(kernel / stride)..., C, strides... O], or with `each`
 * [kernel..., C] as it is, bias [O]?, then the operands of the epilogue. Every pixel of x adds
 * its window of weights to the result; here every pixel of the result gathers what contributes to it. */
#include <inttypes.h>

#include "ops/conv_last.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    BERTH__LAST_ATTR_LIST,
    [BERTH__LAST_CHANNELS] = {.name = "channels", .kind = BERTH_ATTR_INT},
    [BERTH__LAST_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__LAST_OUTPUT_PADS] = {.name = "output_pads", .kind = BERTH_ATTR_INTS},
    [BERTH__LAST_JOINED] = {.name = "joined", .kind = BERTH_ATTR_INT},
    [BERTH__LAST_EACH] = {.name = "each", .kind = BERTH_ATTR_INT},
};

/* (in - 1) * stride + reach + output pad - pads. */
static berth_status conv_transpose_last_extent(const berth__infer *infer, uint32_t axis, int64_t *out,
                                               berth_error *err) {
  const berth__window_attrs window = berth__last_window(infer->attrs);
  const berth_attr *extra = &infer->attrs[BERTH__LAST_OUTPUT_PADS];
  const berth__window_axis w =
      berth__window_axis_of(&window, infer->in_shape[0].rank - 2, axis, infer->in_shape[0].dim[1 + axis],
                            infer->attrs[BERTH__LAST_KERNEL].ints[axis]);
  int64_t reach, pads;
  if (w.in == 0) return berth__fail(err, BERTH_INVALID, "spatial axis %" PRIu32 " of the input is empty", axis);
  if (!berth__window_reach(&w, &reach))
    return berth__fail(err, BERTH_INVALID,
                       "a kernel of %" PRId64 " with dilation %" PRId64 " on spatial axis %" PRIu32 " is too large",
                       w.kernel, w.dilation, axis);
  BERTH__TRY(berth__dim_add(w.begin, w.end, &pads, err));
  if (!berth__dim_is_fixed(w.in)) return *out = BERTH__DIM_UNKNOWN, BERTH_OK;
  BERTH__TRY(berth__dim_mul(w.in - 1, w.stride, out, err));
  BERTH__TRY(berth__dim_add(*out, reach, out, err));
  BERTH__TRY(berth__dim_add(*out, extra->count != 0 ? extra->ints[axis] : 0, out, err));
  if (pads > *out)
    return berth__fail(err, BERTH_INVALID,
                       "pads take %" PRId64 " elements off spatial axis %" PRIu32 " of the output, which has %" PRId64,
                       pads, axis, *out);
  *out -= pads;
  return BERTH_OK;
}

/* The entry of a list that is empty if all are 1. */
static int64_t conv_transpose_last_entry(const berth_attr *list, uint32_t k) {
  return list->count != 0 ? list->ints[k] : 1;
}

static berth_status conv_transpose_last_check_forms(const berth__infer *infer, berth_error *err) {
  const int64_t joined = infer->attrs[BERTH__LAST_JOINED].i, each = infer->attrs[BERTH__LAST_EACH].i;
  if (joined != 0 && joined != 1)
    return berth__fail(err, BERTH_INVALID, "`joined` is %" PRId64 ", expected 0 or 1", joined);
  if (each != 0 && each != 1) return berth__fail(err, BERTH_INVALID, "`each` is %" PRId64 ", expected 0 or 1", each);
  if (each != 0 && joined != 0)
    return berth__fail(err, BERTH_INVALID, "weights of each channel by itself cannot be `joined`");
  for (uint32_t k = 0; k < infer->attrs[BERTH__LAST_DILATIONS].count && joined != 0; k++)
    if (infer->attrs[BERTH__LAST_DILATIONS].ints[k] != 1)
      return berth__fail(err, BERTH_INVALID, "weights cannot be `joined` with dilations");
  return BERTH_OK;
}

/* One kernel for each channel: [kernel..., C]. */
static berth_status conv_transpose_last_check_each(const berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  const int64_t *kernel = infer->attrs[BERTH__LAST_KERNEL].ints, channels = infer->attrs[BERTH__LAST_CHANNELS].i;
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, 1, x->rank - 1, x->rank - 1, err));
  for (uint32_t k = 0; k + 2 < x->rank; k++)
    BERTH__TRY(berth__same_dim(kernel[k], weight->dim[k], "`kernel` and weight", &same, err));
  BERTH__TRY(berth__same_dim(channels, weight->dim[x->rank - 2], "`channels` and weight", &same, err));
  return berth__same_dim(channels, x->dim[x->rank - 1], "`channels` and those of the input", &same, err);
}

static berth_status conv_transpose_last_check_weight(const berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  if (infer->attrs[BERTH__LAST_EACH].i != 0) return conv_transpose_last_check_each(infer, err);
  const int64_t panel = infer->attrs[BERTH__LAST_PANEL].i;
  int64_t rows = x->dim[x->rank - 1], columns = infer->attrs[BERTH__LAST_CHANNELS].i;
  for (uint32_t k = 0; k < infer->attrs[BERTH__LAST_KERNEL].count; k++) {
    int64_t taps = infer->attrs[BERTH__LAST_KERNEL].ints[k];
    const int64_t stride = conv_transpose_last_entry(&infer->attrs[BERTH__LAST_STRIDES], k);
    if (infer->attrs[BERTH__LAST_JOINED].i != 0) {
      taps = taps / stride + (taps % stride != 0);
      BERTH__TRY(berth__dim_mul(columns, stride, &columns, err));
    }
    BERTH__TRY(berth__dim_mul(rows, taps, &rows, err));
  }
  return berth__last_check_packed(infer, columns / panel + (columns % panel != 0), rows, panel, err);
}

static berth_status conv_transpose_last_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const berth__window_attrs window = berth__last_window(infer->attrs);
  BERTH__TRY(berth__last_check(infer, &window, err));
  BERTH__TRY(berth__last_check_kernel(infer, err));
  BERTH__TRY(berth__window_check_list(&infer->attrs[BERTH__LAST_OUTPUT_PADS], x->rank - 2, 0, err));
  BERTH__TRY(berth__last_check_count(&infer->attrs[BERTH__LAST_CHANNELS], err));
  BERTH__TRY(berth__last_check_count(&infer->attrs[BERTH__LAST_PANEL], err));
  BERTH__TRY(conv_transpose_last_check_forms(infer, err));
  BERTH__TRY(conv_transpose_last_check_weight(infer, err));
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = infer->attrs[BERTH__LAST_CHANNELS].i;
  for (uint32_t axis = 0; axis + 2 < x->rank; axis++)
    BERTH__TRY(conv_transpose_last_extent(infer, axis, &infer->out_shape[0].dim[1 + axis], err));
  return berth__last_check_rest(infer, BERTH__LAST_EXTRA, &infer->attrs[BERTH__LAST_CODE],
                                &infer->attrs[BERTH__LAST_NUMBERS], err);
}

/* The index of channel 0 of the pixel of x whose tap `tap` is at a pixel of the result; -1: none. */
static int64_t conv_transpose_last_source(const berth__last *last, const berth__last_pixel *pixel, int64_t tap) {
  int64_t t[BERTH__WINDOW_AXES], index = pixel->image * last->image_stride;
  berth__window_tap(&last->window, tap, t);
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) {
    const int64_t at = berth__last_source(&last->window.axis[k], pixel->at[k], t[k]);
    if (at < 0) return -1;
    index += at * last->axis_stride[k];
  }
  return index;
}

/* The index of the weight of channel 0, tap `tap` and an output. Joined weights have the taps that fall on the same
 * pixel of a cell, which is a stride by a stride large, in one column. */
static int64_t conv_transpose_last_weight(const berth_op_call *call, const berth__last *last, int64_t tap,
                                          int64_t output) {
  const berth_tensor *weight = &call->in[1];
  int64_t t[BERTH__WINDOW_AXES], pixels = 1, pixel = 0, row = 0;
  if (call->attrs[BERTH__LAST_JOINED].i == 0)
    return berth__last_column(weight, last->outputs, 1, output) + tap * last->channels * weight->stride[1];
  berth__window_tap(&last->window, tap, t);
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) {
    const berth__window_axis *w = &last->window.axis[k];
    pixels *= w->stride;
    pixel = pixel * w->stride + t[k] % w->stride;
    row = row * (w->kernel / w->stride) + t[k] / w->stride;
  }
  return berth__last_column(weight, pixels * last->outputs, 1, pixel * last->outputs + output) +
         row * last->channels * weight->stride[1];
}

static double conv_transpose_last_collect_each(const berth_op_call *call, const berth__last *last,
                                               const berth__last_pixel *pixel, int64_t channel) {
  const int64_t taps = berth__window_taps(&last->window);
  double sum = berth__last_bias(call, last, channel);
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t from = conv_transpose_last_source(last, pixel, tap);
    if (from >= 0)
      sum += berth__load_f64(&call->in[0], from + channel * last->channel_stride) *
             berth__load_f64(&call->in[1], tap * last->channels + channel);
  }
  return sum;
}

static double conv_transpose_last_collect(const berth_op_call *call, const berth__last *last,
                                          const berth__last_pixel *pixel, int64_t output) {
  if (call->attrs[BERTH__LAST_EACH].i != 0) return conv_transpose_last_collect_each(call, last, pixel, output);
  const int64_t taps = berth__window_taps(&last->window);
  const berth_tensor *weight = &call->in[1];
  double sum = berth__last_bias(call, last, output);
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t from = conv_transpose_last_source(last, pixel, tap);
    const int64_t by = conv_transpose_last_weight(call, last, tap, output);
    for (int64_t c = 0; c < last->channels && from >= 0; c++)
      sum += berth__load_f64(&call->in[0], from + c * last->channel_stride) *
             berth__load_f64(weight, by + c * weight->stride[1]);
  }
  return sum;
}

/* With joined weights the taps are those of whole cells, which is what they have columns for: zeros, where the kernel
 * ends before a cell does. */
static void conv_transpose_last_read(const berth_op_call *call, berth__last *last) {
  berth__last_read(call, last);
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES && call->attrs[BERTH__LAST_JOINED].i != 0; k++) {
    berth__window_axis *w = &last->window.axis[k];
    w->kernel = (w->kernel + w->stride - 1) / w->stride * w->stride;
  }
}

static berth_status conv_transpose_last_kernel(const berth_op_call *call, berth_error *err) {
  berth__last last;
  berth__epilogue epilogue;
  conv_transpose_last_read(call, &last);
  BERTH__TRY(berth__epilogue_read(&epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE],
                                  &call->attrs[BERTH__LAST_NUMBERS], err));
  for (int64_t item = call->begin; item < call->end; item++) {
    const berth__last_pixel pixel = berth__last_pixel_of(&last, item);
    for (int64_t output = 0; output < last.outputs; output++) {
      const int64_t to = item * last.outputs + output;
      berth__store_f64(&call->out[0], to,
                       berth__epilogue_value(&epilogue, to, conv_transpose_last_collect(call, &last, &pixel, output)));
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_conv_transpose_last = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = BERTH__LAST_REQUIRED | 1u << BERTH__LAST_CHANNELS | 1u << BERTH__LAST_PANEL,
    .may_lack = 1u << 2,
    .unit_last = 1u,
    .infer = conv_transpose_last_infer,
    .items = berth__window_items,
    .kernel = conv_transpose_last_kernel,
};
