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
    if (node->op->code == BERTH__OP_write_rows && node->attrs[BERTH__WRITE_ROWS_RING].i > most)
      most = node->attrs[BERTH__WRITE_ROWS_RING].i;
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

/* ---- Runs of few rows ---- */

#define WORTH_BYTES (2u << 20) /* fewer bytes of weights stay in a processor's caches from token to token */

/* A token alone reads the weights; a run of few rows also unpacks them, whatever their type. So it costs the more
 * tokens the fewer bits a weight has: measured 1.2 with f32, 2.5 with q8_0 and 7.4 with iq2_xxs. With experts there is
 * nothing to share, since tokens choose different ones. */
uint32_t berth__generator_few_from(const berth_graph *graph) {
  uint64_t bytes = 0, elements = 0;
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->code == BERTH__OP_expert_matmul) return 0;
  for (size_t i = 0; i < graph->n_params; i++) {
    const berth__value *param = &graph->values[graph->params[i]];
    uint64_t size;
    int64_t count;
    if (!berth__value_size(param, &size) || !berth__shape_count(&param->shape, &count)) return 0;
    bytes += size;
    elements += (uint64_t)count;
  }
  return bytes >= WORTH_BYTES ? 2 + (uint32_t)(14 * elements / (8 * bytes)) : 0;
}
