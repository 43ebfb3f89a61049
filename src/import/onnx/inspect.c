/* What an ONNX file contains, whether or not it can be loaded. */
#include "base/math.h"
#include "import/format.h"
#include "import/onnx/converter.h"

static berth_status keep_text(berth__summary *s, berth__span span, const char **out, berth_error *err) {
  return berth__summary_text(s, span.data, span.size, out, err);
}

/* ---- Ops ---- */

static bool is_function(const berth__onnx_model *model, const berth__onnx_node *node) {
  for (size_t i = 0; i < model->n_functions; i++)
    if (berth__span_equal(model->functions[i].name, node->op) &&
        berth__span_equal(model->functions[i].domain, node->domain))
      return true;
  return false;
}

/* ONNX's own domain has two names. */
static berth_status count_op(berth__summary *s, const berth__onnx_model *model, const berth__onnx_node *node,
                             berth_error *err) {
  const berth__span own = {NULL, 0};
  char *domain = NULL, *name = NULL;
  berth_model_op *op;
  bool is_new;
  const berth__span in = berth__span_is(node->domain, "ai.onnx") ? own : node->domain;
  domain = berth__strndup(s->ctx, in.data != NULL ? (const char *)in.data : "", in.size);
  name = berth__strndup(s->ctx, node->op.data != NULL ? (const char *)node->op.data : "", node->op.size);
  berth_status status = domain != NULL && name != NULL ? BERTH_OK : berth__fail_nomem(err, "the summary of a model");
  if (status == BERTH_OK) status = berth__summary_op(s, domain, name, &op, &is_new, err);
  if (status == BERTH_OK && is_new)
    op->supported = berth__onnx_knows(node->op, node->domain) || is_function(model, node);
  berth__free(s->ctx, domain);
  berth__free(s->ctx, name);
  return status;
}

/* ---- Params ---- */

/* Bits of one element of TensorProto.DataType; 0: unknown, or of variable size. */
static uint64_t onnx_inspect_bits_of(int32_t data_type) {
  static const uint8_t bits[] = {0,  32,  8,  8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64,
                                 64, 128, 16, 8, 8,  8,  8,  4,  4, 4, 8,  2,  2};
  return data_type > 0 && (size_t)data_type < sizeof bits ? bits[data_type] : 0;
}

static berth_status count_tensor(berth__summary *s, const berth__onnx_tensor *tensor, berth_error *err) {
  uint64_t elements = tensor->rank_is_too_large ? 0 : 1, bits;
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (!berth__mul_u64(elements, (uint64_t)tensor->dim[i], &elements)) elements = 0;
  if (!berth__mul_u64(elements, onnx_inspect_bits_of(tensor->data_type), &bits)) bits = 0;
  BERTH__TRY(berth__summary_param(s, elements, (bits + 7) / 8, err));
  if (!tensor->is_external) return BERTH_OK;
  return berth__summary_file(s, tensor->external_location.data, tensor->external_location.size, err);
}

/* ---- Graphs ---- */

static berth_status count_graph(berth__summary *s, const berth__onnx_model *model, const berth__onnx_graph *graph,
                                berth_error *err);

static berth_status count_nodes(berth__summary *s, const berth__onnx_model *model, const berth__onnx_node *nodes,
                                size_t n, berth_error *err) {
  for (size_t i = 0; i < n; i++) {
    BERTH__TRY(count_op(s, model, &nodes[i], err));
    for (size_t k = 0; k < nodes[i].n_attrs; k++) {
      const berth__onnx_attr *attr = &nodes[i].attrs[k];
      if (attr->graph != NULL) BERTH__TRY(count_graph(s, model, attr->graph, err));
      if (attr->tensor != NULL) BERTH__TRY(count_tensor(s, attr->tensor, err));
    }
  }
  return BERTH_OK;
}

static berth_status count_graph(berth__summary *s, const berth__onnx_model *model, const berth__onnx_graph *graph,
                                berth_error *err) {
  for (size_t i = 0; i < graph->n_initializers; i++) BERTH__TRY(count_tensor(s, &graph->initializers[i], err));
  s->info.n_params += graph->n_sparse;
  return count_nodes(s, model, graph->nodes, graph->n_nodes, err);
}

static berth_status onnx_inspect_describe_value(berth__summary *s, const berth__onnx_value *value,
                                                berth_model_value *out, berth_error *err) {
  BERTH__TRY(keep_text(s, value->name, &out->name, err));
  out->type = value->other_type != NULL ? value->other_type : berth__onnx_type_text(value->elem_type);
  out->has_shape = value->has_shape && value->other_type == NULL;
  out->shape.rank = value->rank_is_too_large ? BERTH_MAX_RANK + 1 : value->rank;
  for (uint32_t i = 0; i < value->rank; i++) {
    out->shape.dim[i].extent = value->dim[i];
    if (value->dim[i] >= 0) continue;
    out->shape.dim[i] = (berth_dim){.name = "?"};
    if (value->dim_name[i].size != 0) BERTH__TRY(keep_text(s, value->dim_name[i], &out->shape.dim[i].name, err));
  }
  return BERTH_OK;
}

/* Old files list their initializers as inputs too. */
static bool is_initializer(const berth__onnx_graph *graph, berth__span name) {
  for (size_t i = 0; i < graph->n_initializers; i++)
    if (berth__span_equal(graph->initializers[i].name, name)) return true;
  return false;
}

static berth_status onnx_inspect_describe_values(berth__summary *s, const berth__onnx_graph *graph,
                                                 const berth__onnx_value *values, size_t n,
                                                 const berth_model_value **out, size_t *n_out, berth_error *err) {
  void *list;
  BERTH__TRY(berth__summary_list(s, n, sizeof(berth_model_value), &list, err));
  *out = list;
  for (size_t i = 0; i < n; i++)
    if (values != graph->inputs || !is_initializer(graph, values[i].name))
      BERTH__TRY(onnx_inspect_describe_value(s, &values[i], (berth_model_value *)list + (*n_out)++, err));
  return BERTH_OK;
}

static berth_status describe_opsets(berth__summary *s, const berth__onnx_model *model, berth_error *err) {
  void *list;
  BERTH__TRY(berth__summary_list(s, model->n_opsets, sizeof(berth_model_opset), &list, err));
  berth_model_opset *opsets = list;
  for (size_t i = 0; i < model->n_opsets; i++) {
    opsets[i].version = model->opsets[i].version;
    BERTH__TRY(keep_text(s, model->opsets[i].domain, &opsets[i].domain, err));
  }
  s->info.opsets = opsets;
  s->info.n_opsets = model->n_opsets;
  return BERTH_OK;
}

static berth_status onnx_inspect_summarise(berth__summary *s, const berth__onnx_model *model, berth_error *err) {
  const berth__onnx_graph *graph = &model->graph;
  berth_model_info *info = &s->info;
  info->ir_version = model->ir_version;
  info->n_functions = model->n_functions;
  BERTH__TRY(keep_text(s, graph->name, &info->name, err));
  BERTH__TRY(keep_text(s, model->producer, &info->producer, err));
  BERTH__TRY(keep_text(s, model->producer_version, &info->producer_version, err));
  BERTH__TRY(describe_opsets(s, model, err));
  BERTH__TRY(
      onnx_inspect_describe_values(s, graph, graph->inputs, graph->n_inputs, &info->inputs, &info->n_inputs, err));
  BERTH__TRY(
      onnx_inspect_describe_values(s, graph, graph->outputs, graph->n_outputs, &info->outputs, &info->n_outputs, err));
  BERTH__TRY(count_graph(s, model, graph, err));
  for (size_t i = 0; i < model->n_functions; i++)
    BERTH__TRY(count_nodes(s, model, model->functions[i].nodes, model->functions[i].n_nodes, err));
  return BERTH_OK;
}

berth_status berth__onnx_inspect(berth__summary *s, const berth__mapping *file, berth_error *err) {
  berth__onnx_model model;
  BERTH__TRY(berth__onnx_parse(s->ctx, file->data, file->size, &model, err));
  const berth_status status = onnx_inspect_summarise(s, &model, err);
  berth__onnx_free(&model);
  return status;
}
