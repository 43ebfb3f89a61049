/* Rows of q2_k, q3_k and q6_k times a row of x, in vectors of 64 bytes: for AVX-512 with VNNI. For blocks_row.c only.
 *
 * As in blocks_avx2_k.h, elements from 32 g on and those from 32 (g + 4) on share vectors. A vector has first halves of
 * both in its lower half, and second halves in its upper half: four groups of 16. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX512_K_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX512_K_H

#include "device/cpu/kernels/blocks_avx2_k.h"

/* Sixteen scales as 16 bits: those of groups 0 to 7 and of groups 8 to 15, for each half of a vector. */
static inline __m512i wide_scales(__m128i scales) { return _mm512_broadcast_i64x4(_mm256_cvtepi8_epi16(scales)); }

/* The factors of x, times the block's. */
static inline __m512 wide_factors(const float *x, float scale) {
  return _mm512_broadcast_f32x8(_mm256_mul_ps(_mm256_set1_ps(scale), _mm256_loadu_ps(x)));
}

/* Of 64 bytes, the first halves of both parts, then the second halves. */
static inline __m512i wide_halves(const uint8_t *at) {
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7), _mm512_loadu_si512(at));
}

static inline __m512i wide_and(__m512i x, int bits) { return _mm512_and_si512(x, _mm512_set1_epi8((char)bits)); }

static inline float wide_total(__m512 sum, __m256 rest) {
  const __m256 both = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
  return blocks_total(_mm256_add_ps(both, rest));
}

/* The four groups of vector g, added to `sum`. */
#define WIDE_PART(g, numbers, sum)                                                                                     \
  {                                                                                                                    \
    const __m256i first = _mm256_set1_epi16(0x0100 + 0x0404 * (g)), second = _mm256_set1_epi16(0x0302 + 0x0404 * (g)); \
    const __m512i which = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);                                \
    const __m512i pairs = _mm512_maddubs_epi16(numbers, _mm512_loadu_si512(q + 64 * (g)));                             \
    const __m512i fours = _mm512_madd_epi16(pairs, _mm512_shuffle_epi8(scales, which));                                \
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(fours), _mm512_permute_ps(by, 0x55 * (g)), sum);                          \
  }

static float q2_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m128i half = _mm_set1_epi8(15);
  const int8_t *q = x->q;
  __m512 a = _mm512_setzero_ps(), b = a;
  __m256 least = _mm256_setzero_ps();
  for (int64_t i = 0; i < depth / 256; i++, w += 84, q += 256) {
    const __m128i both = _mm_loadu_si128((const __m128i *)w);
    const __m512i scales = wide_scales(_mm_and_si128(both, half)), bits = wide_halves(w + 16);
    const __m128i minima = _mm_and_si128(_mm_srli_epi16(both, 4), half);
    const __m512 by = wide_factors(x->scale + i * 8, blocks_half(w + 80));
    least = _mm256_fnmadd_ps(blocks_times_sums(minima, x->sum + i * 16), _mm256_set1_ps(blocks_half(w + 82)), least);
    WIDE_PART(0, wide_and(bits, 3), a)
    WIDE_PART(1, wide_and(_mm512_srli_epi16(bits, 2), 3), b)
    WIDE_PART(2, wide_and(_mm512_srli_epi16(bits, 4), 3), a)
    WIDE_PART(3, wide_and(_mm512_srli_epi16(bits, 6), 3), b)
  }
  return wide_total(_mm512_add_ps(a, b), least);
}

/* Of 32 bytes, in which bit g belongs to group g of 32: those of groups g for first halves, of groups g + 4, and then
 * both for second halves, from bit g on. */
static inline __m512i wide_bits_of_groups(const uint8_t *at) {
  const __m512i twice =
      _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), _mm512_castsi256_si512(blocks_load(at)));
  return _mm512_srlv_epi64(twice, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
}

static float q3_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const int8_t *q = x->q;
  __m512 a = _mm512_setzero_ps(), b = a;
  __m256 fours_of_x = _mm256_setzero_ps();
  for (int64_t i = 0; i < depth / 256; i++, w += 110, q += 256) {
    const __m128i signed_scales = q3_k_scales(w + 96);
    const __m512i scales = wide_scales(signed_scales), bits = wide_halves(w + 32), third = wide_bits_of_groups(w);
    const float scale = blocks_half(w + 108);
    const __m512 by = wide_factors(x->scale + i * 8, scale);
    fours_of_x = _mm256_fmadd_ps(blocks_times_sums(signed_scales, x->sum + i * 16), _mm256_set1_ps(scale), fours_of_x);
#define THREE(low, high) _mm512_or_si512(wide_and(low, 3), wide_and(high, 4))
    WIDE_PART(0, THREE(bits, _mm512_slli_epi16(third, 2)), a)
    WIDE_PART(1, THREE(_mm512_srli_epi16(bits, 2), _mm512_slli_epi16(third, 1)), b)
    WIDE_PART(2, THREE(_mm512_srli_epi16(bits, 4), third), a)
    WIDE_PART(3, THREE(_mm512_srli_epi16(bits, 6), _mm512_srli_epi16(third, 1)), b)
#undef THREE
  }
  return wide_total(_mm512_add_ps(a, b), _mm256_mul_ps(_mm256_set1_ps(-4), fours_of_x));
}

static float q6_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m512i even_at = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                odd_at = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const int8_t *q = x->q;
  __m512 a = _mm512_setzero_ps(), b = a;
  __m256 less = _mm256_setzero_ps();
  for (int64_t i = 0; i < depth / 256; i++, w += 210, q += 256) {
    const __m128i signed_scales = _mm_loadu_si128((const __m128i *)(w + 192));
    const __m512i low = _mm512_loadu_si512(w), high = _mm512_loadu_si512(w + 64), top = wide_halves(w + 128);
    const __m512i even = _mm512_permutex2var_epi64(low, even_at, high);
    const __m512i odd = _mm512_permutex2var_epi64(low, odd_at, high), scales = wide_scales(signed_scales);
    const float scale = blocks_half(w + 208);
    const __m512 by = wide_factors(x->scale + i * 8, scale);
    less = _mm256_fmadd_ps(blocks_times_sums(signed_scales, x->sum + i * 16), _mm256_set1_ps(scale), less);
#define SIX(four, two) _mm512_or_si512(wide_and(four, 15), wide_and(two, 48))
    WIDE_PART(0, SIX(even, _mm512_slli_epi16(top, 4)), a)
    WIDE_PART(1, SIX(odd, _mm512_slli_epi16(top, 2)), b)
    WIDE_PART(2, SIX(_mm512_srli_epi16(even, 4), top), a)
    WIDE_PART(3, SIX(_mm512_srli_epi16(odd, 4), _mm512_srli_epi16(top, 2)), b)
#undef SIX
  }
  return wide_total(_mm512_add_ps(a, b), _mm256_mul_ps(_mm256_set1_ps(-32), less));
}
#undef WIDE_PART

#endif
