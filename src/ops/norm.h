/* Shared by the norms: a stretch of elements becomes (x - mean) * factor * scale + bias, in f64, rounded once. */
#ifndef BERTH_OPS_NORM_H
#define BERTH_OPS_NORM_H

#include "ops/elementwise.h"

typedef struct berth__moments {
  double mean, factor; /* factor: 1 / sqrt(variance + epsilon) */
} berth__moments;

/* Of `count` contiguous elements from `start`, in two passes. With centred false, the mean stays 0 (root mean
 * square). */
berth__moments berth__moments_of(const berth_tensor *x, int64_t start, int64_t count, double epsilon, bool centred);

/* Source of scale or bias values; tensor NULL: `otherwise` for all. */
typedef struct berth__norm_values {
  const berth_tensor *tensor;
  int64_t index, step;
  double otherwise;
} berth__norm_values;

/* out[start + i] for `count` elements; out may overwrite x. */
void berth__normalise(const berth_tensor *x, const berth_tensor *out, int64_t start, int64_t count,
                      berth__moments moments, berth__norm_values scale, berth__norm_values bias);

/* An optional operand of a call, or NULL. */
static inline const berth_tensor *berth__optional(const berth_op_call *call, uint32_t operand) {
  return operand < call->n_in && call->in[operand].data ? &call->in[operand] : NULL;
}
static inline bool berth__is_given(const berth__infer *infer, uint32_t operand) {
  return operand < infer->n_in && infer->in_type[operand] != BERTH_TYPE_NONE;
}

extern const berth_attr berth__layer_norm_attrs[BERTH__LAYER_NORM_ATTRS];

/* For layer_norm, rms_norm and their gradients: the first normalised axis, the number of rows, and the elements per
 * row. */
static inline uint32_t berth__norm_first_axis(const berth_op_call *call) {
  const int64_t axis = call->attrs[BERTH__LAYER_NORM_AXIS].i;
  return (uint32_t)(axis < 0 ? axis + (int64_t)call->in[BERTH__NORM_X].rank : axis);
}
int64_t berth__norm_rows(const berth_op_call *call);
int64_t berth__norm_row_length(const berth_op_call *call);

berth_status berth__want_epsilon(const berth_attr *epsilon, berth_error *err);
/* Checks that operand k, the gradient of a norm's result, has the type and shape of x. */
berth_status berth__want_norm_gradient(const berth__infer *infer, uint32_t operand, berth_error *err);
/* Checks that operand k has x's type and the shape [channels], the extent of x's axis 1. */
berth_status berth__want_channels(const berth__infer *infer, uint32_t operand, berth_error *err);

#endif
