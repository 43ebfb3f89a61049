/* Rows of weights in blocks times a row of x, in vectors of 32 bytes: AVX2, and AVX-512 too, since these come from
 * memory. For blocks_row.c alone. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_H

#include <immintrin.h>

#include "base/blocks_split.h"
#include "device/cpu/kernels/blocks.h"

static inline float blocks_half(const uint8_t *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return _cvtsh_ss(bits);
}

static inline float blocks_total(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Sums of four products of signed bytes, as f32. */
static inline __m256 blocks_signed(__m256i w, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* The scales of eight blocks of so many bytes. */
static inline __m256 blocks_eight_scales(const uint8_t *w, const int bytes) {
  uint16_t bits[8];
  for (int i = 0; i < 8; i++) memcpy(&bits[i], w + i * bytes, sizeof bits[i]);
  return _mm256_cvtph_ps(_mm_setr_epi16((short)bits[0], (short)bits[1], (short)bits[2], (short)bits[3], (short)bits[4],
                                        (short)bits[5], (short)bits[6], (short)bits[7]));
}

static float q8_0_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const int8_t *q = x->q;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  int64_t i = 0;
  for (; i + 8 <= depth / 32; i += 8, w += 8 * 34, q += 256) {
    float by[8];
    _mm256_storeu_ps(by, _mm256_mul_ps(blocks_eight_scales(w, 34), _mm256_loadu_ps(x->scale + i)));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const __m256 number = blocks_signed(blocks_load(w + 34 * j + 2), blocks_load(q + 32 * j));
      sum[j % 2] = _mm256_fmadd_ps(number, _mm256_broadcast_ss(&by[j]), sum[j % 2]);
    }
  }
  for (; i < depth / 32; i++, w += 34, q += 32) {
    const __m256 by = _mm256_set1_ps(blocks_half(w) * x->scale[i]);
    sum[0] = _mm256_fmadd_ps(blocks_signed(blocks_load(w + 2), blocks_load(q)), by, sum[0]);
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

static inline __m256 blocks_unsigned(__m256i w, const int8_t *q, const float *by, __m256 sum) {
  const __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(w, blocks_load(q)), _mm256_set1_epi16(1));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(fours), _mm256_broadcast_ss(by), sum);
}

/* (w - shift) times x: both products stay within 16 bits. */
static inline __m256i blocks_shifted(__m256i w, __m256i x, int shift) {
  return _mm256_sub_epi16(_mm256_maddubs_epi16(w, x), _mm256_maddubs_epi16(_mm256_set1_epi8((char)shift), x));
}

/* What 8 times x is too much is taken off for eight blocks at once. */
static float q4_0_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const int8_t *q = x->q;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, eights = sum[0];
  int64_t i = 0;
  for (; i + 8 <= depth / 32; i += 8, w += 8 * 18, q += 256) {
    const __m256 scales = blocks_eight_scales(w, 18);
    float by[8];
    _mm256_storeu_ps(by, _mm256_mul_ps(scales, _mm256_loadu_ps(x->scale + i)));
    eights = _mm256_fmadd_ps(scales, _mm256_loadu_ps(x->sums + i), eights);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
      sum[j % 2] = blocks_unsigned(blocks_nibbles(w + 18 * j + 2), q + 32 * j, &by[j], sum[j % 2]);
  }
  for (; i < depth / 32; i++, w += 18, q += 32) {
    const __m256i pairs = blocks_shifted(blocks_nibbles(w + 2), blocks_load(q), 8);
    const __m256 number = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    sum[0] = _mm256_fmadd_ps(number, _mm256_set1_ps(blocks_half(w) * x->scale[i]), sum[0]);
  }
  return blocks_total(_mm256_fnmadd_ps(_mm256_set1_ps(8), eights, _mm256_add_ps(sum[0], sum[1])));
}

/* The scales of q4_k and q5_k, and then their minima, as bytes. */
static inline __m128i blocks_k_scales(const uint8_t *at) {
  uint32_t in[3];
  memcpy(in, at, sizeof in);
  const uint32_t low = 0x3f3f3f3f, half = 0x0f0f0f0f, two = 0x03030303;
  return _mm_setr_epi32((int)(in[0] & low), (int)((in[2] & half) | (in[0] >> 6 & two) << 4), (int)(in[1] & low),
                        (int)((in[2] >> 4 & half) | (in[1] >> 6 & two) << 4));
}

/* What scales and minima of eight groups become: factors to multiply sums with; minima are taken off `least` here. */
static inline void blocks_k_factors(const uint8_t *w, const blocks_row_x *x, int64_t block, float by[8],
                                    __m256 *least) {
  const __m128i all = blocks_k_scales(w + 4);
  const __m256 scale = _mm256_set1_ps(blocks_half(w)), low = _mm256_set1_ps(blocks_half(w + 2));
  const __m256 scales = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(all));
  const __m256 minima = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(all, 8)));
  _mm256_storeu_ps(by, _mm256_mul_ps(_mm256_mul_ps(scales, scale), _mm256_loadu_ps(x->scale + block * 8)));
  *least = _mm256_fnmadd_ps(_mm256_mul_ps(minima, low), _mm256_loadu_ps(x->sums + block * 8), *least);
}

static float q4_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i half = _mm256_set1_epi8(15);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a, least = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 144, q += 256) {
    float by[8];
    blocks_k_factors(w, x, i, by, &least);
    for (int j = 0; j < 4; j++) {
      const __m256i both = blocks_load(w + 16 + 32 * j);
      a = blocks_unsigned(_mm256_and_si256(both, half), q + 64 * j, by + 2 * j, a);
      b = blocks_unsigned(_mm256_and_si256(_mm256_srli_epi16(both, 4), half), q + 64 * j + 32, by + 2 * j + 1, b);
    }
  }
  return blocks_total(_mm256_add_ps(_mm256_add_ps(a, b), least));
}

/* 32 elements with two scales, one for each half. */
static inline __m256 q6_k_part(__m256i w, const int8_t *q, __m256i scales, float by, __m256 sum) {
  const __m256i fours = _mm256_madd_epi16(blocks_shifted(w, blocks_load(q), 32), scales);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(fours), _mm256_set1_ps(by), sum);
}

/* Scales 2 part and 2 part + 1 in all halves of 16 bits of the two halves. */
static inline __m256i q6_k_scales(__m256i twice, int part) {
  const __m256i pick = _mm256_setr_epi8(-128, 0, -128, 0, -128, 0, -128, 0, -128, 0, -128, 0, -128, 0, -128, 0, -128, 1,
                                        -128, 1, -128, 1, -128, 1, -128, 1, -128, 1, -128, 1, -128, 1);
  const __m256i from = _mm256_add_epi8(pick, _mm256_set1_epi8((char)(2 * part)));
  return _mm256_srai_epi16(_mm256_shuffle_epi8(twice, from), 8);
}

static float q6_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i half = _mm256_set1_epi8(15), upper = _mm256_set1_epi8(48);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 210, q += 256) {
    const __m256i scales = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(w + 192)));
    const float scale = blocks_half(w + 208);
    const float *xs = x->scale + i * 8;
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      const __m256i l0 = blocks_load(w + 64 * j), l1 = blocks_load(w + 64 * j + 32), h = blocks_load(w + 128 + 32 * j);
      const __m256i w0 = _mm256_or_si256(_mm256_and_si256(l0, half), _mm256_and_si256(_mm256_slli_epi16(h, 4), upper));
      const __m256i w1 = _mm256_or_si256(_mm256_and_si256(l1, half), _mm256_and_si256(_mm256_slli_epi16(h, 2), upper));
      const __m256i w2 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l0, 4), half), _mm256_and_si256(h, upper));
      const __m256i w3 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l1, 4), half),
                                         _mm256_and_si256(_mm256_srli_epi16(h, 2), upper));
      const int8_t *at = q + 128 * j;
      a = q6_k_part(w0, at, q6_k_scales(scales, 4 * j), scale * xs[4 * j], a);
      b = q6_k_part(w1, at + 32, q6_k_scales(scales, 4 * j + 1), scale * xs[4 * j + 1], b);
      a = q6_k_part(w2, at + 64, q6_k_scales(scales, 4 * j + 2), scale * xs[4 * j + 2], a);
      b = q6_k_part(w3, at + 96, q6_k_scales(scales, 4 * j + 3), scale * xs[4 * j + 3], b);
    }
  }
  return blocks_total(_mm256_add_ps(a, b));
}

/* ---- Any format, once a block is taken apart: 32 bytes of both, and the factors of their groups ---- */

static inline __attribute__((always_inline)) float blocks_dot_parts(const uint8_t *w, const blocks_row_x *x,
                                                                    int64_t depth, const int elements, const int bytes,
                                                                    const int group, const bool has_offset,
                                                                    const blocks_split_fn split) {
  __m256 a = _mm256_setzero_ps(), least = a;
  berth__block_parts p;
  float rest = 0;
  for (int64_t at = 0; at < depth; at += elements, w += bytes) {
    split(w, &p);
    for (int i = 0; i < elements / 32; i++) {
      const float by = x->scale[at / 32 + i];
      const __m256 factor =
          group == 32 ? _mm256_set1_ps(p.factor[i] * by)
                      : _mm256_set_m128(_mm_set1_ps(p.factor[2 * i + 1] * by), _mm_set1_ps(p.factor[2 * i] * by));
      a = _mm256_fmadd_ps(blocks_signed(blocks_load(p.q + 32 * i), blocks_load(x->q + at + 32 * i)), factor, a);
    }
    const float *sum = group == 32 ? x->sums + at / 32 : x->sum + at / 16;
    if (has_offset && elements == 32) rest += p.offset[0] * sum[0];
    for (int i = 0; has_offset && elements == 256 && i < 256 / group; i += 8)
      least = _mm256_fmadd_ps(_mm256_loadu_ps(p.offset + i), _mm256_loadu_ps(sum + i), least);
  }
  return blocks_total(_mm256_add_ps(a, least)) + rest;
}

/* ---- iq2_xxs ---- */

/* Eight words of four times seven signs: four times eight, of which an even number is set. */
static inline __m256i iq2_xxs_signs(__m256i words) {
  const __m256i even = _mm256_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0, 0, -128,
                                        -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0);
  const __m256i a = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
  const __m256i b = _mm256_and_si256(_mm256_slli_epi32(words, 1), _mm256_set1_epi32(0x7f00));
  const __m256i c = _mm256_and_si256(_mm256_slli_epi32(words, 2), _mm256_set1_epi32(0x7f0000));
  const __m256i d = _mm256_and_si256(_mm256_slli_epi32(words, 3), _mm256_set1_epi32(0x7f000000));
  const __m256i seven = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
  const __m256i folded = _mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4));
  return _mm256_or_si256(seven, _mm256_shuffle_epi8(even, _mm256_and_si256(folded, _mm256_set1_epi8(15))));
}

static float iq2_xxs_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i ones = _mm256_set1_epi16(1);
  const int8_t *q = x->q;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t i = 0; i < depth / 256; i++, w += 66, q += 256) {
    const __m256 first = _mm256_castsi256_ps(blocks_load(w + 2)), second = _mm256_castsi256_ps(blocks_load(w + 34));
    const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
    const __m256i words = _mm256_permute4x64_epi64(odd, 0xd8);
    const __m256i twice = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(words, 28), 1), _mm256_set1_epi32(1));
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w) * 0.125f), _mm256_loadu_ps(x->scale + i * 8));
    uint32_t signs[8];
    float by[8];
    _mm256_storeu_ps(by, _mm256_mul_ps(_mm256_cvtepi32_ps(twice), scale));
    _mm256_storeu_si256((__m256i *)signs, iq2_xxs_signs(words));
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
      const __m256i minus = blocks_spread(signs[g]);
      const __m256i turned = _mm256_sub_epi8(_mm256_xor_si256(blocks_load(q + 32 * g), minus), minus);
      const __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(iq2_xxs_point(w + 2 + 8 * g), turned), ones);
      sum[g % 2] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(fours), _mm256_broadcast_ss(&by[g]), sum[g % 2]);
    }
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

#endif
