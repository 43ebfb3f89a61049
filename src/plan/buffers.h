/* From aliases to buffers and places. */
#ifndef BERTH_PLAN_BUFFERS_H
#define BERTH_PLAN_BUFFERS_H

#include "plan/alias.h"

/* Fills plan->places, plan->buffers (no offsets yet) and plan->scratch from what alias decided; its scratch is
 * known. */
berth_status berth__buffers_create(berth_plan *plan, const berth__alias *alias, uint64_t guard, berth_error *err);
/* Whether it is packed with others by lifetime: it is no weight and no state. */
bool berth__buffer_is_packed(const berth__buffer *buffer);
/* A buffer's size with its guard: what packing gives it. Rounded up to the alignment, unless the plan is tight. */
uint64_t berth__buffer_room(const berth_plan *plan, const berth__buffer *buffer);
/* What its offset is a multiple of: the plan's alignment; where the plan is tight and the buffer is smaller than that,
 * its own size, rounded up to a power of two, so that it lies in one line of the cache. A weight may lie as in its file
 * there (file_runs.h). */
uint64_t berth__buffer_align(const berth_plan *plan, const berth__buffer *buffer);
/* Whether the prelude alone needs it: a temporary of its steps, or their scratch. */
bool berth__buffer_is_preparation(const berth_plan *plan, const berth__buffer *buffer);

#endif
