/* matmul of f32. */
#include "device/cpu/kernels/gemm.h"

static bool takes(const berth_op_call *call) { return call->in[0].type == BERTH_F32; }

/* The strides of a stack of matrices over the batch axes of the result. */
static void batch_strides(const berth_tensor *tensor, const berth_tensor *out, uint32_t batch_rank, int64_t *stride) {
  berth_tensor stack = *tensor;
  stack.rank = tensor->rank > 2 ? tensor->rank - 2 : 0;
  berth__broadcast_strides(&stack, batch_rank, out->dim, stride);
}

static void plan(const berth_op_call *call, gemm *g) {
  const berth_tensor *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  const uint32_t batch_rank = out->rank - (a->rank > 1 ? 1u : 0u) - (b->rank > 1 ? 1u : 0u);
  int64_t a_batch[BERTH_MAX_RANK], b_batch[BERTH_MAX_RANK];
  batch_strides(a, out, batch_rank, a_batch);
  batch_strides(b, out, batch_rank, b_batch);
  gemm_plan(
      &(gemm_shape){
          .batch_rank = batch_rank,
          .batch = out->dim,
          .a_batch = a_batch,
          .b_batch = b_batch,
          .m = a->rank > 1 ? a->dim[a->rank - 2] : 1,
          .k = a->dim[a->rank - 1],
          .n = b->rank > 1 ? b->dim[b->rank - 1] : 1,
          .a_row = a->rank > 1 ? a->stride[a->rank - 2] : 0,
          .a_step = a->stride[a->rank - 1],
          .b_step = b->stride[b->rank > 1 ? b->rank - 2 : 0],
          .b_column = b->rank > 1 ? b->stride[b->rank - 1] : 1,
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
  gemm g;
  const gemm_data data = {.a = call->in[0].data,
                          .b = call->in[1].data,
                          .out = call->out[0].data,
                          .low = -INFINITY,
                          .high = INFINITY,
                          .scratch = call->scratch};
  (void)err;
  plan(call, &g);
  gemm_run(&g, &data, call->begin, call->end);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_matmul)[] = {{.name = "matmul",
                                                                    .code = BERTH__OP_matmul,
                                                                    .takes = takes,
                                                                    .items = items,
                                                                    .grain = grain,
                                                                    .scratch = scratch,
                                                                    .run = run},
                                                                   {0}};
