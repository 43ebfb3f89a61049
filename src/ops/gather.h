/* Picking slices by index: shared by gather and embedding; and reading an index, for all ops that do. */
#ifndef BERTH_OPS_GATHER_H
#define BERTH_OPS_GATHER_H

#include "ops/op.h"

/* i32 or i64. */
berth_status berth__want_index_type(const berth__infer *infer, uint32_t operand, berth_error *err);
/* The index at `position` of a tensor of indices, counted from the end if it is negative. Fails if it is out of range:
 * the only error of a call that depends on its data. */
berth_status berth__read_index(const berth_tensor *indices, int64_t position, int64_t extent, uint32_t axis,
                               int64_t *out, berth_error *err);

berth_status berth__gather_infer(berth__infer *infer, int64_t axis, berth_error *err);
int64_t berth__gather_items(const berth_op_call *call, int64_t axis);
berth_status berth__gather_kernel(const berth_op_call *call, int64_t axis, berth_error *err);

#endif
