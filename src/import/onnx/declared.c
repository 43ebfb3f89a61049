/* What a file declares about the results of its nodes, if that tells how large they can become. */
#include "import/onnx/converter.h"

berth_status berth__onnx_depends_on_data(const berth__onnx_call *call, bool *out, berth_error *err) {
  const berth_graph *graph = call->graph;
  bool *is_data = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *is_data);
  *out = false;
  if (is_data == NULL) return berth__fail_nomem(err, "a node");
  for (size_t v = 0; v < graph->n_values; v++) { /* a value comes after those that it is computed from */
    const berth__value *value = &graph->values[v];
    is_data[v] = value->kind == BERTH_VALUE_INPUT || value->kind == BERTH_VALUE_PARAM;
    if (value->kind != BERTH_VALUE_NODE || value->blob != NULL) continue;
    const berth__node *node = &graph->nodes[value->node];
    for (uint32_t i = 0; i < node->n_in && !berth__op_reads_shape_only(node->op); i++)
      is_data[v] = is_data[v] || (node->in[i] != BERTH_VALUE_NONE && is_data[node->in[i]]);
  }
  for (size_t i = 0; i < call->n_in; i++) *out = *out || (call->in[i] != BERTH_VALUE_NONE && is_data[call->in[i]]);
  berth__free(graph->ctx, is_data);
  return BERTH_OK;
}

/* An invalid description declares nothing. */
static bool find_declared(const berth__onnx_graph *graph, berth__span name, berth__onnx_value *out) {
  for (size_t i = 0; i < graph->n_outputs; i++)
    if (berth__span_equal(graph->outputs[i].name, name)) return *out = graph->outputs[i], true;
  for (size_t i = 0; i < graph->n_infos; i++)
    if (berth__onnx_parse_value(graph->infos[i], out, NULL) == BERTH_OK && berth__span_equal(out->name, name))
      return true;
  return false;
}

bool berth__onnx_declared_extent(const berth__onnx_call *call, size_t k, char *name, berth_dim *out) {
  const berth__onnx_converter *c = call->converter;
  berth__onnx_value value;
  if (c->scope->outer != NULL || k >= call->node->n_outputs)
    return false; /* names in inner graphs are different ones */
  if (!find_declared(&c->model->graph, call->node->outputs[k], &value) || value.rank != 1) return false;
  *out = (berth_dim){.extent = value.dim[0]};
  if (value.dim[0] >= 0) return true;
  const berth__span own = value.dim_name[0];
  if (own.size == 0 || own.size >= BERTH__DIM_TEXT || memchr(own.data, '\0', own.size) != NULL ||
      berth__span_is(own, "?"))
    return false;
  memcpy(name, own.data, own.size);
  name[own.size] = '\0';
  const berth_dim *given = berth__onnx_given_dim(c, name);
  *out = given != NULL ? (berth_dim){.extent = given->extent} : (berth_dim){.name = name};
  return true;
}
