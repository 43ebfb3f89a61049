/* Rows of iq2_xxs times a row of x, for AVX-512 with VNNI but without VBMI: points are read from memory, eight per
 * vector, one of each group. Each lane then sums one group, and all groups of a block are scaled at once. (A gather
 * would read them with one instruction, but takes three times as long on processors whose microcode mitigates its
 * leaks.) For blocks_row.c only. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_POINTS_AVX512_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_POINTS_AVX512_H

#include <immintrin.h>

#include "device/cpu/kernels/blocks.h"

/* The first eight elements of all groups, then the second eight, and so on: the order of points in vectors. */
static inline void iq2_xxs_arrange_points(int8_t *q) {
  int8_t from[256];
  memcpy(from, q, sizeof from);
  for (int i = 0; i < 256; i++) q[i] = from[i % 64 / 8 * 32 + i / 64 * 8 + i % 8];
}

/* Eight words, each with four groups of seven signs: four groups of eight, in which an even number of signs is set; the
 * first eight of all words, then the second eight, and so on. */
static inline __m256i iq2_xxs_masks(__m256i words) {
  const __m256i even = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
  const __m256i turn = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  __m256i s = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
#define SEVEN(shift, mask) _mm256_ternarylogic_epi32(_mm256_slli_epi32(words, shift), _mm256_set1_epi32(mask), s, 0xea)
  s = SEVEN(1, 0x7f00); /* (words << shift & mask) | s */
  s = SEVEN(2, 0x7f0000);
  s = SEVEN(3, 0x7f000000);
#undef SEVEN
  const __m256i folded = _mm256_ternarylogic_epi32(s, _mm256_srli_epi16(s, 4), _mm256_set1_epi8(15), 0x28);
  s = _mm256_or_si256(s, _mm256_shuffle_epi8(even, folded)); /* (s ^ s >> 4) & 15 has the parity of s */
  return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(s, turn), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Points of four groups, whose indices begin at p. */
static inline __m256i iq2_xxs_four(const uint8_t *p) {
#define POINT(g) _mm256_set1_epi64x((long long)iq2_xxs_points[p[8 * (g)]])
  const __m256i two = _mm256_blend_epi32(POINT(0), POINT(1), 0x0c);
  return _mm256_blend_epi32(_mm256_blend_epi32(two, POINT(2), 0x30), POINT(3), 0xc0);
#undef POINT
}

static inline __m512i iq2_xxs_sum(__m512i sum, const uint8_t *p, const int8_t *q, uint64_t minus) {
  const __m512i points = _mm512_inserti64x4(_mm512_castsi256_si512(iq2_xxs_four(p)), iq2_xxs_four(p + 32), 1);
  const __m512i x = _mm512_loadu_si512(q);
  return _mm512_dpbusd_epi32(sum, points, _mm512_mask_sub_epi8(x, minus, _mm512_setzero_si512(), x));
}

static float iq2_xxs_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const int8_t *q = x->q;
  __m512 total = _mm512_setzero_ps();
  for (int64_t at = 0; at < depth; at += 256, w += 66, q += 256) {
    uint64_t minus[4];
    __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    const __m256i words = _mm512_cvtepi64_epi32(_mm512_srli_epi64(_mm512_loadu_si512(w + 2), 32));
    const __m256 by = _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 28));
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w)), _mm256_loadu_ps(x->scale + at / 32));
    const __m256 factor = _mm256_mul_ps(_mm256_fmadd_ps(by, _mm256_set1_ps(0.25f), _mm256_set1_ps(0.125f)), scale);
    _mm256_storeu_si256((__m256i *)minus, iq2_xxs_masks(words));
    for (int i = 0; i < 4; i++) sum[i % 2] = iq2_xxs_sum(sum[i % 2], w + 2 + i, q + 64 * i, minus[i]);
    total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum[0], sum[1])),
                            _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(factor)), total);
  }
  return _mm512_reduce_add_ps(total);
}

#endif
