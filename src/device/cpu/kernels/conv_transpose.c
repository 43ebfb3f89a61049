/* conv_transpose_last: pixels of the result that are a stride apart see the same taps, so each such phase is a small
 * convolution of its own. Within a phase, lines that are a stride apart are processed together; for every panel of the
 * weights, their taps are summed in the register tiles of products. If the kernel is as large as the stride, each
 * phase has one tap: a product whose results are spread out. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/gemm_tile.h"
#include "device/cpu/zeros.h"

#define BLOCK_PIXELS 128
#define MOST_TAPS 64 /* per axis */
#define TAPS_AT_ONCE 16

typedef struct transposed {
  berth__last last;
  int64_t panels;
  int64_t lines, steps;   /* of a phase, at most; per item */
  int64_t phases, blocks; /* along the second axis; items per phase */
  const float *x, *weight, *bias;
  float *out;
  const float *zeros;
  epilogue_form epilogue;
} transposed;

static int64_t conv_transpose_kernel_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void conv_transpose_kernel_read_shape(const berth_op_call *call, transposed *t) {
  berth__last_read(call, &t->last);
  const berth__window_axis *w = t->last.window.axis;
  t->panels = conv_transpose_kernel_ceil_div(t->last.outputs, VF_PANEL);
  t->phases = w[1].stride < w[1].out ? w[1].stride : w[1].out;
  t->lines = conv_transpose_kernel_ceil_div(w[1].out, w[1].stride);
  t->steps = conv_transpose_kernel_ceil_div(BLOCK_PIXELS, w[2].in);
  if (t->steps > t->lines) t->steps = t->lines;
  t->blocks = conv_transpose_kernel_ceil_div(t->lines, t->steps);
}

static bool conv_transpose_kernel_takes(const berth_op_call *call) {
  berth__last last;
  if (call->attrs[BERTH__LAST_JOINED].i != 0 || call->attrs[BERTH__LAST_EACH].i != 0 || !conv_takes(call)) return false;
  if (call->attrs[BERTH__LAST_PANEL].i != VF_PANEL || call->in[0].rank > 4) return false;
  berth__last_read(call, &last);
  return last.window.axis[1].kernel <= MOST_TAPS && last.window.axis[2].kernel <= MOST_TAPS;
}

static int64_t conv_transpose_kernel_items(const berth_op_call *call) {
  transposed t;
  conv_transpose_kernel_read_shape(call, &t);
  return t.last.images * t.phases * t.blocks;
}

/* About 12 microseconds of work. */
static int64_t conv_transpose_kernel_grain(const berth_op_call *call) {
  transposed t;
  conv_transpose_kernel_read_shape(call, &t);
  const berth__window_axis *w = t.last.window.axis;
  const int64_t taps = conv_transpose_kernel_ceil_div(w[1].kernel, w[1].stride) * w[2].kernel;
  return 1 + 600000 / (t.steps * w[2].in * taps * t.last.channels * t.panels * VF_PANEL + 1);
}

static uint64_t conv_transpose_kernel_zeros_size(const berth__last *last) {
  return ((uint64_t)last->channels * sizeof(float) + 63) / 64 * 64;
}

static uint64_t conv_transpose_kernel_scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return berth__cpu_zeros_scratch(conv_transpose_kernel_zeros_size(&last));
}

/* The taps of an axis that fall on the elements `at`, at + stride, ... of the result. */
static int64_t taps_on(const berth__window_axis *w, int64_t at, int64_t *taps) {
  int64_t n = 0;
  for (int64_t tap = 0; tap < w->kernel; tap++)
    if ((at + w->begin - tap * w->dilation) % w->stride == 0) taps[n++] = tap;
  return n;
}

/* The element of x along an axis; outside x if there is none. */
static int64_t conv_transpose_kernel_source(const berth__window_axis *w, int64_t at, int64_t tap) {
  return (at + w->begin - tap * w->dilation) / w->stride;
}

/* One line of one phase: the columns `column`, column + stride, ... */
typedef struct phase_line {
  int64_t image, row, column;
  int64_t down[MOST_TAPS], across[MOST_TAPS]; /* its taps */
  int64_t n_down, n_across;
} phase_line;

/* The pixels of x under one tap of a tile; false: all are outside. */
static bool fill_rows(const transposed *t, const phase_line *p, int64_t down, int64_t across, int64_t column, int64_t n,
                      const float **rows) {
  const berth__window_axis *w = t->last.window.axis;
  const int64_t i1 = conv_transpose_kernel_source(&w[1], p->row, down),
                i2 = conv_transpose_kernel_source(&w[2], column, across);
  if (i1 < 0 || i1 >= w[1].in || i2 + n <= 0 || i2 >= w[2].in) return false;
  const float *line = t->x + p->image * t->last.image_stride + i1 * t->last.axis_stride[1];
  for (int64_t r = 0; r < n; r++)
    rows[r] = i2 + r >= 0 && i2 + r < w[2].in ? line + (i2 + r) * t->last.axis_stride[2] : t->zeros;
  return true;
}

/* n pixels of the line from `column` on, some taps at a time: the sums of later ones go on where those before ended,
 * and the clamp comes with the last. */
static void conv_transpose_kernel_run_tile(const transposed *t, const phase_line *p, const gemm_tile *of_line,
                                           const float *weight, int64_t column, int64_t n) {
  const float *rows[TAPS_AT_ONCE * GEMM_ROWS], *panels[TAPS_AT_ONCE];
  gemm_tile tile = *of_line;
  tile.rows = rows;
  tile.panels = panels;
  tile.low = -INFINITY;
  tile.high = INFINITY;
  for (int64_t k = 0; k < p->n_down * p->n_across; k++) {
    const int64_t down = p->down[k / p->n_across], across = p->across[k % p->n_across];
    if (tile.taps == TAPS_AT_ONCE) {
      gemm_tile_run(&tile, n);
      tile.bias = tile.out;
      tile.bias_stride = tile.out_stride;
      tile.taps = 0;
    }
    if (!fill_rows(t, p, down, across, column, n, rows + tile.taps * n)) continue;
    panels[tile.taps++] = weight + (down * t->last.window.axis[2].kernel + across) * t->last.channels * VF_PANEL;
  }
  tile.low = t->epilogue.low;
  tile.high = t->epilogue.high;
  gemm_tile_run(&tile, n);
}

static void conv_transpose_kernel_run_panel(const transposed *t, const phase_line *p, int64_t panel) {
  const berth__window_axis *w = t->last.window.axis;
  const int64_t left = t->last.outputs - panel * VF_PANEL, outputs = t->last.outputs;
  const int64_t pixels = conv_transpose_kernel_ceil_div(w[2].out - p->column, w[2].stride);
  gemm_tiles tiles = gemm_tiles_of(pixels, gemm_tile_height(pixels, t->last.axis_stride[2]));
  const float *weight = t->weight + panel * w[1].kernel * w[2].kernel * t->last.channels * VF_PANEL;
  gemm_tile tile = {.depth = t->last.channels,
                    .panel = weight,
                    .bias = t->bias != NULL ? t->bias + panel * VF_PANEL : NULL,
                    .out_stride = w[2].stride * outputs,
                    .columns = left < VF_PANEL ? left : VF_PANEL};
  float *out = t->out + (p->image * w[1].out + p->row) * w[2].out * outputs + panel * VF_PANEL;
  for (int64_t pixel = 0, n; pixel < pixels; pixel += n) {
    const int64_t column = p->column + pixel * w[2].stride;
    n = gemm_tiles_next(&tiles);
    tile.out = out + column * outputs;
    conv_transpose_kernel_run_tile(t, p, &tile, weight, column, n);
  }
}

static void conv_transpose_kernel_run_item(const transposed *t, int64_t item) {
  const berth__window_axis *w = t->last.window.axis;
  const int64_t phase = item / t->blocks % t->phases, first = item % t->blocks * t->steps;
  phase_line p = {.image = item / t->blocks / t->phases};
  p.n_down = taps_on(&w[1], phase, p.down);
  for (p.column = 0; p.column < w[2].stride && p.column < w[2].out; p.column++) {
    p.n_across = taps_on(&w[2], p.column, p.across);
    for (int64_t panel = 0; panel < t->panels; panel++)
      for (int64_t line = first; line < first + t->steps; line++) {
        p.row = phase + line * w[1].stride;
        if (p.row < w[1].out) conv_transpose_kernel_run_panel(t, &p, panel);
      }
  }
  for (int64_t line = first; line < first + t->steps; line++) {
    const int64_t row = phase + line * w[1].stride;
    if (row < w[1].out)
      epilogue_finish(&t->epilogue, (p.image * w[1].out + row) * w[2].out, w[2].out, 0, t->last.outputs);
  }
}

static berth_status conv_transpose_kernel_run(const berth_op_call *call, berth_error *err) {
  transposed t;
  (void)err;
  conv_transpose_kernel_read_shape(call, &t);
  t.x = call->in[0].data;
  t.weight = call->in[1].data;
  t.bias = t.last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  t.out = call->out[0].data;
  t.zeros = berth__cpu_zeros_in(call->scratch, conv_transpose_kernel_zeros_size(&t.last));
  epilogue_read(&t.epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE],
                &call->attrs[BERTH__LAST_NUMBERS]);
  for (int64_t item = call->begin; item < call->end; item++) conv_transpose_kernel_run_item(&t, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_transpose)[] = {
    {"conv_transpose_last", BERTH__OP_conv_transpose_last, conv_transpose_kernel_takes, conv_transpose_kernel_items,
     conv_transpose_kernel_grain, conv_transpose_kernel_scratch, conv_transpose_kernel_run, NULL, false, NULL},
    {0},
};
