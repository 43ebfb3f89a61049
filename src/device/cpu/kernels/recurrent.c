/* lstm, gru and rnn of f32. An item is a few sequences, which are rows of the batch, in one direction: they share what
 * is read of the weights: their rows times vectors, the states of all sequences of an item or the inputs of several
 * steps together. Weights that are not packed are read in place, and every product ends with a sum across a vector.
 * With the usual activations, which exported models have, a step goes over its gates once; other forms process the
 * gates one line after the other. */
#include "ops/recurrent.h"

#include <inttypes.h>

#include "device/cpu/kernels/gemm_tile.h"
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/recurrent_act.h"
#include "ops/operand.h"

#define AHEAD 16                /* inputs that are multiplied together: steps of all sequences of an item */
#define MOST_SEQUENCES 8        /* of an item: AHEAD is a multiple of it */
#define TOGETHER (VF_LANES / 4) /* vectors that share the rows of a weight */
#define KEPT 4096               /* elements of weights that stay in the first cache */
#define BYTES_PER_US 5e4        /* for weights from the L2 or L3 cache */

/* A row of the batch, in the direction of the item. */
typedef struct sequence {
  int64_t row;
  int64_t length; /* valid steps */
  const float *h; /* after the last step */
  float *c;       /* of lstm: in its last result if that exists, otherwise in scratch */
  float *turned;  /* of gru, in scratch */
} sequence;

/* Rows [n, columns] in place; or packed, where rows are columns of panels, whose rows are `step` elements apart. */
typedef struct gate_matrix {
  const float *data;
  int64_t columns, step; /* step: 0 if it is not packed */
} gate_matrix;

typedef struct layer {
  const berth_op_call *call;
  berth__op_code code;
  int64_t steps, batch, inputs, hidden, rows, directions;
  bool is_linear_first, is_usual;
  bool input_forget;
  vf clip; /* infinite: none */
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  act_function *functions[BERTH__MAX_ACTIVATIONS];
  bool needs_c, needs_turned, needs_zeros; /* in scratch */
  float *ahead, *zeros;
  /* Of the item: */
  int64_t direction;
  bool is_reversed;
  const float *peepholes; /* NULL: none */
  gate_matrix weight, recurrence;
  const float *own_bias; /* the recurrence bias of gru's last gate */
  sequence sequences[MOST_SEQUENCES];
  int64_t n_sequences;
} layer;

/* ---- Products ---- */

/* out = add + matrix * vector; out and add may be the same. */
typedef struct line_product {
  const float *vector, *add;
  float *out;
} line_product;

/* Adds the products of up to a vector of elements from `k` on; the constants are known when this is inlined. */
INLINED void add_products(const float *const *rows, const float *const *vectors, int64_t k, int64_t left,
                          const bool is_whole, const int n_rows, const int n_vectors, vf *sum) {
  vf x[VF_LANES];
  for (int v = 0; v < n_vectors; v++) x[v] = is_whole ? vf_load(vectors[v] + k) : vf_load_n(vectors[v] + k, left);
  for (int r = 0; r < n_rows; r++) {
    const vf w = is_whole ? vf_load(rows[r] + k) : vf_load_n(rows[r] + k, left);
    for (int v = 0; v < n_vectors; v++) sum[v * n_rows + r] = vf_fma(w, x[v], sum[v * n_rows + r]);
  }
}

/* Lane x * n_rows + r: rows[r] . vectors[x]; n_rows * n_vectors = VF_LANES, both constants when this is inlined. */
INLINED vf dot_tile(const float *const *rows, const float *const *vectors, int64_t n, const int n_rows,
                    const int n_vectors) {
  vf sum[VF_LANES];
  int64_t k = 0;
  for (int i = 0; i < VF_LANES; i++) sum[i] = vf_zero();
  for (; k + VF_LANES <= n; k += VF_LANES) add_products(rows, vectors, k, VF_LANES, true, n_rows, n_vectors, sum);
  if (k < n) add_products(rows, vectors, k, n - k, false, n_rows, n_vectors, sum);
  return vf_sums(sum);
}

/* Adds the sums of n rows to those of each vector. */
INLINED void store_tile(vf tile, const line_product *products, int64_t first, int64_t n, const int n_rows,
                        const int n_vectors) {
  float sums[VF_LANES];
  if (n_vectors == 1 && n == VF_LANES) {
    vf_store(products->out + first, vf_load(products->add + first) + tile);
    return;
  }
  vf_store(sums, tile);
  for (int v = 0; v < n_vectors; v++) {
    const float *add = products[v].add + first;
    float *out = products[v].out + first;
    for (int64_t r = 0; r < n; r++) out[r] = vf_read(add + r) + sums[v * n_rows + r];
  }
}

/* Rows [first, end) of n_vectors of the products. */
INLINED void multiply_rows(const float *matrix, int64_t columns, int64_t first, int64_t end,
                           const line_product *products, const int n_vectors) {
  const int height = VF_LANES / n_vectors;
  const float *vectors[VF_LANES], *rows[VF_LANES];
  for (int v = 0; v < n_vectors; v++) vectors[v] = products[v].vector;
  for (; first + height <= end; first += height) {
    for (int r = 0; r < height; r++) rows[r] = matrix + (first + r) * columns;
    store_tile(dot_tile(rows, vectors, columns, height, n_vectors), products, first, height, height, n_vectors);
  }
  if (first >= end) return;
  for (int r = 0; r < height; r++) rows[r] = matrix + (first + r < end ? first + r : end - 1) * columns;
  store_tile(dot_tile(rows, vectors, columns, height, n_vectors), products, first, end - first, height, n_vectors);
}

/* A few rows of the matrix at a time, which stay in the first cache for all vectors. Every element is summed in the
 * same order whatever the tile is. */
static void multiply_in_place(const float *matrix, int64_t n_rows, int64_t columns, const line_product *products,
                              int64_t n_products) {
  const int64_t most = columns > 0 && columns < KEPT / VF_LANES ? KEPT / columns / VF_LANES * VF_LANES : VF_LANES;
  const int64_t each = n_products == 1 ? n_rows : most;
  for (int64_t first = 0; first < n_rows; first += each) {
    const int64_t end = n_rows - first < each ? n_rows : first + each;
    int64_t at = 0;
    for (; at + TOGETHER <= n_products; at += TOGETHER)
      multiply_rows(matrix, columns, first, end, products + at, TOGETHER);
    for (; TOGETHER > 2 && at + 2 <= n_products; at += 2) multiply_rows(matrix, columns, first, end, products + at, 2);
    for (; at < n_products; at++) multiply_rows(matrix, columns, first, end, products + at, 1);
  }
}

/* The same of a packed matrix, for products whose lines are all n_rows apart and added to what they hold. */
static void multiply_lines(const gate_matrix *m, int64_t n_rows, const line_product *products, int64_t n_products) {
  const float *vectors[AHEAD];
  for (int64_t i = 0; i < n_products; i++) vectors[i] = products[i].vector;
  for (int64_t row = 0; row < n_rows; row += VF_PANEL) {
    gemm_tiles tiles = gemm_tiles_of(n_products, GEMM_ROWS);
    for (int64_t at = 0, n; at < n_products; at += n) {
      float *out = products[at].out + row;
      n = gemm_tiles_next(&tiles);
      const gemm_tile tile = {.rows = vectors + at,
                              .taps = 1,
                              .depth = m->columns,
                              .panel = m->data + row * m->columns * (m->step / VF_PANEL),
                              .panel_step = m->step,
                              .bias = out,
                              .bias_stride = n_rows,
                              .out = out,
                              .out_stride = n_rows,
                              .columns = n_rows - row < VF_PANEL ? n_rows - row : VF_PANEL,
                              .low = -INFINITY,
                              .high = INFINITY};
      gemm_tile_run(&tile, n);
    }
  }
}

/* Rows of sequences that have ended are left out: the lines before and after them are products of their own. */
static void recurrent_kernel_multiply(const gate_matrix *m, int64_t n_rows, const line_product *products,
                                      int64_t n_products) {
  if (m->step == 0) {
    multiply_in_place(m->data, n_rows, m->columns, products, n_products);
    return;
  }
  for (int64_t first = 0, end; first < n_products; first = end) {
    for (end = first + 1; end < n_products && products[end].out == products[end - 1].out + n_rows;) end++;
    multiply_lines(m, n_rows, products + first, end - first);
  }
}

/* ---- Steps: what follows the recurrence's products, from the gates' sums `g` of a sequence to its next h ---- */

static void recurrent_kernel_end_lstm(const layer *l, const sequence *s, float *g, float *next) {
  const int64_t n = l->hidden;
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    const vf i = vf_sigmoid(vf_load_n(g + k, left)), o = vf_sigmoid(vf_load_n(g + n + k, left));
    const vf f = vf_sigmoid(vf_load_n(g + 2 * n + k, left)), fresh = vf_tanh(vf_load_n(g + 3 * n + k, left));
    const vf c = vf_fma(f, vf_load_n(s->c + k, left), i * fresh);
    vf_store_n(s->c + k, c, left);
    vf_store_n(next + k, o * vf_tanh(c), left);
  }
}

/* What the last gate's recurrence is multiplied by, if that is not h. */
static void recurrent_kernel_turn_gru(const layer *l, const sequence *s, float *g) {
  const int64_t n = l->hidden;
  for (int64_t k = 0; !l->is_linear_first && k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    vf_store_n(s->turned + k, vf_sigmoid(vf_load_n(g + n + k, left)) * vf_load_n(s->h + k, left), left);
  }
}

static void recurrent_kernel_end_gru(const layer *l, const sequence *s, float *g, float *next) {
  const int64_t n = l->hidden;
  const float *last = l->is_linear_first ? s->turned : g + 2 * n;
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    const vf z = vf_sigmoid(vf_load_n(g + k, left)), r = vf_sigmoid(vf_load_n(g + n + k, left));
    vf sum = vf_load_n(last + k, left);
    if (l->is_linear_first) sum = vf_fma(r, sum, vf_load_n(g + 2 * n + k, left));
    const vf fresh = vf_tanh(sum);
    vf_store_n(next + k, vf_fma(z, vf_load_n(s->h + k, left) - fresh, fresh), left);
  }
}

static void recurrent_kernel_end_rnn(const layer *l, const sequence *s, float *g, float *next) {
  (void)s;
  for (int64_t k = 0; k < l->hidden; k += VF_LANES) {
    const int64_t left = vf_tail(l->hidden - k);
    vf_store_n(next + k, vf_tanh(vf_load_n(g + k, left)), left);
  }
}

/* ---- The same for any form, line after line ---- */

/* Over all directions; weights may be planned for more directions than there are. */
static uint32_t n_activations(const layer *l) {
  return berth__recurrent_functions(l->code) * berth__recurrent_directions(l->call->attrs);
}

/* False: one of them has no vector function. */
static bool find_functions(layer *l) {
  for (uint32_t i = 0; i < n_activations(l); i++) {
    l->functions[i] = act_find(l->activations[i].name);
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
static void look_through(const layer *l, const float *c, int64_t gate, float *x) {
  const int64_t n = l->hidden;
  for (int64_t k = 0; l->peepholes != NULL && k < n; k++) x[k] += vf_read(l->peepholes + gate * n + k) * c[k];
}

static void recurrent_kernel_end_any_lstm(const layer *l, const sequence *s, float *g, float *next) {
  const int64_t n = l->hidden;
  float *i = g, *o = g + n, *f = g + 2 * n, *fresh = g + 3 * n, *c = s->c;
  look_through(l, c, 0, i);
  look_through(l, c, 2, f);
  activate(l, 0, i);
  activate(l, 0, f);
  activate(l, 1, fresh);
  for (int64_t k = 0; k < n; k++) c[k] = (l->input_forget ? 1.0f - i[k] : f[k]) * c[k] + i[k] * fresh[k];
  look_through(l, c, 1, o);
  activate(l, 0, o);
  memcpy(f, c, (size_t)n * sizeof *f);
  activate_within(l, 2, vf_set1(INFINITY), f);
  for (int64_t k = 0; k < n; k++) next[k] = o[k] * f[k];
}

static void recurrent_kernel_turn_any_gru(const layer *l, const sequence *s, float *g) {
  const int64_t n = l->hidden;
  activate(l, 0, g);
  activate(l, 0, g + n);
  for (int64_t k = 0; !l->is_linear_first && k < n; k++) s->turned[k] = g[n + k] * s->h[k];
}

static void recurrent_kernel_end_any_gru(const layer *l, const sequence *s, float *g, float *next) {
  const int64_t n = l->hidden;
  float *z = g, *r = g + n, *fresh = g + 2 * n;
  for (int64_t k = 0; l->is_linear_first && k < n; k++) fresh[k] += r[k] * s->turned[k];
  activate(l, 1, fresh);
  for (int64_t k = 0; k < n; k++) next[k] = z[k] * (s->h[k] - fresh[k]) + fresh[k];
}

static void recurrent_kernel_end_any_rnn(const layer *l, const sequence *s, float *g, float *next) {
  (void)s;
  activate(l, 0, g);
  memcpy(next, g, (size_t)l->hidden * sizeof *next);
}

/* ---- A step of all sequences of an item ---- */

typedef struct step_form {
  void (*turn)(const layer *l, const sequence *s, float *g); /* of gru: before the last gate's product */
  void (*end)(const layer *l, const sequence *s, float *g, float *next);
} step_form;

static step_form step_form_of(const layer *l) {
  if (l->code == BERTH__OP_lstm)
    return (step_form){.end = l->is_usual ? recurrent_kernel_end_lstm : recurrent_kernel_end_any_lstm};
  if (l->code == BERTH__OP_rnn)
    return (step_form){.end = l->is_usual ? recurrent_kernel_end_rnn : recurrent_kernel_end_any_rnn};
  return l->is_usual ? (step_form){recurrent_kernel_turn_gru, recurrent_kernel_end_gru}
                     : (step_form){recurrent_kernel_turn_any_gru, recurrent_kernel_end_any_gru};
}

static int64_t time_of(const layer *l, const sequence *s, int64_t step) {
  return l->is_reversed ? s->length - 1 - step : step;
}

static float *result_at(const layer *l, const sequence *s, int64_t time) {
  return (float *)l->call->out[0].data + ((time * l->directions + l->direction) * l->batch + s->row) * l->hidden;
}

/* The recurrence's share in the last gate: in `turned` if r is multiplied with it, otherwise added to the gate. */
static void multiply_last_gate(const layer *l, const step_form *form, sequence *const *valid, float *const *gates,
                               int64_t n_valid) {
  const int64_t n = l->hidden;
  line_product products[MOST_SEQUENCES];
  for (int64_t i = 0; i < n_valid; i++) {
    const sequence *s = valid[i];
    float *last = gates[i] + 2 * n;
    form->turn(l, s, gates[i]);
    products[i] =
        l->is_linear_first ? (line_product){s->h, l->own_bias, s->turned} : (line_product){s->turned, last, last};
  }
  recurrent_kernel_multiply(&(gate_matrix){l->recurrence.data + 2 * n * n, n, 0}, n, products, n_valid);
}

/* lines: the inputs' share in the gates, of each sequence. */
static void recurrent_kernel_step(layer *l, const step_form *form, int64_t step, float *lines) {
  sequence *valid[MOST_SEQUENCES];
  float *gates[MOST_SEQUENCES];
  line_product products[MOST_SEQUENCES];
  int64_t n = 0;
  for (int64_t i = 0; i < l->n_sequences; i++) {
    if (step >= l->sequences[i].length) continue;
    valid[n] = &l->sequences[i];
    gates[n] = lines + i * l->rows;
    products[n] = (line_product){valid[n]->h, gates[n], gates[n]};
    n++;
  }
  const int64_t first_rows = form->turn != NULL ? 2 * l->hidden : l->rows;
  recurrent_kernel_multiply(&l->recurrence, first_rows, products, n);
  if (form->turn != NULL) multiply_last_gate(l, form, valid, gates, n);
  for (int64_t i = 0; i < n; i++) {
    float *next = result_at(l, valid[i], time_of(l, valid[i], step));
    form->end(l, valid[i], gates[i], next);
    valid[i]->h = next;
  }
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

/* `steps` lines of each sequence. */
static void look_ahead(const layer *l, int64_t first, int64_t steps) {
  const berth_tensor *x = &l->call->in[BERTH__RECURRENT_X];
  line_product products[AHEAD];
  int64_t n = 0;
  for (int64_t i = 0; i < steps * l->n_sequences; i++) {
    const int64_t step = first + i / l->n_sequences;
    const sequence *s = &l->sequences[i % l->n_sequences];
    if (step >= s->length) continue;
    float *line = l->ahead + i * l->rows;
    products[n++] =
        (line_product){(const float *)x->data + time_of(l, s, step) * x->stride[0] + s->row * x->stride[1], line, line};
  }
  start_with_biases(l, steps * l->n_sequences);
  recurrent_kernel_multiply(&l->weight, l->rows, products, n);
}

static float *recurrent_kernel_state_at(const layer *l, const sequence *s, uint32_t out) {
  return (float *)l->call->out[out].data + (l->direction * l->batch + s->row) * l->hidden;
}

/* The states that the first step reads. */
static void start_sequence(const layer *l, sequence *s) {
  const int64_t state = (l->direction * l->batch + s->row) * l->hidden;
  const size_t size = (size_t)l->hidden * sizeof(float);
  const float *h = operand_at(l, BERTH__RECURRENT_INITIAL_H, state),
              *c = operand_at(l, BERTH__RECURRENT_INITIAL_C, state);
  if (l->call->n_out > 2) s->c = recurrent_kernel_state_at(l, s, 2);
  if (s->c != NULL && c != NULL) memcpy(s->c, c, size);
  if (s->c != NULL && c == NULL) memset(s->c, 0, size);
  s->h = h != NULL ? h : l->zeros;
}

/* Everything after the last valid step; a sequence without any valid step has no states, either. */
static void end_sequence(const layer *l, const sequence *s) {
  const size_t size = (size_t)l->hidden * sizeof *s->h;
  for (int64_t t = s->length; t < l->steps; t++) memset(result_at(l, s, t), 0, size);
  if (l->call->n_out > 1 && s->length > 0) memcpy(recurrent_kernel_state_at(l, s, 1), s->h, size);
  for (uint32_t out = 1; s->length == 0 && out < l->call->n_out; out++)
    memset(recurrent_kernel_state_at(l, s, out), 0, size);
}

/* How many sequences an item has at most. Few rows are left to the threads one by one. */
static int64_t sequences_of(const layer *l) { return l->batch >= 32 ? MOST_SEQUENCES : l->batch >= 8 ? 4 : 1; }

/* Of each sequence of an item. */
static int64_t steps_ahead(const layer *l) {
  const int64_t most = AHEAD / sequences_of(l);
  return l->steps < most ? l->steps : most;
}

static void recurrent_kernel_run_sequences(layer *l) {
  const step_form form = step_form_of(l);
  int64_t longest = 0;
  if (l->zeros != NULL) memset(l->zeros, 0, (size_t)l->hidden * sizeof *l->zeros);
  for (int64_t i = 0; i < l->n_sequences; i++) {
    start_sequence(l, &l->sequences[i]);
    if (l->sequences[i].length > longest) longest = l->sequences[i].length;
  }
  for (int64_t first = 0; first < longest; first += steps_ahead(l)) {
    const int64_t n = longest - first < steps_ahead(l) ? longest - first : steps_ahead(l);
    look_ahead(l, first, n);
    for (int64_t i = 0; i < n; i++) recurrent_kernel_step(l, &form, first + i, l->ahead + i * l->n_sequences * l->rows);
  }
  for (int64_t i = 0; i < l->n_sequences; i++) end_sequence(l, &l->sequences[i]);
}

/* ---- The call ---- */

static void recurrent_kernel_measure(const berth_op_call *call, layer *l) {
  const berth_tensor *own = &call->in[BERTH__RECURRENT_RECURRENCE];
  const berth__recurrent_matrix form = berth__recurrent_matrix_of(own->dim, own->rank);
  *l = (layer){.call = call,
               .code = berth__call_code(call),
               .steps = call->in[BERTH__RECURRENT_X].dim[0],
               .batch = call->in[BERTH__RECURRENT_X].dim[1],
               .inputs = call->in[BERTH__RECURRENT_X].dim[2],
               .hidden = form.columns,
               .rows = berth__recurrent_gates(berth__call_code(call)) * form.columns,
               .directions = form.directions};
  l->is_linear_first = l->code == BERTH__OP_gru && call->attrs[BERTH__RECURRENT_LINEAR_BEFORE_RESET].i != 0;
  l->needs_c = l->code == BERTH__OP_lstm && call->n_out < 3;
  l->needs_turned = l->code == BERTH__OP_gru;
  l->needs_zeros = !berth__call_has(call, BERTH__RECURRENT_INITIAL_H) ||
                   (l->is_linear_first && !berth__call_has(call, BERTH__RECURRENT_BIAS));
}

static uint64_t recurrent_kernel_scratch(const berth_op_call *call) {
  layer l;
  recurrent_kernel_measure(call, &l);
  const int64_t n = sequences_of(&l), lines = (l.needs_c ? n : 0) + (l.needs_turned ? n : 0) + (l.needs_zeros ? 1 : 0);
  return (uint64_t)(steps_ahead(&l) * n * l.rows + lines * l.hidden) * sizeof(float);
}

static void recurrent_kernel_place_scratch(layer *l) {
  const int64_t n = sequences_of(l);
  float *at = (float *)l->call->scratch + steps_ahead(l) * n * l->rows;
  l->ahead = l->call->scratch;
  for (int64_t i = 0; i < n; i++) {
    if (l->needs_c) l->sequences[i].c = at;
    if (l->needs_c) at += l->hidden;
    if (l->needs_turned) l->sequences[i].turned = at;
    if (l->needs_turned) at += l->hidden;
  }
  if (l->needs_zeros) l->zeros = at;
}

/* Of a direction: about equally large. */
static int64_t items_of_batch(const layer *l) { return (l->batch + sequences_of(l) - 1) / sequences_of(l); }

static int64_t recurrent_kernel_items(const berth_op_call *call) {
  layer l;
  recurrent_kernel_measure(call, &l);
  return l.directions * items_of_batch(&l);
}

static int64_t recurrent_kernel_grain(const berth_op_call *call) {
  layer l;
  recurrent_kernel_measure(call, &l);
  const double us = 4.0 * (double)(l.rows * (l.hidden + l.inputs)) * (double)l.steps / BYTES_PER_US;
  const double item = us * (double)(1 + sequences_of(&l)) / 2; /* others of an item find the weights in a cache */
  return item < 20 ? (int64_t)(20 / (item + 0.01)) : 1;
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

static bool has_right_panels(const berth_tensor *matrix) {
  const int64_t panel = berth__recurrent_matrix_of(matrix->dim, matrix->rank).panel;
  return panel == 0 || panel == VF_PANEL;
}

static bool recurrent_kernel_takes(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__RECURRENT_X];
  layer l;
  if (!has_right_panels(&call->in[BERTH__RECURRENT_WEIGHT])) return false;
  if (!has_right_panels(&call->in[BERTH__RECURRENT_RECURRENCE])) return false;
  if (x->type != BERTH_F32 || (x->stride[2] != 1 && x->dim[2] > 1) || x->dim[0] == 0) return false;
  recurrent_kernel_measure(call, &l);
  return recurrent_kernel_read_form(&l);
}

static berth_status recurrent_kernel_length_of(const layer *l, int64_t row, int64_t *length, berth_error *err) {
  *length = l->steps;
  if (!berth__call_has(l->call, BERTH__RECURRENT_LENGTHS)) return BERTH_OK;
  *length = berth__load_i64(&l->call->in[BERTH__RECURRENT_LENGTHS], row);
  if (*length >= 0 && *length <= l->steps) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "the length of row %" PRId64 " is %" PRId64 ", but a row has %" PRId64 " steps", row, *length,
                     l->steps);
}

static gate_matrix matrix_of(const layer *l, uint32_t operand) {
  const berth_tensor *from = &l->call->in[operand];
  const berth__recurrent_matrix form = berth__recurrent_matrix_of(from->dim, from->rank);
  const int64_t step = form.directions * form.panel;
  return (gate_matrix){(const float *)from->data + l->direction * (step != 0 ? form.panel : l->rows * form.columns),
                       form.columns, step};
}

static berth_status read_item(layer *l, int64_t item, berth_error *err) {
  const berth_op_call *call = l->call;
  const int64_t items = items_of_batch(l), which = item % items;
  const int64_t each = l->batch / items, larger = l->batch % items;
  const int64_t first = which * each + (which < larger ? which : larger);
  l->direction = item / items;
  l->is_reversed = l->direction == 1 || strcmp(call->attrs[BERTH__RECURRENT_DIRECTION].s, "reverse") == 0;
  l->weight = matrix_of(l, BERTH__RECURRENT_WEIGHT);
  l->recurrence = matrix_of(l, BERTH__RECURRENT_RECURRENCE);
  l->peepholes = operand_at(l, BERTH__RECURRENT_PEEPHOLES, l->direction * 3 * l->hidden);
  const float *bias = operand_at(l, BERTH__RECURRENT_BIAS, l->direction * 2 * l->rows);
  l->own_bias = bias != NULL ? bias + l->rows + 2 * l->hidden : l->zeros;
  l->n_sequences = each + (which < larger);
  for (int64_t i = 0; i < l->n_sequences; i++) {
    l->sequences[i].row = first + i;
    BERTH__TRY(recurrent_kernel_length_of(l, first + i, &l->sequences[i].length, err));
  }
  return BERTH_OK;
}

static berth_status recurrent_kernel_run(const berth_op_call *call, berth_error *err) {
  layer l;
  recurrent_kernel_measure(call, &l);
  recurrent_kernel_read_form(&l);
  recurrent_kernel_place_scratch(&l);
  for (int64_t item = call->begin; item < call->end; item++) {
    BERTH__TRY(read_item(&l, item, err));
    recurrent_kernel_run_sequences(&l);
  }
  return BERTH_OK;
}

#define KERNEL(op)                                                                                         \
  {                                                                                                        \
    .name = #op, .code = BERTH__OP_##op, .takes = recurrent_kernel_takes, .items = recurrent_kernel_items, \
    .grain = recurrent_kernel_grain, .scratch = recurrent_kernel_scratch, .run = recurrent_kernel_run      \
  }
const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_recurrent)[] = {KERNEL(lstm), KERNEL(gru), KERNEL(rnn), {0}};
