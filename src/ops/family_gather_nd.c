/* gather_nd: slices picked by tuples of indices (ONNX's GatherND). The last axis of the indices contains the tuples;
 * the first `batch_dims` axes are shared with the operand. */
#include <inttypes.h>

#include "ops/gather.h"
#include "ops/line.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__GATHER_ND_BATCH_DIMS] = {.name = "batch_dims", .kind = BERTH_ATTR_INT}};

static berth_status check_ranks(const berth__infer *infer, uint32_t *tuple, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *indices = &infer->in_shape[1];
  const int64_t batch = infer->attrs[BERTH__GATHER_ND_BATCH_DIMS].i;
  BERTH__TRY(berth__want_index_type(infer, 1, err));
  BERTH__TRY(berth__want_rank(infer, 0, 1, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_rank(infer, 1, 1, BERTH_MAX_RANK, err));
  if (batch < 0 || batch >= indices->rank || batch >= x->rank)
    return berth__fail(err, BERTH_INVALID, "`batch_dims` is %" PRId64 ", expected 0 or more and less than both ranks",
                       batch);
  const int64_t last = indices->dim[indices->rank - 1];
  if (!berth__dim_is_fixed(last))
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "the last extent of the indices is not known, and the rank follows from it");
  if (last < 1 || last > x->rank - batch)
    return berth__fail(err, BERTH_INVALID,
                       "the indices hold tuples of %" PRId64 ", expected 1 to %" PRId64
                       " for an operand of rank %" PRIu32,
                       last, (int64_t)x->rank - batch, x->rank);
  *tuple = (uint32_t)last;
  return BERTH_OK;
}

static berth_status gather_nd_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *indices = &infer->in_shape[1];
  uint32_t tuple = 0;
  BERTH__TRY(check_ranks(infer, &tuple, err));
  const uint32_t batch = (uint32_t)infer->attrs[BERTH__GATHER_ND_BATCH_DIMS].i, rest = x->rank - batch - tuple;
  berth__shape *out = &infer->out_shape[0];
  if (indices->rank - 1 + rest > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_INVALID, "the result would have a rank over %d", BERTH_MAX_RANK);
  *out = (berth__shape){0};
  for (uint32_t k = 0; k + 1 < indices->rank; k++) out->dim[out->rank++] = indices->dim[k];
  for (uint32_t k = 0; k < batch; k++)
    BERTH__TRY(berth__same_dim(x->dim[k], indices->dim[k], "batch axes", &out->dim[k], err));
  for (uint32_t k = x->rank - rest; k < x->rank; k++) out->dim[out->rank++] = x->dim[k];
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* Items are tuples. */
static int64_t gather_nd_items(const berth_op_call *call) {
  int64_t count = 1;
  for (uint32_t k = 0; k + 1 < call->in[1].rank; k++) count *= call->in[1].dim[k];
  return count;
}

static berth_status gather_nd_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0], *indices = &call->in[1];
  const uint32_t batch = (uint32_t)call->attrs[BERTH__GATHER_ND_BATCH_DIMS].i;
  const int64_t tuple = indices->dim[indices->rank - 1];
  const size_t size = berth_type_size(x->type);
  int64_t slice = 1, in_batch = 1; /* elements per slice; tuples with the same position on the batch axes */
  int64_t of_batch = 1;            /* elements per such position: an axis of one element may have any stride */
  for (uint32_t k = batch; k < x->rank; k++) of_batch *= x->dim[k];
  for (uint32_t k = batch + (uint32_t)tuple; k < x->rank; k++) slice *= x->dim[k];
  for (uint32_t k = batch; k + 1 < indices->rank; k++) in_batch *= indices->dim[k];
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t from = batch > 0 ? item / in_batch * of_batch : 0;
    for (uint32_t k = 0; k < (uint32_t)tuple; k++) {
      int64_t index = 0;
      BERTH__TRY(berth__read_index(indices, item * tuple + k, x->dim[batch + k], batch + k, &index, err));
      from += index * x->stride[batch + k];
    }
    if (slice > 0)
      memcpy(berth__element(call->out[0].data, item * slice, size), berth__element(x->data, from, size),
             (size_t)slice * size);
  }
  return BERTH_OK;
}

const berth__family berth__family_gather_nd = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = gather_nd_infer,
    .items = gather_nd_items,
    .kernel = gather_nd_kernel,
};
