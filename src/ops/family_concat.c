/* concat: joins operands along an axis. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/copy.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__CONCAT_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT}};

static berth_status concat_add_operand(berth__infer *infer, uint32_t operand, uint32_t axis, berth_error *err) {
  const berth__shape *in = &infer->in_shape[operand];
  berth__shape *out = &infer->out_shape[0];
  BERTH__TRY(berth__want_same_type(infer, 0, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, out->rank, out->rank, err));
  for (uint32_t k = 0; k < out->rank; k++) {
    char what[64];
    if (k == axis) continue;
    (void)snprintf(what, sizeof what, "axis %" PRIu32 " of operands 0 and %" PRIu32, k, operand);
    BERTH__TRY(berth__same_dim(out->dim[k], in->dim[k], what, &out->dim[k], err));
  }
  return berth__dim_add(out->dim[axis], in->dim[axis], &out->dim[axis], err);
}

static berth_status concat_infer(berth__infer *infer, berth_error *err) {
  uint32_t axis;
  BERTH__TRY(berth__want_rank(infer, 0, 1, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__CONCAT_AXIS].i, infer->in_shape[0].rank, &axis, err));
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = infer->in_shape[0];
  for (uint32_t operand = 1; operand < infer->n_in; operand++)
    BERTH__TRY(concat_add_operand(infer, operand, axis, err));
  return BERTH_OK;
}

/* Items are elements: those of the first operand, then those of the second, ... A part that the planner placed inside
 * the result is not copied. */
static berth_status concat_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *out = &call->out[0];
  const int64_t given = call->attrs[BERTH__CONCAT_AXIS].i;
  const uint32_t axis = (uint32_t)(given < 0 ? given + out->rank : given);
  const size_t size = berth_type_size(out->type);
  int64_t first = 0, start = 0; /* of the operand: its first item, and its start on the axis */
  for (uint32_t k = 0; k < call->n_in && first < call->end; k++) {
    const berth_tensor *in = &call->in[k];
    const int64_t count = berth__count(in);
    berth__copy c = {.rank = in->rank, .from = in->data, .element = size};
    c.to = (char *)out->data + start * out->stride[axis] * (int64_t)size;
    memcpy(c.dim, in->dim, sizeof c.dim);
    memcpy(c.from_stride, in->stride, sizeof c.from_stride);
    memcpy(c.to_stride, out->stride, sizeof c.to_stride);
    if (c.to != c.from)
      berth__copy_range(&c, call->begin > first ? call->begin - first : 0,
                        call->end - first < count ? call->end - first : count);
    first += count;
    start += in->dim[axis];
  }
  return BERTH_OK;
}

const berth__family berth__family_concat = {
    .attrs = attrs,
    .n_attrs = 1,
    .required = 1u,
    .infer = concat_infer,
    .items = berth__copy_items,
    .kernel = concat_kernel,
};
