/* Quantised ops. Products are computed on 32-bit integers after subtracting the zero points, as ONNX defines them. */
#include "import/onnx/attr_list.h"

/* ---- Scales and zero points ---- */

/* A list of one element stands for a scalar; a longer one lies along `axis` of a tensor of rank `rank`. */
static berth_status onnx_quant_along_axis(berth__onnx_call *call, berth_value value, int64_t axis, uint32_t rank,
                                          berth_value *out, berth_error *err) {
  const berth__shape *shape = berth__onnx_shape(call, value);
  int64_t axes[BERTH_MAX_RANK];
  uint32_t count = 0;
  *out = value;
  if (shape->rank != 1) return BERTH_OK;
  if (shape->dim[0] == 1) {
    axes[0] = 0;
    const berth_attr attr = berth_attr_ints("axes", axes, 1);
    return berth__onnx_emit(call, "squeeze", &value, 1, &attr, 1, out, 1, err);
  }
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank)
    return berth__fail(err, BERTH_MALFORMED, "axis %lld is out of range for an operand of rank %u", (long long)axis,
                       rank);
  for (int64_t k = axis + 1; k < rank; k++) axes[count++] = 1 + (k - axis - 1);
  if (count == 0) return BERTH_OK;
  const berth_attr attr = berth_attr_ints("axes", axes, count);
  return berth__onnx_emit(call, "unsqueeze", &value, 1, &attr, 1, out, 1, err);
}

/* Entries for blocks of x along an axis: as many as are needed to cover it. */
static berth_status onnx_quant_check_blocks(const berth__onnx_call *call, const berth__shape *shape,
                                            const berth__shape *x, uint32_t axis, int64_t block, berth_error *err) {
  int64_t count;
  if (shape->rank != x->rank || shape->rank == BERTH_MAX_RANK || !berth__shape_count(shape, &count) ||
      !berth__dim_is_fixed(x->dim[axis]))
    return berth__onnx_unsupported(call, err, "blocks of %lld need scales of fixed extents and of x's rank",
                                   (long long)block);
  if (shape->dim[axis] != x->dim[axis] / block + (x->dim[axis] % block != 0))
    return berth__fail(err, BERTH_MALFORMED, "%lld scales for blocks of %lld do not cover the %lld elements of an axis",
                       (long long)shape->dim[axis], (long long)block, (long long)x->dim[axis]);
  return BERTH_OK;
}

/* Blocks along an axis: every entry is repeated, and the last block may be cut off. */
static berth_status onnx_quant_repeated(berth__onnx_call *call, berth_value value, uint32_t axis, int64_t block,
                                        const berth__shape *x, berth_value *out, berth_error *err) {
  const berth__shape shape = *berth__onnx_shape(call, value);
  const int64_t after = (int64_t)axis + 1, start = 0, axis_at = axis;
  berth_dim spread[BERTH_MAX_RANK], merged[BERTH_MAX_RANK];
  BERTH__TRY(onnx_quant_check_blocks(call, &shape, x, axis, block, err));
  if (block > x->dim[axis]) block = x->dim[axis];
  for (uint32_t k = 0; k < shape.rank; k++) spread[k + (k > axis)] = merged[k] = (berth_dim){.extent = shape.dim[k]};
  spread[axis + 1] = (berth_dim){.extent = block};
  merged[axis].extent = shape.dim[axis] * block;
  const berth_attr unsqueeze = berth_attr_ints("axes", &after, 1);
  const berth_attr expand = berth_attr_dims("shape", spread, shape.rank + 1);
  const berth_attr reshape[] = {berth_attr_dims("shape", merged, shape.rank), berth_attr_int("allowzero", 1)};
  BERTH__TRY(berth__onnx_emit(call, "unsqueeze", &value, 1, &unsqueeze, 1, out, 1, err));
  BERTH__TRY(berth__onnx_emit(call, "expand", out, 1, &expand, 1, out, 1, err));
  BERTH__TRY(berth__onnx_emit(call, "reshape", out, 1, reshape, 2, out, 1, err));
  if (merged[axis].extent == x->dim[axis]) return BERTH_OK;
  const berth_attr cut[] = {berth_attr_ints("axes", &axis_at, 1), berth_attr_ints("starts", &start, 1),
                            berth_attr_ints("ends", &x->dim[axis], 1)};
  return berth__onnx_emit(call, "narrow", out, 1, cut, 3, out, 1, err);
}

/* A scale or a zero point of operand 0, in a shape that broadcasts to it. */
static berth_status fitted(berth__onnx_call *call, berth_value value, berth_value *out, berth_error *err) {
  const berth__shape x = *berth__onnx_shape(call, call->in[0]);
  const int64_t block = berth__onnx_int(call, "block_size", 0);
  int64_t axis = berth__onnx_int(call, "axis", 1);
  if (block <= 0) return onnx_quant_along_axis(call, value, axis, x.rank, out, err);
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank)
    return berth__fail(err, BERTH_MALFORMED, "axis %lld is out of range for an operand of rank %u", (long long)axis,
                       x.rank);
  return onnx_quant_repeated(call, value, (uint32_t)axis, block, &x, out, err);
}

static berth_status quantized_type(berth__onnx_call *call, berth_type *out, berth_error *err) {
  const int64_t asked = berth__onnx_int(call, "output_dtype", 0);
  const berth_value zero_point = berth__onnx_in(call, 2);
  *out = zero_point != BERTH_VALUE_NONE ? berth__onnx_value_type(call, zero_point) : BERTH_U8;
  if (zero_point != BERTH_VALUE_NONE || asked == 0) return BERTH_OK;
  return berth__onnx_type((int32_t)asked, out, err);
}

static berth_status convert_linear(berth__onnx_call *call, berth_error *err) {
  berth_value in[3];
  berth_type to = BERTH_U8;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  const bool is_quantize = strcmp(call->handler->berth_op, "quantize") == 0;
  const size_t n_in = berth__onnx_in(call, 2) != BERTH_VALUE_NONE ? 3 : 2;
  if (is_quantize) BERTH__TRY(quantized_type(call, &to, err));
  const berth_attr attr = berth_attr_string("to", berth_type_name(to));
  in[0] = call->in[0];
  for (size_t k = 1; k < n_in; k++) BERTH__TRY(fitted(call, call->in[k], &in[k], err));
  return berth__onnx_emit(call, call->handler->berth_op, in, n_in, &attr, is_quantize ? 1 : 0, call->out, 1, err);
}

/* x / scale + zero point as an integer of the zero point's type. */
static berth_status quantized(berth__onnx_call *call, berth_value x, berth_value scale, berth_value zero_point,
                              berth_value *out, berth_error *err) {
  const berth_value in[3] = {x, scale, zero_point};
  const berth_attr attr = berth_attr_string("to", berth_type_name(berth__onnx_value_type(call, zero_point)));
  return berth__onnx_emit(call, "quantize", in, 3, &attr, 1, out, 1, err);
}

/* The smallest (largest) element or 0, since the range must contain 0. */
static berth_status bound(berth__onnx_call *call, const char *reduce, const char *pick, berth_value zero,
                          berth_value *out, berth_error *err) {
  const berth_attr attr = berth_attr_int("keepdims", 0);
  BERTH__TRY(berth__onnx_emit(call, reduce, call->in, 1, &attr, 1, out, 1, err));
  return berth__onnx_binary(call, pick, *out, zero, out, err);
}

static berth_status convert_dynamic_quantize(berth__onnx_call *call, berth_error *err) {
  berth_value zero, one, steps, low, high, range, is_flat, spread[3], zero_byte, down;
  BERTH__TRY(berth__onnx_want_in(call, 1, err));
  if (call->n_out != 3) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 3", call->n_out);
  const berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_scalar(call, type, 0, &zero, err));
  BERTH__TRY(berth__onnx_scalar(call, type, 1, &one, err));
  BERTH__TRY(berth__onnx_scalar(call, type, 255, &steps, err));
  BERTH__TRY(berth__onnx_scalar(call, BERTH_U8, 0, &zero_byte, err));
  BERTH__TRY(bound(call, "reduce_min", "min", zero, &low, err));
  BERTH__TRY(bound(call, "reduce_max", "max", zero, &high, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", high, low, &range, err));
  BERTH__TRY(berth__onnx_binary(call, "eq", range, zero, &is_flat, err));
  spread[0] = is_flat;
  spread[1] = one; /* nothing but zeros */
  BERTH__TRY(berth__onnx_binary(call, "div", range, steps, &spread[2], err));
  BERTH__TRY(berth__onnx_emit(call, "where", spread, 3, NULL, 0, &call->out[1], 1, err));
  BERTH__TRY(berth__onnx_unary(call, "neg", low, &down, err));
  BERTH__TRY(quantized(call, down, call->out[1], zero_byte, &call->out[2], err));
  return quantized(call, call->in[0], call->out[1], call->out[2], &call->out[0], err);
}

/* ---- Products of integers ---- */

static bool is_zero(const berth__onnx_call *call, berth_value value) {
  int64_t entries[64];
  uint32_t count;
  if (value == BERTH_VALUE_NONE) return true;
  if (!berth__onnx_constant_ints(call, value, entries, 64, &count)) return false;
  for (uint32_t k = 0; k < count; k++)
    if (entries[k] != 0) return false;
  return true;
}

/* x minus its zero point, in 32 bits. */
static berth_status centred(berth__onnx_call *call, berth_value x, berth_value zero_point, int64_t axis,
                            berth_value *out, berth_error *err) {
  berth_value wide_zero;
  BERTH__TRY(berth__onnx_cast(call, x, BERTH_I32, out, err));
  if (is_zero(call, zero_point)) return BERTH_OK;
  BERTH__TRY(berth__onnx_cast(call, zero_point, BERTH_I32, &wide_zero, err));
  BERTH__TRY(onnx_quant_along_axis(call, wide_zero, axis, berth__onnx_shape(call, x)->rank, &wide_zero, err));
  return berth__onnx_binary(call, "sub", *out, wide_zero, out, err);
}

static berth_status integer_matmul(berth__onnx_call *call, berth_value a, berth_value a_zero, berth_value b,
                                   berth_value b_zero, berth_value *out, berth_error *err) {
  const int64_t rows = berth__onnx_shape(call, a)->rank > 1 ? -2 : -1;
  berth_value left, right;
  BERTH__TRY(centred(call, a, a_zero, rows, &left, err));
  BERTH__TRY(centred(call, b, b_zero, -1, &right, err));
  return berth__onnx_binary(call, "matmul", left, right, out, err);
}

static berth_status integer_conv(berth__onnx_call *call, berth_value x, berth_value x_zero, berth_value weight,
                                 berth_value weight_zero, berth_value bias, berth_value *out, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  berth_value in[3] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE, bias};
  BERTH__TRY(berth__onnx_put_window(call, &attrs, err));
  berth__onnx_put_int(call, &attrs, "group", "group");
  BERTH__TRY(centred(call, x, x_zero, 1, &in[0], err));
  BERTH__TRY(centred(call, weight, weight_zero, 0, &in[1], err));
  return berth__onnx_emit(call, "conv", in, bias != BERTH_VALUE_NONE ? 3 : 2, attrs.at, attrs.count, out, 1, err);
}

/* Sums of products with scale a * scale b, as integers with the result's scale. */
static berth_status requantized(berth__onnx_call *call, berth_value sums, const berth_value scale[3], int64_t a_axis,
                                int64_t b_axis, berth_value zero_point, berth_value *out, berth_error *err) {
  const uint32_t rank = berth__onnx_shape(call, sums)->rank;
  berth_value wide[3], factor, one, x;
  const int64_t axis[3] = {a_axis, b_axis, b_axis};
  for (int k = 0; k < 3; k++) {
    BERTH__TRY(berth__onnx_cast(call, scale[k], BERTH_F32, &wide[k], err));
    BERTH__TRY(onnx_quant_along_axis(call, wide[k], axis[k], rank, &wide[k], err));
  }
  BERTH__TRY(onnx_quant_along_axis(call, zero_point, b_axis, rank, &zero_point, err));
  BERTH__TRY(berth__onnx_scalar(call, BERTH_F32, 1, &one, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", wide[0], wide[1], &factor, err));
  BERTH__TRY(berth__onnx_binary(call, "div", factor, wide[2], &factor, err));
  BERTH__TRY(berth__onnx_cast(call, sums, BERTH_F32, &x, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", x, factor, &x, err));
  return quantized(call, x, one, zero_point, out, err);
}

static berth_status want_product(const berth__onnx_call *call, size_t n_in, uint32_t rank, berth_error *err) {
  BERTH__TRY(berth__onnx_want_in(call, n_in, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  if (berth__onnx_shape(call, call->in[0])->rank < rank)
    return berth__fail(err, BERTH_MALFORMED, "operand 0 has rank %u, expected at least %u",
                       berth__onnx_shape(call, call->in[0])->rank, rank);
  return BERTH_OK;
}

static berth_status convert_matmul_integer(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(want_product(call, 2, 1, err));
  return integer_matmul(call, call->in[0], berth__onnx_in(call, 2), call->in[1], berth__onnx_in(call, 3), &call->out[0],
                        err);
}

static berth_status convert_conv_integer(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(want_product(call, 2, 3, err));
  return integer_conv(call, call->in[0], berth__onnx_in(call, 2), call->in[1], berth__onnx_in(call, 3),
                      BERTH_VALUE_NONE, &call->out[0], err);
}

/* Operands of both: a, its scale and zero point, b, its scale and zero point, the result's scale and zero point. */
static berth_status convert_qlinear_matmul(berth__onnx_call *call, berth_error *err) {
  berth_value sums;
  BERTH__TRY(want_product(call, 8, 1, err));
  const berth_value scale[3] = {call->in[1], call->in[4], call->in[6]};
  BERTH__TRY(integer_matmul(call, call->in[0], call->in[2], call->in[3], call->in[5], &sums, err));
  return requantized(call, sums, scale, -2, -1, call->in[7], &call->out[0], err);
}

static berth_status convert_qlinear_conv(berth__onnx_call *call, berth_error *err) {
  berth_value sums;
  BERTH__TRY(want_product(call, 8, 3, err));
  const berth_value scale[3] = {call->in[1], call->in[4], call->in[6]};
  BERTH__TRY(
      integer_conv(call, call->in[0], call->in[2], call->in[3], call->in[5], berth__onnx_in(call, 8), &sums, err));
  return requantized(call, sums, scale, 1, 1, call->in[7], &call->out[0], err);
}

const berth__onnx_handler berth__onnx_quant[] = {
    {"QuantizeLinear", convert_linear, "quantize"},
    {"DequantizeLinear", convert_linear, "dequantize"},
    {"DynamicQuantizeLinear", convert_dynamic_quantize, NULL},
    {"MatMulInteger", convert_matmul_integer, NULL},
    {"ConvInteger", convert_conv_integer, NULL},
    {"QLinearMatMul", convert_qlinear_matmul, NULL},
    {"QLinearConv", convert_qlinear_conv, NULL},
    {NULL, NULL, NULL},
};
