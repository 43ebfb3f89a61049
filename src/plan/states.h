/* States: who makes the next value of each, where, and after whom. */
#ifndef BERTH_PLAN_STATES_H
#define BERTH_PLAN_STATES_H

#include "graph/graph.h"
#include "graph/topo.h"

/* Settles a bound graph so that the next value of every state is made by a node that can write it straight into the
 * state's bytes: the node stands after every reader of the state, or is the last reader and may write over it. Nodes
 * are reordered for that where it helps; where it cannot be, a copy at the end does it. flags: of the plan. */
berth_status berth__states_settle(berth_graph *graph, uint32_t flags, berth_error *err);

/* Of a graph that is settled: readers of states, and of what may show them, that stand before the node that writes the
 * state and must stay there. To be freed by the caller. */
berth_status berth__states_edges(const berth_graph *graph, berth__edge **edges, size_t *n_edges, berth_error *err);

#endif
