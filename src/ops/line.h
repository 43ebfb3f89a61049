/* Lines of accumulators: shared by matmul and the convolutions. A line holds sums that are wider than the elements (f64
 * for all float types, wrapping 64 bits for integers) and is rounded once, when it is stored.
 *
 * Every sum is computed in the order of its rows, however a line is cut into pieces, so results never depend on how the
 * work was split. */
#ifndef BERTH_OPS_LINE_H
#define BERTH_OPS_LINE_H

#include <stdbool.h>

#include "berth/berth.h"

#define BERTH__LINE_BYTES 8 /* one accumulator */

typedef struct berth__line_ops {
  /* sum[i] = *first, or 0 if that is NULL */
  void (*start)(void *sum, const void *first, int64_t n);
  /* sum[i * sum_stride] += factor[row * factor_stride] * x[row * row_stride + i * x_stride], for each row in order */
  void (*add_rows)(void *sum, int64_t sum_stride, const void *factor, int64_t factor_stride, const void *x,
                   int64_t row_stride, int64_t x_stride, int64_t rows, int64_t n);
  void (*store)(void *out, const void *sum, int64_t n);
} berth__line_ops;

/* NULL for types without sums: bool. */
const berth__line_ops *berth__line_ops_of(berth_type type);

/* Element `index` of an array of elements of `size` bytes. */
static inline char *berth__element(const void *data, int64_t index, size_t size) {
  return (char *)data + index * (int64_t)size;
}

/* Float tensors: elements index, index + stride, ... as f64, and a run of f64 back into a contiguous tensor. */
void berth__line_load(const berth_tensor *tensor, int64_t index, int64_t stride, int64_t n, double *out);
void berth__line_store(const berth_tensor *tensor, int64_t index, int64_t n, const double *values);

#endif
