/* Random graphs for property tests, with every op that the planner treats specially. */
#ifndef BERTH_TESTS_RANDOM_GRAPH_H
#define BERTH_TESTS_RANDOM_GRAPH_H

#include "berth/berth.h"

/* The same graph for the same seed; about n_nodes nodes. The caller frees it. */
berth_graph *random_graph(berth_context *ctx, uint64_t seed, uint32_t n_nodes);
/* Random options, without dims, device, budget and layout. */
berth_plan_desc random_options(uint64_t seed);

#endif
