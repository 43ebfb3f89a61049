/* max_pool and avg_pool in f32, in both layouts. With channels last, a window is a list of offsets, which serves all
 * channels and, inside x, several pixels. With channels first, lines of x are combined first, and then columns of the
 * combined line. */
#include "ops/pool.h"
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/taps.h"

#define TILE 4
#define MOST_TAPS 16384

typedef struct pool {
  berth__window window;
  bool is_max, with_padding, is_last;
  int64_t images, channels;
  int64_t begin, end; /* the columns whose windows are inside x */
  const float *x;
  float *out;
} pool;

static void pool_kernel_read_call(const berth_op_call *call, pool *p) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const berth__window_attrs window = berth__pool_window(call->attrs);
  p->is_last = call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0;
  const uint32_t first = p->is_last ? 1 : 2;
  berth__window_read(&p->window, &window, x->rank - 2, x->dim + first, call->attrs[BERTH__POOL_KERNEL].ints,
                     out->dim + first);
  p->is_max = berth__call_code(call) == BERTH__OP_max_pool;
  p->with_padding = call->attrs[BERTH__POOL_COUNT_INCLUDE_PAD].i != 0;
  p->images = x->dim[0];
  p->channels = x->dim[p->is_last ? x->rank - 1 : 1];
  taps_inside(&p->window.axis[2], &p->begin, &p->end);
  p->x = x->data;
  p->out = out->data;
}

static bool pool_kernel_takes(const berth_op_call *call) {
  pool p;
  if (call->n_out > 1 || call->in[0].type != BERTH_F32) return false;
  if (!berth__is_contiguous(&call->in[0]) || berth__count(&call->out[0]) == 0) return false;
  pool_kernel_read_call(call, &p);
  return berth__window_taps(&p.window) <= MOST_TAPS;
}

/* Items are lines of the result with channels last, otherwise planes. */
static int64_t pool_kernel_items(const berth_op_call *call) {
  pool p;
  pool_kernel_read_call(call, &p);
  const int64_t planes = p.images * p.window.axis[0].out;
  return p.is_last ? planes * p.window.axis[1].out : planes * p.channels;
}

/* A line of x with its padding, which windows at the end may exceed. */
static int64_t pool_kernel_line_length(const berth__window_axis *w) {
  const int64_t reach = (w->out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
  return w->begin + w->in > reach ? w->begin + w->in : reach;
}

/* The offsets of a line's windows and of one window at a border; or a combined line. */
static uint64_t pool_kernel_scratch(const berth_op_call *call) {
  pool p;
  pool_kernel_read_call(call, &p);
  if (p.is_last) return (uint64_t)berth__window_taps(&p.window) * 2 * sizeof(int64_t);
  return (uint64_t)(pool_kernel_line_length(&p.window.axis[2]) + VF_LANES) * sizeof(float);
}

/* NaN in either operand is the result. */
INLINED vf pool_kernel_larger(vf a, vf b) { return vf_pick_nan(a, a, vf_max(a, b)); }
INLINED vf pool_kernel_join(const bool is_max, vf a, vf b) {
  if (is_max) return pool_kernel_larger(a, b);
  return a + b;
}
INLINED float larger_one(float a, float b) { return b > a || isnan(b) ? b : a; }

/* The number of taps of a window on one axis that count in an average. */
static int64_t pool_kernel_taps_of(const berth__window_axis *w, int64_t window, bool with_padding) {
  const int64_t low = with_padding ? -w->begin : 0, high = with_padding ? w->in + w->end : w->in;
  int64_t count = 0;
  for (int64_t tap = 0; tap < w->kernel; tap++) {
    const int64_t at = berth__window_input(w, window, tap);
    count += at >= low && at < high;
  }
  return count;
}

/* ---- Channels last -------------------------------------------------------------------------------------------- */

/* Several windows, `step` elements of x apart: the elements at `offsets` from x. */
typedef struct windows {
  const int64_t *offsets;
  int64_t n_offsets, step;
  float count; /* divisor of the sums */
} windows;

/* n_pixels, is_max and `whole` are constants when this is inlined; if `whole` is false, `left` channels remain. */
INLINED void pool_channels(const pool *p, const windows *w, const int n_pixels, const bool is_max, const bool whole,
                           const float *x, int64_t left, float *out) {
  vf result[TILE];
  for (int r = 0; r < n_pixels; r++) result[r] = vf_set1(is_max ? -INFINITY : 0);
  for (int64_t k = 0; k < w->n_offsets; k++)
    for (int r = 0; r < n_pixels; r++) {
      const float *from = x + w->offsets[k] + r * w->step;
      result[r] = pool_kernel_join(is_max, result[r], whole ? vf_load(from) : vf_load_n(from, left));
    }
  for (int r = 0; r < n_pixels; r++, out += p->channels) {
    if (!is_max) result[r] = result[r] / vf_set1(w->count);
    if (whole)
      vf_store(out, result[r]);
    else
      vf_store_n(out, result[r], left);
  }
}

INLINED void pool_pixels(const pool *p, const windows *w, const int n_pixels, const bool is_max, const float *x,
                         float *out) {
  int64_t channel = 0;
  for (; channel + VF_LANES <= p->channels; channel += VF_LANES)
    pool_channels(p, w, n_pixels, is_max, true, x + channel, 0, out + channel);
  if (channel < p->channels)
    pool_channels(p, w, n_pixels, is_max, false, x + channel, p->channels - channel, out + channel);
}

static void pool_one(const pool *p, const windows *w, const float *x, float *out) {
  if (p->is_max)
    pool_pixels(p, w, 1, true, x, out);
  else
    pool_pixels(p, w, 1, false, x, out);
}

static void pool_tile(const pool *p, const windows *w, const float *x, float *out) {
  if (p->is_max)
    pool_pixels(p, w, TILE, true, x, out);
  else
    pool_pixels(p, w, TILE, false, x, out);
}

/* The offsets of the taps in the lines inside x, from the first column of the window. */
static int64_t fill_offsets(const pool *p, int64_t plane, int64_t row, int64_t *offsets) {
  const berth__window_axis *w = p->window.axis;
  int64_t n = 0;
  for (int64_t k0 = 0; k0 < w[0].kernel; k0++)
    for (int64_t k1 = 0; k1 < w[1].kernel; k1++) {
      const int64_t i0 = berth__window_input(&w[0], plane, k0), i1 = berth__window_input(&w[1], row, k1);
      if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in) continue;
      for (int64_t k2 = 0; k2 < w[2].kernel; k2++)
        offsets[n++] = ((i0 * w[1].in + i1) * w[2].in + k2 * w[2].dilation) * p->channels;
    }
  return n;
}

/* A window across the left or right border: the offsets that are inside. */
static void pool_border(const pool *p, const windows *line, int64_t lines, int64_t column, const float *x,
                        int64_t *offsets, float *out) {
  const berth__window_axis *w = &p->window.axis[2];
  const int64_t begin = berth__window_input(w, column, 0);
  int64_t n = 0;
  for (int64_t k = 0; k < line->n_offsets; k++) {
    const int64_t at = begin + k % w->kernel * w->dilation;
    if (at >= 0 && at < w->in) offsets[n++] = line->offsets[k] + begin * p->channels;
  }
  const int64_t count = lines * pool_kernel_taps_of(w, column, p->with_padding);
  const windows one = {.offsets = offsets, .n_offsets = n, .count = (float)(count > 0 ? count : 1)};
  pool_one(p, &one, x, out);
}

static void kernel_pool_line(const pool *p, int64_t *offsets, int64_t item) {
  const berth__window_axis *w = p->window.axis;
  const int64_t row = item % w[1].out, plane = item / w[1].out % w[0].out, image = item / w[1].out / w[0].out;
  const float *x = p->x + image * w[0].in * w[1].in * w[2].in * p->channels;
  float *out = p->out + item * w[2].out * p->channels;
  const int64_t lines =
      pool_kernel_taps_of(&w[0], plane, p->with_padding) * pool_kernel_taps_of(&w[1], row, p->with_padding);
  const int64_t n = fill_offsets(p, plane, row, offsets), step = w[2].stride * p->channels;
  const int64_t count = lines * w[2].kernel;
  const windows line = {.offsets = offsets, .n_offsets = n, .step = step, .count = (float)(count > 0 ? count : 1)};
  int64_t *rest = offsets + berth__window_taps(&p->window), column = 0;
  for (; column < p->begin; column++) pool_border(p, &line, lines, column, x, rest, out + column * p->channels);
  for (; column + TILE <= p->end; column += TILE)
    pool_tile(p, &line, x + berth__window_input(&w[2], column, 0) * p->channels, out + column * p->channels);
  for (; column < p->end; column++)
    pool_one(p, &line, x + berth__window_input(&w[2], column, 0) * p->channels, out + column * p->channels);
  for (; column < w[2].out; column++) pool_border(p, &line, lines, column, x, rest, out + column * p->channels);
}

/* ---- Channels first ------------------------------------------------------------------------------------------- */

/* Combines line[i] with x[i]; is_max is a constant when this is inlined. */
INLINED void join_line(const bool is_max, float *line, const float *x, int64_t n) {
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store(line + i, pool_kernel_join(is_max, vf_load(line + i), vf_load(x + i)));
  if (i < n) vf_store_n(line + i, pool_kernel_join(is_max, vf_load_n(line + i, n - i), vf_load_n(x + i, n - i)), n - i);
}

static void join_max(float *line, const float *x, int64_t stride, int64_t n) {
  if (stride == 1)
    join_line(true, line, x, n);
  else
    for (int64_t i = 0; i < n; i++) line[i] = larger_one(line[i], x[i * stride]);
}

static void join_sum(float *line, const float *x, int64_t stride, int64_t n) {
  if (stride == 1)
    join_line(false, line, x, n);
  else
    for (int64_t i = 0; i < n; i++) line[i] += x[i * stride];
}

/* Turns sums into averages; `lines` lines of each window count. */
static void pool_kernel_divide(const pool *p, int64_t lines, float *out) {
  const berth__window_axis *w = &p->window.axis[2];
  const float inside = (float)(lines > 0 ? lines * w->kernel : 1);
  for (int64_t i = 0; i < w->out; i++) {
    if (i == p->begin)
      for (; i < p->end; i++) out[i] /= inside;
    const int64_t count = i < w->out ? lines * pool_kernel_taps_of(w, i, p->with_padding) : 0;
    if (count > 0) out[i] /= (float)count;
  }
}

static void pool_plane(const pool *p, float *line, int64_t item) {
  void (*const join_with)(float *, const float *, int64_t, int64_t) = p->is_max ? join_max : join_sum;
  const berth__window_axis *w = p->window.axis;
  const int64_t plane = item % w[0].out, length = pool_kernel_line_length(&w[2]);
  const float *x = p->x + item / w[0].out * w[0].in * w[1].in * w[2].in, nothing = p->is_max ? -INFINITY : 0;
  for (int64_t row = 0; row < w[1].out; row++) {
    float *out = p->out + (item * w[1].out + row) * w[2].out;
    for (int64_t i = 0; i < length; i++) line[i] = nothing;
    for (int64_t i = 0; i < w[2].out; i++) out[i] = nothing;
    for (int64_t k0 = 0; k0 < w[0].kernel; k0++)
      for (int64_t k1 = 0; k1 < w[1].kernel; k1++) {
        const int64_t i0 = berth__window_input(&w[0], plane, k0), i1 = berth__window_input(&w[1], row, k1);
        if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in) continue;
        join_with(line + w[2].begin, x + (i0 * w[1].in + i1) * w[2].in, 1, w[2].in);
      }
    for (int64_t tap = 0; tap < w[2].kernel; tap++) join_with(out, line + tap * w[2].dilation, w[2].stride, w[2].out);
    if (!p->is_max)
      pool_kernel_divide(
          p, pool_kernel_taps_of(&w[0], plane, p->with_padding) * pool_kernel_taps_of(&w[1], row, p->with_padding),
          out);
  }
}

static berth_status pool_kernel_run(const berth_op_call *call, berth_error *err) {
  pool p;
  (void)err;
  pool_kernel_read_call(call, &p);
  for (int64_t item = call->begin; item < call->end; item++) {
    if (p.is_last)
      kernel_pool_line(&p, call->scratch, item);
    else
      pool_plane(&p, call->scratch, item);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_pool)[] = {
    {"max_pool", BERTH__OP_max_pool, pool_kernel_takes, pool_kernel_items, NULL, pool_kernel_scratch, pool_kernel_run,
     NULL, false, NULL},
    {"avg_pool", BERTH__OP_avg_pool, pool_kernel_takes, pool_kernel_items, NULL, pool_kernel_scratch, pool_kernel_run,
     NULL, false, NULL},
    {0},
};
