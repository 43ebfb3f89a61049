/* arg_max and arg_min: the best element of a line and, of equal ones, the first or the last. */
#include "kernel/lower/order.h"
#include "kernel/lower/rows.h"

typedef struct search {
  const berth__lowering *l;
  berth__lines lines;
  berth__x start;
  bool smallest, last;
} search;

enum {
  KEY,
  INDEX
};

static void lower_arg_load_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const search *s = state;
  const berth__x place = berth__x_add(k, s->start, berth__x_affine(k, i, s->lines.inner, 0));
  values[KEY] = berth__l_key(k, berth__l_load(s->l, k, 0, place), s->smallest, true);
  values[INDEX] = i;
}

static void lower_arg_join(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out) {
  const search *s = state;
  const berth__x is_better = berth__x_lt(k, a[KEY], b[KEY]), is_equal = berth__x_eq(k, a[KEY], b[KEY]);
  const berth__x comes = s->last ? berth__x_lt(k, a[INDEX], b[INDEX]) : berth__x_lt(k, b[INDEX], a[INDEX]);
  const berth__x wins = berth__x_or(k, is_better, berth__x_and(k, is_equal, comes));
  for (int v = KEY; v <= INDEX; v++) out[v] = berth__x_select(k, wins, b[v], a[v]);
}

berth_status berth__lower_arg(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  search s = {.l = l,
              .lines = berth__lines_of(&call->in[0], call->attrs[BERTH__ARG_AXIS].i),
              .smallest = l->op->code == BERTH__OP_arg_min,
              .last = call->attrs[BERTH__ARG_SELECT_LAST].i != 0};
  const int64_t count = s.lines.outer * s.lines.inner;
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__l_rows rows = berth__l_rows_of(l, k, count, s.lines.length, s.lines.inner == 1);
  s.start = berth__l_line_start(k, &s.lines, rows.row);
  const berth__x none = berth__x_i32(k, s.last ? -1 : INT32_MAX); /* every element is preferred to it */
  const berth__l_fold fold = {.n = 2,
                              .start = {berth__x_i32(k, INT32_MIN), none},
                              .element = lower_arg_load_element,
                              .join = lower_arg_join,
                              .state = &s};
  berth__x best[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, &rows, &fold, best);
  berth__l_rows_once(k, &rows);
  berth__l_store(l, k, 0, berth__l_place_flat(k, &call->out[0], rows.row), best[INDEX]);
  return berth__l_end(l, k, err);
}
