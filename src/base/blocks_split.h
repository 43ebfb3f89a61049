/* Decodes blocks. Each format's bytes are described above its function; integers of several bytes are little endian.
 * Formats of 256 elements have two levels of scales: those of groups are small integers, which an f16 for the whole
 * block multiplies.
 *
 * This is a header because it is compiled several times: once in blocks.c, and once per instruction set of the CPU
 * kernels, where compilers vectorise the loops. */
#ifndef BERTH_BASE_BLOCKS_SPLIT_H
#define BERTH_BASE_BLOCKS_SPLIT_H

#include <string.h>
#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "base/blocks.h"
#include "base/half.h"

typedef void (*blocks_split_fn)(const uint8_t *restrict block, berth__block_parts *restrict p);

static inline float blocks_f16(const uint8_t *at) {
  const uint16_t bits = (uint16_t)(at[0] | at[1] << 8);
#ifdef __F16C__
  return _cvtsh_ss(bits);
#else
  return berth__f16_to_f32(bits);
#endif
}

static inline uint32_t blocks_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

#ifdef __AVX2__
#include "base/blocks_avx2.h"
#else
/* The low nibbles of n bytes, then their high nibbles. */
static inline void blocks_halves(const uint8_t *restrict bytes, int n, int8_t *restrict q) {
  for (int i = 0; i < n; i++) {
    q[i] = (int8_t)(bytes[i] & 15);
    q[n + i] = (int8_t)(bytes[i] >> 4);
  }
}

static inline void blocks_shift(int8_t *q, int n, int by) {
  for (int i = 0; i < n; i++) q[i] = (int8_t)(q[i] + by);
}

static inline void blocks_look_up(int8_t *q, int n, const int8_t *table) {
  for (int i = 0; i < n; i++) q[i] = table[q[i]];
}

/* Bit i of 32 is the fifth bit of element i. */
static inline void blocks_fifth_bits(const uint8_t *restrict bytes, int8_t *restrict q) {
  const uint32_t bits = blocks_u32(bytes);
  for (int i = 0; i < 32; i++) q[i] = (int8_t)(q[i] | (int)(bits >> i & 1) << 4);
}

/* The coordinates of the points of a group of iq2_xxs, with their signs. */
static inline void blocks_points(const uint8_t *restrict group, int8_t *restrict q) {
  const uint32_t word = blocks_u32(group + 4);
  for (int i = 0; i < 32; i++) {
    const int x = berth__block_coordinate((uint32_t)berth__block_grid[group[i / 8]] >> (i % 8 * 2) & 3u);
    const bool minus = (berth__block_signs(word >> (i / 8 * 7) & 127) >> i % 8 & 1) != 0;
    q[i] = (int8_t)(minus ? -x : x);
  }
}

/* Gives 32 elements their signs: bit i is that of element i. */
static inline void blocks_turn(int8_t *q, uint32_t minus) {
  for (int i = 0; i < 32; i++) q[i] = (int8_t)((minus >> i & 1) != 0 ? -q[i] : q[i]);
}
#endif

/* q8_0: the scale, 32 signed bytes */
static inline void q8_0_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f16(block);
  memcpy(p->q, block + 2, 32);
}

/* q4_0: the scale, 16 bytes of two elements each; 8 stands for 0 */
static inline void q4_0_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f16(block);
  blocks_halves(block + 2, 16, p->q);
  blocks_shift(p->q, 32, -8);
}

/* q4_1: the scale, the offset, 16 bytes of two elements each */
static inline void q4_1_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f16(block);
  p->offset[0] = blocks_f16(block + 2);
  blocks_halves(block + 4, 16, p->q);
}

/* q5_0: the scale, 32 fifth bits, 16 bytes of two elements each; 16 stands for 0 */
static inline void q5_0_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f16(block);
  blocks_halves(block + 6, 16, p->q);
  blocks_fifth_bits(block + 2, p->q);
  blocks_shift(p->q, 32, -16);
}

/* q5_1: the scale, the offset, 32 fifth bits, 16 bytes of two elements each */
static inline void q5_1_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f16(block);
  p->offset[0] = blocks_f16(block + 2);
  blocks_halves(block + 8, 16, p->q);
  blocks_fifth_bits(block + 4, p->q);
}

/* Two bits of each of 256 elements in 64 bytes: 32 bytes hold 128 elements, the first 32 in the lowest bits. */
static inline void blocks_pairs_of_bits(const uint8_t *restrict bytes, int8_t *restrict q) {
  for (int g = 0; g < 8; g++)
    for (int i = 0; i < 32; i++) q[g * 32 + i] = (int8_t)(bytes[g / 4 * 32 + i] >> g % 4 * 2 & 3);
}

/* q2_k: 16 bytes with a scale and a minimum for each group, 64 bytes of elements, their scale, the minima's scale */
static inline void q2_k_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block + 80), least = blocks_f16(block + 82);
  for (int g = 0; g < 16; g++) {
    p->factor[g] = scale * (float)(block[g] & 15);
    p->offset[g] = -(least * (float)(block[g] >> 4));
  }
  blocks_pairs_of_bits(block + 16, p->q);
}

/* Six bits: four of them two per byte in the first eight bytes, the others four per byte in the last four; 32 is 0. */
static inline int q3_k_scale(const uint8_t *scales, int g) {
  const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
  return (low | (scales[8 + g % 4] >> (g / 4 * 2) & 3) << 4) - 32;
}

/* q3_k: 32 bytes of third bits (bit j of byte l belongs to element 32 j + l; if it is clear, 4 is subtracted), 64 bytes
 * of the lower two bits, 12 bytes with the groups' scales, their scale */
static inline void q3_k_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block + 108);
  for (int g = 0; g < 16; g++) p->factor[g] = scale * (float)q3_k_scale(block + 96, g);
  blocks_pairs_of_bits(block + 32, p->q);
  for (int g = 0; g < 8; g++)
    for (int i = 0; i < 32; i++) p->q[g * 32 + i] = (int8_t)(p->q[g * 32 + i] + (block[i] >> g & 1) * 4 - 4);
}

/* The scales and minima of eight groups, six bits each, in 12 bytes: those of the first four groups are the low bits of
 * the first eight bytes. Those of the others have their low four bits in the last four bytes, and the upper two above
 * those of the first four. */
static inline void q4_k_scales(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block), least = blocks_f16(block + 2);
  const uint32_t first = blocks_u32(block + 4), second = blocks_u32(block + 8), third = blocks_u32(block + 12);
  const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x30303030u; /* four bytes at once */
  const uint32_t by[2] = {first & six, (third & four) | (first >> 2 & two)};
  const uint32_t low[2] = {second & six, (third >> 4 & four) | (second >> 2 & two)};
  for (int g = 0; g < 8; g++) {
    p->factor[g] = scale * (float)(int)(by[g / 4] >> g % 4 * 8 & 63);
    p->offset[g] = -(least * (float)(int)(low[g / 4] >> g % 4 * 8 & 63));
  }
}

/* q4_k: the scale, the minima's scale, 12 bytes with those of the groups, 128 bytes of two elements each: 32 bytes hold
 * two groups, the first in the low nibbles */
static inline void q4_k_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  q4_k_scales(block, p);
  for (int i = 0; i < 4; i++) blocks_halves(block + 16 + (ptrdiff_t)i * 32, 32, p->q + (ptrdiff_t)i * 64);
}

/* q5_k: like q4_k, with 32 bytes of fifth bits before the elements: bit g of byte l belongs to element l of group g */
static inline void q5_k_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  q4_k_scales(block, p);
  for (int i = 0; i < 4; i++) blocks_halves(block + 48 + (ptrdiff_t)i * 32, 32, p->q + (ptrdiff_t)i * 64);
  for (int g = 0; g < 8; g++)
    for (int i = 0; i < 32; i++) p->q[g * 32 + i] = (int8_t)(p->q[g * 32 + i] | (block[16 + i] >> g & 1) << 4);
}

/* q6_k: 128 bytes of low four bits (64 bytes hold 128 elements, low nibbles first), 64 bytes of the upper two, 16
 * signed scales of groups, their scale; 32 stands for 0 */
static inline void q6_k_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block + 208);
  int8_t upper[256];
  for (int g = 0; g < 16; g++) p->factor[g] = scale * (float)(int8_t)block[192 + g];
  blocks_pairs_of_bits(block + 128, upper);
  for (int i = 0; i < 2; i++) blocks_halves(block + (ptrdiff_t)i * 64, 64, p->q + (ptrdiff_t)i * 128);
  for (int i = 0; i < 256; i++) p->q[i] = (int8_t)((p->q[i] | upper[i] << 4) - 32);
}

/* iq2_xxs: the scale, then eight groups of eight bytes: four indices of points, and a word with their signs, seven bits
 * each, and the group's scale in the last four bits */
static inline void iq2_xxs_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block);
  for (int g = 0; g < 8; g++) {
    const uint8_t *group = block + 2 + (ptrdiff_t)g * 8;
    const uint32_t word = blocks_u32(group + 4);
    p->factor[g] = scale * (0.5f + (float)(word >> 28)) * 0.25f;
    blocks_points(group, p->q + (ptrdiff_t)g * 32);
  }
}

/* Scales of four bits, s + 1/2 each, two a byte. */
static inline void blocks_half_scales(const uint8_t *scales, float scale, float *factor) {
  for (int g = 0; g < 16; g++) factor[g] = scale * (0.5f + (float)(scales[g / 2] >> g % 2 * 4 & 15)) * 0.25f;
}

/* iq2_xs: the scale, 32 indices of points, nine bits each with seven signs above them, eight bytes with the groups'
 * scales */
static inline void iq2_xs_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  blocks_half_scales(block + 66, blocks_f16(block), p->factor);
  for (int g = 0; g < 8; g++) {
    uint32_t minus = 0;
    for (int i = 0; i < 4; i++) {
      const uint8_t *at = block + 2 + (ptrdiff_t)g * 8 + (ptrdiff_t)i * 2;
      memcpy(p->q + (ptrdiff_t)g * 32 + (ptrdiff_t)i * 8, &berth__block_points_iq2_xs[at[0] | (at[1] & 1) << 8], 8);
      minus |= berth__block_signs(at[1] >> 1) << 8 * i;
    }
    blocks_turn(p->q + (ptrdiff_t)g * 32, minus);
  }
}

/* iq2_s: the scale, 32 bytes with the lower bits of the indices of points, 32 bytes of signs, eight bytes with the
 * upper two bits of the indices, eight with the groups' scales */
static inline void iq2_s_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  blocks_half_scales(block + 74, blocks_f16(block), p->factor);
  for (int g = 0; g < 8; g++) {
    for (int i = 0; i < 4; i++) {
      const int at = block[2 + g * 4 + i] | (block[66 + g] >> 2 * i & 3) << 8;
      memcpy(p->q + (ptrdiff_t)g * 32 + (ptrdiff_t)i * 8, &berth__block_points_iq2_s[at], 8);
    }
    blocks_turn(p->q + (ptrdiff_t)g * 32, blocks_u32(block + 34 + (ptrdiff_t)g * 4));
  }
}

/* iq3_xxs: the scale, 64 indices of points, then a word for each group, with seven signs for each pair of points, and
 * the group's scale in the last four bits */
static inline void iq3_xxs_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block);
  for (int g = 0; g < 8; g++) {
    const uint32_t word = blocks_u32(block + 66 + (ptrdiff_t)g * 4);
    uint32_t minus = 0;
    for (int i = 0; i < 8; i++)
      memcpy(p->q + (ptrdiff_t)g * 32 + (ptrdiff_t)i * 4, &berth__block_points_iq3_xxs[block[2 + g * 8 + i]], 4);
    for (int i = 0; i < 4; i++) minus |= berth__block_signs(word >> 7 * i & 127) << 8 * i;
    blocks_turn(p->q + (ptrdiff_t)g * 32, minus);
    p->factor[g] = scale * (0.5f + (float)(word >> 28)) * 0.5f;
  }
}

/* iq3_s: the scale, 64 bytes with the lower bits of the indices of points, eight bytes with their ninth bits, 32 bytes
 * of signs, four with the groups' scales */
static inline void iq3_s_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block);
  for (int g = 0; g < 8; g++) {
    for (int i = 0; i < 8; i++) {
      const int at = block[2 + g * 8 + i] | (block[66 + g] >> i & 1) << 8;
      memcpy(p->q + (ptrdiff_t)g * 32 + (ptrdiff_t)i * 4, &berth__block_points_iq3_s[at], 4);
    }
    blocks_turn(p->q + (ptrdiff_t)g * 32, blocks_u32(block + 74 + (ptrdiff_t)g * 4));
    p->factor[g] = scale * (float)(1 + 2 * (block[106 + g / 2] >> g % 2 * 4 & 15));
  }
}

/* iq4_nl: the scale, 16 bytes of two table indices each */
static inline void iq4_nl_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f16(block);
  blocks_halves(block + 2, 16, p->q);
  blocks_look_up(p->q, 32, berth__block_curve);
}

/* iq4_xs: the scale, the upper two bits of the groups' scales in two bytes, the low four in four, 128 bytes of table
 * indices, 16 per group; a group's scale of 32 stands for 0 */
static inline void iq4_xs_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const float scale = blocks_f16(block);
  const int upper = block[2] | block[3] << 8;
  for (int g = 0; g < 8; g++) {
    const int by = (block[4 + g / 2] >> (g % 2 * 4) & 15) | (upper >> 2 * g & 3) << 4;
    p->factor[g] = scale * (float)(by - 32);
    blocks_halves(block + 8 + (ptrdiff_t)g * 16, 16, p->q + (ptrdiff_t)g * 32);
  }
  blocks_look_up(p->q, 256, berth__block_curve);
}

/* mxfp4: an exponent, 16 bytes of two floats each. The table holds them times two, so the power of two is one less than
 * the exponent says: 2^(e - 128), which is subnormal for e = 0 and 1. */
static inline void mxfp4_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  const uint32_t bits = block[0] < 2 ? 0x00200000u << block[0] : (uint32_t)(block[0] - 1) << 23;
  memcpy(&p->factor[0], &bits, sizeof bits);
  blocks_halves(block + 1, 16, p->q);
  blocks_look_up(p->q, 32, berth__block_floats);
}

static inline float blocks_f32(const uint8_t *at) {
  const uint32_t bits = blocks_u32(at);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* q4_0f: the scale, 16 bytes of two elements each; 8 stands for 0 */
static inline void q4_0f_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f32(block);
  blocks_halves(block + 4, 16, p->q);
  blocks_shift(p->q, 32, -8);
}

/* q4_1f: the scale, the offset, 16 bytes of two elements each */
static inline void q4_1f_split(const uint8_t *restrict block, berth__block_parts *restrict p) {
  p->factor[0] = blocks_f32(block);
  p->offset[0] = blocks_f32(block + 4);
  blocks_halves(block + 8, 16, p->q);
}

/* ---- The table ---- */

typedef struct blocks_row {
  blocks_split_fn split;
  uint8_t group;
  bool has_offset;
} blocks_row;

static inline const blocks_row *blocks_find(berth_type type) {
  static const blocks_row rows[] = {
      [0] = {q8_0_split, 32, false},
      [BERTH_Q4_0 - BERTH_Q8_0] = {q4_0_split, 32, false},
      [BERTH_Q4_1 - BERTH_Q8_0] = {q4_1_split, 32, true},
      [BERTH_Q5_0 - BERTH_Q8_0] = {q5_0_split, 32, false},
      [BERTH_Q5_1 - BERTH_Q8_0] = {q5_1_split, 32, true},
      [BERTH_Q2_K - BERTH_Q8_0] = {q2_k_split, 16, true},
      [BERTH_Q3_K - BERTH_Q8_0] = {q3_k_split, 16, false},
      [BERTH_Q4_K - BERTH_Q8_0] = {q4_k_split, 32, true},
      [BERTH_Q5_K - BERTH_Q8_0] = {q5_k_split, 32, true},
      [BERTH_Q6_K - BERTH_Q8_0] = {q6_k_split, 16, false},
      [BERTH_IQ2_XXS - BERTH_Q8_0] = {iq2_xxs_split, 32, false},
      [BERTH_IQ4_NL - BERTH_Q8_0] = {iq4_nl_split, 32, false},
      [BERTH_IQ4_XS - BERTH_Q8_0] = {iq4_xs_split, 32, false},
      [BERTH_MXFP4 - BERTH_Q8_0] = {mxfp4_split, 32, false},
      [BERTH_IQ2_XS - BERTH_Q8_0] = {iq2_xs_split, 16, false},
      [BERTH_IQ2_S - BERTH_Q8_0] = {iq2_s_split, 16, false},
      [BERTH_IQ3_XXS - BERTH_Q8_0] = {iq3_xxs_split, 32, false},
      [BERTH_IQ3_S - BERTH_Q8_0] = {iq3_s_split, 32, false},
      [BERTH_Q4_0F - BERTH_Q8_0] = {q4_0f_split, 32, false},
      [BERTH_Q4_1F - BERTH_Q8_0] = {q4_1f_split, 32, true},
  };
  const int at = (int)type - (int)BERTH_Q8_0;
  return at >= 0 && at < (int)(sizeof rows / sizeof rows[0]) && rows[at].split != NULL ? &rows[at] : NULL;
}

#endif
