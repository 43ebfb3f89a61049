/* Small random graphs of f32 rows, for tests that try everything on them. */
#ifndef BERTH_TESTS_SMALL_GRAPH_H
#define BERTH_TESTS_SMALL_GRAPH_H

#include <stdbool.h>

#include "berth/berth.h"

#define SMALL_GRAPH_NODES 64u /* at most */

/* Views, results in place, reductions, tiles; the same graph for the same seed. The caller frees it. */
berth_graph *small_graph_with(berth_context *ctx, uint64_t seed, uint32_t n_nodes, bool with_concats);

#endif
