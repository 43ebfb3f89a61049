/* Inputs that determine shapes. */
#include <math.h>

#include "graph/graph.h"

/* Operands whose elements determine shapes; bounds_too: also those without which extents still have an upper bound. */
static uint32_t valued_operands(const berth__node *node, bool bounds_too) {
  const berth__family *family = node->op->family;
  const bool has_bound = family->bound_attr == 0 || node->attrs[family->bound_attr - 1].count != 0;
  return family->valued & ~(has_bound && !bounds_too ? family->bounded : 0u);
}

static bool graph_fix_is_open(const berth__shape *shape) {
  for (uint32_t i = 0; i < shape->rank; i++)
    if (shape->dim[i] == BERTH__DIM_UNKNOWN) return true;
  return false;
}

/* A loop's trips determine shapes only if something is stacked or grows, a condition only if the sides differ. */
static bool is_valued(const berth_graph *graph, const berth__node *node, uint32_t operand, bool bounds_too) {
  if (operand >= 32 || !(valued_operands(node, bounds_too) >> operand & 1u)) return false;
  if (node->op->code == BERTH__OP_choose) return graph_fix_is_open(&graph->values[node->out[0]].shape);
  if (node->op->code == BERTH__OP_loop_begin) return node->attrs[BERTH__LOOP_GROWS].count != 0;
  return node->op->code != BERTH__OP_loop_end ||
         node->n_out > BERTH__LOOP_LAST + berth__loop_end_carried(node->n_in, node->n_out);
}

/* Whether sizes have a bound that follows from the interval of their elements: ops whose inference takes one. */
static bool has_bound(const berth_graph *graph, const berth__node *node, uint32_t operand) {
  const berth__value *value = &graph->values[node->in[operand]];
  const berth__interval *all = &value->interval;
  if (value->type != BERTH_I64 && value->type != BERTH_I32) return false;
  switch (node->op->code) {
    case BERTH__OP_resize:
    case BERTH__OP_expand:
    case BERTH__OP_reshape:
    case BERTH__OP_tile:
    case BERTH__OP_range:
    case BERTH__OP_loop_begin:
    case BERTH__OP_loop_end: return all->is_known && all->low > -INFINITY && all->high < INFINITY;
    default: return false;
  }
}

/* An op that reads only shapes does not propagate demand: its result does not depend on elements. */
static void mark_demanded(const berth_graph *graph, bool bounds_too, bool *demanded) {
  for (size_t n = graph->n_nodes; n-- > 0;) {
    const berth__node *node = &graph->nodes[n];
    bool wanted = false;
    for (uint32_t i = 0; i < node->n_out; i++) wanted = wanted || demanded[node->out[i]];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE) continue;
      const bool is_size = is_valued(graph, node, i, bounds_too) && (bounds_too || !has_bound(graph, node, i));
      if (is_size || (wanted && !berth__op_reads_shape_only(node->op))) demanded[node->in[i]] = true;
    }
  }
}

int berth_graph_shapes_depend(const berth_graph *graph, berth_value input) {
  if (graph == NULL || input >= graph->n_values || graph->values[input].kind != BERTH_VALUE_INPUT) return 0;
  bool *demanded = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *demanded);
  if (demanded == NULL) return 0;
  mark_demanded(graph, false, demanded);
  const bool must_be_known = demanded[input];
  mark_demanded(graph, true, demanded);
  const int result = must_be_known ? BERTH_SHAPES_NEED : demanded[input] ? BERTH_SHAPES_BOUNDED : BERTH_SHAPES_FREE;
  berth__free(graph->ctx, demanded);
  return result;
}

static berth_status check_fix(const berth_graph *graph, berth_value value, berth_type type, const berth__shape *shape,
                              berth_error *err) {
  const berth__value *v = &graph->values[value];
  char wanted[BERTH__SHAPE_TEXT], given[BERTH__SHAPE_TEXT];
  bool agrees = v->type == type && v->shape.rank == shape->rank;
  for (uint32_t i = 0; agrees && i < shape->rank; i++)
    agrees = !berth__dim_is_fixed(v->shape.dim[i]) || v->shape.dim[i] == shape->dim[i];
  if (agrees) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "input '%s' is %s%s, a constant of %s%s does not fit", v->name,
                     berth_type_name(v->type), berth__shape_text(&v->shape, wanted), berth_type_name(type),
                     berth__shape_text(shape, given));
}

/* Infers a node again when more is known. */
static berth_status infer_again(berth_graph *graph, uint32_t index, berth_error *err) {
  const berth__node *node = &graph->nodes[index];
  berth_context *ctx = graph->ctx;
  berth__value *results = berth__alloc_array_zero(ctx, node->n_out, sizeof *results);
  berth_status status = BERTH_OK;
  if (results == NULL)
    status = berth__fail_nomem(err, "inference");
  else
    status = berth__graph_infer(graph, node->op, node->in, node->n_in, node->attrs, graph->values[node->out[0]].name,
                                results, node->n_out, err);
  for (uint32_t i = 0; status == BERTH_OK && i < node->n_out; i++) {
    graph->values[node->out[i]].shape = results[i].shape;
    graph->values[node->out[i]].bounded = results[i].bounded;
  }
  berth__free(ctx, results);
  if (status == BERTH_OK) status = berth__graph_evaluate_small(graph, index, err);
  if (status == BERTH_OK) berth__graph_find_interval(graph, index);
  return status;
}

static void restore(berth_graph *graph, const berth__value *before) {
  for (size_t v = 0; v < graph->n_values; v++) {
    if (graph->values[v].blob != before[v].blob) berth__blob_release(graph->values[v].blob);
    graph->values[v] = before[v];
  }
}

static void remove_input(berth_graph *graph, berth_value value) {
  size_t kept = 0;
  for (size_t i = 0; i < graph->n_inputs; i++)
    if (graph->inputs[i] != value) graph->inputs[kept++] = graph->inputs[i];
  graph->n_inputs = kept;
}

/* Takes ownership of the blob on success. */
static berth_status make_constant(berth_graph *graph, berth_value value, const berth__shape *shape, berth__blob *blob,
                                  berth_error *err) {
  berth__value *before = berth__alloc_array(graph->ctx, graph->n_values, sizeof *before);
  berth_status status = BERTH_OK;
  if (before == NULL) return berth__fail_nomem(err, "a constant");
  memcpy(before, graph->values, graph->n_values * sizeof *before);
  berth__blob_retain(blob);
  berth__value *v = &graph->values[value];
  v->kind = BERTH_VALUE_CONSTANT;
  v->shape = *shape;
  v->blob = blob;
  v->data = berth__blob_data(blob);
  for (uint32_t n = 0; n < graph->n_nodes && status == BERTH_OK; n++) status = infer_again(graph, n, err);
  if (status != BERTH_OK) restore(graph, before);
  berth__free(graph->ctx, before);
  return status;
}

berth_status berth_graph_fix(berth_graph *graph, const char *input, berth_type type, uint32_t rank,
                             const int64_t *extents, const void *data, size_t size, berth_error *err) {
  berth__shape shape = {.rank = rank};
  uint64_t bytes;
  if (graph == NULL || input == NULL || rank > BERTH_MAX_RANK || (rank != 0 && extents == NULL))
    return berth__fail(err, BERTH_INVALID, "berth_graph_fix needs a graph, an input and a shape");
  berth_value value = berth_graph_find(graph, input);
  if (value == BERTH_VALUE_NONE || graph->values[value].kind != BERTH_VALUE_INPUT)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has no input '%s'", graph->name, input);
  for (uint32_t i = 0; i < rank; i++) shape.dim[i] = extents[i];
  BERTH__TRY(check_fix(graph, value, type, &shape, err));
  berth__value fixed = {.type = type, .shape = shape};
  if (!berth__value_size(&fixed, &bytes) || bytes != size || (data == NULL && size != 0))
    return berth__fail(err, BERTH_INVALID, "input '%s': %zu bytes do not make up its shape", input, size);
  berth__blob *blob = berth__blob_create(graph->ctx, data, size);
  if (blob == NULL) return berth__fail_nomem(err, "a constant");
  berth_status status = make_constant(graph, value, &shape, blob, err);
  berth__blob_release(blob);
  if (status == BERTH_OK) remove_input(graph, value);
  return status;
}
