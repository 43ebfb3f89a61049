/* arg_max and arg_min of f32. Along the last axis, the extreme is found first and its position after that. Along
 * another axis, vectors hold neighbouring lines. */
#include "device/cpu/kernels/vec.h"
#include "ops/elementwise.h"

#define ITEM 16384 /* elements per work item */
#define COLUMNS (4 * VF_LANES)
#define LONGEST (1 << 24) /* positions are counted in f32 */

static berth__lines arg_kernel_lines_of(const berth_op_call *call) {
  return berth__lines_of(&call->in[0], call->attrs[BERTH__ARG_AXIS].i);
}

static bool arg_kernel_takes(const berth_op_call *call) {
  return call->in[0].type == BERTH_F32 && call->attrs[BERTH__ARG_SELECT_LAST].i == 0 &&
         arg_kernel_lines_of(call).length < LONGEST;
}

/* arg_min is arg_max of the negated elements. */
static inline vf turned(vf x, bool smallest) {
  return smallest ? vf_from_bits(vi_xor(vf_bits(x), vi_set1(INT32_MIN))) : x;
}

/* ---- Along the last axis -------------------------------------------------------------------------------------- */

/* The first largest element, or the first NaN. */
static int64_t arg_kernel_find(const float *x, int64_t n, bool smallest) {
  vf most = vf_set1(-INFINITY), not_a_number = vf_zero();
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const vf value = turned(vf_load_else(x + i, vf_tail(n - i), vf_set1(x[0])), smallest);
    not_a_number = vf_pick_nan(value, vf_set1(1.0f), not_a_number);
    most = vf_max(value, most);
  }
  int64_t at = 0;
  if (vf_most(not_a_number) > 0) {
    while (!isnan(x[at])) at++;
    return at;
  }
  const float extreme = smallest ? -vf_most(most) : vf_most(most);
  while (x[at] != extreme) at++;
  return at;
}

/* ---- Along another axis --------------------------------------------------------------------------------------- */

static void find_lanes(int64_t *out, const float *x, int64_t length, int64_t step, int64_t lanes, bool smallest) {
  vf best = turned(vf_load_n(x, lanes), smallest), place = vf_zero();
  float places[VF_LANES];
  for (int64_t k = 1; k < length; k++) {
    const vf value = turned(vf_load_n(x + k * step, lanes), smallest), here = vf_set1((float)k);
    const vf newer = vf_pick_nan(value, here, vf_pick_lt(best, value, here, place));
    const vf larger = vf_pick_nan(value, value, vf_pick_lt(best, value, value, best));
    place = vf_pick_nan(best, place, newer); /* the first NaN stays */
    best = vf_pick_nan(best, best, larger);
  }
  vf_store(places, place);
  for (int64_t i = 0; i < lanes; i++) out[i] = (int64_t)places[i];
}

/* ---- Items ---------------------------------------------------------------------------------------------------- */

static int64_t arg_kernel_lines_each(const berth__lines *lines) {
  return lines->length < ITEM ? ITEM / lines->length : 1;
}
static int64_t arg_kernel_pieces_across(const berth__lines *lines) { return (lines->inner + COLUMNS - 1) / COLUMNS; }

static int64_t arg_kernel_items(const berth_op_call *call) {
  const berth__lines lines = arg_kernel_lines_of(call);
  if (lines.inner > 1) return lines.outer * arg_kernel_pieces_across(&lines);
  return (lines.outer + arg_kernel_lines_each(&lines) - 1) / arg_kernel_lines_each(&lines);
}

static void run_columns(const berth_op_call *call, const berth__lines *lines, int64_t item, bool smallest) {
  const int64_t across = arg_kernel_pieces_across(lines), outer = item / across;
  const float *x = (const float *)call->in[0].data + outer * lines->length * lines->inner;
  int64_t *out = (int64_t *)call->out[0].data + outer * lines->inner, column = item % across * COLUMNS;
  const int64_t end = column + COLUMNS < lines->inner ? column + COLUMNS : lines->inner;
  for (; column < end; column += VF_LANES)
    find_lanes(out + column, x + column, lines->length, lines->inner, vf_tail(end - column), smallest);
}

static berth_status arg_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth__lines lines = arg_kernel_lines_of(call);
  const bool smallest = berth__call_code(call) == BERTH__OP_arg_min;
  const int64_t each = arg_kernel_lines_each(&lines);
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    if (lines.inner > 1) {
      run_columns(call, &lines, item, smallest);
      continue;
    }
    for (int64_t line = item * each; line < lines.outer && line < (item + 1) * each; line++)
      ((int64_t *)call->out[0].data)[line] =
          arg_kernel_find((const float *)call->in[0].data + line * lines.length, lines.length, smallest);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_arg)[] = {
    {.name = "arg_max",
     .code = BERTH__OP_arg_max,
     .takes = arg_kernel_takes,
     .items = arg_kernel_items,
     .run = arg_kernel_run},
    {.name = "arg_min",
     .code = BERTH__OP_arg_min,
     .takes = arg_kernel_takes,
     .items = arg_kernel_items,
     .run = arg_kernel_run},
    {0},
};
