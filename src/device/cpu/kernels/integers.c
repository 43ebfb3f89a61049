/* Arithmetic and comparisons of i32 and i64, which f32 has no room for: plain loops that compilers turn into vectors.
 */
#include "device/cpu/kernels/vec.h"
#include "ops/elementwise.h"

#define ITEM 16384 /* elements */

/* n elements of a and b, each one after the other (step 1) or of some other step. */
typedef void (*loop)(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n);

#define EACH(element, result, expression, load_x, load_y) \
  for (int64_t i = 0; i < n; i++) {                       \
    const element x = (load_x), y = (load_y);             \
    o[i] = (result)(expression);                          \
  }

#define LOOP(name, element, result, expression)                                                          \
  static void name(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n) { \
    const element *p = a, *q = b;                                                                        \
    const element first_x = p[0], first_y = q[0];                                                        \
    result *o = out;                                                                                     \
    if (step_a == 1 && step_b == 1)                                                                      \
      EACH(element, result, expression, p[i], q[i])                                                      \
    else if (step_a == 1 && step_b == 0)                                                                 \
      EACH(element, result, expression, p[i], first_y)                                                   \
    else if (step_a == 0 && step_b == 1)                                                                 \
      EACH(element, result, expression, first_x, q[i])                                                   \
    else                                                                                                 \
      EACH(element, result, expression, p[i * step_a], q[i * step_b])                                    \
  }

#define BOTH(name, expression_32, expression_64)    \
  LOOP(name##_i32, int32_t, int32_t, expression_32) \
  LOOP(name##_i64, int64_t, int64_t, expression_64)
#define COMPARE(name, operator)                    \
  LOOP(name##_i32, int32_t, uint8_t, x operator y) \
  LOOP(name##_i64, int64_t, uint8_t, x operator y)

/* Sums and products wrap. */
BOTH(add, (uint32_t)x + (uint32_t)y, (uint64_t)x + (uint64_t)y)
BOTH(sub, (uint32_t)x - (uint32_t)y, (uint64_t)x - (uint64_t)y)
BOTH(mul, (uint32_t)x *(uint32_t)y, (uint64_t)x *(uint64_t)y)
BOTH(min, x < y ? x : y, x < y ? x : y)
BOTH(max, x > y ? x : y, x > y ? x : y)
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

#define ROW(op) [BERTH__OP_##op] = {op##_i32, op##_i64}
static const loop loops[BERTH__OP_COUNT][2] = {ROW(add), ROW(sub), ROW(mul), ROW(min), ROW(max), ROW(eq),
                                               ROW(ne),  ROW(lt),  ROW(le),  ROW(gt),  ROW(ge)};
#undef ROW

static bool integers_kernel_takes(const berth_op_call *call) {
  const berth_type type = call->in[0].type;
  return type == BERTH_I32 || type == BERTH_I64;
}

static int64_t integers_kernel_items(const berth_op_call *call) {
  return (berth__count(&call->out[0]) + ITEM - 1) / ITEM;
}

static char *at(const berth_tensor *tensor, int64_t index) {
  return (char *)tensor->data + index * (int64_t)berth_type_size(tensor->type);
}

static berth_status integers_kernel_run(const berth_op_call *call, berth_error *err) {
  const loop each = loops[berth__call_code(call)][call->in[0].type == BERTH_I64];
  const int64_t count = berth__count(&call->out[0]);
  berth_op_call elements = *call;
  berth__runs runs;
  (void)err;
  elements.begin = call->begin * ITEM;
  elements.end = call->end * ITEM < count ? call->end * ITEM : count;
  berth__runs_of_call(&runs, &elements);
  while (berth__runs_next(&runs))
    each(at(&call->out[0], runs.index[0]), at(&call->in[0], runs.index[1]), runs.step[1],
         at(&call->in[1], runs.index[2]), runs.step[2], runs.count);
  return BERTH_OK;
}

#define ROW(op)                                                                                          \
  {                                                                                                      \
    .name = #op, .code = BERTH__OP_##op, .takes = integers_kernel_takes, .items = integers_kernel_items, \
    .run = integers_kernel_run                                                                           \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_integers)[] = {
    ROW(add), ROW(sub), ROW(mul), ROW(min), ROW(max), ROW(eq), ROW(ne), ROW(lt), ROW(le), ROW(gt), ROW(ge), {0},
};
