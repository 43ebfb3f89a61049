/* non_zero: where the elements are that are not 0, one column each, in order. How many columns there are depends on
 * them; where only a run knows them, as many are planned as there are elements. */
#include "ops/operand.h"
#include "ops/registry.h"

static bool is_set(const berth_tensor *x, int64_t i) {
  return berth__type_is_float(x->type) ? berth__load_f64(x, i) != 0 : berth__load_i64(x, i) != 0;
}

static berth_status non_zero_infer(berth__infer *infer, berth_error *err) {
  const berth_tensor x = berth__infer_tensor(infer, 0);
  int64_t count = 0, columns = 0;
  (void)err;
  infer->out_type[0] = BERTH_I64;
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {infer->in_shape[0].rank, BERTH__DIM_UNKNOWN}};
  if (!berth__shape_count(&infer->in_shape[0], &count) || (x.data == NULL && !infer->wants_bounds)) return BERTH_OK;
  if (x.data == NULL) columns = count;
  for (int64_t i = 0; x.data != NULL && i < count; i++) columns += is_set(&x, i);
  infer->out_shape[0].dim[1] = columns;
  return BERTH_OK;
}

static berth_status non_zero_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0];
  const int64_t n = berth__count(x), columns = call->out[0].dim[1];
  int64_t *out = call->out[0].data, column = 0;
  (void)err;
  for (int64_t i = 0; i < n && column < columns; i++) {
    if (!is_set(x, i)) continue;
    int64_t rest = i;
    for (uint32_t axis = x->rank; axis-- > 0; rest /= x->dim[axis]) out[axis * columns + column] = rest % x->dim[axis];
    column++;
  }
  return BERTH_OK;
}

const berth__family berth__family_non_zero = {
    .infer = non_zero_infer, .kernel = non_zero_kernel, .valued = 1u, .bounded = 1u};
