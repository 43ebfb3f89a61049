#include "ops/conv.h"

#include <inttypes.h>

#include "ops/operand.h"

berth_status berth__conv_check(const berth__infer *infer, berth_error *err) {
  const uint32_t rank = infer->in_shape[0].rank;
  const berth__window_attrs window = berth__conv_window(infer->attrs);
  const int64_t group = infer->attrs[BERTH__CONV_GROUP].i;
  BERTH__TRY(berth__want_numeric(infer, 0, err));
  BERTH__TRY(berth__want_same_type(infer, 0, 1, err));
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  BERTH__TRY(berth__want_rank(infer, 1, rank, rank, err));
  if (group < 1) return berth__fail(err, BERTH_INVALID, "group is %" PRId64 ", expected 1 or more", group);
  return berth__window_check(&window, rank - 2, err);
}

berth_status berth__conv_check_channels(const berth__infer *infer, berth_error *err) {
  const int64_t group = infer->attrs[BERTH__CONV_GROUP].i, channels = infer->in_shape[0].dim[1];
  const int64_t outputs = infer->in_shape[1].dim[0], each = infer->in_shape[1].dim[1];
  int64_t expected;
  if (berth__dim_is_fixed(outputs) && outputs % group != 0)
    return berth__fail(err, BERTH_INVALID,
                       "the weight's %" PRId64 " output channels do not split into %" PRId64 " groups", outputs, group);
  BERTH__TRY(berth__dim_mul(each, group, &expected, err));
  if (berth__dim_is_fixed(expected) && berth__dim_is_fixed(channels) && expected != channels)
    return berth__fail(err, BERTH_INVALID,
                       "the weight expects %" PRId64 " input channels for %" PRId64 " groups (%" PRId64
                       " each) but the input has %" PRId64,
                       expected, group, each, channels);
  return BERTH_OK;
}

berth_status berth__conv_check_bias(const berth__infer *infer, uint32_t operand, int64_t outputs, berth_error *err) {
  int64_t same;
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(berth__want_same_type(infer, 0, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, 1, 1, err));
  return berth__same_dim(outputs, infer->in_shape[operand].dim[0], "output channels and bias", &same, err);
}

void berth__conv_read(const berth_op_call *call, berth__conv *conv) {
  const berth_tensor *x = &call->in[0];
  const berth__window_attrs window = berth__conv_window(call->attrs);
  berth__window_read(&conv->window, &window, x->rank - 2, x->dim + 2, call->in[1].dim + 2, call->out[0].dim + 2);
  conv->line = berth__line_ops_of(x->type);
  conv->size = berth_type_size(x->type);
  conv->taps = berth__window_taps(&conv->window);
  conv->area = conv->window.axis[0].in * conv->window.axis[1].in * conv->window.axis[2].in;
}

void berth__conv_start(const berth_op_call *call, const berth__conv *conv, int64_t channel) {
  const bool has_bias = call->n_in > BERTH__CONV_BIAS && call->in[BERTH__CONV_BIAS].data;
  conv->line->start(call->scratch,
                    has_bias ? berth__element(call->in[BERTH__CONV_BIAS].data, channel, conv->size) : NULL,
                    conv->window.axis[2].out);
}

uint64_t berth__conv_scratch(const berth_op_call *call) {
  return (uint64_t)call->out[0].dim[call->out[0].rank - 1] * BERTH__LINE_BYTES;
}
