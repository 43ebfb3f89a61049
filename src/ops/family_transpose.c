/* transpose: axis k of the result is axis perm[k] of the operand; without `perm`, the axes are reversed. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__TRANSPOSE_PERM] = {.name = "perm", .kind = BERTH_ATTR_INTS}};

static uint32_t source_axis(const berth_attr *perm, uint32_t rank, uint32_t axis) {
  if (perm->count == 0) return rank - 1 - axis;
  const int64_t from = perm->ints[axis];
  return (uint32_t)(from < 0 ? from + rank : from);
}

static berth_status transpose_infer(berth__infer *infer, berth_error *err) {
  const berth_attr *perm = &infer->attrs[BERTH__TRANSPOSE_PERM];
  const berth__shape *in = &infer->in_shape[0];
  uint32_t axes;
  if (perm->count != 0 && perm->count != in->rank)
    return berth__fail(err, BERTH_INVALID, "`perm` has %" PRIu32 " axes but the operand has rank %" PRIu32, perm->count,
                       in->rank);
  BERTH__TRY(berth__want_axes(perm, in->rank, &axes, err));
  infer->out_shape[0].rank = in->rank;
  for (uint32_t axis = 0; axis < in->rank; axis++)
    infer->out_shape[0].dim[axis] = in->dim[source_axis(perm, in->rank, axis)];
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

static bool transpose_view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                           uint32_t out, int64_t *offset, int64_t *stride) {
  (void)shape;
  (void)type;
  (void)out;
  *offset = 0;
  for (uint32_t axis = 0; axis < in->rank; axis++)
    stride[axis] = in->stride[source_axis(&attr[BERTH__TRANSPOSE_PERM], in->rank, axis)];
  return true;
}

static berth_status transpose_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  int64_t stride[BERTH_MAX_RANK], offset;
  transpose_view(&call->in[0], call->attrs, NULL, call->in[0].type, 0, &offset, stride);
  berth__copy_view(call, stride, offset);
  return BERTH_OK;
}

const berth__family berth__family_transpose = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = transpose_infer,
    .items = berth__copy_items,
    .kernel = transpose_kernel,
    .view = transpose_view,
};
