/* The prelude: steps that run once, when the weights are in place, and not at every run. */
#ifndef BERTH_PASS_PRELUDE_H
#define BERTH_PASS_PRELUDE_H

#include "graph/graph.h"

/* Sets once[node] for every node that depends on params and constants alone and is worth its bytes. */
void berth__prelude_mark(const berth_graph *graph, bool *in_prelude);
/* Values that are the same at every run: params, constants, and what the prelude makes. One entry per value; the caller
 * frees them. */
berth_status berth__prelude_values(const berth_graph *graph, bool **out, berth_error *err);
/* Moves the nodes that are marked to the front of the graph, out of loops as well; marks move with them. */
berth_status berth__prelude_hoist(berth_graph *graph, bool *in_prelude, berth_error *err);
/* Moves the nodes that are marked to the front of an order; the others keep theirs. What a result is made of comes
 * right before it, and results with the largest temporaries come first: the places of those after them are still free.
 * Graphs with loops keep the order of these nodes as well. *n: how many there are. */
berth_status berth__prelude_first(const berth_graph *graph, const bool *in_prelude, uint32_t *order, uint32_t *n,
                                  berth_error *err);

#endif
