/* Block types: elements in blocks that have scales of their own. A block type is a row of BERTH_BLOCK_TYPE_MAP and a
 * row of the table in blocks.c.
 *
 * All formats decode alike: they have small signed integers, and groups of these share a factor and an offset, x =
 * factor * q + offset. Kernels that compute with the integers use these parts, too. */
#ifndef BERTH_BASE_BLOCKS_H
#define BERTH_BASE_BLOCKS_H

#include <stdbool.h>
#include <string.h>

#include "berth/berth.h"

#define BERTH__BLOCK_MAX 256       /* elements of the largest block */
#define BERTH__BLOCK_GROUPS_MAX 16 /* groups of such a block */

/* One block. The product factor * q and its sum with the offset are rounded once each; a format without an offset has
 * -0, which changes nothing. */
typedef struct berth__block_parts {
  int8_t q[BERTH__BLOCK_MAX];
  float factor[BERTH__BLOCK_GROUPS_MAX], offset[BERTH__BLOCK_GROUPS_MAX];
} berth__block_parts;

static inline bool berth__type_is_block(berth_type type) { return berth_type_storage(type).elements > 1; }

/* Elements per group; 0 for a type without blocks. */
uint32_t berth__block_group(berth_type type);
/* Whether the format has offsets. */
bool berth__block_has_offset(berth_type type);
/* The parts of one block, which may be unaligned. */
void berth__block_split(berth_type type, const void *block, berth__block_parts *parts);

/* Whole blocks to and from f32; does nothing for types that have no blocks or that cannot be encoded. Blocks may be
 * unaligned. */
void berth__blocks_decode(berth_type type, const void *src, uint64_t count, float *dst);
bool berth__type_encodes(berth_type type); /* true for plain types, too */
void berth__blocks_encode(berth_type type, const float *src, uint64_t count, void *dst);

/* The grid points of iq2_xxs, 256 with eight coordinates each: digit j of a point, two bits from bit 2 j on, is 0, 1 or
 * 2, and stands for 8, 25 or 43. */
extern const uint16_t berth__block_grid[256];
/* The points of its relatives, with a byte for each of eight coordinates, or of four; the first one lowest. */
extern const uint64_t berth__block_points_iq2_xs[512], berth__block_points_iq2_s[1024];
extern const uint32_t berth__block_points_iq3_xxs[256], berth__block_points_iq3_s[512];
/* The sixteen values of iq4_nl and iq4_xs; those of mxfp4, times two. */
extern const int8_t berth__block_curve[16], berth__block_floats[16];

/* An f32 among the bytes of a block, little endian. */
static inline void berth__block_store_f32(uint8_t *at, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(bits >> 8 * i);
}

static inline int berth__block_coordinate(uint32_t digit) { return (int)(8 + 17 * digit + digit / 2); }
/* Seven signs determine the eighth: the number of minuses is even. */
static inline uint32_t berth__block_signs(uint32_t seven) {
  uint32_t odd = seven ^ seven >> 4;
  odd = odd ^ odd >> 2;
  return seven | ((odd ^ odd >> 1) & 1) << 7;
}

#endif
