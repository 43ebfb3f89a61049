/* gather: slices of an axis, picked by index. */
#include "ops/gather.h"

#include <inttypes.h>

#include "ops/line.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__GATHER_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT}};

berth_status berth__want_index_type(const berth__infer *infer, uint32_t operand, berth_error *err) {
  const berth_type type = infer->in_type[operand];
  if (type == BERTH_I32 || type == BERTH_I64) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has type %s, and indices have type i32 or i64", operand,
                     berth_type_name(type));
}

berth_status berth__read_index(const berth_tensor *indices, int64_t position, int64_t extent, uint32_t axis,
                               int64_t *out, berth_error *err) {
  const int64_t index = berth__load_i64(indices, position);
  if (index < -extent || index >= extent)
    return berth__fail(err, BERTH_INVALID,
                       "index %" PRId64 " at position %" PRId64 " is out of range for axis %" PRIu32
                       " of extent %" PRId64,
                       index, position, axis, extent);
  *out = index < 0 ? index + extent : index;
  return BERTH_OK;
}

berth_status berth__gather_infer(berth__infer *infer, int64_t axis, berth_error *err) {
  const berth__shape *data = &infer->in_shape[0], *indices = &infer->in_shape[1];
  uint32_t at;
  BERTH__TRY(berth__want_rank(infer, 0, 1, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_index_type(infer, 1, err));
  BERTH__TRY(berth__want_axis(axis, data->rank, &at, err));
  if (data->rank - 1 + indices->rank > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_INVALID,
                       "an operand of rank %" PRIu32 " and indices of rank %" PRIu32 " give a rank over %d", data->rank,
                       indices->rank, BERTH_MAX_RANK);
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){0};
  for (uint32_t k = 0; k < at; k++) out->dim[out->rank++] = data->dim[k];
  for (uint32_t k = 0; k < indices->rank; k++) out->dim[out->rank++] = indices->dim[k];
  for (uint32_t k = at + 1; k < data->rank; k++) out->dim[out->rank++] = data->dim[k];
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

static uint32_t gather_axis_of(const berth_op_call *call, int64_t axis) {
  return (uint32_t)(axis < 0 ? axis + call->in[0].rank : axis);
}

/* Items are picked slices: every index, for every position before the axis. */
int64_t berth__gather_items(const berth_op_call *call, int64_t axis) {
  int64_t outer = 1;
  for (uint32_t k = 0; k < gather_axis_of(call, axis); k++) outer *= call->in[0].dim[k];
  return outer * berth__count(&call->in[1]);
}

berth_status berth__gather_kernel(const berth_op_call *call, int64_t axis, berth_error *err) {
  const berth_tensor *data = &call->in[0], *indices = &call->in[1];
  const uint32_t at = gather_axis_of(call, axis);
  const size_t size = berth_type_size(data->type);
  const int64_t picks = berth__count(indices), extent = data->dim[at];
  int64_t slice = 1;
  for (uint32_t k = at + 1; k < data->rank; k++) slice *= data->dim[k];
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t index = 0;
    BERTH__TRY(berth__read_index(indices, item % picks, extent, at, &index, err));
    if (slice == 0) continue;
    memcpy(berth__element(call->out[0].data, item * slice, size),
           berth__element(data->data, (item / picks * extent + index) * slice, size), (size_t)slice * size);
  }
  return BERTH_OK;
}

static berth_status gather_infer(berth__infer *infer, berth_error *err) {
  return berth__gather_infer(infer, infer->attrs[BERTH__GATHER_AXIS].i, err);
}

static int64_t gather_items(const berth_op_call *call) {
  return berth__gather_items(call, call->attrs[BERTH__GATHER_AXIS].i);
}

static berth_status gather_kernel(const berth_op_call *call, berth_error *err) {
  return berth__gather_kernel(call, call->attrs[BERTH__GATHER_AXIS].i, err);
}

const berth__family berth__family_gather = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = gather_infer,
    .items = gather_items,
    .kernel = gather_kernel,
};
