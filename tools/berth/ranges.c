#include "ranges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

/* Ops whose results consist of elements of their first operand, as numbers. */
static bool passes_on(const char *op) {
  static const char *const ops[] = {"cast",   "identity", "reshape", "flatten", "squeeze", "unsqueeze", "transpose",
                                    "expand", "narrow",   "tile",    "split",   "concat",  NULL};
  return is_one_of(op, ops);
}

static int64_t extent_of(const berth_graph *graph, berth_value value, int64_t axis) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (berth_graph_value(graph, value, &info, NULL) != BERTH_OK) return INT64_MAX;
  if (axis < 0) axis += info.shape.rank;
  return axis >= 0 && axis < (int64_t)info.shape.rank ? info.shape.dim[axis].extent : INT64_MAX;
}

static int64_t attr_of(const berth_node_info *node, const char *name, int64_t otherwise) {
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, name) == 0) return node->attrs[i].i;
  return otherwise;
}

/* The extent from which the second operand of a node picks. */
static int64_t picked(const berth_graph *graph, const berth_node_info *node) {
  static const char *const by_axis[] = {"gather", "gather_elements", "scatter", NULL};
  if (strcmp(node->op, "embedding") == 0) return extent_of(graph, node->in[0], 0);
  if (is_one_of(node->op, by_axis)) return extent_of(graph, node->in[0], attr_of(node, "axis", 0));
  if (strcmp(node->op, "gather_nd") != 0 && strcmp(node->op, "scatter_nd") != 0) return INT64_MAX;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  int64_t least = INT64_MAX;
  if (berth_graph_value(graph, node->in[0], &info, NULL) != BERTH_OK) return least;
  for (uint32_t i = 0; i < info.shape.rank; i++)
    if (info.shape.dim[i].extent < least) least = info.shape.dim[i].extent;
  return least;
}

/* The number of positions for which the rows of a write_rows fit; a ring accepts all. */
static int64_t positions(const berth_graph *graph, const berth_node_info *node) {
  const int64_t axis = attr_of(node, "axis", -2);
  if (strcmp(node->op, "write_rows") != 0 || attr_of(node, "ring", 0) != 0) return INT64_MAX;
  return extent_of(graph, node->in[0], axis) - extent_of(graph, node->in[1], axis) + 1;
}

/* The value of a constant with one element; otherwise false. */
static bool constant_of(const berth_graph *graph, berth_value value, double *number) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (value == BERTH_VALUE_NONE || berth_graph_value(graph, value, &info, NULL) != BERTH_OK || info.data == NULL ||
      berth_type_size(info.type) == 0 || info.size != berth_type_size(info.type))
    return false;
  *number = element_at(info.type, info.data, 0);
  return true;
}

static bool is_cast_to_bool(const berth_graph *graph, const berth_node_info *node) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  return strcmp(node->op, "cast") == 0 && berth_graph_value(graph, node->out[0], &info, NULL) == BERTH_OK &&
         info.type == BERTH_BOOL;
}

/* Whether a node converts its operand to a bool: 1 - x, x == 0, x != 0, x > 0, or bool(x). */
static bool reads_mask(const berth_graph *graph, const berth_node_info *node, uint32_t operand) {
  static const char *const against_zero[] = {"eq", "ne", "gt", NULL};
  double number;
  if (is_cast_to_bool(graph, node)) return true;
  if (node->n_in != 2 || !constant_of(graph, node->in[1 - operand], &number)) return false;
  if (strcmp(node->op, "sub") == 0) return operand == 1 && number == 1;
  return is_one_of(node->op, against_zero) && number == 0;
}

/* The required value of a single element, for a model with a choice that compares it. */
static bool reads_setting(const berth_graph *graph, const berth_node_info *node, uint32_t operand, double *number) {
  return strcmp(node->op, "eq") == 0 && node->n_in == 2 && constant_of(graph, node->in[1 - operand], number) &&
         *number >= 0 && *number <= INT32_MAX;
}

typedef struct search {
  const berth_graph *graph;
  bool *holds; /* one per value: it has the input's elements */
  bool is_single;
  bool is_mask;
  range found;
} search;

static void look_at(search *s, const berth_node_info *node, uint32_t operand) {
  const int64_t extent = operand == 1 ? picked(s->graph, node) : operand == 2 ? positions(s->graph, node) : INT64_MAX;
  double number = 0;
  if (extent > 0 && extent < s->found.below) s->found.below = extent;
  if (s->is_single && !s->found.has_value && reads_setting(s->graph, node, operand, &number)) {
    s->found.has_value = true;
    s->found.value = (int64_t)number;
  }
  if (!s->is_single && reads_mask(s->graph, node, operand)) s->is_mask = true;
  if ((operand != 0 && strcmp(node->op, "concat") != 0) || !passes_on(node->op)) return;
  for (uint32_t k = 0; k < node->n_out; k++) s->holds[node->out[k]] = true;
}

static void look(search *s) {
  for (uint32_t n = 0; n < berth_graph_n_nodes(s->graph); n++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(s->graph, n, &node, NULL) != BERTH_OK) continue;
    for (uint32_t i = 0; i < node.n_in; i++)
      if (node.in[i] != BERTH_VALUE_NONE && s->holds[node.in[i]]) look_at(s, &node, i);
  }
}

range ranges_of(const berth_graph *bound, berth_value input) {
  search s = {.graph = bound, .found = {.below = INT64_MAX}};
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (berth_graph_value(bound, input, &info, NULL) != BERTH_OK || element_is_float(info.type) ||
      info.type == BERTH_BOOL)
    return s.found;
  s.holds = calloc(berth_graph_n_values(bound) + (size_t)1, sizeof(*s.holds));
  if (!s.holds) return s.found;
  s.is_single = info.size == berth_type_size(info.type);
  s.holds[input] = true;
  look(&s);
  free(s.holds);
  if (s.is_mask && s.found.below == INT64_MAX) {
    s.found.has_value = true; /* ids that are compared with a padding id are not a mask */
    s.found.value = 1;
  }
  return s.found;
}
