/* Common subexpression elimination: of two nodes with the same op, operands and attributes, the first serves the
 * readers of both, unless it is inside a loop that does not contain the other. A node whose result is an output is
 * kept, because callers know it by its number. So is one that updates a state: each state is best made in its own
 * place, and sharing would require a copy. All readers of a state see its value before the run, so equal nodes that
 * read it are the same wherever they are. */
#include "graph/region.h"
#include "pass/pass.h"

typedef struct table {
  uint32_t *nodes; /* node + 1; 0: free */
  size_t size;     /* a power of two, at least twice the number of nodes */
} table;

/* Tells most nodes apart; attributes are compared, not hashed. */
static size_t hash_node(const berth__node *node) {
  uint64_t hash = (uint64_t)node->op->code * 0x9e3779b97f4a7c15u + node->n_out;
  for (uint32_t i = 0; i < node->n_in; i++) hash = (hash ^ node->in[i]) * 0x9e3779b97f4a7c15u;
  return (size_t)(hash ^ hash >> 32);
}

static bool is_same(const berth__node *a, const berth__node *b) {
  if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out) return false;
  if (a->n_in != 0 && memcmp(a->in, b->in, a->n_in * sizeof *a->in) != 0) return false;
  for (uint32_t i = 0; i < a->op->family->n_attrs; i++)
    if (!berth__attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  return true;
}

/* A custom op may have side effects, and a random one gives different results each time. */
static bool is_pure(const berth__node *node) {
  return node->op->code != BERTH__OP_CUSTOM && !node->op->family->is_random && !node->op->family->is_loop;
}

static bool makes_output(const berth__node *node, const bool *is_output) {
  for (uint32_t i = 0; i < node->n_out; i++)
    if (is_output[node->out[i]]) return true;
  return false;
}

/* The first node equal to this one, possibly itself. */
static uint32_t pass_same_find_first(const table *t, const berth_graph *graph, uint32_t index) {
  size_t at = hash_node(&graph->nodes[index]) & (t->size - 1);
  while (t->nodes[at] != 0) {
    uint32_t other = t->nodes[at] - 1;
    if (is_same(&graph->nodes[other], &graph->nodes[index])) return other;
    at = (at + 1) & (t->size - 1);
  }
  t->nodes[at] = index + 1;
  return index;
}

static void pass_same_share(berth_graph *graph, const table *t, const berth__regions *regions, const bool *is_output,
                            berth_value *stands_for) {
  for (size_t v = 0; v < graph->n_values; v++) stands_for[v] = (berth_value)v;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE) node->in[i] = stands_for[node->in[i]];
    uint32_t first = is_pure(node) ? pass_same_find_first(t, graph, n) : n;
    if (first == n || makes_output(node, is_output)) continue;
    if (!berth__region_sees(regions, berth__region_of(regions, n), berth__region_of(regions, first))) continue;
    for (uint32_t i = 0; i < node->n_out; i++) stands_for[node->out[i]] = graph->nodes[first].out[i];
  }
}

berth_status berth__pass_same(berth_graph *graph, berth_error *err) {
  berth_context *ctx = graph->ctx;
  table t = {.size = 4};
  while (t.size < graph->n_nodes * 2) t.size *= 2;
  t.nodes = berth__alloc_array_zero(ctx, t.size, sizeof *t.nodes);
  bool *is_output = berth__alloc_array_zero(ctx, graph->n_values, sizeof *is_output);
  berth_value *stands_for = berth__alloc_array(ctx, graph->n_values, sizeof *stands_for);
  berth__regions regions = {.count = 0};
  berth_status status = BERTH_OK;
  if (t.nodes == NULL || is_output == NULL || stands_for == NULL)
    status = berth__fail_nomem(err, "finding common subexpressions");
  else
    status = berth__regions_create(graph, &regions, err);
  if (status == BERTH_OK) {
    for (size_t i = 0; i < berth__graph_n_kept(graph); i++) is_output[berth__graph_kept(graph, i)] = true;
    pass_same_share(graph, &t, &regions, is_output, stands_for);
  }
  berth__regions_free(ctx, &regions);
  berth__free(ctx, t.nodes);
  berth__free(ctx, is_output);
  berth__free(ctx, stands_for);
  return status;
}
