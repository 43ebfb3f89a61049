#include "ops/norm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static int64_t block_at(int64_t at, int64_t count) { return count - at < BERTH__BLOCK ? count - at : BERTH__BLOCK; }

static double norm_sum_of(const berth_tensor *x, int64_t start, int64_t count) {
  double block[BERTH__BLOCK], sum = 0;
  for (int64_t at = 0; at < count; at += BERTH__BLOCK) {
    int64_t n = block_at(at, count);
    berth__gather_f64(block, x->type, x->data, start + at, 1, n);
    sum += berth__block_sum(block, n);
  }
  return sum;
}

static double sum_of_squares(const berth_tensor *x, int64_t start, int64_t count, double mean) {
  double block[BERTH__BLOCK], sum = 0;
  for (int64_t at = 0; at < count; at += BERTH__BLOCK) {
    int64_t n = block_at(at, count);
    berth__gather_f64(block, x->type, x->data, start + at, 1, n);
    for (int64_t i = 0; i < n; i++) block[i] = (block[i] - mean) * (block[i] - mean);
    sum += berth__block_sum(block, n);
  }
  return sum;
}

berth__moments berth__moments_of(const berth_tensor *x, int64_t start, int64_t count, double epsilon, bool centred) {
  double mean = centred ? norm_sum_of(x, start, count) / (double)count : 0.0;
  double variance = sum_of_squares(x, start, count, mean) / (double)count;
  return (berth__moments){mean, 1.0 / sqrt(variance + epsilon)};
}

static void load_values(double *block, const berth__norm_values *values, int64_t at, int64_t n) {
  if (values->tensor) {
    berth__gather_f64(block, values->tensor->type, values->tensor->data, values->index + at * values->step,
                      values->step, n);
    return;
  }
  for (int64_t i = 0; i < n; i++) block[i] = values->otherwise;
}

void berth__normalise(const berth_tensor *x, const berth_tensor *out, int64_t start, int64_t count,
                      berth__moments moments, berth__norm_values scale, berth__norm_values bias) {
  double block[BERTH__BLOCK], by[BERTH__BLOCK], plus[BERTH__BLOCK];
  for (int64_t at = 0; at < count; at += BERTH__BLOCK) {
    int64_t n = block_at(at, count);
    berth__gather_f64(block, x->type, x->data, start + at, 1, n);
    load_values(by, &scale, at, n);
    load_values(plus, &bias, at, n);
    for (int64_t i = 0; i < n; i++) block[i] = (block[i] - moments.mean) * moments.factor * by[i] + plus[i];
    berth__scatter(BERTH__CLASS_F64, block, out->type, out->data, start + at, 1, n);
  }
}

int64_t berth__norm_rows(const berth_op_call *call) {
  int64_t rows = 1;
  for (uint32_t i = 0; i < berth__norm_first_axis(call); i++) rows *= call->in[BERTH__NORM_X].dim[i];
  return rows;
}

int64_t berth__norm_row_length(const berth_op_call *call) {
  int64_t length = 1;
  for (uint32_t i = berth__norm_first_axis(call); i < call->in[BERTH__NORM_X].rank; i++)
    length *= call->in[BERTH__NORM_X].dim[i];
  return length;
}

berth_status berth__want_epsilon(const berth_attr *epsilon, berth_error *err) {
  if (epsilon->f >= 0 && epsilon->f < INFINITY) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "attribute 'epsilon' is %g, expected a finite number of at least 0",
                     epsilon->f);
}

berth_status berth__want_norm_gradient(const berth__infer *infer, uint32_t operand, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__NORM_X], *shape = &infer->in_shape[operand];
  int64_t same;
  BERTH__TRY(berth__want_same_type(infer, BERTH__NORM_X, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, x->rank, x->rank, err));
  for (uint32_t axis = 0; axis < x->rank; axis++)
    BERTH__TRY(berth__same_dim(x->dim[axis], shape->dim[axis], "what is normalised and its gradient", &same, err));
  return BERTH_OK;
}

berth_status berth__want_channels(const berth__infer *infer, uint32_t operand, berth_error *err) {
  char what[64];
  int64_t channels;
  BERTH__TRY(berth__want_same_type(infer, 0, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, 1, 1, err));
  snprintf(what, sizeof what, "channels of operand 0 and length of operand %" PRIu32, operand);
  return berth__same_dim(infer->in_shape[0].dim[1], infer->in_shape[operand].dim[0], what, &channels, err);
}
