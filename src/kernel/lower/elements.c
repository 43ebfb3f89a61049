#include "kernel/lower/elements.h"

void berth__l_space_of(berth__l_space *space, uint32_t rank, const int64_t *dim) {
  space->rank = rank;
  space->n = 0;
  memcpy(space->dim, dim, rank * sizeof *dim);
}

uint32_t berth__l_space_add(berth__l_space *space, const int64_t *stride) {
  memcpy(space->stride[space->n], stride, space->rank * sizeof *stride);
  return space->n++;
}

/* Whether the axes `outer` and `inner` are contiguous in every tensor. */
static bool can_join(const berth__l_space *space, uint32_t outer, uint32_t inner) {
  for (uint32_t i = 0; i < space->n; i++)
    if (space->stride[i][outer] != space->stride[i][inner] * space->dim[inner]) return false;
  return true;
}

void berth__l_space_join(berth__l_space *space) {
  uint32_t rank = 0;
  for (uint32_t axis = 0; axis < space->rank; axis++) {
    const int64_t extent = space->dim[axis];
    if (extent == 1) continue;
    const bool joins = rank > 0 && can_join(space, rank - 1, axis);
    if (joins) rank--;
    space->dim[rank] = joins ? space->dim[rank] * extent : extent;
    for (uint32_t i = 0; i < space->n; i++) space->stride[i][rank] = space->stride[i][axis];
    rank++;
  }
  space->rank = rank;
}

int64_t berth__l_space_count(const berth__l_space *space) {
  int64_t count = 1;
  for (uint32_t axis = 0; axis < space->rank; axis++) count *= space->dim[axis];
  return count;
}

berth__x berth__l_space_place(berth__kernel *k, const berth__l_space *space, uint32_t tensor, const berth__x *at) {
  berth__x place = berth__x_i32(k, 0);
  for (uint32_t axis = 0; axis < space->rank; axis++)
    if (space->stride[tensor][axis] != 0)
      place = berth__x_add(k, place, berth__x_affine(k, at[axis], space->stride[tensor][axis], 0));
  return place;
}

berth_status berth__l_elements(berth__lowering *l, berth__l_element_fn fn, const void *state, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *out = &call->out[0];
  berth__l_space space;
  berth__x at[BERTH_MAX_RANK], in[BERTH__SPACE_TENSORS];
  berth__l_space_of(&space, out->rank, out->dim);
  berth__l_space_add(&space, out->stride);
  for (uint32_t i = 0; i < call->n_in; i++) {
    int64_t stride[BERTH_MAX_RANK] = {0};
    if (berth__l_has(l, i)) berth__broadcast_strides(&call->in[i], out->rank, out->dim, stride);
    berth__l_space_add(&space, stride);
  }
  berth__l_space_join(&space);
  const int64_t count = berth__l_space_count(&space);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, count);
  berth__l_unravel(k, index, space.rank, space.dim, at);
  for (uint32_t i = 0; i < call->n_in; i++)
    in[i] = berth__l_has(l, i) ? berth__l_load(l, k, i, berth__l_space_place(k, &space, i + 1, at)) : BERTH__X_NONE;
  const berth__x to = berth__is_contiguous(out) ? index : berth__l_space_place(k, &space, 0, at);
  berth__l_store(l, k, 0, to, fn(l, k, in, state));
  return berth__l_end(l, k, err);
}
