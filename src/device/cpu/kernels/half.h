/* Conversion between f16 and f32, as in base/half.h: to nearest, ties to even. Written so that compilers can vectorise
 * it; lines use the machine's instructions if it has any. */
#ifndef BERTH_DEVICE_CPU_KERNELS_HALF_H
#define BERTH_DEVICE_CPU_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

static inline float half_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t half_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Below 2^-14 a half is its fraction times 2^-24; above, the exponent is rebiased by 112, and for infinities and NaNs
 * by another 112. */
static inline float half_to_float(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
  const uint32_t more = magnitude >= 0x7c00u ? 0x38000000u : 0, quiet = magnitude > 0x7c00u ? 0x400000u : 0;
  const uint32_t normal = ((magnitude << 13) + 0x38000000u + more) | quiet;
  const uint32_t small = half_bits((float)(int32_t)magnitude * 0x1p-24f);
  return half_from_bits((magnitude < 0x400u ? small : normal) | sign);
}

/* Adding 0.5 to a value below 2^-14 leaves its fraction in steps of 2^-24, rounded. */
static inline uint16_t half_of(float x) {
  const uint32_t bits = half_bits(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  const uint32_t small = half_bits(half_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t held = magnitude >= 0x47800000u ? 0x7c00u : finite;
  return (uint16_t)((magnitude > 0x7f800000u ? nan : held) | sign);
}

static inline void half_load_line(float *to, const uint16_t *from, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
#endif
  for (; i < n; i++) to[i] = half_to_float(from[i]);
}

static inline void half_store_line(uint16_t *to, const float *from, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(void *)(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) to[i] = half_of(from[i]);
}

#endif
