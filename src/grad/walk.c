/* The walk from a value backwards through the nodes that it depends on. */
#include <stdarg.h>
#include <stdio.h>

#include "grad/grad.h"
#include "graph/rewrite.h"

static const berth__grad_row grad_rows[BERTH__OP_COUNT] = {
#define BERTH_GRAD(op, rule) [BERTH__OP_##op] = {BERTH__GRAD_RULE, berth__grad_of_##rule},
#define BERTH_GRAD_ZERO(op) [BERTH__OP_##op] = {BERTH__GRAD_ZERO, NULL},
#define BERTH_GRAD_NONE(op) [BERTH__OP_##op] = {BERTH__GRAD_NONE, NULL},
#include "grad/grad.def"
};

const berth__grad_row *berth__grad_row_of(const berth__op *op) {
  static const berth__grad_row none = {BERTH__GRAD_NONE, NULL};
  return op->code < BERTH__OP_COUNT ? &grad_rows[op->code] : &none;
}

void berth__grad_fail(berth__grad *d, berth_status status, const char *format, ...) {
  char text[400];
  va_list list;
  if (!berth__grad_ok(d)) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  d->status = berth__fail(d->err, status, "%s", text);
}

/* Adds entries for new values. */
void berth__grad_catch_up(berth__grad *d) {
  const size_t n = d->graph->n_values;
  berth_context *ctx = d->graph->ctx;
  if (!berth__grad_ok(d)) return;
  d->status = BERTH__RESERVE(ctx, d->of, d->of_capacity, n, d->err);
  if (berth__grad_ok(d)) d->status = BERTH__RESERVE(ctx, d->wanted, d->wanted_capacity, n, d->err);
  for (; berth__grad_ok(d) && d->n < n; d->n++) {
    d->of[d->n] = BERTH_VALUE_NONE;
    d->wanted[d->n] = false;
  }
}

static bool grad_is_wanted(const berth__grad *d, berth_value value) {
  return value != BERTH_VALUE_NONE && value < d->n && d->wanted[value];
}

static bool grad_reads_wanted(const berth__grad *d, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (grad_is_wanted(d, node->in[i])) return true;
  return false;
}

/* Marks which results of these nodes depend on wanted values in a differentiable way. */
void berth__grad_mark(berth__grad *d, size_t first, size_t last) {
  for (size_t n = first; n < last && berth__grad_ok(d); n++) {
    const berth__node *node = &d->graph->nodes[n];
    if (berth__grad_row_of(node->op)->kind == BERTH__GRAD_ZERO || !grad_reads_wanted(d, node)) continue;
    for (uint32_t i = 0; i < node->n_out; i++)
      d->wanted[node->out[i]] =
          berth__type_is_float(d->graph->values[node->out[i]].type) || node->op->code == BERTH__OP_quantize;
  }
}

static bool grad_has_dy(const berth__grad *d, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++)
    if (node->out[i] < d->n && d->of[node->out[i]] != BERTH_VALUE_NONE) return true;
  return false;
}

static void grad_node(berth__grad *d, size_t index) {
  const berth__node outer = d->node;
  d->node = d->graph->nodes[index];
  if (grad_has_dy(d, &d->node) && grad_reads_wanted(d, &d->node)) {
    const berth__grad_row *row = berth__grad_row_of(d->node.op);
    if (row->kind == BERTH__GRAD_NONE)
      berth__grad_fail(d, BERTH_UNSUPPORTED, "there is no rule for the gradient of this op");
    else if (row->kind == BERTH__GRAD_RULE)
      row->rule(d);
    if (!berth__grad_ok(d))
      d->status = berth__fail_within(d->err, d->status, "the gradient of node '%s' (%s)",
                                     d->graph->values[d->node.out[0]].name, d->node.op->name);
  }
  d->node = outer;
}

void berth__grad_walk(berth__grad *d, size_t first, size_t last) {
  for (size_t n = last; n-- > first && berth__grad_ok(d);) grad_node(d, n);
}

void berth__grad_through(berth__grad *d, size_t first, const berth_value *values) {
  const size_t last = d->graph->n_nodes;
  berth__grad_catch_up(d);
  if (!berth__grad_ok(d)) return;
  berth__grad_mark(d, first, last);
  for (uint32_t i = 0; i < d->node.n_out; i++)
    if (values[i] != BERTH_VALUE_NONE) d->of[values[i]] = d->of[d->node.out[i]];
  berth__grad_walk(d, first, last);
}

bool berth__grad_wants(const berth__grad *d, uint32_t operand) {
  return berth__grad_ok(d) && operand < d->node.n_in && grad_is_wanted(d, d->node.in[operand]);
}

berth_value berth__grad_dy_at(berth__grad *d, uint32_t result) {
  if (!berth__grad_ok(d) || result >= d->node.n_out) return BERTH_VALUE_NONE;
  const berth_value given = d->of[d->node.out[result]];
  return given != BERTH_VALUE_NONE ? given : berth__grad_full_like(d, d->node.out[result], 0);
}

berth_value berth__grad_dy(berth__grad *d) { return berth__grad_dy_at(d, 0); }

void berth__grad_give(berth__grad *d, uint32_t operand, berth_value gradient) {
  if (berth__grad_wants(d, operand)) berth__grad_give_value(d, d->node.in[operand], gradient);
}

void berth__grad_give_value(berth__grad *d, berth_value value, berth_value gradient) {
  if (!berth__grad_ok(d) || !grad_is_wanted(d, value)) return;
  gradient = berth__grad_sum_to(d, gradient, value);
  if (berth__type_is_float(berth__grad_type(d, value))) /* the gradient of a quantised number is a float */
    gradient = berth__grad_cast(d, gradient, berth__grad_type(d, value));
  const berth__shape own = berth__grad_shape(d, gradient), wanted = berth__grad_shape(d, value);
  if (!berth__shape_equal(&own, &wanted)) gradient = berth__grad_expand_like(d, gradient, value);
  if (berth__grad_ok(d) && d->of[value] != BERTH_VALUE_NONE) gradient = berth__grad_add(d, d->of[value], gradient);
  if (berth__grad_ok(d)) d->of[value] = gradient;
}

static berth_status grad_check(const berth_graph *graph, berth_value loss, const berth_value *of, size_t n_of,
                               const berth_value *grads, berth_error *err) {
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  if (n_of != 0 && (of == NULL || grads == NULL))
    return berth__fail(err, BERTH_INVALID,
                       "berth_graph_grad needs the values to differentiate by, and a pointer to store "
                       "their gradients");
  if (loss >= graph->n_values) return berth__fail(err, BERTH_INVALID, "the loss is not a value of the graph");
  const berth__value *value = &graph->values[loss];
  int64_t count;
  char text[BERTH__SHAPE_TEXT];
  if (!berth__type_is_float(value->type) || !berth__shape_count(&value->shape, &count) || count != 1)
    return berth__fail(err, BERTH_INVALID,
                       "'%s' is %s%s; a loss must be a scalar of a float type: reduce_sum or reduce_mean makes one",
                       value->name, berth_type_name(value->type), berth__shape_text(&value->shape, text));
  for (size_t i = 0; i < n_of; i++) {
    if (of[i] >= graph->n_values)
      return berth__fail(err, BERTH_INVALID, "value %u, to differentiate by, is not in the graph", of[i]);
    if (!berth__type_is_float(graph->values[of[i]].type))
      return berth__fail(err, BERTH_INVALID, "'%s' is %s, and only floats have gradients", graph->values[of[i]].name,
                         berth_type_name(graph->values[of[i]].type));
  }
  return BERTH_OK;
}

/* Names gradients made here after their values. */
static void grad_name(berth__grad *d, size_t first_value, berth_value of, berth_value gradient) {
  char name[256];
  if (!berth__grad_ok(d) || gradient == BERTH_VALUE_NONE || gradient < first_value) return;
  if (d->graph->values[gradient].kind != BERTH_VALUE_NODE) return;
  berth__rewrite_name(d->graph, of, ".grad", name, sizeof name);
  d->status = berth_graph_rename(d->graph, gradient, name, d->err);
}

static void grad_run(berth__grad *d, berth_value loss, const berth_value *of, size_t n_of, berth_value *grads) {
  const size_t first_value = d->graph->n_values, n_nodes = d->graph->n_nodes;
  berth__grad_catch_up(d);
  for (size_t i = 0; i < n_of && berth__grad_ok(d); i++) d->wanted[of[i]] = true;
  berth__grad_mark(d, 0, n_nodes);
  if (berth__grad_ok(d) && d->wanted[loss]) d->of[loss] = berth__grad_full_like(d, loss, 1);
  berth__grad_walk(d, 0, n_nodes);
  for (size_t i = 0; i < n_of && berth__grad_ok(d); i++) {
    grads[i] = d->of[of[i]];
    grad_name(d, first_value, of[i], grads[i]);
  }
}

berth_status berth_graph_grad(berth_graph *graph, berth_value loss, const berth_value *of, size_t n_of,
                              berth_value *grads, berth_error *err) {
  for (size_t i = 0; grads != NULL && i < n_of; i++) grads[i] = BERTH_VALUE_NONE;
  BERTH__TRY(grad_check(graph, loss, of, n_of, grads, err));
  const berth__graph_mark mark = berth__graph_mark_now(graph);
  berth__grad d = {.graph = graph, .loss = loss, .err = err};
  grad_run(&d, loss, of, n_of, grads);
  berth__free(graph->ctx, d.of);
  berth__free(graph->ctx, d.wanted);
  if (d.status == BERTH_OK) return BERTH_OK;
  berth__graph_roll_back(graph, &mark);
  for (size_t i = 0; i < n_of; i++) grads[i] = BERTH_VALUE_NONE;
  return d.status;
}
