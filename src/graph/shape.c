/* Converts shapes between the public form, in which a dimension has a name, and the graph's, in which it has a
 * number. */
#include "base/storage.h"
#include "graph/graph.h"

berth_status berth__graph_dim(berth_graph *graph, const char *name, uint32_t *out, berth_error *err) {
  if (berth__map_get(&graph->dim_names, name, out)) return BERTH_OK;
  if (name[0] == '\0' || strcmp(name, "?") == 0)
    return berth__fail(err, BERTH_INVALID, "'%s' is not a name for a dimension", name);
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->dims, graph->dims_capacity, graph->n_dims + 1, err));
  char *copy = berth__strdup(graph->ctx, name);
  if (copy == NULL) return berth__fail_nomem(err, "a dimension's name");
  berth_status status = berth__map_put(graph->ctx, &graph->dim_names, name, (uint32_t)graph->n_dims, err);
  if (status != BERTH_OK) {
    berth__free(graph->ctx, copy);
    return status;
  }
  graph->dims[graph->n_dims] = copy;
  *out = (uint32_t)graph->n_dims++;
  return BERTH_OK;
}

void berth__graph_drop_dims(berth_graph *graph, size_t n) {
  while (graph->n_dims > n) {
    char *name = graph->dims[--graph->n_dims];
    berth__map_remove(graph->ctx, &graph->dim_names, name);
    berth__free(graph->ctx, name);
  }
}

berth_status berth__shape_import(berth_graph *graph, const berth_shape *shape, berth__shape *out, berth_error *err) {
  if (shape->rank > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_INVALID, "the rank is %u, at most %d is supported", shape->rank, BERTH_MAX_RANK);
  berth__shape result = {.rank = shape->rank, .dim = {0}};
  for (uint32_t i = 0; i < shape->rank; i++) {
    if (shape->dim[i].name == NULL && shape->dim[i].extent < 0)
      return berth__fail(err, BERTH_INVALID, "dimension %u is %lld; an extent is 0 or more, or has a name", i,
                         (long long)shape->dim[i].extent);
  }
  for (uint32_t i = 0; i < shape->rank; i++) {
    result.dim[i] = shape->dim[i].extent;
    if (shape->dim[i].name != NULL) {
      uint32_t index;
      BERTH__TRY(berth__graph_dim(graph, shape->dim[i].name, &index, err));
      result.dim[i] = berth__dim_named(index);
    }
  }
  *out = result;
  return BERTH_OK;
}

berth_shape berth__shape_export(const berth_graph *graph, const berth__shape *shape) {
  berth_shape result;
  memset(&result, 0, sizeof result);
  result.rank = shape->rank;
  for (uint32_t i = 0; i < shape->rank; i++) {
    if (berth__dim_is_fixed(shape->dim[i]))
      result.dim[i].extent = shape->dim[i];
    else
      result.dim[i].name = berth__dim_is_named(shape->dim[i]) ? graph->dims[berth__dim_index(shape->dim[i])] : "?";
  }
  return result;
}

bool berth__value_size(const berth__value *value, uint64_t *out) {
  int64_t count;
  return berth__shape_count(&value->shape, &count) &&
         berth__storage_bytes(berth_type_storage(value->type), (uint64_t)count, out);
}
