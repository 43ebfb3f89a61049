/* Block types: elements that lie in blocks, with scales of their own. A block type is a row of BERTH_BLOCK_TYPE_MAP and
 * a row of the table in blocks.c: how one block is decoded and encoded. */
#ifndef BERTH_BASE_BLOCKS_H
#define BERTH_BASE_BLOCKS_H

#include <stdbool.h>

#include "berth/berth.h"

static inline bool berth__type_is_block(berth_type type) { return berth_type_storage(type).elements > 1; }

/* Whole blocks to and from f32; a type that is none does nothing. Blocks may lie at any address. */
void berth__blocks_decode(berth_type type, const void *src, uint64_t count, float *dst);
void berth__blocks_encode(berth_type type, const float *src, uint64_t count, void *dst);

#endif
