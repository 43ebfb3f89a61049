/* Comparisons of two operands of the same type, with numpy broadcasting; the result is bool. Comparisons with NaN are
 * false, except ne. */
#include "ops/elementwise.h"

#define LOOP(name, c_type, operator)                                                     \
  static void name(void *out, const void *const *in, int64_t count, const void *state) { \
    const c_type *a = in[0], *b = in[1];                                                 \
    int64_t *restrict o = out;                                                           \
    (void)state;                                                                         \
    for (int64_t i = 0; i < count; i++) o[i] = a[i] operator b[i];                       \
  }

#define COMPARE(name, operator)             \
  LOOP(name##_block_f32, float, operator)   \
  LOOP(name##_block_f64, double, operator)  \
  LOOP(name##_block_i64, int64_t, operator) \
  LOOP(name##_block_u64, uint64_t, operator)

COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

#define ROW(name) [BERTH__OP_##name] = {name##_block_f32, name##_block_f64, name##_block_i64, name##_block_u64}
static const berth__block_fn table[BERTH__OP_COUNT][BERTH__CLASSES] = {ROW(eq), ROW(ne), ROW(lt),
                                                                       ROW(le), ROW(gt), ROW(ge)};

static berth_status infer_compare(berth__infer *infer, berth_error *err) {
  BERTH__TRY(berth__want_same_type(infer, 0, 1, err));
  infer->out_type[0] = BERTH_BOOL;
  return berth__broadcast(&infer->in_shape[0], &infer->in_shape[1], &infer->out_shape[0], err);
}

static berth_status compare_kernel(const berth_op_call *call, berth_error *err) {
  berth__class cls = berth__class_of(call->in[0].type);
  (void)err;
  berth__map_blocks(call, cls, BERTH__CLASS_I64, table[berth__call_code(call)][cls], NULL);
  return BERTH_OK;
}

const berth__family berth__family_compare = {
    .infer = infer_compare, .items = berth__items_elements, .kernel = compare_kernel};
