/* Queries on a graph. */
#include "graph/graph.h"

#include "base/desc.h"

const char *berth_graph_name(const berth_graph *graph) { return graph->name; }

uint32_t berth_graph_n_values(const berth_graph *graph) { return (uint32_t)graph->n_values; }

uint32_t berth_graph_n_nodes(const berth_graph *graph) { return (uint32_t)graph->n_nodes; }

uint32_t berth_graph_n_inputs(const berth_graph *graph) { return (uint32_t)graph->n_inputs; }

uint32_t berth_graph_n_outputs(const berth_graph *graph) { return (uint32_t)graph->n_outputs; }

uint32_t berth_graph_n_params(const berth_graph *graph) { return (uint32_t)graph->n_params; }

uint32_t berth_graph_n_states(const berth_graph *graph) { return (uint32_t)graph->n_states; }

uint32_t berth_graph_n_dims(const berth_graph *graph) { return (uint32_t)graph->n_dims; }

const char *berth_graph_dim_name(const berth_graph *graph, uint32_t index) {
  return index < graph->n_dims ? graph->dims[index] : NULL;
}

berth_value berth_graph_input_at(const berth_graph *graph, uint32_t index) {
  return index < graph->n_inputs ? graph->inputs[index] : BERTH_VALUE_NONE;
}

berth_value berth_graph_param_at(const berth_graph *graph, uint32_t index) {
  return index < graph->n_params ? graph->params[index] : BERTH_VALUE_NONE;
}

berth_value berth_graph_state_at(const berth_graph *graph, uint32_t index) {
  return index < graph->n_states ? graph->states[index] : BERTH_VALUE_NONE;
}

berth_value berth_graph_next(const berth_graph *graph, berth_value state) {
  for (size_t i = 0; i < graph->n_updates; i++)
    if (graph->updates[i].state == state) return graph->updates[i].next;
  return BERTH_VALUE_NONE;
}

berth_value berth_graph_output_at(const berth_graph *graph, uint32_t index) {
  return index < graph->n_outputs ? graph->outputs[index].value : BERTH_VALUE_NONE;
}

const char *berth_graph_output_name(const berth_graph *graph, uint32_t index) {
  return index < graph->n_outputs ? graph->outputs[index].name : NULL;
}

berth_value berth_graph_find(const berth_graph *graph, const char *name) {
  uint32_t value;
  return name != NULL && berth__map_get(&graph->value_names, name, &value) ? value : BERTH_VALUE_NONE;
}

berth_status berth_graph_value(const berth_graph *graph, berth_value value, berth_value_info *out, berth_error *err) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  if (value >= graph->n_values) return berth__fail(err, BERTH_INVALID, "the graph has no value %u", value);
  const berth__value *v = &graph->values[value];
  info.name = v->name;
  info.kind = v->kind;
  info.type = v->type;
  info.shape = berth__shape_export(graph, &v->shape);
  info.node = v->node;
  info.data = v->kind != BERTH_VALUE_NODE ? v->data : NULL;
  if (v->initial != NULL) info.data = berth__blob_data(v->initial);
  if (!berth__value_size(v, &info.size)) info.size = 0;
  return BERTH__RESULT_WRITE(out, &info, "berth_value_info", err);
}

uint32_t berth_graph_bounds(const berth_graph *graph, berth_value value) {
  return value < graph->n_values ? graph->values[value].bounded : 0;
}

berth_status berth_graph_node(const berth_graph *graph, uint32_t node, berth_node_info *out, berth_error *err) {
  berth_node_info info = BERTH_NODE_INFO_INIT;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  if (node >= graph->n_nodes) return berth__fail(err, BERTH_INVALID, "the graph has no node %u", node);
  const berth__node *n = &graph->nodes[node];
  info.name = graph->values[n->out[0]].name;
  info.op = n->op->name;
  info.in = n->in;
  info.n_in = n->n_in;
  info.out = n->out;
  info.n_out = n->n_out;
  info.attrs = n->attrs;
  info.n_attrs = n->op->family->n_attrs;
  return BERTH__RESULT_WRITE(out, &info, "berth_node_info", err);
}
