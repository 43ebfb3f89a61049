/* exp, log and functions based on them: a number is split into a power of two and a rest near 1, for which a polynomial
 * is used. The polynomials are minimax over the interval that their comment names. */
#include <math.h>

#include "kernel/lower/math.h"

#define LOG2_E 1.44269504f
#define LN_2 0.693147181f
/* ln 2 in two parts: the first has so few digits that its product with an exponent is exact. */
#define LN_2_HIGH 0.693359375f
#define LN_2_LOW -2.12194440e-4f

berth__x berth__m_poly(berth__kernel *k, berth__x x, const float *c, uint32_t n) {
  berth__x sum = berth__x_f32(k, c[n - 1]);
  for (uint32_t i = n - 1; i-- > 0;) sum = berth__m_fma(k, sum, x, berth__x_f32(k, c[i]));
  return sum;
}

berth__x berth__m_with_sign(berth__kernel *k, berth__x a, berth__x sign) {
  const berth__x top = berth__x_u32(k, 0x80000000u), rest = berth__x_u32(k, 0x7fffffffu);
  const berth__x magnitude = berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, a), rest);
  const berth__x bit = berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, sign), top);
  return berth__x_bits(k, BERTH__NUM_F32, berth__x_or(k, magnitude, bit));
}

static berth__x lower_exponent_shl(berth__kernel *k, berth__x a, int64_t by) {
  return berth__x2(k, BERTH__INST_shl, a, berth__x_i32(k, by));
}

static berth__x lower_exponent_shr(berth__kernel *k, berth__x a, int64_t by) {
  return berth__x2(k, BERTH__INST_shr, a, berth__x_i32(k, by));
}

/* 2^n, for exponents n of normal numbers. */
static berth__x power_of_two(berth__kernel *k, berth__x n) {
  return berth__x_bits(k, BERTH__NUM_F32, lower_exponent_shl(k, berth__x_affine(k, n, 1, 127), 23));
}

/* In two steps: 2^n may overflow or underflow when x * 2^n does not. */
berth__x berth__m_times_power(berth__kernel *k, berth__x x, berth__x n) {
  const berth__x half = lower_exponent_shr(k, n, 1), rest = berth__x_sub(k, n, half);
  return berth__x_mul(k, berth__x_mul(k, x, power_of_two(k, half)), power_of_two(k, rest));
}

/* ---- exp ---- */

/* e^r for |r| <= ln 2 / 2. */
static berth__x exp_near_0(berth__kernel *k, berth__x r) {
  const berth__x p = BERTH__M_POLY(k, r, 0.5f, 0.16666518f, 0.041666206f, 0.008368908f, 0.0013950524f);
  return berth__m_plus(k, berth__m_fma(k, berth__x_mul(k, r, r), p, r), 1);
}

/* Clamps to [low, high]; NaN stays. */
static berth__x hold(berth__kernel *k, berth__x x, float low, float high) {
  x = berth__x_select(k, berth__m_below(k, x, low), berth__x_f32(k, low), x);
  return berth__x_select(k, berth__m_above(k, x, high), berth__x_f32(k, high), x);
}

berth__x berth__m_exp(berth__kernel *k, berth__x x) {
  x = hold(k, x, -104, 89); /* beyond it, the result is 0 or infinity */
  const berth__x n = berth__x1(k, BERTH__INST_round, berth__m_scale(k, x, LOG2_E));
  berth__x r = berth__m_mul_add(k, n, -LN_2_HIGH, x);
  r = berth__m_mul_add(k, n, -LN_2_LOW, r);
  return berth__m_times_power(k, exp_near_0(k, r), berth__x_convert(k, BERTH__NUM_I32, n));
}

berth__x berth__m_expm1(berth__kernel *k, berth__x x) {
  /* |x| <= 0.5 */
  const berth__x p =
      BERTH__M_POLY(k, x, 0.50000006f, 0.16666664f, 0.04166536f, 0.008333579f, 0.0013996176f, 0.00019849809f);
  const berth__x near_0 = berth__m_fma(k, berth__x_mul(k, x, x), p, x);
  const berth__x is_near = berth__m_below(k, berth__x1(k, BERTH__INST_abs, x), 0.5f);
  return berth__x_select(k, is_near, near_0, berth__m_plus(k, berth__m_exp(k, x), -1));
}

/* ---- log ---- */

/* x = (1 + rest) * 2^exponent for a positive, finite x, where the rest is between sqrt(1/2) - 1 and sqrt(2) - 1. */
typedef struct parts {
  berth__x rest, exponent; /* f32 */
} parts;

static parts lower_exponent_take_apart(berth__kernel *k, berth__x x) {
  berth__x bits = berth__x_bits(k, BERTH__NUM_I32, x);
  /* The fraction of a subnormal is an integer that f32 can represent: x = fraction * 2^-149, whatever the device makes
   * of x. */
  const berth__x is_tiny = berth__x_lt(k, bits, berth__x_i32(k, 0x00800000));
  const berth__x fraction = berth__x_convert(k, BERTH__NUM_F32, bits);
  bits = berth__x_select(k, is_tiny, berth__x_bits(k, BERTH__NUM_I32, fraction), bits);
  const berth__x less = berth__x_select(k, is_tiny, berth__x_i32(k, 149), berth__x_i32(k, 0));
  const berth__x n = lower_exponent_shr(k, berth__x_sub(k, bits, berth__x_i32(k, 0x3f3504f3)), 23); /* sqrt(1/2) */
  const berth__x m = berth__x_bits(k, BERTH__NUM_F32, berth__x_sub(k, bits, lower_exponent_shl(k, n, 23)));
  return (parts){.rest = berth__m_plus(k, m, -1),
                 .exponent = berth__x_convert(k, BERTH__NUM_F32, berth__x_sub(k, n, less))};
}

/* log(1 + f) - f */
static berth__x log_bend(berth__kernel *k, berth__x f) {
  const berth__x p = BERTH__M_POLY(k, f, 0.3333333f, -0.25000823f, 0.20001234f, -0.16623299f, 0.14201553f, -0.13160582f,
                                   0.12763327f, -0.07635655f);
  return berth__x_mul(k, berth__x_mul(k, f, f), berth__m_fma(k, f, p, berth__x_f32(k, -0.5f)));
}

static berth__x log_of_parts(berth__kernel *k, parts p) {
  const berth__x low = berth__m_mul_add(k, p.exponent, LN_2_LOW, log_bend(k, p.rest));
  return berth__m_mul_add(k, p.exponent, LN_2_HIGH, berth__x_add(k, p.rest, low));
}

/* The values of log for all x that are not positive and finite. */
static berth__x log_at_edges(berth__kernel *k, berth__x x, berth__x inside) {
  const berth__x bits = berth__x_bits(k, BERTH__NUM_I32, x);
  const berth__x is_huge = berth__x_le(k, berth__x_i32(k, 0x7f800000), bits); /* infinity, NaN */
  const berth__x is_zero = berth__x_eq(k, lower_exponent_shl(k, bits, 1), berth__x_i32(k, 0));
  const berth__x is_negative = berth__x_lt(k, bits, berth__x_i32(k, 0));
  berth__x y = berth__x_select(k, is_huge, x, inside);
  y = berth__x_select(k, is_negative, berth__x_f32(k, NAN), y);
  return berth__x_select(k, is_zero, berth__x_f32(k, -INFINITY), y);
}

berth__x berth__m_log(berth__kernel *k, berth__x x) {
  return log_at_edges(k, x, log_of_parts(k, lower_exponent_take_apart(k, x)));
}

berth__x berth__m_log1p(berth__kernel *k, berth__x x) {
  const berth__x sum = berth__m_plus(k, x, 1);
  parts p = lower_exponent_take_apart(k, sum);
  const berth__x is_near = berth__x_and(k, berth__m_above(k, x, -0.29f), berth__m_below(k, x, 0.41f));
  p.rest = berth__x_select(k, is_near, x, p.rest); /* exact, unlike the rounded sum */
  p.exponent = berth__x_select(k, is_near, berth__x_f32(k, 0), p.exponent);
  return log_at_edges(k, sum, log_of_parts(k, p));
}

/* ---- pow ---- */

/* y as a number of few digits and the rest: products of the former with an exponent are exact. */
static berth__x leading_digits(berth__kernel *k, berth__x y) {
  const berth__x bits = berth__x_bits(k, BERTH__NUM_U32, y);
  return berth__x_bits(k, BERTH__NUM_F32, berth__x_and(k, bits, berth__x_u32(k, 0xfffff000u)));
}

/* a^y for a positive, finite a: 2 to the y log2 a, with the integer part of the exponent kept separate. */
static berth__x pow_inside(berth__kernel *k, berth__x a, berth__x y) {
  const parts p = lower_exponent_take_apart(k, a);
  const berth__x fraction = berth__m_scale(k, berth__x_add(k, p.rest, log_bend(k, p.rest)), LOG2_E);
  const berth__x high = leading_digits(k, y), low = berth__x_sub(k, y, high);
  const berth__x exact = berth__x_mul(k, high, p.exponent), whole = berth__x1(k, BERTH__INST_round, exact);
  berth__x left = berth__x_add(k, berth__x_mul(k, low, p.exponent), berth__x_mul(k, y, fraction));
  left = berth__x_add(k, left, berth__x_sub(k, exact, whole));
  const berth__x more = berth__x1(k, BERTH__INST_round, left);
  const berth__x power = berth__x_add(k, whole, more);
  const berth__x n = berth__x_convert(k, BERTH__NUM_I32, hold(k, power, -160, 160));
  const berth__x near_1 = exp_near_0(k, berth__m_scale(k, berth__x_sub(k, left, more), LN_2));
  /* Far out the parts are NaN or infinite, but the plain product still has the right sign. */
  const berth__x rough = berth__x_mul(k, y, berth__x_add(k, p.exponent, fraction));
  const berth__x value =
      berth__x_select(k, berth__m_below(k, rough, -152), berth__x_f32(k, 0), berth__m_times_power(k, near_1, n));
  return berth__x_select(k, berth__m_above(k, rough, 130), berth__x_f32(k, INFINITY), value);
}

static berth__x lower_exponent_is_whole(berth__kernel *k, berth__x x) {
  return berth__x_eq(k, x, berth__x1(k, BERTH__INST_floor, x));
}

static berth__x not(berth__kernel * k, berth__x truth) { return berth__x1(k, BERTH__INST_not, truth); }

/* a^y for a >= 0. */
static berth__x pow_magnitude(berth__kernel *k, berth__x a, berth__x y) {
  const berth__x is_0 = berth__x_eq(k, a, berth__x_f32(k, 0)), is_inf = berth__x_eq(k, a, berth__x_f32(k, INFINITY));
  const berth__x grows = berth__m_above(k, y, 0);
  const berth__x at_edge =
      berth__x_select(k, berth__x2(k, BERTH__INST_xor, is_0, grows), berth__x_f32(k, INFINITY), berth__x_f32(k, 0));
  return berth__x_select(k, berth__x_or(k, is_0, is_inf), at_edge, pow_inside(k, a, y));
}

static berth__x pow_of_any(berth__kernel *k, berth__x x, berth__x y) {
  const berth__x a = berth__x1(k, BERTH__INST_abs, x), one = berth__x_f32(k, 1);
  berth__x value = pow_magnitude(k, a, y);
  value = berth__x_select(k, berth__x_eq(k, a, one), one, value);
  /* Above 2^24 every number is even. */
  const berth__x is_odd = berth__x_and(
      k, berth__m_below(k, berth__x1(k, BERTH__INST_abs, y), 0x1p24f),
      berth__x_and(k, lower_exponent_is_whole(k, y), not(k, lower_exponent_is_whole(k, berth__m_scale(k, y, 0.5f)))));
  value = berth__x_select(k, is_odd, berth__m_with_sign(k, value, x), value);
  const berth__x is_finite_negative = berth__x_and(k, berth__m_below(k, x, 0), berth__m_above(k, x, -INFINITY));
  const berth__x is_none = berth__x_and(k, is_finite_negative, not(k, lower_exponent_is_whole(k, y)));
  value = berth__x_select(k, is_none, berth__x_f32(k, NAN), value);
  value = berth__x_select(k, berth__x_is_nan(k, x), x, value);
  value = berth__x_select(k, berth__x_is_nan(k, y), y, value);
  const berth__x is_one = berth__x_or(k, berth__x_eq(k, y, berth__x_f32(k, 0)), berth__x_eq(k, x, one));
  return berth__x_select(k, is_one, one, value);
}

/* The powers that are frequent in models. */
berth__x berth__m_pow(berth__kernel *k, berth__x x, berth__x y) {
  uint32_t bits;
  float power;
  if (!berth__x_is_constant(k, y, &bits)) return pow_of_any(k, x, y);
  memcpy(&power, &bits, sizeof power);
  if (power == 1) return x;
  if (power == 2) return berth__x_mul(k, x, x);
  if (power == 3) return berth__x_mul(k, berth__x_mul(k, x, x), x);
  if (power == -1) return berth__x_div(k, berth__x_f32(k, 1), x);
  if (power == 0.5f) {
    const berth__x is_lowest = berth__x_eq(k, x, berth__x_f32(k, -INFINITY));
    return berth__x_select(k, is_lowest, berth__x_f32(k, INFINITY), berth__x1(k, BERTH__INST_sqrt, x));
  }
  return pow_of_any(k, x, y);
}

/* ---- fmod ---- */

/* |x| = digits * 2^(exponent - 150), digits below 2^24. */
typedef struct binary {
  berth__x digits;   /* u32 */
  berth__x exponent; /* i32 */
} binary;

static binary read_binary(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x_and(k, berth__x_bits(k, BERTH__NUM_I32, x), berth__x_i32(k, 0x7fffffff));
  const berth__x is_tiny = berth__x_lt(k, bits, berth__x_i32(k, 0x00800000));
  const berth__x fraction = berth__x_and(k, bits, berth__x_i32(k, 0x007fffff));
  const berth__x digits = berth__x_select(k, is_tiny, fraction, berth__x_or(k, fraction, berth__x_i32(k, 0x00800000)));
  return (binary){.digits = berth__x_convert(k, BERTH__NUM_U32, digits),
                  .exponent = berth__x_select(k, is_tiny, berth__x_i32(k, 1), lower_exponent_shr(k, bits, 23))};
}

#define DIGITS_AT_ONCE 8 /* 24 and 8 are 32 */

/* Long division: the remainder of the leading digits, extended by eight digits at a time. */
static berth__x long_remainder(berth__kernel *k, binary x, binary y) {
  const berth__x left = berth__x_variable(k, berth__x_rem(k, x.digits, y.digits));
  const berth__x more = berth__x_sub(k, x.exponent, y.exponent);
  const berth__x at = berth__x_loop(k, berth__x_i32(k, 0), more, DIGITS_AT_ONCE);
  const berth__x n = berth__x_min(k, berth__x_sub(k, more, at), berth__x_i32(k, DIGITS_AT_ONCE));
  const berth__x longer = berth__x2(k, BERTH__INST_shl, berth__x_get(k, left), berth__x_convert(k, BERTH__NUM_U32, n));
  berth__x_set(k, left, berth__x_rem(k, longer, y.digits));
  berth__x_end(k);
  return berth__x_get(k, left);
}

berth__x berth__m_fmod(berth__kernel *k, berth__x x, berth__x y) {
  const berth__x a = berth__x1(k, BERTH__INST_abs, x), b = berth__x1(k, BERTH__INST_abs, y);
  const binary divisor = read_binary(k, y);
  const berth__x left = berth__x_convert(k, BERTH__NUM_F32, long_remainder(k, read_binary(k, x), divisor));
  const berth__x value = berth__m_times_power(k, left, berth__x_affine(k, divisor.exponent, 1, -150));
  berth__x result = berth__x_select(k, berth__x_lt(k, a, b), x, berth__m_with_sign(k, value, x));
  const berth__x has_none =
      berth__x_or(k, berth__x_eq(k, a, berth__x_f32(k, INFINITY)), berth__x_eq(k, b, berth__x_f32(k, 0)));
  result = berth__x_select(k, berth__x_or(k, has_none, berth__x_is_nan(k, y)), berth__x_f32(k, NAN), result);
  return berth__x_select(k, berth__x_is_nan(k, x), x, result);
}
