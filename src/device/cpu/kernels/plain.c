/* Ops whose kernel of src/ops is the fast one: it moves whole lines, works block by block, spends its time in the C
 * library's functions, or has a few elements to look at. bench/ops measures them like all others. This table is asked
 * last (cmake/Kernels.cmake). */
#include "device/cpu/kernels/vec.h"

static int64_t plain_items(const berth_op_call *call) { return berth__op_items(call->user, call); }

static uint64_t plain_scratch(const berth_op_call *call) {
  const berth__family *family = ((const berth__op *)call->user)->family;
  return family->scratch != NULL ? family->scratch(call) : 0;
}

static berth_status plain_run(const berth_op_call *call, berth_error *err) {
  return ((const berth__op *)call->user)->family->kernel(call, err);
}

#define PLAIN(op) \
  { .name = #op " plain", .code = BERTH__OP_##op, .items = plain_items, .scratch = plain_scratch, .run = plain_run }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_plain)[] = {
    /* lines */
    PLAIN(gather),
    PLAIN(embedding),
    PLAIN(tile),
    PLAIN(pad),
    PLAIN(choose),
    PLAIN(unpack),
    PLAIN(cumsum),
    PLAIN(cumprod),
    PLAIN(bitcast),
    PLAIN(scatter),
    PLAIN(scatter_nd),
    PLAIN(rope),
    PLAIN(pack_weights_i8),
    PLAIN(quantize),
    PLAIN(dequantize),
    PLAIN(reduce_sum),
    PLAIN(reduce_mean),
    PLAIN(reduce_max),
    PLAIN(reduce_min),
    PLAIN(reduce_prod),
    PLAIN(arg_max),
    PLAIN(arg_min),
    /* functions of the C library, block by block, and what few models have */
    PLAIN(tan),
    PLAIN(asin),
    PLAIN(acos),
    PLAIN(atan),
    PLAIN(sinh),
    PLAIN(cosh),
    PLAIN(asinh),
    PLAIN(acosh),
    PLAIN(atanh),
    PLAIN(exp),
    PLAIN(log),
    PLAIN(sin),
    PLAIN(cos),
    PLAIN(tanh),
    PLAIN(expm1),
    PLAIN(softplus),
    PLAIN(sigmoid),
    PLAIN(gelu),
    PLAIN(gelu_tanh),
    PLAIN(silu),
    PLAIN(erf),
    PLAIN(pow),
    PLAIN(mod),
    PLAIN(clamp),
    PLAIN(cast),
    PLAIN(random_uniform),
    PLAIN(random_normal),
    PLAIN(det),
    PLAIN(dft),
    /* searches and samples */
    PLAIN(top_k),
    PLAIN(non_zero),
    PLAIN(unique),
    PLAIN(non_max_suppression),
    PLAIN(ngrams),
    PLAIN(grid_sample),
    PLAIN(roi_align),
    PLAIN(max_roi_pool),
    PLAIN(max_unpool),
    PLAIN(deform_conv),
    /* a few elements */
    PLAIN(shape),
    PLAIN(size),
    PLAIN(range),
    PLAIN(loop_begin),
    PLAIN(loop_end),
    {0},
};
