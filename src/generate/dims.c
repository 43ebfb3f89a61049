/* The named dimensions of models that generate. */
#include "generate/generator.h"

static bool dims_has(const berth_graph *graph, const char *name) {
  for (uint32_t i = 0; i < berth_graph_n_dims(graph); i++)
    if (strcmp(berth_graph_dim_name(graph, i), name) == 0) return true;
  return false;
}

/* Most layers of a model have the same window; the largest needs the most rows. */
uint32_t berth__generator_window(const berth_graph *graph) {
  int64_t most = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    if (node->op->code != BERTH__OP_attention || node->attrs[BERTH__ATTENTION_RING].i == 0) continue;
    if (node->attrs[BERTH__ATTENTION_WINDOW].i > most) most = node->attrs[BERTH__ATTENTION_WINDOW].i;
  }
  return most < INT32_MAX ? (uint32_t)most : INT32_MAX;
}

size_t berth_generator_dims(const berth_graph *graph, uint32_t ctx, uint32_t chunk, uint32_t rows,
                            berth_dim dims[BERTH_GENERATOR_DIMS]) {
  size_t n = 0;
  if (graph == NULL || dims == NULL) return 0;
  const uint64_t needed = (uint64_t)berth__generator_window(graph) + (chunk > 0 ? chunk - 1 : 0);
  const berth_dim all[] = {{"rows", rows}, {"ctx", ctx}, {"near", needed < ctx ? (int64_t)needed : (int64_t)ctx}};
  for (size_t i = 0; i < BERTH_GENERATOR_DIMS; i++)
    if (dims_has(graph, all[i].name)) dims[n++] = all[i];
  return n;
}
