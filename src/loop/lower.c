/* Which function lowers which op. */
#include "loop/lower.h"

#define BERTH__LOWER(op, function, scratch)                                   \
  berth_status berth__lower_##function(berth__lowering *l, berth_error *err); \
  uint64_t berth__scratch_of_##scratch(const berth_op_call *call, const berth__loop_limits *limits);
#include "loop/lower.def"
#undef BERTH__LOWER

uint64_t berth__scratch_of_none(const berth_op_call *call, const berth__loop_limits *limits) {
  (void)call, (void)limits;
  return 0;
}

static const berth__lower_row rows[BERTH__OP_COUNT] = {
#define BERTH__LOWER(op, function, scratch) [BERTH__OP_##op] = {berth__lower_##function, berth__scratch_of_##scratch},
#include "loop/lower.def"
#undef BERTH__LOWER
};

static const berth__lower_row *find(const berth__op *op) {
  return op->custom == NULL && rows[op->code].lower != NULL ? &rows[op->code] : NULL;
}

bool berth__lower_has(const berth__op *op) { return find(op) != NULL; }

/* Kernels count elements in i32. */
static berth_status check_extents(const berth_op_call *call, berth_error *err) {
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
                         "a tensor has more elements than the 2^31 that kernels of the loop language count");
  }
  return BERTH_OK;
}

/* Attributes that the CPU's rewriting sets for kernels of its own. */
static bool is_for_cpu(const berth_attr *attr) {
  if (strcmp(attr->name, "over") == 0 || strcmp(attr->name, "rounds") == 0) return attr->i != 0;
  return strcmp(attr->name, "to") == 0 && attr->s != NULL && strcmp(attr->s, "bf16") == 0;
}

static berth_status check_attrs(const berth__lowering *lowering, berth_error *err) {
  const berth_op_call *call = lowering->call;
  if (lowering->op->code == BERTH__OP_cast) return BERTH_OK;
  for (uint32_t i = 0; i < call->n_attrs; i++)
    if (is_for_cpu(&call->attrs[i]))
      return berth__fail(err, BERTH_UNSUPPORTED, "the attribute '%s' is for kernels of the CPU", call->attrs[i].name);
  if (lowering->op->code == BERTH__OP_product && call->in[1].type == BERTH_BF16)
    return berth__fail(err, BERTH_UNSUPPORTED, "weights that are packed as bf16 are for kernels of the CPU");
  return BERTH_OK;
}

berth_status berth__lower_call(berth__lowering *lowering, berth_error *err) {
  const berth__lower_row *row = find(lowering->op);
  if (row == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "op '%s' has no kernel in the loop language", lowering->op->name);
  BERTH__TRY(check_attrs(lowering, err));
  BERTH__TRY(check_extents(lowering->call, err));
  return row->lower(lowering, err);
}

void berth__lowering_free(berth__lowering *lowering) {
  for (size_t i = 0; i < lowering->n_kernels; i++) berth__kernel_destroy(lowering->kernels[i]);
  berth__free(lowering->ctx, lowering->kernels);
  lowering->kernels = NULL;
  lowering->n_kernels = lowering->capacity = 0;
}

uint64_t berth__lower_scratch(const berth__op *op, const berth_op_call *call, const berth__loop_limits *limits) {
  const berth__lower_row *row = find(op);
  return row != NULL ? row->scratch(call, limits) : 0;
}
