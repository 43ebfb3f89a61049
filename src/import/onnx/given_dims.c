/* Extents that the caller gives for named dimensions when the file is read, for models whose ranks depend on them. */
#include <stdio.h>

#include "import/onnx/converter.h"

const berth_dim *berth__onnx_given_dim(const berth__onnx_converter *c, const char *name) {
  for (size_t i = 0; i < c->n_dims; i++)
    if (strcmp(c->dims[i].name, name) == 0) return &c->dims[i];
  return NULL;
}

static bool given_dims_occurs(const berth__onnx_value *value, const char *name) {
  for (uint32_t i = 0; value->has_shape && i < value->rank; i++)
    if (value->dim[i] < 0 && berth__span_is(value->dim_name[i], name)) return true;
  return false;
}

/* Whether the file declares such a dimension: an input's without a name of its own is called after the input. */
static bool given_dims_declared(const berth__onnx_graph *graph, const char *name) {
  berth__onnx_value info;
  for (size_t i = 0; i < graph->n_inputs; i++) {
    const berth__onnx_value value = berth__onnx_ranked_input(graph, &graph->inputs[i]);
    for (uint32_t axis = 0; value.has_shape && axis < value.rank; axis++) {
      char own[BERTH__DIM_TEXT];
      if (value.dim[axis] < 0 && berth__onnx_dim_text(&value, axis, own) && strcmp(own, name) == 0) return true;
    }
  }
  for (size_t i = 0; i < graph->n_outputs; i++)
    if (given_dims_occurs(&graph->outputs[i], name)) return true;
  for (size_t i = 0; i < graph->n_infos; i++)
    if (berth__onnx_parse_value(graph->infos[i], &info, NULL) == BERTH_OK && given_dims_occurs(&info, name))
      return true;
  return false;
}

berth_status berth__onnx_check_given_dims(const berth__onnx_converter *c, berth_error *err) {
  const berth_graph *graph = c->graph;
  for (size_t i = 0; i < c->n_dims; i++)
    if (!given_dims_declared(&c->model->graph, c->dims[i].name))
      return berth__fail(err, BERTH_INVALID, "the model has no named dimension '%s'%s%s", c->dims[i].name,
                         graph->n_dims != 0 ? "; the first that it has is " : "",
                         graph->n_dims != 0 ? graph->dims[0] : "");
  return BERTH_OK;
}
