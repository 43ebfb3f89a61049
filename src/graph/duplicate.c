/* A copy of a graph, rewritten or not, with identical numbers of values and nodes. */
#include "graph/graph.h"

static berth_status copy_value(berth_graph *to, const berth__value *from, berth_error *err) {
  berth_value added;
  BERTH__TRY(berth__graph_new_value(to, from->name, from, &added, err));
  berth__blob *const blobs[] = {from->blob, from->low, from->high, from->initial};
  for (size_t i = 0; i < sizeof blobs / sizeof blobs[0]; i++)
    if (blobs[i] != NULL) berth__blob_retain(blobs[i]);
  return BERTH_OK;
}

static berth_status copy_node(berth_graph *to, const berth__node *from, berth_error *err) {
  berth_context *ctx = to->ctx;
  BERTH__TRY(BERTH__RESERVE(ctx, to->nodes, to->nodes_capacity, to->n_nodes + 1, err));
  berth__node node = *from;
  BERTH__TRY(berth__attrs_resolve(ctx, from->op, from->attrs, from->op->family->n_attrs, &node.attrs, err));
  node.in = berth__alloc_array(ctx, from->n_in, sizeof *node.in);
  node.out = berth__alloc_array(ctx, from->n_out, sizeof *node.out);
  if (node.in == NULL || node.out == NULL) {
    berth__free(ctx, node.in);
    berth__free(ctx, node.out);
    berth__attrs_free(ctx, from->op, node.attrs);
    return berth__fail_nomem(err, "a graph");
  }
  if (from->n_in != 0) memcpy(node.in, from->in, from->n_in * sizeof *node.in);
  memcpy(node.out, from->out, from->n_out * sizeof *node.out);
  to->nodes[to->n_nodes++] = node;
  return BERTH_OK;
}

static berth_status graph_duplicate_copy_list(berth_context *ctx, const berth_value *from, size_t n, berth_value **to,
                                              size_t *n_to, size_t *capacity, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(ctx, *to, *capacity, n, err));
  if (n != 0) memcpy(*to, from, n * sizeof **to);
  *n_to = n;
  return BERTH_OK;
}

static berth_status copy_all(berth_graph *to, const berth_graph *from, berth_error *err) {
  uint32_t index;
  BERTH__TRY(berth__graph_set_weights_path(to, from->weights_path, err));
  for (size_t i = 0; i < from->n_dims; i++) BERTH__TRY(berth__graph_dim(to, from->dims[i], &index, err));
  for (size_t i = 0; i < from->n_keeps; i++) BERTH__TRY(berth__graph_keep(to, &from->keeps[i], err));
  for (size_t i = 0; i < from->n_values; i++) BERTH__TRY(copy_value(to, &from->values[i], err));
  for (size_t i = 0; i < from->n_nodes; i++) BERTH__TRY(copy_node(to, &from->nodes[i], err));
  for (size_t i = 0; i < from->n_outputs; i++)
    BERTH__TRY(berth_graph_output(to, from->outputs[i].name, from->outputs[i].value, err));
  BERTH__TRY(graph_duplicate_copy_list(to->ctx, from->inputs, from->n_inputs, &to->inputs, &to->n_inputs,
                                       &to->inputs_capacity, err));
  BERTH__TRY(graph_duplicate_copy_list(to->ctx, from->params, from->n_params, &to->params, &to->n_params,
                                       &to->params_capacity, err));
  BERTH__TRY(graph_duplicate_copy_list(to->ctx, from->states, from->n_states, &to->states, &to->n_states,
                                       &to->states_capacity, err));
  BERTH__TRY(BERTH__RESERVE(to->ctx, to->updates, to->updates_capacity, from->n_updates, err));
  if (from->n_updates != 0) memcpy(to->updates, from->updates, from->n_updates * sizeof *to->updates);
  to->n_updates = from->n_updates;
  return BERTH_OK;
}

berth_status berth__graph_duplicate(const berth_graph *graph, berth_graph **out, berth_error *err) {
  berth_graph *copy;
  *out = NULL;
  BERTH__TRY(berth_graph_create(graph->ctx, graph->name, &copy, err));
  copy->is_bound = graph->is_bound;
  berth_status status = copy_all(copy, graph, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(copy);
    return status;
  }
  *out = copy;
  return BERTH_OK;
}
