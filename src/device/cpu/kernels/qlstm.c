/* qlstm with its usual activations. An item is one row of the batch in one direction. The rows of the recurrence are
 * read in place. h is quantised to 16-bit numbers relative to its zero point, whose products with bytes are summed in
 * 32 bits. */
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/vec_math.h"
#include "ops/operand.h"
#include "ops/recurrent.h"

#define MOST_HIDDEN 16384   /* sums of 255 * 255 stay within 32 bits */
#define WIDE (2 * VF_LANES) /* 16-bit numbers per vector */
#define BYTES_PER_US 3e4    /* of weights */

typedef struct qlayer {
  const berth_op_call *call;
  int64_t steps, batch, hidden, directions;
  bool is_unsigned;
  bool needs_c, needs_zeros; /* in scratch */
  int64_t direction, row;    /* of an item */
  bool is_reversed;
  float *sums, *c, *zeros; /* sums: 4 * hidden */
  int16_t *steps_of_h;     /* padded to whole vectors with zeros */
} qlayer;

static int64_t qlstm_kernel_wide(const qlayer *l) { return (l->hidden + WIDE - 1) / WIDE * WIDE; }

/* ---- The product ---- */

/* The range of h, as in ops/family_qlstm.c: NaN is ignored. */
static void qlstm_kernel_range(const float *h, int64_t n, float *low, float *high) {
  vf least = vf_zero(), most = vf_zero();
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const vf x = vf_load_n(h + k, vf_tail(n - k));
    least = vf_min(x, least);
    most = vf_max(x, most);
  }
  *low = vf_least(least);
  *high = vf_most(most);
}

static vi qlstm_kernel_steps(const float *h, int64_t n, vf step, vf zero) {
  if (n <= 0) return vi_set1(0);
  const vf place = vf_round(vf_load_n(h, vf_tail(n)) / step) + zero;
  return vf_to_int(vf_max(vf_zero(), vf_min(vf_set1(255.0f), vf_pick_nan(place, vf_zero(), place))) - zero);
}

/* h as whole steps from its zero point; returns the size of a step, and the sum of the numbers. */
static float qlstm_kernel_quantise(const qlayer *l, const float *h, int32_t *sum) {
  float low, high;
  qlstm_kernel_range(h, l->hidden, &low, &high);
  const float range = high - low, step = range == 0 ? 1.0f : range / 255.0f, zero = rintf(-low / step);
  const vi ones = vi_set1(0x00010001);
  vi total = vi_set1(0);
  int32_t lanes[VF_LANES];
  for (int64_t k = 0; k < l->hidden; k += WIDE) {
    const vi first = qlstm_kernel_steps(h + k, l->hidden - k, vf_set1(step), vf_set1(zero));
    const vi second = qlstm_kernel_steps(h + k + VF_LANES, l->hidden - k - VF_LANES, vf_set1(step), vf_set1(zero));
    const vi both = vi_pack_16(first, second);
    total = vi_dot2(total, both, ones);
    vi_store(l->steps_of_h + k, both);
  }
  vi_store(lanes, total);
  *sum = 0;
  for (int i = 0; i < VF_LANES; i++) *sum += lanes[i];
  return step;
}

/* VF_LANES rows of n bytes times h; may read up to a vector past the last row, whose bytes are multiplied by 0. */
INLINED vi dot_rows(const uint8_t *const *rows, const int16_t *h, int64_t n, const bool is_unsigned) {
  vi sum[VF_LANES];
  for (int r = 0; r < VF_LANES; r++) sum[r] = vi_set1(0);
  for (int64_t k = 0; k < n; k += WIDE) {
    const vi x = vi_load(h + k);
    for (int r = 0; r < VF_LANES; r++)
      sum[r] = vi_dot2(sum[r], x, is_unsigned ? vi_widen_u8(rows[r] + k) : vi_widen_i8(rows[r] + k));
  }
  return vi_sums(sum);
}

static vi dot_some_rows(const qlayer *l, const uint8_t *const *rows) {
  return l->is_unsigned ? dot_rows(rows, l->steps_of_h, l->hidden, true)
                        : dot_rows(rows, l->steps_of_h, l->hidden, false);
}

/* The last rows of the tensor, where reading a whole vector would go past its end: copied part by part. */
static vi dot_last_rows(const qlayer *l, const uint8_t *const *rows) {
  vi sum = vi_set1(0);
  for (int64_t k = 0; k < l->hidden; k += WIDE) {
    uint8_t some[VF_LANES][WIDE] = {{0}};
    const uint8_t *parts[VF_LANES];
    const int64_t n = l->hidden - k < WIDE ? l->hidden - k : WIDE;
    for (int r = 0; r < VF_LANES; r++) {
      memcpy(some[r], rows[r] + k, (size_t)n);
      parts[r] = some[r];
    }
    sum = vi_add(sum, l->is_unsigned ? dot_rows(parts, l->steps_of_h + k, WIDE, true)
                                     : dot_rows(parts, l->steps_of_h + k, WIDE, false));
  }
  return sum;
}

/* n elements from `row` on, or the one for all rows of a direction. */
static vf scales_at(const qlayer *l, int64_t row, int64_t n) {
  const berth_tensor *t = &l->call->in[BERTH__QLSTM_SCALE];
  const float *from = t->data;
  return t->rank == 1 ? vf_set1(vf_read(from + l->direction)) : vf_load_n(from + l->direction * 4 * l->hidden + row, n);
}

/* Zero points, adjusted by the shift of unsigned weights. */
static vi zeros_at(const qlayer *l, int64_t row, int64_t n) {
  const berth_tensor *t = &l->call->in[BERTH__QLSTM_ZERO];
  const vi shift = vi_set1(l->is_unsigned ? 128 : 0);
  if (!berth__call_has(l->call, BERTH__QLSTM_ZERO)) return vi_sub(vi_set1(0), shift);
  const uint8_t *from = t->data;
  if (t->rank == 1) return vi_sub(vi_set1((int32_t)berth__load_i64(t, l->direction)), shift);
  from += l->direction * 4 * l->hidden + row;
  return vi_sub(l->is_unsigned ? vi_load_u8_n(from, n) : vi_load_i8_n(from, n), shift);
}

static void qlstm_kernel_multiply(const qlayer *l, const float *h) {
  const berth_tensor *weight = &l->call->in[BERTH__QLSTM_RECURRENCE];
  const int64_t n_rows = 4 * l->hidden, all = l->directions * n_rows * l->hidden, wide = qlstm_kernel_wide(l);
  const uint8_t *first = (const uint8_t *)weight->data + l->direction * n_rows * l->hidden;
  const uint8_t *end = (const uint8_t *)weight->data + all;
  const bool one_scale = l->call->in[BERTH__QLSTM_SCALE].rank == 1;
  const bool one_zero = !berth__call_has(l->call, BERTH__QLSTM_ZERO) || l->call->in[BERTH__QLSTM_ZERO].rank == 1;
  int32_t sum_of_h;
  const vf step = vf_set1(qlstm_kernel_quantise(l, h, &sum_of_h));
  vf scale = step * scales_at(l, 0, VF_LANES < n_rows ? VF_LANES : n_rows);
  vi shift = vi_mul(zeros_at(l, 0, VF_LANES < n_rows ? VF_LANES : n_rows), vi_set1(sum_of_h));
  for (int64_t row = 0; row < n_rows; row += VF_LANES) {
    const uint8_t *rows[VF_LANES];
    const int64_t n = vf_tail(n_rows - row);
    for (int64_t r = 0; r < VF_LANES; r++) rows[r] = first + (row + (r < n ? r : n - 1)) * l->hidden;
    if (!one_scale) scale = step * scales_at(l, row, n);
    if (!one_zero) shift = vi_mul(zeros_at(l, row, n), vi_set1(sum_of_h));
    const vi sum = end - rows[VF_LANES - 1] >= wide ? dot_some_rows(l, rows) : dot_last_rows(l, rows);
    vf_store_n(l->sums + row, vf_from_int(vi_sub(sum, shift)) * scale, n);
  }
}

/* ---- Steps ---- */

static vf qlstm_kernel_gate(const qlayer *l, const float *gates, const float *bias, int64_t at, int64_t n) {
  const vf inputs = vf_load_n(gates + at, n), own = vf_load_n(l->sums + at, n);
  if (bias == NULL) return inputs + own;
  return (inputs + vf_load_n(bias + at, n)) + (own + vf_load_n(bias + 4 * l->hidden + at, n));
}

static void qlstm_kernel_step(const qlayer *l, const float *gates, const float *bias, const float *h, float *next) {
  const int64_t n = l->hidden;
  qlstm_kernel_multiply(l, h);
  for (int64_t k = 0; k < n; k += VF_LANES) {
    const int64_t left = vf_tail(n - k);
    const vf i = vf_sigmoid(qlstm_kernel_gate(l, gates, bias, k, left));
    const vf o = vf_sigmoid(qlstm_kernel_gate(l, gates, bias, n + k, left));
    const vf f = vf_sigmoid(qlstm_kernel_gate(l, gates, bias, 2 * n + k, left));
    const vf fresh = vf_tanh(qlstm_kernel_gate(l, gates, bias, 3 * n + k, left));
    const vf c = vf_fma(f, vf_load_n(l->c + k, left), i * fresh);
    vf_store_n(l->c + k, c, left);
    vf_store_n(next + k, o * vf_tanh(c), left);
  }
}

static float *qlstm_kernel_state(const qlayer *l, uint32_t out) {
  return (float *)l->call->out[out].data + (l->direction * l->batch + l->row) * l->hidden;
}

static const float *qlstm_kernel_operand(const qlayer *l, uint32_t operand, int64_t index) {
  return berth__call_has(l->call, operand) ? (const float *)l->call->in[operand].data + index : NULL;
}

static void qlstm_kernel_run_row(qlayer *l) {
  const berth_tensor *gates = &l->call->in[BERTH__QLSTM_GATES];
  const int64_t state = (l->direction * l->batch + l->row) * l->hidden;
  const size_t size = (size_t)l->hidden * sizeof(float);
  const float *h = qlstm_kernel_operand(l, BERTH__QLSTM_INITIAL_H, state);
  const float *c = qlstm_kernel_operand(l, BERTH__QLSTM_INITIAL_C, state);
  const float *bias = qlstm_kernel_operand(l, BERTH__QLSTM_BIAS, l->direction * 8 * l->hidden);
  if (l->call->n_out > 2) l->c = qlstm_kernel_state(l, 2);
  if (l->zeros != NULL) memset(l->zeros, 0, size);
  if (h == NULL) h = l->zeros;
  if (c != NULL)
    memcpy(l->c, c, size);
  else
    memset(l->c, 0, size);
  for (int64_t k = 0; k < l->steps; k++) {
    const int64_t t = l->is_reversed ? l->steps - 1 - k : k;
    const float *from =
        (const float *)gates->data + t * gates->stride[0] + l->direction * gates->stride[1] + l->row * gates->stride[2];
    float *next = (float *)l->call->out[0].data + ((t * l->directions + l->direction) * l->batch + l->row) * l->hidden;
    qlstm_kernel_step(l, from, bias, h, next);
    h = next;
  }
  if (l->call->n_out > 1) memcpy(qlstm_kernel_state(l, 1), h, size);
}

/* ---- The call ---- */

static void qlstm_kernel_measure(const berth_op_call *call, qlayer *l) {
  const berth_tensor *gates = &call->in[BERTH__QLSTM_GATES], *weight = &call->in[BERTH__QLSTM_RECURRENCE];
  *l = (qlayer){.call = call,
                .steps = gates->dim[0],
                .batch = gates->dim[2],
                .hidden = weight->dim[2],
                .directions = weight->dim[0],
                .is_unsigned = weight->type == BERTH_U8,
                .needs_c = call->n_out < 3,
                .needs_zeros = !berth__call_has(call, BERTH__QLSTM_INITIAL_H)};
}

static uint64_t qlstm_kernel_scratch(const berth_op_call *call) {
  qlayer l;
  qlstm_kernel_measure(call, &l);
  const int64_t lines = 4 + (l.needs_c ? 1 : 0) + (l.needs_zeros ? 1 : 0);
  return (uint64_t)(lines * l.hidden) * sizeof(float) + (uint64_t)qlstm_kernel_wide(&l) * sizeof(int16_t);
}

static int64_t qlstm_kernel_items(const berth_op_call *call) {
  return call->in[BERTH__QLSTM_RECURRENCE].dim[0] * call->in[BERTH__QLSTM_GATES].dim[2];
}

static int64_t qlstm_kernel_grain(const berth_op_call *call) {
  qlayer l;
  qlstm_kernel_measure(call, &l);
  const double us = 4.0 * (double)(l.hidden * l.hidden) * (double)l.steps / BYTES_PER_US;
  return us < 20 ? (int64_t)(20 / (us + 0.01)) : 1;
}

static bool qlstm_kernel_has_usual_activations(const berth_op_call *call) {
  berth__activation given[BERTH__MAX_ACTIVATIONS] = {{0}}, usual[BERTH__MAX_ACTIVATIONS] = {{0}};
  berth_attr attrs[BERTH__RECURRENT_ATTRS];
  berth_error err;
  memcpy(attrs, call->attrs, sizeof attrs);
  attrs[BERTH__RECURRENT_ACTIVATIONS].s = "";
  if (berth__recurrent_activations(BERTH__OP_qlstm, call->attrs, given, &err) != BERTH_OK) return false;
  if (berth__recurrent_activations(BERTH__OP_qlstm, attrs, usual, &err) != BERTH_OK) return false;
  for (uint32_t i = 0; i < BERTH__MAX_ACTIVATIONS; i++)
    if (given[i].function != usual[i].function) return false;
  return true;
}

static bool qlstm_kernel_takes(const berth_op_call *call) {
  const berth_tensor *gates = &call->in[BERTH__QLSTM_GATES];
  return (gates->stride[3] == 1 || gates->dim[3] <= 1) && gates->dim[0] > 0 &&
         call->in[BERTH__QLSTM_RECURRENCE].dim[2] <= MOST_HIDDEN && !berth__call_has(call, BERTH__QLSTM_LENGTHS) &&
         !berth__call_has(call, BERTH__QLSTM_PEEPHOLES) && call->attrs[BERTH__RECURRENT_CLIP].f == 0 &&
         call->attrs[BERTH__RECURRENT_INPUT_FORGET].i == 0 && qlstm_kernel_has_usual_activations(call);
}

static berth_status qlstm_kernel_run(const berth_op_call *call, berth_error *err) {
  qlayer l;
  (void)err;
  qlstm_kernel_measure(call, &l);
  float *at = l.sums = call->scratch;
  at += 4 * l.hidden;
  if (l.needs_c) l.c = at;
  if (l.needs_c) at += l.hidden;
  if (l.needs_zeros) l.zeros = at;
  if (l.needs_zeros) at += l.hidden;
  l.steps_of_h = (int16_t *)at;
  for (int64_t item = call->begin; item < call->end; item++) {
    l.direction = item / l.batch;
    l.row = item % l.batch;
    l.is_reversed = l.direction == 1 || strcmp(call->attrs[BERTH__RECURRENT_DIRECTION].s, "reverse") == 0;
    qlstm_kernel_run_row(&l);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_qlstm)[] = {
    {.name = "qlstm",
     .code = BERTH__OP_qlstm,
     .takes = qlstm_kernel_takes,
     .items = qlstm_kernel_items,
     .grain = qlstm_kernel_grain,
     .scratch = qlstm_kernel_scratch,
     .run = qlstm_kernel_run},
    {0},
};
