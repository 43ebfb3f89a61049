/* Unary ops of f32. */
#include "kernel/lower/math.h"

#include <math.h>

static berth__x lower_math_absolute(berth__kernel *k, berth__x x) { return berth__x1(k, BERTH__INST_abs, x); }

static berth__x or_nan(berth__kernel *k, berth__x x, berth__x y) {
  return berth__x_select(k, berth__x_is_nan(k, x), x, y);
}

/* ---- Hyperbolic functions ---- */

/* Below 0.625 by a polynomial, above by e^2a; both apply the sign last, so -0 is kept. */
static berth__x lower_math_tanh_of(berth__kernel *k, berth__x x) {
  const berth__x a = lower_math_absolute(k, x), z = berth__x_mul(k, a, a), one = berth__x_f32(k, 1);
  const berth__x p = BERTH__M_POLY(k, z, -0.33333284f, 0.13331492f, -0.053743534f, 0.020650716f, -0.005717196f);
  const berth__x near_0 = berth__m_fma(k, berth__x_mul(k, a, z), p, a);
  const berth__x power = berth__x1(k, BERTH__INST_exp, berth__m_scale(k, a, 2));
  const berth__x far = berth__x_sub(k, one, berth__x_div(k, berth__x_f32(k, 2), berth__x_add(k, power, one)));
  const berth__x y = berth__x_select(k, berth__m_below(k, a, 0.625f), near_0, far);
  return or_nan(k, x, berth__m_with_sign(k, y, x));
}

/* e^a / 2 via e^(a/2), which is finite whenever half of its square is. */
static berth__x half_exp(berth__kernel *k, berth__x a) {
  const berth__x root = berth__m_exp(k, berth__m_scale(k, a, 0.5f));
  return berth__x_mul(k, berth__m_scale(k, root, 0.5f), root);
}

static berth__x sinh_of(berth__kernel *k, berth__x x) {
  const berth__x a = lower_math_absolute(k, x), z = berth__x_mul(k, a, a), half = half_exp(k, a);
  const berth__x p = BERTH__M_POLY(k, z, 0.16666667f, 0.0083333505f, 0.00019836066f, 2.8174395e-06f);
  const berth__x near_0 = berth__m_fma(k, berth__x_mul(k, a, z), p, a);
  const berth__x far = berth__x_sub(k, half, berth__x_div(k, berth__x_f32(k, 0.25f), half));
  return berth__m_with_sign(k, berth__x_select(k, berth__m_below(k, a, 1), near_0, far), x);
}

static berth__x cosh_of(berth__kernel *k, berth__x x) {
  const berth__x half = half_exp(k, lower_math_absolute(k, x));
  return berth__x_add(k, half, berth__x_div(k, berth__x_f32(k, 0.25f), half));
}

#define SQUARE_FITS 0x1p60f

/* log(2a), for a so large that a^2 would overflow and adding 1 would not matter. */
static berth__x log_of_twice(berth__kernel *k, berth__x a) {
  return berth__m_plus(k, berth__m_log(k, a), 0.693147181f);
}

/* log(a + sqrt(a^2 + 1)) */
static berth__x asinh_of(berth__kernel *k, berth__x x) {
  const berth__x a = lower_math_absolute(k, x), z = berth__x_mul(k, a, a), one = berth__x_f32(k, 1);
  const berth__x root = berth__x1(k, BERTH__INST_sqrt, berth__x_add(k, z, one));
  const berth__x over_1 = berth__x_add(k, a, berth__x_div(k, z, berth__x_add(k, one, root)));
  const berth__x y =
      berth__x_select(k, berth__m_above(k, a, SQUARE_FITS), log_of_twice(k, a), berth__m_log1p(k, over_1));
  return berth__m_with_sign(k, y, x);
}

/* log(x + sqrt(x^2 - 1)) */
static berth__x acosh_of(berth__kernel *k, berth__x x) {
  const berth__x t = berth__m_plus(k, x, -1);
  const berth__x root = berth__x1(k, BERTH__INST_sqrt, berth__m_fma(k, t, t, berth__m_scale(k, t, 2)));
  const berth__x y = berth__x_select(k, berth__m_above(k, x, SQUARE_FITS), log_of_twice(k, x),
                                     berth__m_log1p(k, berth__x_add(k, t, root)));
  return berth__x_select(k, berth__m_below(k, x, 1), berth__x_f32(k, NAN), y);
}

/* log((1 + a) / (1 - a)) / 2 */
static berth__x atanh_of(berth__kernel *k, berth__x x) {
  const berth__x a = lower_math_absolute(k, x), one = berth__x_f32(k, 1);
  const berth__x over_1 = berth__x_div(k, berth__m_scale(k, a, 2), berth__x_sub(k, one, a));
  berth__x y = berth__m_scale(k, berth__m_log1p(k, over_1), 0.5f);
  y = berth__x_select(k, berth__x_eq(k, a, one), berth__x_f32(k, INFINITY), y);
  y = berth__x_select(k, berth__m_above(k, a, 1), berth__x_f32(k, NAN), y);
  return berth__m_with_sign(k, y, x);
}

/* ---- Activations: the device's own exp is accurate enough, but may not propagate NaN ---- */

static berth__x device_exp(berth__kernel *k, berth__x x) { return berth__x1(k, BERTH__INST_exp, x); }

static berth__x lower_math_sigmoid(berth__kernel *k, berth__x x) {
  const berth__x one = berth__x_f32(k, 1);
  const berth__x e = device_exp(k, berth__x1(k, BERTH__INST_neg, lower_math_absolute(k, x))); /* never overflows */
  const berth__x above = berth__x_select(k, berth__m_below(k, x, 0), e, one);
  return or_nan(k, x, berth__x_div(k, above, berth__x_add(k, one, e)));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
static berth__x lower_math_softplus(berth__kernel *k, berth__x x) {
  const berth__x e = berth__m_exp(k, berth__x1(k, BERTH__INST_neg, lower_math_absolute(k, x)));
  const berth__x positive = berth__x_select(k, berth__m_below(k, x, 0), berth__x_f32(k, 0), x);
  return berth__x_add(k, positive, berth__m_log1p(k, e));
}

/* x times a factor that is 0 at -infinity. */
static berth__x weighed(berth__kernel *k, berth__x x, berth__x factor) {
  const berth__x is_lowest = berth__x_eq(k, x, berth__x_f32(k, -INFINITY));
  return berth__x_select(k, is_lowest, berth__x_f32(k, 0), berth__x_mul(k, x, factor));
}

static berth__x gelu_tanh(berth__kernel *k, berth__x x) {
  const berth__x cube = berth__x_mul(k, berth__x_mul(k, x, x), x);
  const berth__x inner = berth__m_fma(k, cube, berth__x_f32(k, 0.044715f), x);
  return weighed(k, x, lower_math_sigmoid(k, berth__m_scale(k, inner, 1.59576912f)));
}

#define LAST_ERFC 10.1f /* from here on 1 - erf underflows */

/* 1 - erf(a) for a >= 0: e^-a^2 times a polynomial of 1 / (1 + 0.35 a). */
static berth__x erfc_of(berth__kernel *k, berth__x a) {
  a = berth__x_select(k, berth__m_above(k, a, LAST_ERFC), berth__x_f32(k, LAST_ERFC), a);
  const berth__x one = berth__x_f32(k, 1);
  const berth__x u = berth__x_div(k, one, berth__m_fma(k, a, berth__x_f32(k, 0.35f), one));
  const berth__x p = BERTH__M_POLY(k, u, 0.19748302f, 0.19715224f, 0.1877936f, 0.15166722f, 0.1447176f, 0.08937834f,
                                   -0.030429596f, 0.18342979f, -0.15973786f, 0.038545653f);
  const berth__x decay = device_exp(k, berth__x1(k, BERTH__INST_neg, berth__x_mul(k, a, a)));
  return berth__x_mul(k, berth__x_mul(k, u, p), decay);
}

static berth__x lower_math_erf_of(berth__kernel *k, berth__x x) {
  const berth__x a = lower_math_absolute(k, x), z = berth__x_mul(k, a, a);
  /* a <= sqrt(3/4) */
  const berth__x p =
      BERTH__M_POLY(k, z, 1.1283791f, -0.37612557f, 0.11282555f, -0.026795605f, 0.005039119f, -0.00062435394f);
  const berth__x far = berth__x_sub(k, berth__x_f32(k, 1), erfc_of(k, a));
  const berth__x y = berth__x_select(k, berth__m_below(k, a, 0.866f), berth__x_mul(k, a, p), far);
  return or_nan(k, x, berth__m_with_sign(k, y, x));
}

/* x (1 + erf(x / sqrt 2)) / 2, in a form that does not cancel below 0. */
static berth__x gelu(berth__kernel *k, berth__x x) {
  const berth__x tail = berth__m_scale(k, erfc_of(k, berth__m_scale(k, lower_math_absolute(k, x), 0.707106781f)), 0.5f);
  const berth__x rest = berth__x_sub(k, berth__x_f32(k, 1), tail);
  return weighed(k, x, berth__x_select(k, berth__m_below(k, x, 0), tail, rest));
}

/* ---- All of them ---- */

static berth__x lower_math_sign_of(berth__kernel *k, berth__x x) {
  const berth__x below = berth__x_select(k, berth__m_below(k, x, 0), berth__x_f32(k, -1), x);
  return berth__x_select(k, berth__m_above(k, x, 0), berth__x_f32(k, 1), below);
}

static berth__x lower_math_relu(berth__kernel *k, berth__x x) {
  return berth__x_select(k, berth__m_below(k, x, 0), berth__x_f32(k, 0), x);
}

static berth__x lower_math_inverse(berth__kernel *k, berth__x x) { return berth__x_div(k, berth__x_f32(k, 1), x); }

static berth__x angles(berth__kernel *k, berth__op_code op, berth__x x) {
  switch (op) {
    case BERTH__OP_sin: return berth__m_sin(k, x);
    case BERTH__OP_cos: return berth__m_cos(k, x);
    case BERTH__OP_tan: return berth__m_tan(k, x);
    case BERTH__OP_asin: return berth__m_asin(k, x);
    case BERTH__OP_acos: return berth__m_acos(k, x);
    case BERTH__OP_atan: return berth__m_atan(k, x);
    case BERTH__OP_sinh: return sinh_of(k, x);
    case BERTH__OP_cosh: return cosh_of(k, x);
    case BERTH__OP_asinh: return asinh_of(k, x);
    case BERTH__OP_acosh: return acosh_of(k, x);
    default: return atanh_of(k, x);
  }
}

static berth__x lower_math_smooth(berth__kernel *k, berth__op_code op, berth__x x) {
  switch (op) {
    case BERTH__OP_exp: return berth__m_exp(k, x);
    case BERTH__OP_expm1: return berth__m_expm1(k, x);
    case BERTH__OP_log: return berth__m_log(k, x);
    case BERTH__OP_tanh: return lower_math_tanh_of(k, x);
    case BERTH__OP_sigmoid: return lower_math_sigmoid(k, x);
    case BERTH__OP_softplus: return lower_math_softplus(k, x);
    case BERTH__OP_erf: return lower_math_erf_of(k, x);
    case BERTH__OP_gelu: return gelu(k, x);
    case BERTH__OP_gelu_tanh: return gelu_tanh(k, x);
    case BERTH__OP_silu: return weighed(k, x, lower_math_sigmoid(k, x));
    default: return angles(k, op, x);
  }
}

berth__x berth__l_unary(berth__kernel *k, berth__op_code op, berth__x a) {
  switch (op) {
    case BERTH__OP_identity: return a;
    case BERTH__OP_neg: return berth__x1(k, BERTH__INST_neg, a);
    case BERTH__OP_abs: return lower_math_absolute(k, a);
    case BERTH__OP_sqrt: return berth__x1(k, BERTH__INST_sqrt, a);
    case BERTH__OP_rsqrt: return lower_math_inverse(k, berth__x1(k, BERTH__INST_sqrt, a));
    case BERTH__OP_reciprocal: return lower_math_inverse(k, a);
    case BERTH__OP_relu: return lower_math_relu(k, a);
    case BERTH__OP_sign: return lower_math_sign_of(k, a);
    case BERTH__OP_round: return berth__x1(k, BERTH__INST_round, a);
    case BERTH__OP_floor: return berth__x1(k, BERTH__INST_floor, a);
    case BERTH__OP_ceil: return berth__x1(k, BERTH__INST_ceil, a);
    default: return lower_math_smooth(k, op, a);
  }
}
