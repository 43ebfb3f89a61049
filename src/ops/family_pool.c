/* max_pool and avg_pool: x [N, C, spatial...], one to three spatial axes. Padding never is a maximum; it counts in an
 * average only where `count_include_pad` says so. */
#include <inttypes.h>
#include <math.h>

#include "ops/line.h"
#include "ops/registry.h"
#include "ops/window.h"

enum {
  KERNEL,
  STRIDES,
  PADS,
  DILATIONS,
  CEIL_MODE,
  COUNT_INCLUDE_PAD
};
static const berth_attr attrs[] = {
    {.name = "kernel", .kind = BERTH_ATTR_INTS},   {.name = "strides", .kind = BERTH_ATTR_INTS},
    {.name = "pads", .kind = BERTH_ATTR_INTS},     {.name = "dilations", .kind = BERTH_ATTR_INTS},
    {.name = "ceil_mode", .kind = BERTH_ATTR_INT}, {.name = "count_include_pad", .kind = BERTH_ATTR_INT},
};

static berth__window_attrs window_attrs(const berth_attr *attr) {
  return (berth__window_attrs){&attr[STRIDES], &attr[PADS], &attr[DILATIONS]};
}

static berth_status count_windows(const berth__infer *infer, uint32_t spatial, uint32_t axis, int64_t *out,
                                  berth_error *err) {
  const berth__window_attrs window = window_attrs(infer->attrs);
  const berth__window_axis w =
      berth__window_axis_of(&window, spatial, axis, infer->in_shape[0].dim[2 + axis], infer->attrs[KERNEL].ints[axis]);
  int64_t reach;
  if (w.kernel < 1)
    return berth__fail(err, BERTH_INVALID, "entry %" PRIu32 " of `kernel` is %" PRId64 ", expected 1 or more", axis,
                       w.kernel);
  BERTH__TRY(berth__window_count(&w, infer->attrs[CEIL_MODE].i != 0, axis, out, err));
  if (berth__window_reach(&w, &reach) && (w.begin >= reach || w.end >= reach))
    return berth__fail(err, BERTH_INVALID,
                       "pads %" PRId64 " and %" PRId64 " on spatial axis %" PRIu32
                       " leave windows of padding alone; they must be less than the %" PRId64 " that the kernel covers",
                       w.begin, w.end, axis, reach);
  return BERTH_OK;
}

static berth_status infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const berth__window_attrs window = window_attrs(infer->attrs);
  BERTH__TRY(infer->op->code == BERTH__OP_avg_pool ? berth__want_float(infer, 0, err)
                                                   : berth__want_numeric(infer, 0, err));
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  const uint32_t spatial = x->rank - 2;
  if (infer->attrs[KERNEL].count != spatial)
    return berth__fail(err, BERTH_INVALID, "`kernel` has %" PRIu32 " entries, expected %" PRIu32,
                       infer->attrs[KERNEL].count, spatial);
  BERTH__TRY(berth__window_check(&window, spatial, err));
  infer->out_shape[0] = *x;
  for (uint32_t axis = 0; axis < spatial; axis++)
    BERTH__TRY(count_windows(infer, spatial, axis, &infer->out_shape[0].dim[2 + axis], err));
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* A line of results and a line of the input beside it. */
static uint64_t scratch(const berth_op_call *call) {
  return (uint64_t)call->out[0].dim[call->out[0].rank - 1] * 2 * BERTH__LINE_BYTES;
}

/* How many taps of a window count on one axis. */
static int64_t taps_of(const berth__window_axis *w, int64_t window, bool with_padding) {
  const int64_t low = with_padding ? -w->begin : 0, high = with_padding ? w->in + w->end : w->in;
  int64_t count = 0;
  for (int64_t tap = 0; tap < w->kernel; tap++) {
    const int64_t at = berth__window_input(w, window, tap);
    count += at >= low && at < high;
  }
  return count;
}

/* What every tap does to a line of results, in f64 for the floats and in i64 for the integers. */
static void max_f64(double *best, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (x[i] > best[i] || isnan(x[i])) best[i] = x[i];
}

static void add_f64(double *sum, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void max_i64(int64_t *best, const berth_tensor *x, int64_t index, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t value = berth__load_i64(x, index + i * stride);
    if (value > best[i]) best[i] = value;
  }
}

static void take_tap(const berth_op_call *call, const berth__window_axis *w, int64_t from, int64_t first, int64_t n) {
  const berth_tensor *x = &call->in[0];
  double *result = call->scratch, *line = result + w->out;
  if (!berth__type_is_float(x->type)) {
    max_i64((int64_t *)call->scratch + first, x, from, w->stride, n);
    return;
  }
  berth__line_load(x, from, w->stride, n, line);
  if (berth__call_code(call) == BERTH__OP_avg_pool)
    add_f64(result + first, line, n);
  else
    max_f64(result + first, line, n);
}

static void start(const berth_op_call *call, int64_t n) {
  const berth_tensor *x = &call->in[0];
  double *result = call->scratch;
  int64_t *integers = call->scratch, low, high;
  if (!berth__type_is_float(x->type)) {
    berth__int_limits(x->type, &low, &high);
    for (int64_t i = 0; i < n; i++) integers[i] = low;
    return;
  }
  const double first = berth__call_code(call) == BERTH__OP_avg_pool ? 0 : -(double)INFINITY;
  for (int64_t i = 0; i < n; i++) result[i] = first;
}

static void finish(const berth_op_call *call, const berth__window *window, berth__window_line at, int64_t to) {
  const berth__window_axis *w = window->axis;
  double *result = call->scratch;
  if (!berth__type_is_float(call->out[0].type)) {
    for (int64_t i = 0; i < w[2].out; i++) berth__store_i64(&call->out[0], to + i, ((int64_t *)call->scratch)[i]);
    return;
  }
  if (berth__call_code(call) == BERTH__OP_avg_pool) {
    const bool with_padding = call->attrs[COUNT_INCLUDE_PAD].i != 0;
    const int64_t others = taps_of(&w[0], at.plane, with_padding) * taps_of(&w[1], at.row, with_padding);
    for (int64_t i = 0; i < w[2].out; i++) {
      const int64_t count = others * taps_of(&w[2], i, with_padding);
      if (count > 0) result[i] /= (double)count; /* 0: every tap of a dilated window is padding; the average is 0 */
    }
  }
  berth__line_store(&call->out[0], to, w[2].out, result);
}

static void pool_line(const berth_op_call *call, const berth__window *window, int64_t item) {
  const berth__window_axis *w = window->axis;
  const int64_t channels = call->in[0].dim[1], taps = berth__window_taps(window);
  const berth__window_line at = berth__window_line_of(window, channels, item);
  start(call, w[2].out);
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t t[BERTH__WINDOW_AXES], first, last;
    berth__window_tap(window, tap, t);
    berth__window_span(&w[2], t[2], w[2].out, w[2].in, &first, &last);
    const int64_t i0 = berth__window_input(&w[0], at.plane, t[0]), i1 = berth__window_input(&w[1], at.row, t[1]);
    if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in || first == last) continue;
    const int64_t line = ((at.image * channels + at.channel) * w[0].in + i0) * w[1].in + i1;
    take_tap(call, &w[2], line * w[2].in + berth__window_input(&w[2], first, t[2]), first, last - first);
  }
  finish(call, window, at, item * w[2].out);
}

static berth_status kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *x = &call->in[0];
  const berth__window_attrs attributes = window_attrs(call->attrs);
  berth__window window;
  berth__window_read(&window, &attributes, x->rank - 2, x->dim + 2, call->attrs[KERNEL].ints, call->out[0].dim + 2);
  for (int64_t item = call->begin; item < call->end; item++) pool_line(call, &window, item);
  return BERTH_OK;
}

const berth__family berth__family_pool = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << KERNEL,
    .infer = infer,
    .items = berth__window_items,
    .scratch = scratch,
    .kernel = kernel,
};
