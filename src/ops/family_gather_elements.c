/* gather_elements: picks one element per index along an axis (ONNX's GatherElements). */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/gather.h"
#include "ops/line.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__GATHER_ELEMENTS_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT}};

static berth_status gather_elements_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *indices = &infer->in_shape[1];
  uint32_t axis;
  BERTH__TRY(berth__want_index_type(infer, 1, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__GATHER_ELEMENTS_AXIS].i, x->rank, &axis, err));
  BERTH__TRY(berth__want_rank(infer, 1, x->rank, x->rank, err));
  for (uint32_t k = 0; k < x->rank; k++) {
    const bool both = berth__dim_is_fixed(x->dim[k]) && berth__dim_is_fixed(indices->dim[k]);
    if (k != axis && both && indices->dim[k] > x->dim[k])
      return berth__fail(err, BERTH_INVALID,
                         "the indices have %" PRId64 " elements on axis %" PRIu32 ", more than the operand's %" PRId64,
                         indices->dim[k], k, x->dim[k]);
  }
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = *indices;
  return BERTH_OK;
}

static berth_status gather_elements_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0], *indices = &call->in[1], *out = &call->out[0];
  const int64_t given = call->attrs[BERTH__GATHER_ELEMENTS_AXIS].i;
  const uint32_t axis = (uint32_t)(given < 0 ? given + x->rank : given);
  const size_t size = berth_type_size(x->type);
  int64_t along[BERTH_MAX_RANK]; /* x's strides, except for the axis, which is indexed */
  const int64_t *strides[1] = {along};
  memcpy(along, x->stride, sizeof along);
  along[axis] = 0;
  berth__walk walk;
  berth__walk_start(&walk, out->rank, out->dim, 1, strides, call->begin);
  for (int64_t item = call->begin; item < call->end; item++, berth__walk_next(&walk)) {
    int64_t index = 0;
    BERTH__TRY(berth__read_index(indices, item, x->dim[axis], axis, &index, err));
    memcpy(berth__element(out->data, item, size),
           berth__element(x->data, walk.index[0] + index * x->stride[axis], size), size);
  }
  return BERTH_OK;
}

const berth__family berth__family_gather_elements = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = gather_elements_infer,
    .items = berth__copy_items,
    .kernel = gather_elements_kernel,
};
