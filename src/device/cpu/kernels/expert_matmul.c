/* Products with the experts of each row, f32: a dot product for each element of the result. Weights in blocks are
 * unpacked a row at a time, into scratch. */
#include "base/blocks.h"
#include "base/storage.h"
#include "device/cpu/kernels/vec.h"
#include "ops/operand.h"

static bool experts_kernel_takes(const berth_op_call *call) {
  const berth_type weights = call->in[BERTH__EXPERTS_WEIGHTS].type;
  return call->in[BERTH__EXPERTS_X].type == BERTH_F32 && (weights == BERTH_F32 || berth__type_is_block(weights));
}

static int64_t experts_kernel_items(const berth_op_call *call) { return berth__count(&call->out[0]); }

static uint64_t experts_kernel_scratch(const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__EXPERTS_WEIGHTS];
  return berth__type_is_block(w->type) ? (uint64_t)w->dim[2] * sizeof(float) : 0;
}

/* Multiplications that are worth waking a thread for. */
#define WORTH 100000

static int64_t experts_kernel_grain(const berth_op_call *call) {
  return WORTH / (call->in[BERTH__EXPERTS_WEIGHTS].dim[2] + 1) + 1;
}

static const float *experts_kernel_row(const berth_tensor *w, int64_t row, float *scratch) {
  const int64_t columns = w->dim[2];
  if (w->type == BERTH_F32) return (const float *)w->data + row * columns;
  const uint64_t at = berth__storage_size(berth_type_storage(w->type), (uint64_t)(row * columns));
  berth__blocks_decode(w->type, (const uint8_t *)w->data + at, (uint64_t)columns, scratch);
  return scratch;
}

static float experts_kernel_dot(const float *a, const float *b, int64_t n) {
  vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
  int64_t i = 0;
  for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
    for (int k = 0; k < 4; k++) sum[k] = vf_fma(vf_load(a + i + k * VF_LANES), vf_load(b + i + k * VF_LANES), sum[k]);
  for (; i < n; i += VF_LANES)
    sum[0] = vf_fma(vf_load_n(a + i, vf_tail(n - i)), vf_load_n(b + i, vf_tail(n - i)), sum[0]);
  return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static berth_status experts_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__EXPERTS_X], *w = &call->in[BERTH__EXPERTS_WEIGHTS];
  const int64_t columns = w->dim[2], n = w->dim[1], uses = call->out[0].dim[1];
  float *out = call->out[0].data;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t use = item / n, source = x->rank == 3 ? use : use / uses;
    const int64_t expert = berth__load_i64(&call->in[BERTH__EXPERTS_WHICH], use);
    if (expert < 0 || expert >= w->dim[0])
      return berth__fail(err, BERTH_INVALID, "there is no expert %lld among %lld", (long long)expert,
                         (long long)w->dim[0]);
    out[item] = experts_kernel_dot((const float *)x->data + source * columns,
                                   experts_kernel_row(w, expert * n + item % n, call->scratch), columns);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_expert_matmul)[] = {
    {.name = "experts",
     .code = BERTH__OP_expert_matmul,
     .takes = experts_kernel_takes,
     .items = experts_kernel_items,
     .grain = experts_kernel_grain,
     .scratch = experts_kernel_scratch,
     .run = experts_kernel_run},
    {0},
};
