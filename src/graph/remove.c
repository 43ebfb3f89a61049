/* Taking nodes out of a graph. */
#include "graph/graph.h"

static void drop_results(berth_graph *graph, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    berth__value *value = &graph->values[node->out[i]];
    value->kind = value->blob != NULL ? BERTH_VALUE_CONSTANT : BERTH_VALUE_DROPPED;
    value->node = UINT32_MAX;
  }
}

void berth__graph_remove_nodes(berth_graph *graph, const bool *remove) {
  size_t kept = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    berth__node *node = &graph->nodes[n];
    if (remove[n]) {
      drop_results(graph, node);
      berth__free(graph->ctx, node->in);
      berth__free(graph->ctx, node->out);
      berth__attrs_free(graph->ctx, node->op, node->attrs);
      continue;
    }
    for (uint32_t i = 0; i < node->n_out; i++) graph->values[node->out[i]].node = (uint32_t)kept;
    graph->nodes[kept++] = *node;
  }
  graph->n_nodes = kept;
}
