/* Mean and deviation of a row of f32, for norms and their gradients.
 *
 * Sums are f32, and yet no digits are lost when the mean is large compared with the deviation: the second pass
 * subtracts the first mean before it sums, and so finds what the first pass missed. */
#ifndef BERTH_DEVICE_CPU_KERNELS_NORM_MOMENTS_H
#define BERTH_DEVICE_CPU_KERNELS_NORM_MOMENTS_H

#include "device/cpu/kernels/vec.h"
#include "ops/norm.h"

#define NORM_BLOCK 4096 /* elements summed in f32 */

typedef struct norm_moments {
  float mean, rest; /* the mean is the sum of both */
  float factor;     /* 1 / sqrt(variance + epsilon) */
} norm_moments;

static inline float norm_sum_block(const float *x, int64_t n) {
  vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
  int64_t i = 0;
  for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
    for (int k = 0; k < 4; k++) sum[k] += vf_load(x + i + k * VF_LANES);
  for (; i < n; i += VF_LANES) sum[0] += vf_load_n(x + i, vf_tail(n - i));
  return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The sums of x - offset and of its square. */
static inline void norm_square_block(const float *x, int64_t n, float offset, float *first, float *second) {
  const vf away = vf_set1(offset);
  vf sum[2] = {vf_zero(), vf_zero()}, square[2] = {vf_zero(), vf_zero()};
  int64_t i = 0;
  for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES)
    for (int k = 0; k < 2; k++) {
      const vf d = vf_load(x + i + k * VF_LANES) - away;
      sum[k] += d;
      square[k] = vf_fma(d, d, square[k]);
    }
  for (; i < n; i += VF_LANES) {
    const vf d = vf_load_else(x + i, vf_tail(n - i), away) - away;
    sum[0] += d;
    square[0] = vf_fma(d, d, square[0]);
  }
  *first = vf_sum(sum[0] + sum[1]);
  *second = vf_sum(square[0] + square[1]);
}

static inline float norm_mean_of(const float *x, int64_t n) {
  double sum = 0;
  for (int64_t at = 0; at < n; at += NORM_BLOCK)
    sum += (double)norm_sum_block(x + at, n - at < NORM_BLOCK ? n - at : NORM_BLOCK);
  return (float)(sum / (double)n);
}

static inline norm_moments norm_moments_of(const float *x, int64_t n, double epsilon, bool centred) {
  const float mean = centred ? norm_mean_of(x, n) : 0;
  double sum = 0, square = 0;
  for (int64_t at = 0; at < n; at += NORM_BLOCK) {
    float first, second;
    norm_square_block(x + at, n - at < NORM_BLOCK ? n - at : NORM_BLOCK, mean, &first, &second);
    sum += (double)first;
    square += (double)second;
  }
  const double rest = centred ? sum / (double)n : 0, variance = square / (double)n - rest * rest;
  return (norm_moments){mean, (float)rest, (float)(1.0 / sqrt((variance < 0 ? 0 : variance) + epsilon))};
}

/* Missing, or a whole row. */
static inline bool norm_is_row(const berth_op_call *call, uint32_t operand, int64_t length) {
  return operand >= call->n_in || call->in[operand].type == BERTH_TYPE_NONE ||
         berth__count(&call->in[operand]) == length;
}

#endif
