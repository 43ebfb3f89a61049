/* Attaching weights to a graph. */
#include "graph/graph.h"
#include "import/weights.h"

static bool has_shape(const berth_weight_info *info, const berth__shape *shape) {
  if (info->rank != shape->rank) return false;
  for (uint32_t i = 0; i < shape->rank; i++)
    if (info->dim[i] != shape->dim[i]) return false;
  return true;
}

static berth_status find_weight(const berth_weights *weights, const berth__value *param, berth_weight_info *info,
                                berth_error *err) {
  uint32_t index = berth_weights_find(weights, param->name);
  char wanted[BERTH__SHAPE_TEXT], has[BERTH__SHAPE_TEXT];
  if (index == UINT32_MAX)
    return berth__fail(err, BERTH_INVALID, "the weights have no '%s', which is a param of the graph", param->name);
  BERTH__TRY(berth_weights_at(weights, index, info, err));
  if (info->type == param->type && has_shape(info, &param->shape)) return BERTH_OK;
  berth__shape shape = {.rank = info->rank};
  memcpy(shape.dim, info->dim, sizeof shape.dim);
  return berth__fail(err, BERTH_INVALID, "param '%s' is %s%s but the weights have %s%s", param->name,
                     berth_type_name(param->type), berth__shape_text(&param->shape, wanted),
                     berth_type_name(info->type), berth__shape_text(&shape, has));
}

static void retain_weights(void *weights) { (void)berth__weights_retain(weights); }

static void release_weights(void *weights) { berth_weights_destroy(weights); }

static void rest_weights(void *weights, const void *data, size_t size) { berth__weights_rest(weights, data, size); }

static berth_status check_weights(void *weights, berth_error *err) { return berth__weights_check(weights, err); }

berth_status berth_graph_attach(berth_graph *graph, const berth_weights *weights, berth_error *err) {
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  if (graph == NULL || weights == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_graph_attach needs a graph and weights");
  /* All are looked up before the first is set, so that a failure changes nothing. */
  for (size_t i = 0; i < graph->n_params; i++)
    BERTH__TRY(find_weight(weights, &graph->values[graph->params[i]], &info, err));
  berth__keep keep = {.object = (void *)(uintptr_t)weights,
                      .retain = retain_weights,
                      .release = release_weights,
                      .rest = rest_weights,
                      .check = check_weights};
  BERTH__TRY(berth__graph_keep(graph, &keep, err));
  for (size_t i = 0; i < graph->n_params; i++) {
    berth__value *param = &graph->values[graph->params[i]];
    if (find_weight(weights, param, &info, NULL) == BERTH_OK) param->data = info.data;
  }
  return BERTH_OK;
}
