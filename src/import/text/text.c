/* Graphs as text: docs/formats.md describes the format, src/graph reads it. */
#include "graph/graph.h"
#include "import/format.h"

/* Looks for the keyword that a graph begins with, after white space and comments. */
bool berth__text_probe(const uint8_t *data, size_t size) {
  static const char word[] = "graph";
  size_t i = 0;
  while (i < size) {
    if (data[i] == '#')
      while (i < size && data[i] != '\n') i++;
    else if (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n')
      i++;
    else
      break;
  }
  return size - i > sizeof word - 1 && memcmp(data + i, word, sizeof word - 1) == 0;
}

/* The weights file that a text graph names is relative to it, unless the name is absolute. */
static berth_status text_beside(berth_context *ctx, const char *path, const char *name, char **out, berth_error *err) {
  const char *slash = strrchr(path, '/');
  size_t folder = name[0] == '/' || slash == NULL ? 0 : (size_t)(slash - path) + 1;
  char *joined = berth__alloc(ctx, folder + strlen(name) + 1);
  *out = joined;
  if (joined == NULL) return berth__fail_nomem(err, "a path");
  memcpy(joined, path, folder);
  memcpy(joined + folder, name, strlen(name) + 1);
  return BERTH_OK;
}

static berth_status attach_named_weights(berth_graph *graph, const char *path, berth_error *err) {
  berth_weights *weights = NULL;
  char *file = NULL;
  berth_status status = text_beside(graph->ctx, path, graph->weights_path, &file, err);
  if (status == BERTH_OK) status = berth_weights_open(graph->ctx, file, &weights, err);
  if (status == BERTH_OK) {
    status = berth_graph_attach(graph, weights, err);
    if (status != BERTH_OK) berth__fail_within(err, status, "%s", file);
  }
  berth_weights_destroy(weights);
  berth__free(graph->ctx, file);
  return status;
}

berth_status berth__text_load(const berth__load *in, berth_graph **out, berth_error *err) {
  berth_status status = berth_graph_parse(in->ctx, (const char *)in->file->data, in->file->size, out, err);
  const berth_status read = berth__file_check(in->file, err);
  berth__file_unmap(in->file);
  if (read != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
    return read;
  }
  if (in->path == NULL) return status;
  if (status != BERTH_OK) return berth__fail_within(err, status, "%s", in->path);
  if ((*out)->weights_path != NULL && !in->has_weights) status = attach_named_weights(*out, in->path, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
  }
  return status;
}

/* ---- Inspecting ---- */

static berth_status text_describe_value(berth__summary *s, const char *name, const berth_graph *graph,
                                        berth_value value, berth_model_value *out, berth_error *err) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  BERTH__TRY(berth_graph_value(graph, value, &info, err));
  if (name == NULL) name = info.name;
  BERTH__TRY(berth__summary_text(s, name, strlen(name), &out->name, err));
  out->type = berth_type_name(info.type);
  out->has_shape = 1;
  out->shape = info.shape;
  for (uint32_t i = 0; i < info.shape.rank; i++) {
    const char *dim = info.shape.dim[i].name;
    if (dim != NULL) BERTH__TRY(berth__summary_text(s, dim, strlen(dim), &out->shape.dim[i].name, err));
  }
  return BERTH_OK;
}

static berth_status text_describe_values(berth__summary *s, const berth_graph *graph, berth_error *err) {
  void *inputs, *outputs;
  BERTH__TRY(berth__summary_list(s, graph->n_inputs, sizeof(berth_model_value), &inputs, err));
  BERTH__TRY(berth__summary_list(s, graph->n_outputs, sizeof(berth_model_value), &outputs, err));
  for (size_t i = 0; i < graph->n_inputs; i++)
    BERTH__TRY(text_describe_value(s, NULL, graph, graph->inputs[i], (berth_model_value *)inputs + i, err));
  for (size_t i = 0; i < graph->n_outputs; i++)
    BERTH__TRY(text_describe_value(s, graph->outputs[i].name, graph, graph->outputs[i].value,
                                   (berth_model_value *)outputs + i, err));
  s->info.inputs = inputs;
  s->info.outputs = outputs;
  s->info.n_inputs = graph->n_inputs;
  s->info.n_outputs = graph->n_outputs;
  return BERTH_OK;
}

static berth_status text_summarise(berth__summary *s, const berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__summary_text(s, graph->name, strlen(graph->name), &s->info.name, err));
  BERTH__TRY(text_describe_values(s, graph, err));
  for (size_t i = 0; i < graph->n_params; i++) {
    const berth__value *param = &graph->values[graph->params[i]];
    uint64_t bytes = 0, elements = 0;
    if (berth__value_size(param, &bytes)) { /* all extents are known, and the size fits */
      elements = 1;
      for (uint32_t k = 0; k < param->shape.rank; k++) elements *= (uint64_t)param->shape.dim[k];
    }
    BERTH__TRY(berth__summary_param(s, elements, bytes, err));
  }
  for (size_t i = 0; i < graph->n_nodes; i++) {
    berth_model_op *op;
    bool is_new;
    BERTH__TRY(berth__summary_op(s, "", graph->nodes[i].op->name, &op, &is_new, err));
    op->supported = 1; /* otherwise the graph could not have been read */
  }
  if (graph->weights_path == NULL) return BERTH_OK;
  return berth__summary_file(s, graph->weights_path, strlen(graph->weights_path), err);
}

berth_status berth__text_inspect(berth__summary *s, const berth__mapping *file, berth_error *err) {
  berth_graph *graph;
  BERTH__TRY(berth_graph_parse(s->ctx, (const char *)file->data, file->size, &graph, err));
  const berth_status status = text_summarise(s, graph, err);
  berth_graph_destroy(graph);
  return status;
}
