/* Rows of weights whose blocks have two levels of scales (q2_k to q6_k) times a row of x. For blocks_row.c only.
 *
 * Scales of groups are small integers. If a group has 16 elements, products are multiplied by them as integers, so that
 * 32 elements need one conversion to f32. Constant shifts of the numbers, or minima, are subtracted with the sums of x,
 * once per block. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_K_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_K_H

#include "device/cpu/kernels/blocks_avx2.h"

/* ---- Groups of 32: q4_k, q5_k ---- */

/* Eight scales and then eight minima, as bytes: 12 bytes hold six bits of each (blocks_split.h). `head` begins with the
 * block's two scales. */
static inline __m128i blocks_k_scales(__m128i head) {
  const __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(head, 0xed), _mm_setr_epi32(0, 0, 0, 4));
  const __m128i top = _mm_srli_epi32(_mm_shuffle_epi32(head, 0x84), 2);
  return _mm_or_si128(_mm_and_si128(low, _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f)),
                      _mm_and_si128(top, _mm_setr_epi32(0, 0x30303030, 0, 0x30303030)));
}

/* The factors that the sums of eight groups are multiplied by; their minima are subtracted from `least` here. */
static inline __m256 blocks_k_factors(const uint8_t *w, const blocks_row_x *x, int64_t block, __m256 *least) {
  const __m128i head = _mm_loadu_si128((const __m128i *)w), all = blocks_k_scales(head);
  const __m128 both = _mm_cvtph_ps(head);
  const __m256 scale = _mm256_broadcastss_ps(both), low = _mm256_broadcastss_ps(_mm_movehdup_ps(both));
  const __m256 scales = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(all));
  const __m256 minima = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(all, all)));
  *least = _mm256_fnmadd_ps(_mm256_mul_ps(minima, low), _mm256_loadu_ps(x->sums + block * 8), *least);
  return _mm256_mul_ps(_mm256_mul_ps(scales, scale), _mm256_loadu_ps(x->scale + block * 8));
}

/* Groups g and g + 4, like blocks in q4_0: the numbers of their first halves, then of their second halves. */
#define TWO_GROUPS(g, first, second, sum)                                              \
  sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(blocks_fours(first, second, q + 64 * (g))), \
                        _mm256_permute_ps(by, 0x55 * (g)), sum);

static float q4_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i half = _mm256_set1_epi8(15);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a, least = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 144, q += 256) {
    const __m256 by = blocks_k_factors(w, x, i, &least);
#define FOUR_GROUPS(j)                                                                    \
  {                                                                                       \
    const __m256i first = blocks_join(w + 16 + 32 * (j), w + 80 + 32 * (j));              \
    const __m256i second = blocks_join(w + 32 + 32 * (j), w + 96 + 32 * (j));             \
    TWO_GROUPS(2 * (j), _mm256_and_si256(first, half), _mm256_and_si256(second, half), a) \
    TWO_GROUPS(2 * (j) + 1, _mm256_and_si256(_mm256_srli_epi16(first, 4), half),          \
               _mm256_and_si256(_mm256_srli_epi16(second, 4), half), b)                   \
  }
    FOUR_GROUPS(0)
    FOUR_GROUPS(1)
#undef FOUR_GROUPS
  }
  return blocks_total(_mm256_add_ps(_mm256_add_ps(a, b), least));
}

/* For 16 bytes in which bit g belongs to group g: those of groups g in the lower half and of groups g + 4 in the upper
 * half. */
static inline __m256i blocks_bits_of_groups(const uint8_t *at) {
  const __m128i all = _mm_loadu_si128((const __m128i *)at);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(all), _mm_srli_epi16(all, 4), 1);
}

static float q5_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i half = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a, least = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 176, q += 256) {
    const __m256 by = blocks_k_factors(w, x, i, &least);
    const __m256i bits[2] = {blocks_bits_of_groups(w + 16), blocks_bits_of_groups(w + 32)};
#define FIVE(nibbles, part, g) \
  _mm256_or_si256(_mm256_and_si256(nibbles, half), _mm256_and_si256(_mm256_slli_epi16(bits[part], 4 - (g)), fifth))
#define FOUR_GROUPS(j)                                                         \
  {                                                                            \
    const __m256i first = blocks_join(w + 48 + 32 * (j), w + 112 + 32 * (j));  \
    const __m256i second = blocks_join(w + 64 + 32 * (j), w + 128 + 32 * (j)); \
    TWO_GROUPS(2 * (j), FIVE(first, 0, 2 * (j)), FIVE(second, 1, 2 * (j)), a)  \
    TWO_GROUPS(2 * (j) + 1, FIVE(_mm256_srli_epi16(first, 4), 0, 2 * (j) + 1), \
               FIVE(_mm256_srli_epi16(second, 4), 1, 2 * (j) + 1), b)          \
  }
    FOUR_GROUPS(0)
    FOUR_GROUPS(1)
#undef FOUR_GROUPS
#undef FIVE
  }
  return blocks_total(_mm256_add_ps(_mm256_add_ps(a, b), least));
}
#undef TWO_GROUPS

/* ---- Groups of 16: q2_k, q3_k, q6_k ----
 *
 * 32 elements have one scale of x. Elements from 32 g on and those from 32 (g + 4) on share vectors, as above: first
 * halves, which are groups of their own here, and second halves. */

/* Sixteen bytes times the sums of x. */
static inline __m256 blocks_times_sums(__m128i scales, const float *sum) {
  const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(scales, scales)));
  return _mm256_fmadd_ps(low, _mm256_loadu_ps(sum), _mm256_mul_ps(high, _mm256_loadu_ps(sum + 8)));
}

/* Sixteen scales of six bits, minus 32, from 12 bytes (q3_k_scale in blocks_split.h). */
static inline __m128i q3_k_scales(const uint8_t *at) {
  uint64_t low;
  uint32_t top;
  memcpy(&low, at, sizeof low);
  memcpy(&top, at + 8, sizeof top);
  const __m128i eight = _mm_cvtsi64_si128((long long)low);
  const __m128i four = _mm_and_si128(_mm_unpacklo_epi64(eight, _mm_srli_epi16(eight, 4)), _mm_set1_epi8(15));
  const __m128i two =
      _mm_and_si128(_mm_srlv_epi32(_mm_set1_epi32((int)top), _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
  return _mm_sub_epi8(_mm_or_si128(four, _mm_slli_epi16(two, 4)), _mm_set1_epi8(32));
}

#ifndef __AVX512VNNI__ /* which has its own in blocks_avx512_k.h */
/* Numbers times x, times the scales of groups `group` and `group` + 8, added to `sum`. */
static inline __m256i blocks_scaled(__m256i sum, __m256i w, const int8_t *q, __m256i scales, int group) {
  const __m256i scale = _mm256_shuffle_epi8(scales, _mm256_set1_epi16((short)(0x0100 + 0x0202 * group)));
  const __m256i pairs = _mm256_maddubs_epi16(w, blocks_load(q));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, scale));
}

#define TWO_PARTS(g, first, second, sum)                                                             \
  {                                                                                                  \
    const __m256i one = blocks_scaled(_mm256_setzero_si256(), first, q + 64 * (g), scales, 2 * (g)); \
    const __m256i all = blocks_scaled(one, second, q + 64 * (g) + 32, scales, 2 * (g) + 1);          \
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(all), _mm256_permute_ps(by, 0x55 * (g)), sum);          \
  }

static float q2_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i two = _mm256_set1_epi8(3);
  const __m128i half = _mm_set1_epi8(15);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a, least = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 84, q += 256) {
    const __m128i both = _mm_loadu_si128((const __m128i *)w);
    const __m256i scales = _mm256_cvtepi8_epi16(_mm_and_si128(both, half));
    const __m128i minima = _mm_and_si128(_mm_srli_epi16(both, 4), half);
    const __m256 by = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w + 80)), _mm256_loadu_ps(x->scale + i * 8));
    const __m256i first = blocks_join(w + 16, w + 48), second = blocks_join(w + 32, w + 64);
    least = _mm256_fnmadd_ps(blocks_times_sums(minima, x->sum + i * 16), _mm256_set1_ps(blocks_half(w + 82)), least);
#define BITS(bits, g) _mm256_and_si256(_mm256_srli_epi16(bits, 2 * (g)), two)
    TWO_PARTS(0, BITS(first, 0), BITS(second, 0), a)
    TWO_PARTS(1, BITS(first, 1), BITS(second, 1), b)
    TWO_PARTS(2, BITS(first, 2), BITS(second, 2), a)
    TWO_PARTS(3, BITS(first, 3), BITS(second, 3), b)
#undef BITS
  }
  return blocks_total(_mm256_add_ps(_mm256_add_ps(a, b), least));
}

static float q3_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i two = _mm256_set1_epi8(3), third = _mm256_set1_epi8(4);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a, fours = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 110, q += 256) {
    const __m128i signed_scales = q3_k_scales(w + 96);
    const __m256i scales = _mm256_cvtepi8_epi16(signed_scales);
    const __m256 scale = _mm256_set1_ps(blocks_half(w + 108));
    const __m256 by = _mm256_mul_ps(scale, _mm256_loadu_ps(x->scale + i * 8));
    const __m256i first = blocks_join(w + 32, w + 64), second = blocks_join(w + 48, w + 80);
    const __m256i top = blocks_bits_of_groups(w), next = blocks_bits_of_groups(w + 16);
    fours = _mm256_fmadd_ps(blocks_times_sums(signed_scales, x->sum + i * 16), scale, fours);
#define BITS(bits, g, high) \
  _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(bits, 2 * (g)), two), _mm256_and_si256(high, third))
    TWO_PARTS(0, BITS(first, 0, _mm256_slli_epi16(top, 2)), BITS(second, 0, _mm256_slli_epi16(next, 2)), a)
    TWO_PARTS(1, BITS(first, 1, _mm256_slli_epi16(top, 1)), BITS(second, 1, _mm256_slli_epi16(next, 1)), b)
    TWO_PARTS(2, BITS(first, 2, top), BITS(second, 2, next), a)
    TWO_PARTS(3, BITS(first, 3, _mm256_srli_epi16(top, 1)), BITS(second, 3, _mm256_srli_epi16(next, 1)), b)
#undef BITS
  }
  return blocks_total(_mm256_fnmadd_ps(_mm256_set1_ps(4), fours, _mm256_add_ps(a, b)));
}

static float q6_k_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i half = _mm256_set1_epi8(15), upper = _mm256_set1_epi8(48);
  const int8_t *q = x->q;
  __m256 a = _mm256_setzero_ps(), b = a, less = a;
  for (int64_t i = 0; i < depth / 256; i++, w += 210, q += 256) {
    const __m128i signed_scales = _mm_loadu_si128((const __m128i *)(w + 192));
    const __m256i scales = _mm256_cvtepi8_epi16(signed_scales);
    const __m256 scale = _mm256_set1_ps(blocks_half(w + 208));
    const __m256 by = _mm256_mul_ps(scale, _mm256_loadu_ps(x->scale + i * 8));
    const __m256i first = blocks_join(w, w + 64), second = blocks_join(w + 16, w + 80);
    const __m256i third = blocks_join(w + 32, w + 96), fourth = blocks_join(w + 48, w + 112);
    const __m256i top = blocks_join(w + 128, w + 160), next = blocks_join(w + 144, w + 176);
    less = _mm256_fmadd_ps(blocks_times_sums(signed_scales, x->sum + i * 16), scale, less);
#define SIX(low, high) _mm256_or_si256(_mm256_and_si256(low, half), _mm256_and_si256(high, upper))
    TWO_PARTS(0, SIX(first, _mm256_slli_epi16(top, 4)), SIX(second, _mm256_slli_epi16(next, 4)), a)
    TWO_PARTS(1, SIX(third, _mm256_slli_epi16(top, 2)), SIX(fourth, _mm256_slli_epi16(next, 2)), b)
    TWO_PARTS(2, SIX(_mm256_srli_epi16(first, 4), top), SIX(_mm256_srli_epi16(second, 4), next), a)
    TWO_PARTS(3, SIX(_mm256_srli_epi16(third, 4), _mm256_srli_epi16(top, 2)),
              SIX(_mm256_srli_epi16(fourth, 4), _mm256_srli_epi16(next, 2)), b)
#undef SIX
  }
  return blocks_total(_mm256_fnmadd_ps(_mm256_set1_ps(32), less, _mm256_add_ps(a, b)));
}
#undef TWO_PARTS

#endif

#endif
