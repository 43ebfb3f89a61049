/* Rewriting the nodes of a bound graph. */
#include "graph/rewrite.h"

#include <stdio.h>

#include "graph/region.h"

berth_status berth__rewrite_start(berth__rewrite *r, berth_graph *graph, berth_error *err) {
  *r = (berth__rewrite){.graph = graph};
  berth__node *nodes = NULL;
  size_t capacity = 0;
  BERTH__TRY(BERTH__RESERVE(graph->ctx, nodes, capacity, graph->n_nodes + 1, err));
  r->old = graph->nodes;
  r->n_old = graph->n_nodes;
  r->n_old_values = graph->n_values;
  graph->nodes = nodes;
  graph->nodes_capacity = capacity;
  graph->n_nodes = 0;
  return BERTH_OK;
}

/* Drops a value whose node was left out and that nothing else makes. */
static void drop_unmade(const berth__rewrite *r) {
  berth_graph *graph = r->graph;
  for (size_t v = 0; v < graph->n_values; v++) {
    berth__value *value = &graph->values[v];
    if (value->kind != BERTH_VALUE_NODE) continue;
    bool is_made = false;
    if (value->node < graph->n_nodes)
      for (uint32_t i = 0; i < graph->nodes[value->node].n_out; i++)
        is_made = is_made || graph->nodes[value->node].out[i] == v;
    if (is_made) continue;
    value->kind = value->blob != NULL ? BERTH_VALUE_CONSTANT : BERTH_VALUE_DROPPED;
    value->node = UINT32_MAX;
  }
}

void berth__rewrite_finish(berth__rewrite *r) {
  if (r->graph == NULL) return;
  berth_context *ctx = r->graph->ctx;
  for (size_t n = 0; n < r->n_old; n++) {
    if (r->old[n].op == NULL) continue;
    berth__free(ctx, r->old[n].in);
    berth__free(ctx, r->old[n].out);
    berth__attrs_free(ctx, r->old[n].op, r->old[n].attrs);
  }
  berth__free(ctx, r->old);
  drop_unmade(r);
  *r = (berth__rewrite){0};
}

berth_status berth__rewrite_keep(berth__rewrite *r, size_t old, berth_error *err) {
  berth_graph *graph = r->graph;
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->nodes, graph->nodes_capacity, graph->n_nodes + 1, err));
  const berth__node *node = &r->old[old];
  for (uint32_t i = 0; i < node->n_out; i++) graph->values[node->out[i]].node = (uint32_t)graph->n_nodes;
  graph->nodes[graph->n_nodes++] = *node;
  r->old[old] = (berth__node){0};
  return BERTH_OK;
}

/* Many nodes may ask for the same name, each with the next number: the last one is cached, if memory permits. */
void berth__rewrite_name(berth_graph *graph, berth_value base, const char *suffix, char *name, size_t size) {
  char stem[256];
  uint32_t other, number = 1;
  snprintf(stem, sizeof stem, "%.180s%s", graph->values[base].name, suffix);
  snprintf(name, size, "%s", stem);
  if (!berth__map_get(&graph->value_names, name, &other)) return;
  if (!berth__map_get(&graph->last_numbers, stem, &number)) number = 2;
  snprintf(name, size, "%s.%u", stem, number);
  while (berth__map_get(&graph->value_names, name, &other)) snprintf(name, size, "%s.%u", stem, ++number);
  (void)berth__map_put(graph->ctx, &graph->last_numbers, stem, number, NULL);
}

/* Rewriting uses explicit extents, never the 0 in the shape of a reshape, which means "as before". */
static bool rewrite_has_zero(berth__op_code op, const berth_attr *attrs, size_t n_attrs) {
  if (op != BERTH__OP_reshape || n_attrs != 1) return false;
  for (uint32_t i = 0; i < attrs->count; i++)
    if (attrs->kind == BERTH_ATTR_DIMS ? attrs->dims[i].name == NULL && attrs->dims[i].extent == 0
                                       : attrs->ints[i] == 0)
      return true;
  return false;
}

berth_status berth__rewrite_add(berth__rewrite *r, berth__op_code op, const berth_value *in, size_t n_in,
                                const berth_attr *attrs, size_t n_attrs, berth_value base, const char *suffix,
                                berth_value *out, berth_error *err) {
  char name[256];
  const char *names[] = {name};
  berth_attr exact[2];
  if (rewrite_has_zero(op, attrs, n_attrs)) {
    exact[BERTH__RESHAPE_SHAPE] = *attrs;
    exact[BERTH__RESHAPE_ALLOW_ZERO] = berth_attr_int("allowzero", 1);
    attrs = exact;
    n_attrs = 2;
  }
  berth__rewrite_name(r->graph, base, suffix, name, sizeof name);
  return berth__graph_add_op(r->graph, berth__op_builtin(op), in, n_in, attrs, n_attrs, names, out, 1, err);
}

berth_status berth__rewrite_make(berth__rewrite *r, berth__op_code op, const berth_value *in, size_t n_in,
                                 const berth_attr *attrs, size_t n_attrs, berth_value out, berth_error *err) {
  berth_graph *graph = r->graph;
  berth_value made;
  BERTH__TRY(berth__rewrite_add(r, op, in, n_in, attrs, n_attrs, out, "#", &made, err));
  const berth__value *a = &graph->values[made], *b = &graph->values[out];
  const bool is_same = a->type == b->type && berth__shape_equal(&a->shape, &b->shape);
  berth__node *node = &graph->nodes[graph->n_nodes - 1];
  if (!is_same)
    return berth__fail(err, BERTH_INTERNAL, "'%s' would change its type or shape when it is made by '%s'", b->name,
                       node->op->name);
  node->out[0] = out;
  graph->values[out].node = (uint32_t)graph->n_nodes - 1;
  berth__blob_release(graph->values[made].blob);
  berth__graph_drop_last_value(graph);
  return BERTH_OK;
}

bool berth__node_is_bounded(const berth_graph *graph, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE && graph->values[node->in[i]].bounded != 0) return true;
  for (uint32_t i = 0; i < node->n_out; i++)
    if (graph->values[node->out[i]].bounded != 0) return true;
  return false;
}

static void graph_rewrite_count_reads(berth__uses *uses, const berth_graph *graph, const berth__regions *regions) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    for (uint32_t i = 0; i < graph->nodes[n].n_in; i++) {
      const berth_value value = graph->nodes[n].in[i];
      if (value == BERTH_VALUE_NONE) continue;
      const bool is_apart = berth__region_of_value(regions, graph, value) != berth__region_of(regions, n);
      uses->count[value] += is_apart ? 2 : 1;
      uses->reader[value] = n;
    }
}

berth_status berth__uses_create(berth__uses *uses, const berth_graph *graph, berth_error *err) {
  berth_context *ctx = graph->ctx;
  berth__regions regions;
  BERTH__TRY(berth__regions_create(graph, &regions, err));
  uses->count = berth__alloc_array_zero(ctx, graph->n_values, sizeof *uses->count);
  uses->reader = berth__alloc_array(ctx, graph->n_values, sizeof *uses->reader);
  uses->is_output = berth__alloc_array_zero(ctx, graph->n_values, sizeof *uses->is_output);
  if (uses->count == NULL || uses->reader == NULL || uses->is_output == NULL) {
    berth__regions_free(ctx, &regions);
    berth__uses_free(uses, ctx);
    return berth__fail_nomem(err, "rewriting a graph");
  }
  for (size_t v = 0; v < graph->n_values; v++) uses->reader[v] = UINT32_MAX;
  graph_rewrite_count_reads(uses, graph, &regions);
  berth__regions_free(ctx, &regions);
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) {
    uses->count[berth__graph_kept(graph, i)]++;
    uses->is_output[berth__graph_kept(graph, i)] = true;
  }
  return BERTH_OK;
}

void berth__uses_free(berth__uses *uses, berth_context *ctx) {
  berth__free(ctx, uses->count);
  berth__free(ctx, uses->reader);
  berth__free(ctx, uses->is_output);
  *uses = (berth__uses){0};
}
