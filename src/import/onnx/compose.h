/* Building blocks for the decompositions of reductions, norms, losses and products. */
#ifndef BERTH_IMPORT_ONNX_COMPOSE_H
#define BERTH_IMPORT_ONNX_COMPOSE_H

#include "import/onnx/convert.h"

/* Checks that there are at least so many operands, and an output. */
berth_status berth__onnx_begin(const berth__onnx_call *call, size_t n_in, berth_error *err);
/* Whether the file names output k; otherwise it need not be made. */
bool berth__onnx_is_asked(const berth__onnx_call *call, size_t k);
/* Sets output k, if the node has that many. */
void berth__onnx_set(berth__onnx_call *call, size_t k, berth_value value);

/* -rank <= axis < rank, made non-negative; anything else is an error of the file. */
berth_status berth__onnx_axis(const berth__onnx_call *call, int64_t axis, uint32_t rank, uint32_t *out,
                              berth_error *err);
/* The type that an attribute such as `dtype` names; `otherwise` if it is not given. */
berth_status berth__onnx_named_type(const berth__onnx_call *call, const char *attr, berth_type otherwise,
                                    berth_type *out, berth_error *err);
/* op(a, scalar) in a's type. */
berth_status berth__onnx_with(berth__onnx_call *call, const char *op, berth_value a, double scalar, berth_value *out,
                              berth_error *err);
/* A reduction over fixed axes; no axes: all of them. */
berth_status berth__onnx_reduce_over(berth__onnx_call *call, const char *op, berth_value x, const int64_t *axes,
                                     uint32_t n, bool keepdims, berth_value *out, berth_error *err);
/* One operand and one list of integers as an attribute: squeeze, unsqueeze, transpose. */
berth_status berth__onnx_listed(berth__onnx_call *call, const char *op, berth_value x, const char *attr,
                                const int64_t *list, uint32_t n, berth_value *out, berth_error *err);
/* One operand and one integer as an attribute: softmax, flatten. */
berth_status berth__onnx_along(berth__onnx_call *call, const char *op, berth_value x, const char *attr, int64_t value,
                               berth_value *out, berth_error *err);
/* The elements of x in the shape of `like`, even if that is not known yet. */
berth_status berth__onnx_reshape_like(berth__onnx_call *call, berth_value x, berth_value like, berth_value *out,
                                      berth_error *err);
/* where(condition, scalar, x) */
berth_status berth__onnx_replace(berth__onnx_call *call, berth_value condition, double scalar, berth_value x,
                                 berth_value *out, berth_error *err);

/* f32 for the half types, the type itself for the others. */
berth_type berth__onnx_wide(berth_type type);

#endif
