/* Element-wise arithmetic, comparisons, bits and types. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "import/onnx/compose.h"

/* ---- Two operands ---- */

/* Before opset 7, `axis` said where operand 1 lies in operand 0: later axes of extent 1 put it there. */
static berth_status align_operand(berth__onnx_call *call, berth_value a, berth_value *b, berth_error *err) {
  if (call->opset >= 7 || berth__onnx_int(call, "broadcast", 0) == 0 || berth__onnx_find(call, "axis") == NULL)
    return BERTH_OK;
  int64_t axes[BERTH_MAX_RANK];
  uint32_t axis, n = 0, rank = berth__onnx_shape(call, a)->rank, own_rank = berth__onnx_shape(call, *b)->rank;
  BERTH__TRY(berth__onnx_axis(call, berth__onnx_int(call, "axis", 0), rank, &axis, err));
  if (axis + own_rank > rank)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " dimensions from axis %" PRIu32 " on do not fit into %" PRIu32,
                       own_rank, axis, rank);
  for (uint32_t at = own_rank; at < rank - axis; at++) axes[n++] = at;
  return n == 0 ? BERTH_OK : berth__onnx_listed(call, "unsqueeze", *b, "axes", axes, n, b, err);
}

static berth_status onnx_math_convert_binary(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_value b = call->in[1];
  BERTH__TRY(align_operand(call, call->in[0], &b, err));
  return berth__onnx_binary(call, call->handler->berth_op, call->in[0], b, &call->out[0], err);
}

static berth_status convert_mod(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_attr fmod_attr = berth_attr_int("fmod", berth__onnx_int(call, "fmod", 0) != 0);
  return berth__onnx_emit(call, "mod", call->in, 2, &fmod_attr, 1, &call->out[0], 1, err);
}

/* Whether operand b is one number that leaves the shape of a as it is. */
static bool is_scalar_beside(const berth__onnx_call *call, berth_value a, berth_value b, double *out) {
  return berth__onnx_constant_float(call, b, out) &&
         berth__onnx_shape(call, b)->rank <= berth__onnx_shape(call, a)->rank;
}

/* The result has the base's type. Where types differ, both go through one that holds either. */
static berth_status convert_pow(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_value a = call->in[0], b = call->in[1], result;
  berth_type type = berth__onnx_value_type(call, a), power = berth__onnx_value_type(call, b), through = type;
  double constant;
  BERTH__TRY(align_operand(call, a, &b, err));
  if (is_scalar_beside(call, a, b, &constant) && constant == 2.0)
    return berth__onnx_binary(call, "mul", a, a, &call->out[0], err);
  if (!berth__type_is_float(type) && power != type) through = berth__type_is_float(power) ? BERTH_F64 : BERTH_I64;
  BERTH__TRY(berth__onnx_cast(call, a, through, &a, err));
  BERTH__TRY(berth__onnx_cast(call, b, through, &b, err));
  BERTH__TRY(berth__onnx_binary(call, "pow", a, b, &result, err));
  return berth__onnx_cast(call, result, type, &call->out[0], err);
}

/* A shift is a product with, or a quotient by, a power of two. Shifting everything out gives 0: the power wraps to 0,
 * and x / 0 is 0. */
static berth_status convert_shift(berth__onnx_call *call, berth_error *err) {
  berth_value two, power;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth__span direction = berth__onnx_string(call, "direction", "");
  bool is_left = berth__span_is(direction, "LEFT");
  if (!is_left && !berth__span_is(direction, "RIGHT"))
    return berth__fail(err, BERTH_MALFORMED, "its direction is neither LEFT nor RIGHT");
  BERTH__TRY(berth__onnx_scalar(call, berth__onnx_value_type(call, call->in[1]), 2, &two, err));
  BERTH__TRY(berth__onnx_binary(call, "pow", two, call->in[1], &power, err));
  return berth__onnx_binary(call, is_left ? "mul" : "div", call->in[0], power, &call->out[0], err);
}

/* ---- Any number of operands ---- */

static berth_status onnx_math_combine(berth__onnx_call *call, const char *op, berth_value *out, berth_error *err) {
  if (call->n_in == 0) return berth__fail(err, BERTH_MALFORMED, "it has no operands");
  BERTH__TRY(berth__onnx_begin(call, call->n_in, err));
  *out = call->in[0];
  for (size_t i = 1; i < call->n_in; i++) BERTH__TRY(berth__onnx_binary(call, op, *out, call->in[i], out, err));
  return BERTH_OK;
}

static berth_status convert_variadic(berth__onnx_call *call, berth_error *err) {
  berth_value result;
  BERTH__TRY(onnx_math_combine(call, call->handler->berth_op, &result, err));
  call->out[0] = result;
  return BERTH_OK;
}

static berth_status convert_mean(berth__onnx_call *call, berth_error *err) {
  berth_value sum;
  BERTH__TRY(onnx_math_combine(call, "add", &sum, err));
  return berth__onnx_with(call, "div", sum, (double)call->n_in, &call->out[0], err);
}

/* ---- Types ---- */

static berth_status convert_bit_cast(berth__onnx_call *call, berth_error *err) {
  berth_type to;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_named_type(call, "to", BERTH_TYPE_NONE, &to, err));
  if (to == BERTH_TYPE_NONE) return berth__fail(err, BERTH_MALFORMED, "it does not say what to cast to");
  const berth_attr attr = berth_attr_string("to", berth_type_name(to));
  return berth__onnx_emit(call, "bitcast", call->in, 1, &attr, 1, call->out, 1, err);
}

static berth_status convert_cast(berth__onnx_call *call, berth_error *err) {
  berth_type type;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_named_type(call, "to", BERTH_TYPE_NONE, &type, err));
  if (type == BERTH_TYPE_NONE) return berth__fail(err, BERTH_MALFORMED, "the attribute 'to' is missing");
  return berth__onnx_cast(call, call->in[0], type, &call->out[0], err);
}

static berth_status convert_cast_like(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  return berth__onnx_cast(call, call->in[0], berth__onnx_value_type(call, call->in[1]), &call->out[0], err);
}

/* Only NaN differs from itself. */
static berth_status convert_is_nan(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  return berth__onnx_binary(call, "ne", call->in[0], call->in[0], &call->out[0], err);
}

static berth_status convert_is_inf(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_value x = call->in[0];
  bool negative = berth__onnx_int(call, "detect_negative", 1) != 0;
  bool positive = berth__onnx_int(call, "detect_positive", 1) != 0;
  if (!negative && !positive) /* always false */
    return berth__onnx_with(call, "lt", x, -INFINITY, &call->out[0], err);
  if (negative && positive) BERTH__TRY(berth__onnx_unary(call, "abs", x, &x, err));
  return berth__onnx_with(call, "eq", x, positive ? INFINITY : -INFINITY, &call->out[0], err);
}

/* ---- Clip ---- */

/* A bound that an attribute can hold: a constant number that a double represents exactly. */
static bool is_plain_bound(const berth__onnx_call *call, berth_value bound, double *out) {
  return bound == BERTH_VALUE_NONE || (berth__onnx_constant_float(call, bound, out) && !isnan(*out) &&
                                       (berth__onnx_value_type(call, bound) != BERTH_I64 || fabs(*out) < 0x1p53));
}

static berth_status onnx_math_clamp(berth__onnx_call *call, double low, double high, berth_error *err) {
  berth_attr attrs[] = {berth_attr_float("min", low), berth_attr_float("max", high)};
  if (low == -INFINITY && high == INFINITY) {
    call->out[0] = call->in[0];
    return BERTH_OK;
  }
  return berth__onnx_emit(call, "clamp", call->in, 1, attrs, 2, &call->out[0], 1, err);
}

/* Some files give a bound as a list of one element. */
static berth_status bound_by(berth__onnx_call *call, const char *op, berth_value bound, berth_value *x,
                             berth_error *err) {
  if (bound == BERTH_VALUE_NONE) return BERTH_OK;
  if (berth__onnx_shape(call, bound)->rank != 0) {
    berth_attr shape = berth_attr_dims("shape", NULL, 0);
    BERTH__TRY(berth__onnx_emit(call, "reshape", &bound, 1, &shape, 1, &bound, 1, err));
  }
  return berth__onnx_binary(call, op, *x, bound, x, err);
}

static berth_status convert_clip(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  if (call->opset < 11)
    return onnx_math_clamp(call, berth__onnx_float(call, "min", -FLT_MAX), berth__onnx_float(call, "max", FLT_MAX),
                           err);
  berth_value x = call->in[0], low = berth__onnx_in(call, 1), high = berth__onnx_in(call, 2);
  double least = -INFINITY, most = INFINITY;
  if (is_plain_bound(call, low, &least) && is_plain_bound(call, high, &most))
    return onnx_math_clamp(call, least, most, err);
  BERTH__TRY(bound_by(call, "max", low, &x, err));
  BERTH__TRY(bound_by(call, "min", high, &x, err));
  call->out[0] = x;
  return BERTH_OK;
}

/* ---- EyeLike ---- */

/* 0, 1, 2, ... along one axis of a matrix of ones, with an extent of 1 along the other. */
static berth_status positions(berth__onnx_call *call, berth_value ones, int64_t axis, berth_value *out,
                              berth_error *err) {
  int64_t other = 1 - axis, start = 0, end = 1;
  berth_attr first[] = {berth_attr_ints("axes", &other, 1), berth_attr_ints("starts", &start, 1),
                        berth_attr_ints("ends", &end, 1)};
  berth_attr before[] = {berth_attr_int("axis", axis), berth_attr_int("exclusive", 1)};
  BERTH__TRY(berth__onnx_emit(call, "narrow", &ones, 1, first, 3, out, 1, err));
  return berth__onnx_emit(call, "cumsum", out, 1, before, 2, out, 1, err);
}

/* Element (i, j) is 1 where i + k = j. Only the shape of the operand matters, so all of this is folded. */
static berth_status convert_eye_like(berth__onnx_call *call, berth_error *err) {
  berth_value in[2], ones, row, column, equal;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_type own_type = berth__onnx_value_type(call, call->in[0]), type;
  int64_t k = berth__onnx_int(call, "k", 0);
  BERTH__TRY(berth__onnx_named_type(call, "dtype", own_type, &type, err));
  if (berth__onnx_shape(call, call->in[0])->rank != 2)
    return berth__fail(err, BERTH_MALFORMED, "its operand is not a matrix");
  BERTH__TRY(berth__onnx_scalar(call, BERTH_I64, 1, &in[0], err));
  BERTH__TRY(berth__onnx_unary(call, "shape", call->in[0], &in[1], err));
  BERTH__TRY(berth__onnx_emit(call, "expand", in, 2, NULL, 0, &ones, 1, err));
  BERTH__TRY(positions(call, ones, 0, &row, err));
  BERTH__TRY(positions(call, ones, 1, &column, err));
  BERTH__TRY(berth__onnx_with(call, "add", row, (double)k, &row, err));
  BERTH__TRY(berth__onnx_binary(call, "eq", row, column, &equal, err));
  return berth__onnx_cast(call, equal, type, &call->out[0], err);
}

const berth__onnx_handler berth__onnx_math[] = {
    {"Abs", berth__onnx_same, "abs"},
    {"Acos", berth__onnx_same, "acos"},
    {"Acosh", berth__onnx_same, "acosh"},
    {"Asin", berth__onnx_same, "asin"},
    {"Asinh", berth__onnx_same, "asinh"},
    {"Atan", berth__onnx_same, "atan"},
    {"Atanh", berth__onnx_same, "atanh"},
    {"Ceil", berth__onnx_same, "ceil"},
    {"Cos", berth__onnx_same, "cos"},
    {"Cosh", berth__onnx_same, "cosh"},
    {"Erf", berth__onnx_same, "erf"},
    {"Exp", berth__onnx_same, "exp"},
    {"Floor", berth__onnx_same, "floor"},
    {"Log", berth__onnx_same, "log"},
    {"Neg", berth__onnx_same, "neg"},
    {"Not", berth__onnx_same, "not"},
    {"Reciprocal", berth__onnx_same, "reciprocal"},
    {"Round", berth__onnx_same, "round"},
    {"Sign", berth__onnx_same, "sign"},
    {"Sin", berth__onnx_same, "sin"},
    {"Sinh", berth__onnx_same, "sinh"},
    {"Sqrt", berth__onnx_same, "sqrt"},
    {"Tan", berth__onnx_same, "tan"},
    {"Add", onnx_math_convert_binary, "add"},
    {"Sub", onnx_math_convert_binary, "sub"},
    {"Mul", onnx_math_convert_binary, "mul"},
    {"Div", onnx_math_convert_binary, "div"},
    {"Mod", convert_mod, NULL},
    {"Pow", convert_pow, NULL},
    {"BitShift", convert_shift, NULL},
    {"And", onnx_math_convert_binary, "and"},
    {"Or", onnx_math_convert_binary, "or"},
    {"Xor", onnx_math_convert_binary, "xor"},
    {"BitwiseAnd", onnx_math_convert_binary, "and"},
    {"BitwiseOr", onnx_math_convert_binary, "or"},
    {"BitwiseXor", onnx_math_convert_binary, "xor"},
    {"BitwiseNot", berth__onnx_same, "not"},
    {"Equal", onnx_math_convert_binary, "eq"},
    {"Less", onnx_math_convert_binary, "lt"},
    {"LessOrEqual", onnx_math_convert_binary, "le"},
    {"Greater", onnx_math_convert_binary, "gt"},
    {"GreaterOrEqual", onnx_math_convert_binary, "ge"},
    {"Sum", convert_variadic, "add"},
    {"Max", convert_variadic, "max"},
    {"Min", convert_variadic, "min"},
    {"Mean", convert_mean, NULL},
    {"BitCast", convert_bit_cast, NULL},
    {"Cast", convert_cast, NULL},
    {"CastLike", convert_cast_like, NULL},
    {"IsNaN", convert_is_nan, NULL},
    {"IsInf", convert_is_inf, NULL},
    {"Clip", convert_clip, NULL},
    {"Where", berth__onnx_same, "where"},
    {"EyeLike", convert_eye_like, NULL},
    {NULL, NULL, NULL},
};
