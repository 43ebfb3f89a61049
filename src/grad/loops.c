/* Gradients of loops. The loop runs again and stacks what it carries; then another loop goes through its rounds
 * backwards. Each of its rounds recomputes the body from the values carried into the original round, and walks back
 * through that. It carries the gradients of the carried values, and the accumulated gradients of outside values that
 * the body reads. */
#include "grad/grad.h"

typedef struct grad_loop {
  berth__grad *d;
  berth__node begin, end; /* the two ends; their lists are the graph's */
  size_t first, last;     /* the body */
  uint32_t n_carried, n_scanned;
  berth_value *copies; /* per value of the original graph: its counterpart in the copy being made */
  size_t n_values;
  berth_value *stacks;  /* per carried value: its value in every round, stacked; NONE: not a float, not needed */
  berth_value *outside; /* wanted values that the body reads */
  uint32_t n_outside;
  berth_value *carries; /* what the backward loop carries: gradients of floats, then sums */
} grad_loop;

static bool grad_loop_is_float(const grad_loop *s, uint32_t i) {
  return berth__type_is_float(berth__grad_type(s->d, s->begin.out[BERTH__LOOP_CARRIED + i]));
}

static berth_value grad_loop_next(const grad_loop *s, uint32_t i) {
  return s->end.in[BERTH__LOOP_END_CARRIED + s->n_carried + i];
}

static berth_value grad_loop_scanned(const grad_loop *s, uint32_t i) {
  return s->end.in[BERTH__LOOP_END_CARRIED + 2 * s->n_carried + i];
}

static berth_value grad_loop_copy_of(const grad_loop *s, berth_value value) {
  return value < s->n_values && s->copies[value] != BERTH_VALUE_NONE ? s->copies[value] : value;
}

static void grad_loop_forget_copies(grad_loop *s) {
  for (size_t i = 0; i < s->n_values; i++) s->copies[i] = BERTH_VALUE_NONE;
}

static void grad_loop_copy_node(grad_loop *s, const berth__node *node) {
  berth__grad *d = s->d;
  berth_context *ctx = d->graph->ctx;
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_value *out = berth__alloc_array(ctx, node->n_out, sizeof *out);
  if (in == NULL || out == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
  } else {
    for (uint32_t i = 0; i < node->n_in; i++)
      in[i] = node->in[i] == BERTH_VALUE_NONE ? BERTH_VALUE_NONE : grad_loop_copy_of(s, node->in[i]);
    d->status = berth__graph_add_op(d->graph, node->op, in, node->n_in, node->attrs, node->op->family->n_attrs, NULL,
                                    out, node->n_out, d->err);
    for (uint32_t i = 0; i < node->n_out && berth__grad_ok(d); i++) s->copies[node->out[i]] = out[i];
  }
  berth__free(ctx, in);
  berth__free(ctx, out);
}

/* Copies the body, with the values in `copies` instead of the carried ones. */
static void grad_loop_copy_body(grad_loop *s) {
  for (size_t n = s->first; n < s->last && berth__grad_ok(s->d); n++) {
    const berth__node node = s->d->graph->nodes[n];
    grad_loop_copy_node(s, &node);
  }
}

/* Copies the loop, with all carried values among the scanned ones. */
static void grad_loop_stack(grad_loop *s, berth_value *in, berth_value *out) {
  berth__grad *d = s->d;
  uint32_t n = BERTH__LOOP_END_CARRIED, at = BERTH__LOOP_LAST + s->n_carried;
  grad_loop_forget_copies(s);
  grad_loop_copy_node(s, &s->begin);
  grad_loop_copy_body(s);
  if (!berth__grad_ok(d)) return;
  for (uint32_t i = 0; i < BERTH__LOOP_END_CARRIED; i++) in[i] = grad_loop_copy_of(s, s->end.in[i]);
  for (uint32_t i = 0; i < s->n_carried; i++) in[n++] = grad_loop_copy_of(s, s->begin.out[BERTH__LOOP_CARRIED + i]);
  for (uint32_t i = 0; i < s->n_carried; i++) in[n++] = grad_loop_copy_of(s, grad_loop_next(s, i));
  for (uint32_t i = 0; i < s->n_carried; i++) in[n++] = grad_loop_copy_of(s, s->begin.out[BERTH__LOOP_CARRIED + i]);
  berth__grad_ops(d, BERTH__OP_loop_end, in, n, NULL, 0, out, at + s->n_carried);
  for (uint32_t i = 0; i < s->n_carried; i++) s->stacks[i] = out[at + i];
}

/* The wanted values from outside that nodes of the body read. */
static void grad_loop_find_outside(grad_loop *s) {
  const berth__grad *d = s->d;
  for (size_t n = s->first; n <= s->last; n++) {
    const berth__node *node = &d->graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      const berth_value value = node->in[i];
      if (value == BERTH_VALUE_NONE || value >= d->n || !d->wanted[value]) continue;
      const berth__value *v = &d->graph->values[value];
      bool is_new = v->kind != BERTH_VALUE_NODE || v->node + 1 < s->first;
      for (uint32_t k = 0; k < s->n_outside && is_new; k++) is_new = s->outside[k] != value;
      if (is_new) s->outside[s->n_outside++] = value;
    }
  }
}

static berth_value grad_loop_row(berth__grad *d, berth_value stack, berth_value round) {
  return berth__grad_2(d, BERTH__OP_gather, stack, round);
}

static void grad_loop_seed(berth__grad *d, berth_value value, berth_value gradient) {
  if (!berth__grad_ok(d) || value >= d->n) return;
  const bool has = d->of[value] != BERTH_VALUE_NONE;
  const berth_value sum = has ? berth__grad_add(d, d->of[value], gradient) : gradient;
  d->of[value] = sum;
}

/* The incoming gradients of a round's results: from the next round, and from stacked values. */
static void grad_loop_seed_round(grad_loop *s, const berth_value *carried, berth_value round) {
  berth__grad *d = s->d;
  for (uint32_t i = 0, k = 0; i < s->n_carried; i++)
    if (grad_loop_is_float(s, i)) grad_loop_seed(d, grad_loop_copy_of(s, grad_loop_next(s, i)), carried[k++]);
  for (uint32_t i = 0; i < s->n_scanned && berth__grad_ok(d); i++) {
    const berth_value stacked = s->end.out[BERTH__LOOP_LAST + s->n_carried + i];
    if (!berth__type_is_float(berth__grad_type(d, stacked)) || s->copies[stacked] == BERTH_VALUE_NONE) continue;
    grad_loop_seed(d, grad_loop_copy_of(s, grad_loop_scanned(s, i)), grad_loop_row(d, s->copies[stacked], round));
  }
}

static berth_value grad_loop_taken(berth__grad *d, berth_value value) {
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  return d->of[value] != BERTH_VALUE_NONE ? d->of[value] : berth__grad_full_like(d, value, 0);
}

/* One round backwards: carried is the input of this round, next its output. */
static void grad_loop_round(grad_loop *s, berth_value round, const berth_value *carried, berth_value *next) {
  berth__grad *d = s->d;
  uint32_t k = 0;
  s->copies[s->begin.out[BERTH__LOOP_ROUND]] = round;
  for (uint32_t i = 0; i < s->n_carried; i++)
    s->copies[s->begin.out[BERTH__LOOP_CARRIED + i]] = grad_loop_row(d, s->stacks[i], round);
  const size_t first = d->graph->n_nodes;
  grad_loop_copy_body(s);
  const size_t last = d->graph->n_nodes;
  berth__grad_catch_up(d);
  for (uint32_t i = 0; i < s->n_carried && berth__grad_ok(d); i++)
    d->wanted[s->copies[s->begin.out[BERTH__LOOP_CARRIED + i]]] = grad_loop_is_float(s, i);
  berth__grad_mark(d, first, last);
  grad_loop_seed_round(s, carried, round);
  berth__grad_walk(d, first, last);
  for (uint32_t i = 0; i < s->n_carried && berth__grad_ok(d); i++)
    if (grad_loop_is_float(s, i)) next[k++] = grad_loop_taken(d, s->copies[s->begin.out[BERTH__LOOP_CARRIED + i]]);
  for (uint32_t i = 0; i < s->n_outside && berth__grad_ok(d); i++, k++) {
    const berth_value given = d->of[s->outside[i]];
    next[k] = given == BERTH_VALUE_NONE ? carried[k] : berth__grad_add(d, carried[k], given);
  }
}

/* Saves existing gradients, because those inside the loop are separate. */
static berth_value *grad_loop_set_aside(grad_loop *s) {
  berth__grad *d = s->d;
  berth_value *kept = berth__alloc_array(d->graph->ctx, s->n_values, sizeof *kept);
  if (kept == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return NULL;
  }
  memcpy(kept, d->of, s->n_values * sizeof *kept);
  for (size_t i = 0; i < s->n_values; i++) d->of[i] = BERTH_VALUE_NONE;
  return kept;
}

static uint32_t grad_loop_first_carries(grad_loop *s) {
  berth__grad *d = s->d;
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_carried; i++)
    if (grad_loop_is_float(s, i)) s->carries[n++] = berth__grad_dy_at(d, BERTH__LOOP_LAST + i);
  for (uint32_t i = 0; i < s->n_outside; i++) s->carries[n++] = berth__grad_full_like(d, s->outside[i], 0);
  return n;
}

/* Gradients of stacked values, found before they are set aside. */
static void grad_loop_find_scanned(grad_loop *s) {
  for (uint32_t i = 0; i < s->n_scanned; i++) {
    const berth_value stacked = s->end.out[BERTH__LOOP_LAST + s->n_carried + i];
    s->copies[stacked] = s->d->of[stacked];
  }
}

static bool grad_loop_is_true(const grad_loop *s, berth_value value) {
  const berth__value *v = &s->d->graph->values[value];
  return v->blob != NULL && *(const bool *)v->data;
}

/* The number of rounds: known before a run if nothing but their number ends the loop, so that the backward loop can be
 * stacked, and differentiated, too. */
static berth_value grad_loop_rounds(grad_loop *s) {
  const berth__shape scalar = {.rank = 0};
  if (!grad_loop_is_true(s, s->begin.in[BERTH__LOOP_CONDITION]) ||
      !grad_loop_is_true(s, s->end.in[BERTH__LOOP_END_CONDITION]))
    return s->end.out[BERTH__LOOP_ROUNDS];
  return berth__grad_reshape(s->d, s->begin.in[BERTH__LOOP_TRIPS], &scalar);
}

/* The backward loop; `in` and `out` have space for both ends. s->carries becomes its final values. */
static void grad_loop_back(grad_loop *s, berth_value *in, berth_value *out) {
  berth__grad *d = s->d;
  const berth_value rounds = grad_loop_rounds(s), yes = berth__grad_scalar(d, BERTH_BOOL, 1);
  grad_loop_forget_copies(s);
  grad_loop_find_scanned(s);
  const uint32_t n = grad_loop_first_carries(s);
  in[BERTH__LOOP_TRIPS] = rounds;
  in[BERTH__LOOP_CONDITION] = yes;
  if (n != 0) memcpy(in + 2, s->carries, n * sizeof *in);
  berth__grad_ops(d, BERTH__OP_loop_begin, in, n + 2, NULL, 0, out, n + 2);
  const berth_value left = berth__grad_sub(d, rounds, out[BERTH__LOOP_ROUND]);
  const berth_value round = berth__grad_num(d, BERTH__OP_sub, left, 1);
  berth_value *kept = berth__grad_ok(d) ? grad_loop_set_aside(s) : NULL;
  if (kept == NULL) return;
  in[BERTH__LOOP_ROUND] = out[BERTH__LOOP_ROUND];
  in[BERTH__LOOP_STARTS] = out[BERTH__LOOP_STARTS];
  in[BERTH__LOOP_END_TRIPS] = rounds;
  in[BERTH__LOOP_END_CONDITION] = yes;
  memcpy(in + BERTH__LOOP_END_CARRIED, out + BERTH__LOOP_CARRIED, n * sizeof *in);
  grad_loop_round(s, round, out + BERTH__LOOP_CARRIED, in + BERTH__LOOP_END_CARRIED + n);
  berth__grad_ops(d, BERTH__OP_loop_end, in, BERTH__LOOP_END_CARRIED + 2 * n, NULL, 0, out, n + 2);
  if (n != 0) memcpy(s->carries, out + BERTH__LOOP_LAST, n * sizeof *out);
  memcpy(d->of, kept, s->n_values * sizeof *kept);
  berth__free(d->graph->ctx, kept);
}

static void grad_loop_give(grad_loop *s) {
  berth__grad *d = s->d;
  uint32_t k = 0;
  for (uint32_t i = 0; i < s->n_carried; i++)
    if (grad_loop_is_float(s, i)) berth__grad_give_value(d, s->begin.in[BERTH__LOOP_CARRIED + i], s->carries[k++]);
  for (uint32_t i = 0; i < s->n_outside; i++) berth__grad_give_value(d, s->outside[i], s->carries[k++]);
}

/* The total number of operands of the body's nodes. */
static size_t grad_loop_reads(const grad_loop *s) {
  size_t n = 0;
  for (size_t i = s->first; i <= s->last; i++) n += s->d->graph->nodes[i].n_in;
  return n;
}

static void grad_loop_all(grad_loop *s) {
  berth__grad *d = s->d;
  berth_context *ctx = d->graph->ctx;
  const size_t room = 2 * (grad_loop_reads(s) + 3 * (size_t)s->n_carried + 4);
  berth_value *in = berth__alloc_array(ctx, room, sizeof *in), *out = berth__alloc_array(ctx, room, sizeof *out);
  s->copies = berth__alloc_array(ctx, s->n_values, sizeof *s->copies);
  s->stacks = berth__alloc_array(ctx, s->n_carried, sizeof *s->stacks);
  s->outside = berth__alloc_array(ctx, room, sizeof *s->outside);
  s->carries = berth__alloc_array(ctx, room, sizeof *s->carries);
  if (in == NULL || out == NULL || s->copies == NULL || s->stacks == NULL || s->outside == NULL || s->carries == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
  } else {
    grad_loop_find_outside(s);
    if (s->n_carried + s->n_outside > 100) /* an op has at most 255 results */
      berth__grad_fail(d, BERTH_UNSUPPORTED, "it carries and reads too many values (%u) for a gradient",
                       s->n_carried + s->n_outside);
    if (s->n_carried != 0 && berth__grad_ok(d)) grad_loop_stack(s, in, out);
    if (berth__grad_ok(d)) grad_loop_back(s, in, out);
    grad_loop_give(s);
  }
  berth__free(ctx, in);
  berth__free(ctx, out);
  berth__free(ctx, s->copies);
  berth__free(ctx, s->stacks);
  berth__free(ctx, s->outside);
  berth__free(ctx, s->carries);
}

void berth__grad_of_loop_end(berth__grad *d) {
  const berth_graph *graph = d->graph;
  const uint32_t begin = graph->values[d->node.in[BERTH__LOOP_ROUND]].node;
  berth__grad_catch_up(d);
  if (!berth__grad_ok(d)) return;
  grad_loop s = {.d = d,
                 .begin = graph->nodes[begin],
                 .end = d->node,
                 .first = (size_t)begin + 1,
                 .last = graph->values[d->node.out[0]].node,
                 .n_carried = berth__loop_end_carried(d->node.n_in, d->node.n_out),
                 .n_values = graph->n_values};
  s.n_scanned = d->node.n_out - BERTH__LOOP_LAST - s.n_carried;
  if (s.begin.attrs[BERTH__LOOP_GROWS].count != 0) { /* stacked rows would have different shapes */
    berth__grad_fail(d, BERTH_UNSUPPORTED, "it makes a carried value longer in every round, which has no gradient");
    return;
  }
  grad_loop_all(&s);
}

/* The rule of its end has done all the work. */
void berth__grad_of_loop_begin(berth__grad *d) { (void)d; }
