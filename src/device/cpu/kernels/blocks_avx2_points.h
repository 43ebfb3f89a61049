/* Rows of weights whose numbers are points of a grid, with signs (iq2_xs, iq2_s, iq3_xxs, iq3_s), times a row of x. For
 * blocks_row.c only; iq2_xxs has kernels of its own.
 *
 * Points are read from memory, 32 bytes of them for a group, and x gets their signs, since one factor of a product of
 * bytes must be unsigned. No sum of two products exceeds 16 bits: coordinates are at most 62. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_POINTS_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_POINTS_H

#include "device/cpu/kernels/blocks_avx2.h"

/* x, negated where `minus` has a one. */
static inline __m256i points_turn(const int8_t *q, uint32_t minus) {
#ifdef __AVX512VNNI__
  const __m256i x = blocks_load(q);
  return _mm256_mask_sub_epi8(x, minus, _mm256_setzero_si256(), x);
#else
  const __m256i spread = blocks_spread(minus);
  return _mm256_sub_epi8(_mm256_xor_si256(blocks_load(q), spread), spread);
#endif
}

static inline __m256i points_of_eight(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  const __m128i low = _mm_set_epi64x((long long)b, (long long)a), high = _mm_set_epi64x((long long)d, (long long)c);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* ---- Groups of 16, whose scales are s + 1/2 ---- */

/* Sums of four products, times the scales of groups 2 g and 2 g + 1. */
static inline __m256 points_scaled(__m256i w, __m256i x, __m256i scales, int g) {
  const __m256i scale = _mm256_shuffle_epi8(scales, _mm256_set1_epi16((short)(0x0100 + 0x0202 * g)));
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(_mm256_maddubs_epi16(w, x), scale));
}

/* Twice the scales of 16 groups, from eight bytes: of groups 0, 2, ..., 14, then of the others. */
static inline __m256i points_scales(const uint8_t *at) {
  const __m128i both = _mm_loadl_epi64((const __m128i *)at);
  const __m128i pairs = _mm_and_si128(_mm_unpacklo_epi64(both, _mm_srli_epi16(both, 4)), _mm_set1_epi8(15));
  return _mm256_or_si256(_mm256_slli_epi16(_mm256_cvtepu8_epi16(pairs), 1), _mm256_set1_epi16(1));
}

/* Factors of the sums of eight pairs of groups. */
static inline void points_factors(const uint8_t *w, const float *x, float by[8]) {
  _mm256_storeu_ps(by, _mm256_mul_ps(_mm256_set1_ps(blocks_half(w) * 0.125f), _mm256_loadu_ps(x)));
}

/* The numbers of 32 points, nine bits each, and their signs: eight for every seven. */
static inline void iq2_xs_apart(const uint8_t *w, uint16_t at[32], uint32_t minus[8]) {
  const __m256i even = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
  const __m256i words[2] = {blocks_load(w), blocks_load(w + 32)};
  __m256i eight[2];
  for (int i = 0; i < 2; i++) {
    const __m256i seven = _mm256_srli_epi16(words[i], 9);
    const __m256i folded =
        _mm256_and_si256(_mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4)), _mm256_set1_epi16(15));
    eight[i] = _mm256_or_si256(seven, _mm256_shuffle_epi8(even, folded));
    blocks_store(at + 16 * i, _mm256_and_si256(words[i], _mm256_set1_epi16(511)));
  }
  blocks_store(minus, _mm256_permute4x64_epi64(_mm256_packus_epi16(eight[0], eight[1]), 0xd8));
}

static float iq2_xs_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const uint64_t *points = berth__block_points_iq2_xs;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t i = 0; i < depth / 256; i++, w += 74) {
    uint16_t at[32];
    uint32_t minus[8];
    float by[8];
    const __m256i scales = points_scales(w + 66);
    iq2_xs_apart(w + 2, at, minus);
    points_factors(w, x->scale + i * 8, by);
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const uint16_t *p = at + 4 * g;
      const __m256i numbers = points_of_eight(points[p[0]], points[p[1]], points[p[2]], points[p[3]]);
      const __m256 part = points_scaled(numbers, points_turn(x->q + i * 256 + 32 * g, minus[g]), scales, g);
      sum[g % 2] = _mm256_fmadd_ps(part, _mm256_broadcast_ss(&by[g]), sum[g % 2]);
    }
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

static float iq2_s_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const uint64_t *points = berth__block_points_iq2_s;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t i = 0; i < depth / 256; i++, w += 82) {
    float by[8];
    const __m256i scales = points_scales(w + 74);
    points_factors(w, x->scale + i * 8, by);
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const uint8_t *p = w + 2 + 4 * g;
      const uint32_t top = w[66 + g];
      const __m256i numbers = points_of_eight(points[p[0] | (top << 8 & 0x300)], points[p[1] | (top << 6 & 0x300)],
                                              points[p[2] | (top << 4 & 0x300)], points[p[3] | (top << 2 & 0x300)]);
      const __m256i turned = points_turn(x->q + i * 256 + 32 * g, blocks_u32(p + 32));
      sum[g % 2] = _mm256_fmadd_ps(points_scaled(numbers, turned, scales, g), _mm256_broadcast_ss(&by[g]), sum[g % 2]);
    }
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

/* ---- Groups of 32 ---- */

/* Sums of four products. */
static inline __m256 points_fours(__m256i w, __m256i x) {
#ifdef __AVX512VNNI__
  return _mm256_cvtepi32_ps(_mm256_dpbusd_epi32(_mm256_setzero_si256(), w, x));
#else
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
#endif
}

static inline uint64_t points_pair(const uint32_t *points, uint32_t first, uint32_t second) {
  return points[first] | (uint64_t)points[second] << 32;
}

static float iq3_xxs_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const uint32_t *points = berth__block_points_iq3_xxs;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t i = 0; i < depth / 256; i++, w += 98) {
    uint32_t minus[8];
    float by[8];
    const __m256i words = blocks_load(w + 66);
    const __m256i twice = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(words, 28), 1), _mm256_set1_epi32(1));
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w) * 0.25f), _mm256_loadu_ps(x->scale + i * 8));
    _mm256_storeu_ps(by, _mm256_mul_ps(_mm256_cvtepi32_ps(twice), scale));
    blocks_store(minus, iq2_xxs_signs(words));
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const uint8_t *p = w + 2 + 8 * g;
      const __m256i numbers = points_of_eight(points_pair(points, p[0], p[1]), points_pair(points, p[2], p[3]),
                                              points_pair(points, p[4], p[5]), points_pair(points, p[6], p[7]));
      const __m256 part = points_fours(numbers, points_turn(x->q + i * 256 + 32 * g, minus[g]));
      sum[g % 2] = _mm256_fmadd_ps(part, _mm256_broadcast_ss(&by[g]), sum[g % 2]);
    }
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

/* The factors of eight groups, whose scales are 1 + 2 s. */
static inline void iq3_s_factors(const uint8_t *w, const float *x, float by[8]) {
  const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i four = _mm256_srlv_epi32(_mm256_set1_epi32((int)blocks_u32(w + 106)), shift);
  const __m256i twice = _mm256_slli_epi32(_mm256_and_si256(four, _mm256_set1_epi32(15)), 1);
  const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w)), _mm256_loadu_ps(x));
  _mm256_storeu_ps(by, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_or_si256(twice, _mm256_set1_epi32(1))), scale));
}

static float iq3_s_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const uint32_t *points = berth__block_points_iq3_s;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t i = 0; i < depth / 256; i++, w += 110) {
    float by[8];
    iq3_s_factors(w, x->scale + i * 8, by);
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const uint8_t *p = w + 2 + 8 * g;
      const uint32_t top = w[66 + g];
#define PAIR(n) points_pair(points, p[n] | (top << (8 - (n)) & 256), p[(n) + 1] | (top << (7 - (n)) & 256))
      const __m256i numbers = points_of_eight(PAIR(0), PAIR(2), PAIR(4), PAIR(6));
#undef PAIR
      const __m256 part = points_fours(numbers, points_turn(x->q + i * 256 + 32 * g, blocks_u32(w + 74 + 4 * g)));
      sum[g % 2] = _mm256_fmadd_ps(part, _mm256_broadcast_ss(&by[g]), sum[g % 2]);
    }
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

#endif
