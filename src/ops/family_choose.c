/* choose: the second operand if the condition is true, the third if it is false; all of it, not element by element. It
 * represents an ONNX If. If the condition is known, binding replaces the choose by the chosen operand and drops the
 * other one. An operand that cannot be made may be left out, with a reason, which a run reports if it would choose
 * it. */
#include <string.h>

#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__CHOOSE_REASON] = {.name = "reason", .kind = BERTH_ATTR_STRING, .s = ""}};

static berth_status check_condition(const berth__infer *infer, berth_error *err) {
  int64_t count;
  if (!berth__infer_has(infer, BERTH__CHOOSE_CONDITION))
    return berth__fail(err, BERTH_INVALID, "the condition is missing");
  BERTH__TRY(berth__want_type(infer, BERTH__CHOOSE_CONDITION, BERTH_BOOL, err));
  if (berth__shape_count(&infer->in_shape[BERTH__CHOOSE_CONDITION], &count) && count != 1)
    return berth__fail(err, BERTH_INVALID, "the condition has %lld elements, but it must have one", (long long)count);
  return BERTH_OK;
}

/* The shape that both have in common; dimensions that differ are open until the condition is known, and at most the
 * larger one. */
static berth_status common_shape(berth__infer *infer, berth_error *err) {
  const berth__shape *a = &infer->in_shape[BERTH__CHOOSE_THEN], *b = &infer->in_shape[BERTH__CHOOSE_ELSE];
  BERTH__TRY(berth__want_same_type(infer, BERTH__CHOOSE_THEN, BERTH__CHOOSE_ELSE, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__CHOOSE_ELSE, a->rank, a->rank, err));
  infer->out_shape[0] = *a;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->dim[i] == b->dim[i]) continue;
    const bool has_bound = infer->wants_bounds && berth__dim_is_fixed(a->dim[i]) && berth__dim_is_fixed(b->dim[i]);
    const int64_t larger = a->dim[i] > b->dim[i] ? a->dim[i] : b->dim[i];
    infer->out_shape[0].dim[i] = has_bound ? larger : BERTH__DIM_UNKNOWN;
  }
  return BERTH_OK;
}

static berth_status choose_infer(berth__infer *infer, berth_error *err) {
  const bool *condition = berth__infer_tensor(infer, BERTH__CHOOSE_CONDITION).data;
  bool has_then = berth__infer_has(infer, BERTH__CHOOSE_THEN), has_else = berth__infer_has(infer, BERTH__CHOOSE_ELSE);
  BERTH__TRY(check_condition(infer, err));
  if (!has_then && !has_else) return berth__fail(err, BERTH_INVALID, "there is nothing to choose from");
  uint32_t one = condition != NULL ? (*condition ? BERTH__CHOOSE_THEN : BERTH__CHOOSE_ELSE)
                 : has_then        ? BERTH__CHOOSE_THEN
                                   : BERTH__CHOOSE_ELSE;
  if (!berth__infer_has(infer, one))
    return berth__fail(err, BERTH_UNSUPPORTED, "the condition is %s, but %s",
                       one == BERTH__CHOOSE_THEN ? "true" : "false", infer->attrs[BERTH__CHOOSE_REASON].s);
  infer->out_type[0] = infer->in_type[one];
  infer->out_shape[0] = infer->in_shape[one];
  return condition == NULL && has_then && has_else ? common_shape(infer, err) : BERTH_OK;
}

static int64_t choose_items(const berth_op_call *call) { return berth__count(&call->out[0]); }

static berth_status choose_kernel(const berth_op_call *call, berth_error *err) {
  const uint32_t one = *(const bool *)call->in[BERTH__CHOOSE_CONDITION].data ? BERTH__CHOOSE_THEN : BERTH__CHOOSE_ELSE;
  const size_t size = berth_type_size(call->out[0].type);
  if (one >= call->n_in || call->in[one].data == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "the condition is %s, but %s",
                       one == BERTH__CHOOSE_THEN ? "true" : "false", call->attrs[BERTH__CHOOSE_REASON].s);
  if (call->in[one].data == call->out[0].data) return BERTH_OK;
  memmove((char *)call->out[0].data + (size_t)call->begin * size,
          (const char *)call->in[one].data + (size_t)call->begin * size, (size_t)(call->end - call->begin) * size);
  return BERTH_OK;
}

const berth__family berth__family_choose = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = choose_infer,
    .items = choose_items,
    .kernel = choose_kernel,
    .valued = 1u << BERTH__CHOOSE_CONDITION,
    .bounded = 1u << BERTH__CHOOSE_CONDITION,
};
