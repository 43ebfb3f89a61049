/* Passes: each improves a bound graph in place. Values keep their numbers. */
#ifndef BERTH_PASS_PASS_H
#define BERTH_PASS_PASS_H

#include "graph/graph.h"

/* All passes, in the order that pipeline.c defines and explains. */
berth_status berth__pass_all(berth_graph *graph, berth_error *err);

/* fold.c: nodes whose results binding could compute become constants. */
berth_status berth__pass_fold(berth_graph *graph, berth_error *err);
/* static_operands.c: constant operands become the attributes that can replace them. */
berth_status berth__pass_static_operands(berth_graph *graph, berth_error *err);
/* same.c: merges equal nodes into the first. */
berth_status berth__pass_same(berth_graph *graph, berth_error *err);
/* dead.c: removes nodes and constants that no output needs. */
berth_status berth__pass_dead(berth_graph *graph, berth_error *err);

#endif
