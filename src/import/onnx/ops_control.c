/* If and Loop. The graphs inside them become part of the graph around them:
 *
 * - An If whose condition is known at this point becomes the nodes of the branch that is taken. Otherwise both branches
 *   are converted, and a `choose` selects the results of one; binding removes the other as soon as the condition
 *   follows from the dims. A branch that cannot be converted (an unknown op, shapes that do not fit, results of another
 *   rank than those of the first branch) is left out, with the reason, which is an error only if that branch is taken.
 *   A plan runs only one branch: it derives from the choose what is needed when.
 * - Loop and Scan (ops_scan.c) with few iterations, whose number is known, are unrolled, so that shapes may change
 *   between iterations. So are those with more iterations that cannot be a loop with fixed shapes (rolled.c); all
 *   others stay loops. */
#include <stdio.h>

#include "import/onnx/control.h"

#define MAX_NODES 200000 /* in the whole graph, once something has been unrolled */

/* ---- Inner graphs ---- */

berth_status berth__onnx_inner_graph(const berth__onnx_call *call, const char *name, const berth__onnx_graph **out,
                                     berth_error *err) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  *out = attr != NULL ? attr->graph : NULL;
  return *out != NULL ? BERTH_OK : berth__fail(err, BERTH_MALFORMED, "it has no graph '%s'", name);
}

/* Sequences are outside any graph: inner graphs can return them when they are inlined or are the body of a loop, but a
 * run cannot choose one. */
static berth_status read_outputs(berth__onnx_call *call, const berth__onnx_graph *graph, bool takes_sequences,
                                 berth_value *out, size_t n_out, berth_error *err) {
  if (graph->n_outputs < n_out)
    return berth__fail(err, BERTH_MALFORMED, "its graph has %zu output%s, but %zu are asked for", graph->n_outputs,
                       berth__plural(graph->n_outputs), n_out);
  for (size_t i = 0; i < n_out; i++) {
    const char *other = graph->outputs[i].other_type;
    if (other != NULL && !(takes_sequences && strcmp(other, "sequence") == 0))
      return berth__onnx_unsupported(call, err, "output %zu of its graph is of the kind %s; only tensors are supported",
                                     i, other);
    BERTH__TRY(berth__onnx_look_up(call->converter, graph->outputs[i].name, &out[i], err));
    if (berth__onnx_is_sequence(out[i]) && !takes_sequences)
      return berth__onnx_unsupported(call, err,
                                     "output %zu of its graph is a sequence; which one, or how many rounds "
                                     "make it, must be known when the file is read",
                                     i);
  }
  return BERTH_OK;
}

static berth_status fill_scope(berth__onnx_call *call, const berth__onnx_graph *graph, bool takes_sequences,
                               const berth_value *in, size_t n_in, berth_value *out, size_t n_out, berth_error *err) {
  for (size_t i = 0; i < n_in; i++) BERTH__TRY(berth__onnx_define(call->converter, graph->inputs[i].name, in[i], err));
  BERTH__TRY(berth__onnx_convert_graph(call->converter, graph, err));
  return read_outputs(call, graph, takes_sequences, out, n_out, err);
}

static berth_status inner_in_scope(berth__onnx_call *call, const berth__onnx_graph *graph, bool takes_sequences,
                                   const berth_value *in, size_t n_in, berth_value *out, size_t n_out,
                                   berth_error *err) {
  berth__onnx_scope scope = {.sees_outer = true};
  BERTH__TRY(berth__onnx_scope_open(call->converter, &scope, err));
  berth_status status = fill_scope(call, graph, takes_sequences, in, n_in, out, n_out, err);
  berth__onnx_scope_close(call->converter, &scope);
  return status;
}

berth_status berth__onnx_inner(berth__onnx_call *call, const berth__onnx_graph *graph, const berth_value *in,
                               size_t n_in, berth_value *out, size_t n_out, berth_error *err) {
  return inner_in_scope(call, graph, false, in, n_in, out, n_out, err);
}

berth_status berth__onnx_loop_body(berth__onnx_call *call, const berth__onnx_graph *body, size_t n_carried,
                                   const berth_value *in, berth_value *out, berth_error *err) {
  BERTH__TRY(inner_in_scope(call, body, true, in, body->n_inputs, out, body->n_outputs, err));
  for (size_t i = 0; i < body->n_outputs; i++)
    if (berth__onnx_is_sequence(out[i]) && (i == 0 || i > n_carried))
      return berth__fail(err, BERTH_MALFORMED, "output %zu of its body is a sequence, expected a tensor", i);
  return BERTH_OK;
}

/* A value as an integer, if it is known at this point. */
static berth_status known_int(berth__onnx_call *call, berth_value value, bool *is_known, int64_t *out,
                              berth_error *err) {
  uint32_t count;
  *is_known = false;
  if (value == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(berth__graph_evaluate_value(call->graph, value, err));
  *is_known = berth__onnx_constant_ints(call, value, out, 1, &count) && count == 1;
  return BERTH_OK;
}

/* ---- If ---- */

typedef struct branch {
  const berth__onnx_graph *graph;
  berth_value *out;
  berth_status status;
  berth_error err;
} branch;

static void convert_branch(berth__onnx_call *call, branch *b) {
  b->status = berth__onnx_inner(call, b->graph, NULL, 0, b->out, call->n_out, &b->err);
}

static bool onnx_control_can_merge(const berth__onnx_call *call, berth_value a, berth_value b) {
  return berth__onnx_value_type(call, a) == berth__onnx_value_type(call, b) &&
         berth__onnx_shape(call, a)->rank == berth__onnx_shape(call, b)->rank;
}

/* Results of different ranks: the nodes that follow can be converted for one of them only. The usual reason is a
 * squeeze of a dimension that is meant to be 1, and then the first branch is the right one. */
static void settle_ranks(const berth__onnx_call *call, const branch *first, branch *second) {
  for (size_t i = 0; i < call->n_out && first->status == BERTH_OK && second->status == BERTH_OK; i++)
    if (!onnx_control_can_merge(call, first->out[i], second->out[i]))
      second->status =
          berth__fail(&second->err, BERTH_UNSUPPORTED,
                      "its branches give results of different ranks or types, and it was taken to be true");
}

static berth_status onnx_control_merge(berth__onnx_call *call, berth_value condition, const branch *first,
                                       const branch *second, berth_error *err) {
  char reason[400];
  const branch *missing = first->status != BERTH_OK ? first : second;
  snprintf(reason, sizeof reason, "the other branch is not there: %.340s",
           missing->status != BERTH_OK ? missing->err.message : "");
  berth_attr attr = berth_attr_string("reason", missing->status != BERTH_OK ? reason : "");
  for (size_t i = 0; i < call->n_out; i++) {
    berth_value in[3] = {condition, first->status == BERTH_OK ? first->out[i] : BERTH_VALUE_NONE,
                         second->status == BERTH_OK ? second->out[i] : BERTH_VALUE_NONE};
    BERTH__TRY(berth__onnx_emit(call, "choose", in, 3, &attr, 1, &call->out[i], 1, err));
  }
  return BERTH_OK;
}

static berth_status convert_both(berth__onnx_call *call, branch *first, branch *second, berth_error *err) {
  convert_branch(call, first);
  convert_branch(call, second);
  if (first->status == BERTH_NOMEM || second->status == BERTH_NOMEM) return berth__fail_nomem(err, "an If");
  if (first->status != BERTH_OK && second->status != BERTH_OK)
    return berth__fail(err, first->status, "%s", first->err.message);
  settle_ranks(call, first, second);
  return onnx_control_merge(call, call->in[0], first, second, err);
}

static berth_status convert_if(berth__onnx_call *call, berth_error *err) {
  branch first = {0}, second = {0};
  bool is_known;
  int64_t condition;
  BERTH__TRY(berth__onnx_want_in(call, 1, err));
  BERTH__TRY(berth__onnx_inner_graph(call, "then_branch", &first.graph, err));
  BERTH__TRY(berth__onnx_inner_graph(call, "else_branch", &second.graph, err));
  BERTH__TRY(known_int(call, call->in[0], &is_known, &condition, err));
  if (is_known)
    return inner_in_scope(call, condition != 0 ? first.graph : second.graph, true, NULL, 0, call->out, call->n_out,
                          err);
  first.out = berth__alloc_array(call->graph->ctx, 2 * call->n_out, sizeof *first.out);
  if (first.out == NULL) return berth__fail_nomem(err, "an If");
  second.out = first.out + call->n_out;
  berth_status status = convert_both(call, &first, &second, err);
  berth__free(call->graph->ctx, first.out);
  return status;
}

/* ---- Loop ---- */

berth_status berth__onnx_rounds_create(berth__onnx_call *call, berth__onnx_rounds *r, berth_error *err) {
  berth_context *ctx = call->graph->ctx;
  r->in = berth__alloc_array(ctx, r->body->n_inputs, sizeof *r->in);
  r->out = berth__alloc_array(ctx, r->body->n_outputs, sizeof *r->out);
  r->scanned = berth__alloc_array(ctx, (size_t)r->count * r->n_scanned, sizeof *r->scanned);
  return r->in != NULL && r->out != NULL && r->scanned != NULL ? BERTH_OK : berth__fail_nomem(err, "a loop");
}

void berth__onnx_rounds_free(berth__onnx_call *call, berth__onnx_rounds *r) {
  berth__free(call->graph->ctx, r->in);
  berth__free(call->graph->ctx, r->out);
  berth__free(call->graph->ctx, r->scanned);
}

berth_status berth__onnx_rounds_check(const berth__onnx_call *call, int64_t count, berth_error *err) {
  if (count > BERTH__ONNX_MAX_ROUNDS)
    return berth__onnx_unsupported(call, err, "it has %lld rounds; at most %d are unrolled", (long long)count,
                                   BERTH__ONNX_MAX_ROUNDS);
  if (call->graph->n_nodes > MAX_NODES)
    return berth__onnx_unsupported(call, err, "unrolling it makes more than %d nodes", MAX_NODES);
  return BERTH_OK;
}

berth_status berth__onnx_stack(berth__onnx_call *call, berth_value *parts, int64_t count, int64_t axis,
                               bool is_reversed, berth_value *out, berth_error *err) {
  berth_attr axes = berth_attr_ints("axes", &axis, 1), attr = berth_attr_int("axis", axis);
  for (int64_t i = 0; i < count; i++)
    BERTH__TRY(berth__onnx_emit(call, "unsqueeze", &parts[i], 1, &axes, 1, &parts[i], 1, err));
  for (int64_t i = 0; is_reversed && i < count / 2; i++) {
    berth_value swapped = parts[i];
    parts[i] = parts[count - 1 - i];
    parts[count - 1 - i] = swapped;
  }
  return berth__onnx_emit(call, "concat", parts, (size_t)count, &attr, 1, out, 1, err);
}

static berth_status loop_round(berth__onnx_call *call, berth__onnx_rounds *r, int64_t round, bool *goes_on,
                               berth_error *err) {
  bool is_known, is_list = r->body->inputs[0].has_shape && r->body->inputs[0].rank == 1;
  int64_t condition;
  BERTH__TRY(berth__onnx_rounds_check(call, r->count, err));
  BERTH__TRY(is_list ? berth__onnx_list(call, &round, 1, &r->in[0], err)
                     : berth__onnx_scalar(call, BERTH_I64, (double)round, &r->in[0], err));
  BERTH__TRY(berth__onnx_scalar(call, BERTH_BOOL, 1, &r->in[1], err));
  BERTH__TRY(berth__onnx_loop_body(call, r->body, r->n_carried, r->in, r->out, err));
  BERTH__TRY(known_int(call, r->out[0], &is_known, &condition, err));
  r->is_open = !is_known;
  if (r->is_open) return berth__onnx_unsupported(call, err, "whether it goes on depends on data");
  *goes_on = condition != 0;
  memcpy(r->in + 2, r->out + 1, r->n_carried * sizeof *r->in);
  for (size_t i = 0; i < r->n_scanned; i++)
    r->scanned[i * (size_t)r->count + (size_t)round] = r->out[1 + r->n_carried + i];
  return BERTH_OK;
}

static berth_status unroll_loop(berth__onnx_call *call, berth__onnx_rounds *r, berth_error *err) {
  int64_t round = 0;
  bool goes_on = true;
  memcpy(r->in + 2, call->in + 2, r->n_carried * sizeof *r->in);
  for (; round < r->count && goes_on; round++) BERTH__TRY(loop_round(call, r, round, &goes_on, err));
  if (goes_on && r->is_cut)
    return berth__onnx_unsupported(call, err, "it has more than %d rounds, which is as far as loops are unrolled",
                                   BERTH__ONNX_MAX_ROUNDS);
  for (size_t i = 0; i < call->n_out; i++) {
    if (i < r->n_carried) {
      call->out[i] = r->in[2 + i];
      continue;
    }
    BERTH__TRY(berth__onnx_stack(call, r->scanned + (i - r->n_carried) * (size_t)r->count, round, 0, false,
                                 &call->out[i], err));
  }
  return BERTH_OK;
}

/* The maximum number of iterations, and whether there is a first one; *is_known: both are known at this point. */
static berth_status loop_count(berth__onnx_call *call, int64_t *count, bool *starts, bool *is_known, berth_error *err) {
  bool trips_are_known = true, condition_is_known = true;
  int64_t condition = 1;
  *count = INT64_MAX;
  if (berth__onnx_in(call, 0) != BERTH_VALUE_NONE)
    BERTH__TRY(known_int(call, call->in[0], &trips_are_known, count, err));
  if (berth__onnx_in(call, 1) != BERTH_VALUE_NONE)
    BERTH__TRY(known_int(call, call->in[1], &condition_is_known, &condition, err));
  *starts = condition != 0;
  *is_known = condition_is_known && (trips_are_known || !*starts);
  if (*count < 0) *count = 0;
  return BERTH_OK;
}

bool berth__onnx_has_open_shape(const berth_graph *graph, size_t n_before) {
  for (size_t v = n_before; v < graph->n_values; v++)
    for (uint32_t i = 0; i < graph->values[v].shape.rank; i++)
      if (graph->values[v].shape.dim[i] == BERTH__DIM_UNKNOWN) return true;
  return false;
}

/* Whether the loop that was just made is as good as unrolled: its shapes and the number of filled rows are known. */
static bool onnx_control_is_settled(const berth_graph *graph, size_t n_before) {
  const berth__node *end = &graph->nodes[graph->n_nodes - 1];
  while (end->op->code != BERTH__OP_loop_end) end--; /* slices may have been joined after it */
  bool ends_early = graph->values[end->in[BERTH__LOOP_END_CONDITION]].blob == NULL;
  return !berth__onnx_has_open_shape(graph, n_before) &&
         !(ends_early && end->n_out > BERTH__LOOP_LAST + berth__loop_end_carried(end->n_in, end->n_out));
}

static berth_status unroll(berth__onnx_call *call, berth__onnx_rounds *r, berth_error *err) {
  berth_status status = berth__onnx_rounds_create(call, r, err);
  if (status == BERTH_OK) status = unroll_loop(call, r, err);
  berth__onnx_rounds_free(call, r);
  return status;
}

static berth_status check_loop(const berth__onnx_call *call, const berth__onnx_rounds *r, berth_error *err) {
  if (r->body->n_inputs != r->n_carried + 2 || r->body->n_outputs < r->n_carried + 1 ||
      call->n_out > r->body->n_outputs - 1)
    return berth__fail(err, BERTH_MALFORMED, "its body has %zu input%s and %zu output%s, which do not fit its own",
                       r->body->n_inputs, berth__plural(r->body->n_inputs), r->body->n_outputs,
                       berth__plural(r->body->n_outputs));
  for (size_t i = 2; i < call->n_in; i++)
    if (call->in[i] == BERTH_VALUE_NONE) return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  for (size_t i = 0; i < call->n_in && i < 2; i++)
    if (berth__onnx_is_sequence(call->in[i]))
      return berth__fail(err, BERTH_MALFORMED, "operand %zu is a sequence, expected a tensor", i);
  return BERTH_OK;
}

/* A loop that can be made but perhaps not planned stays a loop if unrolling fails too. */
static berth_status unroll_instead(berth__onnx_call *call, berth__onnx_rounds *r, const berth__onnx_loop *loop,
                                   const berth__graph_mark *mark, berth_status rolled, berth_error *err) {
  berth_error why = err != NULL ? *err : (berth_error){.status = rolled};
  r->is_cut = r->count > BERTH__ONNX_MAX_ROUNDS;
  if (r->is_cut) r->count = BERTH__ONNX_MAX_ROUNDS;
  berth__graph_roll_back(call->graph, mark);
  berth_status status = unroll(call, r, err);
  if (status == BERTH_OK || status == BERTH_NOMEM) return status;
  berth__graph_roll_back(call->graph, mark);
  if (rolled == BERTH_OK) return berth__onnx_roll_loop(call, loop, err);
  if (r->is_open && err != NULL) *err = why; /* it can only be a loop */
  return r->is_open ? rolled : status;
}

static bool are_known(const berth_graph *graph, const berth_value *values, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (berth__onnx_is_sequence(values[i]) || graph->values[values[i]].blob == NULL) return false;
  return true;
}

/* Loops over constants may compute shapes: unrolled, these become known. *done: the loop was unrolled. */
static berth_status try_constants(berth__onnx_call *call, berth__onnx_rounds *r, bool *done, berth_error *err) {
  const berth__graph_mark mark = berth__graph_mark_now(call->graph);
  *done = false;
  if (r->n_carried == 0 || r->count > BERTH__ONNX_MAX_ROUNDS || !are_known(call->graph, call->in + 2, r->n_carried))
    return BERTH_OK;
  berth_status status = unroll(call, r, err);
  *done = status == BERTH_NOMEM || (status == BERTH_OK && are_known(call->graph, call->out, call->n_out));
  if (!*done) berth__graph_roll_back(call->graph, &mark);
  return *done ? status : BERTH_OK;
}

/* Stacked results have no rows, but the body tells the shape of a row. */
static berth_status convert_no_rounds(berth__onnx_call *call, berth__onnx_loop *loop, berth_error *err) {
  const int64_t none = 0;
  if (call->n_out > loop->n_carried) {
    BERTH__TRY(berth__onnx_list(call, &none, 1, &loop->trips, err));
    BERTH__TRY(berth__onnx_roll_loop(call, loop, err));
  }
  for (size_t i = 0; i < call->n_out && i < loop->n_carried; i++)
    if (call->n_out <= loop->n_carried || berth__onnx_is_sequence(loop->first[i])) call->out[i] = loop->first[i];
  return BERTH_OK;
}

static bool is_known_true(const berth_graph *graph, berth_value condition) {
  if (condition == BERTH_VALUE_NONE) return true;
  return graph->values[condition].blob != NULL && *(const bool *)graph->values[condition].data;
}

berth_status berth__onnx_cut_rows(berth__onnx_call *call, berth_value *rows, berth_error *err) {
  const int64_t zero = 0;
  const berth_attr attrs[] = {berth_attr_ints("axes", &zero, 1), berth_attr_ints("starts", &zero, 1)};
  const berth__value *value = *rows != BERTH_VALUE_NONE ? &call->graph->values[*rows] : NULL;
  if (value == NULL || value->kind != BERTH_VALUE_NODE || value->shape.dim[0] == 0) return BERTH_OK;
  const berth__node *node = &call->graph->nodes[value->node];
  if (node->op->code != BERTH__OP_loop_end) return BERTH_OK; /* unrolled: it has exactly the rows that exist */
  if (is_known_true(call->graph, berth__onnx_in(call, 1)) &&
      is_known_true(call->graph, node->in[BERTH__LOOP_END_CONDITION]))
    return BERTH_OK;
  const berth_value in[3] = {*rows, BERTH_VALUE_NONE, node->out[BERTH__LOOP_ROUNDS]};
  return berth__onnx_emit(call, "narrow", in, 3, attrs, 2, rows, 1, err);
}

/* Few iterations are unrolled; what cannot be unrolled stays a loop, and what cannot be a loop is unrolled. */
static berth_status make_loop(berth__onnx_call *call, berth_error *err) {
  berth__onnx_rounds r = {0};
  bool starts = false, is_known = false;
  BERTH__TRY(berth__onnx_inner_graph(call, "body", &r.body, err));
  r.n_carried = call->n_in > 2 ? call->n_in - 2 : 0;
  BERTH__TRY(check_loop(call, &r, err));
  r.n_scanned = r.body->n_outputs - 1 - r.n_carried;
  BERTH__TRY(loop_count(call, &r.count, &starts, &is_known, err));
  berth__onnx_loop loop = {.body = r.body,
                           .trips = berth__onnx_in(call, 0),
                           .condition = berth__onnx_in(call, 1),
                           .first = call->in + 2,
                           .n_carried = r.n_carried};
  const berth__graph_mark mark = berth__graph_mark_now(call->graph);
  if (is_known && (!starts || r.count == 0)) return convert_no_rounds(call, &loop, err);
  if (is_known && r.count <= BERTH__ONNX_FEW_ROUNDS) {
    berth_status status = unroll(call, &r, err);
    if (!r.is_open) return status;
    berth__graph_roll_back(call->graph, &mark);
    return berth__onnx_roll_loop(call, &loop, err);
  }
  if (is_known) {
    bool done;
    berth_status status = try_constants(call, &r, &done, err);
    if (done) return status;
  }
  berth_status status = berth__onnx_roll_loop(call, &loop, err);
  bool is_bounded = berth__onnx_in(call, 0) != BERTH_VALUE_NONE;
  if (!is_known || status == BERTH_NOMEM || (is_bounded && r.count > BERTH__ONNX_MAX_ROUNDS)) return status;
  if (status == BERTH_OK && onnx_control_is_settled(call->graph, mark.n_values)) return BERTH_OK;
  return unroll_instead(call, &r, &loop, &mark, status, err);
}

static berth_status convert_loop(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(make_loop(call, err));
  for (size_t i = call->n_in > 2 ? call->n_in - 2 : 0; i < call->n_out; i++)
    BERTH__TRY(berth__onnx_cut_rows(call, &call->out[i], err));
  return BERTH_OK;
}

const berth__onnx_handler berth__onnx_control[] = {
    {"If", convert_if, NULL},
    {"Loop", convert_loop, NULL},
    {"Scan", berth__onnx_scan, NULL},
    {NULL, NULL, NULL},
};
