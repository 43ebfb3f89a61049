/* Reading an ONNX model: ModelProto, GraphProto, NodeProto, AttributeProto, ValueInfoProto, TensorProto. Fields that
 * berth does not need are skipped; those that it needs must be well-formed. */
#include "import/onnx/model.h"

#define MAX_DEPTH 64 /* graphs inside attributes inside graphs */

typedef struct reader {
  berth_context *ctx;
  unsigned depth;
} reader;

#define FOR_EACH_FIELD(message, field)                                                      \
  for (bool more = true; more;)                                                             \
    if ((status = berth__wire_next(&(message), &(field), &more, err)) != BERTH_OK || !more) \
      break;                                                                                \
    else

static berth_status add_span(reader *r, berth__span **items, size_t *count, size_t *capacity, const berth__field *field,
                             const char *what, berth_error *err) {
  BERTH__TRY(berth__reserve(r->ctx, (void **)items, capacity, *count + 1, sizeof **items, err));
  BERTH__TRY(berth__wire_want_bytes(field, what, &(*items)[*count], err));
  (*count)++;
  return BERTH_OK;
}

/* ---- Tensors ---- */

static berth_status read_external(berth__span entry, berth__onnx_tensor *out, berth_error *err) {
  berth__field field;
  berth__span key = {0}, value = {0};
  berth_status status = BERTH_OK;
  FOR_EACH_FIELD(entry, field) {
    if (field.number == 1) BERTH__TRY(berth__wire_want_bytes(&field, "a key of external data", &key, err));
    if (field.number == 2) BERTH__TRY(berth__wire_want_bytes(&field, "a value of external data", &value, err));
  }
  BERTH__TRY(status);
  if (berth__span_is(key, "location")) out->external_location = value;
  if (!berth__span_is(key, "offset") && !berth__span_is(key, "length")) return BERTH_OK;
  uint64_t number = 0;
  for (size_t i = 0; i < value.size; i++) {
    if (value.data[i] < '0' || value.data[i] > '9' || number > (UINT64_MAX >> 1) / 10)
      return berth__fail(err, BERTH_MALFORMED, "an offset or length of external data is not a number");
    number = number * 10 + (uint64_t)(value.data[i] - '0');
  }
  if (berth__span_is(key, "offset"))
    out->external_offset = number;
  else
    out->external_length = number;
  return BERTH_OK;
}

static berth_status add_dim(berth__onnx_tensor *out, int64_t dim, berth_error *err) {
  if (dim < 0) return berth__fail(err, BERTH_MALFORMED, "a tensor has the negative dimension %lld", (long long)dim);
  if (out->rank < BERTH_MAX_RANK)
    out->dim[out->rank++] = dim;
  else
    out->rank_is_too_large = true;
  return BERTH_OK;
}

static berth_status read_tensor_field(berth__onnx_tensor *out, const berth__field *field, berth_error *err) {
  int64_t number;
  switch (field->number) {
    case 1: /* dims: packed or not */
      if (field->type == BERTH__WIRE_BYTES) {
        berth__span packed = field->bytes;
        while (packed.size != 0) {
          uint64_t value;
          BERTH__TRY(berth__wire_varint(&packed, &value, err));
          BERTH__TRY(add_dim(out, (int64_t)value, err));
        }
        return BERTH_OK;
      }
      BERTH__TRY(berth__wire_want_int(field, "a tensor's dimension", &number, err));
      return add_dim(out, number, err);
    case 2:
      BERTH__TRY(berth__wire_want_int(field, "a tensor's type", &number, err));
      out->data_type = (int32_t)number;
      return BERTH_OK;
    case 8: return berth__wire_want_bytes(field, "a tensor's name", &out->name, err);
    case 9: return berth__wire_want_bytes(field, "a tensor's raw data", &out->raw, err);
    case 13: {
      berth__span entry;
      BERTH__TRY(berth__wire_want_bytes(field, "external data", &entry, err));
      return read_external(entry, out, err);
    }
    case 14:
      BERTH__TRY(berth__wire_want_int(field, "a data location", &number, err));
      out->is_external = number == 1;
      return BERTH_OK;
    default: return BERTH_OK;
  }
}

berth_status berth__onnx_parse_tensor(berth__span message, berth__onnx_tensor *out, berth_error *err) {
  berth__field field;
  berth_status status = BERTH_OK;
  *out = (berth__onnx_tensor){.message = message, .external_length = UINT64_MAX};
  FOR_EACH_FIELD(message, field) BERTH__TRY(read_tensor_field(out, &field, err));
  return status;
}

static berth_status add_tensor(reader *r, berth__onnx_tensor **items, size_t *count, size_t *capacity,
                               const berth__field *field, berth_error *err) {
  berth__span message;
  BERTH__TRY(berth__reserve(r->ctx, (void **)items, capacity, *count + 1, sizeof **items, err));
  BERTH__TRY(berth__wire_want_bytes(field, "a tensor", &message, err));
  BERTH__TRY(berth__onnx_parse_tensor(message, &(*items)[*count], err));
  (*count)++;
  return BERTH_OK;
}

/* ---- Nodes and attributes ---- */

static berth_status read_graph(reader *r, berth__span message, berth__onnx_graph *out, berth_error *err);
static void free_graph(berth_context *ctx, berth__onnx_graph *graph);

static berth_status read_ints(reader *r, berth__onnx_attr *out, const berth__field *field, berth_error *err) {
  berth__span packed = field->bytes;
  uint64_t value = field->value;
  if (field->type != BERTH__WIRE_BYTES && field->type != BERTH__WIRE_VARINT)
    return berth__fail(err, BERTH_MALFORMED, "a list of integers holds something else");
  bool is_packed = field->type == BERTH__WIRE_BYTES;
  while (!is_packed || packed.size != 0) {
    if (is_packed) BERTH__TRY(berth__wire_varint(&packed, &value, err));
    BERTH__TRY(BERTH__RESERVE(r->ctx, out->ints, out->ints_capacity, out->n_ints + 1, err));
    out->ints[out->n_ints++] = (int64_t)value;
    if (!is_packed) break;
  }
  return BERTH_OK;
}

static berth_status read_floats(reader *r, berth__onnx_attr *out, const berth__field *field, berth_error *err) {
  if (field->type == BERTH__WIRE_32) {
    BERTH__TRY(BERTH__RESERVE(r->ctx, out->floats, out->floats_capacity, out->n_floats + 1, err));
    return berth__wire_want_float(field, "a number in a list", &out->floats[out->n_floats++], err);
  }
  if (field->type != BERTH__WIRE_BYTES || field->bytes.size % 4 != 0)
    return berth__fail(err, BERTH_MALFORMED, "a list of numbers holds something else");
  size_t count = field->bytes.size / 4;
  BERTH__TRY(BERTH__RESERVE(r->ctx, out->floats, out->floats_capacity, out->n_floats + count, err));
  if (count != 0) memcpy(out->floats + out->n_floats, field->bytes.data, count * 4);
  out->n_floats += count;
  return BERTH_OK;
}

static berth_status read_attr_graph(reader *r, berth__onnx_attr *out, const berth__field *field, berth_error *err) {
  berth__span message;
  BERTH__TRY(berth__wire_want_bytes(field, "a graph", &message, err));
  if (out->graph != NULL) return berth__fail(err, BERTH_MALFORMED, "an attribute has two graphs");
  out->graph = berth__alloc_zero(r->ctx, sizeof *out->graph);
  if (out->graph == NULL) return berth__fail_nomem(err, "a graph");
  return read_graph(r, message, out->graph, err);
}

static berth_status read_attr_tensor(reader *r, berth__onnx_attr *out, const berth__field *field, berth_error *err) {
  berth__span message;
  BERTH__TRY(berth__wire_want_bytes(field, "a tensor", &message, err));
  if (out->tensor == NULL) out->tensor = berth__alloc_zero(r->ctx, sizeof *out->tensor);
  if (out->tensor == NULL) return berth__fail_nomem(err, "a tensor");
  return berth__onnx_parse_tensor(message, out->tensor, err);
}

static berth_status read_attr_field(reader *r, berth__onnx_attr *out, const berth__field *field, berth_error *err) {
  int64_t number;
  switch (field->number) {
    case 1: return berth__wire_want_bytes(field, "an attribute's name", &out->name, err);
    case 2: return berth__wire_want_float(field, "an attribute's number", &out->f, err);
    case 3: return berth__wire_want_int(field, "an attribute's integer", &out->i, err);
    case 4: return berth__wire_want_bytes(field, "an attribute's string", &out->s, err);
    case 5: return read_attr_tensor(r, out, field, err);
    case 6: return read_attr_graph(r, out, field, err);
    case 7: return read_floats(r, out, field, err);
    case 8: return read_ints(r, out, field, err);
    case 9:
      return add_span(r, &out->strings, &out->n_strings, &out->strings_capacity, field, "a string in a list", err);
    case 20:
      BERTH__TRY(berth__wire_want_int(field, "an attribute's type", &number, err));
      out->type = (int)number;
      return BERTH_OK;
    case 21: return berth__wire_want_bytes(field, "a reference to an attribute", &out->ref_name, err);
    case 22: out->is_sparse = true; return berth__wire_want_bytes(field, "a sparse tensor", &out->sparse, err);
    default: return BERTH_OK;
  }
}

static berth_status add_attr(reader *r, berth__onnx_attr **items, size_t *count, size_t *capacity,
                             const berth__field *field, berth_error *err) {
  berth__span message;
  berth__field inner;
  berth_status status = BERTH_OK;
  BERTH__TRY(berth__reserve(r->ctx, (void **)items, capacity, *count + 1, sizeof **items, err));
  BERTH__TRY(berth__wire_want_bytes(field, "an attribute", &message, err));
  berth__onnx_attr *attr = &(*items)[(*count)++];
  memset(attr, 0, sizeof *attr);
  int held = 0;
  FOR_EACH_FIELD(message, inner) {
    BERTH__TRY(read_attr_field(r, attr, &inner, err));
    if (inner.number >= 2 && inner.number <= 9) held = (int)inner.number - 1; /* the type that the field implies */
  }
  if (attr->type == 0) attr->type = held;
  return status;
}

static berth_status add_node(reader *r, berth__onnx_node **items, size_t *count, size_t *capacity,
                             const berth__field *field, berth_error *err) {
  berth__span message;
  berth__field f;
  berth_status status = BERTH_OK;
  BERTH__TRY(berth__reserve(r->ctx, (void **)items, capacity, *count + 1, sizeof **items, err));
  BERTH__TRY(berth__wire_want_bytes(field, "a node", &message, err));
  berth__onnx_node *node = &(*items)[(*count)++];
  memset(node, 0, sizeof *node);
  FOR_EACH_FIELD(message, f) {
    switch (f.number) {
      case 1:
        status = add_span(r, &node->inputs, &node->n_inputs, &node->inputs_capacity, &f, "an input's name", err);
        break;
      case 2:
        status = add_span(r, &node->outputs, &node->n_outputs, &node->outputs_capacity, &f, "an output's name", err);
        break;
      case 3: status = berth__wire_want_bytes(&f, "a node's name", &node->name, err); break;
      case 4: status = berth__wire_want_bytes(&f, "a node's op", &node->op, err); break;
      case 5: status = add_attr(r, &node->attrs, &node->n_attrs, &node->attrs_capacity, &f, err); break;
      case 7: status = berth__wire_want_bytes(&f, "a node's domain", &node->domain, err); break;
      default: break;
    }
    BERTH__TRY(status);
  }
  return status;
}

/* ---- Inputs and outputs ---- */

static berth_status onnx_model_read_dim(berth__span message, berth__onnx_value *out, berth_error *err) {
  berth__field field;
  berth_status status = BERTH_OK;
  if (out->rank == BERTH_MAX_RANK) {
    out->rank_is_too_large = true;
    return BERTH_OK;
  }
  uint32_t at = out->rank++;
  out->dim[at] = -1;
  FOR_EACH_FIELD(message, field) {
    if (field.number == 1) BERTH__TRY(berth__wire_want_int(&field, "a dimension", &out->dim[at], err));
    if (field.number == 2) BERTH__TRY(berth__wire_want_bytes(&field, "a dimension's name", &out->dim_name[at], err));
  }
  if (out->dim[at] < -1) out->dim[at] = -1;
  return status;
}

static berth_status onnx_model_read_shape(berth__span message, berth__onnx_value *out, berth_error *err) {
  berth__field field;
  berth__span dim;
  berth_status status = BERTH_OK;
  out->has_shape = true;
  FOR_EACH_FIELD(message, field) {
    if (field.number != 1) continue;
    BERTH__TRY(berth__wire_want_bytes(&field, "a dimension", &dim, err));
    BERTH__TRY(onnx_model_read_dim(dim, out, err));
  }
  return status;
}

static berth_status read_tensor_type(berth__span message, berth__onnx_value *out, berth_error *err) {
  berth__field field;
  berth_status status = BERTH_OK;
  FOR_EACH_FIELD(message, field) {
    int64_t number;
    berth__span shape;
    if (field.number == 1) {
      BERTH__TRY(berth__wire_want_int(&field, "an element type", &number, err));
      out->elem_type = (int32_t)number;
    }
    if (field.number != 2) continue;
    BERTH__TRY(berth__wire_want_bytes(&field, "a shape", &shape, err));
    BERTH__TRY(onnx_model_read_shape(shape, out, err));
  }
  return status;
}

static berth_status onnx_model_read_type(berth__span message, berth__onnx_value *out, berth_error *err);

/* An optional of a tensor is read as that tensor. */
static berth_status read_optional_type(berth__span message, berth__onnx_value *out, berth_error *err) {
  berth__field field;
  berth__span inner;
  berth_status status = BERTH_OK;
  if (out->is_optional) return berth__fail(err, BERTH_MALFORMED, "an optional holds an optional");
  out->is_optional = true;
  out->other_type = "optional";
  FOR_EACH_FIELD(message, field) {
    if (field.number != 1) continue;
    BERTH__TRY(berth__wire_want_bytes(&field, "the type of an optional", &inner, err));
    BERTH__TRY(onnx_model_read_type(inner, out, err));
    if (out->elem_type != 0) out->other_type = NULL;
  }
  return status;
}

static berth_status onnx_model_read_type(berth__span message, berth__onnx_value *out, berth_error *err) {
  berth__field field;
  berth__span tensor;
  berth_status status = BERTH_OK;
  FOR_EACH_FIELD(message, field) {
    switch (field.number) {
      case 1:
        BERTH__TRY(berth__wire_want_bytes(&field, "a tensor type", &tensor, err));
        BERTH__TRY(read_tensor_type(tensor, out, err));
        break;
      case 4: out->other_type = "sequence"; break;
      case 5: out->other_type = "map"; break;
      case 8: out->other_type = "sparse tensor"; break;
      case 9:
        BERTH__TRY(berth__wire_want_bytes(&field, "an optional type", &tensor, err));
        BERTH__TRY(read_optional_type(tensor, out, err));
        break;
      default: break;
    }
  }
  return status;
}

berth_status berth__onnx_parse_value(berth__span message, berth__onnx_value *value, berth_error *err) {
  berth__span type;
  berth__field inner;
  berth_status status = BERTH_OK;
  memset(value, 0, sizeof *value);
  FOR_EACH_FIELD(message, inner) {
    if (inner.number == 1) BERTH__TRY(berth__wire_want_bytes(&inner, "a value's name", &value->name, err));
    if (inner.number != 2) continue;
    BERTH__TRY(berth__wire_want_bytes(&inner, "a value's type", &type, err));
    BERTH__TRY(onnx_model_read_type(type, value, err));
  }
  return status;
}

static berth_status add_value(reader *r, berth__onnx_value **items, size_t *count, size_t *capacity,
                              const berth__field *field, berth_error *err) {
  berth__span message;
  BERTH__TRY(berth__reserve(r->ctx, (void **)items, capacity, *count + 1, sizeof **items, err));
  BERTH__TRY(berth__wire_want_bytes(field, "an input or output", &message, err));
  BERTH__TRY(berth__onnx_parse_value(message, &(*items)[*count], err));
  (*count)++;
  return BERTH_OK;
}

/* ---- Graphs, functions, the model ---- */

static berth_status read_graph_field(reader *r, berth__onnx_graph *out, const berth__field *f, berth_error *err) {
  switch (f->number) {
    case 1: return add_node(r, &out->nodes, &out->n_nodes, &out->nodes_capacity, f, err);
    case 2: return berth__wire_want_bytes(f, "a graph's name", &out->name, err);
    case 5: return add_tensor(r, &out->initializers, &out->n_initializers, &out->initializers_capacity, f, err);
    case 11: return add_value(r, &out->inputs, &out->n_inputs, &out->inputs_capacity, f, err);
    case 12: return add_value(r, &out->outputs, &out->n_outputs, &out->outputs_capacity, f, err);
    case 13: return add_span(r, &out->infos, &out->n_infos, &out->infos_capacity, f, "a value's description", err);
    case 15: return add_span(r, &out->sparse, &out->n_sparse, &out->sparse_capacity, f, "a sparse initializer", err);
    default: return BERTH_OK;
  }
}

static berth_status read_graph(reader *r, berth__span message, berth__onnx_graph *out, berth_error *err) {
  berth__field field;
  berth_status status = BERTH_OK;
  if (++r->depth > MAX_DEPTH)
    return berth__fail(err, BERTH_MALFORMED, "graphs are nested more than %d deep", MAX_DEPTH);
  FOR_EACH_FIELD(message, field) BERTH__TRY(read_graph_field(r, out, &field, err));
  r->depth--;
  return status;
}

static berth_status add_opset(reader *r, berth__onnx_opset **items, size_t *count, size_t *capacity,
                              const berth__field *field, berth_error *err) {
  berth__span message;
  berth__field inner;
  berth_status status = BERTH_OK;
  BERTH__TRY(berth__reserve(r->ctx, (void **)items, capacity, *count + 1, sizeof **items, err));
  BERTH__TRY(berth__wire_want_bytes(field, "an opset", &message, err));
  berth__onnx_opset *opset = &(*items)[(*count)++];
  memset(opset, 0, sizeof *opset);
  FOR_EACH_FIELD(message, inner) {
    if (inner.number == 1) BERTH__TRY(berth__wire_want_bytes(&inner, "an opset's domain", &opset->domain, err));
    if (inner.number == 2) BERTH__TRY(berth__wire_want_int(&inner, "an opset's version", &opset->version, err));
  }
  return status;
}

static berth_status read_function_field(reader *r, berth__onnx_function *out, const berth__field *f, berth_error *err) {
  switch (f->number) {
    case 1: return berth__wire_want_bytes(f, "a function's name", &out->name, err);
    case 4: return add_span(r, &out->inputs, &out->n_inputs, &out->inputs_capacity, f, "an input's name", err);
    case 5: return add_span(r, &out->outputs, &out->n_outputs, &out->outputs_capacity, f, "an output's name", err);
    case 6: return add_span(r, &out->attrs, &out->n_attrs, &out->attrs_capacity, f, "an attribute's name", err);
    case 7: return add_node(r, &out->nodes, &out->n_nodes, &out->nodes_capacity, f, err);
    case 9: return add_opset(r, &out->opsets, &out->n_opsets, &out->opsets_capacity, f, err);
    case 10: return berth__wire_want_bytes(f, "a function's domain", &out->domain, err);
    case 11: return add_attr(r, &out->defaults, &out->n_defaults, &out->defaults_capacity, f, err);
    default: return BERTH_OK;
  }
}

static berth_status onnx_model_add_function(reader *r, berth__onnx_model *out, const berth__field *field,
                                            berth_error *err) {
  berth__span message;
  berth__field inner;
  berth_status status = BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(r->ctx, out->functions, out->functions_capacity, out->n_functions + 1, err));
  BERTH__TRY(berth__wire_want_bytes(field, "a function", &message, err));
  berth__onnx_function *function = &out->functions[out->n_functions++];
  memset(function, 0, sizeof *function);
  FOR_EACH_FIELD(message, inner) BERTH__TRY(read_function_field(r, function, &inner, err));
  return status;
}

static berth_status read_model_field(reader *r, berth__onnx_model *out, const berth__field *f, berth_error *err) {
  berth__span message;
  switch (f->number) {
    case 1: return berth__wire_want_int(f, "the IR version", &out->ir_version, err);
    case 2: return berth__wire_want_bytes(f, "the producer's name", &out->producer, err);
    case 3: return berth__wire_want_bytes(f, "the producer's version", &out->producer_version, err);
    case 4: return berth__wire_want_bytes(f, "the model's domain", &out->domain, err);
    case 7:
      if (out->has_graph) return berth__fail(err, BERTH_MALFORMED, "the model has two graphs");
      out->has_graph = true;
      BERTH__TRY(berth__wire_want_bytes(f, "the graph", &message, err));
      return read_graph(r, message, &out->graph, err);
    case 8: return add_opset(r, &out->opsets, &out->n_opsets, &out->opsets_capacity, f, err);
    case 25: return onnx_model_add_function(r, out, f, err);
    default: return BERTH_OK;
  }
}

static berth_status onnx_read_model(reader *r, berth__span message, berth__onnx_model *out, berth_error *err) {
  berth__field field;
  berth_status status = BERTH_OK;
  FOR_EACH_FIELD(message, field) BERTH__TRY(read_model_field(r, out, &field, err));
  BERTH__TRY(status);
  if (!out->has_graph) return berth__fail(err, BERTH_MALFORMED, "this is not an ONNX model: it has no graph");
  return BERTH_OK;
}

berth_status berth__onnx_parse(berth_context *ctx, const uint8_t *data, size_t size, berth__onnx_model *out,
                               berth_error *err) {
  reader r = {.ctx = ctx};
  *out = (berth__onnx_model){.ctx = ctx};
  berth_status status = onnx_read_model(&r, (berth__span){data, size}, out, err);
  if (status != BERTH_OK) berth__onnx_free(out);
  return status;
}

static void free_attrs(berth_context *ctx, berth__onnx_attr *attrs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    berth__free(ctx, attrs[i].ints);
    berth__free(ctx, attrs[i].floats);
    berth__free(ctx, attrs[i].strings);
    berth__free(ctx, attrs[i].tensor);
    if (attrs[i].graph != NULL) free_graph(ctx, attrs[i].graph);
    berth__free(ctx, attrs[i].graph);
  }
  berth__free(ctx, attrs);
}

static void free_nodes(berth_context *ctx, berth__onnx_node *nodes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    berth__free(ctx, nodes[i].inputs);
    berth__free(ctx, nodes[i].outputs);
    free_attrs(ctx, nodes[i].attrs, nodes[i].n_attrs);
  }
  berth__free(ctx, nodes);
}

static void free_graph(berth_context *ctx, berth__onnx_graph *graph) {
  free_nodes(ctx, graph->nodes, graph->n_nodes);
  berth__free(ctx, graph->initializers);
  berth__free(ctx, graph->sparse);
  berth__free(ctx, graph->infos);
  berth__free(ctx, graph->inputs);
  berth__free(ctx, graph->outputs);
}

void berth__onnx_free(berth__onnx_model *model) {
  berth_context *ctx = model->ctx;
  free_graph(ctx, &model->graph);
  for (size_t i = 0; i < model->n_functions; i++) {
    berth__onnx_function *f = &model->functions[i];
    berth__free(ctx, f->inputs);
    berth__free(ctx, f->outputs);
    berth__free(ctx, f->attrs);
    free_attrs(ctx, f->defaults, f->n_defaults);
    free_nodes(ctx, f->nodes, f->n_nodes);
    berth__free(ctx, f->opsets);
  }
  berth__free(ctx, model->functions);
  berth__free(ctx, model->opsets);
  *model = (berth__onnx_model){.ctx = ctx};
}
