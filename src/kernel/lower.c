/* Which function lowers which op. */
#include "kernel/lower.h"

#include "base/blocks.h"

#define BERTH_OP(op, tier, family, in0, in1, out0, out1, in_place, strided, function, scratch) \
  berth_status berth__lower_##function(berth__lowering *l, berth_error *err);                  \
  uint64_t berth__scratch_of_##scratch(const berth_op_call *call, const berth__kernel_limits *limits);
#include "ops/ops.def"

uint64_t berth__scratch_of_none(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)call, (void)limits;
  return 0;
}

berth_status berth__lower_none(berth__lowering *l, berth_error *err) {
  return berth__fail(err, BERTH_UNSUPPORTED, "op '%s' has no kernel in the kernel language", l->op->name);
}

static const berth__lower_row rows[BERTH__OP_COUNT] = {
#define BERTH_OP(op, tier, family, in0, in1, out0, out1, in_place, strided, function, scratch) \
  [BERTH__OP_##op] = {berth__lower_##function, berth__scratch_of_##scratch},
#include "ops/ops.def"
};

static const berth__lower_row *kernel_lower_find(const berth__op *op) {
  return op->custom == NULL && rows[op->code].lower != berth__lower_none ? &rows[op->code] : NULL;
}

bool berth__lower_has(const berth__op *op) { return kernel_lower_find(op) != NULL; }

/* A byte of a block is addressed by its number, and read with its whole word. */
#define MOST_BLOCK_BYTES ((uint64_t)INT32_MAX - 16)

static bool kernel_lower_has_far_bytes(const berth_tensor *tensor, int64_t last) {
  return berth__type_is_block(tensor->type) &&
         berth_storage_bytes(berth_type_storage(tensor->type), (uint64_t)last + 1) > MOST_BLOCK_BYTES;
}

/* Kernels count elements in i32. */
static berth_status kernel_lower_check_extents(const berth_op_call *call, berth_error *err) {
  for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
    const berth_tensor *tensor = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
    int64_t last = 0;
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
      const int64_t step = tensor->stride[axis] < 0 ? -tensor->stride[axis] : tensor->stride[axis];
      if (tensor->dim[axis] > INT32_MAX || step > INT32_MAX) last = INT32_MAX;
      if (last < INT32_MAX && tensor->dim[axis] > 0) last += (tensor->dim[axis] - 1) * step;
    }
    if (last >= INT32_MAX || (tensor->type != BERTH_TYPE_NONE && berth__count(tensor) > INT32_MAX))
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "a tensor has more elements than the 2^31 that kernels of the kernel language count");
    if (kernel_lower_has_far_bytes(tensor, last))
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "blocks have more bytes than the 2^31 that kernels of the kernel language count");
  }
  return BERTH_OK;
}

berth_status berth__lower_call(berth__lowering *lowering, berth_error *err) {
  const berth__lower_row *row = kernel_lower_find(lowering->op);
  if (row == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "op '%s' has no kernel in the kernel language", lowering->op->name);
  BERTH__TRY(kernel_lower_check_extents(lowering->call, err));
  return row->lower(lowering, err);
}

void berth__lowering_free(berth__lowering *lowering) {
  for (size_t i = 0; i < lowering->n_kernels; i++) berth__kernel_destroy(lowering->kernels[i]);
  berth__free(lowering->ctx, lowering->kernels);
  lowering->kernels = NULL;
  lowering->n_kernels = lowering->capacity = 0;
}

uint64_t berth__lower_scratch(const berth__op *op, const berth_op_call *call, const berth__kernel_limits *limits) {
  const berth__lower_row *row = kernel_lower_find(op);
  return row != NULL ? row->scratch(call, limits) : 0;
}
