/* product, with packed weights or plain ones. */
#include "ops/product.h"
#include "ops/tail.h"

#include "device/cpu/kernels/gemm.h"
#include "ops/operand.h"

static bool is_run(const berth_tensor *tensor) { return tensor->dim[0] <= 1 || tensor->stride[0] == 1; }

static bool takes(const berth_op_call *call) {
  const int64_t panel = call->attrs[BERTH__PRODUCT_PANEL].i;
  if (call->in[1].type != BERTH_F32) return false;
  if (panel != 0 && (panel != VF_PANEL || !berth__is_contiguous(&call->in[1]))) return false;
  if (berth__call_has(call, BERTH__PRODUCT_BIAS) && !is_run(&call->in[BERTH__PRODUCT_BIAS])) return false;
  for (uint32_t k = BERTH__TAIL_SUM; k < call->n_in; k++) {
    const berth_type type = call->in[k].type;
    if (type != BERTH_F32 && type != BERTH_BOOL && type != BERTH_U8 && type != BERTH_I8 && type != BERTH_I32)
      return false;
  }
  return true;
}

static void batch_strides(const berth_tensor *tensor, const berth_tensor *out, int64_t *stride) {
  berth_tensor stack = *tensor;
  stack.rank -= 2;
  berth__broadcast_strides(&stack, out->rank - 2, out->dim, stride);
}

static void plan(const berth_op_call *call, gemm *g) {
  const berth_tensor *x = &call->in[0], *w = &call->in[1], *out = &call->out[0];
  const bool is_packed = call->attrs[BERTH__PRODUCT_PANEL].i != 0;
  int64_t x_batch[BERTH_MAX_RANK], w_batch[BERTH_MAX_RANK];
  float low, high;
  batch_strides(x, out, x_batch);
  if (!is_packed) batch_strides(w, out, w_batch);
  gemm_plan(
      &(gemm_shape){
          .batch_rank = out->rank - 2,
          .batch = out->dim,
          .a_batch = x_batch,
          .b_batch = is_packed ? NULL : w_batch,
          .m = out->dim[out->rank - 2],
          .k = x->dim[x->rank - 1],
          .n = out->dim[out->rank - 1],
          .a_row = x->stride[x->rank - 2],
          .a_step = x->stride[x->rank - 1],
          .b_step = w->stride[w->rank - 2],
          .b_column = w->stride[w->rank - 1],
          .has_tail = !tail_clamp(&call->attrs[BERTH__PRODUCT_CODE], &call->attrs[BERTH__PRODUCT_NUMBERS], &low, &high),
      },
      g);
}

static int64_t items(const berth_op_call *call) {
  gemm g;
  plan(call, &g);
  return gemm_items(&g);
}

static int64_t grain(const berth_op_call *call) {
  gemm g;
  plan(call, &g);
  return gemm_grain(&g);
}

static uint64_t scratch(const berth_op_call *call) {
  gemm g;
  plan(call, &g);
  return gemm_scratch(&g);
}

static berth_status run(const berth_op_call *call, berth_error *err) {
  const berth_attr *code = &call->attrs[BERTH__PRODUCT_CODE], *numbers = &call->attrs[BERTH__PRODUCT_NUMBERS];
  const bool adds = call->attrs[BERTH__PRODUCT_ADDS].i != 0;
  const uint32_t first = berth__tail_first(&call->attrs[BERTH__PRODUCT_ADDS]),
                 n_extra = call->n_in > first ? call->n_in - first : 0;
  gemm g;
  gemm_data data = {.a = call->in[0].data,
                    .b = call->in[1].data,
                    .bias = berth__call_has(call, BERTH__PRODUCT_BIAS) ? call->in[BERTH__PRODUCT_BIAS].data : NULL,
                    .sum = adds ? call->in[BERTH__TAIL_SUM].data : NULL,
                    .out = call->out[0].data,
                    .scratch = call->scratch};
  chain_run tail;
  (void)err;
  plan(call, &g);
  if (!tail_clamp(code, numbers, &data.low, &data.high)) {
    data.low = -INFINITY;
    data.high = INFINITY;
    if (tail_prepare(&tail, call->in + first, n_extra, &call->out[0], code, numbers)) data.tail = &tail;
  }
  gemm_run(&g, &data, call->begin, call->end);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_product)[] = {{.name = "product",
                                                                     .code = BERTH__OP_product,
                                                                     .takes = takes,
                                                                     .items = items,
                                                                     .grain = grain,
                                                                     .scratch = scratch,
                                                                     .run = run},
                                                                    {0}};
