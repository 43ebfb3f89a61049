/* Functions of f32 that take more than one instruction. The accuracy of a device's own exp, sin and so on varies
 * (Vulkan allows a sine an error of 1e-3); these are within a few units in the last place on every device, and treat
 * NaN and infinities as C does. */
#ifndef BERTH_KERNEL_LOWER_MATH_H
#define BERTH_KERNEL_LOWER_MATH_H

#include "kernel/lower.h"

/* Short forms, for f32 unless stated otherwise. */
static inline berth__x berth__m_fma(berth__kernel *k, berth__x a, berth__x b, berth__x c) {
  return berth__x3(k, BERTH__INST_fma, a, b, c);
}
/* The same in two steps that are not contracted: a compiler may combine fmas with a common factor, which would merge a
 * constant that is split in two parts. */
static inline berth__x berth__m_mul_add(berth__kernel *k, berth__x a, float b, berth__x c) {
  return berth__x_add(k, c, berth__x_mul(k, a, berth__x_f32(k, b)));
}
static inline berth__x berth__m_scale(berth__kernel *k, berth__x a, float by) {
  return berth__x_mul(k, a, berth__x_f32(k, by));
}
static inline berth__x berth__m_plus(berth__kernel *k, berth__x a, float b) {
  return berth__x_add(k, a, berth__x_f32(k, b));
}
static inline berth__x berth__m_below(berth__kernel *k, berth__x a, float b) {
  return berth__x_lt(k, a, berth__x_f32(k, b));
}
static inline berth__x berth__m_above(berth__kernel *k, berth__x a, float b) {
  return berth__x_lt(k, berth__x_f32(k, b), a);
}
/* c[0] + c[1] x + c[2] x^2 + ... */
berth__x berth__m_poly(berth__kernel *k, berth__x x, const float *c, uint32_t n);
#define BERTH__M_POLY(k, x, ...)                        \
  berth__m_poly((k), (x), (const float[]){__VA_ARGS__}, \
                (uint32_t)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)))
/* The magnitude of `a` with the sign of `sign`. */
berth__x berth__m_with_sign(berth__kernel *k, berth__x a, berth__x sign);
/* x * 2^n for an i32 n between -160 and 160. */
berth__x berth__m_times_power(berth__kernel *k, berth__x x, berth__x n);

/* exponent.c */
berth__x berth__m_exp(berth__kernel *k, berth__x x);
berth__x berth__m_expm1(berth__kernel *k, berth__x x);
berth__x berth__m_log(berth__kernel *k, berth__x x);
berth__x berth__m_log1p(berth__kernel *k, berth__x x); /* x > -1 */
berth__x berth__m_pow(berth__kernel *k, berth__x x, berth__x y);
berth__x berth__m_fmod(berth__kernel *k, berth__x x, berth__x y); /* exact */

/* angle.c */
berth__x berth__m_sin(berth__kernel *k, berth__x x);
berth__x berth__m_cos(berth__kernel *k, berth__x x);
berth__x berth__m_tan(berth__kernel *k, berth__x x);
/* For an angle of `turns` / 2^32 whole turns, a u32. */
void berth__m_sin_cos_of_turns(berth__kernel *k, berth__x turns, berth__x *sine, berth__x *cosine);
berth__x berth__m_asin(berth__kernel *k, berth__x x);
berth__x berth__m_acos(berth__kernel *k, berth__x x);
berth__x berth__m_atan(berth__kernel *k, berth__x x);

#endif
