/* What was done to meet a plan's budget, in words and as JSON. */
#ifndef BERTH_TOOLS_BUDGET_H
#define BERTH_TOOLS_BUDGET_H

#include "berth/berth.h"
#include "json.h"

/* The operations of all nodes relative to another plan of the same model, minus 1. */
double budget_extra_flops(const berth_plan *plan, const berth_plan *without);
/* "budget: met by running 3 nodes again and 2 groups of nodes in 8 slices (+1.2 % flops)" */
void budget_print(const berth_plan *plan, double extra_flops);
void budget_write_json(const berth_plan *plan, uint64_t budget, double extra_flops, json *out);

#endif
