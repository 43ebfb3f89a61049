/* Element-wise ops of one operand. Integers are computed in 64 bits and wrapped when stored. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/exp.h"

/* ---- Functions of one float, in f32 and f64 ------------------------------------------------------------------- */

/* exp of a non-positive number cannot overflow. */
static inline float sigmoid_f32(float x) {
  float e = berth__exp_f32(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
static inline double sigmoid_f64(double x) {
  double e = exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/* erfc is precise where 1 + erf would cancel. */
static inline float gelu_f32(float x) { return x == -INFINITY ? 0.0f : 0.5f * x * erfcf(-x * 0.70710678118654752f); }
static inline double gelu_f64(double x) { return x == -INFINITY ? 0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440); }

/* 0.5 (1 + tanh u) is sigmoid(2u), which is precise for negative u. */
static inline float gelu_tanh_f32(float x) {
  return x == -INFINITY ? 0.0f : x * sigmoid_f32(1.5957691216057308f * (x + 0.044715f * x * x * x));
}
static inline double gelu_tanh_f64(double x) {
  return x == -INFINITY ? 0.0 : x * sigmoid_f64(1.5957691216057307117 * (x + 0.044715 * x * x * x));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which never overflows. */
static inline float softplus_f32(float x) { return (x < 0.0f ? 0.0f : x) + log1pf(berth__exp_f32(-fabsf(x))); }
static inline double softplus_f64(double x) { return (x < 0.0 ? 0.0 : x) + log1p(exp(-fabs(x))); }

static inline float silu_f32(float x) { return x == -INFINITY ? 0.0f : x * sigmoid_f32(x); }
static inline double silu_f64(double x) { return x == -INFINITY ? 0.0 : x * sigmoid_f64(x); }

/* ---- Blocks --------------------------------------------------------------------------------------------------- */

#define LOOP(name, c_type, expression)                                                   \
  static void name(void *out, const void *const *in, int64_t count, const void *state) { \
    const c_type *a = in[0];                                                             \
    c_type *restrict o = out;                                                            \
    (void)state;                                                                         \
    for (int64_t i = 0; i < count; i++) {                                                \
      c_type x = a[i];                                                                   \
      o[i] = (expression);                                                               \
    }                                                                                    \
  }

#define FLOATS(name, in_f32, in_f64)    \
  LOOP(name##_block_f32, float, in_f32) \
  LOOP(name##_block_f64, double, in_f64)

FLOATS(neg, -x, -x)
FLOATS(abs, fabsf(x), fabs(x))
FLOATS(exp, berth__exp_f32(x), exp(x))
FLOATS(log, logf(x), log(x))
FLOATS(sqrt, sqrtf(x), sqrt(x))
FLOATS(rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
FLOATS(sin, sinf(x), sin(x))
FLOATS(cos, cosf(x), cos(x))
FLOATS(tan, tanf(x), tan(x))
FLOATS(asin, asinf(x), asin(x))
FLOATS(acos, acosf(x), acos(x))
FLOATS(atan, atanf(x), atan(x))
FLOATS(sinh, sinhf(x), sinh(x))
FLOATS(cosh, coshf(x), cosh(x))
FLOATS(tanh, tanhf(x), tanh(x))
FLOATS(asinh, asinhf(x), asinh(x))
FLOATS(acosh, acoshf(x), acosh(x))
FLOATS(atanh, atanhf(x), atanh(x))
FLOATS(expm1, expm1f(x), expm1(x))
FLOATS(softplus, softplus_f32(x), softplus_f64(x))
FLOATS(sigmoid, sigmoid_f32(x), sigmoid_f64(x))
FLOATS(relu, x < 0.0f ? 0.0f : x, x < 0.0 ? 0.0 : x)
FLOATS(gelu, gelu_f32(x), gelu_f64(x))
FLOATS(gelu_tanh, gelu_tanh_f32(x), gelu_tanh_f64(x))
FLOATS(silu, silu_f32(x), silu_f64(x))
FLOATS(erf, erff(x), erf(x))
FLOATS(round, rintf(x), rint(x))
FLOATS(floor, floorf(x), floor(x))
FLOATS(ceil, ceilf(x), ceil(x))
FLOATS(reciprocal, 1.0f / x, 1.0 / x)
FLOATS(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x)

LOOP(neg_block_i64, int64_t, (int64_t)(0 - (uint64_t)x))
LOOP(abs_block_i64, int64_t, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
LOOP(relu_block_i64, int64_t, x < 0 ? 0 : x)
LOOP(sign_block_i64, int64_t, (x > 0) - (x < 0))
LOOP(not_block_i64, int64_t, ~x)
LOOP(not_block_bool, int64_t, !x)

typedef struct blocks {
  berth__block_fn of[BERTH__CLASSES]; /* by class; NULL: the op does not support such types */
} blocks;

#define FLOAT_OP(name) [BERTH__OP_##name] = {{name##_block_f32, name##_block_f64, NULL}}
#define NUMERIC_OP(name) [BERTH__OP_##name] = {{name##_block_f32, name##_block_f64, name##_block_i64}}

static const blocks table[BERTH__OP_COUNT] = {
    NUMERIC_OP(neg),      NUMERIC_OP(abs),
    NUMERIC_OP(relu),     NUMERIC_OP(sign),
    FLOAT_OP(exp),        FLOAT_OP(log),
    FLOAT_OP(sqrt),       FLOAT_OP(rsqrt),
    FLOAT_OP(sin),        FLOAT_OP(cos),
    FLOAT_OP(tan),        FLOAT_OP(tanh),
    FLOAT_OP(asin),       FLOAT_OP(acos),
    FLOAT_OP(atan),       FLOAT_OP(sinh),
    FLOAT_OP(cosh),       FLOAT_OP(asinh),
    FLOAT_OP(acosh),      FLOAT_OP(atanh),
    FLOAT_OP(expm1),      FLOAT_OP(softplus),
    FLOAT_OP(sigmoid),    FLOAT_OP(gelu),
    FLOAT_OP(gelu_tanh),  FLOAT_OP(silu),
    FLOAT_OP(erf),        FLOAT_OP(round),
    FLOAT_OP(floor),      FLOAT_OP(ceil),
    FLOAT_OP(reciprocal), [BERTH__OP_not] = {{NULL, NULL, not_block_i64, not_block_i64}},
};

static berth_status infer_unary(berth__infer *infer, berth_error *err) {
  const blocks *row = &table[infer->op->code];
  if (!row->of[BERTH__CLASS_F32])
    BERTH__TRY(berth__want_bits(infer, 0, err));
  else if (row->of[BERTH__CLASS_I64])
    BERTH__TRY(berth__want_numeric(infer, 0, err));
  else
    BERTH__TRY(berth__want_float(infer, 0, err));
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

static berth_status unary_kernel(const berth_op_call *call, berth_error *err) {
  berth__class cls = berth__class_of(call->in[0].type);
  berth__block_fn fn = table[berth__call_code(call)].of[cls];
  (void)err;
  if (call->in[0].type == BERTH_BOOL) fn = not_block_bool;
  berth__map_blocks(call, cls, cls, fn, NULL);
  return BERTH_OK;
}

const berth__family berth__family_unary = {
    .infer = infer_unary, .items = berth__items_elements, .kernel = unary_kernel};
