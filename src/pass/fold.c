/* Constant folding. Binding has already computed everything that depends on constants only, because shapes may depend
 * on it; this pass removes the nodes whose results are known.
 *
 * A node that is a view of a constant that stays anyway is kept, since a view has no bytes of its own. */
#include "pass/pass.h"

static bool pass_fold_is_computed(const berth_graph *graph, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++)
    if (graph->values[node->out[i]].blob == NULL) return false;
  return true;
}

/* Values that are needed whatever is folded: outputs, the next values of states, and operands of nodes that only a run
 * can compute. */
static void mark_staying(const berth_graph *graph, bool *stays) {
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) stays[berth__graph_kept(graph, i)] = true;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in && !pass_fold_is_computed(graph, node); i++)
      if (node->in[i] != BERTH_VALUE_NONE) stays[node->in[i]] = true;
  }
}

/* Strided views are excluded: a reader that does not support strides would copy them in every run. */
static bool is_plain_view(const berth_graph *graph, const berth__node *node) {
  const berth__family *family = node->op->family;
  if (family->view == NULL || node->n_in != 1) return false;
  const berth_tensor in = berth__value_tensor(&graph->values[node->in[0]], NULL);
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__value *value = &graph->values[node->out[i]];
    berth_tensor out = berth__value_tensor(value, NULL);
    int64_t offset;
    if (!family->view(&in, node->attrs, &value->shape, value->type, i, &offset, out.stride)) return false;
    if (!berth__is_contiguous(&out)) return false;
  }
  return true;
}

/* Dequantised weights and biases: next to quantised numbers, their quantised form is what counts. */
static bool pass_fold_is_quantised(const berth_graph *graph, const berth__node *node) {
  return node->op->code == BERTH__OP_dequantize && graph->values[node->out[0]].shape.rank > 0;
}

berth_status berth__pass_fold(berth_graph *graph, berth_error *err) {
  bool *remove = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *remove);
  bool *stays = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *stays);
  berth_status status = BERTH_OK;
  if (remove == NULL || stays == NULL) {
    status = berth__fail_nomem(err, "folding constants");
  } else {
    mark_staying(graph, stays);
    for (size_t n = 0; n < graph->n_nodes; n++) {
      const berth__node *node = &graph->nodes[n];
      const bool shows_what_stays = node->n_in != 0 && node->in[0] != BERTH_VALUE_NONE && stays[node->in[0]];
      remove[n] = pass_fold_is_computed(graph, node) && !(shows_what_stays && is_plain_view(graph, node)) &&
                  !pass_fold_is_quantised(graph, node);
    }
    berth__graph_remove_nodes(graph, remove);
  }
  berth__free(graph->ctx, remove);
  berth__free(graph->ctx, stays);
  return status;
}
