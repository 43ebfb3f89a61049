/* Rounding to bf16: to nearest, ties to even; NaN stays NaN. Written so that compilers can vectorise it. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BF16_H
#define BERTH_DEVICE_CPU_KERNELS_BF16_H

#include <stdint.h>
#include <string.h>

/* The bits of the f32 with this value. */
static inline uint32_t bf16_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
  return ((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) & 0xffff0000u;
}
static inline uint16_t bf16_of(float x) { return (uint16_t)(bf16_bits(x) >> 16); }
static inline float bf16_rounded(float x) {
  const uint32_t bits = bf16_bits(x);
  memcpy(&x, &bits, sizeof x);
  return x;
}

#endif
