/* conv_last: x [N, spatial..., C], a weight packed by pack_weights from [kernel..., C / group, O], bias [O]?, then the
 * operands of the epilogue. One to three spatial axes. With `turned`, x may have any strides: it may be a view of a
 * value with channels first. */
#include <inttypes.h>

#include "ops/conv_last.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    BERTH__LAST_ATTR_LIST,
    [BERTH__LAST_CHANNELS] = {.name = "channels", .kind = BERTH_ATTR_INT},
    [BERTH__LAST_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__LAST_GROUP] = {.name = "group", .kind = BERTH_ATTR_INT, .i = 1},
    [BERTH__LAST_ADDS] = BERTH__ADDS_ATTR,
    [BERTH__LAST_OVER] = BERTH__OVER_ATTR,
    [BERTH__LAST_TURNED] = {.name = "turned", .kind = BERTH_ATTR_INT},
};

static berth_status check_group(int64_t count, const char *what, int64_t group, berth_error *err) {
  if (!berth__dim_is_fixed(count) || count % group == 0) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "%" PRId64 " %s do not split into %" PRId64 " groups", count, what, group);
}

static berth_status conv_last_check_weight(const berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const int64_t group = infer->attrs[BERTH__LAST_GROUP].i, panel = infer->attrs[BERTH__LAST_PANEL].i;
  const int64_t channels = x->dim[x->rank - 1], each = infer->attrs[BERTH__LAST_CHANNELS].i / group;
  int64_t rows, panels;
  rows = group == 1 || !berth__dim_is_fixed(channels) ? channels : channels / group;
  if (group != 1 && !berth__dim_is_fixed(channels)) rows = BERTH__DIM_UNKNOWN;
  for (uint32_t k = 0; k < infer->attrs[BERTH__LAST_KERNEL].count; k++)
    BERTH__TRY(berth__dim_mul(rows, infer->attrs[BERTH__LAST_KERNEL].ints[k], &rows, err));
  BERTH__TRY(berth__dim_mul(each / panel + (each % panel != 0), group, &panels, err));
  return berth__last_check_packed(infer, panels, rows, panel, err);
}

static berth_status conv_last_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const berth__window_attrs window = berth__last_window(infer->attrs);
  const int64_t group = infer->attrs[BERTH__LAST_GROUP].i, outputs = infer->attrs[BERTH__LAST_CHANNELS].i;
  BERTH__TRY(berth__last_check(infer, &window, err));
  BERTH__TRY(berth__last_check_kernel(infer, err));
  for (uint32_t k = BERTH__LAST_CHANNELS; k <= BERTH__LAST_GROUP; k++)
    BERTH__TRY(berth__last_check_count(&infer->attrs[k], err));
  BERTH__TRY(check_group(x->dim[x->rank - 1], "channels", group, err));
  BERTH__TRY(check_group(outputs, "output channels", group, err));
  BERTH__TRY(conv_last_check_weight(infer, err));
  BERTH__TRY(berth__last_check_over(&infer->attrs[BERTH__LAST_OVER], berth__last_is_pointwise(infer->attrs),
                                    "a window of one element, strides of 1, no pads and one group", err));
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = outputs;
  BERTH__TRY(
      berth__last_infer_windows(infer, &window, infer->attrs[BERTH__LAST_KERNEL].ints, &infer->out_shape[0], err));
  BERTH__TRY(berth__epilogue_check_sum(infer, &infer->attrs[BERTH__LAST_ADDS], &infer->out_shape[0], err));
  return berth__last_check_rest(infer, berth__epilogue_first(&infer->attrs[BERTH__LAST_ADDS]),
                                &infer->attrs[BERTH__LAST_CODE], &infer->attrs[BERTH__LAST_NUMBERS], err);
}

static double conv_last_convolve(const berth_op_call *call, const berth__last *last, const berth__last_pixel *pixel,
                                 int64_t output) {
  const int64_t group = call->attrs[BERTH__LAST_GROUP].i, each = last->channels / group;
  const int64_t first = output / (last->outputs / group) * each, taps = berth__window_taps(&last->window);
  const berth_tensor *weight = &call->in[1];
  const int64_t column = berth__last_column(weight, last->outputs, group, output);
  double sum = berth__last_bias(call, last, output);
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t from = berth__last_input(last, pixel, tap);
    for (int64_t c = 0; c < each && from >= 0; c++)
      sum += berth__load_f64(&call->in[0], from + (first + c) * last->channel_stride) *
             berth__load_f64(weight, column + (tap * each + c) * weight->stride[1]);
  }
  return sum;
}

/* With `over`, the outputs of a pixel: they read no other pixel, but each of them reads all of this one. */
static uint64_t conv_last_scratch(const berth_op_call *call) {
  return call->attrs[BERTH__LAST_OVER].i != 0 ? (uint64_t)call->attrs[BERTH__LAST_CHANNELS].i * sizeof(double) : 0;
}

static berth_status conv_last_kernel(const berth_op_call *call, berth_error *err) {
  berth__last last;
  berth__epilogue epilogue;
  double *kept = call->attrs[BERTH__LAST_OVER].i != 0 ? call->scratch : NULL;
  berth__last_read(call, &last);
  const bool adds = call->attrs[BERTH__LAST_ADDS].i != 0;
  BERTH__TRY(berth__epilogue_read(&epilogue, call, berth__epilogue_first(&call->attrs[BERTH__LAST_ADDS]),
                                  &call->attrs[BERTH__LAST_CODE], &call->attrs[BERTH__LAST_NUMBERS], err));
  for (int64_t item = call->begin; item < call->end; item++) {
    const berth__last_pixel pixel = berth__last_pixel_of(&last, item);
    for (int64_t output = 0; output < last.outputs; output++) {
      const int64_t to = item * last.outputs + output;
      const double added = adds ? berth__load_f64(&call->in[BERTH__EPILOGUE_SUM], to) : 0;
      const double value =
          berth__epilogue_value(&epilogue, to, conv_last_convolve(call, &last, &pixel, output) + added);
      if (kept != NULL)
        kept[output] = value;
      else
        berth__store_f64(&call->out[0], to, value);
    }
    for (int64_t output = 0; output < last.outputs && kept != NULL; output++)
      berth__store_f64(&call->out[0], item * last.outputs + output, kept[output]);
  }
  return BERTH_OK;
}

static uint32_t conv_last_in_place_of(const berth_attr *attr) {
  return berth__epilogue_in_place(&attr[BERTH__LAST_ADDS]) | (attr[BERTH__LAST_OVER].i != 0 ? 1u : 0);
}

static bool conv_last_may_lie_over(const berth_attr *attr, const berth__shape *x, const berth__shape *out) {
  return berth__last_is_pointwise(attr) && berth__shape_equal(x, out);
}

const berth__family berth__family_conv_last = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = BERTH__LAST_REQUIRED | 1u << BERTH__LAST_CHANNELS | 1u << BERTH__LAST_PANEL,
    .in_place_of = conv_last_in_place_of,
    .over_attr = BERTH__LAST_OVER + 1,
    .may_lie_over = conv_last_may_lie_over,
    .may_lack = 1u << 2,
    .unit_last = 1u,
    .any_attr = BERTH__LAST_TURNED + 1,
    .infer = conv_last_infer,
    .items = berth__window_items,
    .scratch = conv_last_scratch,
    .kernel = conv_last_kernel,
};
