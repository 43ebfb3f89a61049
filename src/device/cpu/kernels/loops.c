/* Element-wise ops of the types that chains of f32 have no room for, and of bool and bytes, which are faster as they
 * are: plain loops that compilers turn into vectors. */
#include <math.h>

#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/vec.h"
#include "ops/elementwise.h"

#define ITEM 16384 /* elements */

/* n elements of a and b, each one after the other (step 1) or of some other step; ops of one operand pass over b. */
typedef void (*loop)(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n);

#define EACH(element, result, expression, load_x, load_y) \
  for (int64_t i = 0; i < n; i++) {                       \
    const element x = (load_x), y = (load_y);             \
    o[i] = (result)(expression);                          \
  }

#define LOOP(name, element, result, expression)                                                                 \
  static void loop_##name(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n) { \
    const element *p = a, *q = b;                                                                               \
    const element first_x = p[0], first_y = q[0];                                                               \
    result *o = out;                                                                                            \
    if (step_a == 1 && step_b == 1)                                                                             \
      EACH(element, result, expression, p[i], q[i])                                                             \
    else if (step_a == 1 && step_b == 0)                                                                        \
      EACH(element, result, expression, p[i], first_y)                                                          \
    else if (step_a == 0 && step_b == 1)                                                                        \
      EACH(element, result, expression, first_x, q[i])                                                          \
    else                                                                                                        \
      EACH(element, result, expression, p[i * step_a], q[i * step_b])                                           \
  }

#define ONE(name, element, result, expression)                                                                  \
  static void loop_##name(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n) { \
    const element *p = a;                                                                                       \
    result *o = out;                                                                                            \
    (void)b;                                                                                                    \
    (void)step_b;                                                                                               \
    BERTH__EACH_ONE(element, result, expression, step_a)                                                        \
  }

/* ---- Arithmetic ----------------------------------------------------------------------------------------------- */

#define COMPARE(type, element)              \
  LOOP(eq_##type, element, uint8_t, x == y) \
  LOOP(ne_##type, element, uint8_t, x != y) \
  LOOP(lt_##type, element, uint8_t, x < y)  \
  LOOP(le_##type, element, uint8_t, x <= y) \
  LOOP(gt_##type, element, uint8_t, x > y)  \
  LOOP(ge_##type, element, uint8_t, x >= y)

/* Sums and products wrap, so they are taken without a sign, in `wide`. */
#define INTEGERS(type, element, wide)                   \
  LOOP(add_##type, element, element, (wide)x + (wide)y) \
  LOOP(sub_##type, element, element, (wide)x - (wide)y) \
  LOOP(mul_##type, element, element, (wide)x *(wide)y)  \
  LOOP(min_##type, element, element, x < y ? x : y)     \
  LOOP(max_##type, element, element, x > y ? x : y)     \
  LOOP(and_##type, element, element, x &y)              \
  LOOP(or_##type, element, element, x | y)              \
  LOOP(xor_##type, element, element, x ^ y)             \
  ONE(not_##type, element, element, ~x)                 \
  ONE(neg_##type, element, element, (wide)0 - (wide)x)  \
  COMPARE(type, element)

/* Dividing by -1 is negation, which wraps for the one quotient that does not fit. */
#define SIGNED(type, element, wide)                                                                                    \
  INTEGERS(type, element, wide)                                                                                        \
  LOOP(div_##type, element, element, y == 0 ? 0 : y == -1 ? (element)((wide)0 - (wide)x) : x / y)                      \
  LOOP(fmod_##type, element, element, y == 0 || y == -1 ? 0 : x % y)                                                   \
  LOOP(mod_##type, element, element, y == 0 || y == -1 ? 0 : x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y) \
  ONE(abs_##type, element, element, x < 0 ? (element)((wide)0 - (wide)x) : x)                                          \
  ONE(relu_##type, element, element, x < 0 ? 0 : x)                                                                    \
  ONE(sign_##type, element, element, (x > 0) - (x < 0))

#define UNSIGNED(type, element, wide)                     \
  INTEGERS(type, element, wide)                           \
  LOOP(div_##type, element, element, y == 0 ? 0 : x / y)  \
  LOOP(mod_##type, element, element, y == 0 ? 0 : x % y)  \
  LOOP(fmod_##type, element, element, y == 0 ? 0 : x % y) \
  ONE(abs_##type, element, element, x)                    \
  ONE(relu_##type, element, element, x)                   \
  ONE(sign_##type, element, element, x != 0)

SIGNED(i8, int8_t, uint32_t)
SIGNED(i16, int16_t, uint32_t)
SIGNED(i32, int32_t, uint32_t)
SIGNED(i64, int64_t, uint64_t)
UNSIGNED(u8, uint8_t, uint32_t)
UNSIGNED(u16, uint16_t, uint32_t)
UNSIGNED(u32, uint32_t, uint32_t)
UNSIGNED(u64, uint64_t, uint64_t)

/* What is not 0 is true. */
LOOP(and_bool, uint8_t, uint8_t, (x != 0) & (y != 0))
LOOP(or_bool, uint8_t, uint8_t, (x | y) != 0)
LOOP(xor_bool, uint8_t, uint8_t, (x != 0) != (y != 0))
LOOP(eq_bool, uint8_t, uint8_t, (x != 0) == (y != 0))
LOOP(lt_bool, uint8_t, uint8_t, (x != 0) < (y != 0))
LOOP(le_bool, uint8_t, uint8_t, (x != 0) <= (y != 0))
LOOP(gt_bool, uint8_t, uint8_t, (x != 0) > (y != 0))
LOOP(ge_bool, uint8_t, uint8_t, (x != 0) >= (y != 0))
ONE(not_bool, uint8_t, uint8_t, x == 0)

LOOP(add_f64, double, double, x + y)
LOOP(sub_f64, double, double, x - y)
LOOP(mul_f64, double, double, x *y)
LOOP(div_f64, double, double, x / y)
LOOP(min_f64, double, double, x < y || x != x ? x : y) /* a NaN on either side comes out */
LOOP(max_f64, double, double, x > y || x != x ? x : y)
ONE(neg_f64, double, double, -x)
ONE(abs_f64, double, double, fabs(x))
ONE(relu_f64, double, double, x < 0 ? 0 : x)
ONE(sign_f64, double, double, x > 0 ? 1 : x < 0 ? -1 : x)
ONE(sqrt_f64, double, double, sqrt(x))
ONE(rsqrt_f64, double, double, 1 / sqrt(x))
ONE(reciprocal_f64, double, double, 1 / x)
ONE(round_f64, double, double, rint(x))
ONE(floor_f64, double, double, floor(x))
ONE(ceil_f64, double, double, ceil(x))
COMPARE(f64, double)

/* Types in the order of a row. */
enum {
  LOOPS_I8,
  LOOPS_U8,
  LOOPS_I16,
  LOOPS_U16,
  LOOPS_I32,
  LOOPS_U32,
  LOOPS_I64,
  LOOPS_U64,
  LOOPS_BOOL,
  LOOPS_F64,
  LOOPS_TYPES
};

static int loops_type(berth_type type) {
  switch (type) {
    case BERTH_I8: return LOOPS_I8;
    case BERTH_U8: return LOOPS_U8;
    case BERTH_I16: return LOOPS_I16;
    case BERTH_U16: return LOOPS_U16;
    case BERTH_I32: return LOOPS_I32;
    case BERTH_U32: return LOOPS_U32;
    case BERTH_I64: return LOOPS_I64;
    case BERTH_U64: return LOOPS_U64;
    case BERTH_BOOL: return LOOPS_BOOL;
    case BERTH_F64: return LOOPS_F64;
    default: return -1;
  }
}

#define OF_INTEGERS(op)                                                                                                \
  loop_##op##_i8, loop_##op##_u8, loop_##op##_i16, loop_##op##_u16, loop_##op##_i32, loop_##op##_u32, loop_##op##_i64, \
      loop_##op##_u64
#define NUMBERS(op) [BERTH__OP_##op] = {OF_INTEGERS(op), NULL, loop_##op##_f64}
#define BITS(op) [BERTH__OP_##op] = {OF_INTEGERS(op), loop_##op##_bool}
#define ORDER(op) [BERTH__OP_##op] = {OF_INTEGERS(op), loop_##op##_bool, loop_##op##_f64}
#define FLOATS(op) [BERTH__OP_##op] = {[LOOPS_F64] = loop_##op##_f64}
#define loop_ne_bool loop_xor_bool
static const loop loops[BERTH__OP_COUNT][LOOPS_TYPES] = {
    NUMBERS(add),  NUMBERS(sub),       NUMBERS(mul),
    NUMBERS(div),  NUMBERS(min),       NUMBERS(max),
    NUMBERS(neg),  NUMBERS(abs),       NUMBERS(relu),
    NUMBERS(sign), BITS(and),          BITS(or),
    BITS(xor),     BITS(not ),         ORDER(eq),
    ORDER(ne),     ORDER(lt),          ORDER(le),
    ORDER(gt),     ORDER(ge),          FLOATS(sqrt),
    FLOATS(rsqrt), FLOATS(round),      FLOATS(floor),
    FLOATS(ceil),  FLOATS(reciprocal), [BERTH__OP_mod] = {OF_INTEGERS(mod)},
};
static const loop loops_of_fmod[LOOPS_TYPES] = {OF_INTEGERS(fmod)};

static loop loops_find(const berth_op_call *call) {
  const berth__op_code op = berth__call_code(call);
  const int type = loops_type(call->in[0].type);
  if (type < 0) return NULL;
  return op == BERTH__OP_mod && call->attrs[BERTH__BINARY_FMOD].i != 0 ? loops_of_fmod[type] : loops[op][type];
}

static bool loops_kernel_takes(const berth_op_call *call) { return loops_find(call) != NULL; }

static int64_t loops_kernel_items(const berth_op_call *call) { return (berth__count(&call->out[0]) + ITEM - 1) / ITEM; }

static char *loops_at(const berth_tensor *tensor, int64_t index) {
  return (char *)tensor->data + index * (int64_t)berth_type_size(tensor->type);
}

/* The elements of a range of items. */
static void loops_runs(const berth_op_call *call, berth__runs *runs) {
  const int64_t count = berth__count(&call->out[0]);
  berth_op_call elements = *call;
  elements.begin = call->begin * ITEM;
  elements.end = call->end * ITEM < count ? call->end * ITEM : count;
  berth__runs_of_call(runs, &elements);
}

static berth_status loops_kernel_run(const berth_op_call *call, berth_error *err) {
  const loop each = loops_find(call);
  const uint32_t second = call->n_in > 1 ? 1 : 0; /* ops of one operand do not look at it */
  berth__runs runs;
  (void)err;
  loops_runs(call, &runs);
  while (berth__runs_next(&runs))
    each(loops_at(&call->out[0], runs.index[0]), loops_at(&call->in[0], runs.index[1]), runs.step[1],
         loops_at(&call->in[second], runs.index[1 + second]), runs.step[1 + second], runs.count);
  return BERTH_OK;
}

/* ---- where ---------------------------------------------------------------------------------------------------- */

/* Elements of a size, all three side by side or one after the other at some step. */
#define SELECT(c_type)                                                                                                 \
  do {                                                                                                                 \
    c_type *o = (c_type *)call->out[0].data + r->index[0];                                                             \
    const c_type *a = (const c_type *)call->in[BERTH__WHERE_A].data + r->index[2];                                     \
    const c_type *b = (const c_type *)call->in[BERTH__WHERE_B].data + r->index[3];                                     \
    if (r->step[1] == 1 && r->step[2] == 1 && r->step[3] == 1)                                                         \
      for (int64_t i = 0; i < r->count; i++) o[i] = condition[i] ? a[i] : b[i];                                        \
    else                                                                                                               \
      for (int64_t i = 0; i < r->count; i++) o[i] = condition[i * r->step[1]] ? a[i * r->step[2]] : b[i * r->step[3]]; \
  } while (0);                                                                                                         \
  break

static void loops_select(const berth_op_call *call, const berth__runs *r) {
  const uint8_t *condition = (const uint8_t *)call->in[BERTH__WHERE_CONDITION].data + r->index[1];
  switch (berth_type_size(call->out[0].type)) {
    case 1: SELECT(uint8_t);
    case 2: SELECT(uint16_t);
    default: SELECT(uint64_t);
  }
}

static bool loops_takes_where(const berth_op_call *call) { return berth_type_size(call->out[0].type) != 4; }

static berth_status loops_run_where(const berth_op_call *call, berth_error *err) {
  berth__runs runs;
  (void)err;
  loops_runs(call, &runs);
  while (berth__runs_next(&runs)) loops_select(call, &runs);
  return BERTH_OK;
}

#define ROW(op)                                                                                            \
  {                                                                                                        \
    .name = #op " loop", .code = BERTH__OP_##op, .takes = loops_kernel_takes, .items = loops_kernel_items, \
    .run = loops_kernel_run                                                                                \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_loops)[] = {
    ROW(add),
    ROW(sub),
    ROW(mul),
    ROW(div),
    ROW(mod),
    ROW(min),
    ROW(max),
    ROW(and),
    ROW(or),
    ROW(xor),
    ROW(not ),
    ROW(neg),
    ROW(abs),
    ROW(relu),
    ROW(sign),
    ROW(sqrt),
    ROW(rsqrt),
    ROW(reciprocal),
    ROW(round),
    ROW(floor),
    ROW(ceil),
    ROW(eq),
    ROW(ne),
    ROW(lt),
    ROW(le),
    ROW(gt),
    ROW(ge),
    {.name = "where loop",
     .code = BERTH__OP_where,
     .takes = loops_takes_where,
     .items = loops_kernel_items,
     .run = loops_run_where},
    {0},
};
