/* unsqueeze: inserts axes of extent 1; `axes` are their positions in the result. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__UNSQUEEZE_AXES] = {.name = "axes", .kind = BERTH_ATTR_INTS}};

static berth_status unsqueeze_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  berth__list list;
  BERTH__TRY(berth__infer_list(infer, 0, 1, &list, err));
  const uint32_t added = list.count;
  if (added > BERTH_MAX_RANK - in->rank)
    return berth__fail(err, BERTH_INVALID, "%" PRIu32 " axes added to rank %" PRIu32 " make more than %d", added,
                       in->rank, BERTH_MAX_RANK);
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){.rank = in->rank + added};
  uint32_t axes, next = 0;
  BERTH__TRY(berth__list_axes(&list, out->rank, &axes, err));
  infer->out_type[0] = infer->in_type[0];
  for (uint32_t axis = 0; axis < out->rank; axis++) {
    if (!list.known)
      out->dim[axis] = BERTH__DIM_UNKNOWN;
    else
      out->dim[axis] = axes >> axis & 1u ? 1 : in->dim[next++];
  }
  return BERTH_OK;
}

const berth__family berth__family_unsqueeze = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = unsqueeze_infer,
    .items = berth__copy_items,
    .kernel = berth__copy_kernel,
    .view = berth__view_reshaped,
    .valued = 1u << 1,
    .attr_of = {[1] = 1},
};
