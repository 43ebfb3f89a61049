/* Removing nodes from a graph. */
#include "graph/graph.h"

static void drop_results(berth_graph *graph, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    berth__value *value = &graph->values[node->out[i]];
    value->kind = value->blob != NULL ? BERTH_VALUE_CONSTANT : BERTH_VALUE_DROPPED;
    value->node = UINT32_MAX;
  }
}

static void graph_remove_free_node(berth_graph *graph, berth__node *node) {
  berth__free(graph->ctx, node->in);
  berth__free(graph->ctx, node->out);
  berth__attrs_free(graph->ctx, node->op, node->attrs);
}

void berth__graph_remove_nodes(berth_graph *graph, const bool *remove) {
  size_t kept = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    berth__node *node = &graph->nodes[n];
    if (remove[n]) {
      drop_results(graph, node);
      graph_remove_free_node(graph, node);
      continue;
    }
    for (uint32_t i = 0; i < node->n_out; i++) graph->values[node->out[i]].node = (uint32_t)kept;
    graph->nodes[kept++] = *node;
  }
  graph->n_nodes = kept;
}

berth__graph_mark berth__graph_mark_now(const berth_graph *graph) {
  return (berth__graph_mark){.n_values = graph->n_values,
                             .n_nodes = graph->n_nodes,
                             .n_inputs = graph->n_inputs,
                             .n_params = graph->n_params,
                             .n_states = graph->n_states,
                             .n_updates = graph->n_updates,
                             .n_dims = graph->n_dims};
}

void berth__graph_roll_back(berth_graph *graph, const berth__graph_mark *mark) {
  while (graph->n_nodes > mark->n_nodes) graph_remove_free_node(graph, &graph->nodes[--graph->n_nodes]);
  while (graph->n_values > mark->n_values) {
    berth__blob_release(graph->values[graph->n_values - 1].blob);
    berth__blob_release(graph->values[graph->n_values - 1].initial);
    berth__graph_drop_last_value(graph);
  }
  graph->n_inputs = mark->n_inputs;
  graph->n_params = mark->n_params;
  graph->n_states = mark->n_states;
  graph->n_updates = mark->n_updates;
  berth__graph_drop_dims(graph, mark->n_dims);
}
