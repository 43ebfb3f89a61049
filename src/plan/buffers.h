/* From aliases to buffers and places. */
#ifndef BERTH_PLAN_BUFFERS_H
#define BERTH_PLAN_BUFFERS_H

#include "plan/alias.h"

/* Fills plan->places, plan->buffers (no offsets yet) and plan->scratch from what alias decided; its scratch is
 * known. */
berth_status berth__buffers_create(berth_plan *plan, const berth__alias *alias, uint64_t guard, berth_error *err);
/* A buffer's size with its guard, rounded up: what packing gives it. */
uint64_t berth__buffer_room(const berth_plan *plan, const berth__buffer *buffer);
/* Whether the prelude alone needs it: a temporary of its steps, or their scratch. */
bool berth__buffer_is_preparation(const berth_plan *plan, const berth__buffer *buffer);

#endif
