/* Dead code elimination: removes nodes and constants that no output and no update of a state needs. Inputs, params and
 * states stay, because the caller knows them. */
#include "graph/needed.h"
#include "pass/pass.h"

static void drop_constants(berth_graph *graph, const bool *needed) {
  for (size_t v = 0; v < graph->n_values; v++) {
    berth__value *value = &graph->values[v];
    if (needed[v] || value->kind != BERTH_VALUE_CONSTANT) continue;
    berth__blob_release(value->blob);
    value->blob = NULL;
    value->data = NULL;
    value->kind = BERTH_VALUE_DROPPED;
  }
}

berth_status berth__pass_dead(berth_graph *graph, berth_error *err) {
  bool *needed = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *needed);
  bool *remove = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *remove);
  berth_status status = BERTH_OK;
  if (needed == NULL || remove == NULL) {
    status = berth__fail_nomem(err, "removing dead nodes");
  } else {
    berth__mark_needed(graph, needed);
    berth__mark_removable(graph, needed, remove);
    berth__graph_remove_nodes(graph, remove);
    drop_constants(graph, needed);
  }
  berth__free(graph->ctx, needed);
  berth__free(graph->ctx, remove);
  return status;
}
