/* The least dimensions that a model takes. */
#ifndef BERTH_TOOLS_LEAST_H
#define BERTH_TOOLS_LEAST_H

#include <stdbool.h>

#include "berth/berth.h"

/* dims: all named dimensions of the graph. Where it cannot be bound with the extents that are there, those that are
 * free become as small as possible; 1 where nothing that is tried helps. true: it can be bound so. Where shapes depend
 * on the elements of an input, nothing is tried, and the answer is false. */
bool least_dims(const berth_graph *graph, berth_dim *dims, size_t n, const bool *is_free);

#endif
