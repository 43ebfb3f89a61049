/* Block types: elements that lie in blocks, with scales of their own. A block type is a row of BERTH_BLOCK_TYPE_MAP and
 * a row of the table in blocks.c.
 *
 * Every format is the same thing underneath, and that is how it is decoded here: small signed integers, of which groups
 * share a factor and an offset, x = factor * q + offset. Kernels that compute with the integers ask for these parts,
 * too. */
#ifndef BERTH_BASE_BLOCKS_H
#define BERTH_BASE_BLOCKS_H

#include <stdbool.h>

#include "berth/berth.h"

#define BERTH__BLOCK_MAX 256       /* elements of the largest block */
#define BERTH__BLOCK_GROUPS_MAX 16 /* and its groups */

/* One block. The product factor * q and its sum with the offset are rounded once each; where a format has no offset it
 * is -0, which changes nothing. */
typedef struct berth__block_parts {
  int8_t q[BERTH__BLOCK_MAX];
  float factor[BERTH__BLOCK_GROUPS_MAX], offset[BERTH__BLOCK_GROUPS_MAX];
} berth__block_parts;

static inline bool berth__type_is_block(berth_type type) { return berth_type_storage(type).elements > 1; }

/* Elements of a group; 0 for a type that has no blocks. */
uint32_t berth__block_group(berth_type type);
/* Whether the format has offsets. */
bool berth__block_has_offset(berth_type type);
/* The parts of one block, which may lie at any address. */
void berth__block_split(berth_type type, const void *block, berth__block_parts *parts);

/* Whole blocks to and from f32; a type that is none, or that cannot be encoded, does nothing. Blocks may lie at any
 * address. */
void berth__blocks_decode(berth_type type, const void *src, uint64_t count, float *dst);
bool berth__type_encodes(berth_type type); /* plain types do, too */
void berth__blocks_encode(berth_type type, const float *src, uint64_t count, void *dst);

/* The points of iq2_xxs, 256 of eight coordinates: digit j of a point, two bits from bit 2 j on, is 0, 1 or 2, and
 * stands for 8, 25 or 43. */
extern const uint16_t berth__block_grid[256];
/* The sixteen values of iq4_nl and iq4_xs; those of mxfp4, times two. */
extern const int8_t berth__block_curve[16], berth__block_floats[16];

static inline int berth__block_coordinate(uint32_t digit) { return (int)(8 + 17 * digit + digit / 2); }
/* Seven signs stand for eight: there is an even number of minuses. */
static inline uint32_t berth__block_signs(uint32_t seven) {
  uint32_t odd = seven ^ seven >> 4;
  odd = odd ^ odd >> 2;
  return seven | ((odd ^ odd >> 1) & 1) << 7;
}

#endif
