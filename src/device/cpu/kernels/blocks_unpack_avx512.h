/* Sixteen rows of a weight become half of a panel (blocks_panel.c), straight from their blocks: whole vectors of packed
 * bytes are transposed, and unpacked after that. For the formats that most files have. For blocks_panel.c only. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_UNPACK_AVX512_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_UNPACK_AVX512_H

#include <immintrin.h>

#include "device/cpu/kernels/blocks.h"

/* Row r begins at row[r] and has `depth` elements. */
typedef struct unpack_rows {
  const uint8_t *row[16];
  float *factor, *offset; /* [groups][16] */
  uint8_t *bytes;         /* [depth / 4][16][4] */
} unpack_rows;

static inline __m512i unpack_and(__m512i x, int bits) { return _mm512_and_si512(x, _mm512_set1_epi8((char)bits)); }

static inline void unpack_store(const unpack_rows *u, int64_t element, __m512i fours) {
  _mm512_storeu_si512(u->bytes + element * 16, fours);
}

/* 64 bytes of each row from `skip` on: x[k] has the four bytes from 4 k on of every row. */
static inline void unpack_turn(const unpack_rows *u, int64_t skip, __m512i x[16]) {
  vf rows[16];
  for (int r = 0; r < 16; r++) rows[r] = _mm512_loadu_ps(u->row[r] + skip);
  vf_transpose(rows);
  for (int r = 0; r < 16; r++) x[r] = _mm512_castps_si512(rows[r]);
}

/* 16 bytes from four addresses. */
static inline __m512i unpack_join(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
  const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a)),
                                         _mm_loadu_si128((const __m128i *)b), 1);
  return _mm512_inserti32x4(_mm512_inserti32x4(two, _mm_loadu_si128((const __m128i *)c), 2),
                            _mm_loadu_si128((const __m128i *)d), 3);
}

/* 16 bytes of each row: x[k] has the four bytes from 4 k on of every row. */
static inline void unpack_turn_short(const unpack_rows *u, int64_t skip, __m512i x[4]) {
  __m512i from[4], y[4];
  for (int i = 0; i < 4; i++)
    from[i] = unpack_join(u->row[i] + skip, u->row[4 + i] + skip, u->row[8 + i] + skip, u->row[12 + i] + skip);
  for (int i = 0; i < 2; i++) {
    y[2 * i] = _mm512_unpacklo_epi32(from[2 * i], from[2 * i + 1]);
    y[2 * i + 1] = _mm512_unpackhi_epi32(from[2 * i], from[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    x[2 * i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[2 * i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
  }
}

/* An f16 of every row, in the low half of each word. */
static inline __m512 unpack_halves(__m512i words) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words)); }

static inline void unpack_scales(const unpack_rows *u, int64_t block, int bytes) {
  uint16_t scale[16];
  for (int r = 0; r < 16; r++) memcpy(&scale[r], u->row[r] + block * bytes, sizeof scale[r]);
  vf_store(u->factor + block * 16, vf_load_f16(scale));
}

/* From here on 128 stands for 0, as in every format without offsets. */
static void unpack_q8_0(const unpack_rows *u, int64_t depth) {
  const __m512i more = _mm512_set1_epi8((char)128);
  for (int64_t at = 0; at < depth; at += 64) {
    const int64_t skip = at / 32 * 34;
    vf x[16];
    for (int r = 0; r < 16; r++)
      x[r] = _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(blocks_load(u->row[r] + skip + 2)),
                                                    blocks_load(u->row[r] + skip + 36), 1));
    vf_transpose(x);
    for (int r = 0; r < 16; r++) unpack_store(u, at + 4 * r, _mm512_xor_si512(_mm512_castps_si512(x[r]), more));
    for (int b = 0; b < 2; b++) unpack_scales(u, at / 32 + b, 34);
  }
}

static void unpack_q4_0(const unpack_rows *u, int64_t depth) {
  const __m512i more = _mm512_set1_epi8(120);
  for (int64_t at = 0; at < depth; at += 32) {
    __m512i x[4];
    unpack_turn_short(u, at / 32 * 18 + 2, x);
    for (int i = 0; i < 4; i++) {
      unpack_store(u, at + 4 * i, _mm512_add_epi8(unpack_and(x[i], 15), more));
      unpack_store(u, at + 4 * i + 16, _mm512_add_epi8(unpack_and(_mm512_srli_epi16(x[i], 4), 15), more));
    }
    unpack_scales(u, at / 32, 18);
  }
}

/* Scales and minima of eight groups (blocks_split.h), for sixteen rows at once. */
static inline void unpack_k_scales(const unpack_rows *u, int64_t skip, int64_t group) {
  __m512i head[4];
  unpack_turn_short(u, skip, head);
  const __m512 scale = unpack_halves(head[0]), least = unpack_halves(_mm512_srli_epi32(head[0], 16));
  const __m512 minus = _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MIN));
  const __m512i by[2] = {unpack_and(head[1], 0x3f),
                         _mm512_or_si512(unpack_and(head[3], 0x0f), unpack_and(_mm512_srli_epi32(head[1], 2), 0x30))};
  const __m512i low[2] = {unpack_and(head[2], 0x3f), _mm512_or_si512(unpack_and(_mm512_srli_epi32(head[3], 4), 0x0f),
                                                                     unpack_and(_mm512_srli_epi32(head[2], 2), 0x30))};
  for (int g = 0; g < 8; g++) {
    const __m512i six = _mm512_set1_epi32(63), shift = _mm512_set1_epi32(g % 4 * 8);
    const __m512i count = _mm512_and_si512(_mm512_srlv_epi32(by[g / 4], shift), six);
    const __m512i minimum = _mm512_and_si512(_mm512_srlv_epi32(low[g / 4], shift), six);
    vf_store(u->factor + (group + g) * 16, _mm512_mul_ps(scale, _mm512_cvtepi32_ps(count)));
    vf_store(u->offset + (group + g) * 16, _mm512_xor_ps(minus, _mm512_mul_ps(least, _mm512_cvtepi32_ps(minimum))));
  }
}

static void unpack_q4_k(const unpack_rows *u, int64_t depth) {
  for (int64_t at = 0; at < depth; at += 256) {
    const int64_t skip = at / 256 * 144;
    unpack_k_scales(u, skip, at / 32);
    for (int half = 0; half < 2; half++) {
      __m512i x[16];
      unpack_turn(u, skip + 16 + 64 * half, x);
      for (int i = 0; i < 16; i++) {
        const int64_t element = at + 128 * half + i / 8 * 64 + i % 8 * 4;
        unpack_store(u, element, unpack_and(x[i], 15));
        unpack_store(u, element + 32, unpack_and(_mm512_srli_epi16(x[i], 4), 15));
      }
    }
  }
}

static inline void unpack_q6_k_scales(const unpack_rows *u, int64_t skip, int64_t group) {
  __m512i four[4];
  uint16_t scale[16];
  unpack_turn_short(u, skip + 192, four);
  for (int r = 0; r < 16; r++) memcpy(&scale[r], u->row[r] + skip + 208, sizeof scale[r]);
  const __m512 by = vf_load_f16(scale);
  for (int g = 0; g < 16; g++) {
    const __m512i count = _mm512_srai_epi32(_mm512_sllv_epi32(four[g / 4], _mm512_set1_epi32(24 - g % 4 * 8)), 24);
    vf_store(u->factor + (group + g) * 16, _mm512_mul_ps(by, _mm512_cvtepi32_ps(count)));
  }
}

/* Four bits of `low` and two of `high` make six; 32 stands for 0. */
static inline __m512i unpack_six(__m512i low, __m512i high) {
  return _mm512_add_epi8(_mm512_or_si512(unpack_and(low, 15), unpack_and(high, 48)), _mm512_set1_epi8(96));
}

static void unpack_q6_k(const unpack_rows *u, int64_t depth) {
  for (int64_t at = 0; at < depth; at += 256) {
    const int64_t skip = at / 256 * 210;
    __m512i top[16];
    unpack_q6_k_scales(u, skip, at / 16);
    unpack_turn(u, skip + 128, top);
    for (int half = 0; half < 2; half++) {
      __m512i x[16];
      unpack_turn(u, skip + 64 * half, x);
      for (int i = 0; i < 8; i++) {
        const int64_t element = at + 128 * half + i * 4;
        const __m512i h = top[8 * half + i];
        unpack_store(u, element, unpack_six(x[i], _mm512_slli_epi16(h, 4)));
        unpack_store(u, element + 32, unpack_six(x[8 + i], _mm512_slli_epi16(h, 2)));
        unpack_store(u, element + 64, unpack_six(_mm512_srli_epi16(x[i], 4), h));
        unpack_store(u, element + 96, unpack_six(_mm512_srli_epi16(x[8 + i], 4), _mm512_srli_epi16(h, 2)));
      }
    }
  }
}

/* False: rows of this type, or of this length, are not unpacked here. */
static bool unpack_sixteen(berth_type type, const unpack_rows *u, int64_t depth) {
  if (type == BERTH_Q8_0 && depth % 64 == 0) return unpack_q8_0(u, depth), true;
  if (type == BERTH_Q4_0) return unpack_q4_0(u, depth), true;
  if (type == BERTH_Q4_K) return unpack_q4_k(u, depth), true;
  if (type == BERTH_Q6_K) return unpack_q6_k(u, depth), true;
  return false;
}

#endif
