/* flatten: reshapes to a matrix, with the axes before `axis` as rows and the others as columns. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__FLATTEN_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = 1}};

static berth_status flatten_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  const int64_t rank = in->rank, axis = infer->attrs[BERTH__FLATTEN_AXIS].i;
  if (axis < -rank || axis > rank) /* one more than for other ops: all axes may be rows */
    return berth__fail(err, BERTH_INVALID, "axis %" PRId64 " is out of range, expected %" PRId64 " to %" PRId64, axis,
                       -rank, rank);
  const int64_t first = axis < 0 ? axis + rank : axis;
  int64_t part[2] = {1, 1};
  for (uint32_t k = 0; k < in->rank; k++) {
    int64_t *product = &part[(int64_t)k < first ? 0 : 1];
    BERTH__TRY(berth__dim_mul(*product, in->dim[k], product, err));
  }
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {part[0], part[1]}};
  return BERTH_OK;
}

const berth__family berth__family_flatten = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = flatten_infer,
    .items = berth__copy_items,
    .kernel = berth__copy_kernel,
    .view = berth__view_reshaped,
};
