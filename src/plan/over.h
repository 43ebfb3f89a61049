/* Results that overwrite an operand at a price (over.c). */
#ifndef BERTH_PLAN_OVER_H
#define BERTH_PLAN_OVER_H

#include "plan/plan.h"

/* Looks at a finished plan and sets the attribute `over_attr` of the nodes whose steps hold the most bytes, where their
 * result could lie over an operand: planned again, the graph may need less. *count is how many were set. */
berth_status berth__over_mark(berth_plan *plan, uint32_t *count, berth_error *err);
/* Sets all of them back. */
void berth__over_unmark(berth_plan *plan);

#endif
