/* sin, cos, tan and their inverses. An angle is split into a number of quarter turns and a remainder of at most an
 * eighth of a turn. */
#include <math.h>

#include "kernel/lower/math.h"

#define QUARTER 1.57079633f /* pi / 2 */
/* pi / 2 in three parts; the first two have so few digits that their products with numbers below 2^13 are exact. */
#define QUARTER_HIGH 1.5703125f
#define QUARTER_MIDDLE 0x1.fb4p-12f
#define QUARTER_LOW 0x1.4442d2p-24f
#define QUARTERS_PER_RADIAN 0.636619772f
#define LARGE 8192.0f /* from here on quarter turns are counted with integers */

typedef struct angle {
  berth__x quarters; /* i32; only its last two bits matter */
  berth__x rest;     /* f32, at most pi / 4 */
} angle;

static berth__x u32_of(berth__kernel *k, berth__x x) { return berth__x_convert(k, BERTH__NUM_U32, x); }
static berth__x lower_angle_shl(berth__kernel *k, berth__x a, uint32_t by) {
  return berth__x2(k, BERTH__INST_shl, a, berth__x_u32(k, by));
}
static berth__x lower_angle_shr(berth__kernel *k, berth__x a, uint32_t by) {
  return berth__x2(k, BERTH__INST_shr, a, berth__x_u32(k, by));
}

/* `whole` / 2^32 turns and `part` / 2^64 more. */
static angle angle_of_turns(berth__kernel *k, berth__x whole, berth__x part) {
  const berth__x fraction = berth__x_or(k, lower_angle_shl(k, whole, 2), lower_angle_shr(k, part, 30));
  const berth__x quarters =
      berth__x_add(k, lower_angle_shr(k, whole, 30), lower_angle_shr(k, fraction, 31)); /* to the nearest */
  const berth__x high = berth__x_convert(k, BERTH__NUM_F32, berth__x_bits(k, BERTH__NUM_I32, fraction));
  const berth__x low = berth__x_convert(k, BERTH__NUM_F32, lower_angle_shl(k, part, 2));
  const berth__x quarter = berth__m_fma(k, low, berth__x_f32(k, 0x1p-64f), berth__m_scale(k, high, 0x1p-32f));
  return (angle){.quarters = berth__x_bits(k, BERTH__NUM_I32, quarters), .rest = berth__m_scale(k, quarter, QUARTER)};
}

static angle small_angle(berth__kernel *k, berth__x x) {
  const berth__x n = berth__x1(k, BERTH__INST_round, berth__m_scale(k, x, QUARTERS_PER_RADIAN));
  berth__x rest = berth__m_mul_add(k, n, -QUARTER_HIGH, x);
  rest = berth__m_mul_add(k, n, -QUARTER_MIDDLE, rest);
  rest = berth__m_mul_add(k, n, -QUARTER_LOW, rest);
  return (angle){.quarters = berth__x_convert(k, BERTH__NUM_I32, n), .rest = rest};
}

/* ---- Large angles: the product with as many digits of 2 / pi as needed ---- */

#define PI_WORDS 8
/* The digits of 2 / pi after the point, with 32 zeros before them. */
static const uint32_t two_over_pi[PI_WORDS] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                               0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

/* The upper half of a product of a number below 2^24 with a 32-bit one, computed by halves. */
static berth__x product_high(berth__kernel *k, berth__x a, berth__x b) {
  const berth__x half = berth__x_u32(k, 0xffff);
  const berth__x al = berth__x_and(k, a, half), ah = lower_angle_shr(k, a, 16), bl = berth__x_and(k, b, half),
                 bh = lower_angle_shr(k, b, 16);
  const berth__x low = lower_angle_shr(k, berth__x_mul(k, al, bl), 16);
  const berth__x one = berth__x_add(k, berth__x_mul(k, ah, bl), low);
  const berth__x other = berth__x_add(k, berth__x_mul(k, al, bh), berth__x_and(k, one, half));
  return berth__x_add(k, berth__x_mul(k, ah, bh),
                      berth__x_add(k, lower_angle_shr(k, one, 16), lower_angle_shr(k, other, 16)));
}

/* Word `at` + `behind` of the digits; `at` is at most 4. */
static berth__x pi_word(berth__kernel *k, berth__x at, uint32_t behind) {
  berth__x word = berth__x_u32(k, two_over_pi[4 + behind]);
  for (uint32_t i = 4; i-- > 0;)
    word = berth__x_select(k, berth__x_eq(k, at, berth__x_u32(k, i)), berth__x_u32(k, two_over_pi[i + behind]), word);
  return word;
}

/* 32 digits from bit `shift` of `first` on; avoids a shift by 32, which is undefined. */
static berth__x digits_across(berth__kernel *k, berth__x first, berth__x second, berth__x shift) {
  const berth__x back = berth__x_sub(k, berth__x_u32(k, 31), shift);
  return berth__x_or(k, berth__x2(k, BERTH__INST_shl, first, shift),
                     berth__x2(k, BERTH__INST_shr, lower_angle_shr(k, second, 1), back));
}

/* |x| = digits * 2^n. Skips digits of 2 / pi that are so far to the left that their products are whole turns; the next
 * 96 digits leave more than 32 good ones, however close to a whole number of quarter turns the angle is. */
static angle large_angle(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, x), berth__x_u32(k, 0x7fffffff));
  const berth__x digits =
      berth__x_or(k, berth__x_and(k, bits, berth__x_u32(k, 0x007fffff)), berth__x_u32(k, 0x00800000));
  const berth__x first = berth__x_sub(k, lower_angle_shr(k, bits, 23), berth__x_u32(k, 150 - 30)); /* n + 30 */
  const berth__x at = lower_angle_shr(k, first, 5), shift = berth__x_and(k, first, berth__x_u32(k, 31));
  berth__x word[4], factor[3];
  for (uint32_t i = 0; i < 4; i++) word[i] = pi_word(k, at, i);
  for (uint32_t i = 0; i < 3; i++) factor[i] = digits_across(k, word[i], word[i + 1], shift);
  const berth__x middle = berth__x_mul(k, digits, factor[1]);
  const berth__x part = berth__x_add(k, middle, product_high(k, digits, factor[2]));
  const berth__x carry = u32_of(k, berth__x_lt(k, part, middle));
  const berth__x whole =
      berth__x_add(k, berth__x_mul(k, digits, factor[0]), berth__x_add(k, product_high(k, digits, factor[1]), carry));
  angle a = angle_of_turns(k, whole, part);
  const berth__x is_negative = berth__m_below(k, x, 0);
  a.quarters = berth__x_select(k, is_negative, berth__x1(k, BERTH__INST_neg, a.quarters), a.quarters);
  a.rest = berth__x_select(k, is_negative, berth__x1(k, BERTH__INST_neg, a.rest), a.rest);
  return a;
}

static angle angle_of(berth__kernel *k, berth__x x) {
  const angle small = small_angle(k, x);
  const berth__x quarters = berth__x_variable(k, small.quarters), rest = berth__x_variable(k, small.rest);
  berth__x_if(k, berth__m_above(k, berth__x1(k, BERTH__INST_abs, x), LARGE));
  const angle large = large_angle(k, x);
  berth__x_set(k, quarters, large.quarters);
  berth__x_set(k, rest, large.rest);
  berth__x_end(k);
  return (angle){.quarters = berth__x_get(k, quarters), .rest = berth__x_get(k, rest)};
}

/* ---- Sine and cosine of the rest ---- */

static berth__x sin_near_0(berth__kernel *k, berth__x r) {
  const berth__x z = berth__x_mul(k, r, r), p = BERTH__M_POLY(k, z, -0.16666655f, 0.00833216f, -0.00019515204f);
  return berth__m_fma(k, berth__x_mul(k, r, z), p, r);
}

static berth__x cos_near_0(berth__kernel *k, berth__x r) {
  const berth__x z = berth__x_mul(k, r, r), p = BERTH__M_POLY(k, z, 0.041666646f, -0.0013887367f, 2.4438365e-05f);
  const berth__x bend = berth__m_fma(k, berth__x_mul(k, z, z), p, berth__m_scale(k, z, -0.5f));
  return berth__m_plus(k, bend, 1);
}

static berth__x lower_angle_has_bit(berth__kernel *k, berth__x x, int64_t bit) {
  return berth__x_ne(k, berth__x_and(k, x, berth__x_i32(k, bit)), berth__x_i32(k, 0));
}

static berth__x lower_angle_sin_of(berth__kernel *k, berth__x quarters, berth__x sine, berth__x cosine) {
  const berth__x y = berth__x_select(k, lower_angle_has_bit(k, quarters, 1), cosine, sine);
  return berth__x_select(k, lower_angle_has_bit(k, quarters, 2), berth__x1(k, BERTH__INST_neg, y), y);
}

/* NaN if x is infinite. */
static berth__x where_finite(berth__kernel *k, berth__x x, berth__x y) {
  const berth__x exponent = berth__x_i32(k, 0x7f800000);
  const berth__x bits = berth__x_and(k, berth__x_bits(k, BERTH__NUM_I32, x), exponent);
  return berth__x_select(k, berth__x_eq(k, bits, exponent), berth__x_f32(k, NAN), y);
}

berth__x berth__m_sin(berth__kernel *k, berth__x x) {
  const angle a = angle_of(k, x);
  return where_finite(k, x, lower_angle_sin_of(k, a.quarters, sin_near_0(k, a.rest), cos_near_0(k, a.rest)));
}

berth__x berth__m_cos(berth__kernel *k, berth__x x) {
  const angle a = angle_of(k, x);
  const berth__x next = berth__x_affine(k, berth__x_and(k, a.quarters, berth__x_i32(k, 3)), 1, 1);
  return where_finite(k, x, lower_angle_sin_of(k, next, sin_near_0(k, a.rest), cos_near_0(k, a.rest)));
}

berth__x berth__m_tan(berth__kernel *k, berth__x x) {
  const angle a = angle_of(k, x);
  const berth__x sine = sin_near_0(k, a.rest), cosine = cos_near_0(k, a.rest),
                 is_odd = lower_angle_has_bit(k, a.quarters, 1);
  const berth__x above = berth__x_select(k, is_odd, berth__x1(k, BERTH__INST_neg, cosine), sine);
  return where_finite(k, x, berth__x_div(k, above, berth__x_select(k, is_odd, sine, cosine)));
}

void berth__m_sin_cos_of_turns(berth__kernel *k, berth__x turns, berth__x *sine, berth__x *cosine) {
  const angle a = angle_of_turns(k, turns, berth__x_u32(k, 0));
  const berth__x s = sin_near_0(k, a.rest), c = cos_near_0(k, a.rest);
  const berth__x next = berth__x_affine(k, berth__x_and(k, a.quarters, berth__x_i32(k, 3)), 1, 1);
  *sine = lower_angle_sin_of(k, a.quarters, s, c);
  *cosine = lower_angle_sin_of(k, next, s, c);
}

/* ---- Inverses ---- */

/* |x| <= 0.5 */
static berth__x asin_near_0(berth__kernel *k, berth__x x) {
  const berth__x z = berth__x_mul(k, x, x);
  const berth__x p =
      BERTH__M_POLY(k, z, 0.1666666f, 0.07500511f, 0.04451572f, 0.031817615f, 0.014402597f, 0.037565213f);
  return berth__m_fma(k, berth__x_mul(k, x, z), p, x);
}

/* Near 1, by half the angle: pi / 2 - asin a = 2 asin sqrt((1 - a) / 2). */
typedef struct arc {
  berth__x is_near_1;
  berth__x value; /* of asin |x|; if that is near 1, half of the difference from pi / 2 */
} arc;

static arc arc_of(berth__kernel *k, berth__x x) {
  const berth__x a = berth__x1(k, BERTH__INST_abs, x), is_near_1 = berth__m_above(k, a, 0.5f);
  const berth__x rest = berth__m_fma(k, a, berth__x_f32(k, -0.5f), berth__x_f32(k, 0.5f));
  const berth__x is_none = berth__m_below(k, rest, 0);
  const berth__x root = berth__x_select(k, is_none, berth__x_f32(k, NAN), berth__x1(k, BERTH__INST_sqrt, rest));
  return (arc){.is_near_1 = is_near_1, .value = asin_near_0(k, berth__x_select(k, is_near_1, root, a))};
}

berth__x berth__m_asin(berth__kernel *k, berth__x x) {
  const arc a = arc_of(k, x);
  const berth__x far = berth__m_fma(k, a.value, berth__x_f32(k, -2), berth__x_f32(k, QUARTER));
  const berth__x y = berth__x_select(k, a.is_near_1, far, a.value);
  return berth__m_with_sign(k, y, x);
}

berth__x berth__m_acos(berth__kernel *k, berth__x x) {
  const arc a = arc_of(k, x);
  const berth__x quarter = berth__x_f32(k, QUARTER), twice = berth__m_scale(k, a.value, 2);
  const berth__x is_negative = berth__m_below(k, x, 0);
  const berth__x far = berth__x_select(k, is_negative, berth__x_sub(k, berth__x_f32(k, 2 * QUARTER), twice), twice);
  const berth__x near =
      berth__x_select(k, is_negative, berth__x_add(k, quarter, a.value), berth__x_sub(k, quarter, a.value));
  return berth__x_select(k, a.is_near_1, far, near);
}

/* Above tan(3 pi / 8) as pi / 2 - atan(1 / a), above tan(pi / 8) as pi / 4 + atan((a - 1) / (a + 1)). */
berth__x berth__m_atan(berth__kernel *k, berth__x x) {
  const berth__x a = berth__x1(k, BERTH__INST_abs, x), one = berth__x_f32(k, 1);
  const berth__x is_large = berth__m_above(k, a, 2.41421356f), is_middle = berth__m_above(k, a, 0.414213562f);
  const berth__x above =
      berth__x_select(k, is_large, berth__x_f32(k, -1), berth__x_select(k, is_middle, berth__m_plus(k, a, -1), a));
  const berth__x below = berth__x_select(k, is_large, a, berth__x_select(k, is_middle, berth__m_plus(k, a, 1), one));
  const berth__x start =
      berth__x_select(k, is_large, berth__x_f32(k, QUARTER),
                      berth__x_select(k, is_middle, berth__x_f32(k, QUARTER / 2), berth__x_f32(k, 0)));
  const berth__x t = berth__x_div(k, above, below), z = berth__x_mul(k, t, t);
  const berth__x p = BERTH__M_POLY(k, z, -0.33333316f, 0.1999849f, -0.1424383f, 0.105958655f, -0.060830902f);
  const berth__x y = berth__x_add(k, start, berth__m_fma(k, berth__x_mul(k, t, z), p, t));
  return berth__m_with_sign(k, y, x);
}
