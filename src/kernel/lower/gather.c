/* Picking elements by index. An index out of range is a run-time error on other devices; a GPU cannot report it, and
 * uses the nearest valid one. */
#include "kernel/lower/copy.h"

/* Negative indices count from the end; the result is clamped. */
static berth__x usable(berth__kernel *k, berth__x index, int64_t extent) {
  const berth__x zero = berth__x_i32(k, 0), from_end = berth__x_affine(k, index, 1, extent);
  index = berth__x_select(k, berth__x_lt(k, index, zero), from_end, index);
  return berth__x_max(k, berth__x_min(k, index, berth__x_i32(k, extent - 1)), zero);
}

/* The kernel that all of them share. The strides give, for an element of the result, the position of its index (or of
 * the first one of a tuple) and its position in the data if all indices were 0; the indexed axes are consecutive, from
 * `first` on. */
typedef struct picking {
  int64_t index_stride[BERTH_MAX_RANK], data_stride[BERTH_MAX_RANK];
  uint32_t first, n; /* indexed axes of the data */
  int64_t step;      /* between the indices of a tuple */
} picking;

static berth_status lower_gather_pick(berth__lowering *l, const picking *p, berth_error *err) {
  const berth_tensor *data = &l->call->in[BERTH__GATHER_X], *out = &l->call->out[0];
  berth__l_space space;
  berth__x at[BERTH_MAX_RANK];
  berth__l_space_of(&space, out->rank, out->dim);
  const uint32_t to = berth__l_space_add(&space, out->stride);
  const uint32_t index = berth__l_space_add(&space, p->index_stride);
  const uint32_t from = berth__l_space_add(&space, p->data_stride);
  berth__l_space_join(&space);
  const int64_t count = berth__l_space_count(&space);
  if (count == 0 || berth__count(data) == 0) return BERTH_OK; /* no index is in range of an empty axis */
  berth__kernel *k = berth__l_begin(l, NULL);
  berth__l_unravel(k, berth__l_each(l, k, count), space.rank, space.dim, at);
  const berth__x first = berth__l_space_place(k, &space, index, at);
  berth__x source = berth__l_space_place(k, &space, from, at);
  for (uint32_t i = 0; i < p->n; i++) {
    const berth__x given = berth__l_load(l, k, BERTH__GATHER_INDICES, berth__x_affine(k, first, 1, i * p->step));
    const berth__x taken = usable(k, given, data->dim[p->first + i]);
    source = berth__x_add(k, source, berth__x_affine(k, taken, data->stride[p->first + i], 0));
  }
  const berth__x target = berth__l_space_place(k, &space, to, at);
  berth__l_store_raw(l, k, 0, target, berth__l_load_raw(l, k, BERTH__GATHER_X, source));
  return berth__l_end(l, k, err);
}

static uint32_t lower_gather_axis_of(const berth_op_call *call, int64_t axis) {
  return (uint32_t)(axis < 0 ? axis + call->in[BERTH__GATHER_X].rank : axis);
}

/* gather and embedding: the axes of the indices replace the axis that is picked from. */
berth_status berth__lower_gather(berth__lowering *l, berth_error *err) {
  const berth_tensor *data = &l->call->in[BERTH__GATHER_X], *indices = &l->call->in[BERTH__GATHER_INDICES];
  const bool is_embedding = l->op->code == BERTH__OP_embedding; /* always along axis 0 */
  const uint32_t axis = lower_gather_axis_of(l->call, is_embedding ? 0 : l->call->attrs[BERTH__GATHER_AXIS].i);
  picking p = {.first = axis, .n = 1};
  for (uint32_t i = 0; i < data->rank; i++)
    if (i != axis) p.data_stride[i < axis ? i : i - 1 + indices->rank] = data->stride[i];
  for (uint32_t i = 0; i < indices->rank; i++) p.index_stride[axis + i] = indices->stride[i];
  return lower_gather_pick(l, &p, err);
}

berth_status berth__lower_gather_elements(berth__lowering *l, berth_error *err) {
  const berth_tensor *data = &l->call->in[BERTH__GATHER_X], *indices = &l->call->in[BERTH__GATHER_INDICES];
  picking p = {.first = lower_gather_axis_of(l->call, l->call->attrs[BERTH__GATHER_ELEMENTS_AXIS].i), .n = 1};
  for (uint32_t i = 0; i < data->rank; i++) {
    p.data_stride[i] = i == p.first ? 0 : data->stride[i];
    p.index_stride[i] = indices->stride[i];
  }
  return lower_gather_pick(l, &p, err);
}

berth_status berth__lower_gather_nd(berth__lowering *l, berth_error *err) {
  const berth_tensor *data = &l->call->in[BERTH__GATHER_X], *indices = &l->call->in[BERTH__GATHER_INDICES];
  const uint32_t batch = (uint32_t)l->call->attrs[BERTH__GATHER_ND_BATCH_DIMS].i, outer = indices->rank - 1;
  picking p = {.first = batch, .n = (uint32_t)indices->dim[outer], .step = indices->stride[outer]};
  for (uint32_t i = 0; i < outer; i++) p.index_stride[i] = indices->stride[i];
  for (uint32_t i = 0; i < batch; i++) p.data_stride[i] = data->stride[i];
  for (uint32_t i = batch + p.n; i < data->rank; i++) p.data_stride[outer + i - batch - p.n] = data->stride[i];
  return lower_gather_pick(l, &p, err);
}
