/* Drafts: candidate orders of a graph, measured before one of them becomes a plan. */
#ifndef BERTH_PLAN_DRAFT_H
#define BERTH_PLAN_DRAFT_H

#include "plan/alias.h"
#include "plan/schedule.h"

typedef struct berth__draft {
  uint32_t *order;
  uint32_t n_prelude;
  berth__alias alias;
  uint64_t load;        /* of the activations */
  uint64_t needs;       /* including scratch */
  uint64_t order_bound; /* a lower bound for all orders; 0: unknown */
} berth__draft;

void berth__draft_free(berth_context *ctx, berth__draft *draft);
/* A draft for one rule. limits NULL: scratch is not counted. */
berth_status berth__draft_create(const berth_plan *plan, berth__schedule_rule rule, uint32_t extra_flags,
                                 uint64_t guard, const berth__limits *limits, berth__draft *out, berth_error *err);
/* The best draft found. */
berth_status berth__draft_best(const berth_plan *plan, berth_order order, uint64_t guard, const berth__limits *limits,
                               berth__draft *out, berth_error *err);

#endif
