#include "base/blocks.h"

#include "base/blocks_split.h"
#include "base/storage.h"

uint32_t berth__block_group(berth_type type) {
  const blocks_row *row = blocks_find(type);
  return row != NULL ? row->group : 0;
}

bool berth__block_has_offset(berth_type type) {
  const blocks_row *row = blocks_find(type);
  return row != NULL && row->has_offset;
}

void berth__block_split(berth_type type, const void *block, berth__block_parts *parts) {
  const blocks_row *row = blocks_find(type);
  for (int g = 0; g < BERTH__BLOCK_GROUPS_MAX; g++) parts->offset[g] = -0.0f;
  if (row != NULL) row->split(block, parts);
}

void berth__blocks_decode(berth_type type, const void *src, uint64_t count, float *dst) {
  const berth_storage storage = berth_type_storage(type);
  const blocks_row *row = blocks_find(type);
  const uint8_t *block = src;
  berth__block_parts p;
  if (row == NULL) return;
  for (int g = 0; g < BERTH__BLOCK_GROUPS_MAX; g++) p.offset[g] = -0.0f;
  for (uint64_t at = 0; at < count; at += storage.elements, block += storage.bytes) {
    row->split(block, &p);
    for (uint32_t i = 0; i < storage.elements; i++)
      dst[at + i] = p.factor[i / row->group] * (float)p.q[i] + p.offset[i / row->group];
  }
}
