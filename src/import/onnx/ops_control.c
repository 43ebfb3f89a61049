/* If, Loop and Scan. The graphs inside them become part of the graph around them:
 *
 * - An If whose condition is known at this point becomes the nodes of the branch that is taken. Otherwise both branches
 *   are converted, and a `choose` selects the results of one; binding removes the other as soon as the condition
 *   follows from the dims. A branch that cannot be converted (an unknown op, shapes that do not fit, results of another
 *   rank than those of the first branch) is left out, with the reason, which is an error only if that branch is taken.
 *   A plan runs only one branch: it derives from the choose what is needed when.
 * - Loop and Scan with few iterations, whose number is known, are unrolled, so that shapes may change between
 *   iterations. So are those with more iterations that cannot be a loop with fixed shapes (rolled.c); all others stay
 *   loops. */
#include <stdio.h>

#include "import/onnx/control.h"

#define FEW_ROUNDS 16
#define MAX_ROUNDS 1000
#define MAX_NODES 200000 /* in the whole graph, once something has been unrolled */

/* ---- Inner graphs ---- */

static berth_status inner_graph(const berth__onnx_call *call, const char *name, const berth__onnx_graph **out,
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
    return berth__fail(err, BERTH_MALFORMED, "its graph has %zu outputs, but %zu are asked for", graph->n_outputs,
                       n_out);
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
  BERTH__TRY(inner_graph(call, "then_branch", &first.graph, err));
  BERTH__TRY(inner_graph(call, "else_branch", &second.graph, err));
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

/* Carried values, and the results of every iteration that are to be stacked. */
typedef struct rounds {
  const berth__onnx_graph *body;
  int64_t count;               /* no more than can be unrolled */
  bool is_open;                /* whether there is another iteration depends on data */
  bool is_cut;                 /* there may be more */
  size_t n_carried, n_scanned; /* scanned: results that get one more entry in every iteration */
  berth_value *in, *out;       /* of the body */
  berth_value *scanned;        /* [n_scanned][count] */
} rounds;

static berth_status onnx_control_allocate(berth__onnx_call *call, rounds *r, berth_error *err) {
  berth_context *ctx = call->graph->ctx;
  r->in = berth__alloc_array(ctx, r->body->n_inputs, sizeof *r->in);
  r->out = berth__alloc_array(ctx, r->body->n_outputs, sizeof *r->out);
  r->scanned = berth__alloc_array(ctx, (size_t)r->count * r->n_scanned, sizeof *r->scanned);
  return r->in != NULL && r->out != NULL && r->scanned != NULL ? BERTH_OK : berth__fail_nomem(err, "a loop");
}

static void onnx_control_release(berth__onnx_call *call, rounds *r) {
  berth__free(call->graph->ctx, r->in);
  berth__free(call->graph->ctx, r->out);
  berth__free(call->graph->ctx, r->scanned);
}

static berth_status onnx_control_check_size(const berth__onnx_call *call, int64_t count, berth_error *err) {
  if (count > MAX_ROUNDS)
    return berth__onnx_unsupported(call, err, "it has %lld rounds; at most %d are unrolled", (long long)count,
                                   MAX_ROUNDS);
  if (call->graph->n_nodes > MAX_NODES)
    return berth__onnx_unsupported(call, err, "unrolling it makes more than %d nodes", MAX_NODES);
  return BERTH_OK;
}

/* Stacks the parts of all iterations on a new axis, in order or reversed. */
static berth_status stack(berth__onnx_call *call, berth_value *parts, int64_t count, int64_t axis, bool is_reversed,
                          berth_value *out, berth_error *err) {
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

static berth_status loop_round(berth__onnx_call *call, rounds *r, int64_t round, bool *goes_on, berth_error *err) {
  bool is_known, is_list = r->body->inputs[0].has_shape && r->body->inputs[0].rank == 1;
  int64_t condition;
  BERTH__TRY(onnx_control_check_size(call, r->count, err));
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

static berth_status unroll_loop(berth__onnx_call *call, rounds *r, berth_error *err) {
  int64_t round = 0;
  bool goes_on = true;
  memcpy(r->in + 2, call->in + 2, r->n_carried * sizeof *r->in);
  for (; round < r->count && goes_on; round++) BERTH__TRY(loop_round(call, r, round, &goes_on, err));
  if (goes_on && r->is_cut)
    return berth__onnx_unsupported(call, err, "it has more than %d rounds, which is as far as loops are unrolled",
                                   MAX_ROUNDS);
  for (size_t i = 0; i < call->n_out; i++) {
    if (i < r->n_carried) {
      call->out[i] = r->in[2 + i];
      continue;
    }
    BERTH__TRY(stack(call, r->scanned + (i - r->n_carried) * (size_t)r->count, round, 0, false, &call->out[i], err));
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

/* Whether a value added since then has an unknown dimension: it may depend on the iteration. */
static bool has_open_shape(const berth_graph *graph, size_t n_before) {
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
  return !has_open_shape(graph, n_before) &&
         !(ends_early && end->n_out > BERTH__LOOP_LAST + berth__loop_end_carried(end->n_in, end->n_out));
}

static berth_status unroll(berth__onnx_call *call, rounds *r, berth_error *err) {
  berth_status status = onnx_control_allocate(call, r, err);
  if (status == BERTH_OK) status = unroll_loop(call, r, err);
  onnx_control_release(call, r);
  return status;
}

static berth_status check_loop(const berth__onnx_call *call, const rounds *r, berth_error *err) {
  if (r->body->n_inputs != r->n_carried + 2 || r->body->n_outputs < r->n_carried + 1 ||
      call->n_out > r->body->n_outputs - 1)
    return berth__fail(err, BERTH_MALFORMED, "its body has %zu inputs and %zu outputs, which do not fit its own",
                       r->body->n_inputs, r->body->n_outputs);
  for (size_t i = 2; i < call->n_in; i++)
    if (call->in[i] == BERTH_VALUE_NONE) return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  for (size_t i = 0; i < call->n_in && i < 2; i++)
    if (berth__onnx_is_sequence(call->in[i]))
      return berth__fail(err, BERTH_MALFORMED, "operand %zu is a sequence, expected a tensor", i);
  return BERTH_OK;
}

/* A loop that can be made but perhaps not planned stays a loop if unrolling fails too. */
static berth_status unroll_instead(berth__onnx_call *call, rounds *r, const berth__onnx_loop *loop,
                                   const berth__graph_mark *mark, berth_status rolled, berth_error *err) {
  berth_error why = err != NULL ? *err : (berth_error){.status = rolled};
  r->is_cut = r->count > MAX_ROUNDS;
  if (r->is_cut) r->count = MAX_ROUNDS;
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
static berth_status try_constants(berth__onnx_call *call, rounds *r, bool *done, berth_error *err) {
  const berth__graph_mark mark = berth__graph_mark_now(call->graph);
  *done = false;
  if (r->n_carried == 0 || r->count > MAX_ROUNDS || !are_known(call->graph, call->in + 2, r->n_carried))
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
  rounds r = {0};
  bool starts = false, is_known = false;
  BERTH__TRY(inner_graph(call, "body", &r.body, err));
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
  if (is_known && r.count <= FEW_ROUNDS) {
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
  if (!is_known || status == BERTH_NOMEM || (is_bounded && r.count > MAX_ROUNDS)) return status;
  if (status == BERTH_OK && onnx_control_is_settled(call->graph, mark.n_values)) return BERTH_OK;
  return unroll_instead(call, &r, &loop, &mark, status, err);
}

static berth_status convert_loop(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(make_loop(call, err));
  for (size_t i = call->n_in > 2 ? call->n_in - 2 : 0; i < call->n_out; i++)
    BERTH__TRY(berth__onnx_cut_rows(call, &call->out[i], err));
  return BERTH_OK;
}

/* ---- Scan ---- */

typedef struct scan {
  rounds r;
  size_t n_inputs; /* scanned ones; n_carried states come before them */
  const int64_t *in_axes, *in_reversed, *out_axes, *out_reversed;
  uint32_t n_in_axes, n_in_reversed, n_out_axes, n_out_reversed;
} scan;

static int64_t onnx_control_entry(const int64_t *list, uint32_t n, size_t index) { return index < n ? list[index] : 0; }

static berth_status scan_axis(const berth__onnx_call *call, const scan *s, const berth_value *in, size_t index,
                              int64_t *axis, berth_error *err) {
  uint32_t rank = berth__onnx_shape(call, in[s->r.n_carried + index])->rank, checked;
  BERTH__TRY(berth__want_axis(onnx_control_entry(s->in_axes, s->n_in_axes, index), rank, &checked, err));
  *axis = checked;
  return BERTH_OK;
}

static berth_status scan_slice(berth__onnx_call *call, const scan *s, const berth_value *in, size_t index,
                               int64_t round, berth_value *out, berth_error *err) {
  int64_t axis, at = onnx_control_entry(s->in_reversed, s->n_in_reversed, index) != 0 ? s->r.count - 1 - round : round,
                end = at + 1;
  BERTH__TRY(scan_axis(call, s, in, index, &axis, err));
  berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &at, 1),
                        berth_attr_ints("ends", &end, 1)};
  BERTH__TRY(berth__onnx_emit(call, "narrow", &in[s->r.n_carried + index], 1, attrs, 3, out, 1, err));
  return berth__onnx_emit(call, "squeeze", out, 1, attrs, 1, out, 1, err);
}

static berth_status scan_outputs(berth__onnx_call *call, const scan *s, berth_value *out, size_t n_out,
                                 berth_error *err) {
  const rounds *r = &s->r;
  for (size_t i = 0; i < n_out; i++) {
    if (i < r->n_carried) {
      out[i] = r->in[i];
      continue;
    }
    size_t index = i - r->n_carried;
    berth_value *parts = r->scanned + index * (size_t)r->count;
    if (r->count == 0) return berth__onnx_unsupported(call, err, "it has no rounds, so its output %zu has no shape", i);
    uint32_t rank = berth__onnx_shape(call, parts[0])->rank + 1, axis;
    BERTH__TRY(berth__want_axis(onnx_control_entry(s->out_axes, s->n_out_axes, index), rank, &axis, err));
    BERTH__TRY(stack(call, parts, r->count, axis, onnx_control_entry(s->out_reversed, s->n_out_reversed, index) != 0,
                     &out[i], err));
  }
  return BERTH_OK;
}

static berth_status scan_once(berth__onnx_call *call, scan *s, const berth_value *in, berth_value *out, size_t n_out,
                              berth_error *err) {
  rounds *r = &s->r;
  memcpy(r->in, in, r->n_carried * sizeof *in);
  for (int64_t round = 0; round < r->count; round++) {
    BERTH__TRY(onnx_control_check_size(call, r->count, err));
    for (size_t i = 0; i < s->n_inputs; i++)
      BERTH__TRY(scan_slice(call, s, in, i, round, &r->in[r->n_carried + i], err));
    BERTH__TRY(berth__onnx_inner(call, r->body, r->in, r->body->n_inputs, r->out, r->body->n_outputs, err));
    memcpy(r->in, r->out, r->n_carried * sizeof *r->in);
    for (size_t i = 0; i < r->n_scanned; i++)
      r->scanned[i * (size_t)r->count + (size_t)round] = r->out[r->n_carried + i];
  }
  return scan_outputs(call, s, out, n_out, err);
}

/* Before opset 9, all operands and results have a leading batch axis, and every batch entry is scanned separately. */
static berth_status scan_batch(berth__onnx_call *call, scan *s, const berth_value *in, size_t n_in, int64_t batch,
                               berth_error *err) {
  berth_context *ctx = call->graph->ctx;
  berth_value *one = berth__alloc_array(ctx, n_in + call->n_out * ((size_t)batch + 1), sizeof *one);
  if (one == NULL) return berth__fail_nomem(err, "a Scan");
  berth_value *out = one + n_in, *parts = out + call->n_out;
  berth_status status = BERTH_OK;
  for (int64_t b = 0; b < batch && status == BERTH_OK; b++) {
    int64_t axis = 0, end = b + 1;
    berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &b, 1),
                          berth_attr_ints("ends", &end, 1)};
    for (size_t i = 0; i < n_in && status == BERTH_OK; i++) {
      status = berth__onnx_emit(call, "narrow", &in[i], 1, attrs, 3, &one[i], 1, err);
      if (status == BERTH_OK) status = berth__onnx_emit(call, "squeeze", &one[i], 1, attrs, 1, &one[i], 1, err);
    }
    if (status == BERTH_OK) status = scan_once(call, s, one, out, call->n_out, err);
    for (size_t i = 0; i < call->n_out; i++) parts[i * (size_t)batch + (size_t)b] = out[i];
  }
  for (size_t i = 0; i < call->n_out && status == BERTH_OK; i++)
    status = stack(call, parts + i * (size_t)batch, batch, 0, false, &call->out[i], err);
  berth__free(ctx, one);
  return status;
}

static void read_scan_lists(const berth__onnx_call *call, scan *s, bool is_old) {
  s->in_reversed = berth__onnx_ints(call, is_old ? "directions" : "scan_input_directions", &s->n_in_reversed);
  if (is_old) return;
  s->in_axes = berth__onnx_ints(call, "scan_input_axes", &s->n_in_axes);
  s->out_axes = berth__onnx_ints(call, "scan_output_axes", &s->n_out_axes);
  s->out_reversed = berth__onnx_ints(call, "scan_output_directions", &s->n_out_reversed);
}

/* The scanned length and, before opset 9, the batch; either may be unknown. */
static berth_status scan_length(const berth__onnx_call *call, const scan *s, const berth_value *in, bool is_old,
                                int64_t *count, int64_t *batch, berth_error *err) {
  const berth__shape *first = berth__onnx_shape(call, in[s->r.n_carried]);
  int64_t axis = 1;
  if (!is_old) BERTH__TRY(scan_axis(call, s, in, 0, &axis, err));
  if (is_old && first->rank < 2) return berth__fail(err, BERTH_MALFORMED, "what it scans has no batch axis");
  *count = first->dim[axis];
  *batch = is_old ? first->dim[0] : 1;
  if (!is_old) return BERTH_OK;
  if (!berth__dim_is_fixed(*count) || !berth__dim_is_fixed(*batch))
    return berth__onnx_unsupported(call, err, "before opset 9 the length that it scans must be a constant");
  if (*batch == 0 || *batch > MAX_ROUNDS)
    return berth__onnx_unsupported(call, err, "its batch is %lld", (long long)*batch);
  return onnx_control_check_size(call, *count, err);
}

static berth_status scan_unrolled(berth__onnx_call *call, scan *s, const berth_value *in, size_t n_in, bool is_old,
                                  int64_t batch, berth_error *err) {
  BERTH__TRY(onnx_control_check_size(call, s->r.count, err));
  berth_status status = onnx_control_allocate(call, &s->r, err);
  if (status == BERTH_OK)
    status = is_old ? scan_batch(call, s, in, n_in, batch, err) : scan_once(call, s, in, call->out, call->n_out, err);
  onnx_control_release(call, &s->r);
  return status;
}

/* Moves the rows of a stacked result to its axis, in its direction. */
static berth_status turn_stacked(berth__onnx_call *call, const scan *s, size_t index, berth_value *out,
                                 berth_error *err) {
  uint32_t rank = berth__onnx_shape(call, *out)->rank, axis;
  int64_t first = 0, start = -1, end = INT64_MIN, step = -1, perm[BERTH_MAX_RANK];
  const berth_attr backwards[] = {berth_attr_ints("axes", &first, 1), berth_attr_ints("starts", &start, 1),
                                  berth_attr_ints("ends", &end, 1), berth_attr_ints("steps", &step, 1)};
  BERTH__TRY(berth__want_axis(onnx_control_entry(s->out_axes, s->n_out_axes, index), rank, &axis, err));
  if (onnx_control_entry(s->out_reversed, s->n_out_reversed, index) != 0)
    BERTH__TRY(berth__onnx_emit(call, "narrow", out, 1, backwards, 4, out, 1, err));
  if (axis == 0) return BERTH_OK;
  for (uint32_t i = 0; i < rank; i++) perm[i] = i < axis ? (int64_t)i + 1 : i == axis ? 0 : (int64_t)i;
  const berth_attr order = berth_attr_ints("perm", perm, rank);
  return berth__onnx_emit(call, "transpose", out, 1, &order, 1, out, 1, err);
}

static berth_status make_slices(const berth__onnx_call *call, const scan *s, const berth_value *in,
                                berth__onnx_slice *slices, berth_error *err) {
  for (size_t i = 0; i < s->n_inputs; i++) {
    int64_t length, axis;
    BERTH__TRY(scan_axis(call, s, in, i, &axis, err));
    slices[i] = (berth__onnx_slice){.value = in[s->r.n_carried + i],
                                    .axis = axis,
                                    .is_reversed = onnx_control_entry(s->in_reversed, s->n_in_reversed, i) != 0};
    BERTH__TRY(berth__same_dim(s->r.count, berth__onnx_shape(call, slices[i].value)->dim[axis],
                               "the operands that are scanned", &length, err));
  }
  return BERTH_OK;
}

static berth_status scan_rolled(berth__onnx_call *call, const scan *s, const berth_value *in, berth_error *err) {
  berth__onnx_loop loop = {.body = s->r.body, .condition = BERTH_VALUE_NONE, .first = in, .n_carried = s->r.n_carried};
  berth__onnx_slice *slices = berth__alloc_array(call->graph->ctx, s->n_inputs, sizeof *slices);
  if (slices == NULL) return berth__fail_nomem(err, "a Scan");
  berth_status status = make_slices(call, s, in, slices, err);
  if (status == BERTH_OK) {
    const berth_attr extent[] = {berth_attr_int("start", slices[0].axis), berth_attr_int("end", slices[0].axis + 1)};
    status = berth__onnx_emit(call, "shape", &slices[0].value, 1, extent, 2, &loop.trips, 1, err);
  }
  if (status == BERTH_OK) status = berth__onnx_roll_scan(call, &loop, slices, s->n_inputs, err);
  for (size_t i = s->r.n_carried; i < call->n_out && status == BERTH_OK; i++)
    if (call->out[i] != BERTH_VALUE_NONE) status = turn_stacked(call, s, i - s->r.n_carried, &call->out[i], err);
  berth__free(call->graph->ctx, slices);
  return status;
}

/* Few iterations are unrolled, and so are those of a body that cannot be a loop. */
static berth_status convert_new_scan(berth__onnx_call *call, scan *s, const berth_value *in, size_t n_in,
                                     berth_error *err) {
  const bool is_known = berth__dim_is_fixed(s->r.count);
  const berth__graph_mark mark = berth__graph_mark_now(call->graph);
  if (is_known && s->r.count <= FEW_ROUNDS && s->r.count != 0) return scan_unrolled(call, s, in, n_in, false, 1, err);
  berth_status status = scan_rolled(call, s, in, err);
  bool is_fine = status == BERTH_OK && !has_open_shape(call->graph, mark.n_values);
  if (is_fine || status == BERTH_NOMEM || !is_known || s->r.count > MAX_ROUNDS) return status;
  berth__graph_roll_back(call->graph, &mark);
  return scan_unrolled(call, s, in, n_in, false, 1, err);
}

static berth_status check_scan(const berth__onnx_call *call, const scan *s, const berth_value *in, size_t n_in,
                               int64_t scanned, berth_error *err) {
  const berth__onnx_graph *body = s->r.body;
  if (scanned < 1 || (size_t)scanned > n_in || body->n_inputs != n_in || call->n_out > body->n_outputs ||
      body->n_outputs < n_in - (size_t)scanned)
    return berth__fail(err, BERTH_MALFORMED, "its body has %zu inputs and %zu outputs, which do not fit its own",
                       body->n_inputs, body->n_outputs);
  for (size_t i = 0; i < n_in; i++)
    if (in[i] == BERTH_VALUE_NONE) return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  return BERTH_OK;
}

static berth_status convert_scan(berth__onnx_call *call, berth_error *err) {
  scan s = {0};
  bool is_old = call->opset < 9;
  int64_t scanned = berth__onnx_int(call, "num_scan_inputs", 0), batch = 1;
  const berth_value *in = call->in + (is_old ? 1 : 0);
  size_t n_in = call->n_in - (is_old && call->n_in > 0 ? 1 : 0);
  BERTH__TRY(inner_graph(call, "body", &s.r.body, err));
  if (is_old && berth__onnx_in(call, 0) != BERTH_VALUE_NONE)
    return berth__onnx_unsupported(call, err, "the lengths of its sequences are not supported");
  BERTH__TRY(check_scan(call, &s, in, n_in, scanned, err));
  s.n_inputs = (size_t)scanned;
  s.r.n_carried = n_in - s.n_inputs;
  s.r.n_scanned = s.r.body->n_outputs - s.r.n_carried;
  read_scan_lists(call, &s, is_old);
  BERTH__TRY(scan_length(call, &s, in, is_old, &s.r.count, &batch, err));
  if (is_old) return scan_unrolled(call, &s, in, n_in, true, batch, err);
  return convert_new_scan(call, &s, in, n_in, err);
}

const berth__onnx_handler berth__onnx_control[] = {
    {"If", convert_if, NULL},
    {"Loop", convert_loop, NULL},
    {"Scan", convert_scan, NULL},
    {NULL, NULL, NULL},
};
