/* The search for a plan within a budget: what its ways share (budget.h has the list of files). */
#ifndef BERTH_PLAN_BUDGETER_H
#define BERTH_PLAN_BUDGETER_H

#include "plan/plan.h"

#define BERTH__BUDGET_SLICES 64u /* the most, of a group of nodes, a range of steps or a batch */

typedef struct berth__budgeter {
  berth_plan_desc desc; /* in the graph's own order */
  const berth__limits *limits;
  berth_plan *base; /* where the search starts; it stays the caller's */
  berth_plan *plan; /* the best so far; it may be the base */
  uint64_t budget;  /* of the arena: the search ends when a plan meets it */
  uint64_t aim;     /* what the search chooses by, which may be more or less */
  uint64_t target;  /* the aim without weights and states */
  uint64_t *load;   /* one per step of the plan */
  size_t load_capacity;
  uint64_t full; /* its maximum */
  uint32_t step; /* where it occurs */
  bool is_last;  /* no other plan to start from follows */
  bool is_rough; /* the plan is a trial's, packed in haste */
  uint32_t n_trials;
  uint64_t n_planned; /* nodes in all trials, a measure of the time spent */
} berth__budgeter;

/* What reducing what a run needs can change. */
static inline uint64_t berth__budget_size(const berth_plan *plan) {
  return plan->info.arena_size - plan->info.preparation_size;
}

static inline bool berth__budget_is_met(const berth__budgeter *b) { return berth__budget_size(b->plan) <= b->budget; }

/* Keeps the plan (NULL: there is none) if it is better than the one so far, and frees the other. */
static inline void berth__budget_choose(berth__budgeter *b, berth_plan *plan, bool is_better) {
  berth_plan *dropped = is_better ? b->plan : plan;
  if (is_better) b->plan = plan;
  if (dropped != b->base) berth_plan_destroy(dropped);
}

/* What has been done to get there is carried on to a plan that was made from another. */
static inline void berth__budget_inherit(berth_plan *plan, const berth_plan *from) {
  plan->info.n_recomputed = from->info.n_recomputed;
  plan->info.n_split = from->info.n_split;
  plan->info.n_slices = from->info.n_slices;
}

/* Fills in the load of this plan. */
berth_status berth__budget_measure(berth__budgeter *b, const berth_plan *plan, berth_error *err);
/* The plan with all its peaks over the target in slices; *best is NULL if that does not help. */
berth_status berth__budget_layers(berth__budgeter *b, const berth_plan *plan, berth_plan **best, berth_error *err);
/* Runs peaks of the load in slices on their own, as long as that reduces the total. */
berth_status berth__budget_peaks(berth__budgeter *b, berth_error *err);
/* Looks at the fullest step, tries what could help there, and keeps what does, until the budget is met or nothing helps
 * any more. */
berth_status berth__budget_steps(berth__budgeter *b, berth_error *err);

#endif
