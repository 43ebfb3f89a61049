/* The text form of a graph. Values are printed in the order of their numbers, so that parsing restores the numbers. */
#include "base/storage.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/literal.h"

static bool is_plain_name(const char *name) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-";
  return name[0] != '\0' && name[strspn(name, plain)] == '\0';
}

/* A dimension's name is unquoted only if it cannot be confused with something else. */
static bool is_plain_dim(const char *name) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0) return false;
  return (name[0] < '0' || name[0] > '9') && name[0] != '\0' && name[strspn(name, plain)] == '\0';
}

static void graph_print_name(berth__text *text, const char *name) {
  berth__text_printf(text, "%%");
  if (is_plain_name(name))
    berth__text_printf(text, "%s", name);
  else
    berth__text_escape(text, name);
}

/* Ops and their attributes: registered ones may have any name. */
static void print_word(berth__text *text, const char *name) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  if ((name[0] < '0' || name[0] > '9') && name[strspn(name, plain)] == '\0')
    berth__text_printf(text, "%s", name);
  else
    berth__text_escape(text, name);
}

static void print_dim_name(berth__text *text, const char *name) {
  if (is_plain_dim(name))
    berth__text_printf(text, "%s", name);
  else
    berth__text_escape(text, name);
}

static void print_type(berth__text *text, const berth_graph *graph, const berth__value *value) {
  berth__text_printf(text, "%s[", berth_type_name(value->type));
  for (uint32_t i = 0; i < value->shape.rank; i++) {
    int64_t dim = value->shape.dim[i];
    if (i != 0) berth__text_printf(text, ", ");
    if (berth__dim_is_fixed(dim))
      berth__text_printf(text, "%lld", (long long)dim);
    else if (berth__dim_is_named(dim))
      print_dim_name(text, graph->dims[berth__dim_index(dim)]);
    else
      berth__text_escape(text, "?");
  }
  berth__text_printf(text, "]");
}

static void print_attr(berth__text *text, const berth_attr *attr) {
  print_word(text, attr->name);
  berth__text_printf(text, " = ");
  switch (attr->kind) {
    case BERTH_ATTR_INT: berth__text_printf(text, "%lld", (long long)attr->i); return;
    case BERTH_ATTR_FLOAT: berth__literal_print_double(text, attr->f); return;
    case BERTH_ATTR_STRING: berth__text_escape(text, attr->s); return;
    default: break;
  }
  berth__text_printf(text, "[");
  for (uint32_t i = 0; i < attr->count; i++) {
    if (i != 0) berth__text_printf(text, ", ");
    if (attr->kind == BERTH_ATTR_INTS)
      berth__text_printf(text, "%lld", (long long)attr->ints[i]);
    else if (attr->kind == BERTH_ATTR_FLOATS)
      berth__literal_print_double(text, attr->floats[i]);
    else if (attr->dims[i].name != NULL)
      print_dim_name(text, attr->dims[i].name);
    else
      berth__text_printf(text, "%lld", (long long)attr->dims[i].extent);
  }
  berth__text_printf(text, "]");
}

/* Attributes with their default are omitted, unless the text would be refused without them. */
static void print_attrs(berth__text *text, const berth__node *node) {
  bool any = false;
  for (uint32_t i = 0; i < node->op->family->n_attrs; i++) {
    const berth__family *family = node->op->family;
    if (!berth__attr_is_required(family, i) && berth__attr_equal(&node->attrs[i], &family->attrs[i])) continue;
    berth__text_printf(text, any ? ", " : " {");
    print_attr(text, &node->attrs[i]);
    any = true;
  }
  if (any) berth__text_printf(text, "}");
}

static void print_node(berth__text *text, const berth_graph *graph, const berth__node *node) {
  berth__text_printf(text, "  ");
  for (uint32_t i = 0; i < node->n_out; i++) {
    if (i != 0) berth__text_printf(text, ", ");
    graph_print_name(text, graph->values[node->out[i]].name);
  }
  berth__text_printf(text, " = ");
  print_word(text, node->op->name);
  berth__text_printf(text, "(");
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (i != 0) berth__text_printf(text, ", ");
    if (node->in[i] == BERTH_VALUE_NONE)
      berth__text_printf(text, "_");
    else
      graph_print_name(text, graph->values[node->in[i]].name);
  }
  berth__text_printf(text, ")");
  print_attrs(text, node);
  for (uint32_t i = 0; i < node->n_out; i++) {
    berth__text_printf(text, i == 0 ? " : " : ", ");
    print_type(text, graph, &graph->values[node->out[i]]);
  }
  berth__text_printf(text, "\n");
}

static void print_source(berth__text *text, const berth_graph *graph, const berth__value *value) {
  static const char *const word[] = {"", "input", "param", "const", "", "", "state"};
  uint64_t size;
  berth__text_printf(text, "  %s ", word[value->kind]);
  graph_print_name(text, value->name);
  berth__text_printf(text, " : ");
  print_type(text, graph, value);
  const void *data = value->initial != NULL ? berth__blob_data(value->initial) : value->data;
  if (value->kind == BERTH_VALUE_STATE && value->initial == NULL) {
    berth__text_printf(text, " = zeros");
  } else if (value->kind != BERTH_VALUE_INPUT && value->kind != BERTH_VALUE_PARAM && berth__value_size(value, &size)) {
    berth__text_printf(text, " = ");
    berth__literal_print(text, value->type, data, berth__storage_count(berth_type_storage(value->type), size));
  }
  berth__text_printf(text, "\n");
}

static void print_source_once(berth__text *text, const berth_graph *graph, berth_value value, bool *printed) {
  if (value == BERTH_VALUE_NONE || printed[value]) return;
  const berth_value_kind kind = graph->values[value].kind;
  printed[value] = true;
  if (kind != BERTH_VALUE_NODE && kind != BERTH_VALUE_DROPPED) print_source(text, graph, &graph->values[value]);
}

/* In the order of nodes, which in a plan's graph is not that of their results; operands come first. */
static void print_values(berth__text *text, const berth_graph *graph, bool *printed) {
  size_t next = 0;
  for (size_t v = 0; v < graph->n_values; v++) {
    const berth__value *value = &graph->values[v];
    print_source_once(text, graph, (berth_value)v, printed);
    if (value->kind != BERTH_VALUE_NODE || graph->nodes[value->node].out[0] != v) continue;
    const berth__node *node = &graph->nodes[next++];
    for (uint32_t i = 0; i < node->n_in; i++) print_source_once(text, graph, node->in[i], printed);
    print_node(text, graph, node);
  }
}

berth_status berth_graph_print(const berth_graph *graph, berth_write_fn write, void *user, berth_error *err) {
  berth__text text;
  if (graph == NULL || write == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_graph_print needs a graph and a write function");
  bool *printed = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *printed);
  if (printed == NULL) return berth__fail_nomem(err, "a text");
  berth__text_init(&text, graph->ctx, write, user);
  berth__text_printf(&text, "graph ");
  berth__text_escape(&text, graph->name);
  berth__text_printf(&text, " {\n");
  if (graph->weights_path != NULL) {
    berth__text_printf(&text, "  weights ");
    berth__text_escape(&text, graph->weights_path);
    berth__text_printf(&text, "\n");
  }
  print_values(&text, graph, printed);
  berth__free(graph->ctx, printed);
  for (size_t i = 0; i < graph->n_updates; i++) {
    berth__text_printf(&text, "  update ");
    graph_print_name(&text, graph->values[graph->updates[i].state].name);
    berth__text_printf(&text, " = ");
    graph_print_name(&text, graph->values[graph->updates[i].next].name);
    berth__text_printf(&text, "\n");
  }
  for (size_t i = 0; i < graph->n_outputs; i++) {
    berth__text_printf(&text, "  output ");
    berth__text_escape(&text, graph->outputs[i].name);
    berth__text_printf(&text, " = ");
    graph_print_name(&text, graph->values[graph->outputs[i].value].name);
    berth__text_printf(&text, "\n");
  }
  berth__text_printf(&text, "}\n");
  return berth__text_finish(&text, err);
}
