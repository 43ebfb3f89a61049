/* tile: repeats a tensor along its axes. */
#include <inttypes.h>

#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__TILE_REPEATS] = {.name = "repeats", .kind = BERTH_ATTR_INTS}};

static berth_status tile_infer(berth__infer *infer, berth_error *err) {
  berth__shape *out = &infer->out_shape[0];
  berth__list repeats;
  BERTH__TRY(berth__infer_most_list(infer, 0, 1, &repeats, err));
  *out = infer->in_shape[0];
  infer->out_type[0] = infer->in_type[0];
  if (repeats.count != out->rank)
    return berth__fail(err, BERTH_INVALID, "`repeats` has %" PRIu32 " entries for an operand of rank %" PRIu32,
                       repeats.count, out->rank);
  for (uint32_t axis = 0; axis < out->rank; axis++) {
    if (!repeats.known) {
      out->dim[axis] = BERTH__DIM_UNKNOWN;
      continue;
    }
    if (repeats.at[axis] < 0)
      return berth__fail(err, BERTH_INVALID, "axis %" PRIu32 " is to be repeated %" PRId64 " times", axis,
                         repeats.at[axis]);
    BERTH__TRY(berth__dim_mul(out->dim[axis], repeats.at[axis], &out->dim[axis], err));
  }
  return BERTH_OK;
}

/* Items are lines along the last axis; none if that is empty. */
static int64_t tile_items(const berth_op_call *call) {
  int64_t lines = berth__count(&call->out[0]) != 0;
  for (uint32_t axis = 0; axis + 1 < call->out[0].rank; axis++) lines *= call->out[0].dim[axis];
  return lines;
}

static berth_status tile_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  const size_t size = berth_type_size(in->type);
  const uint32_t rank = out->rank;
  const int64_t line = rank > 0 ? in->dim[rank - 1] : 1, n = rank > 0 ? out->dim[rank - 1] : 1;
  for (int64_t item = call->begin; item < call->end && line > 0; item++) {
    int64_t from = 0, rest = item;
    for (uint32_t axis = rank > 0 ? rank - 1 : 0; axis-- > 0; rest /= out->dim[axis])
      from += rest % out->dim[axis] % in->dim[axis] * in->stride[axis];
    char *to = berth__element(out->data, item * n, size);
    memcpy(to, berth__element(in->data, from, size), (size_t)line * size);
    for (int64_t done = line, more; done < n; done += more) { /* copies the finished part to the end, doubling it */
      more = done < n - done ? done : n - done;
      memcpy(to + (size_t)done * size, to, (size_t)more * size);
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_tile = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = tile_infer,
    .items = tile_items,
    .kernel = tile_kernel,
    .valued = 1u << 1,
    .attr_of = {[1] = 1},
};
