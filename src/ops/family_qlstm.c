/* qlstm: an lstm with an int8 recurrence, like ONNX Runtime's DynamicQuantizeLSTM. A product has computed the inputs'
 * contribution to the gates before.
 *   gates         [S, D, B, 4 H], f32: i o f c
 *   scale         [D] or [D, 4 H], f32: of recurrence
 *   recurrence    [D, 4 H, H], i8 or u8
 * bias?         [D, 8 H]      two per gate: both are added
 * lengths?      [B], i32      valid steps of each row
 *   initial_h?, initial_c? [D, B, H]
 *   peepholes?    [D, 3 H], i o f
 *   zero?         of recurrence, of its type and of scale's shape
 * Results: those of lstm. Before each step the h of a row is quantised to u8, separately, in steps of (high - low) /
 * 255, where low and high are the minimum and maximum of its elements and 0 (quantize_range). The sums of (h - its zero
 * point) (recurrence - zero) are exact integers; then they are multiplied by f32(step * scale). Everything else is in
 * f64. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ops/line.h"
#include "ops/operand.h"
#include "ops/recurrent.h"
#include "ops/registry.h"

_Static_assert((int)BERTH__QLSTM_RECURRENCE == (int)BERTH__RECURRENT_RECURRENCE &&
                   (int)BERTH__QLSTM_PEEPHOLES == (int)BERTH__RECURRENT_PEEPHOLES,
               "operands of lstm and qlstm that are the same have one place");

/* ---- Inference ---- */

static berth_status qlstm_check_dims(const berth__infer *infer, uint32_t operand, uint32_t rank, const int64_t *dims,
                                     berth_error *err) {
  int64_t same;
  char what[80];
  BERTH__TRY(berth__want_rank(infer, operand, rank, rank, err));
  for (uint32_t i = 0; i < rank; i++) {
    snprintf(what, sizeof what, "axis %" PRIu32 " of operand %" PRIu32 " and what the others need", i, operand);
    BERTH__TRY(berth__same_dim(infer->in_shape[operand].dim[i], dims[i], what, &same, err));
  }
  return BERTH_OK;
}

static berth_status qlstm_check_operand(const berth__infer *infer, uint32_t operand, berth_type type, uint32_t rank,
                                        const int64_t *dims, berth_error *err) {
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(berth__want_type(infer, operand, type, err));
  return qlstm_check_dims(infer, operand, rank, dims, err);
}

/* One entry per direction, or per row of its weights. */
static berth_status qlstm_check_entries(const berth__infer *infer, uint32_t operand, berth_type type,
                                        const int64_t *dims, berth_error *err) {
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(berth__want_rank(infer, operand, 1, 2, err));
  return qlstm_check_operand(infer, operand, type, infer->in_shape[operand].rank, dims, err);
}

static berth_status qlstm_check_all(const berth__infer *infer, int64_t hidden, berth_error *err) {
  const int64_t directions = berth__recurrent_directions(infer->attrs);
  const int64_t batch = infer->in_shape[BERTH__QLSTM_GATES].dim[2];
  const berth_type bytes = infer->in_type[BERTH__QLSTM_RECURRENCE];
  int64_t rows, biases, peepholes, same;
  BERTH__TRY(berth__dim_mul(4, hidden, &rows, err));
  BERTH__TRY(berth__dim_mul(8, hidden, &biases, err));
  BERTH__TRY(berth__dim_mul(3, hidden, &peepholes, err));
  const int64_t state[3] = {directions, batch, hidden};
  const int64_t entries[2] = {directions, rows};
  BERTH__TRY(berth__same_dim(infer->in_shape[BERTH__QLSTM_GATES].dim[1], directions,
                             "axis 1 of operand 0 and direction", &same, err));
  BERTH__TRY(berth__same_dim(infer->in_shape[BERTH__QLSTM_GATES].dim[3], rows,
                             "axis 3 of operand 0 and four times the last axis of operand 2", &same, err));
  BERTH__TRY(qlstm_check_dims(infer, BERTH__QLSTM_RECURRENCE, 3, (int64_t[]){directions, rows, hidden}, err));
  BERTH__TRY(qlstm_check_entries(infer, BERTH__QLSTM_SCALE, BERTH_F32, entries, err));
  BERTH__TRY(qlstm_check_entries(infer, BERTH__QLSTM_ZERO, bytes, entries, err));
  BERTH__TRY(qlstm_check_operand(infer, BERTH__QLSTM_BIAS, BERTH_F32, 2, (int64_t[]){directions, biases}, err));
  BERTH__TRY(qlstm_check_operand(infer, BERTH__QLSTM_LENGTHS, BERTH_I32, 1, &batch, err));
  BERTH__TRY(qlstm_check_operand(infer, BERTH__QLSTM_INITIAL_H, BERTH_F32, 3, state, err));
  BERTH__TRY(qlstm_check_operand(infer, BERTH__QLSTM_INITIAL_C, BERTH_F32, 3, state, err));
  return qlstm_check_operand(infer, BERTH__QLSTM_PEEPHOLES, BERTH_F32, 2, (int64_t[]){directions, peepholes}, err);
}

static berth_status qlstm_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *gates = &infer->in_shape[BERTH__QLSTM_GATES];
  const berth_type bytes = infer->in_type[BERTH__QLSTM_RECURRENCE];
  BERTH__TRY(berth__want_type(infer, BERTH__QLSTM_GATES, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__QLSTM_GATES, 4, 4, err));
  if (bytes != BERTH_U8) BERTH__TRY(berth__want_type(infer, BERTH__QLSTM_RECURRENCE, BERTH_I8, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__QLSTM_RECURRENCE, 3, 3, err));
  BERTH__TRY(berth__recurrent_check(infer, err));
  const int64_t hidden = infer->in_shape[BERTH__QLSTM_RECURRENCE].dim[2],
                directions = berth__recurrent_directions(infer->attrs);
  BERTH__TRY(qlstm_check_all(infer, hidden, err));
  for (uint32_t i = 0; i < infer->n_out; i++) {
    infer->out_type[i] = BERTH_F32;
    infer->out_shape[i] = i == 0 ? (berth__shape){.rank = 4, .dim = {gates->dim[0], directions, gates->dim[2], hidden}}
                                 : (berth__shape){.rank = 3, .dim = {directions, gates->dim[2], hidden}};
  }
  return BERTH_OK;
}

/* ---- One row of the batch in one direction ---- */

typedef struct qlstm_job {
  const berth_op_call *call;
  int64_t steps, batch, hidden, directions;
  int64_t direction, row, length;
  bool is_reversed;
  double clip; /* infinite: no clipping */
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  const berth__activation *act;                         /* of this direction */
  double *gate, *sum, *h, *c, *bias, *peepholes, *some; /* in scratch */
} qlstm_job;

static void qlstm_measure(const berth_op_call *call, qlstm_job *j) {
  *j = (qlstm_job){.call = call,
                   .steps = call->in[BERTH__QLSTM_GATES].dim[0],
                   .batch = call->in[BERTH__QLSTM_GATES].dim[2],
                   .hidden = call->in[BERTH__QLSTM_RECURRENCE].dim[2],
                   .directions = call->in[BERTH__QLSTM_RECURRENCE].dim[0]};
}

static int64_t qlstm_items(const berth_op_call *call) {
  return call->in[BERTH__QLSTM_RECURRENCE].dim[0] * call->in[BERTH__QLSTM_GATES].dim[2];
}

static uint64_t qlstm_scratch(const berth_op_call *call) {
  return (uint64_t)(22 * call->in[BERTH__QLSTM_RECURRENCE].dim[2]) * sizeof(double);
}

static void qlstm_place_scratch(qlstm_job *j) {
  double *at = j->call->scratch;
  double **const places[] = {&j->gate, &j->sum, &j->bias, &j->peepholes, &j->h, &j->c, &j->some};
  const int64_t sizes[] = {4, 4, 8, 3, 1, 1, 1};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++, at += sizes[i - 1] * j->hidden) *places[i] = at;
}

static double qlstm_entry(const qlstm_job *j, uint32_t operand, int64_t row) {
  const berth_tensor *t = &j->call->in[operand];
  const int64_t at = t->rank == 1 ? j->direction : j->direction * 4 * j->hidden + row;
  return t->type == BERTH_F32 ? (double)((const float *)t->data)[at] : (double)berth__load_i64(t, at);
}

/* h as integer steps from its zero point, in `some`; returns the size of a step. */
static float qlstm_quantise(const qlstm_job *j) {
  float low = 0, high = 0;
  for (int64_t k = 0; k < j->hidden; k++) {
    const float h = (float)j->h[k];
    low = h < low ? h : low;
    high = h > high ? h : high;
  }
  const float range = high - low, step = range == 0 ? 1.0f : range / 255.0f, zero = rintf(-low / step);
  for (int64_t k = 0; k < j->hidden; k++) {
    const float place = rintf((float)j->h[k] / step) + zero;
    j->some[k] = (double)((place > 255 ? 255.0f : place >= 0 ? place : 0.0f) - zero);
  }
  return step;
}

static void qlstm_multiply(const qlstm_job *j) {
  const berth_tensor *weights = &j->call->in[BERTH__QLSTM_RECURRENCE];
  const int64_t n = j->hidden;
  const float step = qlstm_quantise(j);
  for (int64_t row = 0; row < 4 * n; row++) {
    const int64_t at = (j->direction * 4 * n + row) * n;
    const int64_t zero =
        berth__call_has(j->call, BERTH__QLSTM_ZERO) ? (int64_t)qlstm_entry(j, BERTH__QLSTM_ZERO, row) : 0;
    const float scale = step * (float)qlstm_entry(j, BERTH__QLSTM_SCALE, row);
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (int64_t)j->some[k] * (berth__load_i64(weights, at + k) - zero);
    j->sum[row] = (double)((float)sum * scale);
  }
}

static double qlstm_activate(const qlstm_job *j, uint32_t which, double x) {
  const berth__activation *a = &j->act[which];
  if (x > j->clip) x = j->clip;
  if (x < -j->clip) x = -j->clip;
  return a->function(x, a->alpha, a->beta);
}

static double qlstm_gate(const qlstm_job *j, int64_t gate, int64_t k) {
  const int64_t at = gate * j->hidden + k;
  return (j->gate[at] + j->bias[at]) + (j->sum[at] + j->bias[4 * j->hidden + at]);
}

static void qlstm_step(const qlstm_job *j) {
  const int64_t n = j->hidden;
  const double *p = j->peepholes;
  const bool input_forget = j->call->attrs[BERTH__RECURRENT_INPUT_FORGET].i != 0;
  qlstm_multiply(j);
  for (int64_t k = 0; k < n; k++) {
    const double i = qlstm_activate(j, 0, qlstm_gate(j, 0, k) + p[k] * j->c[k]);
    const double f = input_forget ? 1 - i : qlstm_activate(j, 0, qlstm_gate(j, 2, k) + p[2 * n + k] * j->c[k]);
    j->c[k] = f * j->c[k] + i * qlstm_activate(j, 1, qlstm_gate(j, 3, k));
    const double o = qlstm_activate(j, 0, qlstm_gate(j, 1, k) + p[n + k] * j->c[k]);
    j->h[k] = o * j->act[2].function(j->c[k], j->act[2].alpha, j->act[2].beta);
  }
}

static void qlstm_load(const qlstm_job *j, uint32_t operand, int64_t at, int64_t n, double *out) {
  if (berth__call_has(j->call, operand))
    berth__line_load(&j->call->in[operand], at, 1, n, out);
  else
    for (int64_t i = 0; i < n; i++) out[i] = 0;
}

static void qlstm_run_row(const qlstm_job *j) {
  const berth_tensor *gates = &j->call->in[BERTH__QLSTM_GATES];
  const int64_t n = j->hidden, state = (j->direction * j->batch + j->row) * n;
  qlstm_load(j, BERTH__QLSTM_BIAS, j->direction * 8 * n, 8 * n, j->bias);
  qlstm_load(j, BERTH__QLSTM_PEEPHOLES, j->direction * 3 * n, 3 * n, j->peepholes);
  qlstm_load(j, BERTH__QLSTM_INITIAL_H, state, n, j->h);
  qlstm_load(j, BERTH__QLSTM_INITIAL_C, state, n, j->c);
  for (int64_t k = 0; k < j->length; k++) {
    const int64_t t = j->is_reversed ? j->length - 1 - k : k;
    berth__line_load(gates, t * gates->stride[0] + j->direction * gates->stride[1] + j->row * gates->stride[2],
                     gates->stride[3], 4 * n, j->gate);
    qlstm_step(j);
    berth__line_store(&j->call->out[0], ((t * j->directions + j->direction) * j->batch + j->row) * n, n, j->h);
  }
  for (int64_t i = 0; j->length == 0 && i < n; i++) j->h[i] = j->c[i] = 0;
  if (j->call->n_out > 1) berth__line_store(&j->call->out[1], state, n, j->h);
  if (j->call->n_out > 2) berth__line_store(&j->call->out[2], state, n, j->c);
  for (int64_t i = 0; i < n; i++) j->h[i] = 0;
  for (int64_t t = j->length; t < j->steps; t++)
    berth__line_store(&j->call->out[0], ((t * j->directions + j->direction) * j->batch + j->row) * n, n, j->h);
}

static berth_status qlstm_kernel(const berth_op_call *call, berth_error *err) {
  qlstm_job j;
  qlstm_measure(call, &j);
  qlstm_place_scratch(&j);
  BERTH__TRY(berth__recurrent_activations(BERTH__OP_qlstm, call->attrs, j.activations, err));
  j.clip = call->attrs[BERTH__RECURRENT_CLIP].f > 0 ? call->attrs[BERTH__RECURRENT_CLIP].f : (double)INFINITY;
  for (int64_t item = call->begin; item < call->end; item++) {
    j.direction = item / j.batch;
    j.row = item % j.batch;
    j.is_reversed = j.direction == 1 || strcmp(call->attrs[BERTH__RECURRENT_DIRECTION].s, "reverse") == 0;
    j.act = j.activations + (uint32_t)j.direction * berth__recurrent_functions(BERTH__OP_qlstm);
    j.length =
        berth__call_has(call, BERTH__QLSTM_LENGTHS) ? berth__load_i64(&call->in[BERTH__QLSTM_LENGTHS], j.row) : j.steps;
    if (j.length < 0 || j.length > j.steps)
      return berth__fail(err, BERTH_INVALID,
                         "the length of row %" PRId64 " is %" PRId64 ", but a row has %" PRId64 " steps", j.row,
                         j.length, j.steps);
    qlstm_run_row(&j);
  }
  return BERTH_OK;
}

const berth__family berth__family_qlstm = {
    .attrs = berth__recurrent_attrs,
    .n_attrs = BERTH__RECURRENT_ATTRS,
    .infer = qlstm_infer,
    .items = qlstm_items,
    .scratch = qlstm_scratch,
    .kernel = qlstm_kernel,
};
