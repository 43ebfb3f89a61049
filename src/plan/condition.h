/* Conditions under which a step is needed at all, derived from the graph's choices. */
#ifndef BERTH_PLAN_CONDITION_H
#define BERTH_PLAN_CONDITION_H

#include "graph/graph.h"

#define BERTH__NO_CONDITION 0u

/* A step with this condition runs if the condition has this value and the parent holds too. Entry 0 always holds. */
typedef struct berth__condition {
  berth_value condition;
  bool sense;
  uint32_t parent; /* has a smaller number */
  uint32_t depth;  /* of the chain; 0 for entry 0 */
} berth__condition;

typedef struct berth__conditions {
  berth__condition *items;
  uint32_t count;
  uint32_t *of_step; /* one per step: its condition */
} berth__conditions;

/* order: a valid order of the graph's nodes. On failure there is nothing to free. */
berth_status berth__conditions_create(const berth_graph *graph, const uint32_t *order, berth__conditions *out,
                                      berth_error *err);
void berth__conditions_free(berth_context *ctx, berth__conditions *conditions);
/* Whether a step with this condition runs only if the condition has this value. */
bool berth__condition_implies(const berth__conditions *conditions, uint32_t under, berth_value condition, bool sense);

#endif
