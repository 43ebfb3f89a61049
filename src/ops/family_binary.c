/* Element-wise ops of two operands of the same type, with numpy broadcasting. Integers are computed in 64 bits and
 * wrapped when stored; dividing an integer by zero gives zero. */
#include <math.h>

#include "ops/elementwise.h"

static const berth_attr attrs_of_binary[] = {[BERTH__BINARY_FMOD] = {.name = "fmod", .kind = BERTH_ATTR_INT, .i = 0}};

/* ---- Integers ------------------------------------------------------------------------------------------------- */

/* Division by -1 is negation, which wraps for the only quotient that overflows. */
static inline int64_t div_i64(int64_t x, int64_t y) {
  if (y == 0) return 0;
  return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static inline int64_t fmod_i64(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }

static inline int64_t mod_i64(int64_t x, int64_t y) {
  int64_t r = fmod_i64(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* 1 / x^n for a negative n, truncated to an integer. */
static inline int64_t pow_negative(int64_t x, int64_t n) {
  if (x == 1) return 1;
  return x == -1 ? ((n & 1) ? -1 : 1) : 0;
}

static inline uint64_t pow_u64(uint64_t base, uint64_t n) {
  uint64_t result = 1;
  for (; n > 0; n >>= 1) {
    if (n & 1) result *= base;
    base *= base;
  }
  return result;
}

static inline int64_t pow_i64(int64_t x, int64_t n) {
  return n < 0 ? pow_negative(x, n) : (int64_t)pow_u64((uint64_t)x, (uint64_t)n);
}

/* ---- Floats --------------------------------------------------------------------------------------------------- */

/* The result has the sign of the divisor, also if it is zero. */
static inline float mod_f32(float x, float y) {
  float r = fmodf(x, y);
  if (r == 0.0f) return copysignf(r, y);
  return (r < 0.0f) != (y < 0.0f) ? r + y : r;
}

static inline double mod_f64(double x, double y) {
  double r = fmod(x, y);
  if (r == 0.0) return copysign(r, y);
  return (r < 0.0) != (y < 0.0) ? r + y : r;
}

/* ---- Blocks --------------------------------------------------------------------------------------------------- */

#define LOOP(name, c_type, expression)                                                   \
  static void name(void *out, const void *const *in, int64_t count, const void *state) { \
    const c_type *a = in[0], *b = in[1];                                                 \
    c_type *restrict o = out;                                                            \
    (void)state;                                                                         \
    for (int64_t i = 0; i < count; i++) {                                                \
      c_type x = a[i], y = b[i];                                                         \
      o[i] = (expression);                                                               \
    }                                                                                    \
  }

#define NUMERIC(name, in_f32, in_f64, in_i64) \
  LOOP(name##_block_f32, float, in_f32)       \
  LOOP(name##_block_f64, double, in_f64)      \
  LOOP(name##_block_i64, int64_t, in_i64)

/* For results whose unsigned bits differ from the signed ones. */
#define UNSIGNED(name, in_u64) LOOP(name##_block_u64, uint64_t, in_u64)

NUMERIC(add, x + y, x + y, (int64_t)((uint64_t)x + (uint64_t)y))
NUMERIC(sub, x - y, x - y, (int64_t)((uint64_t)x - (uint64_t)y))
NUMERIC(mul, x *y, x *y, (int64_t)((uint64_t)x *(uint64_t)y))
NUMERIC(div, x / y, x / y, div_i64(x, y))
NUMERIC(pow, powf(x, y), pow(x, y), pow_i64(x, y))
/* Written so that NaN on either side is propagated. */
NUMERIC(min, x < y || x != x ? x : y, x < y || x != x ? x : y, x < y ? x : y)
NUMERIC(max, x > y || x != x ? x : y, x > y || x != x ? x : y, x > y ? x : y)
NUMERIC(mod, mod_f32(x, y), mod_f64(x, y), mod_i64(x, y))
NUMERIC(fmod, fmodf(x, y), fmod(x, y), fmod_i64(x, y))
UNSIGNED(div, y == 0 ? 0 : x / y)
UNSIGNED(pow, pow_u64(x, y))
UNSIGNED(min, x < y ? x : y)
UNSIGNED(max, x > y ? x : y)
UNSIGNED(mod, y == 0 ? 0 : x % y)
/* Bools are 0 and 1, so the bitwise forms are also the logical ones. */
LOOP(and_block_i64, int64_t, x &y)
LOOP(or_block_i64, int64_t, x | y)
LOOP(xor_block_i64, int64_t, x ^ y)

typedef struct blocks {
  berth__block_fn of[BERTH__CLASSES]; /* NULL: the op does not support such types */
} blocks;

/* unsigned_as: the class for u64, i64 if the bits are the same. */
#define NUMERIC_OP(name, unsigned_as)                                                    \
  {                                                                                      \
    { name##_block_f32, name##_block_f64, name##_block_i64, name##_block_##unsigned_as } \
  }
#define BITS_OP(name)                                  \
  {                                                    \
    { NULL, NULL, name##_block_i64, name##_block_i64 } \
  }

static const blocks table[BERTH__OP_COUNT] = {
    [BERTH__OP_add] = NUMERIC_OP(add, i64), [BERTH__OP_sub] = NUMERIC_OP(sub, i64),
    [BERTH__OP_mul] = NUMERIC_OP(mul, i64), [BERTH__OP_div] = NUMERIC_OP(div, u64),
    [BERTH__OP_pow] = NUMERIC_OP(pow, u64), [BERTH__OP_min] = NUMERIC_OP(min, u64),
    [BERTH__OP_max] = NUMERIC_OP(max, u64), [BERTH__OP_mod] = NUMERIC_OP(mod, u64),
    [BERTH__OP_and] = BITS_OP(and),         [BERTH__OP_or] = BITS_OP(or),
    [BERTH__OP_xor] = BITS_OP(xor),
};
static const blocks fmod_blocks = {{fmod_block_f32, fmod_block_f64, fmod_block_i64, mod_block_u64}};

static berth_status infer_binary(berth__infer *infer, berth_error *err) {
  int64_t fmod_attr = infer->attrs[BERTH__BINARY_FMOD].i;
  if (!table[infer->op->code].of[BERTH__CLASS_F32])
    BERTH__TRY(berth__want_bits(infer, 0, err));
  else if (infer->in_type[0] != BERTH_U64)
    BERTH__TRY(berth__want_numeric(infer, 0, err));
  BERTH__TRY(berth__want_same_type(infer, 0, 1, err));
  if (fmod_attr != 0 && (fmod_attr != 1 || infer->op->code != BERTH__OP_mod))
    return berth__fail(err, BERTH_INVALID, "attribute 'fmod' belongs to the op mod alone and is 0 or 1");
  infer->out_type[0] = infer->in_type[0];
  return berth__broadcast(&infer->in_shape[0], &infer->in_shape[1], &infer->out_shape[0], err);
}

static berth_status binary_kernel(const berth_op_call *call, berth_error *err) {
  berth__class cls = berth__class_of(call->in[0].type);
  const blocks *row = call->attrs[BERTH__BINARY_FMOD].i ? &fmod_blocks : &table[berth__call_code(call)];
  (void)err;
  berth__map_blocks(call, cls, cls, row->of[cls], NULL);
  return BERTH_OK;
}

const berth__family berth__family_binary = {.attrs = attrs_of_binary,
                                            .n_attrs = 1,
                                            .infer = infer_binary,
                                            .items = berth__items_elements,
                                            .kernel = binary_kernel};
