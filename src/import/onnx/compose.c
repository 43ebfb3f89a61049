#include "import/onnx/compose.h"

#include <inttypes.h>

berth_status berth__onnx_begin(const berth__onnx_call *call, size_t n_in, berth_error *err) {
  if (call->n_out == 0) return berth__fail(err, BERTH_MALFORMED, "it has no output");
  return berth__onnx_want_in(call, n_in, err);
}

bool berth__onnx_is_asked(const berth__onnx_call *call, size_t k) {
  return k < call->n_out && call->node->outputs[k].size != 0;
}

void berth__onnx_set(berth__onnx_call *call, size_t k, berth_value value) {
  if (k < call->n_out) call->out[k] = value;
}

berth_status berth__onnx_axis(const berth__onnx_call *call, int64_t axis, uint32_t rank, uint32_t *out,
                              berth_error *err) {
  (void)call;
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return berth__fail(err, BERTH_MALFORMED, "axis %" PRId64 " is out of range: the operand has rank %" PRIu32, axis,
                       rank);
  *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
  return BERTH_OK;
}

berth_status berth__onnx_named_type(const berth__onnx_call *call, const char *attr, berth_type otherwise,
                                    berth_type *out, berth_error *err) {
  const berth__onnx_attr *given = berth__onnx_find(call, attr);
  *out = otherwise;
  if (given == NULL) return BERTH_OK;
  if (given->s.size != 0)
    return berth__onnx_unsupported(call, err, "types written as text, before opset 6, are not supported");
  if (given->i < 0 || given->i > INT32_MAX)
    return berth__fail(err, BERTH_MALFORMED, "there is no element type %" PRId64, given->i);
  return berth__onnx_type((int32_t)given->i, out, err);
}

berth_status berth__onnx_with(berth__onnx_call *call, const char *op, berth_value a, double scalar, berth_value *out,
                              berth_error *err) {
  berth_value b;
  BERTH__TRY(berth__onnx_scalar(call, berth__onnx_value_type(call, a), scalar, &b, err));
  return berth__onnx_binary(call, op, a, b, out, err);
}

berth_status berth__onnx_reduce_over(berth__onnx_call *call, const char *op, berth_value x, const int64_t *axes,
                                     uint32_t n, bool keepdims, berth_value *out, berth_error *err) {
  berth_attr attrs[] = {berth_attr_ints("axes", axes, n), berth_attr_int("keepdims", keepdims)};
  return berth__onnx_emit(call, op, &x, 1, attrs, 2, out, 1, err);
}

berth_status berth__onnx_listed(berth__onnx_call *call, const char *op, berth_value x, const char *attr,
                                const int64_t *list, uint32_t n, berth_value *out, berth_error *err) {
  berth_attr given = berth_attr_ints(attr, list, n);
  return berth__onnx_emit(call, op, &x, 1, &given, 1, out, 1, err);
}

berth_status berth__onnx_along(berth__onnx_call *call, const char *op, berth_value x, const char *attr, int64_t value,
                               berth_value *out, berth_error *err) {
  berth_attr given = berth_attr_int(attr, value);
  return berth__onnx_emit(call, op, &x, 1, &given, 1, out, 1, err);
}

berth_status berth__onnx_reshape_like(berth__onnx_call *call, berth_value x, berth_value like, berth_value *out,
                                      berth_error *err) {
  const berth__shape *shape = berth__onnx_shape(call, like);
  bool is_known = true;
  for (uint32_t i = 0; i < shape->rank; i++) is_known = is_known && shape->dim[i] != BERTH__DIM_UNKNOWN;
  if (is_known) {
    berth_shape target = berth__shape_export(call->graph, shape);
    berth_attr attrs[] = {berth_attr_dims("shape", target.dim, target.rank), berth_attr_int("allowzero", 1)};
    return berth__onnx_emit(call, "reshape", &x, 1, attrs, 2, out, 1, err);
  }
  berth_value in[2] = {x, BERTH_VALUE_NONE};
  berth_attr allow_zero = berth_attr_int("allowzero", 1);
  BERTH__TRY(berth__onnx_unary(call, "shape", like, &in[1], err));
  return berth__onnx_emit(call, "reshape", in, 2, &allow_zero, 1, out, 1, err);
}

berth_status berth__onnx_replace(berth__onnx_call *call, berth_value condition, double scalar, berth_value x,
                                 berth_value *out, berth_error *err) {
  berth_value in[3] = {condition, BERTH_VALUE_NONE, x};
  BERTH__TRY(berth__onnx_scalar(call, berth__onnx_value_type(call, x), scalar, &in[1], err));
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, out, 1, err);
}

berth_type berth__onnx_wide(berth_type type) { return type == BERTH_F16 || type == BERTH_BF16 ? BERTH_F32 : type; }
