/* The prelude: steps that run once, when the weights are loaded, and not in every run. */
#ifndef BERTH_PASS_PRELUDE_H
#define BERTH_PASS_PRELUDE_H

#include "graph/graph.h"

/* Sets in_prelude[node] for every node that depends only on params and constants and is worth its bytes. */
void berth__prelude_mark(const berth_graph *graph, bool *in_prelude);
/* Values that are the same in every run: params, constants, and results of the prelude. One entry per value; the caller
 * frees them. */
berth_status berth__prelude_values(const berth_graph *graph, bool **out, berth_error *err);
/* Moves the marked nodes to the front of the graph, also out of loops; marks move with them. */
berth_status berth__prelude_hoist(berth_graph *graph, bool *in_prelude, berth_error *err);
/* Moves the marked nodes to the front of an order; the others keep theirs. The nodes that a result depends on come
 * right before it, and results with the largest temporaries come first: the slots of later results are still free then.
 * Graphs with loops keep the order of these nodes, too. *n: their number. */
berth_status berth__prelude_first(const berth_graph *graph, const bool *in_prelude, uint32_t *order, uint32_t *n,
                                  berth_error *err);

#endif
