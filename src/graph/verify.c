/* The verifier: checks any graph, whatever made it, and names the invalid node. */
#include "graph/graph.h"
#include "graph/region.h"

static berth_status verify_links(const berth_graph *graph, uint32_t index, berth_error *err) {
  const berth__node *node = &graph->nodes[index];
  for (uint32_t i = 0; i < node->n_in; i++) {
    berth_value value = node->in[i];
    if (value == BERTH_VALUE_NONE) continue;
    if (value >= graph->n_values)
      return berth__fail(err, BERTH_INVALID, "operand %u is value %u, which the graph does not have", i, value);
    if (graph->values[value].kind == BERTH_VALUE_NODE && graph->values[value].node >= index)
      return berth__fail(err, BERTH_INVALID, "operand '%s' is made by a later node, or by this one: a cycle",
                         graph->values[value].name);
  }
  for (uint32_t i = 0; i < node->n_out; i++) {
    berth_value value = node->out[i];
    if (value >= graph->n_values)
      return berth__fail(err, BERTH_INVALID, "result %u is value %u, which the graph does not have", i, value);
    if (graph->values[value].kind != BERTH_VALUE_NODE || graph->values[value].node != index)
      return berth__fail(err, BERTH_INVALID, "result '%s' says that something else makes it",
                         graph->values[value].name);
  }
  return BERTH_OK;
}

static berth_status compare_results(const berth_graph *graph, const berth__node *node, const berth__value *results,
                                    berth_error *err) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__value *value = &graph->values[node->out[i]];
    char has[BERTH__SHAPE_TEXT], expected[BERTH__SHAPE_TEXT];
    if (value->type != results[i].type || !berth__shape_equal(&value->shape, &results[i].shape))
      return berth__fail(err, BERTH_INVALID, "result '%s' is %s%s but its operands make it %s%s", value->name,
                         berth_type_name(value->type), berth__shape_text(&value->shape, has),
                         berth_type_name(results[i].type), berth__shape_text(&results[i].shape, expected));
    if (value->bounded != results[i].bounded)
      return berth__fail(err, BERTH_INVALID, "result '%s' has other extents that are bounds than its operands make",
                         value->name);
  }
  return BERTH_OK;
}

static berth_status verify_node(const berth_graph *graph, uint32_t index, berth_error *err) {
  const berth__node *node = &graph->nodes[index];
  berth_context *ctx = graph->ctx;
  berth_status status = verify_links(graph, index, err);
  if (status != BERTH_OK) {
    bool named = node->n_out != 0 && node->out[0] < graph->n_values;
    return berth__fail_within(err, status, "node '%s' (%s)", named ? graph->values[node->out[0]].name : "?",
                              node->op->name);
  }
  const char *label = graph->values[node->out[0]].name;
  berth__value *results = berth__alloc_array_zero(ctx, node->n_out, sizeof *results);
  if (results == NULL) {
    status = berth__fail_nomem(err, "verification");
  } else {
    status = berth__graph_infer(graph, node->op, node->in, node->n_in, node->attrs, label, results, node->n_out, err);
    if (status == BERTH_OK) {
      status = compare_results(graph, node, results, err);
      if (status != BERTH_OK) berth__fail_within(err, status, "node '%s' (%s)", label, node->op->name);
    }
  }
  berth__free(ctx, results);
  return status;
}

/* Checks that every value of kind NODE is the result of exactly one node. */
static berth_status verify_makers(const berth_graph *graph, berth_error *err) {
  for (size_t v = 0; v < graph->n_values; v++) {
    const berth__value *value = &graph->values[v];
    if (value->kind != BERTH_VALUE_NODE) continue;
    const berth__node *node = value->node < graph->n_nodes ? &graph->nodes[value->node] : NULL;
    size_t i = node != NULL ? v - node->out[0] : 0; /* results have consecutive numbers */
    if (node == NULL || i >= node->n_out || node->out[i] != v)
      return berth__fail(err, BERTH_INVALID, "value '%s' is a result, but no node makes it", value->name);
  }
  return BERTH_OK;
}

static berth_status verify_updates(const berth_graph *graph, berth_error *err) {
  for (size_t i = 0; i < graph->n_updates; i++) {
    BERTH__TRY(berth__graph_check_update(graph, graph->updates[i], err));
    for (size_t k = 0; k < i; k++)
      if (graph->updates[k].state == graph->updates[i].state)
        return berth__fail(err, BERTH_INVALID, "state '%s' is updated twice",
                           graph->values[graph->updates[i].state].name);
  }
  return BERTH_OK;
}

static berth_status verify_loops(const berth_graph *graph, berth_error *err) {
  berth__regions regions;
  BERTH__TRY(berth__regions_create(graph, &regions, err));
  berth__regions_free(graph->ctx, &regions);
  return BERTH_OK;
}

berth_status berth_graph_verify(const berth_graph *graph, berth_error *err) {
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  for (uint32_t i = 0; i < graph->n_nodes; i++) BERTH__TRY(verify_node(graph, i, err));
  BERTH__TRY(verify_makers(graph, err));
  BERTH__TRY(verify_updates(graph, err));
  BERTH__TRY(verify_loops(graph, err));
  if (berth__graph_n_kept(graph) == 0)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has no output; name one with berth_graph_output", graph->name);
  for (size_t i = 0; i < graph->n_outputs; i++)
    if (graph->outputs[i].value >= graph->n_values)
      return berth__fail(err, BERTH_INVALID, "output '%s' is value %u, which the graph does not have",
                         graph->outputs[i].name, graph->outputs[i].value);
    else if (graph->values[graph->outputs[i].value].kind == BERTH_VALUE_STATE)
      return berth__fail(err, BERTH_INVALID, "output '%s' is a state, which a run changes", graph->outputs[i].name);
  return BERTH_OK;
}
