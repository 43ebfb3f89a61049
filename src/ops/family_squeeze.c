/* squeeze: removes axes of extent 1; without `axes`, all of them. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__SQUEEZE_AXES] = {.name = "axes", .kind = BERTH_ATTR_INTS}};

static berth_status unit_axes(const berth__infer *infer, uint32_t *axes, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  *axes = 0;
  for (uint32_t axis = 0; axis < in->rank; axis++) {
    const int64_t dim = in->dim[axis];
    if (!berth__dim_is_fixed(dim)) { /* its binding must not change the rank */
      const char *name = berth__dim_is_named(dim) && infer->dim_name != NULL ? infer->dim_name(infer, dim) : "?";
      return berth__fail(err, BERTH_INVALID,
                         "squeeze without `axes` needs fixed dimensions, but dimension %" PRIu32
                         " ('%s') is bound after loading, and only then decides the rank: name the axes in the model, "
                         "or give that dimension an extent there, or when it is loaded",
                         axis, name);
    }
    if (dim == 1) *axes |= 1u << axis;
  }
  return BERTH_OK;
}

/* Only the number of removed axes is known yet. */
static berth_status some_axes(uint32_t rank, uint32_t count, berth__shape *out, berth_error *err) {
  if (count > rank)
    return berth__fail(err, BERTH_INVALID, "%" PRIu32 " axes cannot be taken from an operand of rank %" PRIu32, count,
                       rank);
  for (out->rank = 0; out->rank < rank - count; out->rank++) out->dim[out->rank] = BERTH__DIM_UNKNOWN;
  return BERTH_OK;
}

static berth_status squeeze_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  berth__list list;
  uint32_t axes;
  BERTH__TRY(berth__infer_list(infer, 0, 1, &list, err));
  BERTH__TRY(list.count != 0 ? berth__list_axes(&list, in->rank, &axes, err) : unit_axes(infer, &axes, err));
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){0};
  infer->out_type[0] = infer->in_type[0];
  if (!list.known && list.count != 0) return some_axes(in->rank, list.count, out, err);
  for (uint32_t axis = 0; axis < in->rank; axis++) {
    if (!(axes >> axis & 1u)) {
      out->dim[out->rank++] = in->dim[axis];
      continue;
    }
    if (berth__dim_is_fixed(in->dim[axis]) && in->dim[axis] != 1)
      return berth__fail(err, BERTH_INVALID,
                         "axis %" PRIu32 " has extent %" PRId64
                         ", and only axes of extent 1 can be"
                         " squeezed",
                         axis, in->dim[axis]);
  }
  return BERTH_OK;
}

const berth__family berth__family_squeeze = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = squeeze_infer,
    .items = berth__copy_items,
    .kernel = berth__copy_kernel,
    .view = berth__view_reshaped,
    .valued = 1u << 1,
    .attr_of = {[1] = 1},
};
