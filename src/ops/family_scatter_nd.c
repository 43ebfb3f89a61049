/* scatter_nd: puts slices into a copy of the operand, at positions given by tuples of indices (ONNX's ScatterND). If a
 * position occurs twice, the slices are applied in order. */
#include <inttypes.h>

#include "ops/gather.h"
#include "ops/line.h"
#include "ops/registry.h"
#include "ops/scatter.h"

static const berth_attr attrs[] = {
    [BERTH__SCATTER_ND_REDUCTION] = {.name = "reduction", .kind = BERTH_ATTR_STRING, .s = "none"}};

/* updates: the indices' shape without its last axis, then the rest of x's. */
static berth_status check_updates(const berth__infer *infer, uint32_t tuple, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__SCATTER_X], *indices = &infer->in_shape[BERTH__SCATTER_INDICES],
                     *updates = &infer->in_shape[BERTH__SCATTER_UPDATES];
  const uint32_t outer = indices->rank - 1;
  int64_t ignored;
  BERTH__TRY(berth__want_rank(infer, 2, outer + x->rank - tuple, outer + x->rank - tuple, err));
  for (uint32_t k = 0; k < outer; k++)
    BERTH__TRY(berth__same_dim(updates->dim[k], indices->dim[k], "updates and indices", &ignored, err));
  for (uint32_t k = tuple; k < x->rank; k++)
    BERTH__TRY(berth__same_dim(updates->dim[outer + k - tuple], x->dim[k], "updates and the operand", &ignored, err));
  return BERTH_OK;
}

static berth_status scatter_nd_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__SCATTER_X], *indices = &infer->in_shape[BERTH__SCATTER_INDICES];
  BERTH__TRY(berth__want_updates(infer, infer->attrs[BERTH__SCATTER_ND_REDUCTION].s, err));
  BERTH__TRY(berth__want_rank(infer, 0, 1, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_rank(infer, 1, 1, BERTH_MAX_RANK, err));
  const int64_t tuple = indices->dim[indices->rank - 1];
  if (berth__dim_is_fixed(tuple)) {
    if (tuple < 1 || tuple > x->rank)
      return berth__fail(err, BERTH_INVALID, "the indices hold tuples of %" PRId64 ", expected 1 to %" PRIu32, tuple,
                         x->rank);
    BERTH__TRY(check_updates(infer, (uint32_t)tuple, err));
  }
  infer->out_type[0] = infer->in_type[BERTH__SCATTER_X];
  infer->out_shape[0] = *x;
  return BERTH_OK;
}

/* The number of elements per slice. */
static int64_t scatter_nd_slice_of(const berth_op_call *call) {
  const berth_tensor *indices = &call->in[BERTH__SCATTER_INDICES];
  int64_t count = 1;
  for (uint32_t k = (uint32_t)indices->dim[indices->rank - 1]; k < call->out[0].rank; k++) count *= call->out[0].dim[k];
  return count;
}

/* Items are slices of the result, so all updates of a slice belong to one item. */
static int64_t scatter_nd_items(const berth_op_call *call) {
  const berth_tensor *indices = &call->in[BERTH__SCATTER_INDICES];
  int64_t count = 1;
  for (uint32_t k = 0; k < (uint32_t)indices->dim[indices->rank - 1]; k++) count *= call->out[0].dim[k];
  return count;
}

/* The slice for the tuple `at`. */
static berth_status find_slice(const berth_op_call *call, int64_t at, int64_t *out, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X], *indices = &call->in[BERTH__SCATTER_INDICES];
  const uint32_t tuple = (uint32_t)indices->dim[indices->rank - 1];
  *out = 0;
  for (uint32_t k = 0; k < tuple; k++) {
    int64_t index = 0;
    BERTH__TRY(berth__read_index(indices, at * tuple + k, x->dim[k], k, &index, err));
    *out = *out * x->dim[k] + index;
  }
  return BERTH_OK;
}

static berth_status scatter_nd_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X], *indices = &call->in[BERTH__SCATTER_INDICES],
                     *updates = &call->in[BERTH__SCATTER_UPDATES], *out = &call->out[0];
  const berth__reduction r = berth__reduction_of(call->attrs[BERTH__SCATTER_ND_REDUCTION].s);
  const size_t size = berth_type_size(x->type);
  const int64_t slice = scatter_nd_slice_of(call), n = berth__count(indices) / indices->dim[indices->rank - 1];
  if (slice == 0) return BERTH_OK;
  if (x->data != out->data)
    memcpy(berth__element(out->data, call->begin * slice, size), berth__element(x->data, call->begin * slice, size),
           (size_t)((call->end - call->begin) * slice) * size);
  for (int64_t at = 0; at < n; at++) {
    int64_t to = 0;
    BERTH__TRY(find_slice(call, at, &to, err));
    if (to < call->begin || to >= call->end) continue;
    if (r == BERTH__REDUCTION_NONE)
      memcpy(berth__element(out->data, to * slice, size), berth__element(updates->data, at * slice, size),
             (size_t)slice * size);
    for (int64_t i = 0; r != BERTH__REDUCTION_NONE && i < slice; i++)
      berth__put_update(r, out, to * slice + i, updates, at * slice + i);
  }
  return BERTH_OK;
}

const berth__family berth__family_scatter_nd = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = scatter_nd_infer,
    .items = scatter_nd_items,
    .kernel = scatter_nd_kernel,
};
