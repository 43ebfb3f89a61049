/* cumsum and cumprod across lines: neighbouring columns advance along the axis together, each with its own state, which
 * is f64 for floats and 64 bits that wrap for integers, as in the reference kernel. Along lines every element depends
 * on the one before it, and the reference kernel is as fast. */
#include "device/cpu/kernels/vec.h"
#include "ops/elementwise.h"
#include "ops/operand.h"

#define COLUMNS 64    /* per item */
#define FEW_COLUMNS 4 /* too few to vectorise */

/* `rows` rows of n columns, `step` elements apart. */
typedef void (*running)(void *out, const void *x, int64_t step, int64_t rows, int64_t n, bool exclusive);

#define RUNNING(name, element, state_type, first, joined)                                                      \
  static void cumsum_##name(void *out, const void *x, int64_t step, int64_t rows, int64_t n, bool exclusive) { \
    const element *from = x;                                                                                   \
    element *to = out;                                                                                         \
    state_type state[COLUMNS];                                                                                 \
    for (int64_t i = 0; i < n; i++) state[i] = (first);                                                        \
    for (int64_t row = 0; row < rows; row++, from += step, to += step)                                         \
      for (int64_t i = 0; i < n; i++) {                                                                        \
        const state_type before = state[i], y = (state_type)from[i];                                           \
        state[i] = (joined);                                                                                   \
        to[i] = (element)(exclusive ? before : state[i]);                                                      \
      }                                                                                                        \
  }
RUNNING(sum_f32, float, double, 0, before + y)
RUNNING(sum_f64, double, double, 0, before + y)
RUNNING(sum_i32, int32_t, uint64_t, 0, before + y)
RUNNING(sum_i64, int64_t, uint64_t, 0, before + y)
RUNNING(product_f32, float, double, 1, before *y)
RUNNING(product_f64, double, double, 1, before *y)
RUNNING(product_i32, int32_t, uint64_t, 1, before *y)
RUNNING(product_i64, int64_t, uint64_t, 1, before *y)

static running cumsum_running(const berth_op_call *call) {
  const bool multiplies = berth__call_code(call) == BERTH__OP_cumprod;
  switch (call->in[BERTH__CUMSUM_X].type) {
    case BERTH_F32: return multiplies ? cumsum_product_f32 : cumsum_sum_f32;
    case BERTH_F64: return multiplies ? cumsum_product_f64 : cumsum_sum_f64;
    case BERTH_I32: return multiplies ? cumsum_product_i32 : cumsum_sum_i32;
    case BERTH_I64: return multiplies ? cumsum_product_i64 : cumsum_sum_i64;
    default: return NULL;
  }
}

static berth__lines cumsum_lines(const berth_op_call *call) {
  return berth__lines_of(&call->in[BERTH__CUMSUM_X], call->attrs[BERTH__CUMSUM_AXIS].i);
}

static bool cumsum_takes(const berth_op_call *call) {
  return !berth__call_has(call, BERTH__CUMSUM_AXIS_OPERAND) && cumsum_running(call) != NULL &&
         berth__is_contiguous(&call->in[BERTH__CUMSUM_X]) && cumsum_lines(call).inner >= FEW_COLUMNS;
}

static int64_t cumsum_kernel_items(const berth_op_call *call) {
  const berth__lines lines = cumsum_lines(call);
  return lines.outer * ((lines.inner + COLUMNS - 1) / COLUMNS);
}

static berth_status cumsum_run(const berth_op_call *call, berth_error *err) {
  const berth__lines lines = cumsum_lines(call);
  const running run = cumsum_running(call);
  const int64_t across = (lines.inner + COLUMNS - 1) / COLUMNS;
  const int64_t size = (int64_t)berth_type_size(call->in[BERTH__CUMSUM_X].type);
  const bool is_reverse = call->attrs[BERTH__CUMSUM_REVERSE].i != 0;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t column = item % across * COLUMNS, left = lines.inner - column;
    const int64_t row = item / across * lines.length + (is_reverse ? lines.length - 1 : 0);
    const int64_t at = (row * lines.inner + column) * size;
    run((char *)call->out[0].data + at, (const char *)call->in[BERTH__CUMSUM_X].data + at,
        is_reverse ? -lines.inner : lines.inner, lines.length, left < COLUMNS ? left : COLUMNS,
        call->attrs[BERTH__CUMSUM_EXCLUSIVE].i != 0);
  }
  return BERTH_OK;
}

#define ROW(op)                                                                                         \
  {                                                                                                     \
    .name = #op " across", .code = BERTH__OP_##op, .takes = cumsum_takes, .items = cumsum_kernel_items, \
    .run = cumsum_run                                                                                   \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_cumsum)[] = {
    ROW(cumsum),
    ROW(cumprod),
    {0},
};
