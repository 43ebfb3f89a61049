/* Element-wise functions of types that chains of f32 cannot hold: of f64, powers of integers, and remainders of f32. */
#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/lines.h"
#include "device/cpu/kernels/math_f64.h"
#include "ops/elementwise.h"

#define PART 256 /* elements computed together, before the exceptions among them */

/* ---- Functions of one f64 ---- */

#define ONE(name, expression)                                                                                          \
  static void loops_math_##name(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) { \
    const double *p = in[0];                                                                                           \
    double *o = out;                                                                                                   \
    (void)state;                                                                                                       \
    BERTH__EACH_ONE(double, double, expression, step[0])                                                               \
  }
ONE(exp, f64_exp(x))
ONE(expm1, f64_expm1(x))
ONE(log, f64_log(x))
ONE(sigmoid, f64_sigmoid(x))
ONE(silu, f64_silu(x))
ONE(softplus, f64_softplus(x))
ONE(gelu_tanh, f64_gelu_tanh(x))
ONE(tanh, f64_tanh(x))
ONE(sinh, f64_sinh(x))
ONE(cosh, f64_cosh(x))

/* Angles that are too large are left to the C library. */
static void loops_math_angles(void *out, const double *p, int64_t step, int64_t n, uint64_t quarter) {
  double *o = out, part[PART];
  for (int64_t at = 0; at < n; at += PART) {
    const int64_t count = n - at < PART ? n - at : PART;
    const double *x = p + at * step;
    bool any = false;
    for (int64_t i = 0; i < count; i++) part[i] = f64_sine(x[i * step], quarter);
    for (int64_t i = 0; i < count; i++) any |= !(fabs(x[i * step]) < F64_ANGLE_MAX);
    for (int64_t i = 0; i < count && any; i++)
      if (!(fabs(x[i * step]) < F64_ANGLE_MAX)) part[i] = quarter != 0 ? cos(x[i * step]) : sin(x[i * step]);
    memcpy(o + at, part, (size_t)count * sizeof *part);
  }
}
static void loops_math_sin(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  (void)state;
  loops_math_angles(out, in[0], step[0], n, 0);
}
static void loops_math_cos(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  (void)state;
  loops_math_angles(out, in[0], step[0], n, 1);
}

static line_run loops_math_of(berth__op_code op) {
  switch ((int)op) {
    case BERTH__OP_exp: return loops_math_exp;
    case BERTH__OP_expm1: return loops_math_expm1;
    case BERTH__OP_log: return loops_math_log;
    case BERTH__OP_sigmoid: return loops_math_sigmoid;
    case BERTH__OP_silu: return loops_math_silu;
    case BERTH__OP_softplus: return loops_math_softplus;
    case BERTH__OP_gelu_tanh: return loops_math_gelu_tanh;
    case BERTH__OP_tanh: return loops_math_tanh;
    case BERTH__OP_sinh: return loops_math_sinh;
    case BERTH__OP_cosh: return loops_math_cosh;
    case BERTH__OP_sin: return loops_math_sin;
    default: return loops_math_cos;
  }
}

static bool loops_math_takes_f64(const berth_op_call *call) { return call->in[0].type == BERTH_F64; }

static berth_status loops_math_run_f64(const berth_op_call *call, berth_error *err) {
  (void)err;
  lines_do(call, loops_math_of(berth__call_code(call)), NULL);
  return BERTH_OK;
}

/* ---- Powers of integers ---- */

/* Modulo 2^64. */
static inline uint64_t loops_math_power(uint64_t base, uint64_t n) {
  uint64_t power = 1;
  for (; n > 0; n >>= 1) {
    if (n & 1) power *= base;
    base *= base;
  }
  return power;
}

/* A negative exponent leaves an integer of 1 and -1 alone. */
static inline uint64_t loops_math_signed_power(int64_t base, int64_t n) {
  if (n >= 0) return loops_math_power((uint64_t)base, (uint64_t)n);
  return base == 1 || (base == -1 && n % 2 == 0) ? 1 : base == -1 ? UINT64_MAX : 0;
}

/* The same exponent for all: some at a time, bit by bit. */
static void loops_math_powers(uint64_t *power, uint64_t *base, uint64_t n, int64_t count) {
  for (int64_t i = 0; i < count; i++) power[i] = 1;
  for (; n > 0; n >>= 1) {
    for (int64_t i = 0; i < count && (n & 1) != 0; i++) power[i] *= base[i];
    for (int64_t i = 0; i < count && n > 1; i++) base[i] *= base[i];
  }
}

#define POWERS(c_type, power_of, wide)                                               \
  {                                                                                  \
    const c_type *x = in[0], *y = in[1];                                             \
    c_type *o = out;                                                                 \
    for (int64_t at = 0; at < n && is_uniform; at += PART) {                         \
      const int64_t count = n - at < PART ? n - at : PART;                           \
      for (int64_t i = 0; i < count; i++) base[i] = (uint64_t)x[(at + i) * step[0]]; \
      loops_math_powers(power, base, (uint64_t)*y, count);                           \
      for (int64_t i = 0; i < count; i++) o[at + i] = (c_type)power[i];              \
    }                                                                                \
    for (int64_t i = 0; i < n && !is_uniform; i++)                                   \
      o[i] = (c_type)power_of((wide)x[i * step[0]], (wide)y[i * step[1]]);           \
    break;                                                                           \
  }
static void loops_math_pow(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  const berth_type type = *(const berth_type *)state;
  const berth_tensor exponent = {.type = type, .data = (void *)(uintptr_t)in[1]};
  const bool is_uniform = step[1] == 0 && (type == BERTH_U64 || berth__load_i64(&exponent, 0) >= 0);
  uint64_t base[PART], power[PART];
  switch (type) {
    case BERTH_I8: POWERS(int8_t, loops_math_signed_power, int64_t)
    case BERTH_I16: POWERS(int16_t, loops_math_signed_power, int64_t)
    case BERTH_I32: POWERS(int32_t, loops_math_signed_power, int64_t)
    case BERTH_I64: POWERS(int64_t, loops_math_signed_power, int64_t)
    case BERTH_U8: POWERS(uint8_t, loops_math_power, uint64_t)
    case BERTH_U16: POWERS(uint16_t, loops_math_power, uint64_t)
    case BERTH_U32: POWERS(uint32_t, loops_math_power, uint64_t)
    default: POWERS(uint64_t, loops_math_power, uint64_t)
  }
}

static bool loops_math_takes_pow(const berth_op_call *call) {
  return berth__type_is_int(call->in[0].type) || call->in[0].type == BERTH_U64;
}

static berth_status loops_math_run_pow(const berth_op_call *call, berth_error *err) {
  (void)err;
  lines_do(call, loops_math_pow, &call->in[0].type);
  return BERTH_OK;
}

/* ---- Remainders of f32 ---- */

#define QUOTIENT_MAX 0x1p28 /* below this, products with a quotient are exact in f64 */

/* Exact where loops_math_is_near; the quotient that f64 gives may be 1 too large. */
static inline float loops_math_near_fmod(float x, float y) {
  const double a = fabs((double)x), b = fabs((double)y), q = trunc(a / b);
  double r = a - q * b;
  r = r < 0 ? r + b : r;
  return copysignf((float)r, x);
}
static inline bool loops_math_is_near(float x, float y) {
  const double b = fabs((double)y);
  return fabs((double)x) < QUOTIENT_MAX * b && b < (double)INFINITY;
}

/* The result has the sign of the divisor, also if it is 0. */
static inline float loops_math_signed(float r, float y) {
  const float other = (r < 0.0f) != (y < 0.0f) ? r + y : r;
  return r == 0.0f ? copysignf(r, y) : other;
}

static void loops_math_mod(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  const bool is_fmod = *(const bool *)state;
  float *o = out, part[PART];
  for (int64_t at = 0; at < n; at += PART) {
    const int64_t count = n - at < PART ? n - at : PART;
    const float *x = (const float *)in[0] + at * step[0], *y = (const float *)in[1] + at * step[1];
    bool any = false;
    for (int64_t i = 0; i < count; i++) part[i] = loops_math_near_fmod(x[i * step[0]], y[i * step[1]]);
    for (int64_t i = 0; i < count; i++) any |= !loops_math_is_near(x[i * step[0]], y[i * step[1]]);
    for (int64_t i = 0; i < count && any; i++)
      if (!loops_math_is_near(x[i * step[0]], y[i * step[1]])) part[i] = fmodf(x[i * step[0]], y[i * step[1]]);
    for (int64_t i = 0; i < count && !is_fmod; i++) part[i] = loops_math_signed(part[i], y[i * step[1]]);
    memcpy(o + at, part, (size_t)count * sizeof *part);
  }
}

static bool loops_math_takes_mod(const berth_op_call *call) { return call->in[0].type == BERTH_F32; }

static berth_status loops_math_run_mod(const berth_op_call *call, berth_error *err) {
  const bool is_fmod = call->attrs[BERTH__BINARY_FMOD].i != 0;
  (void)err;
  lines_do(call, loops_math_mod, &is_fmod);
  return BERTH_OK;
}

#define ROW(op, which, function) \
  { .name = #op " loop", .code = BERTH__OP_##op, .takes = (which), .items = lines_items, .run = (function) }
#define F64(op) ROW(op, loops_math_takes_f64, loops_math_run_f64)

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_loops_math)[] = {
    F64(exp),
    F64(expm1),
    F64(log),
    F64(sigmoid),
    F64(silu),
    F64(softplus),
    F64(gelu_tanh),
    F64(tanh),
    F64(sinh),
    F64(cosh),
    F64(sin),
    F64(cos),
    ROW(pow, loops_math_takes_pow, loops_math_run_pow),
    ROW(mod, loops_math_takes_mod, loops_math_run_mod),
    {0},
};
