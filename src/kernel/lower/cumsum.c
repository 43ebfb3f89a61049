/* cumsum, cumprod. Each thread of a line has a piece of it: the threads add up (or multiply) their pieces, combine the
 * results of the pieces before theirs, and go over their pieces again. A thread reads and writes only its own piece, so
 * the result may overwrite the operand. */
#include "kernel/lower/rows.h"

typedef struct scan {
  const berth__lowering *l;
  berth__x start, length, step; /* of the line: i32, element i is at start + i * step */
  berth__x from, to;            /* the piece of this thread */
} scan;

static bool lower_cumsum_multiplies(const scan *s) { return s->l->op->code == BERTH__OP_cumprod; }

/* The neutral element: 0, or 1 for products. */
static berth__x lower_cumsum_none_of(berth__kernel *k, const scan *s) {
  const berth__x none = berth__x_i32(k, lower_cumsum_multiplies(s) ? 1 : 0);
  return berth__x_convert(k, berth__l_number(s->l->call->in[BERTH__CUMSUM_X].type), none);
}

static berth__x lower_cumsum_join(berth__kernel *k, const scan *s, berth__x a, berth__x b) {
  return lower_cumsum_multiplies(s) ? berth__x_mul(k, a, b) : berth__x_add(k, a, b);
}

static berth__x lower_cumsum_place_of(berth__kernel *k, const scan *s, berth__x i) {
  if (s->l->call->attrs[BERTH__CUMSUM_REVERSE].i != 0) i = berth__x_sub(k, berth__x_affine(k, s->length, 1, -1), i);
  return berth__x_add(k, s->start, berth__x_mul(k, i, s->step));
}

static berth__x lower_cumsum_add_up(berth__kernel *k, const scan *s) {
  const berth__x sum = berth__x_variable(k, lower_cumsum_none_of(k, s));
  const berth__x i = berth__x_loop(k, s->from, s->to, 1);
  const berth__x x = berth__l_load(s->l, k, BERTH__CUMSUM_X, lower_cumsum_place_of(k, s, i));
  berth__x_set(k, sum, lower_cumsum_join(k, s, berth__x_get(k, sum), x));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

static void write_sums(berth__kernel *k, const scan *s, berth__x before) {
  const berth__x sum = berth__x_variable(k, before), i = berth__x_loop(k, s->from, s->to, 1),
                 place = lower_cumsum_place_of(k, s, i);
  const berth__x held = berth__x_get(k, sum),
                 next = lower_cumsum_join(k, s, held, berth__l_load(s->l, k, BERTH__CUMSUM_X, place));
  berth__x_set(k, sum, next);
  const bool is_exclusive = s->l->call->attrs[BERTH__CUMSUM_EXCLUSIVE].i != 0;
  berth__l_store(s->l, k, 0, berth__l_place_flat(k, &s->l->call->out[0], place), is_exclusive ? held : next);
  berth__x_end(k);
}

/* Publishes every thread's value in shared memory. */
static void show(berth__kernel *k, uint32_t array, berth__x value, bool is_first) {
  if (!is_first) berth__x_barrier(k); /* the previous values have been read */
  berth__x_shared_store(k, array, berth__x_thread(k), value);
  berth__x_barrier(k);
}

/* Combines the values of the lanes before this one: in each round, a lane reads the value of a lane at twice the
 * previous distance. */
static berth__x sum_before(berth__kernel *k, const scan *s, const berth__l_rows *rows, berth__x mine) {
  const uint32_t array = berth__kernel_shared(k, berth__l_number(s->l->call->in[BERTH__CUMSUM_X].type), k->group_size);
  const berth__x thread = berth__x_thread(k), sum = berth__x_variable(k, mine);
  const berth__x before = berth__x_variable(k, lower_cumsum_none_of(k, s));
  for (uint32_t back = 1; back < rows->lanes; back *= 2) {
    show(k, array, berth__x_get(k, sum), back == 1);
    berth__x_if(k, berth__x_le(k, berth__x_i32(k, back), rows->lane));
    const berth__x other = berth__x_shared_load(k, array, berth__x_affine(k, thread, 1, -(int64_t)back * rows->step));
    berth__x_set(k, sum, lower_cumsum_join(k, s, other, berth__x_get(k, sum)));
    berth__x_end(k);
  }
  show(k, array, berth__x_get(k, sum), false);
  berth__x_if(k, berth__x_lt(k, berth__x_i32(k, 0), rows->lane));
  berth__x_set(k, before, berth__x_shared_load(k, array, berth__x_affine(k, thread, 1, -(int64_t)rows->step)));
  berth__x_end(k);
  return berth__x_get(k, before);
}

static berth_status lower_cumsum_add_kernel(berth__lowering *l, const berth__lines *lines, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const berth__l_rows rows = berth__l_rows_of(l, k, lines->outer * lines->inner, lines->length, lines->inner == 1);
  const int64_t piece = (lines->length + rows.lanes - 1) / rows.lanes;
  scan s = {.l = l, .length = berth__x_i32(k, lines->length), .step = berth__x_i32(k, lines->inner)};
  s.start = berth__l_line_start(k, lines, rows.row);
  s.from = berth__x_affine(k, rows.lane, piece, 0);
  s.to = berth__x_min(k, berth__x_affine(k, s.from, 1, piece), rows.end);
  write_sums(k, &s,
             rows.lanes == 1 ? lower_cumsum_none_of(k, &s) : sum_before(k, &s, &rows, lower_cumsum_add_up(k, &s)));
  return berth__l_end(l, k, err);
}

/* The axis is data that only a run knows: one thread per line, for the largest possible number of lines. */
static berth_status add_kernel_for_any_axis(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__CUMSUM_X];
  int64_t most = 0;
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    const berth__lines lines = berth__lines_of(x, axis);
    most = lines.outer * lines.inner > most ? lines.outer * lines.inner : most;
  }
  berth__kernel *k = berth__l_begin(l, "along any axis");
  const berth__x line = berth__l_each(l, k, most);
  const berth__x given = berth__l_load(l, k, BERTH__CUMSUM_AXIS_OPERAND, berth__x_i32(k, 0)),
                 rank = berth__x_i32(k, x->rank);
  const berth__x is_negative = berth__x_lt(k, given, berth__x_i32(k, 0));
  const berth__x axis = berth__x_select(k, is_negative, berth__x_add(k, given, rank), given);
  berth__x length = berth__x_i32(k, 0), inner = berth__x_i32(k, 1), count = length;
  for (uint32_t i = 0; i < x->rank; i++) {
    const berth__lines lines = berth__lines_of(x, i);
    const berth__x is_it = berth__x_eq(k, axis, berth__x_i32(k, i));
    length = berth__x_select(k, is_it, berth__x_i32(k, lines.length), length);
    inner = berth__x_select(k, is_it, berth__x_i32(k, lines.inner), inner);
    count = berth__x_select(k, is_it, berth__x_i32(k, lines.outer * lines.inner), count);
  }
  berth__x_if(k, berth__x_lt(k, line, count));
  scan s = {.l = l, .length = length, .step = inner, .from = berth__x_i32(k, 0), .to = length};
  s.start = berth__x_add(k, berth__x_mul(k, berth__x_div(k, line, inner), berth__x_mul(k, length, inner)),
                         berth__x_rem(k, line, inner));
  write_sums(k, &s, lower_cumsum_none_of(k, &s));
  return berth__l_end(l, k, err);
}

berth_status berth__lower_cumsum(berth__lowering *l, berth_error *err) {
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  if (berth__l_has(l, BERTH__CUMSUM_AXIS_OPERAND)) return add_kernel_for_any_axis(l, err);
  const berth__lines lines = berth__lines_of(&l->call->in[BERTH__CUMSUM_X], l->call->attrs[BERTH__CUMSUM_AXIS].i);
  return lower_cumsum_add_kernel(l, &lines, err);
}
