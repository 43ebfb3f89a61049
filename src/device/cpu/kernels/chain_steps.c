#include "device/cpu/kernels/chain_steps.h"

#include "device/cpu/kernels/bf16.h"
#include "device/cpu/kernels/half.h"
#include "device/cpu/kernels/vec_math.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* ---- Loops ---------------------------------------------------------------------------------------------------- */

/* There is one loop for each combination of repeated operands, so that repeated operands stay in a register. */
typedef struct operand {
  const float *at;
  vf value;
  bool is_fixed;
} operand;

ALWAYS_INLINE operand chain_steps_kernel_operand_of(const chain_register *r, bool is_fixed) {
  return (operand){r->at, is_fixed ? vf_load(r->at) : vf_zero(), is_fixed};
}
ALWAYS_INLINE vf chain_steps_kernel_value_at(const operand *o, int64_t i) {
  return o->is_fixed ? o->value : vf_load(o->at + i);
}
ALWAYS_INLINE vf value_at_n(const operand *o, int64_t i, int64_t n) {
  return o->is_fixed ? o->value : vf_load_n(o->at + i, n);
}

#define STEP_OF_ONE(name, expression)                                                             \
  ALWAYS_INLINE vf name##_of(vf x) {                                                              \
    const vf one = vf_set1(1.0f), zero = vf_zero();                                               \
    (void)one, (void)zero;                                                                        \
    return (expression);                                                                          \
  }                                                                                               \
  static void name##_step(float *out, const chain_register *in, int64_t n) {                      \
    const float *a = in[0].at;                                                                    \
    const int64_t step = in[0].step;                                                              \
    int64_t i = 0;                                                                                \
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store(out + i, name##_of(vf_load(a + i * step))); \
    if (i < n) vf_store_n(out + i, name##_of(vf_load_n(a + i * step, n - i)), n - i);             \
  }

#define STEP_OF_TWO(name, expression)                                                                           \
  ALWAYS_INLINE vf name##_of(vf x, vf y) {                                                                      \
    const vf one = vf_set1(1.0f), zero = vf_zero();                                                             \
    (void)one, (void)zero;                                                                                      \
    return (expression);                                                                                        \
  }                                                                                                             \
  ALWAYS_INLINE void name##_loop(float *out, const chain_register *in, int64_t n, bool fixed_a, bool fixed_b) { \
    const operand a = chain_steps_kernel_operand_of(&in[0], fixed_a),                                           \
                  b = chain_steps_kernel_operand_of(&in[1], fixed_b);                                           \
    int64_t i = 0;                                                                                              \
    for (; i + VF_LANES <= n; i += VF_LANES)                                                                    \
      vf_store(out + i, name##_of(chain_steps_kernel_value_at(&a, i), chain_steps_kernel_value_at(&b, i)));     \
    if (i < n) vf_store_n(out + i, name##_of(value_at_n(&a, i, n - i), value_at_n(&b, i, n - i)), n - i);       \
  }                                                                                                             \
  static void name##_step(float *out, const chain_register *in, int64_t n) {                                    \
    if (in[0].step == 0)                                                                                        \
      in[1].step == 0 ? name##_loop(out, in, n, true, true) : name##_loop(out, in, n, true, false);             \
    else                                                                                                        \
      in[1].step == 0 ? name##_loop(out, in, n, false, true) : name##_loop(out, in, n, false, false);           \
  }

#define STEP_OF_THREE(name, expression)                                                                              \
  ALWAYS_INLINE vf name##_of(vf x, vf y, vf z) { return (expression); }                                              \
  ALWAYS_INLINE void name##_loop(float *out, const chain_register *in, int64_t n, bool fixed_a, bool fixed_b,        \
                                 bool fixed_c) {                                                                     \
    const operand a = chain_steps_kernel_operand_of(&in[0], fixed_a),                                                \
                  b = chain_steps_kernel_operand_of(&in[1], fixed_b);                                                \
    const operand c = chain_steps_kernel_operand_of(&in[2], fixed_c);                                                \
    int64_t i = 0;                                                                                                   \
    for (; i + VF_LANES <= n; i += VF_LANES)                                                                         \
      vf_store(out + i, name##_of(chain_steps_kernel_value_at(&a, i), chain_steps_kernel_value_at(&b, i),            \
                                  chain_steps_kernel_value_at(&c, i)));                                              \
    if (i == n) return;                                                                                              \
    const int64_t left = n - i;                                                                                      \
    vf_store_n(out + i, name##_of(value_at_n(&a, i, left), value_at_n(&b, i, left), value_at_n(&c, i, left)), left); \
  }                                                                                                                  \
  static void name##_step(float *out, const chain_register *in, int64_t n) {                                         \
    const bool fixed[] = {in[0].step == 0, in[1].step == 0, in[2].step == 0};                                        \
    if (!fixed[0] && fixed[1] && fixed[2])                                                                           \
      name##_loop(out, in, n, false, true, true);                                                                    \
    else if (!fixed[0] && !fixed[1] && fixed[2])                                                                     \
      name##_loop(out, in, n, false, false, true);                                                                   \
    else                                                                                                             \
      name##_loop(out, in, n, fixed[0], fixed[1], fixed[2]);                                                         \
  }

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

STEP_OF_ONE(identity, x)
STEP_OF_TWO(add, x + y)
STEP_OF_TWO(sub, x - y)
STEP_OF_TWO(mul, x *y)
/* If either operand is NaN, the second one is the result. */
STEP_OF_TWO(min, vf_pick_nan(x, x, vf_min(x, y)))
STEP_OF_TWO(max, vf_pick_nan(x, x, vf_max(x, y)))
STEP_OF_THREE(clamp, vf_min(z, vf_max(y, x)))
STEP_OF_THREE(where, vf_pick_eq(x, vf_zero(), z, y))
STEP_OF_TWO(eq, vf_pick_eq(x, y, one, zero))
STEP_OF_TWO(ne, vf_pick_eq(x, y, zero, one))
STEP_OF_TWO(lt, vf_pick_lt(x, y, one, zero))
STEP_OF_TWO(le, vf_pick_le(x, y, one, zero))
STEP_OF_TWO(gt, vf_pick_lt(y, x, one, zero))
STEP_OF_TWO(ge, vf_pick_le(y, x, one, zero))
STEP_OF_TWO(and, vf_pick_eq(x, zero, zero, vf_pick_eq(y, zero, zero, one)))
STEP_OF_TWO(or, vf_pick_eq(x, zero, vf_pick_eq(y, zero, zero, one), one))
STEP_OF_TWO(xor, vf_pick_eq(x, zero, vf_pick_eq(y, zero, zero, one), vf_pick_eq(y, zero, one, zero)))
STEP_OF_ONE(not, vf_pick_eq(x, zero, one, zero))
STEP_OF_ONE(neg, vf_neg(x))
STEP_OF_ONE(abs, vf_abs(x))
STEP_OF_ONE(relu, vf_relu(x))
STEP_OF_ONE(sqrt, vf_sqrt(x))
STEP_OF_ONE(rsqrt, one / vf_sqrt(x))
STEP_OF_ONE(reciprocal, one / x)
STEP_OF_ONE(sign, vf_pick_lt(zero, x, one, vf_pick_lt(x, zero, vf_neg(one), x)))
STEP_OF_ONE(round, vf_round(x))
STEP_OF_ONE(floor, vf_floor(x))
STEP_OF_ONE(ceil, vf_ceil(x))
STEP_OF_ONE(exp, vf_exp(x))
STEP_OF_ONE(expm1, vf_expm1(x))
STEP_OF_ONE(log, vf_log(x))
STEP_OF_ONE(tanh, vf_tanh(x))
STEP_OF_ONE(sigmoid, vf_sigmoid(x))
STEP_OF_ONE(softplus, vf_softplus(x))
STEP_OF_ONE(erf, vf_erf(x))
STEP_OF_ONE(gelu, vf_gelu(x))
STEP_OF_ONE(gelu_tanh, vf_gelu_tanh(x))
STEP_OF_ONE(silu, vf_silu(x))
STEP_OF_ONE(sin, vf_sin(x))
STEP_OF_ONE(cos, vf_cos(x))
STEP_OF_ONE(asin, vf_asin(x))
STEP_OF_ONE(acos, vf_acos(x))
STEP_OF_ONE(atan, vf_atan(x))
STEP_OF_ONE(sinh, vf_sinh(x))
STEP_OF_ONE(cosh, vf_cosh(x))
STEP_OF_ONE(asinh, vf_asinh(x))
STEP_OF_ONE(acosh, vf_acosh(x))
STEP_OF_ONE(atanh, vf_atanh(x))

/* ---- div ------------------------------------------------------------------------------------------------------ */

STEP_OF_TWO(any_div, x / y)

ALWAYS_INLINE vf over_of(vf x, vf y, vf reciprocal) {
  const vf right = vf_quotient(x, y, reciprocal);
  return vf_pick_nan(right, x * reciprocal, right); /* infinity minus infinity */
}

bool chain_divides_fast(float by) {
#ifdef __FMA__
  return vf_divides_fast(by);
#else
  (void)by;
  return false;
#endif
}

static void over_step(float *out, const chain_register *in, int64_t n) {
  const float *a = in[0].at;
  const vf by = vf_load(in[1].at), reciprocal = vf_set1(1.0f) / by;
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES) vf_store(out + i, over_of(vf_load(a + i), by, reciprocal));
  if (i < n) vf_store_n(out + i, over_of(vf_load_n(a + i, n - i), by, reciprocal), n - i);
}

static void div_step(float *out, const chain_register *in, int64_t n) {
  const bool is_fast = in[0].step == 1 && in[1].step == 0 && chain_divides_fast(in[1].at[0]);
  (is_fast ? over_step : any_div_step)(out, in, n);
}

/* ---- pow ------------------------------------------------------------------------------------------------------ */

/* Powers that are products and roots. Square roots as pow defines them, which treats -0 and -infinity differently. */
STEP_OF_ONE(square, x *x)
STEP_OF_ONE(cube, x *x *x)
STEP_OF_ONE(root, vf_pick_eq(x, vf_set1(-INFINITY), vf_set1(INFINITY), vf_sqrt(x + zero)))
STEP_OF_TWO(any_pow, vf_pow(x, y))

static void pow_step(float *out, const chain_register *in, int64_t n) {
  const float power = in[1].step == 0 ? in[1].at[0] : 0;
  if (power == 2.0f)
    square_step(out, in, n);
  else if (power == 3.0f)
    cube_step(out, in, n);
  else if (power == 0.5f)
    root_step(out, in, n);
  else if (power == 1.0f)
    identity_step(out, in, n);
  else if (power == -1.0f)
    reciprocal_step(out, in, n);
  else
    any_pow_step(out, in, n);
}

const chain_step chain_steps[] = {
#define BERTH__CHAIN(name, n_in) name##_step,
#include "ops/chain.def"
#undef BERTH__CHAIN
};

/* ---- Two steps as one ----------------------------------------------------------------------------------------- */

/* One step applied to x and y and a second one to its result, z and w. Fusing them saves the store and the load between
 * them. */
#define PAIR(first, second, expression)                                                                         \
  ALWAYS_INLINE vf first##_##second##_of(vf x, vf y, vf z, vf w) {                                              \
    const vf t = first##_of(x, y);                                                                              \
    (void)z, (void)w;                                                                                           \
    return (expression);                                                                                        \
  }                                                                                                             \
  ALWAYS_INLINE void first##_##second##_loop(float *out, const chain_register *in, int64_t n, bool fixed_a,     \
                                             bool fixed_b, bool fixed_c, bool fixed_d) {                        \
    const operand a = chain_steps_kernel_operand_of(&in[0], fixed_a),                                           \
                  b = chain_steps_kernel_operand_of(&in[1], fixed_b);                                           \
    const operand c = chain_steps_kernel_operand_of(&in[2], fixed_c),                                           \
                  d = chain_steps_kernel_operand_of(&in[3], fixed_d);                                           \
    int64_t i = 0;                                                                                              \
    for (; i + VF_LANES <= n; i += VF_LANES)                                                                    \
      vf_store(out + i,                                                                                         \
               first##_##second##_of(chain_steps_kernel_value_at(&a, i), chain_steps_kernel_value_at(&b, i),    \
                                     chain_steps_kernel_value_at(&c, i), chain_steps_kernel_value_at(&d, i)));  \
    if (i == n) return;                                                                                         \
    const int64_t left = n - i;                                                                                 \
    vf_store_n(out + i,                                                                                         \
               first##_##second##_of(value_at_n(&a, i, left), value_at_n(&b, i, left), value_at_n(&c, i, left), \
                                     value_at_n(&d, i, left)),                                                  \
               left);                                                                                           \
  }                                                                                                             \
  static void first##_##second##_pair(float *out, const chain_register *in, int64_t n) {                        \
    const bool a = in[0].step == 0, b = in[1].step == 0, c = in[2].step == 0, d = in[3].step == 0;              \
    if (a || !d)                                                                                                \
      first##_##second##_loop(out, in, n, a, b, c, d);                                                          \
    else if (b)                                                                                                 \
      c ? first##_##second##_loop(out, in, n, false, true, true, true)                                          \
        : first##_##second##_loop(out, in, n, false, true, false, true);                                        \
    else                                                                                                        \
      c ? first##_##second##_loop(out, in, n, false, false, true, true)                                         \
        : first##_##second##_loop(out, in, n, false, false, false, true);                                       \
  }

#define PAIRS(first)                          \
  PAIR(first, add, t + z)                     \
  PAIR(first, mul, t *z)                      \
  PAIR(first, relu, vf_relu(t))               \
  PAIR(first, clamp, vf_min(w, vf_max(z, t))) \
  PAIR(first, over, over_of(t, z, w))

PAIRS(add)
PAIRS(sub)
PAIRS(mul)

#define ROW(first) \
  { first##_add_pair, first##_mul_pair, first##_relu_pair, first##_clamp_pair, first##_over_pair }

chain_step chain_pair(berth__chain_code first, berth__chain_code second) {
  static const chain_step table[3][5] = {ROW(add), ROW(sub), ROW(mul)};
  int row, column;
  switch (first) {
    case BERTH__CHAIN_add: row = 0; break;
    case BERTH__CHAIN_sub: row = 1; break;
    case BERTH__CHAIN_mul: row = 2; break;
    default: return NULL;
  }
  switch (second) {
    case BERTH__CHAIN_add: column = 0; break;
    case BERTH__CHAIN_mul: column = 1; break;
    case BERTH__CHAIN_relu: column = 2; break;
    case BERTH__CHAIN_clamp: column = 3; break;
    case BERTH__CHAIN_div: column = 4; break;
    default: return NULL;
  }
  return table[row][column];
}

/* ---- Types ---------------------------------------------------------------------------------------------------- */

#define LOAD(c_type, convert)             \
  do {                                    \
    const c_type *src = from;             \
    if (stride == 1)                      \
      for (int64_t i = 0; i < n; i++) {   \
        const c_type x = src[i];          \
        to[i] = (float)(convert);         \
      }                                   \
    else                                  \
      for (int64_t i = 0; i < n; i++) {   \
        const c_type x = src[i * stride]; \
        to[i] = (float)(convert);         \
      }                                   \
  } while (0);                            \
  break

static void chain_steps_kernel_repeat(float *to, float value, int64_t n) {
  const vf all = vf_set1(value);
  for (int64_t i = 0; i < n; i += VF_LANES) vf_store_n(to + i, all, vf_tail(n - i));
}

void chain_load(float *to, berth_type type, const void *from, int64_t stride, int64_t n) {
  if (stride == 0 && n > 1) {
    float value;
    chain_load(&value, type, from, 0, 1);
    chain_steps_kernel_repeat(to, value, n);
    return;
  }
  switch (type) {
    case BERTH_U8: LOAD(uint8_t, x);
    case BERTH_I8: LOAD(int8_t, x);
    case BERTH_I32: LOAD(int32_t, x);
    case BERTH_BOOL: LOAD(uint8_t, x != 0);
    case BERTH_BF16:
      if (stride == 1 && n >= VF_LANES) {
        const uint16_t *halves = from;
        for (; n >= VF_LANES; n -= VF_LANES, halves += VF_LANES, to += VF_LANES) vf_store(to, vf_load_bf16(halves));
        from = halves;
      }
      LOAD(uint16_t, half_from_bits((uint32_t)x << 16));
    case BERTH_F16:
      if (stride == 1) {
        half_load_line(to, from, n);
        break;
      }
      LOAD(uint16_t, half_to_float(x));
    default: LOAD(float, x);
  }
}

/* Toward zero, clamped to the range; NaN becomes 0. */
#define SATURATED(x, low, high, beyond, c_type) \
  ((x) >= (beyond) ? (high) : (x) <= (low) ? (c_type)(low) : (x) == (x) ? (c_type)(x) : 0)

#define STORE(c_type, convert)        \
  do {                                \
    c_type *dst = to;                 \
    for (int64_t i = 0; i < n; i++) { \
      const float x = from[i];        \
      dst[i] = (c_type)(convert);     \
    }                                 \
  } while (0);                        \
  break

void chain_store(void *to, berth_type type, const float *from, int64_t n) {
  switch (type) {
    case BERTH_U8: STORE(uint8_t, SATURATED(x, 0.0f, 255, 255.0f, uint8_t));
    case BERTH_I8: STORE(int8_t, SATURATED(x, -128.0f, 127, 127.0f, int8_t));
    case BERTH_I32: STORE(int32_t, SATURATED(x, -0x1p31f, INT32_MAX, 0x1p31f, int32_t));
    case BERTH_BOOL: STORE(uint8_t, x != 0.0f);
    case BERTH_BF16: STORE(uint16_t, bf16_of(x));
    case BERTH_F16: half_store_line(to, from, n); break;
    default: memcpy(to, from, (size_t)n * sizeof *from); break;
  }
}
