/* Offsets for the buffers that share bytes over time. */
#ifndef BERTH_PLAN_PLACEMENT_H
#define BERTH_PLAN_PLACEMENT_H

#include "plan/plan.h"

/* Packs all buffers except weights and those that only the prelude needs (preparation.h) from `base` on, and fills
 * activations_size, activations_lower_bound, scratch_size, optimal and pack_nodes of plan->info. */
berth_status berth__placement(berth_plan *plan, uint64_t base, uint64_t effort, berth_error *err);

#endif
