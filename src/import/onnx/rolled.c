/* Loops that stay loops: a loop_begin, the body once, a loop_end.
 *
 * A value that an iteration makes longer is found by converting the body, which is repeated if there is one: its extent
 * is then open inside (`grows`). If an iteration does nothing but append to it, what it appends is stacked instead of
 * carried, so nothing is copied from iteration to iteration.
 *
 * The same is done for sequences: what an iteration appends to one is stacked, and what comes after the loop sees the
 * slices (sequence.h). One that iterations only read is not carried at all. If they read and change one, its tensors
 * are carried as one value. */
#include "import/onnx/control.h"
#include "import/onnx/growing.h"
#include "import/onnx/sequence.h"

typedef enum carry {
  KEPT,       /* a slot that every iteration updates; the tensors of a sequence as one value */
  STACKED,    /* its appended slices are stacked */
  PIECES,     /* likewise, and they are longer than 1 along their axis, or as long as some extent */
  SEQUENCE,   /* likewise, and it is a sequence */
  UNCHANGING, /* a sequence that iterations read, if anything */
} carry;

typedef struct rolling {
  berth__onnx_call *call;
  const berth__onnx_loop *loop;
  berth_value trips;
  berth__onnx_growth grows[BERTH__ONNX_MOST_GROWING];
  uint32_t n_grows;
  int64_t numbers[3 * BERTH__ONNX_MOST_GROWING]; /* of `grows` */
  carry *how;                                    /* per carried value */
  size_t n_kept, n_stacked;                      /* how many of them have a slot; how many are stacked */
  size_t n_leading;                              /* results of the body before the carried values: a Loop's condition */
  size_t n_scanned;                              /* scanned results that are asked for */
  berth_value *first;                            /* of carried values, all of them tensors once they have a slot */
  berth_value *begin;                            /* results of the loop_begin */
  berth_value *in, *out;                         /* of the body */
  berth_value *end_in;                           /* of the loop_end */
  berth_value *end_out;
} rolling;

static bool is_asked_for(const rolling *r, size_t output) {
  return output < r->call->n_out && r->call->node->outputs[output].size != 0;
}

static bool is_sequence(const rolling *r, size_t i) { return berth__onnx_is_sequence(r->loop->first[i]); }

static berth_status onnx_rolled_allocate(rolling *r, berth_error *err) {
  size_t k = r->loop->n_carried;
  for (size_t i = k; i < r->call->n_out; i++) r->n_scanned += is_asked_for(r, i);
  size_t n = k + (2 + k) + r->loop->body->n_inputs + r->loop->body->n_outputs + (4 + 2 * k + r->n_scanned) +
             (2 + k + r->n_scanned);
  r->first = berth__alloc_array(r->call->graph->ctx, n, sizeof *r->first);
  if (r->first == NULL) return berth__fail_nomem(err, "a loop");
  if (k != 0) memcpy(r->first, r->loop->first, k * sizeof *r->first);
  r->begin = r->first + k;
  r->in = r->begin + 2 + k;
  r->out = r->in + r->loop->body->n_inputs;
  r->end_in = r->out + r->loop->body->n_outputs;
  r->end_out = r->end_in + 4 + 2 * k + r->n_scanned;
  r->how = berth__alloc_array_zero(r->call->graph->ctx, k + 1, sizeof *r->how);
  return r->how != NULL ? BERTH_OK : berth__fail_nomem(err, "a loop");
}

static void set_how(rolling *r, size_t i, carry how) {
  r->how[i] = how;
  r->n_kept = r->n_stacked = 0;
  for (size_t k = 0; k < r->loop->n_carried; k++) {
    r->n_kept += r->how[k] == KEPT;
    r->n_stacked += r->how[k] != KEPT && r->how[k] != UNCHANGING;
  }
}

/* Values that are no longer carried do not count. */
static berth_attr grows_attr(rolling *r) {
  uint32_t n = 0;
  for (uint32_t g = 0; g < r->n_grows; g++) {
    const size_t value = (size_t)r->grows[g].value;
    size_t kept = 0;
    for (size_t i = 0; i < value; i++) kept += r->how[i] == KEPT;
    if (r->how[value] != KEPT) continue;
    r->numbers[n++] = (int64_t)kept;
    r->numbers[n++] = r->grows[g].axis;
    r->numbers[n++] = r->grows[g].by;
  }
  return berth_attr_ints("grows", r->numbers, n);
}

static berth_status onnx_rolled_begin(rolling *r, berth_error *err) {
  const int64_t no_bound = INT64_MAX;
  berth_value *in = r->end_in; /* not needed yet */
  r->trips = r->loop->trips;
  in[BERTH__LOOP_CONDITION] = r->loop->condition;
  if (r->trips == BERTH_VALUE_NONE) BERTH__TRY(berth__onnx_list(r->call, &no_bound, 1, &r->trips, err));
  if (in[BERTH__LOOP_CONDITION] == BERTH_VALUE_NONE)
    BERTH__TRY(berth__onnx_scalar(r->call, BERTH_BOOL, 1, &in[BERTH__LOOP_CONDITION], err));
  in[BERTH__LOOP_TRIPS] = r->trips;
  for (size_t i = 0, kept = 0; i < r->loop->n_carried; i++)
    if (r->how[i] == KEPT) in[BERTH__LOOP_CARRIED + kept++] = r->first[i];
  const berth_attr grows = grows_attr(r);
  return berth__onnx_emit(r->call, "loop_begin", in, 2 + r->n_kept, &grows, 1, r->begin, 2 + r->n_kept, err);
}

/* Joins what iterations have appended to carried value i, after its initial contents. */
static berth_status join_rows(rolling *r, size_t i, berth_value rows, berth_error *err) {
  const berth_graph *graph = r->call->graph;
  uint32_t axis = 0;
  for (uint32_t g = 0; g < r->n_grows; g++)
    if (r->grows[g].value == (int64_t)i) axis = (uint32_t)r->grows[g].axis;
  const berth_attr along = berth_attr_int("axis", axis);
  BERTH__TRY(r->how[i] == PIECES ? berth__onnx_join_first(r->call, rows, axis, &rows, err)
                                 : berth__onnx_move_first(r->call, rows, axis, &rows, err));
  r->call->out[i] = rows;
  if (graph->values[r->first[i]].shape.dim[axis] == 0) return BERTH_OK;
  const berth_value both[2] = {r->first[i], rows};
  return berth__onnx_emit(r->call, "concat", both, 2, &along, 1, &r->call->out[i], 1, err);
}

static berth_status give_sequence(rolling *r, size_t i, berth_value rows, berth_error *err) {
  const berth__onnx_sequence first = berth__onnx_sequence_of(r->call, r->loop->first[i]);
  const berth__onnx_sequence added = berth__onnx_sequence_of(r->call, r->out[r->n_leading + i]);
  if (!added.is_list || added.n != 1) BERTH__TRY(berth__onnx_join_first(r->call, rows, 0, &rows, err));
  return berth__onnx_sequence_append(r->call, &first, rows, &r->call->out[i], err);
}

/* `rows`: what the iterations have appended to carried value i, or what a slot ends with. */
static berth_status give_carried(rolling *r, size_t i, berth_value rows, berth_error *err) {
  berth_value *out = &r->call->out[i];
  *out = r->how[i] == UNCHANGING ? r->loop->first[i] : rows;
  if (r->how[i] == UNCHANGING) return BERTH_OK;
  if (r->how[i] != KEPT) BERTH__TRY(berth__onnx_cut_rows(r->call, &rows, err));
  if (r->how[i] == SEQUENCE) return give_sequence(r, i, rows, err);
  if (r->how[i] != KEPT) BERTH__TRY(join_rows(r, i, rows, err));
  return is_sequence(r, i) ? berth__onnx_sequence_slices(r->call, *out, out, err) : BERTH_OK;
}

static berth_status give_results(rolling *r, berth_error *err) {
  const size_t k = r->loop->n_carried;
  size_t last = BERTH__LOOP_LAST, stacked = BERTH__LOOP_LAST + r->n_kept;
  for (size_t i = 0; i < k; i++) {
    berth_value from = BERTH_VALUE_NONE;
    if (r->how[i] != UNCHANGING) from = r->end_out[r->how[i] == KEPT ? last++ : stacked++];
    if (i < r->call->n_out) BERTH__TRY(give_carried(r, i, from, err));
  }
  for (size_t i = k; i < r->call->n_out; i++)
    if (is_asked_for(r, i)) r->call->out[i] = r->end_out[stacked++];
  return BERTH_OK;
}

/* What an iteration appends to a sequence: a tensor, or several as slices of one. */
static berth_status take_appended(rolling *r, size_t i, berth_value *out, berth_error *err) {
  const berth__onnx_sequence added = berth__onnx_sequence_of(r->call, r->out[r->n_leading + i]);
  if (!added.is_list || added.n != 1) return berth__onnx_sequence_stack(r->call, &added, out, err);
  *out = added.values[0];
  return BERTH_OK;
}

static berth_status end(rolling *r, berth_value condition, berth_error *err) {
  const size_t k = r->loop->n_carried;
  berth_value *in = r->end_in;
  const berth_attr grows = grows_attr(r);
  in[BERTH__LOOP_ROUND] = r->begin[BERTH__LOOP_ROUND];
  in[BERTH__LOOP_STARTS] = r->begin[BERTH__LOOP_STARTS];
  in[BERTH__LOOP_END_TRIPS] = r->trips;
  in[BERTH__LOOP_END_CONDITION] = condition;
  memcpy(in + BERTH__LOOP_END_CARRIED, r->begin + BERTH__LOOP_CARRIED, r->n_kept * sizeof *in);
  size_t n_in = BERTH__LOOP_END_CARRIED + r->n_kept;
  for (size_t i = 0; i < k; i++)
    if (r->how[i] == KEPT) in[n_in++] = r->out[r->n_leading + i];
  for (size_t i = 0; i < k; i++) {
    if (r->how[i] == STACKED || r->how[i] == PIECES) in[n_in++] = r->out[r->n_leading + i];
    if (r->how[i] == SEQUENCE) BERTH__TRY(take_appended(r, i, &in[n_in++], err));
  }
  for (size_t i = k; i < r->call->n_out; i++)
    if (is_asked_for(r, i)) in[n_in++] = r->out[r->n_leading + i];
  const size_t n_out = BERTH__LOOP_LAST + r->n_kept + r->n_stacked + r->n_scanned;
  BERTH__TRY(berth__onnx_emit(r->call, "loop_end", in, n_in, &grows, 1, r->end_out, n_out, err));
  return give_results(r, err);
}

/* Whether the loop has the tensors of carried value i as one value, where the body has a sequence. */
static bool is_wrapped(const rolling *r, size_t i) {
  return is_sequence(r, i) && (r->how[i] == KEPT || r->how[i] == STACKED || r->how[i] == PIECES);
}

static berth_status wrap(rolling *r, berth_error *err) {
  for (size_t i = 0; i < r->loop->n_carried; i++)
    if (is_wrapped(r, i)) BERTH__TRY(berth__onnx_sequence_slices(r->call, r->in[2 + i], &r->in[2 + i], err));
  return BERTH_OK;
}

static berth_status unwrap(rolling *r, berth_error *err) {
  for (size_t i = 0; i < r->loop->n_carried; i++) {
    berth_value *before = &r->in[2 + i], *next = &r->out[r->n_leading + i];
    if (is_sequence(r, i) != berth__onnx_is_sequence(*next))
      return berth__fail(err, BERTH_MALFORMED, "carried value %zu is a sequence before a round or after it, not both",
                         i);
    if (!is_wrapped(r, i)) continue;
    const berth__onnx_sequence sequence = berth__onnx_sequence_of(r->call, *next);
    if (sequence.before != BERTH_VALUE_NONE) return berth__onnx_sequence_fail_read(r->call, &sequence, err);
    *before = berth__onnx_sequence_of(r->call, *before).stacked;
    BERTH__TRY(berth__onnx_sequence_stack(r->call, &sequence, next, err));
  }
  return BERTH_OK;
}

static berth_status convert_body(rolling *r, berth_error *err) {
  const berth__onnx_graph *body = r->loop->body;
  if (r->n_leading == 0) return berth__onnx_inner(r->call, body, r->in, body->n_inputs, r->out, body->n_outputs, err);
  BERTH__TRY(wrap(r, err));
  BERTH__TRY(berth__onnx_loop_body(r->call, body, r->loop->n_carried, r->in, r->out, err));
  return unwrap(r, err);
}

/* The iteration number may be declared as a list of one element. */
static berth_status number_of_round(rolling *r, berth_value *out, berth_error *err) {
  const berth__onnx_value *declared = &r->loop->body->inputs[0];
  const int64_t axis = 0;
  const berth_attr axes = berth_attr_ints("axes", &axis, 1);
  *out = r->begin[BERTH__LOOP_ROUND];
  if (!declared->has_shape || declared->rank != 1) return BERTH_OK;
  return berth__onnx_emit(r->call, "unsqueeze", out, 1, &axes, 1, out, 1, err);
}

/* An iteration runs only while the condition holds, so it is true inside. */
static berth_status open_and_convert(rolling *r, berth_error *err) {
  BERTH__TRY(onnx_rolled_begin(r, err));
  BERTH__TRY(number_of_round(r, &r->in[0], err));
  BERTH__TRY(berth__onnx_scalar(r->call, BERTH_BOOL, 1, &r->in[1], err));
  for (size_t i = 0, kept = 0; i < r->loop->n_carried; i++) /* the others are separate: see take_slices and sequences */
    if (r->how[i] == KEPT) r->in[2 + i] = r->begin[BERTH__LOOP_CARRIED + kept++];
  return convert_body(r, err);
}

/* ---- Sequences ---- */

/* Nothing is known of a sequence in the first conversion, except that a tensor can be appended to it. */
static berth_status open_sequences(rolling *r, berth_error *err) {
  for (size_t i = 0; i < r->loop->n_carried; i++) {
    set_how(r, i, is_sequence(r, i) ? SEQUENCE : KEPT);
    if (is_sequence(r, i)) BERTH__TRY(berth__onnx_sequence_unknown(r->call, &r->in[2 + i], err));
  }
  return BERTH_OK;
}

/* What the failed conversion has tried to read is perhaps never changed; false if there is nothing of the kind. */
static bool settle_read(rolling *r) {
  bool found = false;
  for (size_t i = 0; i < r->loop->n_carried; i++) {
    if (r->how[i] != SEQUENCE || !berth__onnx_sequence_of(r->call, r->in[2 + i]).is_read) continue;
    set_how(r, i, UNCHANGING);
    r->in[2 + i] = r->loop->first[i];
    found = true;
  }
  return found;
}

/* What the conversion has changed in another way than by appending to it is carried; false if there is no more. */
static bool settle_changed(rolling *r) {
  bool found = false;
  for (size_t i = 0; i < r->loop->n_carried; i++) {
    const berth_value before = r->in[2 + i], next = r->out[r->n_leading + i];
    if (r->how[i] != SEQUENCE && r->how[i] != UNCHANGING) continue;
    const bool is_appended = r->how[i] == SEQUENCE && berth__onnx_sequence_of(r->call, next).before == before;
    if (next != before && !is_appended) found = true;
    if (next == before)
      set_how(r, i, UNCHANGING);
    else if (!is_appended)
      set_how(r, i, KEPT);
  }
  return found;
}

/* The tensors of sequences that are carried, as one value each. */
static berth_status stack_first(rolling *r, berth_error *err) {
  for (size_t i = 0; i < r->loop->n_carried; i++) {
    if (!is_wrapped(r, i)) continue;
    const berth__onnx_sequence first = berth__onnx_sequence_of(r->call, r->loop->first[i]);
    if (first.before != BERTH_VALUE_NONE) return berth__onnx_sequence_fail_read(r->call, &first, err);
    if (first.is_list && first.n == 0)
      return berth__onnx_unsupported(r->call, err,
                                     "its rounds read what they have made of sequence %zu, which is empty at first, so "
                                     "that nothing says what its tensors look like; this needs a number of rounds that "
                                     "is known when the file is read (and at most 1000)",
                                     i);
    BERTH__TRY(berth__onnx_sequence_stack(r->call, &first, &r->first[i], err));
  }
  return BERTH_OK;
}

/* The conversion is repeated until every sequence is carried in a way that fits; `mark`: before the loop, which begins
 * after the values that are stacked for it. */
static berth_status convert_sequences(rolling *r, berth__graph_mark *mark, berth_error *err) {
  const berth__graph_mark start = *mark;
  bool is_settled = false;
  BERTH__TRY(open_sequences(r, err));
  while (!is_settled) {
    BERTH__TRY(stack_first(r, err));
    *mark = berth__graph_mark_now(r->call->graph);
    const berth_status status = open_and_convert(r, err);
    is_settled = status == BERTH_OK ? !settle_changed(r) : !settle_read(r);
    if (status == BERTH_NOMEM || (status != BERTH_OK && is_settled)) return status;
    if (!is_settled) berth__graph_roll_back(r->call->graph, &start);
  }
  return BERTH_OK;
}

/* ---- Growing values ---- */

/* The extents that an iteration has made longer; no carried value has been removed yet. */
static berth_status find_growth(rolling *r, berth_error *err) {
  const berth_graph *graph = r->call->graph;
  r->n_grows = 0;
  for (size_t i = 0; i < r->loop->n_carried; i++) {
    if (r->how[i] != KEPT) continue;
    const berth_value before = r->in[2 + i], next = r->out[r->n_leading + i];
    const uint32_t rank = graph->values[before].shape.rank;
    for (uint32_t axis = 0; axis < rank && rank == graph->values[next].shape.rank; axis++) {
      const int64_t by = berth__onnx_growth_of(graph, next, before, axis);
      if (by <= 0) continue;
      if (r->n_grows == BERTH__ONNX_MOST_GROWING)
        return berth__onnx_unsupported(r->call, err, "it makes more than %d extents longer", BERTH__ONNX_MOST_GROWING);
      r->grows[r->n_grows++] = (berth__onnx_growth){(int64_t)i, axis, by};
    }
  }
  return BERTH_OK;
}

/* Whether the body also returns the value as another result: from the iteration before, or as a scanned result. */
static bool is_given_elsewhere(const rolling *r, berth_value value, size_t i) {
  for (size_t k = 0; k < r->loop->body->n_outputs; k++)
    if (k != r->n_leading + i && r->out[k] == value) return true;
  return false;
}

static bool is_one_slice(const berth_graph *graph, const berth__node *concat, int64_t axis) {
  return concat->n_in == 2 && graph->values[concat->in[1]].shape.dim[axis] == 1;
}

/* Which of the growing values can be stacked; `since`: the first node of the body. The others need a bound. */
static berth_status find_appended(rolling *r, size_t since, berth_error *err) {
  for (uint32_t g = 0; g < r->n_grows; g++) {
    const size_t i = (size_t)r->grows[g].value;
    const int64_t axis = r->grows[g].axis;
    const berth_value before = r->in[2 + i], next = r->out[r->n_leading + i];
    const berth__node *concat;
    bool is_only = !is_given_elsewhere(r, before, i) && !is_given_elsewhere(r, next, i);
    for (uint32_t k = 0; k < r->n_grows; k++) is_only = is_only && (k == g || r->grows[k].value != r->grows[g].value);
    if (is_only && berth__onnx_is_appended(r->call->graph, next, before, (uint32_t)axis, since, &concat))
      set_how(r, i, is_one_slice(r->call->graph, concat, axis) ? STACKED : PIECES);
    else if (r->grows[g].by == BERTH__ONNX_GROWS_OPEN)
      return berth__onnx_unsupported(r->call, err,
                                     "a round reads carried value %zu and makes it longer by an extent that is not "
                                     "known when the file is read",
                                     i);
  }
  return BERTH_OK;
}

/* Gives each its own value, so that its only reader can be told from those of the initial value. */
static berth_status set_apart(rolling *r, berth_error *err) {
  for (size_t i = 0; i < r->loop->n_carried; i++)
    if (r->how[i] == STACKED || r->how[i] == PIECES)
      BERTH__TRY(berth__onnx_unary(r->call, "identity", r->first[i], &r->in[2 + i], err));
  return BERTH_OK;
}

static berth_status take_slices(rolling *r, size_t since, berth_error *err) {
  for (uint32_t g = 0; g < r->n_grows; g++) {
    const size_t i = (size_t)r->grows[g].value;
    const int64_t axis = r->grows[g].axis;
    const berth_attr axes = berth_attr_ints("axes", &axis, 1), along = berth_attr_int("axis", axis);
    const berth__node *concat;
    berth_value *out = &r->out[r->n_leading + i];
    if (r->how[i] != STACKED && r->how[i] != PIECES) continue;
    if (!berth__onnx_is_appended(r->call->graph, *out, r->in[2 + i], (uint32_t)axis, since, &concat) ||
        (r->how[i] == STACKED) != is_one_slice(r->call->graph, concat, axis))
      return berth__onnx_unsupported(r->call, err, "what its rounds append to carried value %zu depends on it", i);
    *out = concat->in[1];
    if (r->how[i] == STACKED)
      BERTH__TRY(berth__onnx_emit(r->call, "squeeze", out, 1, &axes, 1, out, 1, err));
    else if (concat->n_in > 2)
      BERTH__TRY(berth__onnx_emit(r->call, "concat", concat->in + 1, concat->n_in - 1, &along, 1, out, 1, err));
  }
  return BERTH_OK;
}

/* With the extents open that the first conversion has found: the second must find the same ones, with the same
 * numbers. */
static berth_status roll_growing(rolling *r, const berth__graph_mark *mark, berth_error *err) {
  berth__onnx_growth before[BERTH__ONNX_MOST_GROWING];
  const uint32_t n_before = r->n_grows;
  memcpy(before, r->grows, sizeof before);
  berth__graph_roll_back(r->call->graph, mark);
  BERTH__TRY(open_and_convert(r, err));
  const berth_value first_of_body = r->begin[BERTH__LOOP_ROUND];
  const size_t since = r->call->graph->values[first_of_body].node + 1;
  BERTH__TRY(find_growth(r, err));
  if (r->n_grows != n_before || memcmp(before, r->grows, n_before * sizeof *before) != 0)
    return berth__onnx_unsupported(r->call, err, "how much longer a round makes a carried value depends on the rounds");
  const size_t n_kept = r->n_kept;
  BERTH__TRY(find_appended(r, since, err));
  if (r->n_kept == n_kept) return end(r, r->out[0], err);
  berth__graph_roll_back(r->call->graph, mark);
  BERTH__TRY(set_apart(r, err));
  BERTH__TRY(open_and_convert(r, err));
  BERTH__TRY(take_slices(r, r->call->graph->values[r->begin[BERTH__LOOP_ROUND]].node + 1, err));
  return end(r, r->out[0], err);
}

static berth_status roll_loop(rolling *r, berth_error *err) {
  berth__graph_mark mark = berth__graph_mark_now(r->call->graph);
  BERTH__TRY(convert_sequences(r, &mark, err));
  BERTH__TRY(find_growth(r, err));
  return r->n_grows != 0 ? roll_growing(r, &mark, err) : end(r, r->out[0], err);
}

static void onnx_rolled_release(rolling *r) {
  berth__free(r->call->graph->ctx, r->first);
  berth__free(r->call->graph->ctx, r->how);
}

berth_status berth__onnx_roll_loop(berth__onnx_call *call, const berth__onnx_loop *loop, berth_error *err) {
  rolling r = {.call = call, .loop = loop, .n_leading = 1};
  berth_status status = onnx_rolled_allocate(&r, err);
  if (status == BERTH_OK) status = roll_loop(&r, err);
  onnx_rolled_release(&r);
  return status;
}

static berth_status take_slice(rolling *r, const berth__onnx_slice *slice, berth_value *out, berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", slice->axis);
  berth_value in[2] = {slice->value, r->begin[BERTH__LOOP_ROUND]};
  if (slice->is_reversed) {
    berth_value one, left;
    BERTH__TRY(berth__onnx_scalar(r->call, BERTH_I64, 1, &one, err));
    BERTH__TRY(berth__onnx_unary(r->call, "squeeze", r->trips, &left, err));
    BERTH__TRY(berth__onnx_binary(r->call, "sub", left, one, &left, err));
    BERTH__TRY(berth__onnx_binary(r->call, "sub", left, r->begin[BERTH__LOOP_ROUND], &in[1], err));
  }
  return berth__onnx_emit(r->call, "gather", in, 2, &axis, 1, out, 1, err);
}

static berth_status roll_scan(rolling *r, const berth__onnx_slice *slices, size_t n_slices, berth_error *err) {
  const size_t k = r->loop->n_carried;
  berth_value always;
  r->n_kept = k;
  BERTH__TRY(onnx_rolled_begin(r, err));
  BERTH__TRY(berth__onnx_scalar(r->call, BERTH_BOOL, 1, &always, err));
  memcpy(r->in, r->begin + BERTH__LOOP_CARRIED, k * sizeof *r->in);
  for (size_t i = 0; i < n_slices; i++) BERTH__TRY(take_slice(r, &slices[i], &r->in[k + i], err));
  BERTH__TRY(convert_body(r, err));
  return end(r, always, err);
}

berth_status berth__onnx_roll_scan(berth__onnx_call *call, const berth__onnx_loop *loop,
                                   const berth__onnx_slice *slices, size_t n_slices, berth_error *err) {
  rolling r = {.call = call, .loop = loop};
  berth_status status = onnx_rolled_allocate(&r, err);
  if (status == BERTH_OK) status = roll_scan(&r, slices, n_slices, err);
  onnx_rolled_release(&r);
  return status;
}
