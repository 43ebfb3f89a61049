/* Normalisations. */
#include <inttypes.h>

#include "import/onnx/compose.h"

#define DEFAULT_EPSILON 1e-5

static double epsilon_of(const berth__onnx_call *call) { return berth__onnx_float(call, "epsilon", DEFAULT_EPSILON); }

/* ---- Over the last axes ---- */

/* mean and 1 / sqrt(variance + epsilon), in the type of x. */
static berth_status moments(berth__onnx_call *call, berth_value x, const int64_t *axes, uint32_t n, bool keepdims,
                            berth_value *mean, berth_value *variance, berth_error *err) {
  berth_value centre, apart;
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_mean", x, axes, n, true, &centre, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", x, centre, &apart, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", apart, apart, &apart, err));
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_mean", apart, axes, n, keepdims, variance, err));
  if (keepdims) return *mean = centre, BERTH_OK;
  return berth__onnx_listed(call, "squeeze", centre, "axes", axes, n, mean, err);
}

/* 1 / sqrt(variance + epsilon) */
static berth_status inverse_deviation(berth__onnx_call *call, berth_value variance, berth_value *out,
                                      berth_error *err) {
  BERTH__TRY(berth__onnx_with(call, "add", variance, epsilon_of(call), out, err));
  return berth__onnx_unary(call, "rsqrt", *out, out, err);
}

/* Mean and InvStdDev, in the type in which the norm is computed. */
static berth_status layer_statistics(berth__onnx_call *call, uint32_t axis, berth_error *err) {
  berth_value x, mean, variance, inverse;
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n = 0;
  if (!berth__onnx_is_asked(call, 1) && !berth__onnx_is_asked(call, 2)) return BERTH_OK;
  for (uint32_t i = axis; i < berth__onnx_shape(call, call->in[0])->rank; i++) axes[n++] = i;
  berth_type stash = berth__onnx_int(call, "stash_type", 1) == 1 ? BERTH_F32 : type;
  BERTH__TRY(berth__onnx_cast(call, call->in[0], stash, &x, err));
  BERTH__TRY(moments(call, x, axes, n, true, &mean, &variance, err));
  BERTH__TRY(inverse_deviation(call, variance, &inverse, err));
  berth__onnx_set(call, 1, mean);
  berth__onnx_set(call, 2, inverse);
  return BERTH_OK;
}

/* Whether this can be the norm's own scale or bias: it varies only over the normalised axes. */
static bool fits_row(const berth__onnx_call *call, berth_value value, uint32_t axis) {
  return value == BERTH_VALUE_NONE ||
         berth__onnx_shape(call, value)->rank <= berth__onnx_shape(call, call->in[0])->rank - axis;
}

/* layer_norm and rms_norm: x, scale, bias?; a scale or bias that varies over other axes is applied afterwards. The
 * result has the scale's type; if that is not the operand's, at least f32 is used, which can hold both. */
static berth_status convert_last_axes(berth__onnx_call *call, berth_error *err) {
  uint32_t axis;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_value in[3] = {call->in[0], call->in[1], berth__onnx_in(call, 2)};
  const berth_type given = berth__onnx_value_type(call, in[0]), wanted = berth__onnx_value_type(call, in[1]);
  const berth_type type = given == wanted ? given : given == BERTH_F64 || wanted == BERTH_F64 ? BERTH_F64 : BERTH_F32;
  BERTH__TRY(
      berth__onnx_axis(call, berth__onnx_int(call, "axis", -1), berth__onnx_shape(call, in[0])->rank, &axis, err));
  for (size_t k = 0; k < 3; k++)
    if (in[k] != BERTH_VALUE_NONE) BERTH__TRY(berth__onnx_cast(call, in[k], type, &in[k], err));
  berth_attr attrs[] = {berth_attr_int("axis", axis), berth_attr_float("epsilon", epsilon_of(call))};
  bool inside = fits_row(call, in[1], axis) && fits_row(call, in[2], axis);
  size_t n_in = in[2] != BERTH_VALUE_NONE ? 3 : 2;
  berth_value y;
  BERTH__TRY(berth__onnx_emit(call, call->handler->berth_op, in, inside ? n_in : 1, attrs, 2, &y, 1, err));
  if (!inside) BERTH__TRY(berth__onnx_binary(call, "mul", y, in[1], &y, err));
  if (!inside && n_in == 3) BERTH__TRY(berth__onnx_binary(call, "add", y, in[2], &y, err));
  BERTH__TRY(berth__onnx_cast(call, y, wanted, &call->out[0], err));
  return layer_statistics(call, axis, err);
}

/* ---- Over groups of channels ---- */

/* From the operand, or from the scale if it has one value per channel. */
static berth_status want_channels(const berth__onnx_call *call, bool scale_has_them, int64_t *channels,
                                  berth_error *err) {
  const berth__shape *x = berth__onnx_shape(call, call->in[0]), *scale = berth__onnx_shape(call, call->in[1]);
  if (x->rank < 2) return berth__fail(err, BERTH_MALFORMED, "its operand has rank %u, expected at least 2", x->rank);
  *channels = x->dim[1];
  if (!berth__dim_is_fixed(*channels) && scale_has_them && scale->rank == 1) *channels = scale->dim[0];
  if (berth__dim_is_fixed(*channels)) return BERTH_OK;
  return berth__onnx_unsupported(call, err, "the number of channels is not known");
}

static berth_status emit_group_norm(berth__onnx_call *call, berth_value scale, berth_value bias, int64_t groups,
                                    berth_error *err) {
  berth_value in[3] = {call->in[0], scale, bias};
  berth_attr attrs[] = {berth_attr_int("groups", groups), berth_attr_float("epsilon", epsilon_of(call))};
  return berth__onnx_emit(call, "group_norm", in, 3, attrs, 2, call->out, 1, err);
}

/* One group per channel; without channels there is nothing to normalise. */
static berth_status convert_instance_norm(berth__onnx_call *call, berth_error *err) {
  int64_t channels = 0;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(want_channels(call, true, &channels, err));
  if (channels == 0) return call->out[0] = call->in[0], BERTH_OK;
  return emit_group_norm(call, call->in[1], call->in[2], channels, err);
}

/* [groups] becomes [channels]: each value is repeated for the channels of its group. */
static berth_status repeat_in_group(berth__onnx_call *call, berth_value x, int64_t groups, int64_t channels,
                                    berth_value *out, berth_error *err) {
  int64_t last = 1;
  berth_dim wide[2] = {{.extent = groups}, {.extent = channels / groups}}, flat = {.extent = channels};
  berth_attr shape = berth_attr_dims("shape", wide, 2);
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", x, "axes", &last, 1, out, err));
  BERTH__TRY(berth__onnx_emit(call, "expand", out, 1, &shape, 1, out, 1, err));
  shape = berth_attr_dims("shape", &flat, 1);
  return berth__onnx_emit(call, "reshape", out, 1, &shape, 1, out, 1, err);
}

/* Scale and bias have one value per group before opset 21, one per channel since. */
static berth_status convert_group_norm(berth__onnx_call *call, berth_error *err) {
  int64_t groups = berth__onnx_int(call, "num_groups", 0), channels = 0;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  berth_value scale = call->in[1], bias = call->in[2];
  BERTH__TRY(want_channels(call, call->opset >= 21, &channels, err));
  if (groups < 1 || channels < groups || channels % groups != 0)
    return berth__fail(err, BERTH_MALFORMED, "num_groups is %" PRId64 ", expected a divisor of %" PRId64 " channels",
                       groups, channels);
  if (call->opset < 21 && groups != channels) {
    BERTH__TRY(repeat_in_group(call, scale, groups, channels, &scale, err));
    BERTH__TRY(repeat_in_group(call, bias, groups, channels, &bias, err));
  }
  return emit_group_norm(call, scale, bias, groups, err);
}

/* ---- Batch normalisation ---- */

enum {
  BN_X,
  BN_SCALE,
  BN_BIAS,
  BN_MEAN,
  BN_VARIANCE
};

/* Statistics per element (spatial = 0): they broadcast over the first axis. */
static berth_status norm_elements(berth__onnx_call *call, const berth_value *in, berth_error *err) {
  berth_value y, factor;
  BERTH__TRY(inverse_deviation(call, in[BN_VARIANCE], &factor, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", factor, in[BN_SCALE], &factor, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", in[BN_X], in[BN_MEAN], &y, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", y, factor, &y, err));
  return berth__onnx_binary(call, "add", y, in[BN_BIAS], &call->out[0], err);
}

/* running = running * momentum + batch * (1 - momentum) */
static berth_status running(berth__onnx_call *call, berth_value before, berth_value batch, berth_value *out,
                            berth_error *err) {
  double momentum = berth__onnx_float(call, "momentum", 0.9f);
  berth_value kept, added;
  BERTH__TRY(berth__onnx_with(call, "mul", before, momentum, &kept, err));
  BERTH__TRY(berth__onnx_with(call, "mul", batch, 1 - momentum, &added, err));
  return berth__onnx_binary(call, "add", kept, added, out, err);
}

/* The statistics are those of the batch: in[BN_MEAN] and in[BN_VARIANCE] are replaced. Before opset 14, the statistics
 * themselves are outputs too. */
static berth_status batch_statistics(berth__onnx_call *call, berth_value *in, berth_error *err) {
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n = 0;
  berth_value mean, variance, out;
  for (uint32_t i = 0; i < berth__onnx_shape(call, in[BN_X])->rank; i++)
    if (i != 1) axes[n++] = i;
  BERTH__TRY(moments(call, in[BN_X], axes, n, false, &mean, &variance, err));
  BERTH__TRY(running(call, in[BN_MEAN], mean, &out, err));
  berth__onnx_set(call, 1, out);
  BERTH__TRY(running(call, in[BN_VARIANCE], variance, &out, err));
  berth__onnx_set(call, 2, out);
  berth__onnx_set(call, 3, mean);
  berth__onnx_set(call, 4, variance);
  in[BN_MEAN] = mean;
  in[BN_VARIANCE] = variance;
  return BERTH_OK;
}

/* Since opset 14 an attribute says so; before, it follows from outputs other than the result. */
static bool is_training(const berth__onnx_call *call) {
  if (call->opset >= 14) return berth__onnx_int(call, "training_mode", 0) != 0;
  for (size_t k = 1; k < call->n_out; k++)
    if (berth__onnx_is_asked(call, k)) return true;
  return false;
}

/* The operands in the type of the first. */
static berth_status read_batch_norm(berth__onnx_call *call, berth_value *in, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 5, err));
  berth_type type = berth__onnx_value_type(call, call->in[BN_X]);
  for (size_t k = BN_X; k <= BN_VARIANCE; k++) BERTH__TRY(berth__onnx_cast(call, call->in[k], type, &in[k], err));
  return BERTH_OK;
}

static berth_status convert_batch_norm(berth__onnx_call *call, berth_error *err) {
  berth_value in[5];
  BERTH__TRY(read_batch_norm(call, in, err));
  bool training = is_training(call), spatial = call->opset >= 9 || berth__onnx_int(call, "spatial", 1) != 0;
  uint32_t rank = berth__onnx_shape(call, in[BN_X])->rank;
  berth_attr epsilon = berth_attr_float("epsilon", epsilon_of(call));
  int64_t last = 1;
  if (training && !spatial) return berth__onnx_unsupported(call, err, "training with spatial = 0 is not supported");
  if (!spatial) return norm_elements(call, in, err);
  if (rank == 1) BERTH__TRY(berth__onnx_listed(call, "unsqueeze", in[BN_X], "axes", &last, 1, &in[BN_X], err));
  if (training) BERTH__TRY(batch_statistics(call, in, err));
  BERTH__TRY(berth__onnx_emit(call, "batch_norm", in, 5, &epsilon, 1, call->out, 1, err));
  if (rank != 1) return BERTH_OK;
  return berth__onnx_listed(call, "squeeze", call->out[0], "axes", &last, 1, &call->out[0], err);
}

/* ---- Others ---- */

/* The mean of the squares of `size` neighbouring channels: pooling with the channels as first spatial axis. */
static berth_status channel_squares(berth__onnx_call *call, berth_value x, int64_t size, berth_value *out,
                                    berth_error *err) {
  uint32_t rank = berth__onnx_shape(call, x)->rank, spatial = rank < 4 ? rank - 1 : rank == 4 ? 3 : 2;
  int64_t kernel[3] = {size, 1, 1}, pads[6] = {0}, one = 1;
  berth_dim merged[3] = {{.extent = 0}, {.extent = 0}, {.extent = -1}};
  berth_attr shape = berth_attr_dims("shape", merged, 3);
  pads[0] = (size - 1) / 2;
  pads[spatial] = size - 1 - pads[0];
  berth_attr attrs[] = {berth_attr_ints("kernel", kernel, spatial), berth_attr_ints("pads", pads, 2 * spatial),
                        berth_attr_int("count_include_pad", 1)};
  BERTH__TRY(berth__onnx_binary(call, "mul", x, x, out, err));
  if (rank > 4) BERTH__TRY(berth__onnx_emit(call, "reshape", out, 1, &shape, 1, out, 1, err));
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", *out, "axes", &one, 1, out, err));
  BERTH__TRY(berth__onnx_emit(call, "avg_pool", out, 1, attrs, 3, out, 1, err));
  return berth__onnx_reshape_like(call, *out, x, out, err);
}

/* x / (bias + alpha * mean of squares) ^ beta */
static berth_status convert_lrn(berth__onnx_call *call, berth_error *err) {
  int64_t size = berth__onnx_int(call, "size", 0);
  berth_value y, x;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  if (size < 1 || size > INT32_MAX)
    return berth__fail(err, BERTH_MALFORMED, "size is %" PRId64 ", expected 1 or more", size);
  if (berth__onnx_shape(call, call->in[0])->rank < 2)
    return berth__fail(err, BERTH_MALFORMED, "its operand needs an axis of channels");
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_cast(call, call->in[0], berth__onnx_wide(type), &x, err));
  BERTH__TRY(channel_squares(call, x, size, &y, err));
  BERTH__TRY(berth__onnx_with(call, "mul", y, berth__onnx_float(call, "alpha", 1e-4f), &y, err));
  BERTH__TRY(berth__onnx_with(call, "add", y, berth__onnx_float(call, "bias", 1), &y, err));
  BERTH__TRY(berth__onnx_with(call, "pow", y, berth__onnx_float(call, "beta", 0.75), &y, err));
  BERTH__TRY(berth__onnx_binary(call, "div", x, y, &y, err));
  return berth__onnx_cast(call, y, type, &call->out[0], err);
}

/* x / norm along an axis; a line of zeros is unchanged. */
static berth_status convert_lp_norm(berth__onnx_call *call, berth_error *err) {
  int64_t axis = berth__onnx_int(call, "axis", -1), p = berth__onnx_int(call, "p", 2);
  berth_value x, size, is_zero;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  if (p != 1 && p != 2) return berth__fail(err, BERTH_MALFORMED, "p is %" PRId64 ", expected 1 or 2", p);
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_cast(call, call->in[0], berth__onnx_wide(type), &x, err));
  BERTH__TRY(p == 1 ? berth__onnx_unary(call, "abs", x, &size, err)
                    : berth__onnx_binary(call, "mul", x, x, &size, err));
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_sum", size, &axis, 1, true, &size, err));
  if (p == 2) BERTH__TRY(berth__onnx_unary(call, "sqrt", size, &size, err));
  BERTH__TRY(berth__onnx_with(call, "eq", size, 0, &is_zero, err));
  BERTH__TRY(berth__onnx_replace(call, is_zero, 1, size, &size, err));
  BERTH__TRY(berth__onnx_binary(call, "div", x, size, &x, err));
  return berth__onnx_cast(call, x, type, &call->out[0], err);
}

/* Before opset 9, two flags instead of axes. */
static berth_status mvn_axes(const berth__onnx_call *call, int64_t *axes, uint32_t *n, berth_error *err) {
  static const int64_t usual[] = {0, 2, 3};
  uint32_t given;
  const int64_t *list = berth__onnx_ints(call, "axes", &given);
  uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  *n = 0;
  if (given > BERTH_MAX_RANK) return berth__fail(err, BERTH_MALFORMED, "it names %u axes", given);
  for (uint32_t i = berth__onnx_int(call, "across_channels", 0) ? 1 : 2; call->opset < 9 && i < rank; i++)
    axes[(*n)++] = i;
  for (uint32_t i = 0; call->opset >= 9 && i < (list != NULL ? given : 3); i++)
    axes[(*n)++] = list != NULL ? list[i] : usual[i];
  return BERTH_OK;
}

/* (x - mean) / (deviation + 1e-9) */
static berth_status convert_mvn(berth__onnx_call *call, berth_error *err) {
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n;
  berth_value x, mean, variance;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(mvn_axes(call, axes, &n, err));
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_cast(call, call->in[0], berth__onnx_wide(type), &x, err));
  BERTH__TRY(moments(call, x, axes, n, true, &mean, &variance, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", x, mean, &x, err));
  if (call->opset >= 9 || berth__onnx_int(call, "normalize_variance", 1) != 0) {
    BERTH__TRY(berth__onnx_unary(call, "sqrt", variance, &variance, err));
    BERTH__TRY(berth__onnx_with(call, "add", variance, 1e-9, &variance, err));
    BERTH__TRY(berth__onnx_binary(call, "div", x, variance, &x, err));
  }
  return berth__onnx_cast(call, x, type, &call->out[0], err);
}

const berth__onnx_handler berth__onnx_norm[] = {
    {"LayerNormalization", convert_last_axes, "layer_norm"},
    {"RMSNormalization", convert_last_axes, "rms_norm"},
    {"InstanceNormalization", convert_instance_norm, NULL},
    {"GroupNormalization", convert_group_norm, NULL},
    {"BatchNormalization", convert_batch_norm, NULL},
    {"LRN", convert_lrn, NULL},
    {"LpNormalization", convert_lp_norm, NULL},
    {"MeanVarianceNormalization", convert_mvn, NULL},
    {NULL, NULL, NULL},
};
