/* group_norm of x [N, C, ...]: each sample's channels are normalised in `groups` equal groups; scale and bias [C]. An
 * item is one group of one sample. */
#include <inttypes.h>

#include "ops/norm.h"

static const berth_attr attrs_of_group_norm[] = {
    [BERTH__GROUP_NORM_GROUPS] = {.name = "groups", .kind = BERTH_ATTR_INT},
    [BERTH__GROUP_NORM_EPSILON] = {.name = "epsilon", .kind = BERTH_ATTR_FLOAT, .f = 1e-5}};

static berth_status infer_group_norm(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[BERTH__NORM_X];
  int64_t groups = infer->attrs[BERTH__GROUP_NORM_GROUPS].i;
  BERTH__TRY(berth__want_float(infer, BERTH__NORM_X, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__NORM_X, 2, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_epsilon(&infer->attrs[BERTH__GROUP_NORM_EPSILON], err));
  if (groups < 1 || (berth__dim_is_fixed(in->dim[1]) && in->dim[1] % groups != 0)) {
    char shape[BERTH__SHAPE_TEXT];
    return berth__fail(err, BERTH_INVALID,
                       "attribute 'groups' is %" PRId64 ", expected a divisor of the channels of %s", groups,
                       berth__shape_text(in, shape));
  }
  for (uint32_t k = BERTH__NORM_SCALE; k < infer->n_in; k++)
    if (berth__is_given(infer, k)) BERTH__TRY(berth__want_channels(infer, k, err));
  infer->out_type[0] = infer->in_type[BERTH__NORM_X];
  infer->out_shape[0] = *in;
  return BERTH_OK;
}

static int64_t group_norm_items(const berth_op_call *call) {
  return call->in[BERTH__NORM_X].dim[0] * call->attrs[BERTH__GROUP_NORM_GROUPS].i;
}

static berth_status group_norm_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  const berth_tensor *scale = berth__optional(call, BERTH__NORM_SCALE), *bias = berth__optional(call, BERTH__NORM_BIAS);
  int64_t groups = call->attrs[BERTH__GROUP_NORM_GROUPS].i;
  int64_t channels = x->dim[1] / groups; /* per group */
  int64_t plane = berth__lines_of(x, 1).inner;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t start = item * channels * plane, channel = item % groups * channels;
    berth__moments moments =
        berth__moments_of(x, start, channels * plane, call->attrs[BERTH__GROUP_NORM_EPSILON].f, true);
    for (int64_t c = 0; c < channels; c++)
      berth__normalise(x, &call->out[0], start + c * plane, plane, moments,
                       (berth__norm_values){scale, channel + c, 0, 1.0},
                       (berth__norm_values){bias, channel + c, 0, 0.0});
  }
  return BERTH_OK;
}

const berth__family berth__family_group_norm = {.attrs = attrs_of_group_norm,
                                                .n_attrs = 2,
                                                .required = 1u << BERTH__GROUP_NORM_GROUPS,
                                                .infer = infer_group_norm,
                                                .items = group_norm_items,
                                                .kernel = group_norm_kernel};
