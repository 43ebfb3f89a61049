/* softmax and log_softmax. Along the last axis a line is contiguous; along another axis, vectors hold neighbouring
 * lines. The maximum is subtracted first, so nothing overflows. */
#include "device/cpu/kernels/vec_math.h"
#include "ops/elementwise.h"

#define ITEM 8192  /* elements */
#define BLOCK 2048 /* elements summed in f32 */
#define COLUMNS (4 * VF_LANES)

static berth__lines softmax_kernel_lines_of(const berth_op_call *call) {
  return berth__lines_of(&call->in[0], call->attrs[BERTH__SOFTMAX_AXIS].i);
}

static bool softmax_kernel_takes(const berth_op_call *call) {
  return call->in[0].type == BERTH_F32 && softmax_kernel_lines_of(call).length > 0;
}

/* ---- Along the last axis -------------------------------------------------------------------------------------- */

static float softmax_kernel_largest(const float *x, int64_t n) {
  vf most[2] = {vf_set1(-INFINITY), vf_set1(-INFINITY)};
  int64_t i = 0;
  for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
    most[0] = vf_max(vf_load(x + i), most[0]);
    most[1] = vf_max(vf_load(x + i + VF_LANES), most[1]);
  }
  for (; i < n; i += VF_LANES) most[0] = vf_max(vf_load_else(x + i, vf_tail(n - i), most[0]), most[0]);
  return vf_most(vf_max(most[0], most[1]));
}

/* y = exp(x - most), and the sum of that; y NULL: only the sum. At most BLOCK elements. */
static float exp_block(float *y, const float *x, int64_t n, float most) {
  const vf offset = vf_set1(most), nothing = vf_set1(-INFINITY);
  vf sum[2] = {vf_zero(), vf_zero()};
  int64_t i = 0;
  for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
    const vf a = vf_exp_negative(vf_load(x + i) - offset), b = vf_exp_negative(vf_load(x + i + VF_LANES) - offset);
    if (y != NULL) {
      vf_store(y + i, a);
      vf_store(y + i + VF_LANES, b);
    }
    sum[0] += a;
    sum[1] += b;
  }
  for (; i < n; i += VF_LANES) {
    const vf a = vf_exp_negative(vf_load_else(x + i, vf_tail(n - i), nothing) - offset);
    if (y != NULL) vf_store_n(y + i, a, vf_tail(n - i));
    sum[0] += a;
  }
  return vf_sum(sum[0] + sum[1]);
}

static double exp_line(float *y, const float *x, int64_t n, float most) {
  double sum = 0;
  for (int64_t at = 0; at < n; at += BLOCK)
    sum += (double)exp_block(y != NULL ? y + at : NULL, x + at, n - at < BLOCK ? n - at : BLOCK, most);
  return sum;
}

static void scale_line(float *y, int64_t n, float by) {
  const vf factor = vf_set1(by);
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES) vf_store(y + i, vf_load(y + i) * factor);
  if (i < n) vf_store_n(y + i, vf_load_n(y + i, n - i) * factor, n - i);
}

static void lower_line(float *y, const float *x, int64_t n, float most, float log_sum) {
  const vf a = vf_set1(most), b = vf_set1(log_sum);
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t count = vf_tail(n - i);
    vf_store_n(y + i, vf_load_n(x + i, count) - a - b, count);
  }
}

#define TOGETHER 8 /* lines of one group: while one waits for its sum, the next proceeds */

static void softmax_group(float *y, const float *x, int64_t length, int64_t n_lines, bool logs) {
  float most[TOGETHER], of_sum[TOGETHER];
  for (int64_t k = 0; k < n_lines; k++) most[k] = softmax_kernel_largest(x + k * length, length);
  for (int64_t k = 0; k < n_lines; k++) {
    const double sum = exp_line(logs ? NULL : y + k * length, x + k * length, length, most[k]);
    of_sum[k] = (float)(logs ? log(sum) : 1.0 / sum);
  }
  for (int64_t k = 0; k < n_lines; k++) {
    if (logs)
      lower_line(y + k * length, x + k * length, length, most[k], of_sum[k]);
    else
      scale_line(y + k * length, length, of_sum[k]);
  }
}

/* ---- Along another axis --------------------------------------------------------------------------------------- */

/* VF_LANES lines, one per lane; `block` has the vectors of their elements. */
static inline void softmax_block(float *block, int64_t length, vf most, bool logs) {
  vf sum = vf_zero();
  for (int64_t k = 0; k < length; k++) {
    const vf value = vf_load(block + k * VF_LANES) - most, e = vf_exp_negative(value);
    vf_store(block + k * VF_LANES, logs ? value : e);
    sum += e;
  }
  const vf less = logs ? vf_log(sum) : vf_zero(), reciprocal = vf_set1(1.0f) / sum;
  for (int64_t k = 0; k < length; k++) {
    const vf value = vf_load(block + k * VF_LANES), scaled = value * reciprocal, lowered = value - less;
    vf_store(block + k * VF_LANES, logs ? lowered : scaled);
  }
}

/* Up to VF_LANES neighbouring lines with elements `step` apart; they are copied to `block`, because strides are often
 * such that all elements of a line map to the same cache sets. */
static void softmax_lanes(float *y, const float *x, int64_t length, int64_t step, int64_t lanes, bool logs,
                          float *block) {
  vf most = vf_set1(-INFINITY);
  for (int64_t k = 0; k < length; k++) {
    const vf value = vf_load_n(x + k * step, lanes);
    vf_store(block + k * VF_LANES, value);
    most = vf_max(value, most);
  }
  softmax_block(block, length, most, logs);
  for (int64_t k = 0; k < length; k++) vf_store_n(y + k * step, vf_load(block + k * VF_LANES), lanes);
}

/* Up to VF_LANES consecutive lines of at most VF_LANES elements. */
static void softmax_short(float *y, const float *x, int64_t length, int64_t n_lines, bool logs) {
  vf turned[VF_LANES], most = vf_set1(-INFINITY);
  _Alignas(64) float block[VF_LANES * VF_LANES];
  for (int64_t i = 0; i < VF_LANES; i++) turned[i] = i < n_lines ? vf_load_n(x + i * length, length) : vf_zero();
  vf_transpose(turned);
  for (int64_t k = 0; k < length; k++) {
    vf_store(block + k * VF_LANES, turned[k]);
    most = vf_max(turned[k], most);
  }
  softmax_block(block, length, most, logs);
  for (int64_t k = 0; k < length; k++) turned[k] = vf_load(block + k * VF_LANES);
  vf_transpose(turned);
  for (int64_t i = 0; i < n_lines; i++) vf_store_n(y + i * length, turned[i], length);
}

static void softmax_columns(float *y, const float *x, const berth__lines *lines, int64_t column, bool logs,
                            float *block) {
  const int64_t left = lines->inner - column, end = column + (left < COLUMNS ? left : COLUMNS);
  for (; column < end; column += VF_LANES)
    softmax_lanes(y + column, x + column, lines->length, lines->inner, vf_tail(end - column), logs, block);
}

static uint64_t softmax_kernel_scratch(const berth_op_call *call) {
  const berth__lines lines = softmax_kernel_lines_of(call);
  return lines.inner > 1 ? (uint64_t)lines.length * VF_LANES * sizeof(float) : 0;
}

/* ---- Items ---------------------------------------------------------------------------------------------------- */

static int64_t softmax_kernel_lines_each(const berth__lines *lines) {
  return lines->length < ITEM ? ITEM / lines->length : 1;
}
static int64_t softmax_kernel_pieces_across(const berth__lines *lines) {
  return (lines->inner + COLUMNS - 1) / COLUMNS;
}

/* Items are several lines, or a range of neighbouring ones. */
static int64_t softmax_kernel_items(const berth_op_call *call) {
  const berth__lines lines = softmax_kernel_lines_of(call);
  if (lines.inner > 1) return lines.outer * softmax_kernel_pieces_across(&lines);
  return (lines.outer + softmax_kernel_lines_each(&lines) - 1) / softmax_kernel_lines_each(&lines);
}

static void run_lines(float *y, const float *x, const berth__lines *lines, int64_t item, bool logs) {
  const int64_t each = softmax_kernel_lines_each(lines), left = lines->outer - item * each,
                n = left < each ? left : each;
  const bool are_short = lines->length <= VF_LANES;
  const int64_t together = are_short ? VF_LANES : TOGETHER;
  for (int64_t k = 0; k < n; k += together) {
    const int64_t start = (item * each + k) * lines->length, count = n - k < together ? n - k : together;
    (are_short ? softmax_short : softmax_group)(y + start, x + start, lines->length, count, logs);
  }
}

static berth_status softmax_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth__lines lines = softmax_kernel_lines_of(call);
  const bool logs = berth__call_code(call) == BERTH__OP_log_softmax;
  const int64_t across = softmax_kernel_pieces_across(&lines), plane = lines.length * lines.inner;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t start = item / across * plane;
    if (lines.inner > 1)
      softmax_columns(y + start, x + start, &lines, item % across * COLUMNS, logs, call->scratch);
    else
      run_lines(y, x, &lines, item, logs);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_softmax)[] = {
    {.name = "softmax",
     .code = BERTH__OP_softmax,
     .takes = softmax_kernel_takes,
     .items = softmax_kernel_items,
     .scratch = softmax_kernel_scratch,
     .run = softmax_kernel_run},
    {.name = "log_softmax",
     .code = BERTH__OP_log_softmax,
     .takes = softmax_kernel_takes,
     .items = softmax_kernel_items,
     .scratch = softmax_kernel_scratch,
     .run = softmax_kernel_run},
    {0},
};
