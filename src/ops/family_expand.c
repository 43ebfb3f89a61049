/* expand: repeats axes of extent 1 (and missing leading axes) up to a shape, like numpy broadcasting. Axes with extent
 * 1 in the target keep the operand's extent. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__EXPAND_SHAPE] = {.name = "shape", .kind = BERTH_ATTR_DIMS}};

static berth_status expand_infer(berth__infer *infer, berth_error *err) {
  berth_dim target[BERTH_MAX_RANK];
  berth__list list;
  BERTH__TRY(berth__infer_dims(infer, 0, 1, target, &list, err));
  berth__shape shape = {.rank = list.count};
  for (uint32_t axis = 0; axis < list.count; axis++) {
    const berth_dim *dim = &target[axis];
    if (!list.known) {
      shape.dim[axis] = BERTH__DIM_UNKNOWN;
      continue;
    }
    if (!dim->name && dim->extent < 0)
      return berth__fail(err, BERTH_INVALID,
                         "dimension %" PRIu32 " of the target shape is %" PRId64 ", and extents are 0 or more", axis,
                         dim->extent);
    shape.dim[axis] = dim->name ? infer->resolve(infer, dim) : dim->extent;
  }
  infer->out_type[0] = infer->in_type[0];
  return berth__broadcast(&infer->in_shape[0], &shape, &infer->out_shape[0], err);
}

static bool expand_view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                        uint32_t out, int64_t *offset, int64_t *stride) {
  (void)attr;
  (void)type;
  (void)out;
  *offset = 0;
  berth__broadcast_strides(in, shape->rank, shape->dim, stride);
  return true;
}

static berth_status expand_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  int64_t stride[BERTH_MAX_RANK];
  berth__broadcast_strides(&call->in[0], call->out[0].rank, call->out[0].dim, stride);
  berth__copy_view(call, stride, 0);
  return BERTH_OK;
}

const berth__family berth__family_expand = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = expand_infer,
    .items = berth__copy_items,
    .kernel = expand_kernel,
    .view = expand_view,
    .valued = 1u << 1,
    .attr_of = {[1] = 1},
};
