/* cross_entropy and its gradient over rows of f32: the maximum, the sum of the exponentials, and for the gradient the
 * row once more. */
#include "ops/cross_entropy.h"

#include "device/cpu/kernels/vec_math.h"

#define BLOCK 2048 /* elements summed in f32 */

static bool cross_entropy_kernel_takes(const berth_op_call *call) {
  const berth_tensor *logits = &call->in[BERTH__CROSS_ENTROPY_LOGITS];
  return logits->type == BERTH_F32 && logits->dim[logits->rank - 1] > 0;
}

static float cross_entropy_kernel_largest(const float *x, int64_t n) {
  vf most = vf_set1(-INFINITY), probe = vf_zero();
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const vf a = vf_load_else(x + i, vf_tail(n - i), most);
    most = vf_max(a, most);
    probe = vf_pick_nan(a, a, probe);
  }
  const float nan = vf_sum(probe); /* one NaN makes the whole row NaN */
  return isnan(nan) ? nan : vf_most(most);
}

static double cross_entropy_kernel_sum(const float *x, int64_t n, float most) {
  const vf offset = vf_set1(most), nothing = vf_set1(-INFINITY);
  double total = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t end = n - at < BLOCK ? n : at + BLOCK;
    vf sum = vf_zero();
    for (int64_t i = at; i < end; i += VF_LANES)
      sum += vf_exp_negative(vf_load_else(x + i, vf_tail(end - i), nothing) - offset);
    total += (double)vf_sum(sum);
  }
  return total;
}

/* y = exp(x - most) * factor; x and y may be the same row. */
static void cross_entropy_kernel_spread(float *y, const float *x, int64_t n, float most, float factor) {
  const vf offset = vf_set1(most), by = vf_set1(factor);
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t count = vf_tail(n - i);
    vf_store_n(y + i, vf_exp_negative(vf_load_n(x + i, count) - offset) * by, count);
  }
}

static void cross_entropy_kernel_grad(const berth_op_call *call, int64_t row, int64_t label, int64_t n) {
  const float *x = (const float *)call->in[BERTH__CROSS_ENTROPY_LOGITS].data + row * n;
  const float dy = ((const float *)call->in[BERTH__CROSS_ENTROPY_DY].data)[row];
  float *y = (float *)call->out[0].data + row * n;
  if (label < 0) {
    memset(y, 0, (size_t)n * sizeof *y);
    return;
  }
  const float most = cross_entropy_kernel_largest(x, n), own = x[label];
  const double sum = cross_entropy_kernel_sum(x, n, most);
  const double others = sum - exp((double)own - (double)most); /* p - 1 without cancellation */
  cross_entropy_kernel_spread(y, x, n, most, (float)((double)dy / sum));
  y[label] = (float)(-others / sum * (double)dy);
}

static berth_status cross_entropy_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *logits = &call->in[BERTH__CROSS_ENTROPY_LOGITS];
  const int64_t n = logits->dim[logits->rank - 1];
  for (int64_t row = call->begin; row < call->end; row++) {
    int64_t label;
    BERTH__TRY(berth__cross_entropy_label(call, row, &label, err));
    if (berth__call_code(call) == BERTH__OP_cross_entropy_grad) {
      cross_entropy_kernel_grad(call, row, label, n);
      continue;
    }
    const float *x = (const float *)logits->data + row * n;
    double loss = 0;
    if (label >= 0) {
      const float most = cross_entropy_kernel_largest(x, n);
      loss = log(cross_entropy_kernel_sum(x, n, most)) + ((double)most - (double)x[label]);
    }
    ((float *)call->out[0].data)[row] = (float)loss;
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_cross_entropy)[] = {
    {"cross_entropy", BERTH__OP_cross_entropy, cross_entropy_kernel_takes, berth__cross_entropy_rows, NULL, NULL,
     cross_entropy_kernel_run, NULL, false, NULL},
    {"cross_entropy_grad", BERTH__OP_cross_entropy_grad, cross_entropy_kernel_takes, berth__cross_entropy_rows, NULL,
     NULL, cross_entropy_kernel_run, NULL, false, NULL},
    {0},
};
