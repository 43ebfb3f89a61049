#include "ops/epilogue.h"

#include <inttypes.h>

static uint32_t extras(uint32_t n_in, uint32_t first) { return n_in > first ? n_in - first : 0; }

berth_status berth__epilogue_check(const berth__infer *infer, uint32_t first, const berth_attr *code,
                                   const berth_attr *numbers, const berth__shape *out, berth_error *err) {
  const uint32_t n_extra = extras(infer->n_in, first);
  berth__chain chain;
  berth__shape both;
  if (code->count == 0) {
    if (n_extra == 0) return BERTH_OK;
    return berth__fail(err, BERTH_INVALID, "there are %" PRIu32 " operands for the epilogue, but its `code` is empty",
                       n_extra);
  }
  for (uint32_t k = first; k < infer->n_in; k++) {
    char extra[BERTH__SHAPE_TEXT], result[BERTH__SHAPE_TEXT];
    if (infer->in_type[k] == BERTH_TYPE_NONE)
      return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " is left out; every operand of the epilogue is needed",
                         k);
    BERTH__TRY(berth__broadcast(out, &infer->in_shape[k], &both, err));
    bool grows = both.rank != out->rank;
    for (uint32_t axis = 0; axis < out->rank && !grows; axis++)
      grows = berth__dim_is_fixed(out->dim[axis]) && both.dim[axis] != out->dim[axis];
    if (grows)
      return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has shape %s, which is more than the result's %s", k,
                         berth__shape_text(&infer->in_shape[k], extra), berth__shape_text(out, result));
  }
  return berth__chain_read(code, numbers, 1 + n_extra, &chain, err);
}

berth_status berth__epilogue_read(berth__epilogue *epilogue, const berth_op_call *call, uint32_t first,
                                  const berth_attr *code, const berth_attr *numbers, berth_error *err) {
  const uint32_t n_extra = extras(call->n_in, first);
  epilogue->chain = (berth__chain){.n_steps = 0};
  epilogue->out = &call->out[0];
  epilogue->extra = call->in + first;
  if (code->count == 0) return BERTH_OK;
  BERTH__TRY(berth__chain_read(code, numbers, 1 + n_extra, &epilogue->chain, err));
  for (uint32_t k = 0; k < n_extra; k++)
    berth__broadcast_strides(&epilogue->extra[k], epilogue->out->rank, epilogue->out->dim, epilogue->stride[k]);
  return BERTH_OK;
}

double berth__epilogue_value(const berth__epilogue *epilogue, int64_t index, double value) {
  double operand[BERTH__CHAIN_OPERANDS];
  if (epilogue->chain.n_steps == 0) return value;
  operand[0] = value;
  for (uint32_t k = 0; k + 1 < epilogue->chain.n_operands; k++) {
    int64_t rest = index, at = 0;
    for (uint32_t axis = epilogue->out->rank; axis-- > 0; rest /= epilogue->out->dim[axis])
      at += rest % epilogue->out->dim[axis] * epilogue->stride[k][axis];
    operand[1 + k] = berth__load_f64(&epilogue->extra[k], at);
  }
  return berth__chain_value(&epilogue->chain, operand);
}

berth_status berth__epilogue_check_added(const berth__infer *infer, uint32_t sum, const berth__shape *out,
                                         berth_error *err) {
  int64_t same;
  if (infer->n_in <= sum)
    return berth__fail(err, BERTH_INVALID, "`adds` is set, but operand %" PRIu32 " is not there", sum);
  const bool is_narrow = infer->in_type[0] == BERTH_F16 || infer->in_type[0] == BERTH_BF16; /* like the result */
  BERTH__TRY(berth__want_type(infer, sum, is_narrow ? infer->in_type[0] : BERTH_F32, err));
  const berth__shape *shape = &infer->in_shape[sum];
  if (shape->rank != out->rank)
    return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " is added to the result but has another shape", sum);
  for (uint32_t axis = 0; axis < out->rank; axis++)
    BERTH__TRY(berth__same_dim(out->dim[axis], shape->dim[axis], "result and what is added to it", &same, err));
  return BERTH_OK;
}

berth_status berth__epilogue_check_sum(const berth__infer *infer, const berth_attr *adds, const berth__shape *out,
                                       berth_error *err) {
  return adds->i == 0 ? BERTH_OK : berth__epilogue_check_added(infer, BERTH__EPILOGUE_SUM, out, err);
}
