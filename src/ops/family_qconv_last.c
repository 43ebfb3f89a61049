/* qconv_last: int8 x [N, spatial..., C], a weight packed by pack_weights_i8 from [kernel..., C / group, O]. Operands:
 * x, weight, scale, x_zero?, weight_zero?, bias?, those of the epilogue; see bytes.h. */
#include <inttypes.h>

#include "ops/bytes_last.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    BERTH__LAST_ATTR_LIST,
    [BERTH__QCONV_CHANNELS] = {.name = "channels", .kind = BERTH_ATTR_INT},
    [BERTH__QCONV_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__QCONV_GROUP] = {.name = "group", .kind = BERTH_ATTR_INT, .i = 1},
    BERTH__BYTES_ATTR_LIST(BERTH__QCONV_ATTRS),
};

static berth_status qconv_last_check_weight(const berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const int64_t group = infer->attrs[BERTH__LAST_GROUP].i, panel = infer->attrs[BERTH__LAST_PANEL].i;
  const int64_t channels = x->dim[x->rank - 1], outputs = infer->attrs[BERTH__LAST_CHANNELS].i;
  int64_t rows = BERTH__DIM_UNKNOWN, panels;
  if ((berth__dim_is_fixed(channels) && channels % group != 0) || outputs % group != 0)
    return berth__fail(err, BERTH_INVALID, "channels do not split into %" PRId64 " groups", group);
  if (berth__dim_is_fixed(channels)) rows = channels / group;
  for (uint32_t k = 0; k < infer->attrs[BERTH__LAST_KERNEL].count; k++)
    BERTH__TRY(berth__dim_mul(rows, infer->attrs[BERTH__LAST_KERNEL].ints[k], &rows, err));
  const int64_t each = outputs / group;
  BERTH__TRY(berth__dim_mul(each / panel + (each % panel != 0), group, &panels, err));
  return berth__bytes_check_packed(infer, panels, rows, panel, err);
}

static berth_status qconv_last_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const berth__window_attrs window = berth__last_window(infer->attrs);
  const berth__bytes_attrs own = berth__bytes_attrs_of(infer->op, infer->attrs);
  const int64_t outputs = infer->attrs[BERTH__LAST_CHANNELS].i;
  berth_type weight;
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  BERTH__TRY(berth__window_check(&window, x->rank - 2, err));
  BERTH__TRY(berth__last_check_kernel(infer, err));
  for (uint32_t k = BERTH__LAST_CHANNELS; k <= BERTH__LAST_GROUP; k++)
    BERTH__TRY(berth__last_check_count(&infer->attrs[k], err));
  BERTH__TRY(berth__bytes_type(&own.own[BERTH__BYTES_WEIGHTS], &weight, err));
  BERTH__TRY(qconv_last_check_weight(infer, err));
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = outputs;
  BERTH__TRY(
      berth__last_infer_windows(infer, &window, infer->attrs[BERTH__LAST_KERNEL].ints, &infer->out_shape[0], err));
  return berth__bytes_check(infer, outputs, weight, err);
}

static int64_t qconv_last_convolve(const berth__bytes *b, const berth__last *last, const berth__last_pixel *pixel,
                                   int64_t output) {
  const int64_t group = b->call->attrs[BERTH__LAST_GROUP].i, each = last->channels / group;
  const int64_t first = output / (last->outputs / group) * each, taps = berth__window_taps(&last->window);
  const berth__bytes_column weight = berth__bytes_column_of(b, last->outputs, group, output);
  int64_t sum = 0;
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t from = berth__last_input(last, pixel, tap);
    for (int64_t c = 0; c < each && from >= 0; c++)
      sum +=
          berth__bytes_x(b, from + (first + c) * last->channel_stride) * berth__bytes_weight(&weight, tap * each + c);
  }
  return sum;
}

static berth_status qconv_last_kernel(const berth_op_call *call, berth_error *err) {
  return berth__bytes_convolve(call, qconv_last_convolve, err);
}

static uint32_t qconv_last_in_place_of(const berth_attr *attr) {
  return berth__bytes_in_place(attr + sizeof attrs / sizeof *attrs - BERTH__BYTES_ATTRS);
}

const berth__family berth__family_qconv_last = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = BERTH__LAST_REQUIRED | 1u << BERTH__LAST_CHANNELS | 1u << BERTH__LAST_PANEL,
    .in_place_of = qconv_last_in_place_of,
    .may_lack = BERTH__BYTES_MAY_LACK,
    .unit_last = 1u,
    .infer = qconv_last_infer,
    .items = berth__window_items,
    .kernel = qconv_last_kernel,
};
