/* From the statements of the text form to a graph: resolves names, orders statements, and adds each through the same
 * functions as a caller (inference, checks). */
#include <stdio.h>

#include "graph/graph.h"
#include "graph/statement.h"
#include "graph/topo.h"

typedef struct builder {
  berth_context *ctx;
  const berth__document *document;
  berth__map definers; /* name -> statement */
  berth__edge *edges;
  size_t n_edges, edges_capacity;
  uint32_t *order;
  berth_graph *graph;
} builder;

static berth_status graph_parse_fail_at(uint32_t line, berth_error *err, berth_status status) {
  return berth__fail_within(err, status, "line %u", line);
}

static berth_status collect_names(builder *b, berth_error *err) {
  for (uint32_t i = 0; i < b->document->n_statements; i++) {
    const berth__statement *s = &b->document->statements[i];
    for (size_t k = 0; k < s->n_names; k++) {
      uint32_t other;
      if (berth__map_get(&b->definers, s->names[k], &other))
        return berth__fail(err, BERTH_MALFORMED, "line %u: '%s' is already defined in line %u", s->line, s->names[k],
                           b->document->statements[other].line);
      BERTH__TRY(berth__map_put(b->ctx, &b->definers, s->names[k], i, err));
    }
  }
  return BERTH_OK;
}

static berth_status graph_parse_collect_edges(builder *b, berth_error *err) {
  for (uint32_t i = 0; i < b->document->n_statements; i++) {
    const berth__statement *s = &b->document->statements[i];
    for (size_t k = 0; k < s->n_operands; k++) {
      uint32_t from;
      if (s->operands[k] == NULL) continue;
      if (!berth__map_get(&b->definers, s->operands[k], &from))
        return berth__fail(err, BERTH_MALFORMED, "line %u: node '%s' (%s) reads '%s', which nothing defines", s->line,
                           s->names[0], s->op, s->operands[k]);
      BERTH__TRY(BERTH__RESERVE(b->ctx, b->edges, b->edges_capacity, b->n_edges + 1, err));
      b->edges[b->n_edges++] = (berth__edge){.from = from, .to = i};
    }
  }
  return BERTH_OK;
}

static berth_status sort_statements(builder *b, berth_error *err) {
  uint32_t on_cycle = 0;
  b->order = berth__alloc_array(b->ctx, b->document->n_statements, sizeof *b->order);
  if (b->order == NULL) return berth__fail_nomem(err, "sorting the nodes");
  berth_status status =
      berth__topo_order(b->ctx, (uint32_t)b->document->n_statements, b->edges, b->n_edges, b->order, &on_cycle, err);
  if (status != BERTH_INVALID) return status;
  const berth__statement *s = &b->document->statements[on_cycle];
  return berth__fail(err, BERTH_MALFORMED, "line %u: node '%s' (%s) depends on itself: the graph has a cycle", s->line,
                     s->names[0], s->op);
}

static bool annotation_agrees(const berth_shape *said, const berth_shape *inferred) {
  if (said->rank != inferred->rank) return false;
  for (uint32_t i = 0; i < said->rank; i++) {
    const berth_dim *a = &said->dim[i], *b = &inferred->dim[i];
    if ((a->name == NULL) != (b->name == NULL)) return false;
    if (a->name != NULL ? strcmp(a->name, b->name) != 0 : a->extent != b->extent) return false;
  }
  return true;
}

static berth_status check_annotations(const builder *b, const berth__statement *s, const berth_value *out,
                                      berth_error *err) {
  for (size_t i = 0; i < s->n_types; i++) {
    const berth__value *value = &b->graph->values[out[i]];
    berth_shape inferred = berth__shape_export(b->graph, &value->shape);
    char text[BERTH__SHAPE_TEXT];
    if (s->types[i] != value->type || !annotation_agrees(&s->shapes[i], &inferred))
      return berth__fail(err, BERTH_MALFORMED,
                         "'%s' is written as another type or shape than its operands make it: %s%s", value->name,
                         berth_type_name(value->type), berth__shape_text(&value->shape, text));
  }
  return BERTH_OK;
}

static berth_status graph_parse_build_node(builder *b, const berth__statement *s, berth_error *err) {
  const berth__op *op = berth__op_find(b->ctx, s->op);
  if (op == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "node '%s': there is no op '%s'; docs/ops.md lists them", s->names[0],
                       s->op);
  berth_value *values = berth__alloc_array(b->ctx, s->n_operands + s->n_names, sizeof *values);
  if (values == NULL) return berth__fail_nomem(err, "a node");
  for (size_t i = 0; i < s->n_operands; i++)
    values[i] = s->operands[i] != NULL ? berth_graph_find(b->graph, s->operands[i]) : BERTH_VALUE_NONE;
  berth_value *out = values + s->n_operands;
  berth_status status =
      berth__graph_add_op(b->graph, op, values, s->n_operands, s->attrs, s->n_attrs, s->names, out, s->n_names, err);
  if (status == BERTH_OK) status = check_annotations(b, s, out, err);
  berth__free(b->ctx, values);
  return status;
}

static berth_status build_statement(builder *b, const berth__statement *s, berth_error *err) {
  switch (s->kind) {
    case BERTH__STATEMENT_INPUT: return berth_graph_input(b->graph, s->names[0], s->types[0], s->shapes[0], NULL, err);
    case BERTH__STATEMENT_PARAM: return berth_graph_param(b->graph, s->names[0], s->types[0], s->shapes[0], NULL, err);
    case BERTH__STATEMENT_CONST:
      return berth_graph_constant(b->graph, s->names[0], s->types[0], s->shapes[0], s->data, s->data_size, NULL, err);
    case BERTH__STATEMENT_STATE:
      return berth_graph_state(b->graph, s->names[0], s->types[0], s->shapes[0], s->data, s->data_size, NULL, err);
    case BERTH__STATEMENT_NODE: break;
  }
  return graph_parse_build_node(b, s, err);
}

static berth_status build_outputs(builder *b, berth_error *err) {
  for (size_t i = 0; i < b->document->n_outputs; i++) {
    const berth__text_output *output = &b->document->outputs[i];
    berth_value value = berth_graph_find(b->graph, output->value);
    if (value == BERTH_VALUE_NONE)
      return berth__fail(err, BERTH_MALFORMED, "line %u: output '%s' names '%s', which nothing defines", output->line,
                         output->name, output->value);
    berth_status status = berth_graph_output(b->graph, output->name, value, err);
    if (status != BERTH_OK) return graph_parse_fail_at(output->line, err, status);
  }
  return BERTH_OK;
}

static berth_status find_operand(const builder *b, const berth__text_update *update, const char *name, berth_value *out,
                                 berth_error *err) {
  *out = berth_graph_find(b->graph, name);
  if (*out != BERTH_VALUE_NONE) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "line %u: the update of '%s' names '%s', which nothing defines",
                     update->line, update->state, name);
}

static berth_status build_updates(builder *b, berth_error *err) {
  for (size_t i = 0; i < b->document->n_updates; i++) {
    const berth__text_update *update = &b->document->updates[i];
    berth_value state, next;
    BERTH__TRY(find_operand(b, update, update->state, &state, err));
    BERTH__TRY(find_operand(b, update, update->next, &next, err));
    berth_status status = berth_graph_update(b->graph, state, next, err);
    if (status != BERTH_OK) return graph_parse_fail_at(update->line, err, status);
  }
  return BERTH_OK;
}

static berth_status graph_parse_build(builder *b, berth_error *err) {
  BERTH__TRY(collect_names(b, err));
  BERTH__TRY(graph_parse_collect_edges(b, err));
  BERTH__TRY(sort_statements(b, err));
  BERTH__TRY(berth_graph_create(b->ctx, b->document->name, &b->graph, err));
  BERTH__TRY(berth__graph_set_weights_path(b->graph, b->document->weights, err));
  for (size_t i = 0; i < b->document->n_statements; i++) {
    const berth__statement *s = &b->document->statements[b->order[i]];
    berth_status status = build_statement(b, s, err);
    if (status != BERTH_OK) return graph_parse_fail_at(s->line, err, status);
  }
  BERTH__TRY(build_updates(b, err));
  BERTH__TRY(build_outputs(b, err));
  return berth_graph_verify(b->graph, err);
}

berth_status berth_graph_parse(berth_context *ctx, const char *text, size_t size, berth_graph **out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_parse needs a pointer to store the graph");
  *out = NULL;
  if (ctx == NULL || (text == NULL && size != 0))
    return berth__fail(err, BERTH_INVALID, "berth_graph_parse needs a context and a text");
  berth__document document;
  BERTH__TRY(berth__document_read(&document, ctx, text != NULL ? text : "", size, err));
  builder b = {.ctx = ctx, .document = &document};
  berth_status status = graph_parse_build(&b, err);
  if (status == BERTH_OK)
    *out = b.graph;
  else
    berth_graph_destroy(b.graph);
  berth__map_clear(ctx, &b.definers);
  berth__free(ctx, b.edges);
  berth__free(ctx, b.order);
  berth__document_free(&document);
  return status;
}
