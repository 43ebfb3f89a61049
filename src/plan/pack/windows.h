/* Improves a placement of a large part, one window in time after the other. */
#ifndef BERTH_PLAN_PACK_WINDOWS_H
#define BERTH_PLAN_PACK_WINDOWS_H

#include "plan/pack/problem.h"

/* Lowers items above `goal`, for at most `ticks`. part->height falls or stays the same. */
berth_status berth__pack_improve(berth_context *ctx, berth__pack_part *part, int64_t goal, uint64_t seed,
                                 uint64_t ticks, berth__pack_budget *budget, berth_error *err);

#endif
