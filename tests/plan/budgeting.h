/* Used by the tests of budgets: plans with a fraction of the bytes, and runs that are compared with one without. */
#ifndef BERTH_TESTS_BUDGETING_H
#define BERTH_TESTS_BUDGETING_H

#include "plan/planning.h"

berth_plan_desc one_thread(uint32_t flags);

/* Without a budget; then with one of this share of what it needs beside the weights, which becomes f->plan. */
berth_status plan_with_share(fixture *f, berth_plan_desc *desc, double share, berth_error *err);

/* Runs the graph with desc's budget, checked and not, and without one, on the same numbers: bit for bit the same.
 * `flags` are those of the session. */
void assert_same_results(const berth_graph *graph, const berth_plan_desc *desc, uint32_t flags);

#endif
