/* Activation functions. */
#include "import/onnx/compose.h"

/* where(x < bound, below, x) */
static berth_status replace_below(berth__onnx_call *call, berth_value x, double bound, berth_value below,
                                  berth_value *out, berth_error *err) {
  berth_value in[3] = {BERTH_VALUE_NONE, below, x};
  BERTH__TRY(berth__onnx_with(call, "lt", x, bound, &in[0], err));
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, out, 1, err);
}

/* Products and quotients with 1 are omitted. */
static berth_status onnx_activation_scale(berth__onnx_call *call, const char *op, berth_value x, double by,
                                          berth_value *out, berth_error *err) {
  *out = x;
  return by == 1.0 ? BERTH_OK : berth__onnx_with(call, op, x, by, out, err);
}

/* ---- Functions with a kink at 0 ---- */

/* alpha (e^(x / width) - 1) below 0, x above. */
static berth_status bend(berth__onnx_call *call, double alpha, double width, berth_value *out, berth_error *err) {
  berth_value x, bent;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  x = call->in[0];
  BERTH__TRY(onnx_activation_scale(call, "div", x, width, &bent, err));
  BERTH__TRY(berth__onnx_unary(call, "expm1", bent, &bent, err));
  BERTH__TRY(onnx_activation_scale(call, "mul", bent, alpha, &bent, err));
  return replace_below(call, x, 0, bent, out, err);
}

static berth_status convert_elu(berth__onnx_call *call, berth_error *err) {
  berth_value result;
  BERTH__TRY(bend(call, berth__onnx_float(call, "alpha", 1), 1, &result, err));
  call->out[0] = result;
  return BERTH_OK;
}

static berth_status convert_celu(berth__onnx_call *call, berth_error *err) {
  double alpha = berth__onnx_float(call, "alpha", 1);
  berth_value result;
  if (alpha == 0) return berth__fail(err, BERTH_MALFORMED, "its alpha is 0, by which it divides");
  BERTH__TRY(bend(call, alpha, alpha, &result, err));
  call->out[0] = result;
  return BERTH_OK;
}

static berth_status convert_selu(berth__onnx_call *call, berth_error *err) {
  berth_value result;
  BERTH__TRY(bend(call, berth__onnx_float(call, "alpha", 1.67326319217681884765625), 1, &result, err));
  return onnx_activation_scale(call, "mul", result, berth__onnx_float(call, "gamma", 1.05070102214813232421875),
                               &call->out[0], err);
}

/* x and alpha x cross only at 0, so the function is their maximum or minimum. */
static berth_status convert_leaky_relu(berth__onnx_call *call, berth_error *err) {
  berth_value sloped;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  double alpha = berth__onnx_float(call, "alpha", 0.01);
  if (alpha == 0) return berth__onnx_unary(call, "relu", call->in[0], &call->out[0], err);
  BERTH__TRY(berth__onnx_with(call, "mul", call->in[0], alpha, &sloped, err));
  return berth__onnx_binary(call, alpha < 1 ? "max" : "min", call->in[0], sloped, &call->out[0], err);
}

/* Before opset 7, a list of slopes was per channel. */
static berth_status align_slope(berth__onnx_call *call, uint32_t rank, berth_value *slope, berth_error *err) {
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n = 0;
  if (call->opset >= 7 || berth__onnx_shape(call, *slope)->rank != 1) return BERTH_OK;
  for (uint32_t at = 1; at + 1 < rank; at++) axes[n++] = at;
  return n == 0 ? BERTH_OK : berth__onnx_listed(call, "unsqueeze", *slope, "axes", axes, n, slope, err);
}

/* The slope broadcasts to x, and x never to the slope. */
static berth_status convert_prelu(berth__onnx_call *call, berth_error *err) {
  berth_value sloped, slope;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  slope = call->in[1];
  const berth__shape x = *berth__onnx_shape(call, call->in[0]);
  BERTH__TRY(align_slope(call, x.rank, &slope, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", call->in[0], slope, &sloped, err));
  const berth__shape *both = berth__onnx_shape(call, sloped);
  bool fits = both->rank == x.rank;
  for (uint32_t i = 0; fits && i < x.rank; i++)
    fits = both->dim[i] == x.dim[i] || !berth__dim_is_fixed(both->dim[i]) || !berth__dim_is_fixed(x.dim[i]);
  if (!fits) return berth__fail(err, BERTH_MALFORMED, "its slope does not broadcast to the shape of its operand");
  return replace_below(call, call->in[0], 0, sloped, &call->out[0], err);
}

/* ---- Thresholds ---- */

static berth_status convert_thresholded_relu(berth__onnx_call *call, berth_error *err) {
  berth_value above, zero;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_value x = call->in[0];
  BERTH__TRY(berth__onnx_with(call, "gt", x, berth__onnx_float(call, "alpha", 1), &above, err));
  BERTH__TRY(berth__onnx_scalar(call, berth__onnx_value_type(call, x), 0, &zero, err));
  berth_value in[3] = {above, x, zero};
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, &call->out[0], 1, err);
}

/* min(max(alpha x + beta, 0), 1) */
static berth_status onnx_activation_hard_sigmoid(berth__onnx_call *call, double alpha, double beta, berth_value *out,
                                                 berth_error *err) {
  berth_attr bounds[] = {berth_attr_float("min", 0), berth_attr_float("max", 1)};
  berth_value line;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_with(call, "mul", call->in[0], alpha, &line, err));
  BERTH__TRY(berth__onnx_with(call, "add", line, beta, &line, err));
  return berth__onnx_emit(call, "clamp", &line, 1, bounds, 2, out, 1, err);
}

static berth_status convert_hard_sigmoid(berth__onnx_call *call, berth_error *err) {
  berth_value result;
  BERTH__TRY(onnx_activation_hard_sigmoid(call, berth__onnx_float(call, "alpha", (double)0.2f),
                                          berth__onnx_float(call, "beta", 0.5), &result, err));
  call->out[0] = result;
  return BERTH_OK;
}

static berth_status convert_hard_swish(berth__onnx_call *call, berth_error *err) {
  berth_value gate;
  BERTH__TRY(onnx_activation_hard_sigmoid(call, 1.0 / 6.0, 0.5, &gate, err));
  return berth__onnx_binary(call, "mul", call->in[0], gate, &call->out[0], err);
}

/* x + bias below -lambd, x - bias above lambd, 0 between. Integers go through f64, whose conversion truncates towards
 * zero. */
static berth_status convert_shrink(berth__onnx_call *call, berth_error *err) {
  berth_value x, below, above, low, high, result;
  double bias = berth__onnx_float(call, "bias", 0), lambd = berth__onnx_float(call, "lambd", 0.5);
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_cast(call, call->in[0], berth__type_is_float(type) ? type : BERTH_F64, &x, err));
  BERTH__TRY(berth__onnx_with(call, "lt", x, -lambd, &below, err));
  BERTH__TRY(berth__onnx_with(call, "gt", x, lambd, &above, err));
  BERTH__TRY(berth__onnx_with(call, "add", x, bias, &low, err));
  BERTH__TRY(berth__onnx_with(call, "sub", x, bias, &high, err));
  BERTH__TRY(berth__onnx_unary(call, "not", above, &above, err));
  BERTH__TRY(berth__onnx_replace(call, above, 0, high, &result, err));
  berth_value in[3] = {below, low, result};
  BERTH__TRY(berth__onnx_emit(call, "where", in, 3, NULL, 0, &result, 1, err));
  return berth__onnx_cast(call, result, type, &call->out[0], err);
}

/* ---- Smooth ---- */

/* x / (1 + |x|) */
static berth_status convert_softsign(berth__onnx_call *call, berth_error *err) {
  berth_value divisor;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_unary(call, "abs", call->in[0], &divisor, err));
  BERTH__TRY(berth__onnx_with(call, "add", divisor, 1, &divisor, err));
  return berth__onnx_binary(call, "div", call->in[0], divisor, &call->out[0], err);
}

/* x tanh(softplus(x)) */
static berth_status convert_mish(berth__onnx_call *call, berth_error *err) {
  berth_value gate;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_unary(call, "softplus", call->in[0], &gate, err));
  BERTH__TRY(berth__onnx_unary(call, "tanh", gate, &gate, err));
  return berth__onnx_binary(call, "mul", call->in[0], gate, &call->out[0], err);
}

static berth_status convert_gelu(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth__span form = berth__onnx_string(call, "approximate", "none");
  bool is_tanh = berth__span_is(form, "tanh");
  if (!is_tanh && !berth__span_is(form, "none"))
    return berth__fail(err, BERTH_MALFORMED, "its approximation is neither \"none\" nor \"tanh\"");
  return berth__onnx_unary(call, is_tanh ? "gelu_tanh" : "gelu", call->in[0], &call->out[0], err);
}

/* x sigmoid(alpha x) */
static berth_status convert_swish(berth__onnx_call *call, berth_error *err) {
  berth_value gate;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  double alpha = berth__onnx_float(call, "alpha", 1);
  if (alpha == 1) return berth__onnx_unary(call, "silu", call->in[0], &call->out[0], err);
  BERTH__TRY(berth__onnx_with(call, "mul", call->in[0], alpha, &gate, err));
  BERTH__TRY(berth__onnx_unary(call, "sigmoid", gate, &gate, err));
  return berth__onnx_binary(call, "mul", call->in[0], gate, &call->out[0], err);
}

/* Swish(a) b */
static berth_status convert_swiglu(berth__onnx_call *call, berth_error *err) {
  berth_value gated;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(berth__onnx_as(call, "Swish", call->opset, call->in, 1, &gated, 1, err));
  return berth__onnx_binary(call, "mul", gated, call->in[1], &call->out[0], err);
}

const berth__onnx_handler berth__onnx_activation[] = {
    {"Relu", berth__onnx_same, "relu"},
    {"Sigmoid", berth__onnx_same, "sigmoid"},
    {"Softplus", berth__onnx_same, "softplus"},
    {"Tanh", berth__onnx_same, "tanh"},
    {"Celu", convert_celu, NULL},
    {"Elu", convert_elu, NULL},
    {"Gelu", convert_gelu, NULL},
    {"HardSigmoid", convert_hard_sigmoid, NULL},
    {"HardSwish", convert_hard_swish, NULL},
    {"LeakyRelu", convert_leaky_relu, NULL},
    {"Mish", convert_mish, NULL},
    {"PRelu", convert_prelu, NULL},
    {"Selu", convert_selu, NULL},
    {"Shrink", convert_shrink, NULL},
    {"Softsign", convert_softsign, NULL},
    {"SwiGLU", convert_swiglu, NULL},
    {"Swish", convert_swish, NULL},
    {"ThresholdedRelu", convert_thresholded_relu, NULL},
    {NULL, NULL, NULL},
};
