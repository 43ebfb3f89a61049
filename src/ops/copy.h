/* Copying elements between strided tensors: shared by the families that move elements. */
#ifndef BERTH_OPS_COPY_H
#define BERTH_OPS_COPY_H

#include "ops/op.h"

/* An index space with the source and target of its elements. Pointers are to the element of index 0. */
typedef struct berth__copy {
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  int64_t from_stride[BERTH_MAX_RANK], to_stride[BERTH_MAX_RANK];
  const void *from;
  void *to;
  size_t element; /* its bytes */
} berth__copy;

/* Copies the elements [begin, end) of the row-major index space. Source and target must not overlap. */
void berth__copy_range(const berth__copy *copy, int64_t begin, int64_t end);
/* Joins neighbouring axes that are contiguous on both sides, so that lines become as long as possible. Removes axes of
 * extent 1, but keeps at least one axis. */
void berth__copy_join(berth__copy *copy);
/* n elements at fixed strides. */
void berth__copy_line(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n, size_t element);

/* Items of kernels that fill output 0 element by element. */
int64_t berth__copy_items(const berth_op_call *call);
/* A kernel that copies operand 0 to output 0 in the same order, with another shape. */
berth_status berth__copy_kernel(const berth_op_call *call, berth_error *err);
/* The same for a call that is a view of operand 0: copies the elements that the family's view function gives. */
void berth__copy_view(const berth_op_call *call, const int64_t *stride, int64_t offset);

/* The strides with which `shape` is a view of `in` in the same order; false if there are none. */
bool berth__view_same_order(const berth_tensor *in, const berth__shape *shape, int64_t *stride);
/* A view function for ops that only change the shape. */
bool berth__view_reshaped(const berth_tensor *in, const berth_attr *attrs, const berth__shape *shape, berth_type type,
                          uint32_t out, int64_t *offset, int64_t *stride);

/* The view of operand 0 for a narrow whose lists are attributes; negative steps give negative strides. */
void berth__narrow_shows(const berth_tensor *in, const berth_attr *attr, int64_t *offset, int64_t *stride);

/* Makes every axis of a list non-negative and refuses duplicates: bit k of *axes stands for axis k. */
berth_status berth__want_axes(const berth_attr *list, uint32_t rank, uint32_t *axes, berth_error *err);

#endif
