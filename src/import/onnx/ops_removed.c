/* Ops that were experimental in ONNX's first versions and then removed. Files that use them still exist, and ONNX
 * Runtime runs them. */
#include "import/onnx/compose.h"

/* alpha x + beta */
static berth_status convert_affine(berth__onnx_call *call, berth_error *err) {
  berth_value scaled;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_with(call, "mul", call->in[0], berth__onnx_float(call, "alpha", 1), &scaled, err));
  return berth__onnx_with(call, "add", scaled, berth__onnx_float(call, "beta", 0), &call->out[0], err);
}

static berth_status convert_scale(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  return berth__onnx_with(call, "mul", call->in[0], berth__onnx_float(call, "scale", 1), &call->out[0], err);
}

/* alpha f(beta x) */
static berth_status onnx_removed_bent(berth__onnx_call *call, const char *f, berth_error *err) {
  berth_value bent;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_with(call, "mul", call->in[0], berth__onnx_float(call, "beta", 1), &bent, err));
  BERTH__TRY(berth__onnx_unary(call, f, bent, &bent, err));
  return berth__onnx_with(call, "mul", bent, berth__onnx_float(call, "alpha", 1), &call->out[0], err);
}

static berth_status convert_parametric_softplus(berth__onnx_call *call, berth_error *err) {
  return onnx_removed_bent(call, "softplus", err);
}

static berth_status convert_scaled_tanh(berth__onnx_call *call, berth_error *err) {
  return onnx_removed_bent(call, "tanh", err);
}

/* Images: [N, C, H, W]. */
static berth_status onnx_removed_want_image(const berth__onnx_call *call, berth_error *err) {
  const uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  if (rank == 4) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "the image has %u axes, expected 4", rank);
}

/* scale x + bias, with one bias per channel. */
static berth_status convert_image_scaler(berth__onnx_call *call, berth_error *err) {
  uint32_t n;
  berth_value scaled, bias;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_removed_want_image(call, err));
  const float *values = berth__onnx_floats(call, "bias", &n);
  const int64_t dims[] = {n, 1, 1};
  BERTH__TRY(berth__onnx_with(call, "mul", call->in[0], berth__onnx_float(call, "scale", 1), &scaled, err));
  if (n == 0) {
    call->out[0] = scaled;
    return BERTH_OK;
  }
  BERTH__TRY(berth_graph_constant(call->graph, NULL, BERTH_F32, berth_shape_fixed(3, dims), values, n * sizeof *values,
                                  &bias, err));
  BERTH__TRY(berth__onnx_cast(call, bias, berth__onnx_value_type(call, scaled), &bias, err));
  return berth__onnx_binary(call, "add", scaled, bias, &call->out[0], err);
}

/* Removes a `border` (left, top, right, bottom); or, from its first two values on, keeps as many lines and columns as
 * `scale` says. */
static berth_status convert_crop(berth__onnx_call *call, berth_error *err) {
  uint32_t n_border, n_scale;
  const int64_t axes[] = {2, 3};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_removed_want_image(call, err));
  const int64_t *border = berth__onnx_ints(call, "border", &n_border),
                *scale = berth__onnx_ints(call, "scale", &n_scale);
  if (n_border != 4 || (n_scale != 0 && n_scale != 2))
    return berth__fail(err, BERTH_MALFORMED, "`border` must have 4 numbers, and `scale` 2 or none");
  for (uint32_t i = 0; i < 4; i++)
    if (border[i] < 0) return berth__fail(err, BERTH_MALFORMED, "`border` has a number below 0");
  const int64_t starts[] = {border[1], border[0]};
  int64_t ends[] = {-border[3], -border[2]};
  for (uint32_t i = 0; i < 2; i++) {
    if (n_scale != 0)
      ends[i] = starts[i] + scale[i];
    else if (ends[i] == 0)
      ends[i] = INT64_MAX;
  }
  const berth_attr attrs[] = {berth_attr_ints("axes", axes, 2), berth_attr_ints("starts", starts, 2),
                              berth_attr_ints("ends", ends, 2)};
  return berth__onnx_emit(call, "narrow", call->in, 1, attrs, 3, call->out, 1, err);
}

const berth__onnx_handler berth__onnx_removed[] = {
    {"Affine", convert_affine, NULL},
    {"Crop", convert_crop, NULL},
    {"ImageScaler", convert_image_scaler, NULL},
    {"ParametricSoftplus", convert_parametric_softplus, NULL},
    {"Scale", convert_scale, NULL},
    {"ScaledTanh", convert_scaled_tanh, NULL},
    {NULL, NULL, NULL},
};
