/* The loops of blocks_split.h on vectors of 32 bytes: compilers' code for nibbles is several times slower. */
#ifndef BERTH_BASE_BLOCKS_AVX2_H
#define BERTH_BASE_BLOCKS_AVX2_H

#include <immintrin.h>

#include "base/blocks.h"

static inline __m256i blocks_load(const void *at) { return _mm256_loadu_si256((const __m256i *)at); }
static inline void blocks_store(void *at, __m256i x) { _mm256_storeu_si256((__m256i *)at, x); }

/* The low nibbles of 16 bytes, then their high nibbles. */
static inline __m256i blocks_nibbles(const uint8_t *at) {
  const __m128i both = _mm_loadu_si128((const __m128i *)at);
  const __m256i apart = _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
  return _mm256_and_si256(apart, _mm256_set1_epi8(15));
}

static inline void blocks_halves(const uint8_t *bytes, int n, int8_t *q) {
  const __m256i half = _mm256_set1_epi8(15);
  if (n == 16) blocks_store(q, blocks_nibbles(bytes));
  for (int i = 0; n > 16 && i < n; i += 32) {
    const __m256i both = blocks_load(bytes + i);
    blocks_store(q + i, _mm256_and_si256(both, half));
    blocks_store(q + n + i, _mm256_and_si256(_mm256_srli_epi16(both, 4), half));
  }
}

static inline void blocks_shift(int8_t *q, int n, int by) {
  for (int i = 0; i < n; i += 32) blocks_store(q + i, _mm256_add_epi8(blocks_load(q + i), _mm256_set1_epi8((char)by)));
}

static inline void blocks_look_up(int8_t *q, int n, const int8_t *table) {
  const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
  for (int i = 0; i < n; i += 32) blocks_store(q + i, _mm256_shuffle_epi8(twice, blocks_load(q + i)));
}

/* Sets all bits of each of 32 bytes whose bit in `bits` is set. */
static inline __m256i blocks_spread(uint32_t bits) {
  const __m256i byte =
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte);
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}

static inline void blocks_fifth_bits(const uint8_t *bytes, int8_t *q) {
  uint32_t bits;
  memcpy(&bits, bytes, sizeof bits);
  blocks_store(q, _mm256_or_si256(blocks_load(q), _mm256_and_si256(blocks_spread(bits), _mm256_set1_epi8(16))));
}

static inline void blocks_turn(int8_t *q, uint32_t minus) {
  const __m256i spread = blocks_spread(minus);
  blocks_store(q, _mm256_sub_epi8(_mm256_xor_si256(blocks_load(q), spread), spread));
}

/* ---- iq2_xxs ---- */

#define GRID_DIGIT(code, j) \
  ((8 + 17 * ((uint64_t)(code) >> 2 * (j)&3) + ((uint64_t)(code) >> 2 * (j)&3) / 2) << 8 * (j))
#define BERTH__BLOCK_POINT(code)                                                                                \
  GRID_DIGIT(code, 0) | GRID_DIGIT(code, 1) | GRID_DIGIT(code, 2) | GRID_DIGIT(code, 3) | GRID_DIGIT(code, 4) | \
      GRID_DIGIT(code, 5) | GRID_DIGIT(code, 6) | GRID_DIGIT(code, 7),
/* The points with one byte per coordinate; one extra entry, so that 16 bytes can be read at any of them. */
static const uint64_t iq2_xxs_points[257] = {
#include "base/blocks_grid.def"
};
#undef BERTH__BLOCK_POINT
#undef GRID_DIGIT

static inline __m256i iq2_xxs_point(const uint8_t *at) {
  const __m128i low = _mm_set_epi64x((long long)iq2_xxs_points[at[1]], (long long)iq2_xxs_points[at[0]]);
  const __m128i high = _mm_set_epi64x((long long)iq2_xxs_points[at[3]], (long long)iq2_xxs_points[at[2]]);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

static inline void blocks_points(const uint8_t *group, int8_t *q) {
  uint32_t word, signs = 0;
  memcpy(&word, group + 4, sizeof word);
  for (int i = 0; i < 4; i++) signs |= berth__block_signs(word >> 7 * i & 127) << 8 * i;
  const __m256i minus = blocks_spread(signs);
  blocks_store(q, _mm256_sub_epi8(_mm256_xor_si256(iq2_xxs_point(group), minus), minus));
}

#endif
