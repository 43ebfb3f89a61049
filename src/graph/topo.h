/* A stable topological order: the one in which every item is as early as its number allows. */
#ifndef BERTH_GRAPH_TOPO_H
#define BERTH_GRAPH_TOPO_H

#include "base/context.h"

/* An edge: `from` must come before `to`. */
typedef struct berth__edge {
  uint32_t from, to;
} berth__edge;

/* Writes n numbers to order. If there is a cycle, returns INVALID, and *on_cycle is an item on it. */
berth_status berth__topo_order(berth_context *ctx, uint32_t n, const berth__edge *edges, size_t n_edges,
                               uint32_t *order, uint32_t *on_cycle, berth_error *err);

#endif
