#include "graph/needed.h"

void berth__mark_needed(const berth_graph *graph, bool *needed) {
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) needed[berth__graph_kept(graph, i)] = true;
  for (size_t n = graph->n_nodes; n-- > 0;) {
    const berth__node *node = &graph->nodes[n];
    bool is_needed = false;
    for (uint32_t i = 0; i < node->n_out; i++) is_needed = is_needed || needed[node->out[i]];
    for (uint32_t i = 0; is_needed && i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE) needed[node->in[i]] = true;
  }
}

void berth__mark_removable(const berth_graph *graph, const bool *needed, bool *remove) {
  for (size_t n = 0; n < graph->n_nodes; n++) {
    remove[n] = true;
    for (uint32_t i = 0; i < graph->nodes[n].n_out; i++) remove[n] = remove[n] && !needed[graph->nodes[n].out[i]];
  }
}
