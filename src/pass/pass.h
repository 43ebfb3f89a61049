/* Passes: each turns a bound graph into a better one, in place. Values keep their numbers. */
#ifndef BERTH_PASS_PASS_H
#define BERTH_PASS_PASS_H

#include "graph/graph.h"

/* All of them, in the order that pipeline.c gives and explains. */
berth_status berth__pass_all(berth_graph *graph, berth_error *err);

/* fold.c: nodes whose results binding could compute become constants. */
berth_status berth__pass_fold(berth_graph *graph, berth_error *err);
/* static_operands.c: operands that are constants become the attributes that stand for them. */
berth_status berth__pass_static_operands(berth_graph *graph, berth_error *err);
/* same.c: of equal nodes the first serves the readers of all. */
berth_status berth__pass_same(berth_graph *graph, berth_error *err);
/* dead.c: nodes and constants that no output needs go away. */
berth_status berth__pass_dead(berth_graph *graph, berth_error *err);

#endif
