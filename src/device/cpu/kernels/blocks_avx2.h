/* Rows of weights in blocks times a row of x, in vectors of 32 bytes: for AVX2, and also for AVX-512, since weights
 * come from memory. For blocks_row.c only. */
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

/* The scales of eight blocks with so many bytes each. */
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

/* (w - shift) * x: both products stay within 16 bits. */
static inline __m256i blocks_shifted(__m256i w, __m256i x, int shift) {
  return _mm256_sub_epi16(_mm256_maddubs_epi16(w, x), _mm256_maddubs_epi16(_mm256_set1_epi8((char)shift), x));
}

/* Of eight blocks, j and j + 4 share vectors: the first halves of both, then the second halves. That way two blocks
 * need one conversion to f32, and eight scales stay in their register. */
static inline void blocks_arrange_joined(int8_t *q) {
  __m256i from[8];
  for (int i = 0; i < 8; i++) from[i] = blocks_load(q + 32 * i);
  for (int j = 0; j < 4; j++) {
    blocks_store(q + 64 * j, _mm256_permute2x128_si256(from[j], from[j + 4], 0x20));
    blocks_store(q + 64 * j + 32, _mm256_permute2x128_si256(from[j], from[j + 4], 0x31));
  }
}

/* Sums of four products: `low` with 32 bytes of x, and `high` with the next 32. Without VNNI, neither may exceed 63. */
static inline __m256i blocks_fours(__m256i low, __m256i high, const int8_t *q) {
#ifdef __AVX512VNNI__
  return _mm256_dpbusd_epi32(_mm256_dpbusd_epi32(_mm256_setzero_si256(), low, blocks_load(q)), high,
                             blocks_load(q + 32));
#else
  const __m256i pairs =
      _mm256_add_epi16(_mm256_maddubs_epi16(low, blocks_load(q)), _mm256_maddubs_epi16(high, blocks_load(q + 32)));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* 16 bytes from two addresses. */
static inline __m256i blocks_join(const void *low, const void *high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                 _mm_loadu_si128((const __m128i *)high), 1);
}

/* Blocks of 32 numbers of four bits: a scale of f16, one of f32, or a scale and an offset of f32. */
typedef enum fours_head {
  FOURS_HALF,
  FOURS_REAL,
  FOURS_OFFSET
} fours_head;

/* The number `at` bytes into each of eight blocks. */
static inline __m256 fours_eight_reals(const uint8_t *w, const int bytes, const int at) {
  float number[8];
  for (int i = 0; i < 8; i++) memcpy(&number[i], w + i * bytes + at, sizeof number[i]);
  return _mm256_loadu_ps(number);
}

static inline float fours_real(const uint8_t *at) {
  float number;
  memcpy(&number, at, sizeof number);
  return number;
}

/* The excess of 8 times x, or what offsets add, is summed up for eight blocks at once. */
static inline __attribute__((always_inline)) float fours_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth,
                                                             const fours_head head) {
  const int skip = head == FOURS_HALF ? 2 : head == FOURS_REAL ? 4 : 8, bytes = skip + 16;
  const __m256i half = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  const int8_t *q = x->q;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, rest = sum[0];
  int64_t i = 0;
  for (; i + 8 <= depth / 32; i += 8, w += 8 * bytes, q += 256) {
    const __m256 scales = head == FOURS_HALF ? blocks_eight_scales(w, bytes) : fours_eight_reals(w, bytes, 0);
    const __m256 by = _mm256_mul_ps(scales, _mm256_loadu_ps(x->scale + i));
    const __m256 of = head == FOURS_OFFSET ? fours_eight_reals(w, bytes, 4) : scales;
    rest = _mm256_fmadd_ps(of, _mm256_loadu_ps(x->sums + i), rest);
#define PAIR(j)                                                                              \
  {                                                                                          \
    const __m256i both = blocks_join(w + bytes * (j) + skip, w + bytes * ((j) + 4) + skip);  \
    const __m256i low = _mm256_and_si256(both, half);                                        \
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), half);                 \
    const __m256 number = _mm256_cvtepi32_ps(blocks_fours(low, high, q + 64 * (j)));         \
    sum[(j) % 2] = _mm256_fmadd_ps(number, _mm256_permute_ps(by, 0x55 * (j)), sum[(j) % 2]); \
  }
    PAIR(0)
    PAIR(1)
    PAIR(2)
    PAIR(3)
#undef PAIR
  }
  rest = _mm256_mul_ps(rest, _mm256_set1_ps(head == FOURS_OFFSET ? 1 : -8));
  for (; i < depth / 32; i++, w += bytes, q += 32) {
    const __m256i pairs = blocks_shifted(blocks_nibbles(w + skip), blocks_load(q), head == FOURS_OFFSET ? 0 : 8);
    const __m256 number = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));
    const float by = head == FOURS_HALF ? blocks_half(w) : fours_real(w);
    sum[0] = _mm256_fmadd_ps(number, _mm256_set1_ps(by * x->scale[i]), sum[0]);
    if (head == FOURS_OFFSET)
      rest = _mm256_add_ps(rest, _mm256_setr_ps(fours_real(w + 4) * x->sums[i], 0, 0, 0, 0, 0, 0, 0));
  }
  return blocks_total(_mm256_add_ps(rest, _mm256_add_ps(sum[0], sum[1])));
}

static float q4_0_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  return fours_dot(w, x, depth, FOURS_HALF);
}
static float q4_0f_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  return fours_dot(w, x, depth, FOURS_REAL);
}
static float q4_1f_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  return fours_dot(w, x, depth, FOURS_OFFSET);
}

/* ---- Any format, after unpacking: 32 bytes of both, and the factors of their groups ---- */

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

/* ---- iq2_xxs; blocks_points_avx512.h is for AVX-512 with VNNI ---- */

/* Eight words, each with four groups of seven signs: four groups of eight, in which an even number of signs is set. */
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

#ifndef __AVX512VNNI__
/* Groups j and j + 4 share vectors, as in q4_0, and points are stored in pairs: their first coordinates, their second
 * ones, and so on. A word of 16 bits then has the signs of two points. A multiplication by a power of two moves those
 * of a pair of coordinates to the top bits of its bytes, where they select between x and -x. */
static inline void iq2_xxs_arrange(int8_t *q, int8_t *minus) {
  int8_t from[256];
  memcpy(from, q, sizeof from);
  for (int i = 0; i < 256; i++) {
    const int j = i / 64, half = i % 64 / 32, group = j + i % 32 / 16 * 4, at = i % 16;
    q[i] = from[32 * group + 16 * half + at % 2 * 8 + at / 2];
    minus[i] = (int8_t)-q[i];
  }
}

/* Two points at `a` and two at `b`. More bytes are read than the second pair has, so that one instruction reads
 * both. */
static inline __m256i iq2_xxs_pair(const uint8_t *a, const uint8_t *b) {
  uint16_t at_a, at_b;
  memcpy(&at_a, a, sizeof at_a);
  memcpy(&at_b, b, sizeof at_b);
  const __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)&iq2_xxs_points[(uint8_t)at_a]);
  const __m128i second = _mm_loadu_si128((const __m128i *)(const void *)&iq2_xxs_points[at_a >> 8]);
  const __m128i third = _mm_loadl_epi64((const __m128i *)(const void *)&iq2_xxs_points[(uint8_t)at_b]);
  const __m128i fourth = _mm_loadu_si128((const __m128i *)(const void *)&iq2_xxs_points[at_b >> 8]);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(first, second)),
                                 _mm_unpacklo_epi8(third, fourth), 1);
}

/* x with the signs of word `at` (of eight, in each half). */
static inline __m256i iq2_xxs_turn(__m256i signs, const int8_t *q, const int8_t *minus, int at) {
  const __m256i power = _mm256_broadcastsi128_si256(_mm_setr_epi16(128, 64, 32, 16, 8, 4, 2, 1));
  const __m256i word = _mm256_shuffle_epi8(signs, _mm256_set1_epi16((short)(0x0100 + 0x0202 * at)));
  return _mm256_blendv_epi8(blocks_load(q), blocks_load(minus), _mm256_mullo_epi16(word, power));
}

static float iq2_xxs_dot(const uint8_t *w, const blocks_row_x *x, int64_t depth) {
  const __m256i ones = _mm256_set1_epi16(1);
  const int8_t *q = x->q, *minus = x->minus;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t i = 0; i < depth / 256; i++, w += 66, q += 256, minus += 256) {
    const __m256 first = _mm256_castsi256_ps(blocks_load(w + 2)), second = _mm256_castsi256_ps(blocks_load(w + 34));
    const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
    const __m256i words = _mm256_permute4x64_epi64(odd, 0xd8);
    const __m256i twice = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(words, 28), 1), _mm256_set1_epi32(1));
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(blocks_half(w) * 0.125f), _mm256_loadu_ps(x->scale + i * 8));
    const __m256 by = _mm256_mul_ps(_mm256_cvtepi32_ps(twice), scale);
    const __m256i signs = iq2_xxs_signs(words);
#define PAIR(j)                                                                                      \
  {                                                                                                  \
    const uint8_t *a = w + 2 + 8 * (j), *b = w + 2 + 8 * ((j) + 4);                                  \
    const __m256i low = iq2_xxs_turn(signs, q + 64 * (j), minus + 64 * (j), 2 * (j));                \
    const __m256i high = iq2_xxs_turn(signs, q + 64 * (j) + 32, minus + 64 * (j) + 32, 2 * (j) + 1); \
    const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(iq2_xxs_pair(a, b), low),            \
                                           _mm256_maddubs_epi16(iq2_xxs_pair(a + 2, b + 2), high));  \
    const __m256 number = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));                        \
    sum[(j) % 2] = _mm256_fmadd_ps(number, _mm256_permute_ps(by, 0x55 * (j)), sum[(j) % 2]);         \
  }
    PAIR(0)
    PAIR(1)
    PAIR(2)
    PAIR(3)
#undef PAIR
  }
  return blocks_total(_mm256_add_ps(sum[0], sum[1]));
}

#endif

#endif
