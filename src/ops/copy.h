/* Copying elements between strided places: what the families that move elements have in common. */
#ifndef BERTH_OPS_COPY_H
#define BERTH_OPS_COPY_H

#include "ops/op.h"

/* An index space and where its elements come from and go to. Pointers stand at the element of index 0. */
typedef struct berth__copy {
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  int64_t from_stride[BERTH_MAX_RANK], to_stride[BERTH_MAX_RANK];
  const void *from;
  void *to;
  size_t element; /* bytes */
} berth__copy;

/* Copies the elements [begin, end) of the row-major index space. Source and target must not overlap. */
void berth__copy_range(const berth__copy *copy, int64_t begin, int64_t end);
/* Joins neighbouring axes that are one run of memory on both sides, so that lines get as long as they can. Axes of
 * extent 1 go; one axis is left where all do. */
void berth__copy_join(berth__copy *copy);
/* n elements at fixed strides. */
void berth__copy_line(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n, size_t element);

/* Items of the kernels that fill output 0 element by element. */
int64_t berth__copy_items(const berth_op_call *call);
/* A kernel that moves nothing: output 0 has the elements of operand 0 in the same order, under another shape. */
berth_status berth__copy_kernel(const berth_op_call *call, berth_error *err);
/* The same for a call that is a view of operand 0: copies what the family's view function would show. */
void berth__copy_view(const berth_op_call *call, const int64_t *stride, int64_t offset);

/* The strides under which `shape` shows the elements of `in` in order; false where no strides do. */
bool berth__view_same_order(const berth_tensor *in, const berth__shape *shape, int64_t *stride);
/* As a view function, for the ops that only give the elements another shape. */
bool berth__view_reshaped(const berth_tensor *in, const berth_attr *attrs, const berth__shape *shape, berth_type type,
                          uint32_t out, int64_t *offset, int64_t *stride);

/* What a narrow with its lists in attributes shows of operand 0; strides of steps backwards are negative. */
void berth__narrow_shows(const berth_tensor *in, const berth_attr *attr, int64_t *offset, int64_t *stride);

/* Makes every axis of a list non-negative and refuses repeated ones: bit k of *axes stands for axis k. */
berth_status berth__want_axes(const berth_attr *list, uint32_t rank, uint32_t *axes, berth_error *err);

#endif
