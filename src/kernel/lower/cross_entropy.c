/* cross_entropy and its gradient. A thread goes through its elements of a row once, with their maximum so far and the
 * sum of exponentials relative to it (online softmax); the threads of a row join theirs. The gradient gets both from
 * the losses, and so reads the logits once too. Without losses, or for a row whose loss tells too little, it sums
 * first. Elements are written after all threads of the row have read others', each by a thread that reads it again, so
 * the gradient may overwrite the logits. A label out of range is replaced by the nearest valid one. */
#include <float.h>
#include <math.h>

#include "kernel/lower/math.h"
#include "kernel/lower/rows.h"
#include "ops/cross_entropy.h"

typedef struct entropy {
  const berth__lowering *l;
  int64_t length;
  berth__x row, start;    /* position of the row's first element */
  berth__x label, counts; /* an i32; a bool */
  /* For the gradient: the probability of a logit x is exp(x - offset - rest). */
  berth__x dy, offset, rest;
} entropy;

static berth__x lower_cross_entropy_logit(berth__kernel *k, const entropy *s, berth__x i) {
  return berth__l_load(s->l, k, BERTH__CROSS_ENTROPY_LOGITS, berth__x_add(k, s->start, i));
}

/* The device's own exp, which may not propagate NaN. */
static berth__x lower_cross_entropy_exp(berth__kernel *k, berth__x x) { return berth__x1(k, BERTH__INST_exp, x); }

static berth__x lower_cross_entropy_or_nan(berth__kernel *k, berth__x x, berth__x y) {
  return berth__x_select(k, berth__x_is_nan(k, x), x, y);
}

/* Joins elements to a maximum and a sum. None of the differences is above 0, so that their sum is NaN only if one is:
 * for an element that is NaN or infinity. */
static void lower_cross_entropy_take(berth__kernel *k, const void *state, const berth__x *i, uint32_t n,
                                     const berth__x *before, berth__x *out) {
  berth__x x[BERTH__ROWS_AHEAD], most = before[0], differences = BERTH__X_NONE, sum = BERTH__X_NONE;
  for (uint32_t e = 0; e < n; e++) x[e] = lower_cross_entropy_logit(k, state, i[e]);
  for (uint32_t e = 0; e < n; e++) most = berth__x_max(k, most, x[e]);
  for (uint32_t e = 0; e < n; e++) {
    const berth__x below = berth__x_sub(k, x[e], most), power = lower_cross_entropy_exp(k, below);
    differences = e == 0 ? below : berth__x_add(k, differences, below);
    sum = e == 0 ? power : berth__x_add(k, sum, power);
  }
  const berth__x less = lower_cross_entropy_exp(k, berth__x_sub(k, before[0], most));
  out[0] = most;
  out[1] = lower_cross_entropy_or_nan(k, differences, berth__m_fma(k, before[1], less, sum));
}

static void lower_cross_entropy_join(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b,
                                     berth__x *out) {
  (void)state;
  out[0] = berth__x_max(k, a[0], b[0]);
  const berth__x of_a = lower_cross_entropy_exp(k, berth__x_sub(k, a[0], out[0]));
  const berth__x of_b = lower_cross_entropy_exp(k, berth__x_sub(k, b[0], out[0]));
  out[1] = berth__m_fma(k, a[1], of_a, berth__x_mul(k, b[1], of_b));
}

static berth__x lower_cross_entropy_place(berth__kernel *k, const void *state, berth__x i) {
  const entropy *s = state;
  return berth__l_place_flat(k, &s->l->call->out[0], berth__x_add(k, s->start, i));
}

static berth__x lower_cross_entropy_slope(berth__kernel *k, const void *state, berth__x i) {
  const entropy *s = state;
  const berth__x zero = berth__x_f32(k, 0), one = berth__x_f32(k, 1);
  const berth__x above = berth__x_sub(k, lower_cross_entropy_logit(k, s, i), s->offset);
  const berth__x power = berth__x_sub(k, above, s->rest);
  const berth__x p = lower_cross_entropy_or_nan(k, power, lower_cross_entropy_exp(k, power));
  const berth__x less = berth__x_select(k, berth__x_eq(k, i, s->label), one, zero);
  return berth__x_select(k, s->counts, berth__x_mul(k, berth__x_sub(k, p, less), s->dy), zero);
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

/* The logit at the row's label. */
static berth__x lower_cross_entropy_own(berth__kernel *k, const entropy *s) {
  const berth__x first = berth__x_affine(k, s->row, s->length, 0);
  return berth__l_load(s->l, k, BERTH__CROSS_ENTROPY_LOGITS, berth__x_add(k, first, s->label));
}

/* The row's maximum, and the log of its sum of exponentials relative to that. */
static void lower_cross_entropy_sum(berth__kernel *k, const entropy *s, berth__l_rows *rows, berth__x *most,
                                    berth__x *log_sum) {
  const berth__l_fold fold = {.n = 2,
                              .start = {berth__x_f32(k, -FLT_MAX), berth__x_f32(k, 0)},
                              .is_sum = true,
                              .take = lower_cross_entropy_take,
                              .join = lower_cross_entropy_join,
                              .state = s};
  berth__x values[BERTH__FOLD_VALUES];
  if (k == NULL) return;
  berth__l_rows_fold(k, rows, &fold, values);
  *most = values[0];
  *log_sum = berth__m_log(k, values[1]);
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
  berth__x most, log_sum;
  lower_cross_entropy_sum(k, &s, &rows, &most, &log_sum);
  const berth__x loss = berth__x_add(k, log_sum, berth__x_sub(k, most, lower_cross_entropy_own(k, &s)));
  berth__l_rows_once(k, &rows);
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], rows.row),
                 berth__x_select(k, s.counts, loss, berth__x_f32(k, 0)));
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

/* Finds offset and rest, after which all threads have read what others overwrite. Rows that need no sum have no
 * elements in the loops of the fold; barriers in a branch would have to be reached by all threads. */
static void lower_cross_entropy_known(berth__kernel *k, entropy *s, berth__l_rows *rows) {
  const berth__x end = rows->end;
  if (!berth__l_has(s->l, BERTH__CROSS_ENTROPY_LOSSES)) {
    lower_cross_entropy_sum(k, s, rows, &s->offset, &s->rest);
    return;
  }
  const berth__x own = lower_cross_entropy_own(k, s),
                 loss = berth__l_load(s->l, k, BERTH__CROSS_ENTROPY_LOSSES, s->row);
  const berth__x is_known = berth__x_le(k, loss, berth__x_f32(k, BERTH__CROSS_ENTROPY_KNOWN));
  rows->end = berth__x_select(k, is_known, berth__x_i32(k, 0), end);
  lower_cross_entropy_sum(k, s, rows, &s->offset, &s->rest);
  rows->end = end;
  s->offset = berth__x_select(k, is_known, own, s->offset);
  s->rest = berth__x_select(k, is_known, loss, s->rest);
  if (rows->lanes > 1) berth__x_barrier(k); /* the fold's do not wait for the load of `own` */
}

berth_status berth__lower_cross_entropy_grad(berth__lowering *l, berth_error *err) {
  entropy s;
  berth__l_rows rows;
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  berth__kernel *k = lower_cross_entropy_begin(l, &s, &rows);
  if (k == NULL) return berth__l_end(l, k, err);
  lower_cross_entropy_known(k, &s, &rows);
  s.dy = berth__l_load(l, k, BERTH__CROSS_ENTROPY_DY, s.row);
  const berth__l_rows_writer writer = {
      .is_dense = true, .place = lower_cross_entropy_place, .value = lower_cross_entropy_slope, .state = &s};
  berth__l_rows_write(l, k, &rows, &writer);
  return berth__l_end(l, k, err);
}
