/* batch_norm of x [N, C, ...] with given statistics: scale, bias, mean and variance are [C]. An item is one channel of
 * one sample. */
#include <math.h>

#include "ops/norm.h"

static const berth_attr attrs_of_batch_norm[] = {
    [BERTH__BATCH_NORM_EPSILON] = {.name = "epsilon", .kind = BERTH_ATTR_FLOAT, .f = 1e-5}};

static berth_status infer_batch_norm(berth__infer *infer, berth_error *err) {
  BERTH__TRY(berth__want_float(infer, BERTH__NORM_X, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__NORM_X, 2, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_epsilon(&infer->attrs[BERTH__BATCH_NORM_EPSILON], err));
  for (uint32_t k = BERTH__NORM_SCALE; k <= BERTH__NORM_VARIANCE; k++) BERTH__TRY(berth__want_channels(infer, k, err));
  infer->out_type[0] = infer->in_type[BERTH__NORM_X];
  infer->out_shape[0] = infer->in_shape[BERTH__NORM_X];
  return BERTH_OK;
}

static int64_t batch_norm_items(const berth_op_call *call) {
  return call->in[BERTH__NORM_X].dim[0] * call->in[BERTH__NORM_X].dim[1];
}

static berth_status batch_norm_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = call->in;
  int64_t plane = berth__lines_of(&in[BERTH__NORM_X], 1).inner;
  double epsilon = call->attrs[BERTH__BATCH_NORM_EPSILON].f;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t channel = item % in[BERTH__NORM_X].dim[1];
    berth__moments moments = {berth__load_f64(&in[BERTH__NORM_MEAN], channel),
                              1.0 / sqrt(berth__load_f64(&in[BERTH__NORM_VARIANCE], channel) + epsilon)};
    berth__normalise(&in[BERTH__NORM_X], &call->out[0], item * plane, plane, moments,
                     (berth__norm_values){&in[BERTH__NORM_SCALE], channel, 0, 1.0},
                     (berth__norm_values){&in[BERTH__NORM_BIAS], channel, 0, 0.0});
  }
  return BERTH_OK;
}

const berth__family berth__family_batch_norm = {.attrs = attrs_of_batch_norm,
                                                .n_attrs = 1,
                                                .infer = infer_batch_norm,
                                                .items = batch_norm_items,
                                                .kernel = batch_norm_kernel};
