/* Splitting a problem into parts that can be packed on their own. */
#ifndef BERTH_PLAN_PACK_PARTS_H
#define BERTH_PLAN_PACK_PARTS_H

#include "plan/pack/problem.h"

/* Sorts the items by birth, settles those that need no search, and fills parts, settled and lower_bound. */
berth_status berth__pack_split(berth__pack_problem *p, berth_error *err);

#endif
