/* softmax and log_softmax: the largest element of a row, the sum of the powers of what is left, and the row again. An
 * element is written by the thread that read it, so that the result may lie over the operand. */
#include <math.h>

#include "kernel/lower/math.h"
#include "kernel/lower/rows.h"

typedef struct line {
  const berth__lowering *l;
  berth__lines lines;
  berth__x start; /* the place of its first element, in a contiguous tensor */
  berth__x most;
} line;

static berth__x lower_softmax_place_of(berth__kernel *k, const line *s, berth__x i) {
  return berth__x_add(k, s->start, berth__x_affine(k, i, s->lines.inner, 0));
}

static void lower_softmax_load_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const line *s = state;
  values[0] = berth__l_load(s->l, k, 0, lower_softmax_place_of(k, s, i));
}

static void load_power(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const line *s = state;
  lower_softmax_load_element(k, state, i, values);
  values[0] = berth__m_exp(k, berth__x_sub(k, values[0], s->most));
}

static void join_largest(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out) {
  (void)state;
  out[0] = berth__x_select(k, berth__x_lt(k, a[0], b[0]), b[0], a[0]);
}

static void lower_softmax_store_element(berth__kernel *k, const line *s, berth__x i, berth__x sum, bool is_log) {
  const berth__x place = lower_softmax_place_of(k, s, i);
  const berth__x below = berth__x_sub(k, berth__l_load(s->l, k, 0, place), s->most);
  const berth__x y = is_log ? berth__x_sub(k, below, sum) : berth__x_mul(k, berth__m_exp(k, below), sum);
  berth__l_store(s->l, k, 0, berth__l_place_flat(k, &s->l->call->out[0], place), y);
}

berth_status berth__lower_softmax(berth__lowering *l, berth_error *err) {
  const bool is_log = l->op->code == BERTH__OP_log_softmax;
  line s = {.l = l, .lines = berth__lines_of(&l->call->in[0], l->call->attrs[BERTH__SOFTMAX_AXIS].i)};
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__l_rows rows = berth__l_rows_of(l, k, s.lines.outer * s.lines.inner, s.lines.length, s.lines.inner == 1);
  s.start = berth__l_line_start(k, &s.lines, rows.row);
  berth__l_fold fold = {.n = 1,
                        .start = {berth__x_f32(k, -INFINITY)},
                        .element = lower_softmax_load_element,
                        .join = join_largest,
                        .state = &s};
  berth__l_rows_fold(k, &rows, &fold, &s.most);
  berth__x sum;
  fold = (berth__l_fold){.n = 1,
                         .start = {berth__x_f32(k, 0)},
                         .is_sum = true,
                         .element = load_power,
                         .join = berth__l_join_sums,
                         .state = &s};
  berth__l_rows_fold(k, &rows, &fold, &sum);
  sum = is_log ? berth__m_log(k, sum) : berth__x_div(k, berth__x_f32(k, 1), sum);
  const berth__x i = berth__l_rows_each(k, &rows);
  lower_softmax_store_element(k, &s, i, sum, is_log);
  return berth__l_end(l, k, err);
}
