/* cross_entropy and its gradient: the maximum logit of a row, the sum of exponentials relative to it, and then the
 * loss, or the row again. Elements are written after all threads of the row have read, each by a thread that reads it
 * again, so the gradient may overwrite the logits. A label out of range is replaced by the nearest valid one. */
#include <math.h>

#include "kernel/lower/math.h"
#include "kernel/lower/rows.h"

typedef struct entropy {
  const berth__lowering *l;
  int64_t length;
  berth__x row, start; /* position of the row's first element */
  berth__x most, sum;
  berth__x label, counts, dy; /* an i32; a bool; only for the gradient */
} entropy;

static berth__x lower_cross_entropy_logit(berth__kernel *k, const entropy *s, berth__x i) {
  return berth__l_load(s->l, k, BERTH__CROSS_ENTROPY_LOGITS, berth__x_add(k, s->start, i));
}

static void lower_cross_entropy_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  values[0] = lower_cross_entropy_logit(k, state, i);
}

static void lower_cross_entropy_power(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const entropy *s = state;
  values[0] = berth__m_exp(k, berth__x_sub(k, lower_cross_entropy_logit(k, s, i), s->most));
}

static void lower_cross_entropy_larger(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b,
                                       berth__x *out) {
  (void)state;
  const berth__x is_b = berth__x_or(k, berth__x_lt(k, a[0], b[0]), berth__x_is_nan(k, b[0]));
  out[0] = berth__x_select(k, is_b, b[0], a[0]);
}

static berth__x lower_cross_entropy_place(berth__kernel *k, const void *state, berth__x i) {
  const entropy *s = state;
  return berth__l_place_flat(k, &s->l->call->out[0], berth__x_add(k, s->start, i));
}

static void lower_cross_entropy_write(berth__kernel *k, const void *state, berth__x i, berth__x place) {
  const entropy *s = state;
  const berth__x zero = berth__x_f32(k, 0), one = berth__x_f32(k, 1);
  const berth__x p =
      berth__x_div(k, berth__m_exp(k, berth__x_sub(k, lower_cross_entropy_logit(k, s, i), s->most)), s->sum);
  const berth__x less = berth__x_select(k, berth__x_eq(k, i, s->label), one, zero);
  const berth__x slope = berth__x_mul(k, berth__x_sub(k, p, less), s->dy);
  berth__l_store(s->l, k, 0, place, berth__x_select(k, s->counts, slope, zero));
}

/* The row's label, clamped; and whether it counts. Rows past the last one use the last one. */
static void lower_cross_entropy_label(berth__kernel *k, entropy *s, int64_t rows) {
  const int64_t ignored = s->l->call->attrs[BERTH__CROSS_ENTROPY_IGNORED].i;
  s->row = berth__x_min(k, s->row, berth__x_i32(k, rows - 1));
  const berth__x loaded = berth__l_load(s->l, k, BERTH__CROSS_ENTROPY_LABELS, s->row);
  const berth__x given = berth__x_convert(k, BERTH__NUM_I32, loaded);
  const berth__x last = berth__x_i32(k, s->length - 1), zero = berth__x_i32(k, 0);
  s->counts = berth__x_ne(k, given, berth__x_i32(k, ignored < INT32_MIN || ignored > INT32_MAX ? INT32_MIN : ignored));
  /* Keep this order: ptxas 13.0 takes max(min(x, n), 0) == n for true if x is n - 1. */
  s->label = berth__x_min(k, berth__x_max(k, given, zero), last);
}

static void lower_cross_entropy_sum(berth__kernel *k, entropy *s, berth__l_rows *rows) {
  berth__l_fold fold = {.n = 1,
                        .start = {berth__x_f32(k, -INFINITY)},
                        .element = lower_cross_entropy_element,
                        .join = lower_cross_entropy_larger,
                        .state = s};
  berth__l_rows_fold(k, rows, &fold, &s->most);
  fold = (berth__l_fold){.n = 1,
                         .start = {berth__x_f32(k, 0)},
                         .is_sum = true,
                         .element = lower_cross_entropy_power,
                         .join = berth__l_join_sums,
                         .state = s};
  berth__l_rows_fold(k, rows, &fold, &s->sum);
}

static berth__kernel *lower_cross_entropy_begin(berth__lowering *l, entropy *s, berth__l_rows *rows) {
  const berth_tensor *logits = &l->call->in[BERTH__CROSS_ENTROPY_LOGITS];
  const int64_t count = berth__count(&l->call->in[BERTH__CROSS_ENTROPY_LABELS]);
  berth__kernel *k = berth__l_begin(l, NULL);
  *s = (entropy){.l = l, .length = logits->dim[logits->rank - 1]};
  if (k == NULL) return NULL;
  *rows = berth__l_rows_of(l, k, count, s->length, true);
  s->row = rows->row;
  s->start = berth__x_affine(k, rows->row, s->length, 0);
  lower_cross_entropy_sum(k, s, rows);
  lower_cross_entropy_label(k, s, count);
  return k;
}

/* Without classes there is no right answer: 0, as if all labels were ignored. */
static berth_status lower_cross_entropy_nothing(berth__lowering *l, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x i = berth__l_each(l, k, berth__count(&l->call->out[0]));
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], i), berth__x_f32(k, 0));
  return berth__l_end(l, k, err);
}

berth_status berth__lower_cross_entropy(berth__lowering *l, berth_error *err) {
  entropy s;
  berth__l_rows rows;
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  if (berth__count(&l->call->in[BERTH__CROSS_ENTROPY_LOGITS]) == 0) return lower_cross_entropy_nothing(l, err);
  berth__kernel *k = lower_cross_entropy_begin(l, &s, &rows);
  if (k == NULL) return berth__l_end(l, k, err);
  const berth__x first = berth__x_affine(k, s.row, s.length, 0);
  const berth__x own = berth__l_load(l, k, BERTH__CROSS_ENTROPY_LOGITS, berth__x_add(k, first, s.label));
  const berth__x loss = berth__x_add(k, berth__m_log(k, s.sum), berth__x_sub(k, s.most, own));
  berth__l_rows_once(k, &rows);
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], rows.row),
                 berth__x_select(k, s.counts, loss, berth__x_f32(k, 0)));
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_cross_entropy_grad(berth__lowering *l, berth_error *err) {
  entropy s;
  berth__l_rows rows;
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  berth__kernel *k = lower_cross_entropy_begin(l, &s, &rows);
  if (k == NULL) return berth__l_end(l, k, err);
  s.dy = berth__l_load(l, k, BERTH__CROSS_ENTROPY_DY, s.row);
  const berth__l_rows_writer writer = {
      .is_dense = true, .place = lower_cross_entropy_place, .write = lower_cross_entropy_write, .state = &s};
  berth__l_rows_write(l, k, &rows, &writer);
  return berth__l_end(l, k, err);
}
