#include "device/cpu/kernels/lines.h"

#include "device/cpu/kernels/turn.h"
#include "ops/elementwise.h"

#define ITEM 16384        /* elements */
#define MOST_IN 3         /* operands */
#define LINE_BYTES 64     /* of a transposed operand, read together */
#define TURNED_BYTES 8192 /* of a rectangle of one operand */
#define LEAST_ROWS 4
#define TOGETHER 512 /* elements gathered at a time */

/* The call's axes, joined; tensor 0 is the result. Rectangles are rows along the axis `turned` and columns along the
 * last. */
typedef struct turned {
  berth__runs runs; /* only its shape is used */
  uint32_t axis;
  bool is_turned[1 + MOST_IN];
  int64_t rows_each, columns_each, columns_at_once; /* per item; per rectangle */
  int64_t row_pieces, column_pieces, items;
} turned;

static int64_t lines_pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }
static int64_t lines_least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool lines_is_stepped(const berth__runs *r, uint32_t k) {
  const int64_t step = r->stride[k][r->rank - 1];
  return step != 0 && step != 1;
}

/* The axis along which an operand is contiguous if it is not so along the last; the last one: there is none. */
static uint32_t lines_turned_axis(const berth__runs *r) {
  const uint32_t last = r->rank - 1;
  for (uint32_t k = 1; k < r->n; k++)
    for (uint32_t axis = 0; axis < last && lines_is_stepped(r, k); axis++)
      if (r->stride[k][axis] == 1 && r->dim[axis] >= LEAST_ROWS) return axis;
  return last;
}

/* False: no operand is transposed. */
static bool lines_plan(const berth_op_call *call, turned *t) {
  berth__runs *r = &t->runs;
  berth_op_call nothing = *call;
  int64_t largest = 1;
  nothing.begin = nothing.end = 0;
  berth__runs_of_call(r, &nothing);
  const uint32_t last = r->rank - 1;
  t->axis = lines_turned_axis(r);
  if (t->axis == last) return false;
  for (uint32_t k = 1; k < r->n; k++) {
    const int64_t size = (int64_t)berth_type_size(call->in[k - 1].type);
    t->is_turned[k] = lines_is_stepped(r, k) && r->stride[k][t->axis] == 1;
    if (t->is_turned[k] && size > largest) largest = size;
  }
  t->rows_each = lines_least(r->dim[t->axis], LINE_BYTES / largest);
  t->columns_at_once = TURNED_BYTES / LINE_BYTES;
  t->columns_each = lines_pieces(ITEM / t->rows_each, t->columns_at_once) * t->columns_at_once;
  t->row_pieces = lines_pieces(r->dim[t->axis], t->rows_each);
  t->column_pieces = lines_pieces(r->dim[last], t->columns_each);
  t->items = t->row_pieces * t->column_pieces;
  for (uint32_t axis = 0; axis < last; axis++)
    if (axis != t->axis) t->items *= r->dim[axis];
  return true;
}

int64_t lines_items(const berth_op_call *call) {
  turned t;
  return lines_plan(call, &t) ? t.items : lines_pieces(berth__count(&call->out[0]), ITEM);
}

static char *lines_at(const berth_tensor *tensor, int64_t index) {
  return (char *)tensor->data + index * (int64_t)berth_type_size(tensor->type);
}

/* A rectangle whose first element is index[k] of each tensor. */
static void lines_do_rectangle(const berth_op_call *call, const turned *t, const int64_t *index, int64_t rows,
                               int64_t columns, line_run run, const void *state) {
  const berth__runs *r = &t->runs;
  const uint32_t last = r->rank - 1;
  _Alignas(64) char turned_into[MOST_IN][TURNED_BYTES];
  int64_t step[MOST_IN];
  for (uint32_t k = 1; k < r->n; k++) {
    const berth_tensor *in = &call->in[k - 1];
    step[k - 1] = t->is_turned[k] ? 1 : r->stride[k][last];
    if (t->is_turned[k])
      turn_block(turned_into[k - 1], columns, lines_at(in, index[k]), r->stride[k][last], rows, columns,
                 berth_type_size(in->type));
  }
  for (int64_t row = 0; row < rows; row++) {
    const void *in[MOST_IN] = {NULL};
    for (uint32_t k = 1; k < r->n; k++) {
      const berth_tensor *from = &call->in[k - 1];
      in[k - 1] = t->is_turned[k] ? turned_into[k - 1] + row * columns * (int64_t)berth_type_size(from->type)
                                  : lines_at(from, index[k] + row * r->stride[k][t->axis]);
    }
    run(state, lines_at(&call->out[0], index[0] + row * r->stride[0][t->axis]), in, step, columns);
  }
}

static void lines_do_item(const berth_op_call *call, const turned *t, int64_t item, line_run run, const void *state) {
  const berth__runs *r = &t->runs;
  const uint32_t last = r->rank - 1;
  const int64_t first = item % t->column_pieces * t->columns_each;
  const int64_t end = lines_least(first + t->columns_each, r->dim[last]);
  const int64_t row = item / t->column_pieces % t->row_pieces * t->rows_each;
  const int64_t rows = lines_least(t->rows_each, r->dim[t->axis] - row);
  int64_t start[1 + MOST_IN], outer = item / t->column_pieces / t->row_pieces;
  for (uint32_t k = 0; k < r->n; k++) start[k] = row * r->stride[k][t->axis];
  for (uint32_t axis = last; axis-- > 0;) {
    if (axis == t->axis) continue;
    for (uint32_t k = 0; k < r->n; k++) start[k] += outer % r->dim[axis] * r->stride[k][axis];
    outer /= r->dim[axis];
  }
  for (int64_t column = first; column < end; column += t->columns_at_once) {
    int64_t index[1 + MOST_IN];
    for (uint32_t k = 0; k < r->n; k++) index[k] = start[k] + column * r->stride[k][last];
    lines_do_rectangle(call, t, index, rows, lines_least(t->columns_at_once, end - column), run, state);
  }
}

/* A line of the result of any length. Strided operands are gathered first, part by part, since the loops have no
 * vectors for strides. */
static void lines_do_line(const berth_op_call *call, void *out, const void *const *from, const int64_t *step, int64_t n,
                          line_run run, const void *state) {
  const size_t out_size = berth_type_size(call->out[0].type);
  _Alignas(64) char together[MOST_IN][TOGETHER * 8];
  bool any = false;
  for (uint32_t k = 0; k < call->n_in; k++) any = any || (step[k] != 0 && step[k] != 1);
  if (!any) {
    run(state, out, from, step, n);
    return;
  }
  for (int64_t at = 0; at < n; at += TOGETHER) {
    const int64_t count = lines_least(n - at, TOGETHER);
    const void *in[MOST_IN] = {NULL};
    int64_t steps[MOST_IN];
    for (uint32_t k = 0; k < call->n_in; k++) {
      const size_t size = berth_type_size(call->in[k].type);
      in[k] = (const char *)from[k] + at * step[k] * (int64_t)size;
      steps[k] = step[k];
      if (step[k] == 0 || step[k] == 1) continue;
      turn_together(together[k], in[k], step[k], count, size);
      in[k] = together[k];
      steps[k] = 1;
    }
    run(state, (char *)out + (size_t)at * out_size, in, steps, count);
  }
}

void lines_do(const berth_op_call *call, line_run run, const void *state) {
  turned t;
  if (lines_plan(call, &t)) {
    for (int64_t item = call->begin; item < call->end; item++) lines_do_item(call, &t, item, run, state);
    return;
  }
  const int64_t count = berth__count(&call->out[0]);
  berth_op_call elements = *call;
  elements.begin = call->begin * ITEM;
  elements.end = lines_least(call->end * ITEM, count);
  berth__runs runs;
  berth__runs_of_call(&runs, &elements);
  while (berth__runs_next(&runs)) {
    const void *in[MOST_IN] = {NULL};
    for (uint32_t k = 0; k < call->n_in; k++) in[k] = lines_at(&call->in[k], runs.index[1 + k]);
    lines_do_line(call, lines_at(&call->out[0], runs.index[0]), in, runs.step + 1, runs.count, run, state);
  }
}
