/* The two layouts of attention heads in a tensor: [B, H, S, D], and packed as [B, S, H * D] or [S, H * D]. */
#ifndef BERTH_OPS_HEADS_H
#define BERTH_OPS_HEADS_H

#include "ops/op.h"

/* Extents and strides, independent of the layout. During shape inference extents may be open and strides are not
 * set. */
typedef struct berth__heads {
  int64_t batch, heads, length, size;
  int64_t batch_stride, head_stride, row_stride, stride;
} berth__heads;

/* Reads an operand's shape. `heads` is the attribute: required if heads are packed, otherwise 0 or the right number. */
berth_status berth__heads_infer(const berth__infer *infer, uint32_t operand, int64_t heads, const char *attr,
                                berth__heads *out, berth_error *err);
/* The shape of such a tensor with a given rank. */
berth_status berth__heads_shape(const berth__heads *heads, uint32_t rank, berth__shape *out, berth_error *err);
/* For kernels. */
berth__heads berth__heads_of(const berth_tensor *tensor, int64_t heads);
static inline int64_t berth__heads_at(const berth__heads *h, int64_t batch, int64_t head, int64_t row) {
  return batch * h->batch_stride + head * h->head_stride + row * h->row_stride;
}

#endif
