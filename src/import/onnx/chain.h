/* Several ops in a row with one check of the status at the end: after a failure every step does nothing and returns
 * BERTH_VALUE_NONE. For decompositions that read like formulas. */
#ifndef BERTH_IMPORT_ONNX_CHAIN_H
#define BERTH_IMPORT_ONNX_CHAIN_H

#include "import/onnx/convert.h"

typedef struct berth__onnx_chain {
  berth__onnx_call *call;
  berth_error *err;
  berth_status status;
} berth__onnx_chain;

berth_value berth__chain_emit(berth__onnx_chain *c, const char *op, const berth_value *in, size_t n_in,
                              const berth_attr *attrs, size_t n_attrs);
berth_value berth__chain_unary(berth__onnx_chain *c, const char *op, berth_value a);
berth_value berth__chain_binary(berth__onnx_chain *c, const char *op, berth_value a, berth_value b);
berth_value berth__chain_where(berth__onnx_chain *c, berth_value condition, berth_value a, berth_value b);
berth_value berth__chain_scalar(berth__onnx_chain *c, berth_type type, double value);
berth_value berth__chain_with(berth__onnx_chain *c, const char *op, berth_value a, double scalar); /* op(a, scalar) */
berth_value berth__chain_cast(berth__onnx_chain *c, berth_value a, berth_type to);
/* With one attribute: a list of integers, or one integer. */
berth_value berth__chain_listed(berth__onnx_chain *c, const char *op, berth_value a, const char *attr,
                                const int64_t *list, uint32_t n);
berth_value berth__chain_along(berth__onnx_chain *c, const char *op, berth_value a, const char *attr, int64_t value);
/* x[..., first:last, ...] along one axis. */
berth_value berth__chain_slice(berth__onnx_chain *c, berth_value x, int64_t axis, int64_t first, int64_t last);
/* The elements 0, 1, ... below a limit, which is a value of one element: i64. */
berth_value berth__chain_count(berth__onnx_chain *c, berth_value limit);
/* The extent of an axis of x as an i64 of shape [1]. */
berth_value berth__chain_extent(berth__onnx_chain *c, berth_value x, int64_t axis);
/* reshape with constants: 0 copies the extent, -1 is the remaining extent. */
berth_value berth__chain_reshape(berth__onnx_chain *c, berth_value x, const int64_t *shape, uint32_t rank);

#endif
