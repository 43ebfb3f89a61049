/* Which nodes run once.
 *
 * A node that reads only params, constants and results of such nodes gives the same at every run: packed weights, a
 * normalisation folded into a convolution, a slice of a weight. It runs in the prelude, when the weights are put in
 * place. What a run reads of it stays in the arena beside the weights; params that only the prelude reads need no place
 * there. */
#include "pass/prelude.h"

#include "graph/rewrite.h"

/* A result that is much larger than what it is made from (a constant spread over a shape) is cheaper to make again. */
#define MAX_GROWTH 4

static bool reads_weights_alone(const berth_graph *graph, const berth__node *node, const bool *in_prelude) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    const berth__value *value = &graph->values[node->in[i]];
    const bool is_made_in_prelude = value->kind == BERTH_VALUE_NODE && in_prelude[value->node];
    if (value->kind != BERTH_VALUE_PARAM && value->kind != BERTH_VALUE_CONSTANT && !is_made_in_prelude) return false;
  }
  return node->n_in != 0;
}

static bool is_worth_keeping(const berth_graph *graph, const berth__node *node) {
  uint64_t read = 0, made = 0;
  for (uint32_t i = 0; i < node->n_in; i++) {
    uint64_t size = 0;
    if (node->in[i] != BERTH_VALUE_NONE) berth__value_size(&graph->values[node->in[i]], &size);
    read += size;
  }
  for (uint32_t i = 0; i < node->n_out; i++) {
    uint64_t size = 0;
    berth__value_size(&graph->values[node->out[i]], &size);
    made += size;
  }
  if (node->op->family->view != NULL) return true; /* mostly there is nothing to keep */
  return made / MAX_GROWTH <= read + 1024;
}

void berth__prelude_mark(const berth_graph *graph, bool *in_prelude) {
  /* At first: nodes that make outputs, or next values of states, which every run must make. */
  for (size_t n = 0; n < graph->n_nodes; n++) in_prelude[n] = false;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) {
    const berth__value *kept = &graph->values[berth__graph_kept(graph, i)];
    if (kept->kind == BERTH_VALUE_NODE) in_prelude[kept->node] = true;
  }
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    in_prelude[n] = !in_prelude[n] && node->op->custom == NULL && !node->op->family->is_random &&
                    !node->op->family->is_loop && reads_weights_alone(graph, node, in_prelude) &&
                    is_worth_keeping(graph, node);
  }
}

berth_status berth__prelude_values(const berth_graph *graph, bool **out, berth_error *err) {
  bool *in_prelude = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *in_prelude);
  bool *is_static = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *is_static);
  *out = NULL;
  if (in_prelude == NULL || is_static == NULL) {
    berth__free(graph->ctx, in_prelude);
    berth__free(graph->ctx, is_static);
    return berth__fail_nomem(err, "rewriting a graph");
  }
  berth__prelude_mark(graph, in_prelude);
  for (size_t v = 0; v < graph->n_values; v++) {
    const berth__value *value = &graph->values[v];
    is_static[v] = value->kind == BERTH_VALUE_PARAM || value->kind == BERTH_VALUE_CONSTANT ||
                   (value->kind == BERTH_VALUE_NODE && in_prelude[value->node]);
  }
  berth__free(graph->ctx, in_prelude);
  *out = is_static;
  return BERTH_OK;
}

static berth_status move_ahead(berth__rewrite *r, const bool *in_prelude, berth_error *err) {
  for (size_t n = 0; n < r->n_old; n++)
    if (in_prelude[n]) BERTH__TRY(berth__rewrite_keep(r, n, err));
  for (size_t n = 0; n < r->n_old; n++)
    if (!in_prelude[n]) BERTH__TRY(berth__rewrite_keep(r, n, err));
  return BERTH_OK;
}

berth_status berth__prelude_hoist(berth_graph *graph, bool *in_prelude, berth_error *err) {
  berth__rewrite r = {0};
  size_t n_once = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) n_once += in_prelude[n];
  BERTH__TRY(berth__rewrite_start(&r, graph, err));
  berth_status status = move_ahead(&r, in_prelude, err);
  berth__rewrite_finish(&r);
  for (size_t n = 0; n < graph->n_nodes; n++) in_prelude[n] = n < n_once;
  return status;
}

uint32_t berth__prelude_first(const berth_graph *graph, const bool *in_prelude, uint32_t *order, uint32_t *room) {
  uint32_t n_first = 0, n_rest = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) {
    if (in_prelude[order[i]])
      order[n_first++] = order[i];
    else
      room[n_rest++] = order[i];
  }
  for (uint32_t i = 0; i < n_rest; i++) order[n_first + i] = room[i];
  return n_first;
}
