#include "ops/heads.h"

#include <inttypes.h>

static berth_status infer_packed(const berth__shape *shape, uint32_t operand, int64_t heads, const char *attr,
                                 berth__heads *out, berth_error *err) {
  const int64_t width = shape->dim[shape->rank - 1];
  if (heads < 1)
    return berth__fail(err, BERTH_INVALID,
                       "operand %" PRIu32 " has rank %" PRIu32
                       " with its heads packed, so `%s` must say how many there are",
                       operand, shape->rank, attr);
  *out = (berth__heads){.batch = shape->rank == 3 ? shape->dim[0] : 1,
                        .heads = heads,
                        .length = shape->dim[shape->rank - 2],
                        .size = BERTH__DIM_UNKNOWN};
  if (!berth__dim_is_fixed(width)) return BERTH_OK;
  if (width % heads != 0)
    return berth__fail(err, BERTH_INVALID,
                       "the last axis of operand %" PRIu32 " has %" PRId64 " elements, which do not split into %" PRId64
                       " heads",
                       operand, width, heads);
  out->size = width / heads;
  return BERTH_OK;
}

berth_status berth__heads_infer(const berth__infer *infer, uint32_t operand, int64_t heads, const char *attr,
                                berth__heads *out, berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  BERTH__TRY(berth__want_rank(infer, operand, 2, 4, err));
  if (heads < 0) return berth__fail(err, BERTH_INVALID, "`%s` is %" PRId64 ", expected 0 or more", attr, heads);
  if (shape->rank < 4) return infer_packed(shape, operand, heads, attr, out, err);
  *out = (berth__heads){.batch = shape->dim[0], .heads = shape->dim[1], .length = shape->dim[2], .size = shape->dim[3]};
  if (heads > 0 && berth__dim_is_fixed(out->heads) && out->heads != heads)
    return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has %" PRId64 " heads on axis 1, but `%s` is %" PRId64,
                       operand, out->heads, attr, heads);
  return BERTH_OK;
}

berth_status berth__heads_shape(const berth__heads *heads, uint32_t rank, berth__shape *out, berth_error *err) {
  if (rank == 4) {
    *out = (berth__shape){.rank = 4, .dim = {heads->batch, heads->heads, heads->length, heads->size}};
    return BERTH_OK;
  }
  int64_t width;
  BERTH__TRY(berth__dim_mul(heads->heads, heads->size, &width, err));
  *out = rank == 3 ? (berth__shape){.rank = 3, .dim = {heads->batch, heads->length, width}}
                   : (berth__shape){.rank = 2, .dim = {heads->length, width}};
  return BERTH_OK;
}

berth__heads berth__heads_of(const berth_tensor *tensor, int64_t heads) {
  const uint32_t rank = tensor->rank;
  if (rank == 4)
    return (berth__heads){tensor->dim[0],    tensor->dim[1],    tensor->dim[2],    tensor->dim[3],
                          tensor->stride[0], tensor->stride[1], tensor->stride[2], tensor->stride[3]};
  const int64_t size = tensor->dim[rank - 1] / heads, stride = tensor->stride[rank - 1];
  return (berth__heads){.batch = rank == 3 ? tensor->dim[0] : 1,
                        .heads = heads,
                        .length = tensor->dim[rank - 2],
                        .size = size,
                        .batch_stride = rank == 3 ? tensor->stride[0] : 0,
                        .head_stride = size * stride,
                        .row_stride = tensor->stride[rank - 2],
                        .stride = stride};
}
