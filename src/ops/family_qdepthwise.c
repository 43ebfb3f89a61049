/* qdepthwise: int8 x [N, spatial..., C], int8 weight [kernel..., C]: every channel is convolved with its own kernel.
 * Operands: x, weight, scale, x_zero?, weight_zero?, bias?, those of the epilogue; see bytes.h. */
#include "ops/bytes_last.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {BERTH__LAST_ATTR_LIST, BERTH__BYTES_ATTR_LIST(BERTH__LAST_ATTRS)};

static berth_status qdepthwise_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  const berth__window_attrs window = berth__last_window(infer->attrs);
  const int64_t *taps = infer->attrs[BERTH__LAST_KERNEL].ints;
  int64_t same, channels;
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  BERTH__TRY(berth__window_check(&window, x->rank - 2, err));
  BERTH__TRY(berth__last_check_kernel(infer, err));
  if (infer->in_type[1] != BERTH_U8) BERTH__TRY(berth__want_type(infer, 1, BERTH_I8, err));
  BERTH__TRY(berth__want_rank(infer, 1, x->rank - 1, x->rank - 1, err));
  for (uint32_t k = 0; k + 2 < x->rank; k++)
    BERTH__TRY(berth__same_dim(taps[k], weight->dim[k], "`kernel` and weight", &same, err));
  BERTH__TRY(berth__same_dim(x->dim[x->rank - 1], weight->dim[x->rank - 2], "channels of x and of the weight",
                             &channels, err));
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = channels;
  BERTH__TRY(berth__last_infer_windows(infer, &window, taps, &infer->out_shape[0], err));
  return berth__bytes_check(infer, channels, infer->in_type[1], err);
}

static int64_t qdepthwise_convolve(const berth__bytes *b, const berth__last *last, const berth__last_pixel *pixel,
                                   int64_t channel) {
  const berth_tensor *weight = &b->call->in[1];
  const int64_t taps = berth__window_taps(&last->window), zero = berth__bytes_weight_zero(b, channel);
  int64_t sum = 0;
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t from = berth__last_input(last, pixel, tap);
    if (from < 0) continue;
    sum += berth__bytes_x(b, from + channel * last->channel_stride) *
           (berth__load_i64(weight, tap * last->channels + channel) - zero);
  }
  return sum;
}

static berth_status qdepthwise_kernel(const berth_op_call *call, berth_error *err) {
  return berth__bytes_convolve(call, qdepthwise_convolve, err);
}

static uint32_t qdepthwise_in_place_of(const berth_attr *attr) {
  return berth__bytes_in_place(attr + sizeof attrs / sizeof *attrs - BERTH__BYTES_ATTRS);
}

const berth__family berth__family_qdepthwise = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = BERTH__LAST_REQUIRED,
    .in_place_of = qdepthwise_in_place_of,
    .may_lack = BERTH__BYTES_MAY_LACK,
    .unit_last = 1u,
    .infer = qdepthwise_infer,
    .items = berth__window_items,
    .kernel = qdepthwise_kernel,
};
