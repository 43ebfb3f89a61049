/* The recurrence of lstm, gru, rnn and qlstm: one workgroup for each row of the batch in each direction.
 *
 * On a real GPU 32 threads share the sum of a unit, so that reads of weights are contiguous, and pass their parts
 * through shared memory to the thread that owns the unit. On other devices each thread computes the sums of its own
 * units. */
#include <math.h>

#include "kernel/lower/elements.h"
#include "kernel/lower/recurrent.h"

#define LANES 32u
#define MOST_THREADS 256u
#define MOST_GATES 4u
#define MOST_UNITS 32u /* that a workgroup sums at the same time */

typedef struct work {
  berth__lowering *l;
  const berth__recurrent_sizes *s;
  berth__kernel *k;
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  bool is_shared;
  uint32_t threads, lanes, units; /* units: per round */
  uint32_t state, parts;          /* shared arrays */
  int64_t state_at;               /* offset in scratch */
  berth__x thread, direction, row, length;
  berth__x now, next;      /* which of the two h a step reads and which it writes: offsets into the state */
  berth__x h_step, h_zero; /* of qlstm: the quantisation of this step's h */
} work;

/* The third part of the state. */
static int64_t third(const work *w) { return 2 * w->s->hidden; }

static berth__x group_state(const work *w) {
  const berth__x group = berth__x_add(w->k, berth__x_affine(w->k, w->direction, w->s->batch, 0), w->row);
  return berth__x_affine(w->k, group, 3 * w->s->hidden, w->state_at);
}

static berth__x load_state(const work *w, berth__x at) {
  if (w->is_shared) return berth__x_shared_load(w->k, w->state, at);
  return berth__x_load(w->k, berth__l_scratch(w->k, BERTH_F32), berth__x_add(w->k, group_state(w), at));
}

static void store_state(const work *w, berth__x at, berth__x value) {
  if (w->is_shared)
    berth__x_shared_store(w->k, w->state, at, value);
  else
    berth__x_store(w->k, berth__l_scratch(w->k, BERTH_F32), berth__x_add(w->k, group_state(w), at), value);
}

static void wait(const work *w) {
  if (w->threads > 1) berth__x_barrier(w->k);
}

/* ---- Sums ---- */

/* One gate's sum over h, or over what has passed the reset gate. */
typedef struct gate_sum {
  int64_t number;
  berth__x vector; /* an offset into the state */
} gate_sum;

/* A scale or zero point of a row of qlstm's weights. */
static berth__x qlstm_entry(const work *w, uint32_t operand, const gate_sum *g, berth__x unit) {
  berth__kernel *k = w->k;
  const int64_t hidden = w->s->hidden;
  if (w->l->call->in[operand].rank == 1) return berth__l_load(w->l, k, operand, w->direction);
  const berth__x line = berth__x_affine(k, w->direction, w->s->gates * hidden, g->number * hidden);
  return berth__l_load(w->l, k, operand, berth__x_add(k, line, unit));
}

/* The quantisation of a step's h: every thread looks at all of it. */
static void find_range(work *w) {
  berth__kernel *k = w->k;
  const berth__x zero = berth__x_f32(k, 0), low = berth__x_variable(k, zero), high = berth__x_variable(k, zero);
  const berth__x i = berth__x_loop_n(k, w->s->hidden);
  const berth__x h = load_state(w, berth__x_add(k, w->now, i)), least = berth__x_get(k, low),
                 most = berth__x_get(k, high);
  berth__x_set(k, low, berth__x_select(k, berth__x_lt(k, h, least), h, least));
  berth__x_set(k, high, berth__x_select(k, berth__x_lt(k, most, h), h, most));
  berth__x_end(k);
  const berth__x range = berth__x_sub(k, berth__x_get(k, high), berth__x_get(k, low));
  const berth__x step = berth__x_quotient(k, range, berth__x_f32(k, 255));
  w->h_step = berth__x_select(k, berth__x_eq(k, range, zero), berth__x_f32(k, 1), step);
  w->h_zero = berth__x1(k, BERTH__INST_round,
                        berth__x_quotient(k, berth__x1(k, BERTH__INST_neg, berth__x_get(k, low)), w->h_step));
}

/* Sums (h - zero point) in quantised units times (byte - zero point): exact integers, so partial sums are converted to
 * f32 only for scaling. */
static berth__x qlstm_sum_over(const work *w, const gate_sum *g, berth__x unit, berth__x first) {
  berth__kernel *k = w->k;
  const int64_t hidden = w->s->hidden;
  const berth__x sum = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x matrix = berth__x_affine(k, w->direction, w->s->gates * hidden * hidden, g->number * hidden * hidden);
  const berth__x line = berth__x_add(k, matrix, berth__x_affine(k, unit, hidden, 0));
  berth__x zero = berth__x_i32(k, 0);
  if (berth__l_has(w->l, BERTH__QLSTM_ZERO))
    zero = berth__x_convert(k, BERTH__NUM_I32, qlstm_entry(w, BERTH__QLSTM_ZERO, g, unit));
  const berth__x i = berth__x_loop(k, first, berth__x_i32(k, hidden), w->lanes);
  const berth__x weight =
      berth__x_convert(k, BERTH__NUM_I32, berth__l_load(w->l, k, BERTH__QLSTM_RECURRENCE, berth__x_add(k, line, i)));
  const berth__x quotient = berth__x_quotient(k, load_state(w, berth__x_add(k, g->vector, i)), w->h_step);
  const berth__x place =
      berth__l_saturate(k, berth__x_add(k, berth__x1(k, BERTH__INST_round, quotient), w->h_zero), BERTH_U8);
  const berth__x value =
      berth__x_sub(k, berth__x_convert(k, BERTH__NUM_I32, place), berth__x_convert(k, BERTH__NUM_I32, w->h_zero));
  const berth__x product = berth__x_mul(k, value, berth__x_sub(k, weight, zero));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), product));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

/* Converts a sum of integers to its contribution to a gate. */
static berth__x qlstm_scaled(const work *w, const gate_sum *g, berth__x unit, berth__x sum) {
  berth__kernel *k = w->k;
  const berth__x scale = berth__x_mul(k, w->h_step, qlstm_entry(w, BERTH__QLSTM_SCALE, g, unit));
  return berth__x_mul(k, berth__x_convert(k, BERTH__NUM_F32, sum), scale);
}

static berth__x sum_over(const work *w, const gate_sum *g, berth__x unit, berth__x first) {
  berth__kernel *k = w->k;
  if (w->s->is_quantised) return qlstm_sum_over(w, g, unit, first);
  const int64_t hidden = w->s->hidden;
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x matrix = berth__x_affine(k, w->direction, w->s->gates * hidden * hidden, g->number * hidden * hidden);
  const berth__x line = berth__x_add(k, matrix, berth__x_affine(k, unit, hidden, 0));
  const berth__x i = berth__x_loop(k, first, berth__x_i32(k, hidden), w->lanes);
  const berth__x weight = berth__l_load(w->l, k, BERTH__RECURRENT_RECURRENCE, berth__x_add(k, line, i));
  const berth__x value = load_state(w, berth__x_add(k, g->vector, i));
  berth__x_set(k, sum, berth__x3(k, BERTH__INST_fma, weight, value, berth__x_get(k, sum)));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

static berth__x lower_recurrent_steps_part_at(const work *w, uint32_t gate, berth__x unit, berth__x lane) {
  const berth__x first = berth__x_affine(w->k, unit, LANES + 1, (int64_t)gate * w->units * (LANES + 1));
  return berth__x_add(w->k, first, lane);
}

/* Each set of 32 threads sums for one unit after the other and leaves 32 parts of each sum. */
static void sum_parts(const work *w, const gate_sum *gates, uint32_t n_gates, berth__x first_unit) {
  berth__kernel *k = w->k;
  const uint32_t lines = w->threads / LANES;
  const berth__x lane = berth__x_rem(k, w->thread, berth__x_i32(k, LANES));
  const berth__x line = berth__x_div(k, w->thread, berth__x_i32(k, LANES));
  const berth__x in_round = berth__x_loop(k, line, berth__x_i32(k, w->units), lines);
  const berth__x last = berth__x_i32(k, w->s->hidden - 1);
  const berth__x unit = berth__x_min(k, berth__x_add(k, first_unit, in_round), last);
  for (uint32_t g = 0; g < n_gates; g++)
    berth__x_shared_store(k, w->parts, lower_recurrent_steps_part_at(w, g, in_round, lane),
                          sum_over(w, &gates[g], unit, lane));
  berth__x_end(k);
}

static berth__x lower_recurrent_steps_add_parts(const work *w, uint32_t gate, berth__x in_round) {
  berth__kernel *k = w->k;
  const berth__x sum = berth__x_variable(k, w->s->is_quantised ? berth__x_i32(k, 0) : berth__x_f32(k, 0));
  const berth__x lane = berth__x_loop_n(k, LANES);
  const berth__x part = berth__x_shared_load(k, w->parts, lower_recurrent_steps_part_at(w, gate, in_round, lane));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), part));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

/* ---- Steps ---- */

/* What the thread that owns a unit needs during a step. */
typedef struct step {
  berth__x unit, gates; /* gates: offset in scratch of the inputs' contributions */
  berth__x is_on;       /* the row has this step */
  berth__x to;          /* position of the step's h in the first result */
  berth__x sum[MOST_GATES];
} step;

static berth__x activate_one(const work *w, uint32_t which, berth__x x) {
  return berth__activation_of(w->k, &w->activations[which], x);
}

static berth__x lower_recurrent_steps_activate(const work *w, uint32_t which, berth__x x) {
  const uint32_t each = berth__recurrent_functions(w->l->op->code);
  const berth__x one = activate_one(w, which, x);
  if (w->s->directions == 1 || berth__activation_equal(&w->activations[which], &w->activations[each + which]))
    return one;
  const berth__x is_first = berth__x_eq(w->k, w->direction, berth__x_i32(w->k, 0));
  return berth__x_select(w->k, is_first, one, activate_one(w, each + which, x));
}

static berth__x clipped(const work *w, berth__x x) {
  const double clip = w->l->call->attrs[BERTH__RECURRENT_CLIP].f;
  if (!(clip > 0)) return x;
  const berth__x high = berth__x_f32(w->k, (float)clip), low = berth__x_f32(w->k, (float)-clip);
  x = berth__x_select(w->k, berth__x_lt(w->k, high, x), high, x);
  return berth__x_select(w->k, berth__x_lt(w->k, x, low), low, x);
}

/* An entry of an operand [directions, width], 0 if it is left out. */
static berth__x lower_recurrent_steps_entry_of(const work *w, uint32_t operand, int64_t width, int64_t first,
                                               berth__x unit) {
  if (!berth__l_has(w->l, operand)) return berth__x_f32(w->k, 0);
  const berth__x at = berth__x_add(w->k, berth__x_affine(w->k, w->direction, width, first), unit);
  return berth__l_load(w->l, w->k, operand, at);
}

/* The inputs' contribution to a gate: of qlstm without the first bias. */
static berth__x from_inputs(const work *w, const step *t, int64_t gate) {
  if (w->s->is_quantised) {
    const int64_t hidden = w->s->hidden, stride = w->l->call->in[BERTH__QLSTM_GATES].stride[3];
    const berth__x unit = berth__x_affine(w->k, t->unit, stride, gate * hidden * stride);
    const berth__x given = berth__l_load(w->l, w->k, BERTH__QLSTM_GATES, berth__x_add(w->k, t->gates, unit));
    if (!berth__l_has(w->l, BERTH__QLSTM_BIAS)) return given;
    const int64_t width = 2 * w->s->gates * hidden;
    return berth__x_add(w->k, given,
                        lower_recurrent_steps_entry_of(w, BERTH__QLSTM_BIAS, width, gate * hidden, t->unit));
  }
  const berth__x at = berth__x_add(w->k, berth__x_affine(w->k, t->gates, 1, gate * w->s->hidden), t->unit);
  return berth__x_load(w->k, berth__l_scratch(w->k, BERTH_F32), at);
}

/* A sum of h with the bias of its gate. */
static berth__x from_state(const work *w, const step *t, uint32_t sum, int64_t gate) {
  const int64_t hidden = w->s->hidden, width = 2 * w->s->gates * hidden;
  const berth__x bias =
      lower_recurrent_steps_entry_of(w, BERTH__RECURRENT_BIAS, width, (w->s->gates + gate) * hidden, t->unit);
  return berth__x_add(w->k, t->sum[sum], bias);
}

static berth__x gate_of(const work *w, const step *t, uint32_t sum, int64_t gate) {
  return berth__x_add(w->k, from_inputs(w, t, gate), from_state(w, t, sum, gate));
}

static berth__x old_h(const work *w, const step *t) { return load_state(w, berth__x_add(w->k, w->now, t->unit)); }

/* Past the end of a row its state is kept, and its results are 0. */
static void set_h(const work *w, const step *t, berth__x h) {
  berth__kernel *k = w->k;
  store_state(w, berth__x_add(k, w->next, t->unit), berth__x_select(k, t->is_on, h, old_h(w, t)));
  const berth__x to = berth__x_add(k, t->to, berth__x_affine(k, t->unit, w->l->call->out[0].stride[3], 0));
  berth__l_store(w->l, k, 0, to, berth__x_select(k, t->is_on, h, berth__x_f32(k, 0)));
}

static berth__x peep(const work *w, const step *t, int64_t which, berth__x x, berth__x c) {
  const int64_t hidden = w->s->hidden;
  if (!berth__l_has(w->l, BERTH__RECURRENT_PEEPHOLES)) return x;
  const berth__x factor =
      lower_recurrent_steps_entry_of(w, BERTH__RECURRENT_PEEPHOLES, 3 * hidden, which * hidden, t->unit);
  return berth__x_add(w->k, x, berth__x_mul(w->k, factor, c));
}

static void lower_recurrent_step_lstm(const work *w, const step *t) {
  berth__kernel *k = w->k;
  const berth__x at = berth__x_affine(k, t->unit, 1, third(w)), old = load_state(w, at);
  const berth__x i = lower_recurrent_steps_activate(w, 0, clipped(w, peep(w, t, 0, gate_of(w, t, 0, 0), old)));
  const berth__x f = w->l->call->attrs[BERTH__RECURRENT_INPUT_FORGET].i != 0
                         ? berth__x_sub(k, berth__x_f32(k, 1), i)
                         : lower_recurrent_steps_activate(w, 0, clipped(w, peep(w, t, 2, gate_of(w, t, 2, 2), old)));
  const berth__x cell = lower_recurrent_steps_activate(w, 1, clipped(w, gate_of(w, t, 3, 3)));
  const berth__x c = berth__x_add(k, berth__x_mul(k, f, old), berth__x_mul(k, i, cell));
  const berth__x o = lower_recurrent_steps_activate(w, 0, clipped(w, peep(w, t, 1, gate_of(w, t, 1, 1), c)));
  store_state(w, at, berth__x_select(k, t->is_on, c, old));
  set_h(w, t, berth__x_mul(k, o, lower_recurrent_steps_activate(w, 2, c)));
}

static void lower_recurrent_step_rnn(const work *w, const step *t) {
  set_h(w, t, lower_recurrent_steps_activate(w, 0, clipped(w, gate_of(w, t, 0, 0))));
}

static bool is_linear_first(const work *w) { return w->l->call->attrs[BERTH__RECURRENT_LINEAR_BEFORE_RESET].i != 0; }

/* The first half of a gru's step, if the reset gate comes before the product: the part of h that passes it. */
static void step_reset(const work *w, const step *t) {
  const berth__x r = lower_recurrent_steps_activate(w, 0, clipped(w, gate_of(w, t, 0, 1)));
  store_state(w, berth__x_affine(w->k, t->unit, 1, third(w)), berth__x_mul(w->k, r, old_h(w, t)));
}

static void lower_recurrent_step_gru(const work *w, const step *t) {
  berth__kernel *k = w->k;
  const berth__x z = lower_recurrent_steps_activate(w, 0, clipped(w, gate_of(w, t, 0, 0)));
  berth__x hidden;
  if (is_linear_first(w)) {
    const berth__x r = lower_recurrent_steps_activate(w, 0, clipped(w, gate_of(w, t, 1, 1)));
    hidden = berth__x_add(k, from_inputs(w, t, 2), berth__x_mul(k, r, from_state(w, t, 2, 2)));
  } else {
    hidden = gate_of(w, t, 1, 2);
  }
  const berth__x fresh =
      berth__x_mul(k, berth__x_sub(k, berth__x_f32(k, 1), z), lower_recurrent_steps_activate(w, 1, clipped(w, hidden)));
  set_h(w, t, berth__x_add(k, fresh, berth__x_mul(k, z, old_h(w, t))));
}

/* All units: the sums of some gates, then the owners' computation. */
static void each_unit(const work *w, step *t, const gate_sum *gates, uint32_t n_gates,
                      void (*finish)(const work *w, const step *t)) {
  berth__kernel *k = w->k;
  const int64_t hidden = w->s->hidden;
  const berth__x first = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, hidden), w->units);
  if (w->lanes > 1) {
    sum_parts(w, gates, n_gates, first);
    wait(w);
  }
  t->unit = berth__x_add(k, first, w->thread);
  const berth__x owns = berth__x_and(k, berth__x_lt(k, w->thread, berth__x_i32(k, w->units)),
                                     berth__x_lt(k, t->unit, berth__x_i32(k, hidden)));
  berth__x_if(k, owns);
  for (uint32_t g = 0; g < n_gates; g++) {
    t->sum[g] = w->lanes > 1 ? lower_recurrent_steps_add_parts(w, g, w->thread)
                             : sum_over(w, &gates[g], t->unit, berth__x_i32(k, 0));
    if (w->s->is_quantised) t->sum[g] = qlstm_scaled(w, &gates[g], t->unit, t->sum[g]);
  }
  finish(w, t);
  berth__x_end(k);
  if (w->lanes > 1) wait(w); /* before the parts are overwritten */
  berth__x_end(k);
}

static void take_step(work *w, step *t) {
  const berth__x turned = berth__x_i32(w->k, third(w));
  const gate_sum all[MOST_GATES] = {{0, w->now}, {1, w->now}, {2, w->now}, {3, w->now}};
  const gate_sum reset = {1, w->now}, rest[2] = {{0, w->now}, {2, turned}};
  if (w->s->is_quantised) find_range(w);
  switch (w->l->op->code) {
    case BERTH__OP_qlstm:
    case BERTH__OP_lstm: each_unit(w, t, all, 4, lower_recurrent_step_lstm); break;
    case BERTH__OP_rnn: each_unit(w, t, all, 1, lower_recurrent_step_rnn); break;
    default:
      if (is_linear_first(w)) {
        each_unit(w, t, all, 3, lower_recurrent_step_gru);
      } else {
        each_unit(w, t, &reset, 1, step_reset);
        wait(w);
        each_unit(w, t, rest, 2, lower_recurrent_step_gru);
      }
  }
  wait(w);
}

/* ---- Initial and final states ---- */

/* The position of unit 0 of the row in [directions, batch, hidden]. */
static berth__x lower_recurrent_steps_state_of(const work *w, const berth_tensor *tensor) {
  return berth__x_add(w->k, berth__x_affine(w->k, w->direction, tensor->stride[0], 0),
                      berth__x_affine(w->k, w->row, tensor->stride[1], 0));
}

static void start_state(const work *w, uint32_t operand, int64_t at) {
  berth__kernel *k = w->k;
  const berth__x unit = berth__x_loop(k, w->thread, berth__x_i32(k, w->s->hidden), w->threads);
  berth__x value = berth__x_f32(k, 0);
  if (berth__l_has(w->l, operand)) {
    const berth_tensor *tensor = &w->l->call->in[operand];
    const berth__x from =
        berth__x_add(k, lower_recurrent_steps_state_of(w, tensor), berth__x_affine(k, unit, tensor->stride[2], 0));
    value = berth__l_load(w->l, k, operand, from);
  }
  store_state(w, berth__x_affine(k, unit, 1, at), value);
  berth__x_end(k);
}

static void end_state(const work *w, uint32_t out, int64_t at) {
  berth__kernel *k = w->k;
  if (out >= w->l->call->n_out) return;
  const berth_tensor *tensor = &w->l->call->out[out];
  const berth__x unit = berth__x_loop(k, w->thread, berth__x_i32(k, w->s->hidden), w->threads);
  const berth__x is_none = berth__x_eq(k, w->length, berth__x_i32(k, 0));
  const berth__x value = load_state(w, berth__x_affine(k, unit, 1, at));
  berth__l_store(
      w->l, k, out,
      berth__x_add(k, lower_recurrent_steps_state_of(w, tensor), berth__x_affine(k, unit, tensor->stride[2], 0)),
      berth__x_select(k, is_none, berth__x_f32(k, 0), value));
  berth__x_end(k);
}

/* Rows may differ in length, but all threads of all workgroups take every step; rows that have ended change nothing. */
static void go_through(work *w) {
  berth__kernel *k = w->k;
  const berth__recurrent_sizes *s = w->s;
  const berth_tensor *out = &w->l->call->out[0];
  const bool is_reverse = strcmp(w->l->call->attrs[BERTH__RECURRENT_DIRECTION].s, "reverse") == 0;
  if (s->steps == 0) return;
  const berth__x n = berth__x_loop_n(k, s->steps);
  step t = {.is_on = berth__x_lt(k, n, w->length)};
  const berth__x backwards = berth__x_sub(k, berth__x_affine(k, w->length, 1, -1), n);
  const berth__x turns =
      berth__x_and(k, t.is_on, is_reverse ? berth__x_bool(k, true) : berth__x_eq(k, w->direction, berth__x_i32(k, 1)));
  const berth__x at = berth__x_max(k, berth__x_i32(k, 0), berth__x_select(k, turns, backwards, n));
  const berth__x parity = berth__x_rem(k, n, berth__x_i32(k, 2));
  w->now = berth__x_affine(k, parity, s->hidden, 0);
  w->next = berth__x_affine(k, parity, -s->hidden, s->hidden);
  const berth__x flat = berth__x_add(
      k, berth__x_affine(k, berth__x_add(k, berth__x_affine(k, at, s->directions, 0), w->direction), s->batch, 0),
      w->row);
  t.gates = s->is_quantised ? berth__l_place(k, &w->l->call->in[BERTH__QLSTM_GATES],
                                             (const berth__x[]){at, w->direction, w->row, berth__x_i32(k, 0)})
                            : berth__x_affine(k, flat, s->gates * s->hidden, 0);
  t.to = berth__l_place(k, out, (const berth__x[]){at, w->direction, w->row, berth__x_i32(k, 0)});
  take_step(w, &t);
  berth__x_end(k);
}

static berth__x lower_recurrent_steps_length_of(const work *w) {
  berth__kernel *k = w->k;
  const berth__x all = berth__x_i32(k, w->s->steps);
  if (!berth__l_has(w->l, BERTH__RECURRENT_LENGTHS)) return all;
  const berth_tensor *lengths = &w->l->call->in[BERTH__RECURRENT_LENGTHS];
  const berth__x given =
      berth__l_load(w->l, k, BERTH__RECURRENT_LENGTHS, berth__x_affine(k, w->row, lengths->stride[0], 0));
  return berth__x_max(k, berth__x_i32(k, 0), berth__x_min(k, given, all));
}

/* As many units per round as there is room for the parts of their sums. */
static void lower_recurrent_steps_choose(work *w) {
  const berth__kernel_limits *limits = w->l->limits;
  const uint32_t most = limits->group_size < MOST_THREADS ? limits->group_size : MOST_THREADS;
  w->is_shared = berth__recurrent_is_shared(w->s, limits);
  w->threads = w->is_shared ? most : 1;
  while (w->threads > 1 && (int64_t)w->threads / 2 >= w->s->hidden && !limits->shares_well) w->threads /= 2;
  w->lanes = 1;
  w->units = w->threads;
  if (!w->is_shared || !limits->shares_well || most % LANES != 0) return;
  const uint32_t left = limits->shared_bytes / 4 - (uint32_t)(3 * w->s->hidden);
  uint32_t units = MOST_UNITS;
  while (units > 1 && (uint32_t)w->s->gates * units * (LANES + 1) > left) units /= 2;
  if ((uint32_t)w->s->gates * units * (LANES + 1) > left) return;
  w->lanes = LANES;
  w->units = units;
}

berth_status berth__recurrent_steps(berth__lowering *l, const berth__recurrent_sizes *s, berth_error *err) {
  work w = {.l = l, .s = s, .state_at = berth__recurrent_state_at(s)};
  BERTH__TRY(berth__recurrent_activations(l->op->code, l->call->attrs, w.activations, err));
  lower_recurrent_steps_choose(&w);
  berth__kernel *k = w.k = berth__l_begin(l, "steps");
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x group[2];
  k->flops = 2.0 * (double)(s->steps * s->directions * s->batch) * (double)(s->gates * s->hidden * s->hidden);
  k->bytes = berth__l_bytes(l, BERTH__RECURRENT_RECURRENCE) + berth__l_bytes(l, berth__operand_out(l->call, 0));
  k->group_size = w.threads;
  k->n_groups = (uint64_t)(s->directions * s->batch);
  berth__l_unravel(k, berth__x_group(k), 2, (const int64_t[]){s->directions, s->batch}, group);
  w.direction = group[0];
  w.row = group[1];
  w.thread = berth__x_thread(k);
  if (w.is_shared) w.state = berth__kernel_shared(k, BERTH__NUM_F32, (uint32_t)(3 * s->hidden));
  const berth__number part = s->is_quantised ? BERTH__NUM_I32 : BERTH__NUM_F32;
  if (w.lanes > 1) w.parts = berth__kernel_shared(k, part, (uint32_t)s->gates * w.units * (LANES + 1));
  w.length = lower_recurrent_steps_length_of(&w);
  start_state(&w, BERTH__RECURRENT_INITIAL_H, 0);
  start_state(&w, BERTH__RECURRENT_INITIAL_C, third(&w));
  wait(&w);
  go_through(&w);
  end_state(&w, 1, s->steps % 2 * s->hidden);
  end_state(&w, 2, third(&w));
  return berth__l_end(l, k, err);
}
