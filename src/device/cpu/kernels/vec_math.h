/* Functions of vectors, each within about 2 units in the last place of the exact result. Infinities, NaN and zeros are
 * treated as in C; results below 2^-126 may be 0, because subnormal numbers are slow on many machines. The polynomials
 * are minimax fits. Far below 0, gelu and gelu_tanh are within 1e-9 instead. */
#ifndef BERTH_DEVICE_CPU_KERNELS_VEC_MATH_H
#define BERTH_DEVICE_CPU_KERNELS_VEC_MATH_H

#include "device/cpu/kernels/vec.h"

/* a + b x + ..., from the highest power down. */
#define VF_POLY(x, p, ...)                                                   \
  do {                                                                       \
    const float coefficient[] = {__VA_ARGS__};                               \
    (p) = vf_set1(coefficient[0]);                                           \
    for (size_t at = 1; at < sizeof coefficient / sizeof *coefficient; at++) \
      (p) = vf_fma((p), (x), vf_set1(coefficient[at]));                      \
  } while (0)

static inline vf vf_neg(vf x) { return vf_from_bits(vi_xor(vf_bits(x), vi_set1(INT32_MIN))); }
static inline vf vf_with_sign(vf magnitude, vf sign) {
  return vf_from_bits(vi_or(vf_bits(magnitude), vi_and(vf_bits(sign), vi_set1(INT32_MIN))));
}
static inline vf vf_relu(vf x) { return vf_max(vf_zero(), x); } /* NaN stays */

/* ---- exp ------------------------------------------------------------------------------------------------------ */

/* x = n ln 2 + r with |r| <= ln 2 / 2; returns exp(r) - 1, and n in the low bits of *shifted. */
static inline vf vf_exp_reduced(vf x, vf *shifted) {
  const vf rounder = vf_set1(12582912.0f); /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
  vf q;
  *shifted = vf_fma(x, vf_set1(1.44269504f), rounder);
  const vf n = *shifted - rounder;
  const vf r = vf_fnma(n, vf_set1(3.19461833e-05f), vf_fnma(n, vf_set1(0.693115234f), x));
  VF_POLY(r, q, 1.388250994e-03f, 8.366580345e-03f, 4.166720178e-02f, 1.666654318e-01f, 4.999999814e-01f);
  return vf_fma(q, r * r, r);
}

static inline vf vf_exp(vf x) {
  vf shifted;
  const vf p = vf_exp_reduced(x, &shifted) + vf_set1(1.0f);
  vf y = vf_from_bits(vi_add(vf_bits(p), vi_shift_left(vf_bits(shifted), 23)));
  y = vf_pick_lt(vf_set1(88.722839f), x, vf_set1(INFINITY), y);
  return vf_pick_lt(x, vf_set1(-87.336544f), vf_zero(), y);
}

/* For x <= 0 or NaN, where nothing can overflow. */
static inline vf vf_exp_negative(vf x) {
  vf shifted;
  const vf p = vf_exp_reduced(x, &shifted) + vf_set1(1.0f);
  const vf y = vf_from_bits(vi_add(vf_bits(p), vi_shift_left(vf_bits(shifted), 23)));
  return vf_pick_lt(x, vf_set1(-87.336544f), vf_zero(), y);
}

/* 2^n q + 2^n - 1, computed as halves, because 2^128 is out of range. */
static inline vf vf_expm1(vf x) {
  vf shifted;
  const vf bounded = vf_min(vf_set1(89.0f), vf_max(vf_set1(-30.0f), x));
  const vf q = vf_exp_reduced(bounded, &shifted);
  const vf half = vf_from_bits(vi_add(vi_set1(0x3f000000), vi_shift_left(vf_bits(shifted), 23)));
  const vf y = vf_fma(half, q, half - vf_set1(0.5f));
  return vf_with_sign(y + y, x); /* -0 stays */
}

/* ---- log ------------------------------------------------------------------------------------------------------ */

/* (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt 1/2 to sqrt 2. */
static inline vf vf_log1p_poly(vf f) {
  vf p;
  VF_POLY(f, p, -7.634493025e-02f, 1.276157564e-01f, -1.316018306e-01f, 1.420175823e-01f, -1.662335730e-01f,
          2.000122687e-01f, -2.500082104e-01f, 3.333333171e-01f);
  return p;
}

/* log(1 + f) - f, for the same f. */
static inline vf vf_log1p_rest(vf f) {
  const vf square = f * f;
  return vf_fma(square * f, vf_log1p_poly(f), square * vf_set1(-0.5f));
}

static inline vf vf_log(vf x) {
  const vf smallest = vf_set1(1.17549435e-38f);
  const vf normal = vf_pick_lt(x, smallest, x * vf_set1(8388608.0f), x);
  const vf exponent_bias = vf_pick_lt(x, smallest, vf_set1(150.0f), vf_set1(127.0f));
  const vi e = vi_shift_right(vi_add(vf_bits(normal), vi_set1(0x004afb0d)), 23); /* biased, of 1 + f */
  const vf f = vf_from_bits(vi_sub(vf_bits(normal), vi_shift_left(vi_sub(e, vi_set1(127)), 23))) - vf_set1(1.0f);
  const vf n = vf_from_int(e) - exponent_bias;
  vf y = vf_fma(n, vf_set1(-2.12194440e-4f), vf_log1p_rest(f));
  y = vf_fma(n, vf_set1(0.693359375f), f + y);
  y = vf_pick_eq(x, vf_set1(INFINITY), x, y);
  y = vf_pick_eq(x, vf_zero(), vf_set1(-INFINITY), y);
  y = vf_pick_lt(x, vf_zero(), vf_set1(NAN), y);
  return vf_pick_nan(x, x, y);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which never overflows. */
static inline vf vf_softplus(vf x) {
  const vf e = vf_exp_negative(vf_neg(vf_abs(x))), limit = vf_set1(0.414213562f);
  const vf f = vf_pick_lt(limit, e, (e - vf_set1(1.0f)) * vf_set1(0.5f), e); /* 1 + e, or half of it */
  const vf whole = vf_pick_lt(limit, e, vf_set1(0.693147181f), vf_zero());
  return vf_relu(x) + (whole + (f + vf_log1p_rest(f)));
}

/* ---- Sigmoids ------------------------------------------------------------------------------------------------- */

static inline vf vf_sigmoid(vf x) {
  const vf e = vf_exp_negative(vf_neg(vf_abs(x))), one = vf_set1(1.0f);
  return vf_pick_lt(x, vf_zero(), e, one) / (one + e);
}

/* x sigmoid(f(x)) for an odd f, as max(x, 0) - |x| sigmoid(-f(|x|)), which avoids infinity times 0. `a` is |x|, limited
 * where the product is 0 anyway; `e` is exp(-f(a)). */
static inline vf vf_gated(vf x, vf a, vf e) { return vf_relu(x) - a * e / (vf_set1(1.0f) + e); }

static inline vf vf_silu(vf x) {
  const vf a = vf_min(vf_set1(128.0f), vf_abs(x));
  return vf_gated(x, a, vf_exp_negative(vf_neg(a)));
}

static inline vf vf_gelu_tanh(vf x) {
  const vf a = vf_min(vf_set1(16.0f), vf_abs(x));
  const vf cubic = vf_fma(a * a, a * vf_set1(-0.0713548163f), a * vf_set1(-1.59576912f));
  return vf_gated(x, a, vf_exp_negative(cubic));
}

/* With t = exp(-2 |x|) - 1: -t / (t + 2). */
static inline vf vf_tanh(vf x) {
  const vf t = vf_expm1(vf_abs(x) * vf_set1(-2.0f));
  return vf_with_sign(vf_neg(t) / (t + vf_set1(2.0f)), x);
}

/* ---- erf ------------------------------------------------------------------------------------------------------ */

/* The probability that a normal variable exceeds a, for a >= 0: exp(-a^2 / 2) times a slowly falling function. */
static inline vf vf_normal_tail(vf a) {
  const vf half = a * vf_set1(0.5f), exponent = a * half;
  const vf lost = vf_fma(a, half, vf_neg(exponent)); /* rounding error of the exponent */
  const vf t = vf_set1(1.0f) / vf_fma(a, vf_set1(0.35f), vf_set1(1.0f));
  vf p;
  VF_POLY(t, p, -2.915787479e-02f, 1.440308669e-01f, -2.558388971e-01f, 1.593195759e-01f, -2.321227327e-02f,
          1.055524693e-01f, 1.198212957e-01f, 1.398635144e-01f, 1.396213069e-01f);
  const vf e = vf_exp_negative(vf_neg(exponent));
  return p * t * vf_fnma(e, lost, e);
}

static inline vf vf_erf(vf x) {
  const vf a = vf_min(vf_set1(6.0f), vf_abs(x)), square = a * a;
  vf p;
  VF_POLY(square, p, -6.315128938e-04f, 5.051094752e-03f, -2.680254772e-02f, 1.128271740e-01f, -3.761257184e-01f,
          1.128379160e+00f);
  const vf far = vf_fma(vf_normal_tail(a * vf_set1(1.41421356f)), vf_set1(-2.0f), vf_set1(1.0f));
  return vf_with_sign(vf_pick_lt(a, vf_set1(0.85f), p * a, far), x);
}

/* x (1 + erf(x / sqrt 2)) / 2 = max(x, 0) - |x| tail(|x|). */
static inline vf vf_gelu(vf x) {
  const vf a = vf_min(vf_set1(15.0f), vf_abs(x));
  return vf_fnma(a, vf_normal_tail(a), vf_relu(x));
}

/* ---- sin, cos ------------------------------------------------------------------------------------------------- */

#define VF_ANGLE_MAX 8192.0f /* above this, the C library reduces the angle */

/* x = n pi / 2 + r, with pi / 2 in three parts, such that n times the first two is exact. The sine of x + quarter * pi
 * / 2. */
static inline vf vf_sine(vf x, int32_t quarter) {
  const vf n = vf_round(x * vf_set1(0.636619772f));
  vf r = vf_fnma(n, vf_set1(1.5703125f), x), s, c;
  r = vf_fnma(n, vf_set1(0.0004837512969970703f), r);
  r = vf_fnma(n, vf_set1(7.54979013e-08f), r);
  const vf square = r * r;
  VF_POLY(square, s, -1.951202836e-04f, 8.332137138e-03f, -1.666665424e-01f);
  VF_POLY(square, c, 2.442943815e-05f, -1.388728420e-03f, 4.166664504e-02f);
  s = vf_fma(s, square * r, r);
  c = vf_fma(c, square * square, vf_fma(square, vf_set1(-0.5f), vf_set1(1.0f)));
  const vi turn = vi_add(vf_to_int(n), vi_set1(quarter));
  const vf y = vf_pick_eq(vf_from_int(vi_and(turn, vi_set1(1))), vf_zero(), s, c);
  return vf_from_bits(vi_xor(vf_bits(y), vi_shift_left(vi_and(turn, vi_set1(2)), 30)));
}

/* Lane by lane, so that no result depends on its neighbours. */
static inline vf vf_mend_far(vf x, vf y, float (*of)(float)) {
  float lane[VF_LANES];
  const vf is_far = vf_pick_le(vf_abs(x), vf_set1(VF_ANGLE_MAX), vf_zero(), vf_set1(1.0f));
  if (vf_most(is_far) == 0.0f) return y;
  vf_store(lane, x);
  for (int i = 0; i < VF_LANES; i++) lane[i] = of(lane[i]);
  return vf_pick_eq(is_far, vf_zero(), y, vf_load(lane));
}
static inline vf vf_sin(vf x) { return vf_mend_far(x, vf_sine(x, 0), sinf); }
static inline vf vf_cos(vf x) { return vf_mend_far(x, vf_sine(x, 1), cosf); }

/* ---- Inverse and hyperbolic functions --------------------------------------------------------------------------- */

#define VF_HALF_PI 1.57079637f
#define VF_HALF_PI_REST (-4.37113883e-08f) /* its rounding error */
#define VF_LN_2 0.693147181f

/* Where atan is steep, relative to an angle of an eighth or a quarter turn: below tan(pi / 8) a short polynomial is
 * enough. */
static inline vf vf_atan(vf x) {
  const vf a = vf_abs(x), one = vf_set1(1.0f), steep = vf_set1(2.41421356f), flat = vf_set1(0.414213562f);
  const vf top = vf_pick_lt(steep, a, vf_set1(-1.0f), vf_pick_lt(flat, a, a - one, a));
  const vf bottom = vf_pick_lt(steep, a, a, vf_pick_lt(flat, a, a + one, one));
  const vf turn = vf_pick_lt(steep, a, one, vf_pick_lt(flat, a, vf_set1(0.5f), vf_zero())); /* times half pi */
  const vf t = top / bottom, square = t * t;
  vf p;
  VF_POLY(square, p, -6.083451731e-02f, 1.059600093e-01f, -1.424384865e-01f, 1.999848943e-01f, -3.333331551e-01f);
  const vf rest = vf_fma(turn, vf_set1(VF_HALF_PI_REST), vf_fma(p, square * t, t));
  return vf_with_sign(vf_fma(turn, vf_set1(VF_HALF_PI), rest), x);
}

/* (asin t - t) / t as a function of t^2, for t^2 up to 1/4. */
static inline vf vf_asin_rest(vf square) {
  vf p;
  VF_POLY(square, p, 3.756523459e-02f, 1.440258368e-02f, 3.181761698e-02f, 4.451571969e-02f, 7.500510920e-02f,
          1.666665987e-01f);
  return p * square;
}

/* Above 1/2, asin x = pi / 2 - 2 asin sqrt((1 - x) / 2). */
static inline vf vf_asin(vf x) {
  const vf a = vf_abs(x), half = vf_set1(0.5f), far = vf_fnma(half, a, half);
  const vf square = vf_pick_lt(half, a, far, a * a), t = vf_pick_lt(half, a, vf_sqrt(far), a);
  const vf y = vf_fma(t, vf_asin_rest(square), t);
  const vf beyond = vf_fnma(vf_set1(2.0f), y, vf_set1(VF_HALF_PI)) + vf_set1(VF_HALF_PI_REST);
  return vf_with_sign(vf_pick_lt(half, a, beyond, y), x);
}

static inline vf vf_acos(vf x) {
  const vf a = vf_abs(x), half = vf_set1(0.5f), far = vf_fnma(half, a, half), two = vf_set1(2.0f);
  const vf square = vf_pick_lt(half, a, far, a * a), t = vf_pick_lt(half, a, vf_sqrt(far), x);
  const vf y = vf_fma(t, vf_asin_rest(square), t);
  const vf near = vf_set1(VF_HALF_PI) - (y - vf_set1(VF_HALF_PI_REST));
  const vf other = vf_fnma(two, y, vf_set1(2.0f * VF_HALF_PI)) + vf_set1(2.0f * VF_HALF_PI_REST);
  return vf_pick_lt(half, a, vf_pick_lt(x, vf_zero(), other, two * y), near);
}

/* Where e^a is out of range, e^(a / 2) is not. */
static inline vf vf_half_exp(vf a) {
  const vf root = vf_exp(a * vf_set1(0.5f));
  return vf_set1(0.5f) * root * root;
}

static inline vf vf_sinh(vf x) {
  const vf a = vf_abs(x), e = vf_expm1(vf_min(vf_set1(80.0f), a)), half = vf_set1(0.5f);
  const vf y = vf_pick_lt(vf_set1(80.0f), a, vf_half_exp(a), half * (e + e / (e + vf_set1(1.0f))));
  return vf_pick_nan(x, x, vf_with_sign(y, x));
}

static inline vf vf_cosh(vf x) {
  const vf a = vf_abs(x), e = vf_exp(vf_min(vf_set1(80.0f), a)), half = vf_set1(0.5f);
  return vf_pick_nan(x, x, vf_pick_lt(vf_set1(80.0f), a, vf_half_exp(a), vf_fma(half, e, half / e)));
}

/* log(1 + x); far from 0, the rounding error of 1 + x is added back. */
static inline vf vf_log1p(vf x) {
  const vf one = vf_set1(1.0f), whole = one + x;
  const vf far = vf_log(whole) + (x - (whole - one)) / whole;
  const vf near = x + vf_log1p_rest(x);
  return vf_pick_lt(x, vf_set1(-0.29f), far, vf_pick_lt(vf_set1(0.414f), x, far, near));
}

#define VF_SQUARES_MAX 1e9f /* above this, sqrt(x^2 + 1) is x */

static inline vf vf_asinh(vf x) {
  const vf a = vf_abs(x), one = vf_set1(1.0f), b = vf_min(vf_set1(VF_SQUARES_MAX), a), square = b * b;
  const vf near = vf_log1p(b + square / (one + vf_sqrt(one + square)));
  const vf y = vf_pick_lt(vf_set1(VF_SQUARES_MAX), a, vf_log(a) + vf_set1(VF_LN_2), near);
  return vf_pick_nan(x, x, vf_with_sign(y, x));
}

static inline vf vf_acosh(vf x) {
  const vf one = vf_set1(1.0f), t = vf_min(vf_set1(VF_SQUARES_MAX), x) - one;
  const vf near = vf_log1p(t + vf_sqrt(t * (t + vf_set1(2.0f))));
  const vf y = vf_pick_lt(vf_set1(VF_SQUARES_MAX), x, vf_log(x) + vf_set1(VF_LN_2), near);
  return vf_pick_nan(x, x, vf_pick_lt(x, one, vf_set1(NAN), y));
}

static inline vf vf_atanh(vf x) {
  const vf a = vf_abs(x), one = vf_set1(1.0f);
  vf y = vf_set1(0.5f) * vf_log1p((a + a) / (one - a));
  y = vf_pick_eq(a, one, vf_set1(INFINITY), y);
  return vf_with_sign(vf_pick_lt(one, a, vf_set1(NAN), y), x);
}

/* ---- pow ------------------------------------------------------------------------------------------------------ */

static inline vf vf_pow_by_lane(vf x, vf y) {
  float base[VF_LANES], exponent[VF_LANES];
  vf_store(base, x);
  vf_store(exponent, y);
  for (int i = 0; i < VF_LANES; i++) base[i] = powf(base[i], exponent[i]);
  return vf_load(base);
}

#ifdef __FMA__
/* log2 x of a normal x > 0 as a sum of two numbers, the second of which has the digits that do not fit the first. Sums
 * and products that belong together are written as one expression, because a compiler may fuse them as well. */
static inline vf vf_log2_pair(vf x, vf *rest) {
  const vf high = vf_set1(1.44269502f), low = vf_set1(1.92596303e-08f); /* 1 / ln 2 */
  const vi e = vi_shift_right(vi_add(vf_bits(x), vi_set1(0x004afb0d)), 23);
  const vf f = vf_from_bits(vi_sub(vf_bits(x), vi_shift_left(vi_sub(e, vi_set1(127)), 23))) - vf_set1(1.0f);
  const vf n = vf_from_int(e) - vf_set1(127.0f), half = f * vf_set1(-0.5f);
  const vf sum = vf_fma(f, half, f); /* f - f^2 / 2 */
  const vf small = vf_fma(f * f * f, vf_log1p_poly(f), vf_fma(f, half, f - sum));
  const vf most = vf_fma(sum, high, n), less = vf_fma(sum, high, n - most) + vf_fma(sum, low, small * high);
  const vf whole = most + less;
  *rest = less + (most - whole);
  return whole;
}

/* 2^(y log2 x); all but positive normal x and finite y is left to the C library. */
static inline vf vf_pow(vf x, vf y) {
  vf rest, q;
  const vf rounder = vf_set1(12582912.0f), one = vf_set1(1.0f);
  const vf whole = vf_log2_pair(x, &rest), t = y * whole, shifted = vf_fma(y, whole, rounder);
  const vf r = vf_fma(y, rest, vf_fma(y, whole, rounder - shifted)) * vf_set1(0.693147181f);
  VF_POLY(r, q, 1.388250994e-03f, 8.366580345e-03f, 4.166720178e-02f, 1.666654318e-01f, 4.999999814e-01f);
  const vf p = vf_fma(q, r * r, r) + one;
  vf power = vf_from_bits(vi_add(vf_bits(p), vi_shift_left(vf_bits(shifted), 23)));
  power = vf_pick_le(vf_set1(128.0f), t, vf_set1(INFINITY), power);
  power = vf_pick_lt(t, vf_set1(-126.0f), vf_zero(), power);
  const vf is_plain =
      vf_pick_le(vf_set1(1.17549435e-38f), x, vf_pick_le(x, vf_set1(3.40282347e38f), one, vf_zero()), vf_zero()) *
      vf_pick_le(vf_abs(y), vf_set1(1e30f), one, vf_zero());
  if (vf_least(is_plain) > 0.0f) return power;
  return vf_pick_eq(is_plain, vf_zero(), vf_pow_by_lane(x, y), power);
}
#else
static inline vf vf_pow(vf x, vf y) { return vf_pow_by_lane(x, y); }
#endif

#endif
