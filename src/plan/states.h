/* States: which node makes the next value of each, where, and after which readers. */
#ifndef BERTH_PLAN_STATES_H
#define BERTH_PLAN_STATES_H

#include "graph/graph.h"
#include "graph/topo.h"

/* Changes a bound graph so that the next value of every state is made by a node that can write it directly to the
 * state's bytes: the node comes after every reader of the state, or is the last reader and may overwrite it. Nodes are
 * reordered if that helps; otherwise a copy is added at the end. flags: of the plan. */
berth_status berth__states_settle(berth_graph *graph, uint32_t flags, berth_error *err);

/* For such a graph: readers of states, and of their possible views, that come before the node that writes the state and
 * must stay there. To be freed by the caller. */
berth_status berth__states_edges(const berth_graph *graph, berth__edge **edges, size_t *n_edges, berth_error *err);

#endif
