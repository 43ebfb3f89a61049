/* Which values and nodes the outputs of a graph and the updates of its states need. */
#ifndef BERTH_GRAPH_NEEDED_H
#define BERTH_GRAPH_NEEDED_H

#include "graph/graph.h"

/* Sets needed[value] for every value that an output, or the next value of a state, depends on. */
void berth__mark_needed(const berth_graph *graph, bool *needed);
/* Sets remove[node] for every node whose results are not needed. */
void berth__mark_removable(const berth_graph *graph, const bool *needed, bool *remove);

#endif
