/* scatter: puts updates into a copy of the operand, element by element, at indices along an axis (ONNX's
 * ScatterElements). If an index occurs twice on a line, the updates are applied in order. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/gather.h"
#include "ops/line.h"
#include "ops/registry.h"
#include "ops/scatter.h"

static const berth_attr attrs[] = {
    [BERTH__SCATTER_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT},
    [BERTH__SCATTER_REDUCTION] = {.name = "reduction", .kind = BERTH_ATTR_STRING, .s = "none"},
};

static berth_status scatter_check_extents(const berth__infer *infer, uint32_t axis, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__SCATTER_X], *indices = &infer->in_shape[BERTH__SCATTER_INDICES],
                     *updates = &infer->in_shape[BERTH__SCATTER_UPDATES];
  for (uint32_t k = 0; k < x->rank; k++) {
    int64_t extent;
    BERTH__TRY(berth__same_dim(indices->dim[k], updates->dim[k], "indices and updates", &extent, err));
    if (k != axis && berth__dim_is_fixed(extent) && berth__dim_is_fixed(x->dim[k]) && extent > x->dim[k])
      return berth__fail(err, BERTH_INVALID,
                         "the indices have %" PRId64 " elements on axis %" PRIu32 ", more than the operand's %" PRId64,
                         extent, k, x->dim[k]);
  }
  return BERTH_OK;
}

static berth_status scatter_infer(berth__infer *infer, berth_error *err) {
  const uint32_t rank = infer->in_shape[BERTH__SCATTER_X].rank;
  uint32_t axis;
  BERTH__TRY(berth__want_updates(infer, infer->attrs[BERTH__SCATTER_REDUCTION].s, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__SCATTER_AXIS].i, rank, &axis, err));
  BERTH__TRY(berth__want_rank(infer, 1, rank, rank, err));
  BERTH__TRY(berth__want_rank(infer, 2, rank, rank, err));
  BERTH__TRY(scatter_check_extents(infer, axis, err));
  infer->out_type[0] = infer->in_type[BERTH__SCATTER_X];
  infer->out_shape[0] = infer->in_shape[BERTH__SCATTER_X];
  return BERTH_OK;
}

static uint32_t scatter_axis_of(const berth_op_call *call) {
  const int64_t axis = call->attrs[BERTH__SCATTER_AXIS].i;
  return (uint32_t)(axis < 0 ? axis + call->out[0].rank : axis);
}

/* Items are lines along the axis, so all updates of an element belong to one item. */
static int64_t scatter_items(const berth_op_call *call) {
  int64_t lines = 1;
  for (uint32_t k = 0; k < call->out[0].rank; k++)
    if (k != scatter_axis_of(call)) lines *= call->out[0].dim[k];
  return lines;
}

/* The first element of a line in the operand and in the indices; false if the line has no indices. */
static bool find_line(const berth_op_call *call, uint32_t axis, int64_t item, int64_t *to, int64_t *from) {
  const berth_tensor *out = &call->out[0], *indices = &call->in[BERTH__SCATTER_INDICES];
  bool has_indices = true;
  *to = *from = 0;
  for (uint32_t k = out->rank; k-- > 0;) {
    if (k == axis) continue;
    const int64_t at = item % out->dim[k];
    item /= out->dim[k];
    *to += at * out->stride[k];
    *from += at * indices->stride[k];
    has_indices = has_indices && at < indices->dim[k];
  }
  return has_indices;
}

static berth_status scatter_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X], *indices = &call->in[BERTH__SCATTER_INDICES],
                     *out = &call->out[0];
  const uint32_t axis = scatter_axis_of(call);
  const berth__reduction r = berth__reduction_of(call->attrs[BERTH__SCATTER_REDUCTION].s);
  const size_t size = berth_type_size(x->type);
  const int64_t extent = x->dim[axis], step = out->stride[axis];
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t to, from;
    const bool has_indices = find_line(call, axis, item, &to, &from);
    if (x->data != out->data)
      berth__copy_line(berth__element(out->data, to, size), step, berth__element(x->data, to, size), step, extent,
                       size);
    for (int64_t k = 0; has_indices && k < indices->dim[axis]; k++) {
      const int64_t position = from + k * indices->stride[axis];
      int64_t index = 0;
      BERTH__TRY(berth__read_index(indices, position, extent, axis, &index, err));
      berth__put_update(r, out, to + index * step, &call->in[BERTH__SCATTER_UPDATES], position);
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_scatter = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = scatter_infer,
    .items = scatter_items,
    .kernel = scatter_kernel,
};
