/* From aliases to buffers and slots. */
#ifndef BERTH_PLAN_BUFFERS_H
#define BERTH_PLAN_BUFFERS_H

#include "plan/alias.h"

/* Fills plan->places, plan->buffers (without offsets) and plan->scratch from the aliases; its scratch is known. */
berth_status berth__buffers_create(berth_plan *plan, const berth__alias *alias, uint64_t guard, berth_error *err);
/* Whether it is packed with others by lifetime: neither a weight nor a state. */
bool berth__buffer_is_packed(const berth__buffer *buffer);
/* The bytes that packing gives a buffer, including guard bytes. Rounded up to the alignment, unless the plan is
 * tight. */
uint64_t berth__buffer_room(const berth_plan *plan, const berth__buffer *buffer);
/* The alignment of its offset: the plan's; in a tight plan, for smaller buffers, their own size rounded up to a power
 * of two, so that they do not cross cache lines. A weight may have the alignment of its file (file_runs.h). */
uint64_t berth__buffer_align(const berth_plan *plan, const berth__buffer *buffer);
/* Whether only the prelude needs it: a temporary of its steps, or their scratch. */
bool berth__buffer_is_preparation(const berth_plan *plan, const berth__buffer *buffer);

#endif
