/* Slots for the temporaries and the scratch of the prelude. */
#ifndef BERTH_PLAN_PREPARATION_H
#define BERTH_PLAN_PREPARATION_H

#include "plan/plan.h"

/* Gives every buffer that only the prelude needs an offset; all others have theirs, and the weights end at `base`.
 * Fills preparation_size and preparation_peak of plan->info. */
berth_status berth__preparation_place(berth_plan *plan, uint64_t base, uint64_t effort, berth_error *err);

#endif
