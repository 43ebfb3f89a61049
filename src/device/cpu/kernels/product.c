/* product, with packed or plain weights, and matmul; of f32, f16 and bf16. */
#include "ops/product.h"
#include "ops/epilogue.h"

#include "device/cpu/kernels/product.h"
#include "ops/operand.h"

static bool product_kernel_is_run(const berth_tensor *tensor) { return tensor->dim[0] <= 1 || tensor->stride[0] == 1; }

static bool product_kernel_is_float(berth_type type) {
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16;
}

/* f16 and bf16 are computed in f32. Weights packed as bf16 are stored in pairs and left to product_bf16.c. */
static bool product_kernel_takes(const berth_op_call *call) {
  const int64_t panel = call->attrs[BERTH__PRODUCT_PANEL].i;
  const berth_type type = call->in[1].type;
  if (!product_kernel_is_float(type) || (panel != 0 && type == BERTH_BF16)) return false;
  if (panel != 0 && (panel != VF_PANEL || !berth__is_contiguous(&call->in[1]))) return false;
  if (berth__call_has(call, BERTH__PRODUCT_BIAS) && !product_kernel_is_run(&call->in[BERTH__PRODUCT_BIAS]))
    return false;
  for (uint32_t k = BERTH__EPILOGUE_SUM; k < call->n_in; k++) {
    const berth_type extra = call->in[k].type;
    if (!product_kernel_is_float(extra) && extra != BERTH_BOOL && extra != BERTH_U8 && extra != BERTH_I8 &&
        extra != BERTH_I32)
      return false;
  }
  return true;
}

static bool takes_matmul(const berth_op_call *call) { return product_kernel_is_float(call->in[0].type); }

/* The strides of a stack of matrices over the batch axes of the result. */
static void product_kernel_batch_strides(const berth_tensor *tensor, const berth_tensor *out, uint32_t batch_rank,
                                         int64_t *stride) {
  berth_tensor stack = *tensor;
  stack.rank = tensor->rank > 2 ? tensor->rank - 2 : 0;
  berth__broadcast_strides(&stack, batch_rank, out->dim, stride);
}

/* Whether there is more than can be done in registers. */
static bool has_epilogue(const berth_op_call *call) {
  float low, high;
  if (berth__call_code(call) != BERTH__OP_product) return false;
  return !epilogue_clamp(&call->attrs[BERTH__PRODUCT_CODE], &call->attrs[BERTH__PRODUCT_NUMBERS], &low, &high);
}

/* Vectors, which matmul accepts, are matrices of one row or one column. */
void product_plan(const berth_op_call *call, gemm *g) {
  const berth_tensor *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  const bool is_product = berth__call_code(call) == BERTH__OP_product;
  const bool is_packed = is_product && call->attrs[BERTH__PRODUCT_PANEL].i != 0;
  const uint32_t batch_rank = out->rank - (a->rank > 1 ? 1u : 0u) - (b->rank > 1 ? 1u : 0u);
  int64_t a_batch[BERTH_MAX_RANK], b_batch[BERTH_MAX_RANK];
  product_kernel_batch_strides(a, out, batch_rank, a_batch);
  if (!is_packed) product_kernel_batch_strides(b, out, batch_rank, b_batch);
  gemm_plan(
      &(gemm_shape){
          .batch_rank = batch_rank,
          .batch = out->dim,
          .a_batch = a_batch,
          .b_batch = is_packed ? NULL : b_batch,
          .m = a->rank > 1 ? a->dim[a->rank - 2] : 1,
          .k = a->dim[a->rank - 1],
          .n = is_product    ? call->attrs[BERTH__PRODUCT_COLUMNS].i
               : b->rank > 1 ? b->dim[b->rank - 1]
                             : 1,
          .a_row = a->rank > 1 ? a->stride[a->rank - 2] : 0,
          .a_step = a->stride[a->rank - 1],
          .b_step = b->stride[b->rank > 1 ? b->rank - 2 : 0],
          .b_column = b->rank > 1 ? b->stride[b->rank - 1] : 1,
          .has_epilogue = has_epilogue(call),
          .a_type = a->type,
          .b_type = b->type,
          .out_type = out->type,
      },
      g);
}

static int64_t product_kernel_items(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return gemm_items(&g);
}

static int64_t product_kernel_grain(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return gemm_grain(&g);
}

static uint64_t product_kernel_scratch(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return gemm_scratch(&g);
}

static uint64_t product_kernel_scratch_most(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return gemm_scratch_most(&g);
}

static berth_status product_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth_attr *code = &call->attrs[BERTH__PRODUCT_CODE], *numbers = &call->attrs[BERTH__PRODUCT_NUMBERS];
  const bool adds = call->attrs[BERTH__PRODUCT_ADDS].i != 0;
  const uint32_t first = berth__epilogue_first(&call->attrs[BERTH__PRODUCT_ADDS]),
                 n_extra = call->n_in > first ? call->n_in - first : 0;
  gemm g;
  gemm_data data = {.a = call->in[0].data,
                    .b = call->in[1].data,
                    .bias = berth__call_has(call, BERTH__PRODUCT_BIAS) ? call->in[BERTH__PRODUCT_BIAS].data : NULL,
                    .bias_type = call->n_in > BERTH__PRODUCT_BIAS ? call->in[BERTH__PRODUCT_BIAS].type : BERTH_F32,
                    .sum = adds ? call->in[BERTH__EPILOGUE_SUM].data : NULL,
                    .out = call->out[0].data,
                    .scratch = call->scratch};
  chain_run epilogue;
  (void)err;
  product_plan(call, &g);
  if (!epilogue_clamp(code, numbers, &data.low, &data.high)) {
    data.low = -INFINITY;
    data.high = INFINITY;
    if (epilogue_prepare(&epilogue, call->in + first, n_extra, &call->out[0], code, numbers)) data.epilogue = &epilogue;
  }
  gemm_run(&g, &data, call->begin, call->end);
  return BERTH_OK;
}

static berth_status run_matmul(const berth_op_call *call, berth_error *err) {
  gemm g;
  const gemm_data data = {.a = call->in[0].data,
                          .b = call->in[1].data,
                          .out = call->out[0].data,
                          .low = -INFINITY,
                          .high = INFINITY,
                          .scratch = call->scratch};
  (void)err;
  product_plan(call, &g);
  gemm_run(&g, &data, call->begin, call->end);
  return BERTH_OK;
}

#define FEW_ROWS 8

/* With few rows, reading the weights takes most of the time: a thread that has the same columns in every run finds its
 * share of them in its cache. */
static bool product_kernel_takes_few(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < x->rank; axis++) rows *= x->dim[axis];
  return rows <= FEW_ROWS && call->attrs[BERTH__PRODUCT_PANEL].i != 0 && product_kernel_takes(call);
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_product)[] = {
    {"product", BERTH__OP_product, product_kernel_takes_few, product_kernel_items, product_kernel_grain,
     product_kernel_scratch, product_kernel_run, NULL, true, product_kernel_scratch_most},
    {"product", BERTH__OP_product, product_kernel_takes, product_kernel_items, product_kernel_grain,
     product_kernel_scratch, product_kernel_run, NULL, false, product_kernel_scratch_most},
    {"matmul", BERTH__OP_matmul, takes_matmul, product_kernel_items, product_kernel_grain, product_kernel_scratch,
     run_matmul, NULL, false, product_kernel_scratch_most},
    {0},
};
