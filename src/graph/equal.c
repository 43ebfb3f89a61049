/* Equality of graphs: the same values and nodes, by name, in the same order. */
#include "graph/graph.h"

/* Named dimensions are compared by name: the two graphs may number them differently. */
static bool same_dim(const berth_graph *a, int64_t x, const berth_graph *b, int64_t y) {
  if (berth__dim_is_named(x) != berth__dim_is_named(y)) return false;
  if (!berth__dim_is_named(x)) return x == y;
  return strcmp(a->dims[berth__dim_index(x)], b->dims[berth__dim_index(y)]) == 0;
}

static bool same_initial(const berth__value *x, const berth__value *y) {
  uint64_t size;
  if (x->initial == NULL || y->initial == NULL) return x->initial == y->initial;
  return berth__value_size(x, &size) &&
         memcmp(berth__blob_data(x->initial), berth__blob_data(y->initial), (size_t)size) == 0;
}

static bool same_value(const berth_graph *a, const berth__value *x, const berth_graph *b, const berth__value *y) {
  uint64_t size;
  if (strcmp(x->name, y->name) != 0 || x->kind != y->kind || x->type != y->type || x->node != y->node) return false;
  if (x->shape.rank != y->shape.rank) return false;
  for (uint32_t i = 0; i < x->shape.rank; i++)
    if (!same_dim(a, x->shape.dim[i], b, y->shape.dim[i])) return false;
  if (x->kind == BERTH_VALUE_STATE) return same_initial(x, y);
  if (x->kind != BERTH_VALUE_CONSTANT) return true;
  return berth__value_size(x, &size) && memcmp(x->data, y->data, (size_t)size) == 0;
}

static bool same_node(const berth__node *x, const berth__node *y) {
  if (strcmp(x->op->name, y->op->name) != 0 || x->n_in != y->n_in || x->n_out != y->n_out) return false;
  if (x->n_in != 0 && memcmp(x->in, y->in, x->n_in * sizeof *x->in) != 0) return false;
  if (memcmp(x->out, y->out, x->n_out * sizeof *x->out) != 0) return false;
  if (x->op->family->n_attrs != y->op->family->n_attrs) return false; /* ops of two contexts with the same name */
  for (uint32_t i = 0; i < x->op->family->n_attrs; i++)
    if (!berth__attr_equal(&x->attrs[i], &y->attrs[i])) return false;
  return true;
}

int berth_graph_equal(const berth_graph *a, const berth_graph *b) {
  if (strcmp(a->name, b->name) != 0 || !berth__same_text(a->weights_path, b->weights_path)) return 0;
  if (a->n_values != b->n_values || a->n_nodes != b->n_nodes || a->n_outputs != b->n_outputs) return 0;
  if (a->n_updates != b->n_updates) return 0;
  for (size_t i = 0; i < a->n_values; i++)
    if (!same_value(a, &a->values[i], b, &b->values[i])) return 0;
  for (size_t i = 0; i < a->n_nodes; i++)
    if (!same_node(&a->nodes[i], &b->nodes[i])) return 0;
  for (size_t i = 0; i < a->n_outputs; i++)
    if (strcmp(a->outputs[i].name, b->outputs[i].name) != 0 || a->outputs[i].value != b->outputs[i].value) return 0;
  for (size_t i = 0; i < a->n_updates; i++)
    if (a->updates[i].state != b->updates[i].state || a->updates[i].next != b->updates[i].next) return 0;
  return 1;
}
