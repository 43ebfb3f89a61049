/* From ONNX nodes to berth's graph: names become values, initializers become weights and constants, nodes go to
 * handlers, functions are inlined. */
#include "import/onnx/convert.h"
#include "base/storage.h"

#include <stdio.h>

#include "import/onnx/converter.h"
#include "import/onnx/ranks.h"

#define MAX_INLINE 64     /* nesting of functions and graphs */
#define MAX_NODES 1000000 /* after inlining */

/* ---- Names ---- */

static berth_status onnx_convert_name_of(berth__onnx_converter *c, berth__span span, char **out, berth_error *err) {
  *out = NULL;
  if (memchr(span.data != NULL ? (const char *)span.data : "", '\0', span.size) != NULL)
    return berth__fail(err, BERTH_MALFORMED, "a name holds a zero byte");
  *out = berth__strndup(c->graph->ctx, span.data != NULL ? (const char *)span.data : "", span.size);
  return *out != NULL ? BERTH_OK : berth__fail_nomem(err, "a name");
}

/* The same temporarily: the converter owns the text, which the next call replaces. */
static berth_status onnx_convert_text_of(berth__onnx_converter *c, berth__span span, const char **out,
                                         berth_error *err) {
  if (span.size != 0 && memchr(span.data, '\0', span.size) != NULL)
    return berth__fail(err, BERTH_MALFORMED, "a name holds a zero byte");
  BERTH__TRY(BERTH__RESERVE(c->graph->ctx, c->text, c->text_capacity, span.size + 1, err));
  if (span.size != 0) memcpy(c->text, span.data, span.size);
  c->text[span.size] = '\0';
  *out = c->text;
  return BERTH_OK;
}

static berth_status define(berth__onnx_converter *c, const char *name, berth_value value, berth_error *err) {
  uint32_t other;
  if (berth__map_get(&c->scope->names, name, &other))
    return berth__fail(err, BERTH_MALFORMED, "'%s' is defined twice", name);
  return berth__map_put(c->graph->ctx, &c->scope->names, name, value, err);
}

/* Inner graphs see names of outer graphs; functions do not see names of their callers. */
static bool onnx_convert_look_up(const berth__onnx_converter *c, const char *name, berth_value *out) {
  for (const berth__onnx_scope *scope = c->scope; scope != NULL; scope = scope->sees_outer ? scope->outer : NULL)
    if (berth__map_get(&scope->names, name, out)) return true;
  return false;
}

/* ---- Inputs, weights, outputs ---- */

bool berth__onnx_dim_text(const berth__onnx_value *value, uint32_t axis, char out[BERTH__DIM_TEXT]) {
  const berth__span own = value->dim_name[axis];
  if (own.size >= BERTH__DIM_TEXT || (own.size != 0 && memchr(own.data, '\0', own.size) != NULL)) return false;
  if (own.size != 0 && !berth__span_is(own, "?"))
    snprintf(out, BERTH__DIM_TEXT, "%.*s", (int)own.size, (const char *)own.data);
  else
    snprintf(out, BERTH__DIM_TEXT, "%.*s.%u", (int)(value->name.size > 200 ? 200 : value->name.size),
             value->name.data != NULL ? (const char *)value->name.data : "", axis);
  return true;
}

static berth_status input_shape(const berth__onnx_converter *c, const berth__onnx_value *value, const char *name,
                                berth_shape *shape, char (*names)[BERTH__DIM_TEXT], berth_error *err) {
  if (value->other_type != NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "input '%s' is of the kind %s; only tensors are supported", name,
                       value->other_type);
  if (value->rank_is_too_large)
    return berth__fail(err, BERTH_UNSUPPORTED, "input '%s' has more than %d dimensions", name, BERTH_MAX_RANK);
  if (!value->has_shape)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "input '%s' has no shape, not even a rank, and no node that reads it says one", name);
  memset(shape, 0, sizeof *shape);
  shape->rank = value->rank;
  for (uint32_t i = 0; i < value->rank; i++) {
    shape->dim[i].extent = value->dim[i];
    if (value->dim[i] >= 0) continue;
    if (!berth__onnx_dim_text(value, i, names[i]))
      return berth__fail(err, BERTH_MALFORMED,
                         "dimension %u of input '%s' has a name that is too long or holds a zero byte", i, name);
    const berth_dim *given = berth__onnx_given_dim(c, names[i]);
    shape->dim[i] = given != NULL ? (berth_dim){.extent = given->extent} : (berth_dim){.name = names[i]};
  }
  return BERTH_OK;
}

/* Some exporters omit a shape that they do not know, and some write a scalar's: then it is what the readers of the
 * input require. */
berth__onnx_value berth__onnx_ranked_input(const berth__onnx_graph *graph, const berth__onnx_value *given) {
  berth__onnx_value value = *given;
  if ((given->has_shape && given->rank != 0) || given->other_type != NULL || given->rank_is_too_large) return value;
  const uint32_t rank = berth__onnx_wanted_rank(graph, given->name);
  if (rank == 0) return value;
  value.has_shape = true;
  value.rank = rank;
  for (uint32_t i = 0; i < rank; i++) {
    value.dim[i] = -1;
    value.dim_name[i] = (berth__span){0};
  }
  return value;
}

static berth_status add_input(berth__onnx_converter *c, const berth__onnx_value *value, berth_error *err) {
  char names[BERTH_MAX_RANK][BERTH__DIM_TEXT];
  char *name;
  berth_shape shape;
  berth_type type;
  berth_value input, other;
  BERTH__TRY(onnx_convert_name_of(c, value->name, &name, err));
  berth_status status = BERTH_OK;
  bool is_known = berth__map_get(&c->scope->names, name, &other) != 0;
  if (is_known && (other >= BERTH__ONNX_SEQUENCES || c->graph->values[other].kind != BERTH_VALUE_INPUT))
    goto done; /* old files list initializers too */
  if (name[0] == '\0') status = berth__fail(err, BERTH_MALFORMED, "an input has no name");
  if (is_known) status = berth__fail(err, BERTH_MALFORMED, "input '%s' is defined twice", name);
  if (status == BERTH_OK) status = input_shape(c, value, name, &shape, names, err);
  if (status == BERTH_OK) {
    status = berth__onnx_type(value->elem_type, &type, err);
    if (status != BERTH_OK) berth__fail_within(err, status, "input '%s'", name);
  }
  if (status == BERTH_OK) status = berth_graph_input(c->graph, name, type, shape, &input, err);
  if (status == BERTH_OK) status = define(c, name, input, err);
done:
  berth__free(c->graph->ctx, name);
  return status;
}

/* Small tensors, and integers that shapes may depend on, are constants; the rest are weights. */
static bool is_constant(berth_type type, size_t size) {
  size_t count = (size_t)berth__storage_count(berth_type_storage(type), size);
  bool may_shape = type == BERTH_I64 || type == BERTH_I32 || type == BERTH_BOOL;
  return count <= 64 || (may_shape && count <= 65536);
}

static berth_status add_weight(berth__onnx_converter *c, const char *name, berth_type type, const berth_shape *shape,
                               const void *data, void *owned, berth_value *out, berth_error *err) {
  BERTH__TRY(
      BERTH__RESERVE(c->graph->ctx, c->files->decoded, c->files->decoded_capacity, c->files->n_decoded + 1, err));
  BERTH__TRY(berth_graph_param(c->graph, name, type, *shape, out, err));
  c->graph->values[*out].data = data;
  if (owned != NULL) c->files->decoded[c->files->n_decoded++] = owned;
  return BERTH_OK;
}

static void note_absent(berth__onnx_converter *c, berth__span name, const char *why) {
  if (c->absent_why[0] == '\0')
    snprintf(c->absent_why, sizeof c->absent_why, "'%.*s': %s", BERTH__SPAN_TEXT(name), why);
}

void berth__onnx_set_absent(berth__onnx_call *call, size_t k, const char *why) {
  if (k >= call->n_out) return;
  call->out[k] = BERTH__ONNX_ABSENT;
  note_absent(call->converter, k < call->node->n_outputs ? call->node->outputs[k] : call->node->name, why);
}

/* Small ones as a constant, which can be folded, others as a weight. Takes ownership of `owned` in any case. */
static berth_status onnx_convert_add_elements(berth__onnx_converter *c, const char *name, berth_type type,
                                              berth_shape shape, const void *data, size_t size, void *owned,
                                              berth_value *out, berth_error *err) {
  const bool stays = !is_constant(type, size);
  const berth_status status = stays ? add_weight(c, name, type, &shape, data, owned, out, err)
                                    : berth_graph_constant(c->graph, name, type, shape, data, size, out, err);
  if (!stays || status != BERTH_OK) berth__free(c->graph->ctx, owned);
  return status;
}

berth_status berth__onnx_add_made(berth__onnx_call *call, berth_type type, uint32_t rank, const int64_t *dim,
                                  void *owned, berth_value *out, berth_error *err) {
  size_t size = berth_type_size(type);
  for (uint32_t i = 0; i < rank; i++) size *= (size_t)dim[i]; /* there are that many in `owned` */
  return onnx_convert_add_elements(call->converter, NULL, type, berth_shape_fixed(rank, dim), owned, size, owned, out,
                                   err);
}

berth_status berth__onnx_add_tensor(berth__onnx_converter *c, const char *name, const berth__onnx_tensor *tensor,
                                    berth_value *out, berth_error *err) {
  berth_type type;
  const void *data;
  void *owned;
  size_t size;
  BERTH__TRY(berth__onnx_elements(tensor, c->files, &type, &data, &size, &owned, err));
  return onnx_convert_add_elements(c, name, type, berth_shape_fixed(tensor->rank, tensor->dim), data, size, owned, out,
                                   err);
}

berth_status berth__onnx_add_sparse(berth__onnx_converter *c, const char *name, berth__span sparse, berth_value *out,
                                    berth__span *own_name, berth_error *err) {
  berth__onnx_tensor shape;
  berth_type type;
  void *owned;
  size_t size;
  char *made = NULL;
  BERTH__TRY(berth__onnx_dense(c->graph->ctx, sparse, &shape, &type, &owned, &size, err));
  if (own_name != NULL) *own_name = shape.name;
  berth_status status = name == NULL ? onnx_convert_name_of(c, shape.name, &made, err) : BERTH_OK;
  berth_shape dims = berth_shape_fixed(shape.rank, shape.dim);
  if (status == BERTH_OK)
    status = berth_graph_constant(c->graph, name != NULL ? name : made, type, dims, owned, size, out, err);
  berth__free(c->graph->ctx, made);
  berth__free(c->graph->ctx, owned);
  return status;
}

/* In an inner graph or a function, the name may already be used outside; the value then gets a generated one. */
static const char *free_name(const berth__onnx_converter *c, const char *name) {
  return berth_graph_find(c->graph, name) == BERTH_VALUE_NONE && name[0] != '\0' ? name : NULL;
}

static berth_status add_initializers(berth__onnx_converter *c, const berth__onnx_graph *graph, berth_error *err) {
  for (size_t i = 0; i < graph->n_initializers + graph->n_sparse; i++) {
    berth_value value;
    char *name = NULL;
    berth__span own_name = {0};
    berth_status status = BERTH_OK;
    if (i >= graph->n_initializers) {
      status = berth__onnx_add_sparse(c, NULL, graph->sparse[i - graph->n_initializers], &value, &own_name, err);
      if (status == BERTH_OK) status = onnx_convert_name_of(c, own_name, &name, err);
    } else {
      const berth__onnx_tensor *tensor = &graph->initializers[i];
      status = onnx_convert_name_of(c, tensor->name, &name, err);
      if (status == BERTH_OK && tensor->data_type == BERTH__ONNX_OF_STRINGS) {
        value = BERTH__ONNX_ABSENT;
        note_absent(c, tensor->name, "elements of type string are not supported");
      } else if (status == BERTH_OK) {
        const char *free = free_name(c, name);
        status = berth__onnx_add_tensor(c, free, tensor, &value, err);
        if (status == BERTH_OK) c->graph->values[value].is_initializer = free != NULL;
      }
    }
    if (status == BERTH_OK) status = define(c, name, value, err);
    berth__free(c->graph->ctx, name);
    BERTH__TRY(status);
  }
  return BERTH_OK;
}

/* Whether a name is that of a sequence of maps, made by ZipMap, whose tensor exists. */
static bool is_zipped(const berth__onnx_graph *graph, berth__span name) {
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const berth__onnx_node *node = &graph->nodes[i];
    if (berth__span_is(node->op, "ZipMap") && node->n_outputs == 1 && berth__span_equal(node->outputs[0], name))
      return berth__span_is(node->domain, "ai.onnx.ml");
  }
  return false;
}

static berth_status add_outputs(berth__onnx_converter *c, const berth__onnx_graph *graph, berth_error *err) {
  for (size_t i = 0; i < graph->n_outputs; i++) {
    char *name;
    berth_value value;
    uint32_t other;
    BERTH__TRY(onnx_convert_name_of(c, graph->outputs[i].name, &name, err));
    berth_status status = BERTH_OK;
    if (graph->outputs[i].other_type != NULL && !is_zipped(graph, graph->outputs[i].name))
      status = berth__fail(err, BERTH_UNSUPPORTED, "output '%s' is of the kind %s; only tensors are supported", name,
                           graph->outputs[i].other_type);
    else if (!onnx_convert_look_up(c, name, &value))
      status = berth__fail(err, BERTH_MALFORMED, "output '%s' is not defined by any node", name);
    else if (value == BERTH__ONNX_EMPTY)
      status = berth__fail(err, BERTH_UNSUPPORTED, "output '%s' is an empty optional", name);
    else if (berth__onnx_is_sequence(value))
      status = berth__fail(err, BERTH_UNSUPPORTED, "output '%s' is a sequence; only tensors are supported", name);
    else if (value == BERTH__ONNX_ABSENT)
      berth__log(c->graph->ctx, 2, "output '%s' is left out: it depends on strings (%s)", name, c->absent_why);
    else if (!berth__map_get(&c->graph->output_names, name, &other)) /* listed again: the same value */
      status = berth_graph_output(c->graph, name, value, err);
    berth__free(c->graph->ctx, name);
    BERTH__TRY(status);
  }
  if (graph->n_outputs != 0 && berth_graph_n_outputs(c->graph) == 0)
    return berth__fail(err, BERTH_UNSUPPORTED, "every output depends on strings: tensor %s", c->absent_why);
  return BERTH_OK;
}

/* ---- Nodes ---- */

static bool is_default_domain(berth__span domain) { return domain.size == 0 || berth__span_is(domain, "ai.onnx"); }

static bool same_domain(berth__span a, berth__span b) {
  if (is_default_domain(a) || is_default_domain(b)) return is_default_domain(a) && is_default_domain(b);
  return berth__span_equal(a, b);
}

static int64_t opset_of(const berth__onnx_converter *c, berth__span domain) {
  const berth__onnx_scope *scope = c->scope;
  while (scope->function == NULL && scope->sees_outer)
    scope = scope->outer; /* an inner graph also belongs to the function around it */
  const berth__onnx_function *function = scope->function;
  const berth__onnx_opset *opsets = function != NULL ? function->opsets : c->model->opsets;
  size_t n = function != NULL ? function->n_opsets : c->model->n_opsets;
  for (size_t i = 0; i < n; i++)
    if (same_domain(opsets[i].domain, domain)) return opsets[i].version;
  return 1;
}

/* The tables of each domain. */
static const berth__onnx_handler *const standard_tables[] = {
    berth__onnx_core,       berth__onnx_math,      berth__onnx_activation,
    berth__onnx_random,     berth__onnx_reduce,    berth__onnx_norm,
    berth__onnx_loss,       berth__onnx_einsum,    berth__onnx_move,
    berth__onnx_index,      berth__onnx_rearrange, berth__onnx_window,
    berth__onnx_resize,     berth__onnx_quant,     berth__onnx_detection,
    berth__onnx_sequences,  berth__onnx_recurrent, berth__onnx_signal,
    berth__onnx_control,    berth__onnx_attention, berth__onnx_linear_attention,
    berth__onnx_unofficial, berth__onnx_removed,   NULL};
static const berth__onnx_handler *const microsoft_tables[] = {berth__onnx_microsoft, berth__onnx_microsoft_quant,
                                                              berth__onnx_microsoft_attention, NULL};
static const berth__onnx_handler *const preview_tables[] = {berth__onnx_preview, NULL};
static const berth__onnx_handler *const training_tables[] = {berth__onnx_training, NULL};
static const berth__onnx_handler *const ml_tables[] = {
    berth__onnx_ml, berth__onnx_ml_labels, berth__onnx_ml_linear, berth__onnx_ml_trees, berth__onnx_ml_svm, NULL};

static const berth__onnx_handler *find_handler(berth__span op, berth__span domain) {
  const berth__onnx_handler *const *tables = NULL;
  if (is_default_domain(domain)) tables = standard_tables;
  if (berth__span_is(domain, "com.microsoft")) tables = microsoft_tables;
  if (berth__span_is(domain, "ai.onnx.preview")) tables = preview_tables;
  if (berth__span_is(domain, "ai.onnx.preview.training")) tables = training_tables;
  if (berth__span_is(domain, "ai.onnx.ml")) tables = ml_tables;
  for (; tables != NULL && *tables != NULL; tables++)
    for (const berth__onnx_handler *h = *tables; h->op != NULL; h++)
      if (berth__span_is(op, h->op)) return h;
  return NULL;
}

bool berth__onnx_knows(berth__span op, berth__span domain) { return find_handler(op, domain) != NULL; }

berth_status berth__onnx_as(berth__onnx_call *call, const char *op, int64_t opset, const berth_value *in, size_t n_in,
                            berth_value *out, size_t n_out, berth_error *err) {
  const berth__onnx_handler *handler =
      find_handler((berth__span){(const uint8_t *)op, strlen(op)}, (berth__span){NULL, 0});
  if (handler == NULL) return berth__fail(err, BERTH_UNSUPPORTED, "the op %s is not supported", op);
  berth__onnx_call other = *call;
  other.opset = opset;
  other.in = in;
  other.n_in = n_in;
  other.out = out;
  other.n_out = n_out;
  other.handler = handler;
  for (size_t i = 0; i < n_out; i++) out[i] = BERTH_VALUE_NONE;
  return handler->convert(&other, err);
}

static const berth__onnx_function *find_function(const berth__onnx_converter *c, const berth__onnx_node *node) {
  for (size_t i = 0; i < c->model->n_functions; i++) {
    const berth__onnx_function *f = &c->model->functions[i];
    if (berth__span_equal(f->name, node->op) && same_domain(f->domain, node->domain)) return f;
  }
  return NULL;
}

static berth_status onnx_convert_read_operands(berth__onnx_converter *c, const berth__onnx_node *node, berth_value *in,
                                               size_t *n_in, berth_error *err) {
  *n_in = 0;
  for (size_t i = 0; i < node->n_inputs; i++) {
    in[i] = BERTH_VALUE_NONE;
    if (node->inputs[i].size == 0) continue;
    const char *name = NULL;
    BERTH__TRY(onnx_convert_text_of(c, node->inputs[i], &name, err));
    if (!onnx_convert_look_up(c, name, &in[i]))
      return berth__fail(err, BERTH_MALFORMED, "operand %zu, '%s', is not defined by any node", i, name);
    *n_in = i + 1;
  }
  return BERTH_OK;
}

/* The results keep their names from the file, unless these are taken. */
static berth_status onnx_convert_name_results(berth__onnx_converter *c, const berth__onnx_call *call, size_t n_before,
                                              berth_error *err) {
  for (size_t i = 0; i < call->node->n_outputs; i++) {
    const char *name = NULL;
    if (call->node->outputs[i].size == 0) continue;
    if (i >= call->n_out || call->out[i] == BERTH_VALUE_NONE)
      return berth__fail(err, BERTH_UNSUPPORTED, "its output %zu is asked for, which is not supported", i);
    BERTH__TRY(onnx_convert_text_of(c, call->node->outputs[i], &name, err));
    if (call->out[i] >= n_before && call->out[i] < BERTH__ONNX_SEQUENCES && free_name(c, name) != NULL)
      BERTH__TRY(berth_graph_rename(c->graph, call->out[i], name, err));
    BERTH__TRY(define(c, name, call->out[i], err));
  }
  return BERTH_OK;
}

static bool takes_empty(berth__span op) {
  return berth__span_is(op, "Identity") || berth__span_is(op, "OptionalHasElement") ||
         berth__span_is(op, "OptionalGetElement");
}

static bool takes_sequence(const berth__onnx_handler *handler) {
  for (const berth__onnx_handler *h = berth__onnx_sequences; h->op != NULL; h++)
    if (h == handler) return true;
  return handler == NULL || strcmp(handler->op, "Identity") == 0 || strcmp(handler->op, "Loop") == 0 ||
         strncmp(handler->op, "Optional", strlen("Optional")) == 0;
}

static berth_status convert_with(berth__onnx_converter *c, berth__onnx_call *call, berth_error *err) {
  size_t n_before = c->graph->n_values;
  const berth__onnx_node *node = call->node;
  const berth__onnx_handler *handler = find_handler(node->op, node->domain);
  const berth__onnx_function *function = find_function(c, node);
  bool reads_absent = false;
  for (size_t i = 0; i < call->n_in; i++) reads_absent = reads_absent || call->in[i] == BERTH__ONNX_ABSENT;
  for (size_t i = 0; i < call->n_out; i++) call->out[i] = reads_absent ? BERTH__ONNX_ABSENT : BERTH_VALUE_NONE;
  if (reads_absent) return onnx_convert_name_results(c, call, n_before, err);
  for (size_t i = 0; i < call->n_in; i++)
    if (call->in[i] == BERTH__ONNX_EMPTY && !takes_empty(node->op))
      return berth__fail(err, BERTH_UNSUPPORTED, "operand %zu is an empty optional", i);
    else if (berth__onnx_is_sequence(call->in[i]) && function == NULL && !takes_sequence(handler))
      return berth__fail(err, BERTH_UNSUPPORTED, "operand %zu is a sequence, which this op does not take here", i);
  if (function != NULL) {
    BERTH__TRY(berth__onnx_inline(call, function, err));
  } else if (handler != NULL) {
    call->handler = handler;
    BERTH__TRY(handler->convert(call, err));
  } else {
    return berth__fail(err, BERTH_UNSUPPORTED, "the op %.*s%s%.*s is not supported", BERTH__SPAN_TEXT(node->domain),
                       node->domain.size != 0 ? "." : "", BERTH__SPAN_TEXT(node->op));
  }
  return onnx_convert_name_results(c, call, n_before, err);
}

static berth_status convert_node(berth__onnx_converter *c, const berth__onnx_node *node, berth_error *err) {
  berth_context *ctx = c->graph->ctx;
  /* One more: handlers of ops with a single result may write it even if the file does not ask for it. */
  berth_value *values = berth__alloc_array(ctx, node->n_inputs + node->n_outputs + 1, sizeof *values);
  if (values == NULL) return berth__fail_nomem(err, "a node");
  berth__onnx_call call = {.converter = c,
                           .graph = c->graph,
                           .node = node,
                           .opset = opset_of(c, node->domain),
                           .in = values,
                           .out = values + node->n_inputs,
                           .n_out = node->n_outputs};
  berth_status status = onnx_convert_read_operands(c, node, values, &call.n_in, err);
  if (status == BERTH_OK) status = convert_with(c, &call, err);
  if (c->wrong_attr != NULL && status != BERTH_NOMEM)
    status = berth__fail(err, BERTH_MALFORMED, "the attribute '%.*s' %s", BERTH__SPAN_TEXT(c->wrong_attr->name),
                         c->wrong_attr_why);
  c->wrong_attr = NULL;
  berth__free(ctx, values);
  if (status != BERTH_OK) {
    berth__span name = node->name.size != 0 || node->n_outputs == 0 ? node->name : node->outputs[0];
    /* Of nested nodes, only the outermost and the innermost are named: a message has limited room. */
    bool has_inner = err != NULL && strncmp(err->message, "ONNX node '", strlen("ONNX node '")) == 0;
    if (!has_inner || c->scope->outer == NULL)
      berth__fail_within(err, status, "ONNX node '%.*s' (%.*s)", BERTH__SPAN_TEXT(name), BERTH__SPAN_TEXT(node->op));
  }
  return status;
}

berth_status berth__onnx_convert_nodes(berth__onnx_converter *c, const berth__onnx_node *nodes, size_t n,
                                       berth_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (++c->n_converted > MAX_NODES)
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "the model has more than %d nodes once its functions are inlined and its loops unrolled",
                         MAX_NODES);
    BERTH__TRY(convert_node(c, &nodes[i], err));
  }
  return BERTH_OK;
}

berth_status berth__onnx_scope_open(berth__onnx_converter *c, berth__onnx_scope *scope, berth_error *err) {
  unsigned depth = 1;
  for (const berth__onnx_scope *s = c->scope; s != NULL; s = s->outer) depth++;
  if (depth > MAX_INLINE)
    return berth__fail(err, BERTH_MALFORMED, "functions or graphs are nested more than %d deep", MAX_INLINE);
  scope->outer = c->scope;
  c->scope = scope;
  return BERTH_OK;
}

void berth__onnx_scope_close(berth__onnx_converter *c, berth__onnx_scope *scope) {
  berth__map_clear(c->graph->ctx, &scope->names);
  c->scope = scope->outer;
}

static berth_status onnx_convert_check_call(const berth__onnx_call *call, const berth__onnx_function *f,
                                            berth_error *err) {
  if (call->n_in > f->n_inputs || call->n_out > f->n_outputs)
    return berth__fail(err, BERTH_MALFORMED, "the function has %zu operand%s and %zu result%s, not %zu and %zu",
                       f->n_inputs, berth__plural(f->n_inputs), f->n_outputs, berth__plural(f->n_outputs), call->n_in,
                       call->n_out);
  return BERTH_OK;
}

static berth_status inline_body(berth__onnx_call *call, const berth__onnx_function *f, berth_error *err) {
  berth__onnx_converter *c = call->converter;
  for (size_t i = 0; i < f->n_inputs && i < call->n_in; i++) {
    char *name;
    if (call->in[i] == BERTH_VALUE_NONE) continue;
    BERTH__TRY(onnx_convert_name_of(c, f->inputs[i], &name, err));
    berth_status status = define(c, name, call->in[i], err);
    berth__free(c->graph->ctx, name);
    BERTH__TRY(status);
  }
  BERTH__TRY(berth__onnx_convert_nodes(c, f->nodes, f->n_nodes, err));
  for (size_t i = 0; i < f->n_outputs && i < call->n_out; i++) {
    char *name;
    BERTH__TRY(onnx_convert_name_of(c, f->outputs[i], &name, err));
    bool found = onnx_convert_look_up(c, name, &call->out[i]);
    berth_status status =
        found ? BERTH_OK
              : berth__fail(err, BERTH_MALFORMED, "the function's output '%s' is not defined by any node", name);
    berth__free(c->graph->ctx, name);
    BERTH__TRY(status);
  }
  return BERTH_OK;
}

berth_status berth__onnx_inline(berth__onnx_call *call, const berth__onnx_function *function, berth_error *err) {
  berth__onnx_converter *c = call->converter;
  berth__onnx_scope scope = {.function = function, .caller = call};
  BERTH__TRY(onnx_convert_check_call(call, function, err));
  BERTH__TRY(berth__onnx_scope_open(c, &scope, err));
  berth_status status = inline_body(call, function, err);
  berth__onnx_scope_close(c, &scope);
  return status;
}

berth_status berth__onnx_convert_graph(berth__onnx_converter *c, const berth__onnx_graph *graph, berth_error *err) {
  BERTH__TRY(add_initializers(c, graph, err));
  return berth__onnx_convert_nodes(c, graph->nodes, graph->n_nodes, err);
}

berth_status berth__onnx_define(berth__onnx_converter *c, berth__span name, berth_value value, berth_error *err) {
  char *text;
  BERTH__TRY(onnx_convert_name_of(c, name, &text, err));
  berth_status status = define(c, text, value, err);
  berth__free(c->graph->ctx, text);
  return status;
}

berth_status berth__onnx_look_up(berth__onnx_converter *c, berth__span name, berth_value *out, berth_error *err) {
  char *text;
  BERTH__TRY(onnx_convert_name_of(c, name, &text, err));
  bool found = onnx_convert_look_up(c, text, out);
  berth_status status =
      found ? BERTH_OK
            : berth__fail(err, BERTH_MALFORMED, "output '%.100s' of its graph is not defined by any node", text);
  if (found && *out == BERTH__ONNX_EMPTY)
    status = berth__fail(err, BERTH_UNSUPPORTED, "output '%.100s' of its graph is an empty optional", text);
  if (found && *out == BERTH__ONNX_ABSENT)
    status = berth__fail(err, BERTH_UNSUPPORTED, "output '%.100s' of its graph depends on strings (%.100s)", text,
                         c->absent_why);
  berth__free(c->graph->ctx, text);
  return status;
}

static berth_status convert_inputs(berth__onnx_converter *c, berth_error *err) {
  const berth__onnx_graph *graph = &c->model->graph;
  BERTH__TRY(add_initializers(c, graph, err));
  for (size_t i = 0; i < graph->n_inputs; i++) {
    const berth__onnx_value input = berth__onnx_ranked_input(graph, &graph->inputs[i]);
    BERTH__TRY(add_input(c, &input, err));
  }
  return BERTH_OK;
}

static berth_status convert_rest(berth__onnx_converter *c, berth_error *err) {
  const berth__onnx_graph *graph = &c->model->graph;
  BERTH__TRY(berth__onnx_convert_nodes(c, graph->nodes, graph->n_nodes, err));
  BERTH__TRY(add_outputs(c, graph, err));
  return berth_graph_verify(c->graph, err);
}

/* What the graph rejects is an error of the file. */
static berth_status of_file(berth_status status, berth_error *err) {
  if (status != BERTH_INVALID) return status;
  if (err != NULL) err->status = BERTH_MALFORMED;
  return BERTH_MALFORMED;
}

static berth_status convert_model(berth__onnx_converter *c, berth_error *err) {
  BERTH__TRY(of_file(convert_inputs(c, err), err));
  BERTH__TRY(berth__onnx_check_given_dims(c, err));
  return of_file(convert_rest(c, err), err);
}

berth_status berth__onnx_convert(berth__onnx_model *model, const berth__onnx_wanted *wanted, berth_graph *graph,
                                 berth_error *err) {
  berth__onnx_converter converter = {
      .model = model, .files = wanted->files, .graph = graph, .dims = wanted->dims, .n_dims = wanted->n_dims};
  berth__onnx_scope scope = {.outer = NULL};
  BERTH__TRY(berth__onnx_sort(model, err));
  BERTH__TRY(berth__onnx_scope_open(&converter, &scope, err));
  berth_status status = convert_model(&converter, err);
  berth__onnx_scope_close(&converter, &scope);
  berth__free(graph->ctx, converter.text);
  for (size_t i = 0; i < converter.n_sequences; i++) berth__free(graph->ctx, converter.sequences[i].values);
  berth__free(graph->ctx, converter.sequences);
  return status;
}
