/* The execution order of nodes. */
#ifndef BERTH_PLAN_SCHEDULE_H
#define BERTH_PLAN_SCHEDULE_H

#include "graph/graph.h"

typedef enum berth__schedule_rule {
  BERTH__SCHEDULE_SOURCE, /* the graph's own */
  BERTH__SCHEDULE_GREEDY, /* the ready node that leaves the fewest bytes alive */
  BERTH__SCHEDULE_DEPTH,  /* finish one branch before the next, the one with the larger need first */
  BERTH__SCHEDULE_RULES
} berth__schedule_rule;

/* Writes graph->n_nodes numbers: an order in which every node comes after what it reads. The graph is bound. */
berth_status berth__schedule(const berth_graph *graph, berth__schedule_rule rule, uint32_t *order, berth_error *err);

#endif
