/* The smallest dimensions that a model accepts. */
#ifndef BERTH_TOOLS_LEAST_H
#define BERTH_TOOLS_LEAST_H

#include <stdbool.h>

#include "berth/berth.h"

/* dims: all named dimensions of the graph. If it cannot be bound with the given extents, the free ones become as small
 * as possible; 1 if nothing helps. true: it can be bound with them. If shapes depend on the elements of an input,
 * nothing is tried, and the result is false. */
bool least_dims(const berth_graph *graph, berth_dim *dims, size_t n, const bool *is_free);

#endif
