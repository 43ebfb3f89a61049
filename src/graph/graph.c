/* Graphs: creation, destruction, and values that no node makes. */
#include "graph/graph.h"

#include <stdio.h>

#include "base/math.h"
#include "base/storage.h"

berth_status berth_graph_create(berth_context *ctx, const char *name, berth_graph **out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_create needs a pointer to store the graph");
  *out = NULL;
  if (ctx == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_create needs a context");
  berth_graph *graph = berth__alloc_zero(ctx, sizeof *graph);
  if (graph == NULL) return berth__fail_nomem(err, "a graph");
  graph->ctx = ctx;
  graph->name = berth__strdup(ctx, name != NULL ? name : "graph");
  if (graph->name == NULL) {
    berth_graph_destroy(graph);
    return berth__fail_nomem(err, "a graph");
  }
  *out = graph;
  return BERTH_OK;
}

static void free_value(berth_context *ctx, berth__value *value) {
  berth__free(ctx, value->name);
  berth__blob_release(value->blob);
  berth__blob_release(value->initial);
  berth__blob_release(value->low);
  berth__blob_release(value->high);
}

void berth_graph_destroy(berth_graph *graph) {
  if (graph == NULL) return;
  berth_context *ctx = graph->ctx;
  for (size_t i = 0; i < graph->n_values; i++) free_value(ctx, &graph->values[i]);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    berth__free(ctx, graph->nodes[i].in);
    berth__free(ctx, graph->nodes[i].out);
    berth__attrs_free(ctx, graph->nodes[i].op, graph->nodes[i].attrs);
  }
  for (size_t i = 0; i < graph->n_outputs; i++) berth__free(ctx, graph->outputs[i].name);
  for (size_t i = 0; i < graph->n_dims; i++) berth__free(ctx, graph->dims[i]);
  for (size_t i = 0; i < graph->n_keeps; i++) graph->keeps[i].release(graph->keeps[i].object);
  berth__map_clear(ctx, &graph->value_names);
  berth__map_clear(ctx, &graph->dim_names);
  berth__map_clear(ctx, &graph->output_names);
  berth__map_clear(ctx, &graph->last_numbers);
  berth__free(ctx, graph->values);
  berth__free(ctx, graph->nodes);
  berth__free(ctx, graph->inputs);
  berth__free(ctx, graph->params);
  berth__free(ctx, graph->states);
  berth__free(ctx, graph->updates);
  berth__free(ctx, graph->outputs);
  berth__free(ctx, graph->dims);
  berth__free(ctx, graph->keeps);
  berth__free(ctx, graph->weights_path);
  berth__free(ctx, graph->name);
  berth__free(ctx, graph);
}

berth_status berth__graph_check_name(const berth_graph *graph, const char *name, berth_error *err) {
  uint32_t other;
  if (name[0] == '\0') return berth__fail(err, BERTH_INVALID, "a value's name must not be empty");
  if (berth__map_get(&graph->value_names, name, &other))
    return berth__fail(err, BERTH_INVALID, "the graph already has a value '%s'; names must be unique", name);
  return BERTH_OK;
}

berth_status berth__graph_new_value(berth_graph *graph, const char *name, const berth__value *like, berth_value *out,
                                    berth_error *err) {
  if (graph->n_values >= BERTH_VALUE_NONE) return berth__fail(err, BERTH_INVALID, "the graph has too many values");
  BERTH__TRY(berth__graph_check_name(graph, name, err));
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->values, graph->values_capacity, graph->n_values + 1, err));
  char *copy = berth__strdup(graph->ctx, name);
  if (copy == NULL) return berth__fail_nomem(err, "a value");
  berth_status status = berth__map_put(graph->ctx, &graph->value_names, name, (uint32_t)graph->n_values, err);
  if (status != BERTH_OK) {
    berth__free(graph->ctx, copy);
    return status;
  }
  graph->values[graph->n_values] = *like;
  graph->values[graph->n_values].name = copy;
  *out = (berth_value)graph->n_values++;
  return BERTH_OK;
}

/* A numbered name may be used again, so names are searched from the first number on. */
static void graph_free_name(berth_graph *graph, const char *name) {
  const char *dot = strrchr(name, '.');
  berth__map_remove(graph->ctx, &graph->value_names, name);
  if (dot != NULL && dot[1] >= '0' && dot[1] <= '9') berth__map_clear(graph->ctx, &graph->last_numbers);
}

void berth__graph_drop_last_value(berth_graph *graph) {
  berth__value *value = &graph->values[--graph->n_values];
  graph_free_name(graph, value->name);
  berth__free(graph->ctx, value->name);
}

static bool type_is_known(berth_type type) { return berth_type_storage(type).bytes != 0; }

static berth_status graph_check_size(const berth__value *value, berth_error *err) {
  uint64_t size;
  for (uint32_t i = 0; i < value->shape.rank; i++)
    if (!berth__dim_is_fixed(value->shape.dim[i])) return BERTH_OK;
  if (!berth__value_size(value, &size))
    return berth__fail(err, BERTH_INVALID, "its size in bytes does not fit in 64 bits");
  return BERTH_OK;
}

/* Checks that the last axis consists of whole blocks. */
static berth_status graph_check_blocks(const berth__value *value, berth_error *err) {
  const berth_storage storage = berth_type_storage(value->type);
  const uint32_t rank = value->shape.rank;
  if (storage.elements == 1) return BERTH_OK;
  if (rank != 0 && berth__dim_is_fixed(value->shape.dim[rank - 1]) &&
      value->shape.dim[rank - 1] % storage.elements == 0)
    return BERTH_OK;
  char text[BERTH__SHAPE_TEXT];
  return berth__fail(err, BERTH_INVALID, "%s lies in blocks of %u, and the last axis of %s is not a multiple of that",
                     berth_type_name(value->type), storage.elements, berth__shape_text(&value->shape, text));
}

/* A value that no node makes. */
berth_status berth__graph_add_source(berth_graph *graph, const char *name, berth_value_kind kind, berth_type type,
                                     const berth_shape *shape, berth_value *out, berth_error *err) {
  static const char *const prefix[] = {"", "input", "param", "constant", "", "", "state"};
  char made_up[32];
  uint32_t other;
  size_t n_dims = graph->n_dims;
  if (name == NULL) {
    size_t number = graph->n_values;
    do {
      snprintf(made_up, sizeof made_up, "%s_%zu", prefix[kind], number++);
    } while (berth__map_get(&graph->value_names, made_up, &other));
    name = made_up;
  }
  if (!type_is_known(type))
    return berth__fail(err, BERTH_INVALID, "%s '%s': %d is not a type", prefix[kind], name, (int)type);
  BERTH__TRY(berth__graph_check_name(graph, name, err));
  berth__value value = {.kind = kind, .type = type, .node = UINT32_MAX};
  berth_status status = berth__shape_import(graph, shape, &value.shape, err);
  if (status == BERTH_OK) status = graph_check_blocks(&value, err);
  if (status == BERTH_OK) status = graph_check_size(&value, err);
  if (status != BERTH_OK) status = berth__fail_within(err, status, "%s '%s'", prefix[kind], name);
  if (status == BERTH_OK) status = berth__graph_new_value(graph, name, &value, out, err);
  if (status != BERTH_OK) berth__graph_drop_dims(graph, n_dims);
  return status;
}

/* Checks a public call, whose result pointer is optional. */
static berth_status graph_check_call(berth_graph *graph, berth_value **out, berth_value *ignored, berth_error *err) {
  if (*out == NULL) *out = ignored;
  **out = BERTH_VALUE_NONE;
  return graph != NULL ? BERTH_OK : berth__fail(err, BERTH_INVALID, "the graph is NULL");
}

berth_status berth_graph_input(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                               berth_value *out, berth_error *err) {
  berth_value ignored;
  BERTH__TRY(graph_check_call(graph, &out, &ignored, err));
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->inputs, graph->inputs_capacity, graph->n_inputs + 1, err));
  BERTH__TRY(berth__graph_add_source(graph, name, BERTH_VALUE_INPUT, type, &shape, out, err));
  graph->inputs[graph->n_inputs++] = *out;
  return BERTH_OK;
}

berth_status berth_graph_param(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                               berth_value *out, berth_error *err) {
  berth_value ignored;
  BERTH__TRY(graph_check_call(graph, &out, &ignored, err));
  for (uint32_t i = 0; i < shape.rank && i < BERTH_MAX_RANK; i++)
    if (shape.dim[i].name != NULL)
      return berth__fail(err, BERTH_INVALID, "param '%s' has the named dimension '%s'; weights have fixed shapes",
                         name != NULL ? name : "", shape.dim[i].name);
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->params, graph->params_capacity, graph->n_params + 1, err));
  BERTH__TRY(berth__graph_add_source(graph, name, BERTH_VALUE_PARAM, type, &shape, out, err));
  graph->params[graph->n_params++] = *out;
  return BERTH_OK;
}

static berth_status check_constant(const char *label, berth_type type, const berth_shape *shape, const void *data,
                                   size_t size, berth_error *err) {
  uint64_t count = 1, bytes = size;
  for (uint32_t i = 0; i < shape->rank && i < BERTH_MAX_RANK; i++) {
    if (shape->dim[i].name != NULL)
      return berth__fail(err, BERTH_INVALID, "constant '%s' has the named dimension '%s'; constants have fixed shapes",
                         label, shape->dim[i].name);
    if (shape->dim[i].extent < 0 || !berth__mul_u64(count, (uint64_t)shape->dim[i].extent, &count))
      return berth__fail(err, BERTH_INVALID, "constant '%s': dimension %u is %lld, which is negative or too large",
                         label, i, (long long)shape->dim[i].extent);
  }
  const bool is_whole = berth__storage_bytes(berth_type_storage(type), count, &bytes); /* otherwise it is refused */
  if (is_whole && bytes != size)
    return berth__fail(err, BERTH_INVALID, "constant '%s' needs %llu byte%s by its shape but %zu were given", label,
                       (unsigned long long)bytes, berth__plural(bytes), size);
  if (data == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "constant '%s' has no data", label);
  return BERTH_OK;
}

berth_status berth_graph_constant(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                  const void *data, size_t size, berth_value *out, berth_error *err) {
  berth_value ignored;
  BERTH__TRY(graph_check_call(graph, &out, &ignored, err));
  BERTH__TRY(check_constant(name != NULL ? name : "", type, &shape, data, size, err));
  berth__blob *blob = berth__blob_create(graph->ctx, data, size);
  if (blob == NULL) return berth__fail_nomem(err, "a constant");
  berth_status status = berth__graph_add_source(graph, name, BERTH_VALUE_CONSTANT, type, &shape, out, err);
  if (status != BERTH_OK) {
    berth__blob_release(blob);
    return status;
  }
  graph->values[*out].blob = blob;
  graph->values[*out].data = berth__blob_data(blob);
  return BERTH_OK;
}

berth_status berth_graph_output(berth_graph *graph, const char *name, berth_value value, berth_error *err) {
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  if (value >= graph->n_values)
    return berth__fail(err, BERTH_INVALID, "output '%s': the graph has no value %u", name != NULL ? name : "", value);
  if (name == NULL) name = graph->values[value].name;
  if (name[0] == '\0') return berth__fail(err, BERTH_INVALID, "an output's name must not be empty");
  if (graph->values[value].kind == BERTH_VALUE_STATE)
    return berth__fail(err, BERTH_INVALID,
                       "output '%s' is the state '%s' itself, which a run changes; name what it is updated from, or an "
                       "identity of it for what it held before the run",
                       name, graph->values[value].name);
  uint32_t other;
  if (berth__map_get(&graph->output_names, name, &other))
    return berth__fail(err, BERTH_INVALID, "the graph already has an output '%s'", name);
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->outputs, graph->outputs_capacity, graph->n_outputs + 1, err));
  char *copy = berth__strdup(graph->ctx, name);
  if (copy == NULL) return berth__fail_nomem(err, "an output");
  berth_status status = berth__map_put(graph->ctx, &graph->output_names, name, (uint32_t)graph->n_outputs, err);
  if (status != BERTH_OK) {
    berth__free(graph->ctx, copy);
    return status;
  }
  graph->outputs[graph->n_outputs++] = (berth__output){.name = copy, .value = value};
  return BERTH_OK;
}

berth_status berth_graph_rename(berth_graph *graph, berth_value value, const char *name, berth_error *err) {
  if (graph == NULL || name == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_graph_rename needs a graph and a name");
  if (value >= graph->n_values) return berth__fail(err, BERTH_INVALID, "the graph has no value %u", value);
  if (strcmp(graph->values[value].name, name) == 0) return BERTH_OK;
  BERTH__TRY(berth__graph_check_name(graph, name, err));
  char *copy = berth__strdup(graph->ctx, name);
  if (copy == NULL) return berth__fail_nomem(err, "a name");
  berth_status status = berth__map_put(graph->ctx, &graph->value_names, name, value, err);
  if (status != BERTH_OK) {
    berth__free(graph->ctx, copy);
    return status;
  }
  graph_free_name(graph, graph->values[value].name);
  berth__free(graph->ctx, graph->values[value].name);
  graph->values[value].name = copy;
  return BERTH_OK;
}

berth_status berth__graph_set_weights_path(berth_graph *graph, const char *path, berth_error *err) {
  char *copy = berth__strdup(graph->ctx, path);
  if (path != NULL && copy == NULL) return berth__fail_nomem(err, "a path");
  berth__free(graph->ctx, graph->weights_path);
  graph->weights_path = copy;
  return BERTH_OK;
}

berth_status berth__graph_keep(berth_graph *graph, const berth__keep *keep, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->keeps, graph->keeps_capacity, graph->n_keeps + 1, err));
  keep->retain(keep->object);
  graph->keeps[graph->n_keeps++] = *keep;
  return BERTH_OK;
}

berth_status berth__graph_check_files(const berth_graph *graph, berth_error *err) {
  for (size_t i = 0; i < graph->n_keeps; i++)
    if (graph->keeps[i].check != NULL) BERTH__TRY(graph->keeps[i].check(graph->keeps[i].object, err));
  return BERTH_OK;
}
