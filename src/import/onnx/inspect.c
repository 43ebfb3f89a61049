/* What an ONNX file says of itself, whether or not it can be loaded. */
#include <stdlib.h>

#include "base/file.h"
#include "base/map.h"
#include "base/math.h"
#include "import/onnx/converter.h"

/* The lists that the public struct shows, and what they point to. */
typedef struct summary {
  berth_model_info info;
  berth_context *ctx;
  void **blocks; /* strings and lists */
  size_t n_blocks, blocks_capacity;
  berth_model_op *ops;
  size_t n_ops, ops_capacity;
  const char **files;
  size_t n_files, files_capacity;
  berth__map seen; /* "domain:op" to its place in ops */
} summary;

static berth_status keep(summary *s, void *block, berth_error *err) {
  if (block == NULL) return berth__fail_nomem(err, "the summary of a model");
  berth_status status = BERTH__RESERVE(s->ctx, s->blocks, s->blocks_capacity, s->n_blocks + 1, err);
  if (status != BERTH_OK) {
    berth__free(s->ctx, block);
    return status;
  }
  s->blocks[s->n_blocks++] = block;
  return BERTH_OK;
}

static berth_status keep_text(summary *s, berth__span span, const char **out, berth_error *err) {
  char *text = berth__strndup(s->ctx, span.data != NULL ? (const char *)span.data : "", span.size);
  *out = text;
  return keep(s, text, err);
}

static berth_status keep_list(summary *s, size_t count, size_t element, void **out, berth_error *err) {
  *out = berth__alloc_array_zero(s->ctx, count, element);
  return keep(s, *out, err);
}

/* ---- Ops ---- */

static bool is_function(const berth__onnx_model *model, const berth__onnx_node *node) {
  for (size_t i = 0; i < model->n_functions; i++)
    if (berth__span_equal(model->functions[i].name, node->op) &&
        berth__span_equal(model->functions[i].domain, node->domain))
      return true;
  return false;
}

/* "domain:op"; ONNX's own domain has two names. */
static berth_status op_key(summary *s, const berth__onnx_node *node, char **out, berth_error *err) {
  berth__span domain = berth__span_is(node->domain, "ai.onnx") ? (berth__span){NULL, 0} : node->domain;
  char *key = berth__alloc(s->ctx, domain.size + node->op.size + 2);
  *out = key;
  if (key == NULL) return berth__fail_nomem(err, "the summary of a model");
  if (domain.size != 0) memcpy(key, domain.data, domain.size);
  key[domain.size] = ':';
  if (node->op.size != 0) memcpy(key + domain.size + 1, node->op.data, node->op.size);
  key[domain.size + node->op.size + 1] = '\0';
  return BERTH_OK;
}

static berth_status add_op(summary *s, const berth__onnx_model *model, const berth__onnx_node *node, const char *key,
                           berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->ops, s->ops_capacity, s->n_ops + 1, err));
  berth_model_op op = {.supported = berth__onnx_knows(node->op, node->domain) || is_function(model, node)};
  berth__span domain = berth__span_is(node->domain, "ai.onnx") ? (berth__span){NULL, 0} : node->domain;
  BERTH__TRY(keep_text(s, domain, &op.domain, err));
  BERTH__TRY(keep_text(s, node->op, &op.name, err));
  BERTH__TRY(berth__map_put(s->ctx, &s->seen, key, (uint32_t)s->n_ops, err));
  s->ops[s->n_ops++] = op;
  return BERTH_OK;
}

static berth_status count_op(summary *s, const berth__onnx_model *model, const berth__onnx_node *node,
                             berth_error *err) {
  char *key;
  uint32_t at;
  BERTH__TRY(op_key(s, node, &key, err));
  berth_status status = BERTH_OK;
  if (!berth__map_get(&s->seen, key, &at)) {
    at = (uint32_t)s->n_ops;
    status = add_op(s, model, node, key, err);
  }
  berth__free(s->ctx, key);
  if (status == BERTH_OK) s->ops[at].count++;
  if (status == BERTH_OK) s->info.n_nodes++;
  return status;
}

static int by_count(const void *a, const void *b) {
  const berth_model_op *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : strcmp(x->domain, y->domain);
}

/* ---- Params ---- */

static berth_status add_file(summary *s, berth__span location, berth_error *err) {
  const char *name;
  for (size_t i = 0; i < s->n_files; i++)
    if (berth__span_is(location, s->files[i])) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->files, s->files_capacity, s->n_files + 1, err));
  BERTH__TRY(keep_text(s, location, &name, err));
  s->files[s->n_files++] = name;
  return BERTH_OK;
}

/* Bits of one element of TensorProto.DataType; 0: not known, or of no fixed size. */
static uint64_t bits_of(int32_t data_type) {
  static const uint8_t bits[] = {0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4};
  return data_type > 0 && (size_t)data_type < sizeof bits ? bits[data_type] : 0;
}

static berth_status count_tensor(summary *s, const berth__onnx_tensor *tensor, berth_error *err) {
  uint64_t elements = tensor->rank_is_too_large ? 0 : 1, bits;
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (!berth__mul_u64(elements, (uint64_t)tensor->dim[i], &elements)) elements = 0;
  if (!berth__mul_u64(elements, bits_of(tensor->data_type), &bits)) bits = 0;
  s->info.n_params++;
  if (!berth__add_u64(s->info.param_elements, elements, &s->info.param_elements) ||
      !berth__add_u64(s->info.param_bytes, (bits + 7) / 8, &s->info.param_bytes))
    return berth__fail(err, BERTH_MALFORMED, "the sizes of the model's tensors do not fit in 64 bits");
  return tensor->is_external ? add_file(s, tensor->external_location, err) : BERTH_OK;
}

/* ---- Graphs ---- */

static berth_status count_graph(summary *s, const berth__onnx_model *model, const berth__onnx_graph *graph,
                                berth_error *err);

static berth_status count_nodes(summary *s, const berth__onnx_model *model, const berth__onnx_node *nodes, size_t n,
                                berth_error *err) {
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

static berth_status count_graph(summary *s, const berth__onnx_model *model, const berth__onnx_graph *graph,
                                berth_error *err) {
  for (size_t i = 0; i < graph->n_initializers; i++) BERTH__TRY(count_tensor(s, &graph->initializers[i], err));
  s->info.n_params += graph->n_sparse;
  return count_nodes(s, model, graph->nodes, graph->n_nodes, err);
}

static berth_status describe_value(summary *s, const berth__onnx_value *value, berth_model_value *out,
                                   berth_error *err) {
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

static berth_status describe_values(summary *s, const berth__onnx_graph *graph, const berth__onnx_value *values,
                                    size_t n, const berth_model_value **out, size_t *n_out, berth_error *err) {
  void *list;
  BERTH__TRY(keep_list(s, n, sizeof(berth_model_value), &list, err));
  *out = list;
  for (size_t i = 0; i < n; i++)
    if (values != graph->inputs || !is_initializer(graph, values[i].name))
      BERTH__TRY(describe_value(s, &values[i], (berth_model_value *)list + (*n_out)++, err));
  return BERTH_OK;
}

static berth_status describe_opsets(summary *s, const berth__onnx_model *model, berth_error *err) {
  void *list;
  BERTH__TRY(keep_list(s, model->n_opsets, sizeof(berth_model_opset), &list, err));
  berth_model_opset *opsets = list;
  for (size_t i = 0; i < model->n_opsets; i++) {
    opsets[i].version = model->opsets[i].version;
    BERTH__TRY(keep_text(s, model->opsets[i].domain, &opsets[i].domain, err));
  }
  s->info.opsets = opsets;
  s->info.n_opsets = model->n_opsets;
  return BERTH_OK;
}

static berth_status summarise(summary *s, const berth__onnx_model *model, berth_error *err) {
  const berth__onnx_graph *graph = &model->graph;
  berth_model_info *info = &s->info;
  info->struct_size = (uint32_t)sizeof *info;
  info->format = "onnx";
  info->ir_version = model->ir_version;
  info->n_functions = model->n_functions;
  BERTH__TRY(keep_text(s, graph->name, &info->name, err));
  BERTH__TRY(keep_text(s, model->producer, &info->producer, err));
  BERTH__TRY(keep_text(s, model->producer_version, &info->producer_version, err));
  BERTH__TRY(describe_opsets(s, model, err));
  BERTH__TRY(describe_values(s, graph, graph->inputs, graph->n_inputs, &info->inputs, &info->n_inputs, err));
  BERTH__TRY(describe_values(s, graph, graph->outputs, graph->n_outputs, &info->outputs, &info->n_outputs, err));
  BERTH__TRY(count_graph(s, model, graph, err));
  for (size_t i = 0; i < model->n_functions; i++)
    BERTH__TRY(count_nodes(s, model, model->functions[i].nodes, model->functions[i].n_nodes, err));
  if (s->n_ops != 0) qsort(s->ops, s->n_ops, sizeof *s->ops, by_count);
  info->ops = s->ops;
  info->n_ops = s->n_ops;
  info->files = s->files;
  info->n_files = s->n_files;
  return BERTH_OK;
}

void berth_model_info_destroy(berth_model_info *info) {
  summary *s = (summary *)info; /* its first member */
  if (s == NULL) return;
  berth_context *ctx = s->ctx;
  for (size_t i = 0; i < s->n_blocks; i++) berth__free(ctx, s->blocks[i]);
  berth__map_clear(ctx, &s->seen);
  berth__free(ctx, s->blocks);
  berth__free(ctx, s->ops);
  berth__free(ctx, (void *)s->files);
  berth__free(ctx, s);
}

static berth_status inspect(berth_context *ctx, const berth__mapping *file, berth_model_info **out, berth_error *err) {
  berth__onnx_model model;
  BERTH__TRY(berth__onnx_parse(ctx, file->data, file->size, &model, err));
  summary *s = berth__alloc_zero(ctx, sizeof *s);
  berth_status status = s != NULL ? BERTH_OK : berth__fail_nomem(err, "the summary of a model");
  if (s != NULL) s->ctx = ctx;
  if (status == BERTH_OK) status = summarise(s, &model, err);
  berth__onnx_free(&model);
  if (status == BERTH_OK)
    *out = &s->info;
  else
    berth_model_info_destroy((berth_model_info *)s);
  return status;
}

berth_status berth_model_inspect(berth_context *ctx, const char *path, berth_model_info **out, berth_error *err) {
  berth__mapping file;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_model_inspect needs a place for what it finds");
  *out = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_model_inspect needs a context and a path");
  BERTH__TRY(berth__file_map(path, &file, err));
  berth_status status = inspect(ctx, &file, out, err);
  if (status != BERTH_OK) berth__fail_within(err, status, "%s", path);
  berth__file_unmap(&file);
  return status;
}
