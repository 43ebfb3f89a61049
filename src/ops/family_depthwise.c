/* depthwise: x [N, spatial..., C], weight [kernel..., O], bias [O]?, then the operands of the epilogue: every channel
 * is convolved with its own O / C kernels. One to three spatial axes. */
#include <inttypes.h>

#include "ops/conv_last.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {BERTH__LAST_ATTR_LIST, [BERTH__DEPTHWISE_OVER] = BERTH__OVER_ATTR};

/* A line of the result is computed when the lines of x up to it have been read: with strides of 1 no later line needs
 * them. */
static bool may_be_over(const berth_attr *attr, const berth__shape *x, const berth__shape *out) {
  const berth_attr *strides = &attr[BERTH__LAST_STRIDES];
  for (uint32_t k = 0; k < strides->count; k++)
    if (strides->ints[k] != 1) return false;
  return x->rank <= 4 && x->dim[x->rank - 1] == out->dim[out->rank - 1];
}

static berth_status depthwise_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  const berth__window_attrs window = berth__last_window(infer->attrs);
  const int64_t *taps = infer->attrs[BERTH__LAST_KERNEL].ints;
  const int64_t channels = x->dim[x->rank - 1];
  int64_t same;
  BERTH__TRY(berth__last_check(infer, &window, err));
  BERTH__TRY(berth__last_check_kernel(infer, err));
  BERTH__TRY(berth__last_check_over(&infer->attrs[BERTH__DEPTHWISE_OVER], may_be_over(infer->attrs, x, weight),
                                    "one or two spatial axes, strides of 1 and one output for each channel", err));
  BERTH__TRY(berth__want_rank(infer, 1, x->rank - 1, x->rank - 1, err));
  for (uint32_t k = 0; k + 2 < x->rank; k++)
    BERTH__TRY(berth__same_dim(taps[k], weight->dim[k], "`kernel` and weight", &same, err));
  const int64_t outputs = weight->dim[x->rank - 2];
  if (berth__dim_is_fixed(channels) && berth__dim_is_fixed(outputs) &&
      (channels == 0 ? outputs != 0 : outputs % channels != 0))
    return berth__fail(err, BERTH_INVALID,
                       "the weight's %" PRId64 " outputs are no multiple of the input's %" PRId64 " channels", outputs,
                       channels);
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = outputs;
  BERTH__TRY(berth__last_infer_windows(infer, &window, taps, &infer->out_shape[0], err));
  return berth__last_check_rest(infer, BERTH__LAST_EXTRA, &infer->attrs[BERTH__LAST_CODE],
                                &infer->attrs[BERTH__LAST_NUMBERS], err);
}

/* The index of channel 0 of a tap's weights. */
static int64_t weight_index(const berth_tensor *weight, const berth__window *window, int64_t tap) {
  int64_t t[BERTH__WINDOW_AXES], index = 0;
  const uint32_t spatial = weight->rank - 1;
  berth__window_tap(window, tap, t);
  for (uint32_t k = 0; k < spatial; k++) index += t[BERTH__WINDOW_AXES - spatial + k] * weight->stride[k];
  return index;
}

static double depthwise_convolve(const berth_op_call *call, const berth__last *last, const berth__last_pixel *pixel,
                                 int64_t output) {
  const int64_t channel = output / (last->outputs / last->channels);
  const berth_tensor *weight = &call->in[1];
  const int64_t taps = berth__window_taps(&last->window);
  double sum = berth__last_bias(call, last, output);
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t from = berth__last_input(last, pixel, tap);
    if (from >= 0)
      sum +=
          berth__load_f64(&call->in[0], from + channel * last->channel_stride) *
          berth__load_f64(weight, weight_index(weight, &last->window, tap) + output * weight->stride[weight->rank - 1]);
  }
  return sum;
}

/* With `over`, an item is a channel of an image, which is kept as a whole before it is stored; otherwise an item is a
 * pixel. */
static bool depthwise_in_place_over(const berth_op_call *call) { return call->attrs[BERTH__DEPTHWISE_OVER].i != 0; }

static int64_t pixels_of_image(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t pixels = 1;
  for (uint32_t k = 1; k + 1 < out->rank; k++) pixels *= out->dim[k];
  return pixels;
}

static int64_t depthwise_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  return depthwise_in_place_over(call) ? out->dim[0] * out->dim[out->rank - 1] : berth__window_items(call);
}

static uint64_t depthwise_scratch(const berth_op_call *call) {
  return depthwise_in_place_over(call) ? (uint64_t)pixels_of_image(call) * sizeof(double) : 0;
}

static double depthwise_finished(const berth_op_call *call, const berth__last *last, const berth__epilogue *epilogue,
                                 int64_t item, int64_t channel) {
  const berth__last_pixel pixel = berth__last_pixel_of(last, item);
  return berth__epilogue_value(epilogue, item * last->outputs + channel,
                               depthwise_convolve(call, last, &pixel, channel));
}

static void run_channel(const berth_op_call *call, const berth__last *last, const berth__epilogue *epilogue,
                        int64_t item) {
  const int64_t pixels = pixels_of_image(call), first = item / last->channels * pixels, channel = item % last->channels;
  double *kept = call->scratch;
  for (int64_t p = 0; p < pixels; p++) kept[p] = depthwise_finished(call, last, epilogue, first + p, channel);
  for (int64_t p = 0; p < pixels; p++) berth__store_f64(&call->out[0], (first + p) * last->channels + channel, kept[p]);
}

static berth_status depthwise_kernel(const berth_op_call *call, berth_error *err) {
  berth__last last;
  berth__epilogue epilogue;
  berth__last_read(call, &last);
  BERTH__TRY(berth__epilogue_read(&epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE],
                                  &call->attrs[BERTH__LAST_NUMBERS], err));
  for (int64_t item = call->begin; item < call->end; item++) {
    if (depthwise_in_place_over(call)) run_channel(call, &last, &epilogue, item);
    for (int64_t channel = 0; channel < last.outputs && !depthwise_in_place_over(call); channel++)
      berth__store_f64(&call->out[0], item * last.outputs + channel,
                       depthwise_finished(call, &last, &epilogue, item, channel));
  }
  return BERTH_OK;
}

static uint32_t depthwise_in_place_of(const berth_attr *attr) { return attr[BERTH__DEPTHWISE_OVER].i != 0 ? 1u : 0; }

#define FEW_CHANNELS 64 /* items are groups of channels then: with fewer channels, threads have nothing to share */

static bool depthwise_may_lie_over(const berth_attr *attr, const berth__shape *x, const berth__shape *out) {
  return x->dim[x->rank - 1] >= FEW_CHANNELS && may_be_over(attr, x, out) && berth__shape_equal(x, out);
}

const berth__family berth__family_depthwise = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = BERTH__LAST_REQUIRED,
    .in_place_of = depthwise_in_place_of,
    .over_attr = BERTH__DEPTHWISE_OVER + 1,
    .may_lie_over = depthwise_may_lie_over,
    .may_lack = 1u << 2,
    .unit_last = 1u,
    .infer = depthwise_infer,
    .items = depthwise_items,
    .scratch = depthwise_scratch,
    .kernel = depthwise_kernel,
};
