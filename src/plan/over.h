/* Results that overwrite an operand at a price (over.c). */
#ifndef BERTH_PLAN_OVER_H
#define BERTH_PLAN_OVER_H

#include "plan/plan.h"

/* Sets the attribute `over_attr` of the nodes at the fullest steps of a finished plan, if their result could overwrite
 * an operand: planned again, the graph may need less. *count is the number of nodes. */
berth_status berth__over_mark(berth_plan *plan, uint32_t *count, berth_error *err);
/* Resets all of them. */
void berth__over_unmark(berth_plan *plan);

#endif
