/* diagonal: replaces two axes of the same extent by one, the last, along which both indices are equal. */
#include "ops/copy.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__DIAGONAL_FIRST] = {.name = "axis1", .kind = BERTH_ATTR_INT, .i = -2},
                                   [BERTH__DIAGONAL_SECOND] = {.name = "axis2", .kind = BERTH_ATTR_INT, .i = -1}};

static uint32_t diagonal_axis_at(const berth_attr *attr, uint32_t rank) {
  return (uint32_t)(attr->i < 0 ? attr->i + (int64_t)rank : attr->i);
}

static berth_status diagonal_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  berth__shape *out = &infer->out_shape[0];
  uint32_t first, second;
  int64_t extent;
  BERTH__TRY(berth__want_rank(infer, 0, 2, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__DIAGONAL_FIRST].i, in->rank, &first, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__DIAGONAL_SECOND].i, in->rank, &second, err));
  if (first == second) return berth__fail(err, BERTH_INVALID, "a diagonal needs two axes, but both are axis %u", first);
  BERTH__TRY(berth__same_dim(in->dim[first], in->dim[second], "extents of the two axes", &extent, err));
  *out = (berth__shape){0};
  for (uint32_t axis = 0; axis < in->rank; axis++)
    if (axis != first && axis != second) out->dim[out->rank++] = in->dim[axis];
  out->dim[out->rank++] = extent;
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

static bool diagonal_view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                          uint32_t out, int64_t *offset, int64_t *stride) {
  uint32_t first = diagonal_axis_at(&attr[BERTH__DIAGONAL_FIRST], in->rank),
           second = diagonal_axis_at(&attr[BERTH__DIAGONAL_SECOND], in->rank), n = 0;
  (void)shape;
  (void)type;
  (void)out;
  *offset = 0;
  for (uint32_t axis = 0; axis < in->rank; axis++)
    if (axis != first && axis != second) stride[n++] = in->stride[axis];
  stride[n] = in->stride[first] + in->stride[second];
  return true;
}

static berth_status diagonal_kernel(const berth_op_call *call, berth_error *err) {
  int64_t stride[BERTH_MAX_RANK], offset;
  (void)err;
  diagonal_view(&call->in[0], call->attrs, NULL, call->in[0].type, 0, &offset, stride);
  berth__copy_view(call, stride, offset);
  return BERTH_OK;
}

const berth__family berth__family_diagonal = {.attrs = attrs,
                                              .n_attrs = 2,
                                              .infer = diagonal_infer,
                                              .items = berth__copy_items,
                                              .kernel = diagonal_kernel,
                                              .view = diagonal_view};
