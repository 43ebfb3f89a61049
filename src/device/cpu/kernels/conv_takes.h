/* Which calls the convolution kernels take. */
#ifndef BERTH_DEVICE_CPU_KERNELS_CONV_TAKES_H
#define BERTH_DEVICE_CPU_KERNELS_CONV_TAKES_H

#include "device/cpu/kernels/chain_run.h"
#include "ops/conv_last.h"
#include "ops/operand.h"

/* Required by all convolution kernels: unchanged weights and bias, and a result. */
static inline bool conv_takes_turned(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  if (x->type != BERTH_F32) return false;
  if (x->dim[x->rank - 1] == 0 || berth__count(&call->out[0]) == 0) return false;
  return berth__is_contiguous(&call->in[1]) &&
         (!berth__call_has(call, BERTH__LAST_BIAS) || berth__is_contiguous(&call->in[BERTH__LAST_BIAS]));
}

/* And contiguous channels of x, by all but one. */
static inline bool conv_takes(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  return conv_takes_turned(call) && (x->stride[x->rank - 1] == 1 || x->dim[x->rank - 1] == 1);
}

#endif
