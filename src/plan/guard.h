/* When a step is needed at all: guards, derived from the graph's choices. */
#ifndef BERTH_PLAN_GUARD_H
#define BERTH_PLAN_GUARD_H

#include "graph/graph.h"

#define BERTH__NO_GUARD 0u

/* A step with this guard runs when the condition has this truth and the parent holds too. Entry 0 always holds. */
typedef struct berth__guard {
  berth_value condition;
  bool sense;
  uint32_t parent; /* a smaller number */
  uint32_t depth;  /* of the chain; 0 for entry 0 */
} berth__guard;

typedef struct berth__guards {
  berth__guard *items;
  uint32_t count;
  uint32_t *of_step; /* one a step: its guard */
} berth__guards;

/* order: a valid order of the graph's nodes. On failure there is nothing to free. */
berth_status berth__guards_create(const berth_graph *graph, const uint32_t *order, berth__guards *out,
                                  berth_error *err);
void berth__guards_free(berth_context *ctx, berth__guards *guards);
/* Whether a step with this guard runs only when the condition has this truth. */
bool berth__guard_implies(const berth__guards *guards, uint32_t guard, berth_value condition, bool sense);

#endif
