/* Functions of one f64, within a few units in the last place, without branches and calls, so that compilers can
 * vectorise loops over them. Infinities, NaN and zeros are treated as in C. */
#ifndef BERTH_DEVICE_CPU_KERNELS_MATH_F64_H
#define BERTH_DEVICE_CPU_KERNELS_MATH_F64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t f64_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double f64_from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline double f64_with_sign(double magnitude, double sign) {
  return f64_from_bits((f64_bits(magnitude) & (UINT64_MAX >> 1)) | (f64_bits(sign) & ~(UINT64_MAX >> 1)));
}

#define F64_ROUNDER 6755399441055744.0 /* 1.5 * 2^52: adding it leaves the nearest integer in the low bits */
#define F64_LOG2_E 1.44269504088896340736
#define F64_LN_2_HIGH                                                                            \
  6.93147180369123816490e-01 /* its last 20 bits are 0, so that products with integers are exact \
                              */
#define F64_LN_2_LOW 1.90821492927058770002e-10

/* ---- exp ---- */

/* exp(r) - 1 for |r| <= ln 2 / 2: r + r^2 / 2 + ... */
static inline double f64_exp_rest(double r) {
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  return r + r * r * p;
}

/* x = n ln 2 + r; returns r, and n in *whole. */
static inline double f64_exp_reduced(double x, double *whole) {
  *whole = (x * F64_LOG2_E + F64_ROUNDER) - F64_ROUNDER;
  return (x - *whole * F64_LN_2_HIGH) - *whole * F64_LN_2_LOW;
}

/* 2^n for an integer n from -1022 to 1023. */
static inline double f64_power_of_2(double n) { return f64_from_bits(f64_bits(n + (F64_ROUNDER + 1023)) << 52); }

/* In two factors, as 2^n itself may be out of range. */
static inline double f64_scaled(double x, double n) {
  const double half = (n * 0.5 + F64_ROUNDER) - F64_ROUNDER;
  return x * f64_power_of_2(half) * f64_power_of_2(n - half);
}

static inline double f64_exp(double x) {
  const double below = x > 710.0 ? 710.0 : x, bounded = below < -746.0 ? -746.0 : below;
  double n;
  const double r = f64_exp_reduced(bounded, &n);
  return f64_scaled(1.0 + f64_exp_rest(r), n);
}

static inline double f64_expm1(double x) {
  const double below = x > 710.0 ? 710.0 : x, bounded = below < -40.0 ? -40.0 : below;
  double n;
  const double r = f64_exp_reduced(bounded, &n), q = f64_exp_rest(r);
  const double small = f64_power_of_2(n < 1000.0 ? n : 0.0); /* 2^n q + (2^n - 1) */
  const double y = n < 1000.0 ? small * q + (small - 1.0) : f64_scaled(1.0 + q, n);
  return x == 0.0 ? x : y;
}

/* ---- log ---- */

/* log m - (m - 1) + (m - 1)^2 / 2 for m from sqrt 1/2 to sqrt 2, by s = f / (2 + f) and the series of 2 atanh s. */
static inline double f64_log_rest(double f) {
  const double s = f / (2.0 + f), square = s * s;
  double p = 2.0 / 23;
  p = p * square + 2.0 / 21;
  p = p * square + 2.0 / 19;
  p = p * square + 2.0 / 17;
  p = p * square + 2.0 / 15;
  p = p * square + 2.0 / 13;
  p = p * square + 2.0 / 11;
  p = p * square + 2.0 / 9;
  p = p * square + 2.0 / 7;
  p = p * square + 2.0 / 5;
  p = p * square + 2.0 / 3;
  return s * (0.5 * f * f + square * p);
}

static inline double f64_log(double x) {
  const double scaled = x < 2.2250738585072014e-308 ? x * 0x1p54 : x;
  const double shift = x < 2.2250738585072014e-308 ? 54.0 + 1023.0 : 1023.0;
  const uint64_t bits = f64_bits(scaled), moved = bits + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
  const uint64_t mantissa = (moved & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd);
  const double n = f64_from_bits(moved >> 52 | UINT64_C(0x4330000000000000)) - 0x1p52 - shift;
  const double f = f64_from_bits(mantissa) - 1.0;
  double y = n * F64_LN_2_HIGH + (f + (n * F64_LN_2_LOW + (f64_log_rest(f) - 0.5 * f * f)));
  y = x == INFINITY ? x : y;
  y = x == 0.0 ? -INFINITY : y;
  y = x < 0.0 ? (double)NAN : y;
  return x != x ? x : y;
}

/* log(1 + x) for x from 0 to 1; the rounding error of 1 + x is added back. */
static inline double f64_log1p(double x) {
  const double whole = 1.0 + x;
  return f64_log(whole) + (x - (whole - 1.0)) / whole;
}

/* ---- Made of these ---- */

static inline double f64_sigmoid(double x) {
  const double e = f64_exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
static inline double f64_silu(double x) { return x == -INFINITY ? 0.0 : x * f64_sigmoid(x); }
static inline double f64_softplus(double x) { return (x < 0.0 ? 0.0 : x) + f64_log1p(f64_exp(-fabs(x))); }
static inline double f64_gelu_tanh(double x) {
  const double y = x * f64_sigmoid(1.5957691216057307117 * (x + 0.044715 * x * x * x));
  return x == -INFINITY ? 0.0 : y;
}
static inline double f64_tanh(double x) {
  const double t = f64_expm1(-2.0 * fabs(x));
  return f64_with_sign(-t / (t + 2.0), x);
}
static inline double f64_sinh(double x) {
  const double a = fabs(x), e = f64_expm1(a < 700.0 ? a : 700.0), root = f64_exp(0.5 * a);
  const double y = a < 700.0 ? 0.5 * (e + e / (e + 1.0)) : 0.5 * root * root;
  return x != x ? x : f64_with_sign(y, x);
}
static inline double f64_cosh(double x) {
  const double a = fabs(x), root = f64_exp(0.5 * a), e = root * root;
  return 0.5 * root * root + (a < 700.0 ? 0.5 / e : 0.0);
}

/* ---- sin, cos ---- */

#define F64_ANGLE_MAX 100000.0 /* above this, the C library reduces the angle */

/* x = n pi / 2 + r; pi / 2 comes in three parts, of which products of the first two with n are exact. The sine of x +
 * quarter * pi / 2. */
static inline double f64_sine(double x, uint64_t quarter) {
  const double shifted = x * 0.63661977236758134308 + F64_ROUNDER, n = shifted - F64_ROUNDER;
  const double r = ((x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
  const double square = r * r;
  double s = -1.0 / 1307674368000.0, c = 1.0 / 20922789888000.0;
  s = s * square + 1.0 / 6227020800;
  s = s * square - 1.0 / 39916800;
  s = s * square + 1.0 / 362880;
  s = s * square - 1.0 / 5040;
  s = s * square + 1.0 / 120;
  s = s * square - 1.0 / 6;
  c = c * square - 1.0 / 87178291200.0;
  c = c * square + 1.0 / 479001600;
  c = c * square - 1.0 / 3628800;
  c = c * square + 1.0 / 40320;
  c = c * square - 1.0 / 720;
  c = c * square + 1.0 / 24;
  const double sine = r + r * square * s, cosine = 1.0 - 0.5 * square + square * square * c;
  const uint64_t turn = f64_bits(shifted) + quarter;
  const double y = (turn & 1) != 0 ? cosine : sine;
  return f64_from_bits(f64_bits(y) ^ (turn & 2) << 62);
}

#endif
