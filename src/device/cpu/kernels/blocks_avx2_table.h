/* Rows of weights whose elements are indices into a table of sixteen numbers (iq4_nl, iq4_xs, mxfp4) times a row of x.
 * For blocks_row.c only.
 *
 * A shuffle looks up 32 numbers. With VNNI the table's entries are larger by 128, so that one instruction multiplies
 * and sums them, and the excess is subtracted with the sums of x. Without VNNI their signs are moved to x. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_TABLE_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_AVX2_TABLE_H

#include "device/cpu/kernels/blocks_avx2.h"

#ifdef __AVX512VNNI__
#define TABLE_SHIFT 128
#else
#define TABLE_SHIFT 0
#endif

static inline __m256i table_load(const int8_t numbers[16]) {
  return _mm256_add_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)numbers)),
                         _mm256_set1_epi8((char)TABLE_SHIFT));
}

/* Sums of four products: of the numbers of the low halves of bytes, and then of the high halves. */
static inline __m256i table_fours(__m256i table, __m256i bytes, const int8_t *q) {
  const __m256i half = _mm256_set1_epi8(15);
  const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, half));
  const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half));
#ifdef __AVX512VNNI__
  return blocks_fours(low, high, q);
#else
  const __m256i ones = _mm256_set1_epi16(1), x = blocks_load(q), next = blocks_load(q + 32);
  const __m256i first = _mm256_maddubs_epi16(_mm256_abs_epi8(low), _mm256_sign_epi8(x, low));
  const __m256i second = _mm256_maddubs_epi16(_mm256_abs_epi8(high), _mm256_sign_epi8(next, high));
  return _mm256_add_epi32(_mm256_madd_epi16(first, ones), _mm256_madd_epi16(second, ones));
#endif
}

/* Eight groups of 16 bytes, `step` apart, times 256 elements of x in the order of blocks_arrange_joined. `scales` are
 * the groups' scales; the excess due to TABLE_SHIFT goes to `shift`. */
static inline __attribute__((always_inline)) __m256 table_groups(__m256i table, const uint8_t *w, const int step,
                                                                 __m256 scales, const blocks_row_x *x, int64_t at,
                                                                 __m256 sum, __m256 *shift) {
  const __m256 by = _mm256_mul_ps(scales, _mm256_loadu_ps(x->scale + at / 32));
  const int8_t *q = x->q + at;
  if (TABLE_SHIFT != 0) *shift = _mm256_fmadd_ps(scales, _mm256_loadu_ps(x->sums + at / 32), *shift);
#define PAIR(j)                                                                                                \
  {                                                                                                            \
    const __m256i fours = table_fours(table, blocks_join(w + step * (j), w + step * ((j) + 4)), q + 64 * (j)); \
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(fours), _mm256_permute_ps(by, 0x55 * (j)), sum);                  \
  }
  PAIR(0)
  PAIR(1)
  PAIR(2)
  PAIR(3)
#undef PAIR
  return sum;
}

static inline float table_total(__m256 sum, __m256 shift) {
  return blocks_total(_mm256_fnmadd_ps(_mm256_set1_ps(TABLE_SHIFT), shift, sum));
}

static inline blocks_row_x table_rest(const blocks_row_x *x, int64_t at) {
  return (blocks_row_x){x->q + at, x->scale + at / 32, x->sum + at / 16, x->sums + at / 32, NULL};
}

static float iq4_nl_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i table = table_load(berth__block_curve);
  __m256 sum = _mm256_setzero_ps(), shift = sum;
  int64_t at = 0;
  for (; at + 256 <= depth; at += 256, w += 8 * 18)
    sum = table_groups(table, w + 2, 18, blocks_eight_scales(w, 18), x, at, sum, &shift);
  const blocks_row_x rest = table_rest(x, at);
  return table_total(sum, shift) + blocks_dot_parts(w, &rest, depth - at, 32, 18, 32, false, iq4_nl_split);
}

/* Eight powers of two (mxfp4_split in blocks_split.h). */
static inline __m256 mxfp4_eight_scales(const uint8_t *w) {
  const __m256i e = _mm256_setr_epi32(w[0], w[17], w[34], w[51], w[68], w[85], w[102], w[119]);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  const __m256i is_normal = _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1));
  return _mm256_castsi256_ps(_mm256_blendv_epi8(small, normal, is_normal));
}

static float mxfp4_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i table = table_load(berth__block_floats);
  __m256 sum = _mm256_setzero_ps(), shift = sum;
  int64_t at = 0;
  for (; at + 256 <= depth; at += 256, w += 8 * 17)
    sum = table_groups(table, w + 1, 17, mxfp4_eight_scales(w), x, at, sum, &shift);
  const blocks_row_x rest = table_rest(x, at);
  return table_total(sum, shift) + blocks_dot_parts(w, &rest, depth - at, 32, 17, 32, false, mxfp4_split);
}

/* Eight scales of six bits, minus 32 (iq4_xs_split in blocks_split.h). */
static inline __m256 iq4_xs_scales(const uint8_t *w) {
  const __m256i low =
      _mm256_srlv_epi32(_mm256_set1_epi32((int)blocks_u32(w + 4)), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
  const __m256i upper =
      _mm256_srlv_epi32(_mm256_set1_epi32(w[2] | w[3] << 8), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
  const __m256i six = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                      _mm256_slli_epi32(_mm256_and_si256(upper, _mm256_set1_epi32(3)), 4));
  return _mm256_mul_ps(_mm256_set1_ps(blocks_half(w)),
                       _mm256_cvtepi32_ps(_mm256_sub_epi32(six, _mm256_set1_epi32(32))));
}

static float iq4_xs_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i table = table_load(berth__block_curve);
  __m256 sum = _mm256_setzero_ps(), shift = sum;
  for (int64_t at = 0; at < depth; at += 256, w += 136)
    sum = table_groups(table, w + 8, 16, iq4_xs_scales(w), x, at, sum, &shift);
  return table_total(sum, shift);
}
#undef TABLE_SHIFT

#endif
