/* lstm, gru and rnn of f32. An item is one row of the batch in one direction. Weights are read in place: their rows
 * times a vector, and the inputs of several steps together. With the usual activations, which exported models have, a
 * step goes over its gates once; other forms process the gates one line after the other. */
#include "ops/recurrent.h"

#include <inttypes.h>

#include "device/cpu/kernels/vec_math.h"
#include "ops/operand.h"

#define INLINED static inline __attribute__((always_inline))
#define AHEAD 16                /* steps whose inputs are multiplied together */
#define TOGETHER (VF_LANES / 4) /* vectors that share the rows of a weight */
#define BYTES_PER_US 5e4        /* for weights from the L2 or L3 cache */

typedef struct layer {
  const berth_op_call *call;
  berth__op_code code;
  int64_t steps, batch, inputs, hidden, rows, directions;
  bool is_linear_first, is_usual;
  bool input_forget;
  vf clip; /* infinite: none */
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  vf (*functions[BERTH__MAX_ACTIVATIONS])(vf x, vf alpha, vf beta);
  bool needs_c, needs_turned, needs_zeros; /* in scratch */
  /* Of the item: */
  int64_t direction, row;
  int64_t length; /* valid steps */
  bool is_reversed;
  const float *peepholes;                      /* NULL: none */
  const float *weight, *recurrence, *own_bias; /* own_bias: the recurrence bias of gru's last gate */
  float *c;                                    /* of lstm: in its last result if that exists, otherwise in scratch */
  float *ahead, *turned, *zeros;
} layer;

/* ---- Products ---- */

/* sums[x * n_rows + r] = rows[r] . vectors[x]; n_rows * n_vectors = VF_LANES, both constants when this is inlined. */
INLINED void dot_tile(const float *const *rows, const float *const *vectors, int64_t n, const int n_rows,
                      const int n_vectors, float *sums) {
  vf sum[VF_LANES];
  for (int i = 0; i < VF_LANES; i++) sum[i] = vf_zero();
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = n - k;
    vf x[TOGETHER];
    for (int v = 0; v < n_vectors; v++)
      x[v] = left >= VF_LANES ? vf_load(vectors[v] + k) : vf_load_n(vectors[v] + k, left);
    for (int r = 0; r < n_rows; r++) {
      const vf w = left >= VF_LANES ? vf_load(rows[r] + k) : vf_load_n(rows[r] + k, left);
      for (int v = 0; v < n_vectors; v++) sum[v * n_rows + r] = vf_fma(w, x[v], sum[v * n_rows + r]);
    }
  }
  vf_store(sums, vf_sums(sum));
}

INLINED void recurrent_kernel_multiply_tiles(const float *matrix, int64_t n_rows, int64_t columns,
                                             const float *const *vectors, const int n_vectors, const float *add,
                                             float *out, int64_t stride) {
  enum {
    MOST = VF_LANES
  };
  const int height = VF_LANES / n_vectors;
  for (int64_t first = 0; first < n_rows; first += height) {
    const float *rows[MOST];
    float sums[VF_LANES];
    const int64_t n = n_rows - first < height ? n_rows - first : height;
    for (int r = 0; r < height; r++) rows[r] = matrix + (first + (r < n ? r : n - 1)) * columns;
    dot_tile(rows, vectors, columns, height, n_vectors, sums);
    for (int v = 0; v < n_vectors; v++)
      for (int64_t r = 0; r < n; r++) {
        const int64_t at = v * stride + first + r;
        out[at] = vf_read(add + at) + sums[v * height + r];
      }
  }
}

/* out = add + matrix * vector; out and add may be the same. */
static void recurrent_kernel_multiply(const float *matrix, int64_t n_rows, int64_t columns, const float *vector,
                                      const float *add, float *out) {
  recurrent_kernel_multiply_tiles(matrix, n_rows, columns, &vector, 1, add, out, 0);
}

/* The same for several vectors, added to lines of n_rows. */
static void recurrent_kernel_multiply_all(const float *matrix, int64_t n_rows, int64_t columns,
                                          const float *const *vectors, int64_t n_vectors, float *sums) {
  int64_t at = 0;
  for (; at + TOGETHER <= n_vectors; at += TOGETHER) {
    float *to = sums + at * n_rows;
    recurrent_kernel_multiply_tiles(matrix, n_rows, columns, vectors + at, TOGETHER, to, to, n_rows);
  }
  for (; at < n_vectors; at++)
    recurrent_kernel_multiply(matrix, n_rows, columns, vectors[at], sums + at * n_rows, sums + at * n_rows);
}

/* ---- Steps: from h and the inputs' share `g` to the next h; the gates are computed in `g` ---- */

static void recurrent_kernel_step_lstm(const layer *l, float *g, const float *h, float *next) {
  const int64_t n = l->hidden;
  recurrent_kernel_multiply(l->recurrence, l->rows, n, h, g, g);
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    const vf i = vf_sigmoid(vf_load_n(g + k, left)), o = vf_sigmoid(vf_load_n(g + n + k, left));
    const vf f = vf_sigmoid(vf_load_n(g + 2 * n + k, left)), fresh = vf_tanh(vf_load_n(g + 3 * n + k, left));
    const vf c = vf_fma(f, vf_load_n(l->c + k, left), i * fresh);
    vf_store_n(l->c + k, c, left);
    vf_store_n(next + k, o * vf_tanh(c), left);
  }
}

/* What the last gate's recurrence is multiplied by, if that is not h. */
static void turn_back(const layer *l, const float *g, const float *h) {
  const int64_t n = l->hidden;
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    vf_store_n(l->turned + k, vf_sigmoid(vf_load_n(g + n + k, left)) * vf_load_n(h + k, left), left);
  }
}

/* The recurrence's share in the last gate: in `turned` if r is multiplied with it, otherwise added to `g`. */
static float *last_gate(const layer *l, float *g, const float *h) {
  const int64_t n = l->hidden;
  const float *last = l->recurrence + 2 * n * n;
  if (l->is_linear_first) {
    recurrent_kernel_multiply(last, n, n, h, l->own_bias, l->turned);
    return l->turned;
  }
  turn_back(l, g, h);
  recurrent_kernel_multiply(last, n, n, l->turned, g + 2 * n, g + 2 * n);
  return g + 2 * n;
}

static void recurrent_kernel_step_gru(const layer *l, float *g, const float *h, float *next) {
  const int64_t n = l->hidden;
  recurrent_kernel_multiply(l->recurrence, 2 * n, n, h, g, g);
  const float *last = last_gate(l, g, h);
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    const vf z = vf_sigmoid(vf_load_n(g + k, left)), r = vf_sigmoid(vf_load_n(g + n + k, left));
    vf sum = vf_load_n(last + k, left);
    if (l->is_linear_first) sum = vf_fma(r, sum, vf_load_n(g + 2 * n + k, left));
    const vf fresh = vf_tanh(sum);
    vf_store_n(next + k, vf_fma(z, vf_load_n(h + k, left) - fresh, fresh), left);
  }
}

static void recurrent_kernel_step_rnn(const layer *l, float *g, const float *h, float *next) {
  recurrent_kernel_multiply(l->recurrence, l->hidden, l->hidden, h, g, g);
  for (int64_t k = 0; k < l->hidden; k += VF_LANES) {
    const int64_t left = vf_tail(l->hidden - k);
    vf_store_n(next + k, vf_tanh(vf_load_n(g + k, left)), left);
  }
}

/* ---- The same for any form, line after line ---- */

static vf act_affine(vf x, vf alpha, vf beta) { return vf_fma(alpha, x, beta); }
static vf act_relu(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_relu(x); }
static vf act_leaky_relu(vf x, vf alpha, vf beta) { return (void)beta, vf_pick_lt(x, vf_zero(), alpha * x, x); }
static vf act_thresholded_relu(vf x, vf alpha, vf beta) { return (void)beta, vf_pick_lt(x, alpha, vf_zero(), x); }
static vf act_tanh(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_tanh(x); }
static vf act_scaled_tanh(vf x, vf alpha, vf beta) { return alpha * vf_tanh(beta * x); }
static vf act_sigmoid(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_sigmoid(x); }
static vf act_hard_sigmoid(vf x, vf alpha, vf beta) {
  return vf_min(vf_max(vf_fma(alpha, x, beta), vf_zero()), vf_set1(1.0f)); /* NaN becomes 0 */
}
static vf act_elu(vf x, vf alpha, vf beta) { return (void)beta, vf_pick_lt(x, vf_zero(), alpha * vf_expm1(x), x); }
static vf act_softsign(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, x / (vf_set1(1.0f) + vf_abs(x)); }
static vf act_softplus(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_softplus(x); }

static const struct {
  const char *name;
  vf (*function)(vf x, vf alpha, vf beta);
} act_table[] = {{"affine", act_affine},
                 {"relu", act_relu},
                 {"leaky_relu", act_leaky_relu},
                 {"thresholded_relu", act_thresholded_relu},
                 {"tanh", act_tanh},
                 {"scaled_tanh", act_scaled_tanh},
                 {"sigmoid", act_sigmoid},
                 {"hard_sigmoid", act_hard_sigmoid},
                 {"elu", act_elu},
                 {"softsign", act_softsign},
                 {"softplus", act_softplus}};

/* Over all directions; weights may be planned for more directions than there are. */
static uint32_t n_activations(const layer *l) {
  return berth__recurrent_functions(l->code) * berth__recurrent_directions(l->call->attrs);
}

/* False: one of them has no vector function. */
static bool find_functions(layer *l) {
  for (uint32_t i = 0; i < n_activations(l); i++) {
    l->functions[i] = NULL;
    for (size_t k = 0; k < sizeof act_table / sizeof *act_table; k++)
      if (strcmp(act_table[k].name, l->activations[i].name) == 0) l->functions[i] = act_table[k].function;
    if (l->functions[i] == NULL) return false;
  }
  return true;
}

/* Activation `which` of the direction, applied to a line. */
static void activate_within(const layer *l, uint32_t which, vf bound, float *x) {
  const uint32_t at = (uint32_t)l->direction * berth__recurrent_functions(l->code) + which;
  const vf alpha = vf_set1((float)l->activations[at].alpha), beta = vf_set1((float)l->activations[at].beta);
  for (int64_t k = 0; k < l->hidden; k += VF_LANES) {
    const int64_t left = vf_tail(l->hidden - k);
    vf_store_n(x + k, l->functions[at](vf_clamp(vf_load_n(x + k, left), vf_zero() - bound, bound), alpha, beta), left);
  }
}
static void activate(const layer *l, uint32_t which, float *x) { activate_within(l, which, l->clip, x); }

/* Adds the peephole connection of c to a gate. */
static void look_through(const layer *l, int64_t gate, float *x) {
  const int64_t n = l->hidden;
  for (int64_t k = 0; l->peepholes != NULL && k < n; k++) x[k] += vf_read(l->peepholes + gate * n + k) * l->c[k];
}

static void recurrent_kernel_any_lstm(const layer *l, float *g, const float *h, float *next) {
  const int64_t n = l->hidden;
  float *i = g, *o = g + n, *f = g + 2 * n, *fresh = g + 3 * n;
  recurrent_kernel_multiply(l->recurrence, l->rows, n, h, g, g);
  look_through(l, 0, i);
  look_through(l, 2, f);
  activate(l, 0, i);
  activate(l, 0, f);
  activate(l, 1, fresh);
  for (int64_t k = 0; k < n; k++) l->c[k] = (l->input_forget ? 1.0f - i[k] : f[k]) * l->c[k] + i[k] * fresh[k];
  look_through(l, 1, o);
  activate(l, 0, o);
  memcpy(f, l->c, (size_t)n * sizeof *f);
  activate_within(l, 2, vf_set1(INFINITY), f);
  for (int64_t k = 0; k < n; k++) next[k] = o[k] * f[k];
}

static void recurrent_kernel_any_gru(const layer *l, float *g, const float *h, float *next) {
  const int64_t n = l->hidden;
  const float *last = l->recurrence + 2 * n * n;
  float *z = g, *r = g + n, *fresh = g + 2 * n;
  recurrent_kernel_multiply(l->recurrence, 2 * n, n, h, g, g);
  activate(l, 0, z);
  activate(l, 0, r);
  if (l->is_linear_first) {
    recurrent_kernel_multiply(last, n, n, h, l->own_bias, l->turned);
    for (int64_t k = 0; k < n; k++) fresh[k] += r[k] * l->turned[k];
  } else {
    for (int64_t k = 0; k < n; k++) l->turned[k] = r[k] * h[k];
    recurrent_kernel_multiply(last, n, n, l->turned, fresh, fresh);
  }
  activate(l, 1, fresh);
  for (int64_t k = 0; k < n; k++) next[k] = z[k] * (h[k] - fresh[k]) + fresh[k];
}

static void recurrent_kernel_any_rnn(const layer *l, float *g, const float *h, float *next) {
  recurrent_kernel_multiply(l->recurrence, l->hidden, l->hidden, h, g, g);
  activate(l, 0, g);
  memcpy(next, g, (size_t)l->hidden * sizeof *next);
}

/* ---- One item ---- */

static const float *operand_at(const layer *l, uint32_t operand, int64_t index) {
  return berth__call_has(l->call, operand) ? (const float *)l->call->in[operand].data + index : NULL;
}

/* What every line of `ahead` starts with: the sum of both biases, except those that gru multiplies by r. */
static void start_with_biases(const layer *l, int64_t n) {
  const int64_t kept = l->is_linear_first ? 2 * l->hidden : l->rows;
  const float *bias = operand_at(l, BERTH__RECURRENT_BIAS, l->direction * 2 * l->rows);
  for (int64_t i = 0; i < l->rows; i++) {
    const float own = bias != NULL && i < kept ? vf_read(bias + l->rows + i) : 0.0f;
    l->ahead[i] = (bias != NULL ? vf_read(bias + i) : 0.0f) + own;
  }
  for (int64_t i = 1; i < n; i++) memcpy(l->ahead + i * l->rows, l->ahead, (size_t)l->rows * sizeof *l->ahead);
}

static int64_t time_of(const layer *l, int64_t step) { return l->is_reversed ? l->length - 1 - step : step; }

static float *result_at(const layer *l, int64_t time) {
  return (float *)l->call->out[0].data + ((time * l->directions + l->direction) * l->batch + l->row) * l->hidden;
}

static void look_ahead(const layer *l, int64_t first, int64_t n) {
  const berth_tensor *x = &l->call->in[BERTH__RECURRENT_X];
  const float *vectors[AHEAD];
  for (int64_t i = 0; i < n; i++)
    vectors[i] = (const float *)x->data + time_of(l, first + i) * x->stride[0] + l->row * x->stride[1];
  start_with_biases(l, n);
  recurrent_kernel_multiply_all(l->weight, l->rows, l->inputs, vectors, n, l->ahead);
}

static float *recurrent_kernel_state_at(const layer *l, uint32_t out) {
  return (float *)l->call->out[out].data + (l->direction * l->batch + l->row) * l->hidden;
}

/* The states that the first step reads. */
static const float *recurrent_kernel_start_row(layer *l) {
  const int64_t state = (l->direction * l->batch + l->row) * l->hidden;
  const size_t size = (size_t)l->hidden * sizeof(float);
  const float *h = operand_at(l, BERTH__RECURRENT_INITIAL_H, state),
              *c = operand_at(l, BERTH__RECURRENT_INITIAL_C, state);
  const float *bias = operand_at(l, BERTH__RECURRENT_BIAS, l->direction * 2 * l->rows);
  if (l->zeros != NULL) memset(l->zeros, 0, size);
  l->own_bias = bias != NULL ? bias + l->rows + 2 * l->hidden : l->zeros;
  if (l->call->n_out > 2) l->c = recurrent_kernel_state_at(l, 2);
  if (l->c != NULL && c != NULL) memcpy(l->c, c, size);
  if (l->c != NULL && c == NULL) memset(l->c, 0, size);
  return h != NULL ? h : l->zeros;
}

typedef void (*step_function)(const layer *l, float *g, const float *h, float *next);

static step_function step_of(const layer *l) {
  if (l->code == BERTH__OP_lstm) return l->is_usual ? recurrent_kernel_step_lstm : recurrent_kernel_any_lstm;
  if (l->code == BERTH__OP_gru) return l->is_usual ? recurrent_kernel_step_gru : recurrent_kernel_any_gru;
  return l->is_usual ? recurrent_kernel_step_rnn : recurrent_kernel_any_rnn;
}

/* Everything after the last valid step; a row without any valid step has no states, either. */
static void end_row(const layer *l, const float *h) {
  const size_t size = (size_t)l->hidden * sizeof *h;
  for (int64_t t = l->length; t < l->steps; t++) memset(result_at(l, t), 0, size);
  if (l->call->n_out > 1 && l->length > 0) memcpy(recurrent_kernel_state_at(l, 1), h, size);
  for (uint32_t out = 1; l->length == 0 && out < l->call->n_out; out++)
    memset(recurrent_kernel_state_at(l, out), 0, size);
}

static void recurrent_kernel_run_row(layer *l) {
  const step_function step = step_of(l);
  const float *h = recurrent_kernel_start_row(l);
  for (int64_t first = 0; first < l->length; first += AHEAD) {
    const int64_t n = l->length - first < AHEAD ? l->length - first : AHEAD;
    look_ahead(l, first, n);
    for (int64_t i = 0; i < n; i++) {
      float *next = result_at(l, time_of(l, first + i));
      step(l, l->ahead + i * l->rows, h, next);
      h = next;
    }
  }
  end_row(l, h);
}

/* ---- The call ---- */

static void recurrent_kernel_measure(const berth_op_call *call, layer *l) {
  *l = (layer){.call = call,
               .code = berth__call_code(call),
               .steps = call->in[BERTH__RECURRENT_X].dim[0],
               .batch = call->in[BERTH__RECURRENT_X].dim[1],
               .inputs = call->in[BERTH__RECURRENT_X].dim[2],
               .hidden = call->in[BERTH__RECURRENT_RECURRENCE].dim[2],
               .rows = call->in[BERTH__RECURRENT_RECURRENCE].dim[1],
               .directions = call->in[BERTH__RECURRENT_RECURRENCE].dim[0]};
  l->is_linear_first = l->code == BERTH__OP_gru && call->attrs[BERTH__RECURRENT_LINEAR_BEFORE_RESET].i != 0;
  l->needs_c = l->code == BERTH__OP_lstm && call->n_out < 3;
  l->needs_turned = l->code == BERTH__OP_gru;
  l->needs_zeros = !berth__call_has(call, BERTH__RECURRENT_INITIAL_H) ||
                   (l->is_linear_first && !berth__call_has(call, BERTH__RECURRENT_BIAS));
}

static int64_t steps_ahead(const layer *l) { return l->steps < AHEAD ? l->steps : AHEAD; }

static uint64_t recurrent_kernel_scratch(const berth_op_call *call) {
  layer l;
  recurrent_kernel_measure(call, &l);
  const int64_t lines = (l.needs_c ? 1 : 0) + (l.needs_turned ? 1 : 0) + (l.needs_zeros ? 1 : 0);
  return (uint64_t)(steps_ahead(&l) * l.rows + lines * l.hidden) * sizeof(float);
}

static void recurrent_kernel_place_scratch(layer *l) {
  float *at = (float *)l->call->scratch + steps_ahead(l) * l->rows;
  l->ahead = l->call->scratch;
  if (l->needs_c) l->c = at;
  if (l->needs_c) at += l->hidden;
  if (l->needs_turned) l->turned = at;
  if (l->needs_turned) at += l->hidden;
  if (l->needs_zeros) l->zeros = at;
}

static int64_t recurrent_kernel_items(const berth_op_call *call) {
  return call->in[BERTH__RECURRENT_RECURRENCE].dim[0] * call->in[BERTH__RECURRENT_X].dim[1];
}

static int64_t recurrent_kernel_grain(const berth_op_call *call) {
  layer l;
  recurrent_kernel_measure(call, &l);
  const double us = 4.0 * (double)(l.rows * (l.hidden + l.inputs)) * (double)l.steps / BYTES_PER_US;
  return us < 20 ? (int64_t)(20 / (us + 0.01)) : 1;
}

/* Sigmoid for the gates, tanh for the rest. */
static bool has_usual_activations(const layer *l) {
  const uint32_t each = berth__recurrent_functions(l->code), gates = l->code == BERTH__OP_rnn ? 0 : 1;
  for (uint32_t i = 0; i < n_activations(l); i++)
    if (strcmp(l->activations[i].name, i % each < gates ? "sigmoid" : "tanh") != 0) return false;
  return true;
}

/* False: an activation has no vector function. */
static bool recurrent_kernel_read_form(layer *l) {
  const berth_attr *attrs = l->call->attrs;
  const float clip = (float)attrs[BERTH__RECURRENT_CLIP].f;
  berth_error err;
  if (berth__recurrent_activations(l->code, attrs, l->activations, &err) != BERTH_OK || !find_functions(l))
    return false;
  l->clip = vf_set1(clip > 0 ? clip : INFINITY);
  l->input_forget = attrs[BERTH__RECURRENT_INPUT_FORGET].i != 0;
  l->is_usual = clip == 0 && !l->input_forget && !berth__call_has(l->call, BERTH__RECURRENT_PEEPHOLES) &&
                has_usual_activations(l);
  return true;
}

static bool recurrent_kernel_takes(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__RECURRENT_X];
  layer l;
  if (x->type != BERTH_F32 || (x->stride[2] != 1 && x->dim[2] > 1) || x->dim[0] == 0) return false;
  recurrent_kernel_measure(call, &l);
  return recurrent_kernel_read_form(&l);
}

static berth_status recurrent_kernel_length_of(layer *l, berth_error *err) {
  l->length = l->steps;
  if (!berth__call_has(l->call, BERTH__RECURRENT_LENGTHS)) return BERTH_OK;
  l->length = berth__load_i64(&l->call->in[BERTH__RECURRENT_LENGTHS], l->row);
  if (l->length >= 0 && l->length <= l->steps) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "the length of row %" PRId64 " is %" PRId64 ", but a row has %" PRId64 " steps", l->row, l->length,
                     l->steps);
}

static berth_status recurrent_kernel_run(const berth_op_call *call, berth_error *err) {
  layer l;
  recurrent_kernel_measure(call, &l);
  recurrent_kernel_read_form(&l);
  recurrent_kernel_place_scratch(&l);
  for (int64_t item = call->begin; item < call->end; item++) {
    l.direction = item / l.batch;
    l.row = item % l.batch;
    l.is_reversed = l.direction == 1 || strcmp(call->attrs[BERTH__RECURRENT_DIRECTION].s, "reverse") == 0;
    l.weight = (const float *)call->in[BERTH__RECURRENT_WEIGHT].data + l.direction * l.rows * l.inputs;
    l.recurrence = (const float *)call->in[BERTH__RECURRENT_RECURRENCE].data + l.direction * l.rows * l.hidden;
    l.peepholes = operand_at(&l, BERTH__RECURRENT_PEEPHOLES, l.direction * 3 * l.hidden);
    BERTH__TRY(recurrent_kernel_length_of(&l, err));
    recurrent_kernel_run_row(&l);
  }
  return BERTH_OK;
}

#define KERNEL(op)                                                                                         \
  {                                                                                                        \
    .name = #op, .code = BERTH__OP_##op, .takes = recurrent_kernel_takes, .items = recurrent_kernel_items, \
    .grain = recurrent_kernel_grain, .scratch = recurrent_kernel_scratch, .run = recurrent_kernel_run      \
  }
const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_recurrent)[] = {KERNEL(lstm), KERNEL(gru), KERNEL(rnn), {0}};
