/* Which nodes are in which loop. Loops are flat: the nodes between a loop_begin and its loop_end are the body. */
#ifndef BERTH_GRAPH_REGION_H
#define BERTH_GRAPH_REGION_H

#include "graph/graph.h"

#define BERTH__MAX_LOOP_DEPTH 8 /* the plan checker simulates every loop twice, and each nested one again */

/* Region 0 is the graph outside all loops. */
typedef struct berth__region {
  uint32_t begin, end; /* nodes */
  uint32_t parent;
  uint32_t depth;
} berth__region;

typedef struct berth__regions {
  berth__region *items;
  uint32_t count;    /* 1: there are no loops, and of_node is NULL */
  uint32_t *of_node; /* the region in which a node runs: a loop_begin outside its loop, a loop_end inside */
} berth__regions;

/* Fails if loops are not properly nested, if their ends do not match, or if a value from inside is used outside. A
 * loop_begin without an end opens nothing. On failure there is nothing to free. */
berth_status berth__regions_create(const berth_graph *graph, berth__regions *out, berth_error *err);
void berth__regions_free(berth_context *ctx, berth__regions *regions);

static inline uint32_t berth__region_of(const berth__regions *regions, uint32_t node) {
  return regions->of_node != NULL ? regions->of_node[node] : 0;
}
/* The region in which a value can be read: results of a loop_begin inside, those of a loop_end outside. */
uint32_t berth__region_of_value(const berth__regions *regions, const berth_graph *graph, berth_value value);
/* Whether a node in `inner` sees the values of `outer`. */
static inline bool berth__region_sees(const berth__regions *regions, uint32_t inner, uint32_t outer) {
  while (inner > outer) inner = regions->items[inner].parent; /* parents have smaller numbers */
  return inner == outer;
}
/* The region that this node ends; UINT32_MAX: none. */
static inline uint32_t berth__region_ended(const berth__regions *regions, uint32_t node) {
  uint32_t region = berth__region_of(regions, node);
  return region != 0 && regions->items[region].end == node ? region : UINT32_MAX;
}

#endif
