/* What kernels of convolutions have in common: which calls they take, and the epilogue: bounds that kernels apply in
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
  if (x->type != BERTH_F32) return false;
  if (x->stride[x->rank - 1] != 1 && x->dim[x->rank - 1] != 1) return false;
  if (x->dim[x->rank - 1] == 0 || berth__count(&call->out[0]) == 0) return false;
  return berth__is_contiguous(&call->in[1]) &&
         (!berth__call_has(call, BERTH__LAST_BIAS) || berth__is_contiguous(&call->in[BERTH__LAST_BIAS]));
}

typedef struct conv_epilogue {
  float low, high; /* infinite where there is nothing to do in registers */
  bool is_chain;
  chain_run chain;
} conv_epilogue;

/* first: of the epilogue's own operands. */
static inline void conv_epilogue_read(conv_epilogue *epilogue, const berth_op_call *call, uint32_t first,
                                      const berth_attr *code, const berth_attr *numbers) {
  const uint32_t n_extra = call->n_in > first ? call->n_in - first : 0;
  epilogue->is_chain = false;
  if (n_extra == 0 && epilogue_clamp(code, numbers, &epilogue->low, &epilogue->high)) return;
  epilogue->low = -INFINITY;
  epilogue->high = INFINITY;
  epilogue->is_chain = epilogue_prepare(&epilogue->chain, call->in + first, n_extra, &call->out[0], code, numbers);
}

/* On pixels whose channels [column, column + n_columns) are computed. */
static inline void conv_epilogue_run(const conv_epilogue *epilogue, int64_t pixel, int64_t n_pixels, int64_t column,
                                     int64_t n_columns) {
  if (epilogue->is_chain) epilogue_rows(&epilogue->chain, pixel, n_pixels, column, n_columns);
}

#endif
