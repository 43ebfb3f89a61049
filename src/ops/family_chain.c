/* chain: a fused run of element-wise steps in f32 (chain.h), whatever the types of operands and result. Operands
 * broadcast to the result's shape. */
#include "ops/chain.h"
#include "ops/elementwise.h"

static const berth_attr attrs_of_chain[] = {
    [BERTH__CHAIN_ATTR_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},
    [BERTH__CHAIN_ATTR_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS},
    [BERTH__CHAIN_ATTR_TYPE] = {.name = "type", .kind = BERTH_ATTR_STRING, .s = "f32"}};

static bool chain_is_taken(berth_type type) {
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16 || type == BERTH_BOOL || type == BERTH_U8 ||
         type == BERTH_I8 || type == BERTH_I32;
}

static berth_status infer_chain(berth__infer *infer, berth_error *err) {
  berth__chain chain;
  const char *name = infer->attrs[BERTH__CHAIN_ATTR_TYPE].s;
  berth__shape shape = infer->in_shape[0];
  BERTH__TRY(berth__chain_read(&infer->attrs[BERTH__CHAIN_ATTR_CODE], &infer->attrs[BERTH__CHAIN_ATTR_NUMBERS],
                               infer->n_in, &chain, err));
  if (chain.n_steps == 0) return berth__fail(err, BERTH_INVALID, "`code` is empty, expected at least one step");
  infer->out_type[0] = name != NULL ? berth_type_from_name(name) : BERTH_TYPE_NONE;
  if (!chain_is_taken(infer->out_type[0]))
    return berth__fail(err, BERTH_INVALID, "attribute 'type' is '%s', expected f32, f16, bf16, bool, u8, i8 or i32",
                       name != NULL ? name : "");
  for (uint32_t i = 0; i < infer->n_in; i++) {
    if (!chain_is_taken(infer->in_type[i]))
      return berth__fail(err, BERTH_INVALID, "operand %u has type %s, expected f32, f16, bf16, bool, u8, i8 or i32", i,
                         berth_type_name(infer->in_type[i]));
    BERTH__TRY(berth__broadcast(&shape, &infer->in_shape[i], &shape, err));
  }
  infer->out_shape[0] = shape;
  return BERTH_OK;
}

static int64_t index_of(const berth_tensor *out, const int64_t *stride, int64_t element) {
  int64_t index = 0;
  for (uint32_t axis = out->rank; axis-- > 0; element /= out->dim[axis])
    index += element % out->dim[axis] * stride[axis];
  return index;
}

static berth_status chain_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *out = &call->out[0];
  int64_t stride[BERTH__CHAIN_OPERANDS][BERTH_MAX_RANK];
  double operand[BERTH__CHAIN_OPERANDS];
  berth__chain chain;
  BERTH__TRY(berth__chain_read(&call->attrs[BERTH__CHAIN_ATTR_CODE], &call->attrs[BERTH__CHAIN_ATTR_NUMBERS],
                               call->n_in, &chain, err));
  for (uint32_t k = 0; k < call->n_in; k++) berth__broadcast_strides(&call->in[k], out->rank, out->dim, stride[k]);
  for (int64_t i = call->begin; i < call->end; i++) {
    for (uint32_t k = 0; k < call->n_in; k++)
      operand[k] = (float)berth__load_f64(&call->in[k], index_of(out, stride[k], i));
    berth__store_f64(out, index_of(out, out->stride, i), berth__chain_value(&chain, operand));
  }
  return BERTH_OK;
}

const berth__family berth__family_chain = {.attrs = attrs_of_chain,
                                           .n_attrs = 3,
                                           .required = 1u << BERTH__CHAIN_ATTR_CODE,
                                           .infer = infer_chain,
                                           .items = berth__items_elements,
                                           .kernel = chain_kernel};
