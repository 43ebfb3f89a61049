/* Constructs a packing: tries several orders, and improves each by what it placed badly. */
#ifndef BERTH_PLAN_PACK_PORTFOLIO_H
#define BERTH_PLAN_PACK_PORTFOLIO_H

#include "plan/pack/problem.h"

/* Places the whole part; part->height and part->offsets hold the best result. Stops when the height is at most
 * `enough`, when `ticks` are spent (but never before the first placement), or when the budget is exhausted. */
berth_status berth__pack_construct(berth_context *ctx, berth__pack_part *part, int64_t enough, uint64_t ticks,
                                   berth__pack_budget *budget, berth_error *err);

#endif
