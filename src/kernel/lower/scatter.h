/* What the forms of scatter and scatter_nd share (scatter.c, scatter_order.c). */
#ifndef BERTH_KERNEL_LOWER_SCATTER_H
#define BERTH_KERNEL_LOWER_SCATTER_H

#include "ops/scatter.h"

#include "kernel/lower.h"

/* scatter_nd: one tuple of indices per slice. */
typedef struct berth__slices {
  berth__reduction reduction;
  uint32_t tuple;  /* indices per tuple, for as many leading axes */
  int64_t n, each; /* number of tuples, and elements per slice */
} berth__slices;

berth__slices berth__slices_of(const berth_op_call *call);
/* Index i of a tuple, counted from the front; it may be out of range. */
berth__x berth__slices_index(const berth__lowering *l, berth__kernel *k, const berth__slices *s, berth__x tuple,
                             uint32_t i);
/* The position of an element of a tuple's update. */
berth__x berth__slices_update(berth__kernel *k, const berth__slices *s, berth__x tuple, berth__x element);

berth__x berth__scatter_in_range(berth__kernel *k, berth__x index, int64_t extent);
/* An element of the result so far, and with an update. */
berth__x berth__scatter_held(const berth__lowering *l, berth__kernel *k, berth__x place);
berth__x berth__scatter_combined(const berth__lowering *l, berth__kernel *k, berth__reduction r, berth__x old,
                                 berth__x update);
/* Copies the operand to the result, unless that overwrites it. */
berth_status berth__scatter_copy(berth__lowering *l, berth_error *err);

/* scatter_order.c: tuples in the order of their slices. The cost is in steps of a thread; it needs scratch. */
int64_t berth__slices_order_cost(const berth__slices *s);
uint64_t berth__slices_order_scratch(const berth__slices *s);
berth_status berth__slices_in_order(berth__lowering *l, const berth__slices *s, berth_error *err);

#define BERTH__SCATTER_THREADS 8192 /* that a GPU keeps busy */
static inline int64_t berth__scatter_rounds(int64_t threads) {
  return (threads + BERTH__SCATTER_THREADS - 1) / BERTH__SCATTER_THREADS;
}

#endif
