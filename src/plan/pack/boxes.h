/* Boxes: items that fit together are packed as one. */
#ifndef BERTH_PLAN_PACK_BOXES_H
#define BERTH_PLAN_PACK_BOXES_H

#include "plan/pack/problem.h"

typedef struct berth__pack_boxes {
  berth_context *ctx;
  berth_pack_buffer *buffers; /* the boxes: lifetimes in sections of the part, sizes and alignments in its units */
  uint32_t n;
  uint32_t *box_of; /* by item: its box */
  int64_t *within;  /* by item: its height above the bottom of its box */
} berth__pack_boxes;

/* Puts the items of a part into boxes, as long as these cover at most `percent` more area than the items do and no load
 * rises above the lower bound of the part. `shuffle` chooses between boxes of equal cost: the first one for 0, others
 * for other numbers. A part with a fixed offset gets one box per item. Costs *ticks. Release with
 * berth__pack_boxes_release. */
berth_status berth__pack_boxes_make(berth_context *ctx, const berth__pack_part *part, uint32_t percent,
                                    uint64_t shuffle, berth__pack_boxes *out, uint64_t *ticks, berth_error *err);
void berth__pack_boxes_release(berth__pack_boxes *boxes);

/* The offsets of the items from those of the boxes; each item is then lowered as far as possible. */
berth_status berth__pack_boxes_open(const berth__pack_boxes *boxes, const berth__pack_part *part,
                                    const uint64_t *box_offsets, int64_t *offsets, uint64_t *ticks, berth_error *err);

#endif
