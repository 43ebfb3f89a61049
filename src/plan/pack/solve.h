/* The solver as a separate layer: from a prepared problem to the best placement that the effort allows. */
#ifndef BERTH_PLAN_PACK_SOLVE_H
#define BERTH_PLAN_PACK_SOLVE_H

#include "plan/pack/problem.h"

typedef struct berth__pack_goal {
  int64_t capacity; /* units; stop at the first placement no higher than this. INT64_MAX: as low as possible */
  uint64_t seed;
  int construct_only;
  int boxed; /* the buffers are boxes, and their sizes are not the caller's */
} berth__pack_goal;

/* Fills the offsets of every part and raises problem->lower_bound as far as it has been proven. */
berth_status berth__pack_solve(berth__pack_problem *problem, const berth__pack_goal *goal, berth__pack_budget *budget,
                               berth_error *err);

/* The height of the best known placement, in units; INT64_MAX as long as a part has none. */
int64_t berth__pack_height(const berth__pack_problem *problem);

/* The offsets of all items in bytes, indexed by id. */
void berth__pack_offsets(const berth__pack_problem *problem, uint64_t *offsets);

#endif
