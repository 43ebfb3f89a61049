/* exp in f32 for use in loops: no branch, no call, nothing that prevents vectorisation. Within 2 units in the last
 * place; infinities and NaN as in C. Results below 2^-126.5 are 0: subnormal numbers are slow on many machines, and the
 * masked elements of a softmax would all be subnormal. */
#ifndef BERTH_OPS_EXP_H
#define BERTH_OPS_EXP_H

#include <stdint.h>
#include <string.h>

/* 2^n for n from -126 to 127, from its bits; 0 if the mask is 0. */
static inline float berth__power_of_two(uint32_t n, uint32_t mask) {
  uint32_t bits = ((n + 127u) << 23) & mask;
  float power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* x = n ln 2 + r with |r| <= ln 2 / 2, and exp(x) = 2^n exp(r). */
static inline float berth__exp_f32(float x) {
  const float rounder = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
  uint32_t bits;
  x = x > 89.0f ? 89.0f : x; /* outside of this the result is infinite or 0; NaN passes both */
  x = x < -104.0f ? -104.0f : x;
  float shifted = x * 1.44269504f + rounder;
  float n = shifted - rounder;
  memcpy(&bits, &shifted, sizeof bits);
  float r = (x - n * 0.693115234f) - n * 3.19461833e-05f; /* ln 2 in two parts: the first product is exact */
  float p = 0.00139337545f;                               /* a fit of (exp(r) - 1 - r) / r^2 */
  p = p * r + 0.00836324878f;
  p = p * r + 0.041666463f;
  p = p * r + 0.166665763f;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  uint32_t whole = bits - 0x4b400000u;         /* n, as an unsigned number that may wrap */
  uint32_t mask = ((whole + 126u) >> 31) - 1u; /* 0 if n < -126; a comparison would become a branch */
  uint32_t half = whole >> 1;                  /* in two steps, because 2^128 is out of range; only 9 bits matter */
  return (p + 1.0f) * berth__power_of_two(half, mask) * berth__power_of_two(whole - half, mask);
}

#endif
