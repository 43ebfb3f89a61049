/* Gradients of lstm, gru and rnn: expanded step by step, and the walk goes through the steps. */
#include "ops/recurrent.h"
#include "grad/grad.h"

#define GRAD_MOST_STEPS 4096 /* each becomes some twenty nodes */

typedef struct unrolled {
  berth__grad *d;
  int64_t steps, hidden;
  uint32_t gates;
  berth_type type;
  double clip; /* 0: no clipping */
  const berth__activation *act;
  berth_value gate;               /* the inputs' contribution at this step, [B, gates H] */
  berth_value weight, recurrence; /* for the direction, transposed */
  berth_value bias, own_bias;     /* sum of both; NONE: no bias */
  berth_value peephole[3];        /* for i, o, f; NONE: none */
  berth_value h, c;
} unrolled;

/* Block k of the last axis, with so many columns. */
static berth_value grad_block(berth__grad *d, berth_value a, int64_t k, int64_t columns) {
  return berth__grad_narrow(d, a, berth__grad_rank(d, a) - 1, k * columns, (k + 1) * columns);
}

static berth_value grad_pick_first(berth__grad *d, berth_value a, int64_t at) {
  const int64_t axes[] = {0};
  const berth_attr attr = berth_attr_ints("axes", axes, 1);
  const berth_value one = berth__grad_narrow(d, a, 0, at, at + 1);
  return berth__grad_op(d, BERTH__OP_squeeze, &one, 1, &attr, 1);
}

static berth_value grad_line(berth__grad *d, berth_value x, double alpha, double beta) {
  return berth__grad_num(d, BERTH__OP_add, berth__grad_scale(d, x, alpha), beta);
}

static berth_value grad_clamp(berth__grad *d, berth_value x, double low, double high) {
  const berth_attr attrs[2] = {berth_attr_float("min", low), berth_attr_float("max", high)};
  return berth__grad_op(d, BERTH__OP_clamp, &x, 1, attrs, 2);
}

/* A constant below `limit`, x from there on. */
static berth_value grad_from(berth__grad *d, berth_value x, double limit, berth_value below) {
  return berth__grad_where(d, berth__grad_num(d, BERTH__OP_lt, x, limit), below, x);
}

static berth_value grad_activate_unclipped(berth__grad *d, const berth__activation *a, berth_value x) {
  const char *name = a->name;
  if (strcmp(name, "sigmoid") == 0) return berth__grad_1(d, BERTH__OP_sigmoid, x);
  if (strcmp(name, "tanh") == 0) return berth__grad_1(d, BERTH__OP_tanh, x);
  if (strcmp(name, "relu") == 0) return berth__grad_1(d, BERTH__OP_relu, x);
  if (strcmp(name, "softplus") == 0) return berth__grad_1(d, BERTH__OP_softplus, x);
  if (strcmp(name, "affine") == 0) return grad_line(d, x, a->alpha, a->beta);
  if (strcmp(name, "leaky_relu") == 0) return grad_from(d, x, 0, berth__grad_scale(d, x, a->alpha));
  if (strcmp(name, "thresholded_relu") == 0)
    return grad_from(d, x, a->alpha, berth__grad_scalar(d, berth__grad_type(d, x), 0));
  if (strcmp(name, "scaled_tanh") == 0)
    return berth__grad_scale(d, berth__grad_1(d, BERTH__OP_tanh, berth__grad_scale(d, x, a->beta)), a->alpha);
  if (strcmp(name, "hard_sigmoid") == 0) return grad_clamp(d, grad_line(d, x, a->alpha, a->beta), 0, 1);
  if (strcmp(name, "elu") == 0)
    return grad_from(d, x, 0, berth__grad_scale(d, berth__grad_1(d, BERTH__OP_expm1, x), a->alpha));
  return berth__grad_div(d, x, grad_line(d, berth__grad_1(d, BERTH__OP_abs, x), 1, 1)); /* softsign */
}

static berth_value grad_activate(unrolled *u, uint32_t which, berth_value x) {
  if (u->clip != 0) x = grad_clamp(u->d, x, -u->clip, u->clip);
  return grad_activate_unclipped(u->d, &u->act[which], x);
}

/* The contribution of h to the blocks [first, first + count). */
static berth_value grad_recur(unrolled *u, berth_value h, int64_t first, int64_t count) {
  berth__grad *d = u->d;
  const int64_t from = first * u->hidden, to = (first + count) * u->hidden;
  berth_value out = berth__grad_2(d, BERTH__OP_matmul, h, berth__grad_narrow(d, u->recurrence, 1, from, to));
  if (u->own_bias != BERTH_VALUE_NONE) out = berth__grad_add(d, out, berth__grad_narrow(d, u->own_bias, 0, from, to));
  return out;
}

static berth_value grad_peep(unrolled *u, berth_value sum, uint32_t which, berth_value c) {
  if (u->peephole[which] == BERTH_VALUE_NONE) return sum;
  return berth__grad_add(u->d, sum, berth__grad_mul(u->d, u->peephole[which], c));
}

static void grad_step_lstm(unrolled *u) {
  enum {
    I,
    O,
    F,
    C
  };
  berth__grad *d = u->d;
  const bool couples = d->node.attrs[BERTH__RECURRENT_INPUT_FORGET].i != 0;
  const berth_value sum = berth__grad_add(d, u->gate, grad_recur(u, u->h, 0, 4));
  const berth_value i = grad_activate(u, 0, grad_peep(u, grad_block(d, sum, I, u->hidden), 0, u->c));
  const berth_value f = couples ? berth__grad_num_first(d, BERTH__OP_sub, 1, i)
                                : grad_activate(u, 0, grad_peep(u, grad_block(d, sum, F, u->hidden), 2, u->c));
  const berth_value made = berth__grad_mul(d, i, grad_activate(u, 1, grad_block(d, sum, C, u->hidden)));
  u->c = berth__grad_add(d, berth__grad_mul(d, f, u->c), made);
  const berth_value o = grad_activate(u, 0, grad_peep(u, grad_block(d, sum, O, u->hidden), 1, u->c));
  u->h = berth__grad_mul(d, o, grad_activate_unclipped(d, &u->act[2], u->c));
}

static void grad_step_gru(unrolled *u) {
  berth__grad *d = u->d;
  const bool linear_first = d->node.attrs[BERTH__RECURRENT_LINEAR_BEFORE_RESET].i != 0;
  const int64_t n = u->hidden;
  const berth_value both = grad_recur(u, u->h, 0, 2);
  const berth_value z =
      grad_activate(u, 0, berth__grad_add(d, grad_block(d, u->gate, 0, n), grad_block(d, both, 0, n)));
  const berth_value r =
      grad_activate(u, 0, berth__grad_add(d, grad_block(d, u->gate, 1, n), grad_block(d, both, 1, n)));
  const berth_value turned = linear_first ? berth__grad_mul(d, r, grad_recur(u, u->h, 2, 1))
                                          : grad_recur(u, berth__grad_mul(d, r, u->h), 2, 1);
  const berth_value made = grad_activate(u, 1, berth__grad_add(d, grad_block(d, u->gate, 2, n), turned));
  const berth_value rest = berth__grad_mul(d, berth__grad_num_first(d, BERTH__OP_sub, 1, z), made);
  u->h = berth__grad_add(d, rest, berth__grad_mul(d, z, u->h));
}

static void grad_recurrent_step(unrolled *u) {
  if (u->d->node.op->code == BERTH__OP_lstm)
    grad_step_lstm(u);
  else if (u->d->node.op->code == BERTH__OP_gru)
    grad_step_gru(u);
  else
    u->h = grad_activate(u, 0, berth__grad_add(u->d, u->gate, grad_recur(u, u->h, 0, 1)));
}

/* The state of a direction before its first step. */
static berth_value grad_initial(unrolled *u, uint32_t operand, int64_t direction, int64_t batch) {
  berth__grad *d = u->d;
  const berth_dim dims[] = {{NULL, batch}, {NULL, u->hidden}};
  const berth_attr shape = berth_attr_dims("shape", dims, 2);
  if (berth__grad_has(d, operand)) return grad_pick_first(d, berth__grad_in(d, operand), direction);
  const berth_value zero = berth__grad_scalar(d, u->type, 0);
  return berth__grad_op(d, BERTH__OP_expand, &zero, 1, &shape, 1);
}

static void grad_read_direction(unrolled *u, int64_t direction, int64_t batch) {
  berth__grad *d = u->d;
  const int64_t rows = (int64_t)u->gates * u->hidden;
  u->weight = berth__grad_swap_last(d, grad_pick_first(d, berth__grad_in(d, BERTH__RECURRENT_WEIGHT), direction));
  u->recurrence =
      berth__grad_swap_last(d, grad_pick_first(d, berth__grad_in(d, BERTH__RECURRENT_RECURRENCE), direction));
  u->bias = u->own_bias = BERTH_VALUE_NONE;
  if (berth__grad_has(d, BERTH__RECURRENT_BIAS)) {
    const berth_value bias = grad_pick_first(d, berth__grad_in(d, BERTH__RECURRENT_BIAS), direction);
    u->bias = berth__grad_narrow(d, bias, 0, 0, rows);
    u->own_bias = berth__grad_narrow(d, bias, 0, rows, 2 * rows);
  }
  for (uint32_t i = 0; i < 3; i++) u->peephole[i] = BERTH_VALUE_NONE;
  if (berth__grad_has(d, BERTH__RECURRENT_PEEPHOLES)) {
    const berth_value all = grad_pick_first(d, berth__grad_in(d, BERTH__RECURRENT_PEEPHOLES), direction);
    for (uint32_t i = 0; i < 3; i++) u->peephole[i] = grad_block(d, all, i, u->hidden);
  }
  u->h = grad_initial(u, BERTH__RECURRENT_INITIAL_H, direction, batch);
  u->c = d->node.op->code == BERTH__OP_lstm ? grad_initial(u, BERTH__RECURRENT_INITIAL_C, direction, batch)
                                            : BERTH_VALUE_NONE;
}

/* [B, 1]: rows longer than this; NONE: all. */
static berth_value grad_is_longer(berth__grad *d, int64_t than) {
  const int64_t last = -1;
  if (!berth__grad_has(d, BERTH__RECURRENT_LENGTHS)) return BERTH_VALUE_NONE;
  const berth_value lengths = berth__grad_unsqueeze(d, berth__grad_in(d, BERTH__RECURRENT_LENGTHS), &last, 1);
  return berth__grad_num(d, BERTH__OP_gt, lengths, (double)than);
}

static berth_value grad_where_longer(berth__grad *d, berth_value longer, berth_value a, berth_value b) {
  return longer == BERTH_VALUE_NONE || a == BERTH_VALUE_NONE ? a : berth__grad_where(d, longer, a, b);
}

/* All steps of a direction: rows[t] is y at step t; h and c have their final values. */
static void grad_run_direction(unrolled *u, bool is_reversed, berth_value *rows) {
  berth__grad *d = u->d;
  const berth_value zero = berth__grad_scalar(d, u->type, 0);
  berth_value given = berth__grad_2(d, BERTH__OP_matmul, berth__grad_in(d, BERTH__RECURRENT_X), u->weight);
  if (u->bias != BERTH_VALUE_NONE) given = berth__grad_add(d, given, u->bias);
  for (int64_t k = 0; k < u->steps && berth__grad_ok(d); k++) {
    const int64_t t = is_reversed ? u->steps - 1 - k : k;
    const berth_value h = u->h, c = u->c, longer = grad_is_longer(d, t);
    u->gate = grad_pick_first(d, given, t);
    grad_recurrent_step(u);
    rows[t] = grad_where_longer(d, longer, u->h, zero);
    u->h = grad_where_longer(d, longer, u->h, h);
    u->c = grad_where_longer(d, longer, u->c, c);
  }
  const berth_value some = grad_is_longer(d, 0);
  u->h = grad_where_longer(d, some, u->h, zero);
  u->c = grad_where_longer(d, some, u->c, zero);
}

/* Stacks values of one shape along a new axis. */
static berth_value grad_stack(berth__grad *d, berth_value *parts, size_t n, int64_t axis) {
  const berth_attr along = berth_attr_int("axis", axis);
  for (size_t i = 0; i < n; i++) parts[i] = berth__grad_unsqueeze(d, parts[i], &axis, 1);
  return berth__grad_op(d, BERTH__OP_concat, parts, n, &along, 1);
}

static void grad_unroll(unrolled *u, berth_value *rows, int64_t batch, berth_value out[3]) {
  berth__grad *d = u->d;
  const char *direction = d->node.attrs[BERTH__RECURRENT_DIRECTION].s;
  const uint32_t n = berth__recurrent_directions(d->node.attrs);
  const berth__activation *first = u->act;
  berth_value y[2], h[2], c[2];
  for (uint32_t i = 0; i < n && berth__grad_ok(d); i++) {
    u->act = first + i * berth__recurrent_functions(d->node.op->code);
    grad_read_direction(u, i, batch);
    grad_run_direction(u, i == 1 || strcmp(direction, "reverse") == 0, rows);
    y[i] = grad_stack(d, rows, (size_t)u->steps, 0);
    h[i] = u->h;
    c[i] = u->c;
  }
  out[0] = grad_stack(d, y, n, 1);
  out[1] = d->node.n_out > 1 ? grad_stack(d, h, n, 0) : BERTH_VALUE_NONE;
  out[2] = d->node.n_out > 2 ? grad_stack(d, c, n, 0) : BERTH_VALUE_NONE;
}

void berth__grad_of_recurrent(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__RECURRENT_X), r = berth__grad_in(d, BERTH__RECURRENT_RECURRENCE);
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  berth_value out[3] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, r)) return;
  const berth__shape shape = berth__grad_shape(d, x);
  if (shape.dim[0] < 1 || shape.dim[0] > GRAD_MOST_STEPS) {
    berth__grad_fail(d, BERTH_UNSUPPORTED, "its gradient is written out step by step, for 1 to %d steps",
                     GRAD_MOST_STEPS);
    return;
  }
  d->status = berth__recurrent_activations(d->node.op->code, d->node.attrs, activations, d->err);
  berth_value *rows = berth__alloc_array(d->graph->ctx, (size_t)shape.dim[0], sizeof *rows);
  if (rows == NULL && berth__grad_ok(d)) d->status = berth__fail_nomem(d->err, "a gradient");
  unrolled u = {.d = d,
                .steps = shape.dim[0],
                .hidden = berth__grad_shape(d, r).dim[2],
                .gates = (uint32_t)berth__recurrent_gates(d->node.op->code),
                .type = berth__grad_type(d, x),
                .clip = d->node.attrs[BERTH__RECURRENT_CLIP].f,
                .act = activations};
  if (berth__grad_ok(d)) grad_unroll(&u, rows, shape.dim[1], out);
  berth__free(d->graph->ctx, rows);
  if (berth__grad_ok(d)) berth__grad_through(d, first, out);
}
