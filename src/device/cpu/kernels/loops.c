/* Element-wise ops of types that chains of f32 cannot hold, and of bool and bytes, which are faster unconverted: plain
 * loops that compilers vectorise. */
#include <math.h>

#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/lines.h"
#include "ops/elementwise.h"

/* n elements of a and b, each contiguous (step 1) or with another step; ops with one operand ignore b. */
typedef void (*loop)(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n);

#define EACH(element, result, expression, load_x, load_y) \
  {                                                       \
    BERTH__TOGETHER                                       \
    for (int64_t i = 0; i < n; i++) {                     \
      const element x = (load_x), y = (load_y);           \
      o[i] = (result)(expression);                        \
    }                                                     \
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

/* Sums and products wrap, so they are computed unsigned, in `wide`. */
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

/* Dividing by -1 is negation, which wraps for the one quotient that does not fit. There are no vector instructions for
 * quotients of integers, but for quotients of floats that hold them. Truncated, these are the same: no fractional
 * quotient is so close to an integer that it would be rounded to it. */
#define WHOLE(type, element, wide, real) \
  LOOP(div_##type, element, element, y == 0 ? 0 : y == -1 ? (element)((wide)0 - (wide)x) : (element)((real)x / (real)y))
WHOLE(i8, int8_t, uint32_t, float)
WHOLE(i16, int16_t, uint32_t, float)
WHOLE(i32, int32_t, uint32_t, double)
LOOP(div_i64, int64_t, int64_t, y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
LOOP(div_u8, uint8_t, uint8_t, y == 0 ? 0 : (float)x / (float)y)
LOOP(div_u16, uint16_t, uint16_t, y == 0 ? 0 : (float)x / (float)y)
LOOP(div_u32, uint32_t, uint32_t, y == 0 ? 0 : x / y)
LOOP(div_u64, uint64_t, uint64_t, y == 0 ? 0 : x / y)

#define SIGNED(type, element, wide)                                                                                    \
  INTEGERS(type, element, wide)                                                                                        \
  LOOP(fmod_##type, element, element, y == 0 || y == -1 ? 0 : x % y)                                                   \
  LOOP(mod_##type, element, element, y == 0 || y == -1 ? 0 : x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y) \
  ONE(abs_##type, element, element, x < 0 ? (element)((wide)0 - (wide)x) : x)                                          \
  ONE(relu_##type, element, element, x < 0 ? 0 : x)                                                                    \
  ONE(sign_##type, element, element, (x > 0) - (x < 0))

#define UNSIGNED(type, element, wide)                     \
  INTEGERS(type, element, wide)                           \
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

/* Nonzero means true. */
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
LOOP(min_f64, double, double, x < y || x != x ? x : y) /* NaN in either operand is the result */
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

/* Types in the order of the columns of a row. */
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

static void loops_line(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  const loop *each = state;
  const uint32_t second = in[1] != NULL ? 1 : 0; /* ignored by ops with one operand */
  (*each)(out, in[0], step[0], in[second], step[second], n);
}

static berth_status loops_kernel_run(const berth_op_call *call, berth_error *err) {
  const loop each = loops_find(call);
  (void)err;
  lines_do(call, loops_line, &each);
  return BERTH_OK;
}

/* ---- clamp ---------------------------------------------------------------------------------------------------- */

typedef struct bounds {
  int type;
  int64_t low, high;
  double float_low, float_high;
} bounds;

/* A bound as an integer of the type: the nearest integer inside the bound, or the type's own limit. */
static int64_t loops_bound(double bound, int64_t low, int64_t high) {
  if (bound >= (double)high) return high; /* for i64, (double)high is 2^63 */
  if (bound <= (double)low) return low;
  return (int64_t)bound;
}

#define HOLD(element, least, most)                                                                      \
  {                                                                                                     \
    const element *p = in[0], low = (element)(least), high = (element)(most);                           \
    element *o = out;                                                                                   \
    BERTH__EACH_ONE(element, element, (x < low ? low : x) > high ? high : (x < low ? low : x), step[0]) \
    break;                                                                                              \
  }
static void loops_hold(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  const bounds *b = state;
  switch (b->type) {
    case LOOPS_I8: HOLD(int8_t, b->low, b->high)
    case LOOPS_U8: HOLD(uint8_t, b->low, b->high)
    case LOOPS_I16: HOLD(int16_t, b->low, b->high)
    case LOOPS_U16: HOLD(uint16_t, b->low, b->high)
    case LOOPS_I32: HOLD(int32_t, b->low, b->high)
    case LOOPS_U32: HOLD(uint32_t, b->low, b->high)
    case LOOPS_I64: HOLD(int64_t, b->low, b->high)
    default: HOLD(double, b->float_low, b->float_high)
  }
}

static bool loops_takes_clamp(const berth_op_call *call) {
  const int type = loops_type(call->in[0].type);
  return type >= 0 && type != LOOPS_U64 && type != LOOPS_BOOL;
}

static berth_status loops_run_clamp(const berth_op_call *call, berth_error *err) {
  bounds b = {.type = loops_type(call->in[0].type),
              .float_low = call->attrs[BERTH__CLAMP_MIN].f,
              .float_high = call->attrs[BERTH__CLAMP_MAX].f};
  int64_t low, high;
  (void)err;
  berth__int_limits(call->in[0].type, &low, &high);
  b.low = loops_bound(ceil(b.float_low), low, high);
  b.high = loops_bound(floor(b.float_high), low, high);
  lines_do(call, loops_hold, &b);
  return BERTH_OK;
}

/* ---- where ---------------------------------------------------------------------------------------------------- */

/* Elements by size. Both operands are always read, so that compilers can vectorise the selection. */
#define SELECT(c_type)                                                      \
  {                                                                         \
    c_type *o = out;                                                        \
    const c_type *a = in[BERTH__WHERE_A], *b = in[BERTH__WHERE_B];          \
    const int64_t of_a = step[BERTH__WHERE_A], of_b = step[BERTH__WHERE_B]; \
    if (of_c == 1 && of_a == 1 && of_b == 1) {                              \
      BERTH__TOGETHER for (int64_t i = 0; i < n; i++) {                     \
        const c_type x = a[i], y = b[i];                                    \
        o[i] = c[i] != 0 ? x : y;                                           \
      }                                                                     \
    } else {                                                                \
      BERTH__TOGETHER for (int64_t i = 0; i < n; i++) {                     \
        const c_type x = a[i * of_a], y = b[i * of_b];                      \
        o[i] = c[i * of_c] != 0 ? x : y;                                    \
      }                                                                     \
    }                                                                       \
    break;                                                                  \
  }

static void loops_select(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  const uint8_t *c = in[BERTH__WHERE_CONDITION];
  const int64_t of_c = step[BERTH__WHERE_CONDITION];
  switch (*(const size_t *)state) {
    case 1: SELECT(uint8_t)
    case 2: SELECT(uint16_t)
    default: SELECT(uint64_t)
  }
}

static bool loops_takes_where(const berth_op_call *call) { return berth_type_size(call->out[0].type) != 4; }

static berth_status loops_run_where(const berth_op_call *call, berth_error *err) {
  const size_t size = berth_type_size(call->out[0].type);
  (void)err;
  lines_do(call, loops_select, &size);
  return BERTH_OK;
}

#define ROW(op)                                                                                     \
  {                                                                                                 \
    .name = #op " loop", .code = BERTH__OP_##op, .takes = loops_kernel_takes, .items = lines_items, \
    .run = loops_kernel_run                                                                         \
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
    {.name = "clamp loop",
     .code = BERTH__OP_clamp,
     .takes = loops_takes_clamp,
     .items = lines_items,
     .run = loops_run_clamp},
    {.name = "where loop",
     .code = BERTH__OP_where,
     .takes = loops_takes_where,
     .items = lines_items,
     .run = loops_run_where},
    {0},
};
