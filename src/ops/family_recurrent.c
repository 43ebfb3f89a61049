/* lstm, gru, rnn: layers that process a sequence step by step, as in ONNX.
 *   x             [S, B, I]
 *   weight        [D, G H, I]   the blocks of the gates: lstm i o f c, gru z r h, rnn one
 *   recurrence    [D, G H, H]   of lstm either may be packed: see ops/recurrent.h
 * bias?         [D, 2 G H]    of weight, then of recurrence
 * lengths?      [B], i32      valid steps of each row
 *   initial_h?    [D, B, H]
 * initial_c?, peepholes? [D, 3 H], i o f        lstm only
 * Results: y [S, D, B, H], the last h [D, B, H], and for lstm the last c. D is 2 for both directions. An item is one
 * row of the batch in one direction. All sums are in f64; the state is not rounded between steps. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ops/line.h"
#include "ops/operand.h"
#include "ops/recurrent.h"
#include "ops/registry.h"

/* ---- Inference ---- */

static berth_status check_operand(const berth__infer *infer, uint32_t operand, uint32_t rank, const int64_t *dims,
                                  berth_error *err) {
  int64_t same;
  char what[80];
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(operand == BERTH__RECURRENT_LENGTHS ? berth__want_type(infer, operand, BERTH_I32, err)
                                                 : berth__want_same_type(infer, BERTH__RECURRENT_X, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, rank, rank, err));
  for (uint32_t i = 0; i < rank; i++) {
    snprintf(what, sizeof what, "axis %" PRIu32 " of operand %" PRIu32 " and what the others need", i, operand);
    BERTH__TRY(berth__same_dim(infer->in_shape[operand].dim[i], dims[i], what, &same, err));
  }
  return BERTH_OK;
}

/* A plain or a packed one, of rows that are `columns` long. */
static berth_status check_matrix(const berth__infer *infer, uint32_t operand, int64_t rows, int64_t columns,
                                 berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  const int64_t directions = berth__recurrent_directions(infer->attrs);
  if (shape->rank != 4 || infer->op->code != BERTH__OP_lstm)
    return check_operand(infer, operand, 3, (int64_t[]){directions, rows, columns}, err);
  const int64_t panel = shape->dim[3];
  int64_t panels = BERTH__DIM_UNKNOWN;
  if (berth__dim_is_fixed(panel) && panel < 1)
    return berth__fail(err, BERTH_INVALID, "the panels of operand %" PRIu32 " have no columns", operand);
  if (berth__dim_is_fixed(panel) && berth__dim_is_fixed(rows)) panels = rows / panel + (rows % panel != 0);
  return check_operand(infer, operand, 4, (int64_t[]){panels, columns, directions, panel}, err);
}

static berth_status recurrent_check_all(const berth__infer *infer, int64_t hidden, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__RECURRENT_X];
  int64_t gates = berth__recurrent_gates(infer->op->code), rows, biases, peepholes;
  int64_t directions = berth__recurrent_directions(infer->attrs), batch = x->dim[1];
  BERTH__TRY(berth__dim_mul(gates, hidden, &rows, err));
  BERTH__TRY(berth__dim_mul(2 * gates, hidden, &biases, err));
  BERTH__TRY(berth__dim_mul(3, hidden, &peepholes, err));
  BERTH__TRY(check_matrix(infer, BERTH__RECURRENT_WEIGHT, rows, x->dim[2], err));
  BERTH__TRY(check_matrix(infer, BERTH__RECURRENT_RECURRENCE, rows, hidden, err));
  BERTH__TRY(check_operand(infer, BERTH__RECURRENT_BIAS, 2, (int64_t[]){directions, biases}, err));
  BERTH__TRY(check_operand(infer, BERTH__RECURRENT_LENGTHS, 1, &batch, err));
  BERTH__TRY(check_operand(infer, BERTH__RECURRENT_INITIAL_H, 3, (int64_t[]){directions, batch, hidden}, err));
  BERTH__TRY(check_operand(infer, BERTH__RECURRENT_INITIAL_C, 3, (int64_t[]){directions, batch, hidden}, err));
  return check_operand(infer, BERTH__RECURRENT_PEEPHOLES, 2, (int64_t[]){directions, peepholes}, err);
}

static berth_status recurrent_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__RECURRENT_X];
  BERTH__TRY(berth__want_float(infer, BERTH__RECURRENT_X, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__RECURRENT_X, 3, 3, err));
  const berth__shape *own = &infer->in_shape[BERTH__RECURRENT_RECURRENCE];
  BERTH__TRY(berth__want_rank(infer, BERTH__RECURRENT_RECURRENCE, 3, infer->op->code == BERTH__OP_lstm ? 4 : 3, err));
  BERTH__TRY(berth__recurrent_check(infer, err));
  int64_t hidden = berth__recurrent_matrix_of(own->dim, own->rank).columns,
          directions = berth__recurrent_directions(infer->attrs);
  BERTH__TRY(recurrent_check_all(infer, hidden, err));
  for (uint32_t i = 0; i < infer->n_out; i++) {
    infer->out_type[i] = infer->in_type[BERTH__RECURRENT_X];
    infer->out_shape[i] = i == 0 ? (berth__shape){.rank = 4, .dim = {x->dim[0], directions, x->dim[1], hidden}}
                                 : (berth__shape){.rank = 3, .dim = {directions, x->dim[1], hidden}};
  }
  return BERTH_OK;
}

/* ---- One row of the batch in one direction ---- */

typedef struct job {
  const berth_op_call *call;
  int64_t steps, batch, inputs, hidden, gates, directions;
  int64_t direction, row, length;
  bool is_reversed;
  double clip; /* infinite: no clipping */
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  const berth__activation *act;                                               /* of this direction */
  double *x, *gate, *recurrent, *h, *c, *turned, *weights, *bias, *peepholes; /* in scratch */
} job;

static const berth_tensor *recurrent_operand(const berth_op_call *call, uint32_t index) {
  return berth__call_has(call, index) ? &call->in[index] : NULL;
}

static void recurrent_measure(const berth_op_call *call, job *j) {
  j->call = call;
  j->steps = call->in[BERTH__RECURRENT_X].dim[0];
  j->batch = call->in[BERTH__RECURRENT_X].dim[1];
  j->inputs = call->in[BERTH__RECURRENT_X].dim[2];
  const berth_tensor *own = &call->in[BERTH__RECURRENT_RECURRENCE];
  const berth__recurrent_matrix matrix = berth__recurrent_matrix_of(own->dim, own->rank);
  j->hidden = matrix.columns;
  j->directions = matrix.directions;
  j->gates = berth__recurrent_gates(berth__call_code(call));
}

static int64_t recurrent_widest(const job *j) { return j->inputs > j->hidden ? j->inputs : j->hidden; }

static void recurrent_place_scratch(job *j) {
  double *at = j->call->scratch;
  double **const places[] = {&j->x, &j->gate, &j->recurrent, &j->h, &j->c, &j->turned, &j->weights, &j->bias};
  const int64_t sizes[] = {j->inputs, j->gates * j->hidden, j->gates * j->hidden,    j->hidden, j->hidden,
                           j->hidden, recurrent_widest(j),  2 * j->gates * j->hidden};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    *places[i] = at;
    at += sizes[i];
  }
  j->peepholes = at;
}

static uint64_t recurrent_scratch(const berth_op_call *call) {
  job j;
  recurrent_measure(call, &j);
  return (uint64_t)(j.inputs + 4 * j.gates * j.hidden + 6 * j.hidden + recurrent_widest(&j)) * sizeof(double);
}

static int64_t recurrent_items(const berth_op_call *call) {
  const berth_tensor *own = &call->in[BERTH__RECURRENT_RECURRENCE];
  return berth__recurrent_matrix_of(own->dim, own->rank).directions * call->in[BERTH__RECURRENT_X].dim[1];
}

/* Four interleaved sums, always in the same order. */
static double recurrent_dot(const double *a, const double *b, int64_t n) {
  double sum[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int lane = 0; lane < 4; lane++) sum[lane] += a[i + lane] * b[i + lane];
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* out[r] = bias[r] + matrix[direction][r] . vector for the rows [first, first + count) */
static void recurrent_multiply(const job *j, uint32_t matrix, const double *vector, const double *bias, int64_t first,
                               int64_t count, double *out) {
  const berth_tensor *m = &j->call->in[matrix];
  const berth__recurrent_matrix form = berth__recurrent_matrix_of(m->dim, m->rank);
  const int64_t columns = form.columns, step = form.panel == 0 ? 1 : form.directions * form.panel;
  for (int64_t r = 0; r < count; r++) {
    const int64_t row = first + r;
    const int64_t start = form.panel == 0
                              ? (j->direction * j->gates * j->hidden + row) * columns
                              : row / form.panel * columns * step + j->direction * form.panel + row % form.panel;
    berth__line_load(m, start, step, columns, j->weights);
    out[first + r] = bias[first + r] + recurrent_dot(j->weights, vector, columns);
  }
}

static double recurrent_activate(const job *j, uint32_t which, double x) {
  const berth__activation *a = &j->act[which];
  if (x > j->clip) x = j->clip;
  if (x < -j->clip) x = -j->clip;
  return a->function(x, a->alpha, a->beta);
}

static void recurrent_step_lstm(const job *j) {
  const int64_t n = j->hidden;
  const double *p = j->peepholes;
  const bool input_forget = j->call->attrs[BERTH__RECURRENT_INPUT_FORGET].i != 0;
  recurrent_multiply(j, BERTH__RECURRENT_RECURRENCE, j->h, j->bias + j->gates * n, 0, j->gates * n, j->recurrent);
  for (int64_t k = 0; k < n; k++) {
    double i_in = j->gate[k] + j->recurrent[k] + p[k] * j->c[k];
    double f_in = j->gate[2 * n + k] + j->recurrent[2 * n + k] + p[2 * n + k] * j->c[k];
    double i = recurrent_activate(j, 0, i_in), f = input_forget ? 1 - i : recurrent_activate(j, 0, f_in);
    j->c[k] = f * j->c[k] + i * recurrent_activate(j, 1, j->gate[3 * n + k] + j->recurrent[3 * n + k]);
    double o = recurrent_activate(j, 0, j->gate[n + k] + j->recurrent[n + k] + p[n + k] * j->c[k]);
    j->h[k] = o * j->act[2].function(j->c[k], j->act[2].alpha, j->act[2].beta);
  }
}

static void recurrent_step_gru(const job *j) {
  const int64_t n = j->hidden;
  const double *own_bias = j->bias + j->gates * n;
  const bool linear_first = j->call->attrs[BERTH__RECURRENT_LINEAR_BEFORE_RESET].i != 0;
  recurrent_multiply(j, BERTH__RECURRENT_RECURRENCE, j->h, own_bias, 0, 2 * n, j->recurrent);
  for (int64_t k = 0; k < n; k++) j->turned[k] = recurrent_activate(j, 0, j->gate[n + k] + j->recurrent[n + k]);
  if (linear_first) {
    recurrent_multiply(j, BERTH__RECURRENT_RECURRENCE, j->h, own_bias, 2 * n, n, j->recurrent);
    for (int64_t k = 0; k < n; k++) j->recurrent[2 * n + k] *= j->turned[k];
  } else {
    for (int64_t k = 0; k < n; k++) j->turned[k] *= j->h[k];
    recurrent_multiply(j, BERTH__RECURRENT_RECURRENCE, j->turned, own_bias, 2 * n, n, j->recurrent);
  }
  for (int64_t k = 0; k < n; k++) {
    double z = recurrent_activate(j, 0, j->gate[k] + j->recurrent[k]);
    j->h[k] = (1 - z) * recurrent_activate(j, 1, j->gate[2 * n + k] + j->recurrent[2 * n + k]) + z * j->h[k];
  }
}

static void recurrent_step_rnn(const job *j) {
  recurrent_multiply(j, BERTH__RECURRENT_RECURRENCE, j->h, j->bias + j->hidden, 0, j->hidden, j->recurrent);
  for (int64_t k = 0; k < j->hidden; k++) j->h[k] = recurrent_activate(j, 0, j->gate[k] + j->recurrent[k]);
}

static void recurrent_step(const job *j) {
  switch (berth__call_code(j->call)) {
    case BERTH__OP_lstm: recurrent_step_lstm(j); break;
    case BERTH__OP_gru: recurrent_step_gru(j); break;
    default: recurrent_step_rnn(j); break;
  }
}

/* A row of an operand, or zeros if it is left out. */
static void load_or_zero(const berth_op_call *call, uint32_t index, int64_t at, int64_t n, double *out) {
  const berth_tensor *tensor = recurrent_operand(call, index);
  if (tensor != NULL)
    berth__line_load(tensor, at, 1, n, out);
  else
    for (int64_t i = 0; i < n; i++) out[i] = 0;
}

static void recurrent_start_row(job *j) {
  const int64_t n = j->hidden, state = (j->direction * j->batch + j->row) * n;
  load_or_zero(j->call, BERTH__RECURRENT_BIAS, j->direction * 2 * j->gates * n, 2 * j->gates * n, j->bias);
  load_or_zero(j->call, BERTH__RECURRENT_PEEPHOLES, j->direction * 3 * n, 3 * n, j->peepholes);
  load_or_zero(j->call, BERTH__RECURRENT_INITIAL_H, state, n, j->h);
  load_or_zero(j->call, BERTH__RECURRENT_INITIAL_C, state, n, j->c);
}

static void store_states(const job *j) {
  const int64_t n = j->hidden, state = (j->direction * j->batch + j->row) * n;
  for (int64_t i = 0; j->length == 0 && i < n; i++) j->h[i] = j->c[i] = 0;
  if (j->call->n_out > 1) berth__line_store(&j->call->out[1], state, n, j->h);
  if (j->call->n_out > 2) berth__line_store(&j->call->out[2], state, n, j->c);
}

static void recurrent_run_row(job *j) {
  const berth_tensor *x = &j->call->in[BERTH__RECURRENT_X];
  const int64_t n = j->hidden;
  recurrent_start_row(j);
  for (int64_t k = 0; k < j->length; k++) {
    const int64_t t = j->is_reversed ? j->length - 1 - k : k;
    berth__line_load(x, t * x->stride[0] + j->row * x->stride[1], x->stride[2], j->inputs, j->x);
    recurrent_multiply(j, BERTH__RECURRENT_WEIGHT, j->x, j->bias, 0, j->gates * n, j->gate);
    recurrent_step(j);
    berth__line_store(&j->call->out[0], ((t * j->directions + j->direction) * j->batch + j->row) * n, n, j->h);
  }
  store_states(j);
  for (int64_t i = 0; i < n; i++) j->h[i] = 0;
  for (int64_t t = j->length; t < j->steps; t++)
    berth__line_store(&j->call->out[0], ((t * j->directions + j->direction) * j->batch + j->row) * n, n, j->h);
}

static berth_status recurrent_length_of(job *j, berth_error *err) {
  const berth_tensor *lengths = recurrent_operand(j->call, BERTH__RECURRENT_LENGTHS);
  j->length = lengths != NULL ? berth__load_i64(lengths, j->row) : j->steps;
  if (j->length >= 0 && j->length <= j->steps) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "the length of row %" PRId64 " is %" PRId64 ", but a row has %" PRId64 " steps", j->row, j->length,
                     j->steps);
}

static berth_status recurrent_kernel(const berth_op_call *call, berth_error *err) {
  job j = {0};
  recurrent_measure(call, &j);
  recurrent_place_scratch(&j);
  BERTH__TRY(berth__recurrent_activations(berth__call_code(call), call->attrs, j.activations, err));
  const double clip = call->attrs[BERTH__RECURRENT_CLIP].f;
  j.clip = clip > 0 ? clip : (double)INFINITY;
  for (int64_t item = call->begin; item < call->end; item++) {
    j.direction = item / j.batch;
    j.row = item % j.batch;
    j.is_reversed = j.direction == 1 || strcmp(call->attrs[BERTH__RECURRENT_DIRECTION].s, "reverse") == 0;
    j.act = j.activations + (uint32_t)j.direction * berth__recurrent_functions(berth__call_code(call));
    BERTH__TRY(recurrent_length_of(&j, err));
    recurrent_run_row(&j);
  }
  return BERTH_OK;
}

const berth__family berth__family_recurrent = {
    .attrs = berth__recurrent_attrs,
    .n_attrs = BERTH__RECURRENT_ATTRS,
    .infer = recurrent_infer,
    .items = recurrent_items,
    .scratch = recurrent_scratch,
    .kernel = recurrent_kernel,
    .unit_last = 1u << BERTH__RECURRENT_X,
};
