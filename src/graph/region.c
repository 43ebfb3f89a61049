#include "graph/region.h"

static berth_status graph_region_fail_at(const berth_graph *graph, uint32_t node, const char *what, berth_error *err) {
  return berth__fail(err, BERTH_INVALID, "node '%s' (%s): %s", graph->values[graph->nodes[node].out[0]].name,
                     graph->nodes[node].op->name, what);
}

/* The loop_begin of a loop_end, found by the operands that must be its results. */
static berth_status find_begin(const berth_graph *graph, uint32_t end, uint32_t *out, berth_error *err) {
  const berth__node *node = &graph->nodes[end];
  uint32_t n_carried = berth__loop_end_carried(node->n_in, node->n_out);
  const berth__value *round = &graph->values[node->in[BERTH__LOOP_ROUND]];
  if (round->kind != BERTH_VALUE_NODE || graph->nodes[round->node].op->code != BERTH__OP_loop_begin)
    return graph_region_fail_at(graph, end, "its first operand is not the round of a loop_begin", err);
  const berth__node *begin = &graph->nodes[round->node];
  bool fits = begin->n_out == n_carried + BERTH__LOOP_CARRIED &&
              begin->out[BERTH__LOOP_ROUND] == node->in[BERTH__LOOP_ROUND] &&
              begin->out[BERTH__LOOP_STARTS] == node->in[BERTH__LOOP_STARTS];
  for (uint32_t i = 0; fits && i < n_carried; i++)
    fits = begin->out[BERTH__LOOP_CARRIED + i] == node->in[BERTH__LOOP_END_CARRIED + i];
  if (!fits)
    return graph_region_fail_at(graph, end, "its operands are not the results of its loop_begin, in their order", err);
  *out = round->node;
  return BERTH_OK;
}

/* end_of[begin]: the node that closes it; 0 if there is none. */
static berth_status match_ends(const berth_graph *graph, uint32_t *end_of, berth_error *err) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    uint32_t begin = 0;
    if (graph->nodes[n].op->code != BERTH__OP_loop_end) continue;
    BERTH__TRY(find_begin(graph, n, &begin, err));
    if (end_of[begin] != 0) return graph_region_fail_at(graph, n, "its loop_begin has another end", err);
    end_of[begin] = n;
  }
  return BERTH_OK;
}

static berth_status nest(const berth_graph *graph, const uint32_t *end_of, berth__regions *regions, berth_error *err) {
  uint32_t region = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    regions->of_node[n] = region;
    if (end_of[n] != 0) {
      berth__region inner = {.begin = n, .end = end_of[n], .parent = region, .depth = regions->items[region].depth + 1};
      if (region != 0 && inner.end > regions->items[region].end)
        return graph_region_fail_at(graph, n, "it lies in a loop that ends before it does", err);
      if (inner.depth > BERTH__MAX_LOOP_DEPTH)
        return berth__fail(err, BERTH_UNSUPPORTED, "loops are nested more than %d deep", BERTH__MAX_LOOP_DEPTH);
      region = regions->count;
      regions->items[regions->count++] = inner;
    } else if (region != 0 && regions->items[region].end == n) {
      region = regions->items[region].parent;
    }
  }
  return BERTH_OK;
}

uint32_t berth__region_of_value(const berth__regions *regions, const berth_graph *graph, berth_value value) {
  const berth__value *v = &graph->values[value];
  if (regions->of_node == NULL || v->kind != BERTH_VALUE_NODE) return 0;
  uint32_t region = regions->of_node[v->node];
  if (regions->items[region].end == v->node && region != 0) return regions->items[region].parent;
  if (graph->nodes[v->node].op->code != BERTH__OP_loop_begin) return region;
  return v->node + 1 < graph->n_nodes ? regions->of_node[v->node + 1] : region; /* its region begins there */
}

static berth_status check_uses(const berth_graph *graph, const berth__regions *regions, berth_error *err) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE) continue;
      uint32_t region = berth__region_of_value(regions, graph, node->in[i]);
      if (!berth__region_sees(regions, regions->of_node[n], region))
        return graph_region_fail_at(graph, n, "it reads a value from inside a loop that it is not in", err);
    }
  }
  for (size_t i = 0; i < graph->n_outputs; i++)
    if (berth__region_of_value(regions, graph, graph->outputs[i].value) != 0)
      return berth__fail(err, BERTH_INVALID, "output '%s' is a value from inside a loop", graph->outputs[i].name);
  for (size_t i = 0; i < graph->n_updates; i++)
    if (berth__region_of_value(regions, graph, graph->updates[i].next) != 0)
      return berth__fail(err, BERTH_INVALID,
                         "state '%s' is updated from '%s', a value from inside a loop; carry it through the loop and "
                         "update the state from what the loop ends with",
                         graph->values[graph->updates[i].state].name, graph->values[graph->updates[i].next].name);
  return BERTH_OK;
}

static berth_status graph_region_fill(const berth_graph *graph, berth__regions *regions, uint32_t n_loops,
                                      berth_error *err) {
  berth_context *ctx = graph->ctx;
  uint32_t *end_of = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *end_of);
  regions->items = berth__alloc_array_zero(ctx, (size_t)n_loops + 1, sizeof *regions->items);
  regions->of_node = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *regions->of_node);
  berth_status status = BERTH_OK;
  if (end_of == NULL || regions->items == NULL || regions->of_node == NULL)
    status = berth__fail_nomem(err, "loops");
  else
    status = match_ends(graph, end_of, err);
  if (status == BERTH_OK) status = nest(graph, end_of, regions, err);
  if (status == BERTH_OK) status = check_uses(graph, regions, err);
  berth__free(ctx, end_of);
  return status;
}

berth_status berth__regions_create(const berth_graph *graph, berth__regions *out, berth_error *err) {
  uint32_t n_loops = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) n_loops += graph->nodes[n].op->code == BERTH__OP_loop_end;
  *out = (berth__regions){.count = 1};
  if (n_loops == 0) return BERTH_OK;
  berth_status status = graph_region_fill(graph, out, n_loops, err);
  if (status != BERTH_OK) berth__regions_free(graph->ctx, out);
  return status;
}

void berth__regions_free(berth_context *ctx, berth__regions *regions) {
  berth__free(ctx, regions->items);
  berth__free(ctx, regions->of_node);
  *regions = (berth__regions){.count = 0};
}
