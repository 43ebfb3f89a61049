/* cross_entropy and its gradient over rows of f32. The maximum and the sum of the exponentials relative to it are found
 * block by block, so that a row is read from memory once: when the maximum rises, the sum so far shrinks. The gradient
 * gets both from the losses. */
#include <float.h>

#include "ops/cross_entropy.h"

#include "device/cpu/kernels/vec_math.h"

#define BLOCK 2048 /* elements summed in f32, which stay in the cache */

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

static double cross_entropy_kernel_block(const float *x, int64_t n, float most) {
  const vf offset = vf_set1(most), nothing = vf_set1(-INFINITY);
  vf sum = vf_zero();
  for (int64_t i = 0; i < n; i += VF_LANES)
    sum += vf_exp_negative(vf_load_else(x + i, vf_tail(n - i), nothing) - offset);
  return (double)vf_sum(sum);
}

/* The maximum of a row, and the sum of the exponentials relative to it. */
static double cross_entropy_kernel_sum(const float *x, int64_t n, float *most) {
  double total = 0;
  *most = -FLT_MAX; /* blocks of -inf add nothing */
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t count = n - at < BLOCK ? n - at : BLOCK;
    const float largest = cross_entropy_kernel_largest(x + at, count);
    if (!(largest <= *most)) { /* NaN stays */
      total *= exp((double)*most - (double)largest);
      *most = largest;
    }
    total += cross_entropy_kernel_block(x + at, count, *most);
  }
  return total;
}

/* y = exp(x - offset - rest) * factor; x and y may be the same row. */
static void cross_entropy_kernel_spread(float *y, const float *x, int64_t n, float offset, float rest, float factor) {
  const vf from = vf_set1(offset), more = vf_set1(rest), by = vf_set1(factor);
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t count = vf_tail(n - i);
    vf_store_n(y + i, vf_exp_negative(vf_load_n(x + i, count) - from - more) * by, count);
  }
}

static void cross_entropy_kernel_grad(const berth_op_call *call, int64_t row, int64_t label, int64_t n) {
  const float *x = (const float *)call->in[BERTH__CROSS_ENTROPY_LOGITS].data + row * n;
  const float dy = ((const float *)call->in[BERTH__CROSS_ENTROPY_DY].data)[row];
  float *y = (float *)call->out[0].data + row * n;
  double loss;
  float most;
  if (label < 0) {
    memset(y, 0, (size_t)n * sizeof *y);
    return;
  }
  const float own = x[label];
  if (berth__cross_entropy_knows_sum(call, row, &loss)) {
    cross_entropy_kernel_spread(y, x, n, own, (float)loss, dy);
    y[label] = (float)(expm1(-loss) * (double)dy); /* p - 1 without cancellation */
    return;
  }
  const double sum = cross_entropy_kernel_sum(x, n, &most);
  const double others = sum - exp((double)own - (double)most); /* the same */
  cross_entropy_kernel_spread(y, x, n, most, 0, (float)((double)dy / sum));
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
      float most;
      loss = log(cross_entropy_kernel_sum(x, n, &most));
      loss += (double)most - (double)x[label];
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
