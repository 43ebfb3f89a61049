/* Rows of iq3_xxs and iq3_s times a row of x, for AVX-512 with VBMI: like blocks_vbmi.h, with points of four
 * coordinates, of which a block has 64. A table has a byte with two digits of three bits for each half of a point. For
 * blocks_row.c only. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_VBMI_FOURS_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_VBMI_FOURS_H

#include "device/cpu/kernels/blocks_vbmi.h"

/* The first coordinates of a block's points, then the second ones, and so on. */
static inline void fours_arrange_vbmi(int8_t *q, int64_t depth) {
  int8_t from[256];
  for (; depth > 0; depth -= 256, q += 256) {
    memcpy(from, q, sizeof from);
    for (int i = 0; i < 256; i++) q[i % 4 * 64 + i / 4] = from[i];
  }
}

#define BERTH__BLOCK_POINT(code) (code) & 63,
static const uint8_t iq3_xxs_low[256] = {
#include "base/blocks_grid_iq3_xxs.def"
};
static const uint8_t iq3_s_low[512] = {
#include "base/blocks_grid_iq3_s.def"
};
#undef BERTH__BLOCK_POINT
#define BERTH__BLOCK_POINT(code) (code) >> 6,
static const uint8_t iq3_xxs_high[256] = {
#include "base/blocks_grid_iq3_xxs.def"
};
static const uint8_t iq3_s_high[512] = {
#include "base/blocks_grid_iq3_s.def"
};
#undef BERTH__BLOCK_POINT

/* Tables that stay in registers or in the L1 cache. */
typedef struct fours_tables {
  __m512i low[8], high[8]; /* 64 points each */
  __m512i values;          /* the coordinates that digits stand for, eight times */
  __m512i twice;           /* indices: each of 32 bytes twice */
} fours_tables;

VBMI_INLINED void fours_load_tables(fours_tables *t, const uint8_t *low, const uint8_t *high, const int n,
                                    uint64_t values) {
  uint8_t twice[64];
  for (int i = 0; i < n; i++) t->low[i] = _mm512_loadu_si512(low + 64 * i);
  for (int i = 0; i < n; i++) t->high[i] = _mm512_loadu_si512(high + 64 * i);
  for (int i = 0; i < 64; i++) twice[i] = (uint8_t)(i / 2);
  t->values = _mm512_set1_epi64((long long)values);
  t->twice = _mm512_loadu_si512(twice);
}

/* The sums of groups of 16: `low` and `high` have the digits of 64 points, and eight[i] the signs of points 2 i and
 * 2 i + 1. */
VBMI_INLINED __m512i fours_sums(const fours_tables *t, __m512i low, __m512i high, __m512i eight, const int8_t *q) {
  const __m512i signs = _mm512_permutexvar_epi8(t->twice, eight), zero = _mm512_setzero_si512();
  __m512i sum[2] = {zero, zero};
#define COORDINATE(c, digits)                                                                        \
  {                                                                                                  \
    const __m512i x = _mm512_loadu_si512(q + 64 * (c));                                              \
    const __mmask64 minus = _mm512_test_epi8_mask(signs, _mm512_set1_epi16((short)(0x1001 << (c)))); \
    const __m512i w = _mm512_permutexvar_epi8(digits, t->values);                                    \
    sum[(c) % 2] = _mm512_dpbusd_epi32(sum[(c) % 2], w, _mm512_mask_sub_epi8(x, minus, zero, x));    \
  }
  COORDINATE(0, low)
  COORDINATE(1, _mm512_srli_epi16(low, 3))
  COORDINATE(2, high)
  COORDINATE(3, _mm512_srli_epi16(high, 3))
#undef COORDINATE
  return _mm512_add_epi32(sum[0], sum[1]);
}

/* Sums of 16 groups, two of which share a factor. */
VBMI_INLINED __m512 fours_add(__m512 total, __m512i sums, __m256 by) {
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(by)), total);
}

VBMI_INLINED __m512 iq3_xxs_block(const fours_tables *t, const __m512i signs[2], const uint8_t *w, const int8_t *q,
                                  const float *scale, __m512 total) {
  const __m512i points = _mm512_loadu_si512(w + 2);
  const __m256i words = _mm256_loadu_si256((const __m256i *)(w + 66));
  const __mmask64 above = _mm512_movepi8_mask(points);
  const __m512i seven =
      _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), _mm512_castsi256_si512(words));
  const __m512i eight = _mm512_permutex2var_epi8(signs[0], seven, signs[1]);
  const __m256 number = _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 28));
  const __m256 of_x = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w)), _mm256_loadu_ps(scale));
  const __m256 by = _mm256_mul_ps(_mm256_fmadd_ps(number, _mm256_set1_ps(0.5f), _mm256_set1_ps(0.25f)), of_x);
  const __m512i low = iq2_xxs_look_up(t->low, points, above), high = iq2_xxs_look_up(t->high, points, above);
  return fours_add(total, fours_sums(t, low, high, eight, q), by);
}

VBMI_INLINED __m512 iq3_s_block(const fours_tables *t, const uint8_t *w, const int8_t *q, const float *scale,
                                __m512 total) {
  const __m512i points = _mm512_loadu_si512(w + 2);
  const __mmask64 above = _mm512_movepi8_mask(points);
  __mmask64 ninth; /* one bit a point */
  memcpy(&ninth, w + 66, sizeof ninth);
  const __m512i eight = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(w + 74)));
  const __m512i low =
      _mm512_mask_blend_epi8(ninth, iq2_xxs_look_up(t->low, points, above), iq2_xxs_look_up(t->low + 4, points, above));
  const __m512i high = _mm512_mask_blend_epi8(ninth, iq2_xxs_look_up(t->high, points, above),
                                              iq2_xxs_look_up(t->high + 4, points, above));
  float by[8];
  iq3_s_factors(w, scale, by);
  return fours_add(total, fours_sums(t, low, high, eight, q), _mm256_loadu_ps(by));
}

__attribute__((target("avx512vbmi"))) static void iq3_xxs_dots_vbmi(const uint8_t *w, int64_t row_bytes, int64_t n,
                                                                    const blocks_row_x *x, int64_t depth, float *out) {
  const __m512i signs[2] = {_mm512_loadu_si512(iq2_xxs_signs_of), _mm512_loadu_si512(iq2_xxs_signs_of + 64)};
  fours_tables t;
  fours_load_tables(&t, iq3_xxs_low, iq3_xxs_high, 4, UINT64_C(0x3e342c241c140c04));
  for (int64_t r = 0; r < n; r++, w += row_bytes) {
    __m512 total = _mm512_setzero_ps();
    for (int64_t at = 0; at < depth; at += 256)
      total = iq3_xxs_block(&t, signs, w + at / 256 * 98, x->q + at, x->scale + at / 32, total);
    out[r] = _mm512_reduce_add_ps(total);
  }
}

__attribute__((target("avx512vbmi"))) static void iq3_s_dots_vbmi(const uint8_t *w, int64_t row_bytes, int64_t n,
                                                                  const blocks_row_x *x, int64_t depth, float *out) {
  fours_tables t;
  fours_load_tables(&t, iq3_s_low, iq3_s_high, 8, UINT64_C(0x0f0d0b0907050301));
  for (int64_t r = 0; r < n; r++, w += row_bytes) {
    __m512 total = _mm512_setzero_ps();
    for (int64_t at = 0; at < depth; at += 256)
      total = iq3_s_block(&t, w + at / 256 * 110, x->q + at, x->scale + at / 32, total);
    out[r] = _mm512_reduce_add_ps(total);
  }
}

#endif
