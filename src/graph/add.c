/* Adding a node: checks arity and attributes, infers, and only then changes the graph. Small results that depend on
 * constants only are computed at once, because the shapes of later nodes may depend on them. */
#include <stdio.h>

#include "graph/graph.h"

static berth_status check_arity(const berth__op *op, size_t n_in, size_t n_out, berth_error *err) {
  if (n_in < op->min_in || (op->max_in != BERTH__ANY && n_in > op->max_in)) {
    if (op->min_in == op->max_in)
      return berth__fail(err, BERTH_INVALID, "%zu operand%s %s given, it takes %u", n_in, berth__plural(n_in),
                         n_in == 1 ? "is" : "are", op->min_in);
    if (op->max_in == BERTH__ANY)
      return berth__fail(err, BERTH_INVALID, "%zu operand%s %s given, it takes %u or more", n_in, berth__plural(n_in),
                         n_in == 1 ? "is" : "are", op->min_in);
    return berth__fail(err, BERTH_INVALID, "%zu operand%s %s given, it takes %u to %u", n_in, berth__plural(n_in),
                       n_in == 1 ? "is" : "are", op->min_in, op->max_in);
  }
  if (n_out < op->min_out || (op->max_out != BERTH__ANY && n_out > op->max_out))
    return berth__fail(err, BERTH_INVALID, "%zu result%s %s asked for, it has %u", n_out, berth__plural(n_out),
                       n_out == 1 ? "is" : "are", op->min_out);
  return BERTH_OK;
}

static berth_status graph_add_check_operands(const berth_graph *graph, const berth__op *op, const berth_value *in,
                                             size_t n_in, berth_error *err) {
  for (size_t i = 0; i < n_in; i++) {
    if (in[i] == BERTH_VALUE_NONE) {
      const bool is_named = i < 32 && (op->family->may_lack >> i & 1u);
      if (!is_named && (i < op->min_in || op->max_in == BERTH__ANY))
        return berth__fail(err, BERTH_INVALID, "operand %zu is left out but is not optional", i);
    } else if (in[i] >= graph->n_values) {
      return berth__fail(err, BERTH_INVALID, "operand %zu is value %u, which the graph does not have", i, in[i]);
    }
  }
  return BERTH_OK;
}

/* A new name in an attribute adds a dimension to the graph, like one of an input. */
static berth_status add_dims(berth_graph *graph, const berth__op *op, const berth_attr *attrs, berth_error *err) {
  uint32_t index;
  for (uint32_t i = 0; i < op->family->n_attrs; i++) {
    if (attrs[i].kind != BERTH_ATTR_DIMS) continue;
    for (uint32_t k = 0; k < attrs[i].count; k++)
      if (attrs[i].dims[k].name != NULL) BERTH__TRY(berth__graph_dim(graph, attrs[i].dims[k].name, &index, err));
  }
  return BERTH_OK;
}

/* The names of the results: the given ones, or "<op>_<number>" with the next free number. */
static void name_result(const berth_graph *graph, const berth__op *op, const char *given, char *made_up,
                        size_t made_up_size, const char **name) {
  uint32_t other;
  *name = given;
  if (given != NULL) return;
  size_t number = graph->n_values;
  do {
    snprintf(made_up, made_up_size, "%.48s_%zu", op->name, number++);
  } while (berth__map_get(&graph->value_names, made_up, &other));
  *name = made_up;
}

/* Adds the values of a node; on failure those already added are removed again. */
static berth_status add_results(berth_graph *graph, const berth__op *op, const char *const *names,
                                berth__value *results, berth_value *out, size_t n_out, berth_error *err) {
  for (size_t i = 0; i < n_out; i++) {
    char made_up[80];
    const char *name;
    results[i].kind = BERTH_VALUE_NODE;
    results[i].node = (uint32_t)graph->n_nodes;
    name_result(graph, op, names != NULL ? names[i] : NULL, made_up, sizeof made_up, &name);
    berth_status status = berth__graph_new_value(graph, name, &results[i], &out[i], err);
    if (status != BERTH_OK) {
      while (i-- > 0) berth__graph_drop_last_value(graph);
      return status;
    }
  }
  return BERTH_OK;
}

static berth_status graph_add_build_node(berth_graph *graph, const berth__op *op, const berth_value *in, size_t n_in,
                                         const berth_attr *attrs, size_t n_attrs, const char *const *names,
                                         size_t n_out, berth__node *node, berth_error *err) {
  berth_context *ctx = graph->ctx;
  char label[80];
  const char *name;
  berth_status status;
  berth__value *results = NULL;
  name_result(graph, op, names != NULL ? names[0] : NULL, label, sizeof label, &name);
  status = check_arity(op, n_in, n_out, err);
  if (status == BERTH_OK) status = graph_add_check_operands(graph, op, in, n_in, err);
  if (status == BERTH_OK) status = berth__attrs_resolve(ctx, op, attrs, n_attrs, &node->attrs, err);
  if (status == BERTH_OK) status = add_dims(graph, op, node->attrs, err);
  if (status != BERTH_OK) return berth__fail_within(err, status, "node '%s' (%s)", name, op->name);
  node->in = berth__alloc_array(ctx, n_in, sizeof *node->in);
  node->out = berth__alloc_array(ctx, n_out, sizeof *node->out);
  results = berth__alloc_array_zero(ctx, n_out, sizeof *results);
  if (node->in == NULL || node->out == NULL || results == NULL) {
    status = berth__fail_nomem(err, "a node");
    goto done;
  }
  if (n_in != 0) memcpy(node->in, in, n_in * sizeof *in);
  status = berth__graph_infer(graph, op, in, n_in, node->attrs, name, results, n_out, err);
  if (status == BERTH_OK) status = add_results(graph, op, names, results, node->out, n_out, err);
done:
  berth__free(ctx, results);
  return status;
}

/* Frees a node that was not added, and removes the dimensions that it had added. */
static void graph_add_free_node(berth_graph *graph, const berth__node *node, size_t n_dims) {
  berth__graph_drop_dims(graph, n_dims);
  berth__free(graph->ctx, node->in);
  berth__free(graph->ctx, node->out);
  berth__attrs_free(graph->ctx, node->op, node->attrs);
}

berth_status berth__graph_add_op(berth_graph *graph, const berth__op *op, const berth_value *in, size_t n_in,
                                 const berth_attr *attrs, size_t n_attrs, const char *const *names, berth_value *out,
                                 size_t n_out, berth_error *err) {
  berth_context *ctx = graph->ctx;
  if (graph->n_nodes >= UINT32_MAX - 1) return berth__fail(err, BERTH_INVALID, "the graph has too many nodes");
  if (n_out == 0) return berth__fail(err, BERTH_INVALID, "op '%s' is asked for no results", op->name);
  BERTH__TRY(BERTH__RESERVE(ctx, graph->nodes, graph->nodes_capacity, graph->n_nodes + 1, err));
  berth__node node = {.op = op, .n_in = (uint32_t)n_in, .n_out = (uint32_t)n_out};
  size_t n_dims = graph->n_dims;
  berth_status status = graph_add_build_node(graph, op, in, n_in, attrs, n_attrs, names, n_out, &node, err);
  if (status != BERTH_OK) {
    graph_add_free_node(graph, &node, n_dims);
    return status;
  }
  graph->nodes[graph->n_nodes++] = node;
  status = berth__graph_evaluate_small(graph, (uint32_t)graph->n_nodes - 1, err);
  if (status != BERTH_OK) {
    graph->n_nodes--;
    for (size_t i = 0; i < n_out; i++) berth__graph_drop_last_value(graph);
    graph_add_free_node(graph, &node, n_dims);
    return status;
  }
  berth__graph_find_interval(graph, (uint32_t)graph->n_nodes - 1);
  if (out != NULL) memcpy(out, node.out, n_out * sizeof *out);
  return BERTH_OK;
}

static berth_status add_by_name(berth_graph *graph, const char *op, const berth_value *in, size_t n_in,
                                const berth_attr *attrs, size_t n_attrs, berth_value *out, size_t n_out,
                                berth_error *err) {
  if (graph == NULL || op == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_add needs a graph and an op");
  if ((in == NULL && n_in != 0) || (attrs == NULL && n_attrs != 0))
    return berth__fail(err, BERTH_INVALID, "op '%s': operands or attributes are counted but not given", op);
  if (n_in > UINT32_MAX / 2 || n_out > UINT32_MAX / 2)
    return berth__fail(err, BERTH_INVALID, "op '%s': too many operands or results", op);
  const berth__op *found = berth__op_find(graph->ctx, op);
  if (found == NULL) return berth__fail(err, BERTH_UNSUPPORTED, "there is no op '%s'; docs/ops.md lists them", op);
  if (found->tier == BERTH__MADE)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "op '%s' is internal: only rewriting makes it; docs/ops.md lists the public ops", op);
  return berth__graph_add_op(graph, found, in, n_in, attrs, n_attrs, NULL, out, n_out, err);
}

berth_status berth_graph_add(berth_graph *graph, const char *op, const berth_value *in, size_t n_in,
                             const berth_attr *attrs, size_t n_attrs, berth_value *out, size_t n_out,
                             berth_error *err) {
  /* out may be the array that in points to, so it is written last */
  berth_status status = add_by_name(graph, op, in, n_in, attrs, n_attrs, out, n_out, err);
  for (size_t i = 0; status != BERTH_OK && out != NULL && i < n_out; i++) out[i] = BERTH_VALUE_NONE;
  return status;
}
