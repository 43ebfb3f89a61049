/* softmax and log_softmax of f64, as where a class is drawn by its chance: a line at a time, in the result or, across
 * lines, in scratch. */
#include "device/cpu/kernels/math_f64.h"
#include "device/cpu/kernels/turn.h"
#include "ops/elementwise.h"

#define PARTS 8 /* maxima and sums that do not wait for each other */

static berth__lines softmax_f64_lines(const berth_op_call *call) {
  return berth__lines_of(&call->in[0], call->attrs[BERTH__SOFTMAX_AXIS].i);
}

static bool softmax_f64_takes(const berth_op_call *call) {
  return call->in[0].type == BERTH_F64 && softmax_f64_lines(call).length > 0;
}

static int64_t softmax_f64_items(const berth_op_call *call) {
  const berth__lines lines = softmax_f64_lines(call);
  return lines.outer * lines.inner;
}

static uint64_t softmax_f64_scratch(const berth_op_call *call) {
  const berth__lines lines = softmax_f64_lines(call);
  return lines.inner == 1 ? 0 : (uint64_t)lines.length * sizeof(double);
}

static double softmax_f64_largest(const double *x, int64_t n) {
  double most[PARTS];
  int64_t i = 0;
  for (int k = 0; k < PARTS; k++) most[k] = -INFINITY;
  for (; i + PARTS <= n; i += PARTS)
    for (int k = 0; k < PARTS; k++) most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
  for (; i < n; i++) most[0] = x[i] > most[0] ? x[i] : most[0];
  for (int k = 1; k < PARTS; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
  return most[0];
}

static double softmax_f64_sum(const double *x, int64_t n) {
  double sum[PARTS] = {0};
  int64_t i = 0;
  for (; i + PARTS <= n; i += PARTS)
    for (int k = 0; k < PARTS; k++) sum[k] += x[i + k];
  for (; i < n; i++) sum[0] += x[i];
  for (int k = 1; k < PARTS; k++) sum[0] += sum[k];
  return sum[0];
}

/* x and y may be the same line. */
static void softmax_f64_line(double *y, const double *x, int64_t n) {
  const double most = softmax_f64_largest(x, n);
  for (int64_t i = 0; i < n; i++) y[i] = f64_exp(x[i] - most);
  const double scale = 1.0 / softmax_f64_sum(y, n);
  for (int64_t i = 0; i < n; i++) y[i] *= scale;
}

#define BLOCK 256
static void softmax_f64_log_line(double *y, const double *x, int64_t n) {
  const double most = softmax_f64_largest(x, n);
  double block[BLOCK], sum = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t count = n - at < BLOCK ? n - at : BLOCK;
    for (int64_t i = 0; i < count; i++) block[i] = f64_exp(x[at + i] - most);
    sum += softmax_f64_sum(block, count);
  }
  const double log_sum = log(sum);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] - most - log_sum;
}

static berth_status softmax_f64_run(const berth_op_call *call, berth_error *err) {
  const berth__lines lines = softmax_f64_lines(call);
  const bool logs = berth__call_code(call) == BERTH__OP_log_softmax;
  double *block = call->scratch;
  (void)err;
  for (int64_t line = call->begin; line < call->end; line++) {
    const int64_t start = berth__line_start(&lines, line);
    const double *x = (const double *)call->in[0].data + start;
    double *y = (double *)call->out[0].data + start;
    if (lines.inner == 1) {
      (logs ? softmax_f64_log_line : softmax_f64_line)(y, x, lines.length);
      continue;
    }
    turn_together(block, x, lines.inner, lines.length, sizeof *block);
    (logs ? softmax_f64_log_line : softmax_f64_line)(block, block, lines.length);
    for (int64_t i = 0; i < lines.length; i++) y[i * lines.inner] = block[i];
  }
  return BERTH_OK;
}

#define ROW(op)                                                                                            \
  {                                                                                                        \
    .name = #op " of f64", .code = BERTH__OP_##op, .takes = softmax_f64_takes, .items = softmax_f64_items, \
    .scratch = softmax_f64_scratch, .run = softmax_f64_run                                                 \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_softmax_f64)[] = {
    ROW(softmax),
    ROW(log_softmax),
    {0},
};
