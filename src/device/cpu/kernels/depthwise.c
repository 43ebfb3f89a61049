/* depthwise, one vector of channels at a time. For the usual kernels, blocks of several rows and columns inside x are
 * computed together. Elsewhere, tiles of up to TILE pixels of a line are, with all the taps of their windows in a table
 * of pointers that serves every channel.
 *
 * With `over` the result may overwrite x. Channels are independent, so an item is then some channels of a whole image:
 * it goes down the lines in bands, and each band is copied to scratch as a small image, padding included, whose last
 * lines are the first of the next one. Channels of x with several outputs are computed in the same way: a channel is
 * repeated in the band once for each output. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/taps.h"
#include "device/cpu/zeros.h"

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 32")
#endif
#define INLINED static inline __attribute__((always_inline))
#define TILE 8
#define MOST_TAPS 1024
#define TAPS_ON_STACK 64 /* tables of more lie in scratch */
#define BLOCK_ROWS 2
#define MOST_BLOCK_COLUMNS 6
#define MOST_BLOCK_KERNEL 5
#define OVER_CHANNELS 32 /* two cache lines */
#define OVER_BAND 4      /* lines */

typedef struct depthwise {
  berth__last last;
  int64_t taps;
  int64_t band, block;             /* per item: lines of the result, and columns of them */
  int64_t bands, blocks;           /* per plane of an image; per line */
  int64_t top, bottom, begin, end; /* the lines and columns whose windows are inside x */
  int64_t width;                   /* channels to compute, of last.channels */
  int64_t multiplier;              /* outputs per channel of x; last.channels are those of the result */
  const float *x, *weight, *bias;
  float *out;
  float low, high;               /* of the epilogue */
  bool is_chain;                 /* it does more than clamp */
  const epilogue_form *epilogue; /* it is large, and bands have copies of this struct */
} depthwise;

static bool depthwise_kernel_takes(const berth_op_call *call) {
  berth__last last;
  if (!conv_takes(call)) return false;
  berth__last_read(call, &last);
  if (last.outputs != last.channels && call->in[0].rank > 4) return false; /* bands are two-dimensional */
  return berth__window_taps(&last.window) <= MOST_TAPS;
}

/* Two lines together, more if lines are short; long lines in pieces. */
static void depthwise_kernel_read_shape(const berth_op_call *call, depthwise *d) {
  berth__last_read(call, &d->last);
  d->multiplier = d->last.outputs / d->last.channels;
  d->last.channels = d->last.outputs;
  const berth__window_axis *w = d->last.window.axis;
  const int64_t most = 64;
  d->taps = berth__window_taps(&d->last.window);
  d->blocks = (w[2].out + most - 1) / most;
  d->block = (w[2].out + d->blocks - 1) / d->blocks;
  d->band = w[2].out >= 28 ? 2 : 4;
  d->bands = (w[1].out + d->band - 1) / d->band;
  taps_inside(&w[1], &d->top, &d->bottom);
  taps_inside(&w[2], &d->begin, &d->end);
  d->width = d->last.channels;
}

static bool goes_by_channels(const berth_op_call *call, const depthwise *d) {
  return call->attrs[BERTH__DEPTHWISE_OVER].i != 0 || d->multiplier != 1;
}

/* All outputs of a channel are in one block if they fit. */
static int64_t channel_block(const depthwise *d) {
  return d->multiplier <= OVER_CHANNELS ? OVER_CHANNELS / d->multiplier * d->multiplier : OVER_CHANNELS;
}
static int64_t channel_blocks(const depthwise *d) {
  return (d->last.channels + channel_block(d) - 1) / channel_block(d);
}

/* Lines and columns of x, and of the padding around it, that so many lines of the result see. */
static int64_t band_lines(const depthwise *d, int64_t lines) {
  const berth__window_axis *w = &d->last.window.axis[1];
  return lines == 0 ? 0 : (lines - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
}
static int64_t band_columns(const depthwise *d) {
  const berth__window_axis *w = &d->last.window.axis[2];
  return (w->out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
}
static int64_t band_of(const depthwise *d) {
  return d->last.window.axis[1].out < OVER_BAND ? d->last.window.axis[1].out : OVER_BAND;
}

static int64_t depthwise_kernel_items(const berth_op_call *call) {
  depthwise d;
  depthwise_kernel_read_shape(call, &d);
  if (goes_by_channels(call, &d)) return d.last.images * channel_blocks(&d);
  return d.last.images * d.last.window.axis[0].out * d.bands * d.blocks;
}

/* About 12 microseconds of work. */
static int64_t depthwise_kernel_grain(const berth_op_call *call) {
  depthwise d;
  depthwise_kernel_read_shape(call, &d);
  if (goes_by_channels(call, &d))
    return 1 + 250000 / (d.last.window.axis[1].out * d.last.window.axis[2].out * OVER_CHANNELS * d.taps + 1);
  return 1 + 250000 / (d.band * d.block * d.last.channels * d.taps + 1);
}

static uint64_t depthwise_kernel_zeros_size(const berth__last *last) {
  return ((uint64_t)last->channels * sizeof(float) + 127) / 64 * 64;
}

/* Of a band in scratch, with `over`. */
static uint64_t band_size(const depthwise *d) {
  return (uint64_t)(band_lines(d, band_of(d)) * band_columns(d)) * OVER_CHANNELS * sizeof(float);
}

static uint64_t depthwise_kernel_table_size(const depthwise *d) {
  return d->taps <= TAPS_ON_STACK ? 0 : (uint64_t)d->taps * TILE * sizeof(float *);
}

static uint64_t depthwise_kernel_scratch(const berth_op_call *call) {
  depthwise d;
  depthwise_kernel_read_shape(call, &d);
  return berth__cpu_zeros_scratch(depthwise_kernel_zeros_size(&d.last)) + depthwise_kernel_table_size(&d) +
         (goes_by_channels(call, &d) ? band_size(&d) : 0);
}

/* `whole` is a constant when these are inlined; if it is false, `left` channels remain. */
INLINED vf load_channels(const float *p, const bool whole, int64_t left) {
  return whole ? vf_load(p) : vf_load_n(p, left);
}
INLINED void store_channels(float *p, vf x, const bool whole, int64_t left) {
  if (whole)
    vf_store(p, x);
  else
    vf_store_n(p, x, left);
}

INLINED void tile_channels(const depthwise *d, const float *const *rows, const int n_pixels, const bool whole,
                           int64_t channel, int64_t left, float *out) {
  const vf low = vf_set1(d->low), high = vf_set1(d->high);
  const vf first = d->bias != NULL ? load_channels(d->bias + channel, whole, left) : vf_zero();
  const float *weight = d->weight + channel;
  vf sum[TILE];
  UNROLLED for (int r = 0; r < n_pixels; r++) sum[r] = first;
  for (int64_t tap = 0; tap < d->taps; tap++, weight += d->last.channels, rows += n_pixels) {
    const vf w = load_channels(weight, whole, left);
    UNROLLED for (int r = 0; r < n_pixels; r++) sum[r] =
        vf_fma(load_channels(rows[r] + channel, whole, left), w, sum[r]);
  }
  UNROLLED for (int r = 0; r < n_pixels; r++)
      store_channels(out + r * d->last.channels + channel, vf_min(high, vf_max(low, sum[r])), whole, left);
}

/* A block of BLOCK_ROWS lines and `columns` columns inside x, away from its borders, for strides `down` and `across`.
 * Every input is loaded once for all the taps that see it, and every sum is taken in the order of the taps, as in
 * tiles. All arguments but the channel are constants when this is inlined. */
INLINED void block_channels(const depthwise *d, const float *x, const int kernel, const int down, const int across,
                            const int columns, const bool whole, int64_t channel, int64_t left, float *out) {
  const int64_t pixel = d->last.axis_stride[2], line = d->last.axis_stride[1], channels = d->last.channels;
  vf weight[MOST_BLOCK_KERNEL * MOST_BLOCK_KERNEL], sum[BLOCK_ROWS][MOST_BLOCK_COLUMNS];
  UNROLLED for (int k = 0; k < kernel * kernel; k++) weight[k] =
      load_channels(d->weight + k * channels + channel, whole, left);
  const vf first = d->bias != NULL ? load_channels(d->bias + channel, whole, left) : vf_zero();
  UNROLLED for (int r = 0; r < BLOCK_ROWS; r++) UNROLLED for (int c = 0; c < columns; c++) sum[r][c] = first;
  x += channel;
  UNROLLED for (int i = 0; i < (BLOCK_ROWS - 1) * down + kernel; i++, x += line) {
    UNROLLED for (int j = 0; j < (columns - 1) * across + kernel; j++) {
      const vf value = load_channels(x + j * pixel, whole, left);
      UNROLLED for (int r = 0; r < BLOCK_ROWS; r++) {
        const int ky = i - r * down;
        UNROLLED for (int c = 0; c < columns; c++) {
          const int kx = j - c * across;
          if (ky >= 0 && ky < kernel && kx >= 0 && kx < kernel)
            sum[r][c] = vf_fma(value, weight[ky * kernel + kx], sum[r][c]);
        }
      }
    }
  }
  const vf low = vf_set1(d->low), high = vf_set1(d->high);
  const int64_t out_line = d->last.window.axis[2].out * channels;
  UNROLLED for (int r = 0; r < BLOCK_ROWS; r++) UNROLLED for (int c = 0; c < columns; c++)
      store_channels(out + r * out_line + c * channels + channel, vf_min(high, vf_max(low, sum[r][c])), whole, left);
}

#define BLOCK_INSTANCE(kernel, down, across, columns)                                                          \
  static void block_##kernel##_##down##_##across##_##columns(const depthwise *d, const float *x, float *out) { \
    int64_t channel = 0;                                                                                       \
    for (; channel + VF_LANES <= d->width; channel += VF_LANES)                                                \
      block_channels(d, x, kernel, down, across, columns, true, channel, 0, out);                              \
    if (channel < d->width)                                                                                    \
      block_channels(d, x, kernel, down, across, columns, false, channel, d->width - channel, out);            \
  }
#define BLOCK_KIND(kernel, down, across, columns) \
  {kernel, down, across, columns, block_##kernel##_##down##_##across##_##columns},
/* The widest block of a kernel first; narrower ones are for the ends of lines, and for short lines. */
#define EACH_BLOCK(X) \
  X(3, 1, 1, 6)       \
  X(3, 1, 1, 5)       \
  X(3, 1, 1, 4)       \
  X(3, 1, 1, 3) X(3, 1, 1, 2) X(3, 2, 2, 4) X(3, 2, 2, 3) X(3, 2, 1, 6) X(5, 1, 1, 4) X(5, 2, 2, 4) X(5, 2, 1, 4)
EACH_BLOCK(BLOCK_INSTANCE)

#define TILE_INSTANCE(n)                                                                                          \
  static void tile_##n(const depthwise *d, const float *const *rows, float *out) {                                \
    int64_t channel = 0;                                                                                          \
    for (; channel + VF_LANES <= d->width; channel += VF_LANES) tile_channels(d, rows, n, true, channel, 0, out); \
    if (channel < d->width) tile_channels(d, rows, n, false, channel, d->width - channel, out);                   \
  }
TILE_INSTANCE(1)
TILE_INSTANCE(2)
TILE_INSTANCE(3)
TILE_INSTANCE(4)
TILE_INSTANCE(5)
TILE_INSTANCE(6)
TILE_INSTANCE(7)
TILE_INSTANCE(8)

static void (*const tiles[TILE])(const depthwise *, const float *const *, float *) = {tile_1, tile_2, tile_3, tile_4,
                                                                                      tile_5, tile_6, tile_7, tile_8};

typedef struct block_kind {
  int64_t kernel, down, across, columns;
  void (*run)(const depthwise *d, const float *x, float *out);
} block_kind;

static const block_kind kinds[] = {EACH_BLOCK(BLOCK_KIND){0}};

/* The next narrower blocks of the same kernel; NULL: none. */
static const block_kind *narrower(const block_kind *kind) {
  const block_kind *next = kind + 1;
  return next->kernel == kind->kernel && next->down == kind->down && next->across == kind->across ? next : NULL;
}

/* Images have one plane, in x as in the result: padding could add more, or replace the one by zeros. */
static bool depthwise_kernel_is_flat(const berth__window_axis *first) {
  return first->kernel == 1 && first->in == 1 && first->out == 1 && first->begin == 0;
}

/* The widest blocks of a kernel; NULL: none. */
static const block_kind *depthwise_kernel_kind_of(const depthwise *d) {
  const berth__window_axis *w = d->last.window.axis;
  if (!depthwise_kernel_is_flat(&w[0]) || w[1].dilation != 1 || w[2].dilation != 1) return NULL;
  for (const block_kind *kind = kinds; kind->kernel != 0; kind++)
    if (w[1].kernel == kind->kernel && w[2].kernel == kind->kernel && w[1].stride == kind->down &&
        w[2].stride == kind->across)
      return kind;
  return NULL;
}

typedef struct worker {
  const float *zeros;
  const float **rows;
  const block_kind *kind;
} worker;

/* A window that is cut off at the borders of x: n[0] x n[1] taps, with these strides in x and in the weights. */
typedef struct cut_window {
  const float *x, *weight;
  int64_t n[2], x_step[2], weight_step[2];
} cut_window;

/* The taps [*first, *first + n) of a window of the axis that are inside x; returns n. */
static int64_t depthwise_kernel_taps_inside(const berth__window_axis *w, int64_t at, int64_t *first) {
  int64_t end = w->kernel;
  *first = 0;
  while (*first < end && berth__window_input(w, at, *first) < 0) (*first)++;
  while (end > *first && berth__window_input(w, at, end - 1) >= w->in) end--;
  return end - *first;
}

INLINED void edge_channels(const depthwise *d, const cut_window *c, const bool whole, int64_t channel, int64_t left,
                           float *out) {
  vf sum = d->bias != NULL ? load_channels(d->bias + channel, whole, left) : vf_zero();
  const float *line = c->x + channel, *weights = c->weight + channel;
  for (int64_t k = 0; k < c->n[0]; k++, line += c->x_step[0], weights += c->weight_step[0]) {
    const float *x = line, *weight = weights;
    for (int64_t i = 0; i < c->n[1]; i++, x += c->x_step[1], weight += c->weight_step[1])
      sum = vf_fma(load_channels(x, whole, left), load_channels(weight, whole, left), sum);
  }
  store_channels(out + channel, vf_min(vf_set1(d->high), vf_max(vf_set1(d->low), sum)), whole, left);
}

/* One pixel at a border of a flat image: only the taps inside x, which costs less than making a table. */
static void depthwise_kernel_run_edge(const depthwise *d, int64_t image, int64_t row, int64_t column, float *out) {
  const berth__window_axis *w = d->last.window.axis;
  const int64_t *stride = d->last.axis_stride, channels = d->last.channels;
  int64_t down, across, channel = 0;
  cut_window c = {.x_step = {w[1].dilation * stride[1], w[2].dilation * stride[2]},
                  .weight_step = {w[2].kernel * channels, channels}};
  c.n[0] = depthwise_kernel_taps_inside(&w[1], row, &down);
  c.n[1] = depthwise_kernel_taps_inside(&w[2], column, &across);
  c.x = d->x + image * d->last.image_stride;
  if (c.n[0] > 0 && c.n[1] > 0)
    c.x += berth__window_input(&w[1], row, down) * stride[1] + berth__window_input(&w[2], column, across) * stride[2];
  c.weight = d->weight + (down * w[2].kernel + across) * channels;
  for (; channel + VF_LANES <= d->width; channel += VF_LANES) edge_channels(d, &c, true, channel, 0, out);
  if (channel < d->width) edge_channels(d, &c, false, channel, d->width - channel, out);
}

/* Columns [begin, end) of one line of the result. */
static void depthwise_kernel_run_line(const depthwise *d, const worker *w, int64_t line, int64_t begin, int64_t end) {
  const berth__window_axis *axis = d->last.window.axis;
  const int64_t first = line * axis[2].out;
  const bool is_flat = depthwise_kernel_is_flat(&axis[0]);
  while (begin < end) {
    const int64_t left = end - begin;
    if (left == 1 && is_flat) {
      depthwise_kernel_run_edge(d, line / axis[1].out, line % axis[1].out, begin,
                                d->out + (first + begin) * d->last.channels);
      return;
    }
    const int64_t n = left >= 2 * TILE || left == TILE ? TILE : left > TILE ? (left + 1) / 2 : left;
    taps_fill(&d->last, d->x, w->zeros, first + begin, n, w->rows);
    tiles[n - 1](d, w->rows, d->out + (first + begin) * d->last.channels);
    begin += n;
  }
}

/* The blocks to continue with when `left` columns are left; NULL: too few are. The last two are about equally wide. */
static const block_kind *depthwise_kernel_next_block(const block_kind *widest, int64_t left) {
  const int64_t most = widest->columns;
  const int64_t n = left >= 2 * most || left == most ? most : left > most ? (left + 1) / 2 : left;
  const block_kind *kind = widest;
  while (kind != NULL && kind->columns > n) kind = narrower(kind);
  return kind != NULL || left < most ? kind : widest;
}

/* Two lines whose windows are inside x: blocks, as far as they fit. */
static int64_t depthwise_kernel_run_blocks(const depthwise *d, const worker *w, int64_t image, int64_t row,
                                           int64_t begin, int64_t end) {
  const berth__window_axis *axis = d->last.window.axis;
  const int64_t pixel = (image * axis[1].out + row) * axis[2].out;
  const float *line =
      d->x + image * d->last.image_stride + berth__window_input(&axis[1], row, 0) * d->last.axis_stride[1];
  for (const block_kind *kind; (kind = depthwise_kernel_next_block(w->kind, end - begin)) != NULL;
       begin += kind->columns)
    kind->run(d, line + berth__window_input(&axis[2], begin, 0) * d->last.axis_stride[2],
              d->out + (pixel + begin) * d->last.channels);
  return begin;
}

static void depthwise_kernel_run_item(const depthwise *d, const worker *w, int64_t item) {
  const berth__window_axis *axis = d->last.window.axis;
  const int64_t plane = item / d->blocks / d->bands, rows = axis[1].out;
  const int64_t from = item % d->blocks * d->block, to = from + d->block < axis[2].out ? from + d->block : axis[2].out;
  const int64_t first = item / d->blocks % d->bands * d->band;
  const int64_t last = first + d->band < rows ? first + d->band : rows;
  const int64_t begin = from > d->begin ? from : d->begin, end = to < d->end ? to : d->end;
  for (int64_t row = first; row < last;) {
    const int64_t line = plane * rows + row;
    const bool has_blocks = w->kind != NULL && depthwise_kernel_next_block(w->kind, end - begin) != NULL;
    if (!has_blocks || row < d->top || row + BLOCK_ROWS > d->bottom || row + BLOCK_ROWS > last) {
      depthwise_kernel_run_line(d, w, line, from, to);
      row++;
      continue;
    }
    const int64_t rest = depthwise_kernel_run_blocks(d, w, plane, row, begin, end);
    for (int64_t k = 0; k < BLOCK_ROWS; k++, row++) {
      depthwise_kernel_run_line(d, w, line + k, from, begin);
      depthwise_kernel_run_line(d, w, line + k, rest, to);
    }
  }
  for (int64_t row = first; row < last && d->is_chain; row++)
    epilogue_finish(d->epilogue, (plane * rows + row) * axis[2].out + from, to - from, 0, d->last.channels);
}

/* ---- Bands ---- */

/* Repeats channels `each` times, which is a constant when this is inlined. */
INLINED void repeat_channels(float *restrict to, const float *restrict from, const int64_t each, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < each; k++) to[i * each + k] = from[i];
}

/* The channels of one pixel from `first` of the result on, when channels of x have several outputs. */
static void keep_repeated(const depthwise *d, const float *pixel, int64_t first, float *to) {
  const int64_t each = d->multiplier, n = d->width;
  pixel += first / each;
  if (first % each != 0 || n % each != 0)
    for (int64_t i = 0; i < n; i++) to[i] = pixel[(first % each + i) / each];
  else if (each == 2)
    repeat_channels(to, pixel, 2, n / 2);
  else if (each == 3)
    repeat_channels(to, pixel, 3, n / 3);
  else if (each == 4)
    repeat_channels(to, pixel, 4, n / 4);
  else
    repeat_channels(to, pixel, each, n / each);
}

/* Pixels of padding: there are few, for which a call takes longer than the stores. */
INLINED void keep_zeros(float *to, int64_t n) {
  for (int64_t k = 0; k < n * OVER_CHANNELS; k += VF_LANES) vf_store(to + k, vf_zero());
}

/* Line `line` of an image, its channels from `first` on, padding included. */
static void keep_line(const depthwise *d, const float *image, int64_t first, int64_t line, float *to) {
  const berth__window_axis *w = &d->last.window.axis[2];
  const int64_t columns = band_columns(d), begin = w->begin < columns ? w->begin : columns;
  const int64_t n = columns - begin < w->in ? columns - begin : w->in, pixel = d->last.axis_stride[2];
  const size_t size = (size_t)d->width * sizeof *to;
  const bool is_whole = d->multiplier == 1 && d->width == OVER_CHANNELS;
  if (line < 0 || line >= d->last.window.axis[1].in) {
    keep_zeros(to, columns);
    return;
  }
  const float *from = image + line * d->last.axis_stride[1];
  keep_zeros(to, begin);
  to += begin * OVER_CHANNELS;
  for (int64_t k = 0; k < n; k++, to += OVER_CHANNELS, from += pixel) {
    if (is_whole)
      memcpy(to, from + first, OVER_CHANNELS * sizeof *to);
    else if (d->multiplier == 1)
      memcpy(to, from + first, size);
    else
      keep_repeated(d, from, first, to);
  }
  keep_zeros(to, columns - begin - n);
}

/* The lines of the band [row, row + lines) that do not already lie at its beginning, left there by the previous
 * band. */
static void keep_band(const depthwise *d, const float *image, int64_t channel, int64_t row, int64_t lines,
                      float *band) {
  const int64_t line_size = band_columns(d) * OVER_CHANNELS, wanted = band_lines(d, lines);
  const int64_t shift = band_of(d) * d->last.window.axis[1].stride, before = band_lines(d, band_of(d));
  const int64_t first = berth__window_input(&d->last.window.axis[1], row, 0);
  int64_t have = row > 0 && before > shift ? before - shift : 0;
  if (have > wanted) have = wanted;
  for (int64_t k = 0; k < have * line_size; k += VF_LANES) vf_store(band + k, vf_load(band + shift * line_size + k));
  for (; have < wanted; have++) keep_line(d, image, channel, first + have, band + have * line_size);
}

/* A band as a call of its own: an image without padding. */
static depthwise call_of_bands(const depthwise *d, const float *band) {
  depthwise inner = *d;
  berth__window_axis *w = inner.last.window.axis;
  inner.x = band;
  inner.last.axis_stride[1] = band_columns(d) * OVER_CHANNELS;
  inner.last.axis_stride[2] = OVER_CHANNELS;
  w[2].in = band_columns(d);
  w[1].begin = w[1].end = w[2].begin = w[2].end = 0;
  inner.block = inner.end = w[2].out;
  inner.bands = inner.blocks = 1;
  inner.top = inner.begin = 0;
  inner.is_chain = false;
  return inner;
}

/* For a band of so many lines of the result. */
static void set_lines(depthwise *inner, int64_t lines) {
  berth__window_axis *w = &inner->last.window.axis[1];
  w->in = band_lines(inner, lines);
  w->out = inner->band = inner->bottom = lines;
}

static void run_channels(const depthwise *d, const worker *w, int64_t item, float *band) {
  const berth__window_axis *axis = d->last.window.axis;
  const int64_t image = item / channel_blocks(d), first = item % channel_blocks(d) * channel_block(d);
  const int64_t left = d->last.channels - first, pixels = axis[1].out * axis[2].out;
  depthwise part = *d;
  part.width = left < channel_block(d) ? left : channel_block(d);
  part.weight += first;
  if (part.bias != NULL) part.bias += first;
  depthwise inner = call_of_bands(&part, band); /* once: it is large */
  for (int64_t row = 0, lines; row < axis[1].out; row += lines) {
    const int64_t pixel = image * pixels + row * axis[2].out;
    lines = axis[1].out - row < band_of(d) ? axis[1].out - row : band_of(d);
    keep_band(&part, d->x + image * d->last.image_stride, first, row, lines, band);
    set_lines(&inner, lines);
    inner.out = d->out + pixel * d->last.channels + first;
    depthwise_kernel_run_item(&inner, w, 0);
    epilogue_finish(d->epilogue, pixel, lines * axis[2].out, first, part.width);
  }
}

static berth_status depthwise_kernel_run(const berth_op_call *call, berth_error *err) {
  depthwise d;
  (void)err;
  depthwise_kernel_read_shape(call, &d);
  d.x = call->in[0].data;
  d.weight = call->in[1].data;
  d.bias = d.last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  d.out = call->out[0].data;
  epilogue_form epilogue;
  epilogue_read(&epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE], &call->attrs[BERTH__LAST_NUMBERS]);
  d.low = epilogue.low;
  d.high = epilogue.high;
  d.is_chain = epilogue.is_chain;
  d.epilogue = &epilogue;
  const uint64_t zeros = depthwise_kernel_zeros_size(&d.last), table = depthwise_kernel_table_size(&d);
  void *after_zeros = berth__cpu_after_zeros(call->scratch, zeros);
  const float *few[TAPS_ON_STACK * TILE];
  const worker w = {.zeros = berth__cpu_zeros_in(call->scratch, zeros),
                    .rows = table == 0 ? few : (const float **)after_zeros,
                    .kind = depthwise_kernel_kind_of(&d)};
  float *band = table == 0 ? after_zeros : (float *)(void *)((char *)after_zeros + table);
  for (int64_t item = call->begin; item < call->end; item++) {
    if (goes_by_channels(call, &d))
      run_channels(&d, &w, item, band);
    else
      depthwise_kernel_run_item(&d, &w, item);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_depthwise)[] = {
    {"depthwise", BERTH__OP_depthwise, depthwise_kernel_takes, depthwise_kernel_items, depthwise_kernel_grain,
     depthwise_kernel_scratch, depthwise_kernel_run, NULL, false, NULL},
    {0},
};
