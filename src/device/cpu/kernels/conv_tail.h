/* What kernels of convolutions have in common: which calls they take, and the tail: bounds that kernels apply in
 * registers, or a chain over finished pixels. */
#ifndef BERTH_DEVICE_CPU_KERNELS_CONV_TAIL_H
#define BERTH_DEVICE_CPU_KERNELS_CONV_TAIL_H

#include "device/cpu/kernels/chain_run.h"
#include "ops/conv_last.h"
#include "ops/operand.h"

/* What all kernels of convolutions want: channels of x that lie one after the other, weights and bias as they were
 * made, and a result. */
static inline bool conv_takes(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  if (x->stride[x->rank - 1] != 1 && x->dim[x->rank - 1] != 1) return false;
  if (x->dim[x->rank - 1] == 0 || berth__count(&call->out[0]) == 0) return false;
  return berth__is_contiguous(&call->in[1]) &&
         (!berth__call_has(call, BERTH__LAST_BIAS) || berth__is_contiguous(&call->in[BERTH__LAST_BIAS]));
}

typedef struct conv_tail {
  float low, high; /* infinite where there is nothing to do in registers */
  bool is_chain;
  chain_run chain;
} conv_tail;

/* first: of the tail's own operands. */
static inline void conv_tail_read(conv_tail *tail, const berth_op_call *call, uint32_t first, const berth_attr *code,
                                  const berth_attr *numbers) {
  const uint32_t n_extra = call->n_in > first ? call->n_in - first : 0;
  tail->is_chain = false;
  if (n_extra == 0 && tail_clamp(code, numbers, &tail->low, &tail->high)) return;
  tail->low = -INFINITY;
  tail->high = INFINITY;
  tail->is_chain = tail_prepare(&tail->chain, call->in + first, n_extra, &call->out[0], code, numbers);
}

/* On pixels whose channels [column, column + n_columns) are computed. */
static inline void conv_tail_run(const conv_tail *tail, int64_t pixel, int64_t n_pixels, int64_t column,
                                 int64_t n_columns) {
  if (tail->is_chain) tail_rows(&tail->chain, pixel, n_pixels, column, n_columns);
}

#endif
