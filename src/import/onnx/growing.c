/* Loop iterations that append to a carried value: recognised in the graph of a body, in which the value's own extent is
 * open. */
#include "import/onnx/growing.h"

#define MAX_DEPTH 64   /* nodes between a next value and the carried one */
#define MAX_STEPS 4096 /* over all paths: nodes that join the same value repeatedly make exponentially many */

static const berth__node *growing_maker(const berth_graph *graph, berth_value value) {
  const berth__value *v = &graph->values[value];
  return v->kind == BERTH_VALUE_NODE ? &graph->nodes[v->node] : NULL;
}

/* What is searched, and how many nodes may still be visited. */
typedef struct growth_search {
  const berth_graph *graph;
  berth_value carried;
  uint32_t axis;
  int steps_left;
} growth_search;

static int64_t growth_within(growth_search *s, berth_value value, int depth);

/* Along the axis, what is concatenated with the carried value counts; along another axis, all operands have its
 * length. */
static int64_t growth_of_concat(growth_search *s, const berth__node *node, int depth) {
  const berth_graph *graph = s->graph;
  const uint32_t rank = graph->values[node->out[0]].shape.rank;
  const int64_t given = node->attrs[BERTH__CONCAT_AXIS].i, along = given < 0 ? given + rank : given;
  int64_t total = 0, found = -1;
  bool is_open = false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const int64_t extent = graph->values[node->in[i]].shape.dim[s->axis];
    const int64_t by = found < 0 ? growth_within(s, node->in[i], depth) : -1;
    if (by >= 0) {
      found = by;
      if (along != (int64_t)s->axis) return found;
    } else if (along == (int64_t)s->axis) {
      is_open = is_open || !berth__dim_is_fixed(extent) || extent > INT32_MAX;
      total += is_open ? 0 : extent;
    }
  }
  if (found < 0) return -1;
  return is_open || found == BERTH__ONNX_GROWS_OPEN ? BERTH__ONNX_GROWS_OPEN : found + total;
}

static int64_t growth_within(growth_search *s, berth_value value, int depth) {
  if (value == s->carried) return 0;
  const bool goes_on = value != BERTH_VALUE_NONE && depth < MAX_DEPTH && s->steps_left-- > 0;
  const berth__node *node = goes_on ? growing_maker(s->graph, value) : NULL;
  if (node == NULL) return -1;
  switch (node->op->code) {
    case BERTH__OP_identity:
    case BERTH__OP_cast: return growth_within(s, node->in[0], depth + 1);
    case BERTH__OP_concat: return growth_of_concat(s, node, depth + 1);
    case BERTH__OP_choose: {
      if (node->n_in <= BERTH__CHOOSE_ELSE) return -1;
      const int64_t a = growth_within(s, node->in[BERTH__CHOOSE_THEN], depth + 1);
      const int64_t b = growth_within(s, node->in[BERTH__CHOOSE_ELSE], depth + 1);
      return a < 0 || b < 0 ? -1 : a > b ? a : b;
    }
    default: return -1;
  }
}

int64_t berth__onnx_growth_of(const berth_graph *graph, berth_value next, berth_value carried, uint32_t axis) {
  growth_search s = {.graph = graph, .carried = carried, .axis = axis, .steps_left = MAX_STEPS};
  return growth_within(&s, next, 0);
}

static uint32_t growing_count_readers(const berth_graph *graph, berth_value value, size_t since) {
  uint32_t count = 0;
  for (size_t n = since; n < graph->n_nodes; n++)
    for (uint32_t i = 0; i < graph->nodes[n].n_in; i++) count += graph->nodes[n].in[i] == value;
  return count;
}

/* Back through views, as long as nothing else reads the value. */
static berth_value growing_shown_by(const berth_graph *graph, berth_value value, berth_value stop, size_t since) {
  for (int steps = 0; value != stop && steps < MAX_DEPTH; steps++) {
    const berth__node *node = growing_maker(graph, value);
    if (node == NULL || (node->op->code != BERTH__OP_identity && node->op->code != BERTH__OP_cast)) break;
    if (graph->values[node->in[0]].type != graph->values[value].type) break;
    if (growing_count_readers(graph, node->in[0], since) != 1) break;
    value = node->in[0];
  }
  return value;
}

bool berth__onnx_is_appended(const berth_graph *graph, berth_value next, berth_value carried, uint32_t axis,
                             size_t since, const berth__node **concat) {
  if (growing_count_readers(graph, next, since) != 0 || growing_count_readers(graph, carried, since) != 1) return false;
  const berth_value joined = growing_shown_by(graph, next, carried, since);
  const berth__node *node = growing_maker(graph, joined);
  if (node == NULL || node->op->code != BERTH__OP_concat || node->n_in < 2) return false;
  const int64_t given = node->attrs[BERTH__CONCAT_AXIS].i;
  const uint32_t rank = graph->values[joined].shape.rank;
  *concat = node;
  return (given < 0 ? given + rank : given) == (int64_t)axis &&
         growing_shown_by(graph, node->in[0], carried, since) == carried;
}
