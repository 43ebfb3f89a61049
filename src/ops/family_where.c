/* where: elements of operand 1 where operand 0 is true, of operand 2 elsewhere; all three broadcast. Elements are moved
 * by size, so their bits are preserved. */
#include "ops/elementwise.h"

static berth_status infer_where(berth__infer *infer, berth_error *err) {
  berth__shape both;
  BERTH__TRY(berth__want_type(infer, 0, BERTH_BOOL, err));
  BERTH__TRY(berth__want_same_type(infer, 1, 2, err));
  infer->out_type[0] = infer->in_type[BERTH__WHERE_A];
  BERTH__TRY(berth__broadcast(&infer->in_shape[BERTH__WHERE_A], &infer->in_shape[BERTH__WHERE_B], &both, err));
  return berth__broadcast(&infer->in_shape[BERTH__WHERE_CONDITION], &both, &infer->out_shape[0], err);
}

#define SELECT(c_type)                                                                       \
  do {                                                                                       \
    c_type *o = (c_type *)call->out[0].data + r->index[0];                                   \
    const c_type *a = (const c_type *)call->in[BERTH__WHERE_A].data + r->index[2];           \
    const c_type *b = (const c_type *)call->in[BERTH__WHERE_B].data + r->index[3];           \
    for (int64_t i = 0; i < r->count; i++)                                                   \
      o[i * r->step[0]] = condition[i * r->step[1]] ? a[i * r->step[2]] : b[i * r->step[3]]; \
  } while (0);                                                                               \
  break

static void select_run(const berth_op_call *call, const berth__runs *r) {
  const uint8_t *condition = (const uint8_t *)call->in[BERTH__WHERE_CONDITION].data + r->index[1];
  switch (berth_type_size(call->out[0].type)) {
    case 1: SELECT(uint8_t);
    case 2: SELECT(uint16_t);
    case 4: SELECT(uint32_t);
    default: SELECT(uint64_t);
  }
}

static berth_status where_kernel(const berth_op_call *call, berth_error *err) {
  berth__runs runs;
  (void)err;
  berth__runs_of_call(&runs, call);
  while (berth__runs_next(&runs)) select_run(call, &runs);
  return BERTH_OK;
}

const berth__family berth__family_where = {
    .infer = infer_where, .items = berth__items_elements, .kernel = where_kernel};
