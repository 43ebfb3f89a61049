/* Rows of iq2_xxs times a row of x, for AVX-512 with VBMI, which permutes bytes across one or two vectors. No point is
 * read from memory: the grid is in eight registers, one byte with four digits of two bits for each half of a point. All
 * 64 points of two blocks are looked up at once, a second lookup turns digits into coordinates, and signs are masks.
 * For blocks_row.c only. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_VBMI_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_VBMI_H

#include <immintrin.h>

#include "device/cpu/kernels/blocks.h"

#define VBMI_INLINED static inline __attribute__((always_inline, target("avx512vbmi")))

static inline bool blocks_has_vbmi(void) { return __builtin_cpu_supports("avx512vbmi"); }

/* Two blocks at a time, or a single last one: the first coordinates of all their points, then the second ones, and so
 * on. */
static inline void iq2_xxs_arrange_vbmi(int8_t *q, int64_t depth) {
  int8_t from[512];
  for (int64_t n; depth > 0; depth -= n, q += n) {
    n = depth < 512 ? depth : 512;
    memcpy(from, q, (size_t)n);
    for (int64_t i = 0; i < n; i++) q[i % 8 * (n / 8) + i / 8] = from[i];
  }
}

#define SIGNS(n) \
  ((n) | ((0x6996 >> ((n)&15) ^ 0x6996 >> ((n) >> 4)) & 1) << 7) /* 0x6996: which halves have odd parity */
#define SIGNS_8(n) \
  SIGNS(n), SIGNS(n + 1), SIGNS(n + 2), SIGNS(n + 3), SIGNS(n + 4), SIGNS(n + 5), SIGNS(n + 6), SIGNS(n + 7)
#define SIGNS_64(n)                                                                                                \
  SIGNS_8(n), SIGNS_8(n + 8), SIGNS_8(n + 16), SIGNS_8(n + 24), SIGNS_8(n + 32), SIGNS_8(n + 40), SIGNS_8(n + 48), \
      SIGNS_8(n + 56)
static const uint8_t iq2_xxs_signs_of[128] = {SIGNS_64(0), SIGNS_64(64)};
#undef SIGNS
#undef SIGNS_8
#undef SIGNS_64

/* Tables that stay in registers or in the L1 cache. */
typedef struct iq2_xxs_tables {
  __m512i low[4], high[4]; /* the first and the last four digits of 64 points each */
  __m512i signs[2];        /* eight signs from seven */
  __m512i points_at;       /* in two blocks: the indices of the points, */
  __m512i words_at;        /* and the words with signs and scales */
} iq2_xxs_tables;

/* Every second byte of two vectors, from `first` on. */
VBMI_INLINED __m512i iq2_xxs_every(int first) {
  uint8_t at[64];
  for (int i = 0; i < 64; i++) at[i] = (uint8_t)(2 * i + first);
  return _mm512_loadu_si512(at);
}

VBMI_INLINED void iq2_xxs_load_tables(iq2_xxs_tables *t) {
  const __m512i even = iq2_xxs_every(0), odd = iq2_xxs_every(1);
  for (int i = 0; i < 4; i++) {
    const __m512i first = _mm512_loadu_si512(berth__block_grid + i * 64);
    const __m512i second = _mm512_loadu_si512(berth__block_grid + i * 64 + 32);
    t->low[i] = _mm512_permutex2var_epi8(first, even, second);
    t->high[i] = _mm512_permutex2var_epi8(first, odd, second);
  }
  for (int i = 0; i < 2; i++) t->signs[i] = _mm512_loadu_si512(iq2_xxs_signs_of + 64 * i);
  t->words_at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  t->points_at = _mm512_add_epi32(
      _mm512_mullo_epi32(_mm512_sub_epi32(t->words_at, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x04040404)),
      _mm512_set1_epi32(0x03020100));
}

/* Half the digits of 64 points. An instruction uses seven bits of an index; `above` has the eighth. */
VBMI_INLINED __m512i iq2_xxs_look_up(const __m512i half[4], __m512i points, __mmask64 above) {
  return _mm512_mask_blend_epi8(above, _mm512_permutex2var_epi8(half[0], points, half[1]),
                                _mm512_permutex2var_epi8(half[2], points, half[3]));
}

/* The sums of 16 groups: of two blocks, or of one block and zeros. */
VBMI_INLINED __m512i iq2_xxs_sums(const iq2_xxs_tables *t, __m512i points, __m512i words, const int8_t *q,
                                  const bool is_pair) {
  const __m512i coordinates = _mm512_set1_epi32(8 | 25 << 8 | 43 << 16); /* indexed by two bits of six */
  const __m512i seven = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), words);
  const __m512i eight = _mm512_permutex2var_epi8(t->signs[0], seven, t->signs[1]);
  const __mmask64 above = _mm512_movepi8_mask(points);
  const __m512i low = iq2_xxs_look_up(t->low, points, above), high = iq2_xxs_look_up(t->high, points, above);
  const __m512i zero = _mm512_setzero_si512();
  __m512i sum[2] = {zero, zero};
#define COORDINATE(c, half)                                                                                  \
  {                                                                                                          \
    const __m512i x = is_pair ? _mm512_loadu_si512(q + 64 * (c))                                             \
                              : _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(q + 32 * (c)))); \
    const __mmask64 minus = _mm512_test_epi8_mask(eight, _mm512_set1_epi8((char)(1 << (c))));                \
    const __m512i w = _mm512_permutexvar_epi8(_mm512_srli_epi16(half, 2 * ((c) % 4)), coordinates);          \
    sum[(c) % 2] = _mm512_dpbusd_epi32(sum[(c) % 2], w, _mm512_mask_sub_epi8(x, minus, zero, x));            \
  }
  COORDINATE(0, low)
  COORDINATE(1, low)
  COORDINATE(2, low)
  COORDINATE(3, low)
  COORDINATE(4, high)
  COORDINATE(5, high)
  COORDINATE(6, high)
  COORDINATE(7, high)
#undef COORDINATE
  return _mm512_add_epi32(sum[0], sum[1]);
}

/* One or two blocks of a row: their sums times all scales. */
VBMI_INLINED __m512 iq2_xxs_part(const iq2_xxs_tables *t, const uint8_t *w, const int8_t *q, const float *scale,
                                 const bool is_pair, __m512 total) {
  const __m512i first = _mm512_loadu_si512(w + 2);
  const __m512i second = is_pair ? _mm512_loadu_si512(w + 68) : _mm512_setzero_si512();
  const __m512i words = _mm512_permutex2var_epi32(first, t->words_at, second);
  const __m512i points = _mm512_permutex2var_epi8(first, t->points_at, second);
  const __m512 by = _mm512_cvtepi32_ps(_mm512_srli_epi32(words, 28));
  const __m512 halves =
      _mm512_mask_mov_ps(_mm512_set1_ps(is_pair ? blocks_half(w + 66) : 0), 0xff, _mm512_set1_ps(blocks_half(w)));
  const __m512 x = is_pair ? _mm512_loadu_ps(scale) : _mm512_zextps256_ps512(_mm256_loadu_ps(scale));
  const __m512 factor = _mm512_mul_ps(_mm512_fmadd_ps(by, _mm512_set1_ps(0.25f), _mm512_set1_ps(0.125f)), halves);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(iq2_xxs_sums(t, points, words, q, is_pair)), _mm512_mul_ps(factor, x),
                         total);
}

__attribute__((target("avx512vbmi"))) static void iq2_xxs_dots_vbmi(const uint8_t *w, int64_t row_bytes, int64_t n,
                                                                    const blocks_row_x *x, int64_t depth, float *out) {
  iq2_xxs_tables t;
  iq2_xxs_load_tables(&t);
  for (int64_t r = 0; r < n; r++, w += row_bytes) {
    __m512 total = _mm512_setzero_ps();
    int64_t at = 0;
    for (; at + 512 <= depth; at += 512)
      total = iq2_xxs_part(&t, w + at / 256 * 66, x->q + at, x->scale + at / 32, true, total);
    if (at < depth) total = iq2_xxs_part(&t, w + at / 256 * 66, x->q + at, x->scale + at / 32, false, total);
    out[r] = _mm512_reduce_add_ps(total);
  }
}

#endif
