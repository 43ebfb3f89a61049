#include "ranges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

/* Ops whose results hold elements of their first operand, as numbers. */
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

static int64_t axis_of(const berth_node_info *node) {
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, "axis") == 0) return node->attrs[i].i;
  return 0;
}

/* What the second operand of a node picks from. */
static int64_t picked(const berth_graph *graph, const berth_node_info *node) {
  static const char *const by_axis[] = {"gather", "gather_elements", "scatter", NULL};
  if (strcmp(node->op, "embedding") == 0) return extent_of(graph, node->in[0], 0);
  if (is_one_of(node->op, by_axis)) return extent_of(graph, node->in[0], axis_of(node));
  if (strcmp(node->op, "gather_nd") != 0 && strcmp(node->op, "scatter_nd") != 0) return INT64_MAX;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  int64_t least = INT64_MAX;
  if (berth_graph_value(graph, node->in[0], &info, NULL) != BERTH_OK) return least;
  for (uint32_t i = 0; i < info.shape.rank; i++)
    if (info.shape.dim[i].extent < least) least = info.shape.dim[i].extent;
  return least;
}

static int64_t look(const berth_graph *graph, bool *holds) {
  int64_t least = INT64_MAX;
  for (uint32_t n = 0; n < berth_graph_n_nodes(graph); n++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, n, &node, NULL) != BERTH_OK || node.n_in == 0) continue;
    const bool is_joined = strcmp(node.op, "concat") == 0;
    for (uint32_t i = 0; i < node.n_in; i++) {
      if (node.in[i] == BERTH_VALUE_NONE || !holds[node.in[i]]) continue;
      const int64_t extent = i == 1 ? picked(graph, &node) : INT64_MAX;
      if (extent > 0 && extent < least) least = extent;
      for (uint32_t k = 0; k < node.n_out && (i == 0 || is_joined) && passes_on(node.op); k++)
        holds[node.out[k]] = true;
    }
  }
  return least;
}

int64_t ranges_of(const berth_graph *bound, berth_value input) {
  bool *holds = calloc(berth_graph_n_values(bound) + (size_t)1, sizeof(*holds));
  if (!holds) return INT64_MAX;
  holds[input] = true;
  int64_t least = look(bound, holds);
  free(holds);
  return least;
}
