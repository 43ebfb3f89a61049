/* Shared by optimiser steps: tensors of one type and shape, and scalars. */
#ifndef BERTH_OPS_OPTIMIZER_H
#define BERTH_OPS_OPTIMIZER_H

#include "ops/op.h"

/* f32 or f64. */
berth_status berth__optimizer_check_weight(const berth__infer *infer, berth_error *err);
/* An operand with the type and shape of the first. */
berth_status berth__optimizer_check_like(const berth__infer *infer, uint32_t operand, berth_error *err);
/* One element: of a float type, or an integer if requested. May be omitted. */
berth_status berth__optimizer_check_scalar(const berth__infer *infer, uint32_t operand, bool is_int, berth_error *err);

static inline bool berth__optimizer_has(const berth_op_call *call, uint32_t operand) {
  return operand < call->n_in && call->in[operand].type != BERTH_TYPE_NONE;
}
/* The result is an operand: copies it unless it is in place. */
void berth__optimizer_keep(const berth_op_call *call, uint32_t operand, uint32_t result);
/* The value of a scalar; `otherwise` if it is omitted. */
static inline double berth__optimizer_scalar(const berth_op_call *call, uint32_t operand, double otherwise) {
  return berth__optimizer_has(call, operand) ? berth__load_f64(&call->in[operand], 0) : otherwise;
}

#endif
