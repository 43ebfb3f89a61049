/* Products, convolutions and pooling. */
#include <math.h>

#include "import/onnx/attr_list.h"

/* Requires the first operand to have spatial axes. */
static berth_status want_image(const berth__onnx_call *call, size_t n_in, uint32_t *spatial, berth_error *err) {
  BERTH__TRY(berth__onnx_want_in(call, n_in, err));
  if (call->n_out == 0) return berth__fail(err, BERTH_MALFORMED, "it has no output");
  const uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  if (rank < 3) return berth__fail(err, BERTH_MALFORMED, "its first operand has rank %u, expected at least 3", rank);
  *spatial = rank - 2;
  return BERTH_OK;
}

/* ---- Products ---- */

static berth_status onnx_window_scaled(berth__onnx_call *call, berth_value x, double factor, berth_value *out,
                                       berth_error *err) {
  const berth_type type = berth__onnx_value_type(call, x);
  berth_value scalar;
  *out = x;
  if (factor == 1) return BERTH_OK;
  if (!berth__type_is_float(type) && !(factor == rint(factor) && fabs(factor) < 0x1p53))
    return berth__onnx_unsupported(call, err, "a factor of %g for elements of type %s is not supported", factor,
                                   berth_type_name(type));
  BERTH__TRY(berth__onnx_scalar(call, type, factor, &scalar, err));
  return berth__onnx_binary(call, "mul", x, scalar, out, err);
}

static berth_status transposed(berth__onnx_call *call, berth_value x, const char *flag, berth_value *out,
                               berth_error *err) {
  *out = x;
  if (berth__onnx_shape(call, x)->rank != 2) return berth__fail(err, BERTH_MALFORMED, "an operand is not a matrix");
  return berth__onnx_int(call, flag, 0) != 0 ? berth__onnx_unary(call, "transpose", x, out, err) : BERTH_OK;
}

static berth_status convert_gemm(berth__onnx_call *call, berth_error *err) {
  const double alpha = berth__onnx_float(call, "alpha", 1), beta = berth__onnx_float(call, "beta", 1);
  const berth_value bias = berth__onnx_in(call, 2);
  berth_value a, b, product, sum = BERTH_VALUE_NONE, addend = BERTH_VALUE_NONE;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  BERTH__TRY(transposed(call, call->in[0], "transA", &a, err));
  BERTH__TRY(transposed(call, call->in[1], "transB", &b, err));
  BERTH__TRY(berth__onnx_binary(call, "matmul", a, b, &product, err));
  BERTH__TRY(onnx_window_scaled(call, product, alpha, &sum, err));
  if (bias != BERTH_VALUE_NONE && beta != 0) {
    BERTH__TRY(onnx_window_scaled(call, bias, beta, &addend, err));
    BERTH__TRY(berth__onnx_binary(call, "add", sum, addend, &sum, err));
  }
  call->out[0] = sum;
  return BERTH_OK;
}

/* ---- Convolutions ---- */

static berth_status convert_conv(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  uint32_t spatial = 0;
  BERTH__TRY(want_image(call, 2, &spatial, err));
  BERTH__TRY(berth__onnx_put_window(call, &attrs, err));
  berth__onnx_put_int(call, &attrs, "group", "group");
  return berth__onnx_emit(call, "conv", call->in, call->n_in, attrs.at, attrs.count, call->out, 1, err);
}

static berth_status convert_conv_transpose(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  uint32_t spatial = 0, count;
  BERTH__TRY(want_image(call, 2, &spatial, err));
  const int64_t *shape = berth__onnx_ints(call, "output_shape", &count);
  BERTH__TRY(berth__onnx_put_window(call, &attrs, err));
  if (count != 0) {
    if (count < spatial) return berth__fail(err, BERTH_MALFORMED, "output_shape has %u entries", count);
    for (size_t i = 0; i < attrs.count; i++) /* pads are ignored if a shape is given */
      if (strcmp(attrs.at[i].name, "pads") == 0) attrs.at[i] = attrs.at[--attrs.count];
    berth__onnx_put(&attrs, berth_attr_ints("output_shape", shape + (count - spatial), spatial));
  }
  berth__onnx_put_ints(call, &attrs, "output_padding", "output_padding");
  berth__onnx_put_int(call, &attrs, "group", "group");
  return berth__onnx_emit(call, "conv_transpose", call->in, call->n_in, attrs.at, attrs.count, call->out, 1, err);
}

static berth_status convert_deform_conv(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  uint32_t spatial = 0;
  BERTH__TRY(want_image(call, 3, &spatial, err));
  if (spatial != 2)
    return berth__onnx_unsupported(call, err, "%u spatial axes are not supported; images have 2", spatial);
  BERTH__TRY(berth__onnx_put_window(call, &attrs, err));
  berth__onnx_put_int(call, &attrs, "group", "group");
  berth__onnx_put_int(call, &attrs, "offset_group", "offset_group");
  return berth__onnx_emit(call, "deform_conv", call->in, call->n_in, attrs.at, attrs.count, call->out, 1, err);
}

/* ---- Pooling ---- */

static berth_status convert_pool(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  uint32_t spatial = 0;
  BERTH__TRY(want_image(call, 1, &spatial, err));
  const bool wants_places = call->n_out > 1 && call->node->outputs[1].size != 0;
  berth__onnx_put_ints(call, &attrs, "kernel_shape", "kernel");
  BERTH__TRY(berth__onnx_put_window(call, &attrs, err));
  berth__onnx_put_int(call, &attrs, "ceil_mode", "ceil_mode");
  berth__onnx_put_int(call, &attrs, "count_include_pad", "count_include_pad");
  berth__onnx_put_int(call, &attrs, "storage_order", "storage_order");
  berth__onnx_put_int(call, &attrs, "p", "p");
  return berth__onnx_emit(call, call->handler->berth_op, call->in, 1, attrs.at, attrs.count, call->out,
                          wants_places ? 2 : 1, err);
}

static berth_status reduce_spatial(berth__onnx_call *call, const char *op, berth_value x, berth_value *out,
                                   berth_error *err) {
  int64_t axes[BERTH_MAX_RANK];
  const uint32_t spatial = berth__onnx_shape(call, x)->rank - 2;
  for (uint32_t k = 0; k < spatial; k++) axes[k] = 2 + (int64_t)k;
  const berth_attr attrs[] = {berth_attr_ints("axes", axes, spatial), berth_attr_int("keepdims", 1)};
  return berth__onnx_emit(call, op, &x, 1, attrs, 2, out, 1, err);
}

static berth_status convert_global_pool(berth__onnx_call *call, berth_error *err) {
  uint32_t spatial = 0;
  BERTH__TRY(want_image(call, 1, &spatial, err));
  return reduce_spatial(call, call->handler->berth_op, call->in[0], &call->out[0], err);
}

static berth_status raised(berth__onnx_call *call, berth_value x, double power, berth_value *out, berth_error *err) {
  berth_value exponent;
  BERTH__TRY(berth__onnx_scalar(call, berth__onnx_value_type(call, x), power, &exponent, err));
  return berth__onnx_binary(call, "pow", x, exponent, out, err);
}

static berth_status convert_global_lp_pool(berth__onnx_call *call, berth_error *err) {
  const double p = (double)berth__onnx_int(call, "p", 2);
  uint32_t spatial = 0;
  berth_value x;
  if (p < 1) return berth__fail(err, BERTH_MALFORMED, "p is %g", p);
  BERTH__TRY(want_image(call, 1, &spatial, err));
  BERTH__TRY(berth__onnx_unary(call, "abs", call->in[0], &x, err));
  BERTH__TRY(raised(call, x, p, &x, err));
  BERTH__TRY(reduce_spatial(call, "reduce_sum", x, &x, err));
  return raised(call, x, 1 / p, &call->out[0], err);
}

static berth_status convert_max_unpool(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  uint32_t spatial = 0;
  BERTH__TRY(want_image(call, 2, &spatial, err));
  berth__onnx_put_ints(call, &attrs, "kernel_shape", "kernel");
  berth__onnx_put_ints(call, &attrs, "strides", "strides");
  berth__onnx_put_ints(call, &attrs, "pads", "pads");
  return berth__onnx_emit(call, "max_unpool", call->in, call->n_in, attrs.at, attrs.count, call->out, 1, err);
}

const berth__onnx_handler berth__onnx_window[] = {
    {"MatMul", berth__onnx_same, "matmul"},
    {"Gemm", convert_gemm, NULL},
    {"Conv", convert_conv, NULL},
    {"ConvTranspose", convert_conv_transpose, NULL},
    {"DeformConv", convert_deform_conv, NULL},
    {"MaxPool", convert_pool, "max_pool"},
    {"AveragePool", convert_pool, "avg_pool"},
    {"LpPool", convert_pool, "lp_pool"},
    {"GlobalAveragePool", convert_global_pool, "reduce_mean"},
    {"GlobalMaxPool", convert_global_pool, "reduce_max"},
    {"GlobalLpPool", convert_global_lp_pool, NULL},
    {"MaxUnpool", convert_max_unpool, NULL},
    {NULL, NULL, NULL},
};
