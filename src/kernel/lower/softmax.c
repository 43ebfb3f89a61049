/* softmax and log_softmax: the maximum of a row, the sum of exponentials relative to it, and the row again. Elements
 * are written after all threads of the row have read, each by a thread that reads it again, so the result may overwrite
 * the operand. */
#include <math.h>

#include "kernel/lower/math.h"
#include "kernel/lower/rows.h"

typedef struct line {
  const berth__lowering *l;
  const berth__l_rows *rows;
  berth__lines lines;
  berth__x start; /* position of its first element, in a contiguous tensor */
  berth__x most, sum;
  bool is_log;
} line;

static berth__x lower_softmax_place_of(berth__kernel *k, const line *s, berth__x i) {
  return berth__x_add(k, s->start, berth__x_affine(k, i, s->lines.inner, 0));
}

static berth__x lower_softmax_element_at(berth__kernel *k, const line *s, berth__x i) {
  const berth__x held = berth__l_rows_held(s->rows, i);
  return held != BERTH__X_NONE ? held : berth__l_load(s->l, k, 0, lower_softmax_place_of(k, s, i));
}

static void lower_softmax_load_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  values[0] = lower_softmax_element_at(k, state, i);
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

static berth__x lower_softmax_result_place(berth__kernel *k, const void *state, berth__x i) {
  const line *s = state;
  return berth__l_place_flat(k, &s->l->call->out[0], lower_softmax_place_of(k, s, i));
}

static void lower_softmax_write_element(berth__kernel *k, const void *state, berth__x i, berth__x place) {
  const line *s = state;
  const berth__x below = berth__x_sub(k, lower_softmax_element_at(k, s, i), s->most);
  const berth__x y = s->is_log ? berth__x_sub(k, below, s->sum) : berth__x_mul(k, berth__m_exp(k, below), s->sum);
  berth__l_store(s->l, k, 0, place, y);
}

berth_status berth__lower_softmax(berth__lowering *l, berth_error *err) {
  line s = {.l = l,
            .lines = berth__lines_of(&l->call->in[0], l->call->attrs[BERTH__SOFTMAX_AXIS].i),
            .is_log = l->op->code == BERTH__OP_log_softmax};
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const int64_t count = s.lines.outer * s.lines.inner;
  berth__l_rows rows = s.lines.inner == 1 ? berth__l_rows_hold(l, k, 0, count, s.lines.length)
                                          : berth__l_rows_of(l, k, count, s.lines.length, false);
  s.rows = &rows;
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
  s.sum = s.is_log ? berth__m_log(k, sum) : berth__x_div(k, berth__x_f32(k, 1), sum);
  const berth__l_rows_writer writer = {.is_dense = s.lines.inner == 1,
                                       .place = lower_softmax_result_place,
                                       .write = lower_softmax_write_element,
                                       .state = &s};
  berth__l_rows_write(l, k, &rows, &writer);
  return berth__l_end(l, k, err);
}
