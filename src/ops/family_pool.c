/* max_pool, avg_pool and lp_pool: x [N, C, spatial...], or [N, spatial..., C] with `channels_last`; one to three
 * spatial axes. Padding is never a maximum; it counts in an average only if `count_include_pad` says so. max_pool may
 * also return the index of each maximum. */
#include <inttypes.h>
#include <math.h>

#include "ops/line.h"
#include "ops/pool.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__POOL_KERNEL] = {.name = "kernel", .kind = BERTH_ATTR_INTS},
    [BERTH__POOL_STRIDES] = {.name = "strides", .kind = BERTH_ATTR_INTS},
    [BERTH__POOL_PADS] = {.name = "pads", .kind = BERTH_ATTR_INTS},
    [BERTH__POOL_DILATIONS] = {.name = "dilations", .kind = BERTH_ATTR_INTS},
    [BERTH__POOL_CEIL_MODE] = {.name = "ceil_mode", .kind = BERTH_ATTR_INT},
    [BERTH__POOL_COUNT_INCLUDE_PAD] = {.name = "count_include_pad", .kind = BERTH_ATTR_INT},
    [BERTH__POOL_AUTO_PAD] = BERTH__WINDOW_AUTO_PAD,
    [BERTH__POOL_STORAGE_ORDER] = {.name = "storage_order", .kind = BERTH_ATTR_INT},
    [BERTH__POOL_P] = {.name = "p", .kind = BERTH_ATTR_INT, .i = 2},
    [BERTH__POOL_CHANNELS_LAST] = {.name = "channels_last", .kind = BERTH_ATTR_INT},
};

/* The first spatial axis. */
static uint32_t pool_first_axis(const berth_attr *attr) { return attr[BERTH__POOL_CHANNELS_LAST].i != 0 ? 1 : 2; }

static berth_status count_windows(const berth__infer *infer, uint32_t spatial, uint32_t axis, int64_t *out,
                                  berth_error *err) {
  const berth__window_attrs window = berth__pool_window(infer->attrs);
  const int64_t in = infer->in_shape[0].dim[pool_first_axis(infer->attrs) + axis];
  const berth__window_axis w =
      berth__window_axis_of(&window, spatial, axis, in, infer->attrs[BERTH__POOL_KERNEL].ints[axis]);
  int64_t reach;
  if (w.kernel < 1)
    return berth__fail(err, BERTH_INVALID, "entry %" PRIu32 " of `kernel` is %" PRId64 ", expected 1 or more", axis,
                       w.kernel);
  BERTH__TRY(berth__window_count(&w, infer->attrs[BERTH__POOL_CEIL_MODE].i != 0, axis, out, err));
  if (berth__window_reach(&w, &reach) && (w.begin >= reach || w.end >= reach))
    return berth__fail(err, BERTH_INVALID,
                       "pads %" PRId64 " and %" PRId64 " on spatial axis %" PRIu32
                       " leave windows of padding alone; they must be less than the %" PRId64 " that the kernel covers",
                       w.begin, w.end, axis, reach);
  return BERTH_OK;
}

static berth_status pool_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const berth__window_attrs window = berth__pool_window(infer->attrs);
  BERTH__TRY(infer->op->code == BERTH__OP_max_pool ? berth__want_numeric(infer, 0, err)
                                                   : berth__want_float(infer, 0, err));
  if (infer->attrs[BERTH__POOL_P].i < 1)
    return berth__fail(err, BERTH_INVALID, "`p` is %" PRId64 ", expected 1 or more", infer->attrs[BERTH__POOL_P].i);
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  const uint32_t spatial = x->rank - 2;
  if (infer->attrs[BERTH__POOL_KERNEL].count != spatial)
    return berth__fail(err, BERTH_INVALID, "`kernel` has %" PRIu32 " entries, expected %" PRIu32,
                       infer->attrs[BERTH__POOL_KERNEL].count, spatial);
  if (infer->n_out > 1 && infer->attrs[BERTH__POOL_CHANNELS_LAST].i != 0)
    return berth__fail(err, BERTH_INVALID, "places of maxima are given for [N, C, spatial...] alone");
  BERTH__TRY(berth__window_check(&window, spatial, err));
  infer->out_shape[0] = *x;
  for (uint32_t axis = 0; axis < spatial; axis++)
    BERTH__TRY(
        count_windows(infer, spatial, axis, &infer->out_shape[0].dim[pool_first_axis(infer->attrs) + axis], err));
  infer->out_type[0] = infer->in_type[0];
  if (infer->n_out > 1) {
    infer->out_type[1] = BERTH_I64;
    infer->out_shape[1] = infer->out_shape[0];
  }
  return BERTH_OK;
}

/* Items are lines of the result along the last spatial axis; elements of a line are `step` apart. */
static int64_t pool_line_length(const berth_op_call *call) {
  return call->out[0].dim[call->out[0].rank - (call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0 ? 2 : 1)];
}

static int64_t line_step(const berth_op_call *call) {
  return call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0 ? call->out[0].dim[call->out[0].rank - 1] : 1;
}

static int64_t channels_of(const berth_op_call *call) {
  return call->out[0].dim[call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0 ? call->out[0].rank - 1 : 1];
}

static int64_t pool_items(const berth_op_call *call) { return berth__count(&call->out[0]) / pool_line_length(call); }

/* A line of results, a line of the input, and the indices of the results if requested. */
static uint64_t pool_scratch(const berth_op_call *call) {
  return (uint64_t)pool_line_length(call) * (call->n_out > 1 ? 3 : 2) * BERTH__LINE_BYTES;
}

static int64_t *origins(const berth_op_call *call, int64_t n) {
  return call->n_out > 1 ? (int64_t *)call->scratch + 2 * n : NULL;
}

/* The number of taps of a window that count on one axis. */
static int64_t pool_taps_of(const berth__window_axis *w, int64_t window, bool with_padding) {
  const int64_t low = with_padding ? -w->begin : 0, high = with_padding ? w->in + w->end : w->in;
  int64_t count = 0;
  for (int64_t tap = 0; tap < w->kernel; tap++) {
    const int64_t at = berth__window_input(w, window, tap);
    count += at >= low && at < high;
  }
  return count;
}

/* Applies a tap to a line of results, in f64 for floats and i64 for integers. */
static void max_f64(double *best, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (x[i] > best[i] || isnan(x[i])) best[i] = x[i];
}

/* The same with indices: the first of equal elements, and the first NaN. */
static void max_f64_from(double *best, int64_t *from, const double *x, int64_t index, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (from[i] >= 0 && !(x[i] > best[i]) && (!isnan(x[i]) || isnan(best[i]))) continue;
    best[i] = x[i];
    from[i] = index + i * stride;
  }
}

static void add_f64(double *sum, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void add_powers(double *sum, const double *x, int64_t p, int64_t n) {
  if (p == 2)
    for (int64_t i = 0; i < n; i++) sum[i] += x[i] * x[i];
  else
    for (int64_t i = 0; i < n; i++) sum[i] += pow(fabs(x[i]), (double)p);
}

static void pool_max_i64(int64_t *best, int64_t *from, const berth_tensor *x, int64_t index, int64_t stride,
                         int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t value = berth__load_i64(x, index + i * stride);
    if (from && (value > best[i] || from[i] < 0)) from[i] = index + i * stride;
    if (value > best[i]) best[i] = value;
  }
}

static void take_tap(const berth_op_call *call, const berth__window_axis *w, int64_t from, int64_t first, int64_t n) {
  const berth_tensor *x = &call->in[0];
  double *result = call->scratch, *line = result + w->out;
  const int64_t step = w->stride * line_step(call);
  int64_t *places = origins(call, w->out);
  if (places) places += first;
  if (!berth__type_is_float(x->type)) {
    pool_max_i64((int64_t *)call->scratch + first, places, x, from, step, n);
    return;
  }
  berth__line_load(x, from, step, n, line);
  if (berth__call_code(call) == BERTH__OP_avg_pool)
    add_f64(result + first, line, n);
  else if (berth__call_code(call) == BERTH__OP_lp_pool)
    add_powers(result + first, line, call->attrs[BERTH__POOL_P].i, n);
  else if (places)
    max_f64_from(result + first, places, line, from, w->stride, n);
  else
    max_f64(result + first, line, n);
}

static void pool_start(const berth_op_call *call, int64_t n) {
  const berth_tensor *x = &call->in[0];
  double *result = call->scratch;
  int64_t *integers = call->scratch, *places = origins(call, n), low, high;
  for (int64_t i = 0; places && i < n; i++) places[i] = -1;
  if (!berth__type_is_float(x->type)) {
    berth__int_limits(x->type, &low, &high);
    for (int64_t i = 0; i < n; i++) integers[i] = low;
    return;
  }
  const double first = berth__call_code(call) == BERTH__OP_max_pool ? -(double)INFINITY : 0;
  for (int64_t i = 0; i < n; i++) result[i] = first;
}

/* An index in x, with the first spatial axis innermost. */
static int64_t pool_column_major(const berth__window_axis *w, int64_t place) {
  const int64_t area = w[0].in * w[1].in * w[2].in, at = place % area;
  const int64_t a = at / w[2].in / w[1].in, b = at / w[2].in % w[1].in, c = at % w[2].in;
  return place - at + a + w[0].in * (b + w[1].in * c);
}

static void store_places(const berth_op_call *call, const berth__window_axis *w, int64_t to) {
  const int64_t *places = origins(call, w[2].out);
  const bool by_columns = call->attrs[BERTH__POOL_STORAGE_ORDER].i != 0;
  for (int64_t i = 0; places && i < w[2].out; i++)
    berth__store_i64(&call->out[1], to + i, by_columns && places[i] >= 0 ? pool_column_major(w, places[i]) : places[i]);
}

static void pool_finish(const berth_op_call *call, const berth__window *window, berth__window_line at, int64_t to) {
  const berth__window_axis *w = window->axis;
  double *result = call->scratch;
  const int64_t step = line_step(call);
  store_places(call, w, to);
  if (!berth__type_is_float(call->out[0].type)) {
    for (int64_t i = 0; i < w[2].out; i++)
      berth__store_i64(&call->out[0], to + i * step, ((int64_t *)call->scratch)[i]);
    return;
  }
  if (berth__call_code(call) == BERTH__OP_avg_pool) {
    const bool with_padding = call->attrs[BERTH__POOL_COUNT_INCLUDE_PAD].i != 0;
    const int64_t others = pool_taps_of(&w[0], at.plane, with_padding) * pool_taps_of(&w[1], at.row, with_padding);
    for (int64_t i = 0; i < w[2].out; i++) {
      const int64_t count = others * pool_taps_of(&w[2], i, with_padding);
      if (count > 0) result[i] /= (double)count; /* 0: every tap of a dilated window is padding, and the average is 0 */
    }
  }
  if (berth__call_code(call) == BERTH__OP_lp_pool)
    for (int64_t i = 0; i < w[2].out; i++)
      result[i] = call->attrs[BERTH__POOL_P].i == 2 ? sqrt(result[i])
                                                    : pow(result[i], 1 / (double)call->attrs[BERTH__POOL_P].i);
  if (step == 1) berth__line_store(&call->out[0], to, w[2].out, result);
  for (int64_t i = 0; step != 1 && i < w[2].out; i++) berth__store_f64(&call->out[0], to + i * step, result[i]);
}

/* Offset of a line: element 0 of the line (plane, row) of a channel of an image with lines of `length`. */
static int64_t line_start(const berth_op_call *call, berth__window_line at, int64_t plane, int64_t row, int64_t rows,
                          int64_t planes, int64_t length) {
  const int64_t channels = channels_of(call);
  if (pool_first_axis(call->attrs) == 1)
    return ((at.image * planes + plane) * rows + row) * length * channels + at.channel;
  return (((at.image * channels + at.channel) * planes + plane) * rows + row) * length;
}

static void pool_pool_line(const berth_op_call *call, const berth__window *window, int64_t item) {
  const berth__window_axis *w = window->axis;
  const int64_t channels = channels_of(call), taps = berth__window_taps(window);
  const berth__window_line at = berth__window_line_of(window, channels, item);
  pool_start(call, w[2].out);
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t t[BERTH__WINDOW_AXES], first, last;
    berth__window_tap(window, tap, t);
    berth__window_span(&w[2], t[2], w[2].out, w[2].in, &first, &last);
    const int64_t i0 = berth__window_input(&w[0], at.plane, t[0]), i1 = berth__window_input(&w[1], at.row, t[1]);
    if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in || first == last) continue;
    const int64_t line = line_start(call, at, i0, i1, w[1].in, w[0].in, w[2].in);
    take_tap(call, &w[2], line + berth__window_input(&w[2], first, t[2]) * line_step(call), first, last - first);
  }
  pool_finish(call, window, at, line_start(call, at, at.plane, at.row, w[1].out, w[0].out, w[2].out));
}

static berth_status pool_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *x = &call->in[0];
  const berth__window_attrs attributes = berth__pool_window(call->attrs);
  berth__window window;
  const uint32_t first = pool_first_axis(call->attrs);
  berth__window_read(&window, &attributes, x->rank - 2, x->dim + first, call->attrs[BERTH__POOL_KERNEL].ints,
                     call->out[0].dim + first);
  for (int64_t item = call->begin; item < call->end; item++) pool_pool_line(call, &window, item);
  return BERTH_OK;
}

const berth__family berth__family_pool = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__POOL_KERNEL,
    .infer = pool_infer,
    .items = pool_items,
    .scratch = pool_scratch,
    .kernel = pool_kernel,
};
