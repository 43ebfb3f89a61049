#include "import/onnx/chain.h"

berth_value berth__chain_emit(berth__onnx_chain *c, const char *op, const berth_value *in, size_t n_in,
                              const berth_attr *attrs, size_t n_attrs) {
  berth_value out = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__onnx_emit(c->call, op, in, n_in, attrs, n_attrs, &out, 1, c->err);
  return c->status == BERTH_OK ? out : BERTH_VALUE_NONE;
}

berth_value berth__chain_unary(berth__onnx_chain *c, const char *op, berth_value a) {
  return berth__chain_emit(c, op, &a, 1, NULL, 0);
}

berth_value berth__chain_binary(berth__onnx_chain *c, const char *op, berth_value a, berth_value b) {
  return berth__chain_emit(c, op, (berth_value[]){a, b}, 2, NULL, 0);
}

berth_value berth__chain_where(berth__onnx_chain *c, berth_value condition, berth_value a, berth_value b) {
  return berth__chain_emit(c, "where", (berth_value[]){condition, a, b}, 3, NULL, 0);
}

berth_value berth__chain_scalar(berth__onnx_chain *c, berth_type type, double value) {
  berth_value out = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__onnx_scalar(c->call, type, value, &out, c->err);
  return out;
}

berth_value berth__chain_with(berth__onnx_chain *c, const char *op, berth_value a, double scalar) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  return berth__chain_binary(c, op, a, berth__chain_scalar(c, berth__onnx_value_type(c->call, a), scalar));
}

berth_value berth__chain_cast(berth__onnx_chain *c, berth_value a, berth_type to) {
  berth_value out = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__onnx_cast(c->call, a, to, &out, c->err);
  return out;
}

berth_value berth__chain_listed(berth__onnx_chain *c, const char *op, berth_value a, const char *attr,
                                const int64_t *list, uint32_t n) {
  berth_attr given = berth_attr_ints(attr, list, n);
  return berth__chain_emit(c, op, &a, 1, &given, 1);
}

berth_value berth__chain_along(berth__onnx_chain *c, const char *op, berth_value a, const char *attr, int64_t value) {
  berth_attr given = berth_attr_int(attr, value);
  return berth__chain_emit(c, op, &a, 1, &given, 1);
}

berth_value berth__chain_slice(berth__onnx_chain *c, berth_value x, int64_t axis, int64_t first, int64_t last) {
  berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &first, 1),
                        berth_attr_ints("ends", &last, 1)};
  return berth__chain_emit(c, "narrow", &x, 1, attrs, 3);
}

berth_value berth__chain_count(berth__onnx_chain *c, berth_value limit) {
  berth_value in[] = {berth__chain_scalar(c, BERTH_I64, 0), berth__chain_cast(c, limit, BERTH_I64),
                      berth__chain_scalar(c, BERTH_I64, 1)};
  return berth__chain_emit(c, "range", in, 3, NULL, 0);
}

berth_value berth__chain_extent(berth__onnx_chain *c, berth_value x, int64_t axis) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  if (axis < 0) axis += berth__onnx_shape(c->call, x)->rank;
  berth_attr attrs[] = {berth_attr_int("start", axis), berth_attr_int("end", axis + 1)};
  return berth__chain_emit(c, "shape", &x, 1, attrs, 2);
}

berth_value berth__chain_reshape(berth__onnx_chain *c, berth_value x, const int64_t *shape, uint32_t rank) {
  berth_dim dims[BERTH_MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank && i < BERTH_MAX_RANK; i++) dims[i].extent = shape[i];
  berth_attr attr = berth_attr_dims("shape", dims, rank);
  return berth__chain_emit(c, "reshape", &x, 1, &attr, 1);
}
