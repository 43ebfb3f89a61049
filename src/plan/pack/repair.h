/* Improves the placement of a part by removing some items and searching for better positions. */
#ifndef BERTH_PLAN_PACK_REPAIR_H
#define BERTH_PLAN_PACK_REPAIR_H

#include "plan/pack/problem.h"

/* Lowers part->height towards `goal`, for at most `ticks`. */
berth_status berth__pack_repair(berth_context *ctx, berth__pack_part *part, int64_t goal, uint64_t seed, uint64_t ticks,
                                berth__pack_budget *budget, berth_error *err);

#endif
