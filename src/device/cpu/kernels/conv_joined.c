/* conv_transpose_last with `joined` weights. The result is cut into cells of a stride by a stride, of which each needs
 * ceil(kernel / stride) elements of x along an axis: all pixels of a cell are columns of one product. Few outputs fill
 * vectors this way. Sums of some cells are computed in registers, and then spread over the lines of the result. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/gemm_tile.h"
#include "device/cpu/zeros.h"

#define ITEM_CELLS (2 * GEMM_ROWS) /* lines are taken together up to about this */

typedef struct joined {
  berth__last last;
  int64_t first[BERTH__WINDOW_AXES], cells[BERTH__WINDOW_AXES]; /* of the result, along an axis */
  int64_t reach[BERTH__WINDOW_AXES];                            /* elements of x that a cell needs */
  int64_t taps, columns, panels;
  int64_t lines, blocks; /* of cells: per item; items per image */
  const float *x, *weight, *zeros;
  float *out;
  float *bias, *results; /* for all columns; of a tile */
  epilogue_form epilogue;
} joined;

static int64_t conv_joined_kernel_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void conv_joined_kernel_read_shape(const berth_op_call *call, joined *j) {
  berth__last_read(call, &j->last);
  j->taps = 1;
  j->columns = j->last.outputs;
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) {
    const berth__window_axis *w = &j->last.window.axis[k];
    j->reach[k] = conv_joined_kernel_ceil_div(w->kernel, w->stride);
    j->first[k] = w->begin / w->stride;
    j->cells[k] = (w->begin + w->out - 1) / w->stride + 1 - j->first[k];
    j->taps *= j->reach[k];
    j->columns *= w->stride;
  }
  j->panels = conv_joined_kernel_ceil_div(j->columns, VF_PANEL);
  j->lines = conv_joined_kernel_ceil_div(ITEM_CELLS, j->cells[2]);
  if (j->lines > j->cells[1]) j->lines = j->cells[1];
  j->blocks = conv_joined_kernel_ceil_div(j->cells[1], j->lines);
}

static bool conv_joined_kernel_takes(const berth_op_call *call) {
  joined j;
  if (call->attrs[BERTH__LAST_JOINED].i == 0 || !conv_takes(call)) return false;
  if (call->attrs[BERTH__LAST_PANEL].i != VF_PANEL || call->in[0].rank > 4) return false;
  conv_joined_kernel_read_shape(call, &j);
  return j.taps <= BERTH__MOST_JOINED_TAPS;
}

static int64_t conv_joined_kernel_items(const berth_op_call *call) {
  joined j;
  conv_joined_kernel_read_shape(call, &j);
  return j.last.images * j.blocks;
}

/* About 12 microseconds of work. */
static int64_t conv_joined_kernel_grain(const berth_op_call *call) {
  joined j;
  conv_joined_kernel_read_shape(call, &j);
  return 1 + 600000 / (j.lines * j.cells[2] * j.panels * (j.taps * j.last.channels * VF_PANEL + VF_PANEL) + 1);
}

static uint64_t conv_joined_kernel_zeros_size(const berth__last *last) {
  return ((uint64_t)last->channels * sizeof(float) + 63) / 64 * 64;
}

static uint64_t conv_joined_kernel_scratch(const berth_op_call *call) {
  joined j;
  conv_joined_kernel_read_shape(call, &j);
  return berth__cpu_zeros_scratch(conv_joined_kernel_zeros_size(&j.last)) +
         (uint64_t)((1 + GEMM_ROWS) * j.panels * VF_PANEL) * sizeof(float);
}

/* Where one element of x is for each of n cells of a line, the first of which is `column`: those `down` and `across`
 * elements before the cell. */
static void conv_joined_kernel_fill_rows(const joined *j, const float *image, int64_t line, int64_t column, int64_t n,
                                         int64_t down, int64_t across, const float **rows) {
  const berth__window_axis *w = j->last.window.axis;
  const int64_t i1 = j->first[1] + line - down, i2 = j->first[2] + column - across;
  int64_t begin = i2 < 0 ? -i2 : 0, end = w[2].in - i2, r = 0;
  if (end > n) end = n;
  if (i1 < 0 || i1 >= w[1].in || begin > end) begin = end = n;
  for (; r < begin; r++) rows[r] = j->zeros;
  for (; r < end; r++) rows[r] = image + i1 * j->last.axis_stride[1] + (i2 + r) * j->last.axis_stride[2];
  for (; r < n; r++) rows[r] = j->zeros;
}

/* n runs of `run` elements, from results that are `step` apart: with a constant run when this is inlined. */
static inline __attribute__((always_inline)) void conv_joined_kernel_copy(float *to, const float *from,
                                                                          const size_t run, int64_t step, int64_t n) {
  for (int64_t r = 0; r < n; r++) memcpy(to + r * (int64_t)run, from + r * step, run * sizeof *to);
}

static void conv_joined_kernel_copy_runs(float *to, const float *from, int64_t run, int64_t step, int64_t n) {
  switch (run) {
    case 2: conv_joined_kernel_copy(to, from, 2, step, n); break;
    case 4: conv_joined_kernel_copy(to, from, 4, step, n); break;
    case 6: conv_joined_kernel_copy(to, from, 6, step, n); break;
    case 8: conv_joined_kernel_copy(to, from, 8, step, n); break;
    case 16: conv_joined_kernel_copy(to, from, 16, step, n); break;
    default: conv_joined_kernel_copy(to, from, (size_t)run, step, n);
  }
}

/* One line of pixels of n cells, from `column` on. The first and the last cell of a line may be cut off. */
static void conv_joined_kernel_spread(const joined *j, float *line, const float *results, int64_t column, int64_t n) {
  const berth__window_axis *w = &j->last.window.axis[2];
  const int64_t outputs = j->last.outputs, step = j->panels * VF_PANEL;
  const int64_t at = (j->first[2] + column) * w->stride - w->begin; /* of the first cell's first pixel */
  int64_t begin = 0, end = n;
  for (; begin < end && at + begin * w->stride < 0; begin++) {
    const int64_t cut = -(at + begin * w->stride), left = w->stride - cut < w->out ? w->stride - cut : w->out;
    memcpy(line, results + begin * step + cut * outputs, (size_t)(left * outputs) * sizeof *line);
  }
  for (; begin < end && at + end * w->stride > w->out; end--) {
    const int64_t pixel = at + (end - 1) * w->stride;
    memcpy(line + pixel * outputs, results + (end - 1) * step, (size_t)((w->out - pixel) * outputs) * sizeof *line);
  }
  conv_joined_kernel_copy_runs(line + (at + begin * w->stride) * outputs, results + begin * step, w->stride * outputs,
                               step, end - begin);
}

/* n cells of one line, whose sums are in `results`. */
static void conv_joined_kernel_store(const joined *j, int64_t image, int64_t line, int64_t column, int64_t n,
                                     const float *results) {
  const berth__window_axis *w = j->last.window.axis;
  for (int64_t k = 0; k < w[1].stride; k++) {
    const int64_t row = (j->first[1] + line) * w[1].stride + k - w[1].begin;
    if (row >= 0 && row < w[1].out)
      conv_joined_kernel_spread(j, j->out + (image * w[1].out + row) * w[2].out * j->last.outputs,
                                results + k * w[2].stride * j->last.outputs, column, n);
  }
}

/* n cells from number `cell` on, counted along the lines of an image. */
static void conv_joined_kernel_run_tile(const joined *j, int64_t image, int64_t cell, int64_t n) {
  const float *rows[BERTH__MOST_JOINED_TAPS * GEMM_ROWS], *x = j->x + image * j->last.image_stride;
  for (int64_t done = 0, some; done < n; done += some) {
    const int64_t line = (cell + done) / j->cells[2], column = (cell + done) % j->cells[2];
    some = n - done < j->cells[2] - column ? n - done : j->cells[2] - column;
    for (int64_t tap = 0; tap < j->taps; tap++)
      conv_joined_kernel_fill_rows(j, x, line, column, some, tap / j->reach[2], tap % j->reach[2],
                                   rows + tap * n + done);
  }
  gemm_tile tile = {.rows = rows,
                    .taps = j->taps,
                    .depth = j->last.channels,
                    .out_stride = j->panels * VF_PANEL,
                    .low = j->epilogue.low,
                    .high = j->epilogue.high};
  for (int64_t panel = 0; panel < j->panels; panel++) {
    const int64_t left = j->columns - panel * VF_PANEL;
    tile.panel = j->weight + panel * j->taps * j->last.channels * VF_PANEL;
    tile.bias = j->bias + panel * VF_PANEL;
    tile.out = j->results + panel * VF_PANEL;
    tile.columns = left < VF_PANEL ? left : VF_PANEL;
    gemm_tile_run(&tile, n);
  }
  for (int64_t done = 0, some; done < n; done += some) {
    const int64_t line = (cell + done) / j->cells[2], column = (cell + done) % j->cells[2];
    some = n - done < j->cells[2] - column ? n - done : j->cells[2] - column;
    conv_joined_kernel_store(j, image, line, column, some, j->results + done * j->panels * VF_PANEL);
  }
}

static void conv_joined_kernel_run_item(const joined *j, int64_t item) {
  const berth__window_axis *w = j->last.window.axis;
  const int64_t image = item / j->blocks, line = item % j->blocks * j->lines;
  const int64_t end = line + j->lines < j->cells[1] ? line + j->lines : j->cells[1];
  gemm_tiles tiles =
      gemm_tiles_of((end - line) * j->cells[2], gemm_tile_height((end - line) * j->cells[2], j->last.axis_stride[2]));
  for (int64_t cell = line * j->cells[2], n; cell < end * j->cells[2]; cell += n) {
    n = gemm_tiles_next(&tiles);
    conv_joined_kernel_run_tile(j, image, cell, n);
  }
  int64_t row = (j->first[1] + line) * w[1].stride - w[1].begin, until = (j->first[1] + end) * w[1].stride - w[1].begin;
  if (row < 0) row = 0;
  if (until > w[1].out) until = w[1].out;
  epilogue_finish(&j->epilogue, (image * w[1].out + row) * w[2].out, (until - row) * w[2].out, 0, j->last.outputs);
}

static berth_status conv_joined_kernel_run(const berth_op_call *call, berth_error *err) {
  joined j;
  (void)err;
  conv_joined_kernel_read_shape(call, &j);
  const uint64_t zeros = conv_joined_kernel_zeros_size(&j.last);
  j.x = call->in[0].data;
  j.weight = call->in[1].data;
  j.out = call->out[0].data;
  j.zeros = berth__cpu_zeros_in(call->scratch, zeros);
  j.bias = berth__cpu_after_zeros(call->scratch, zeros);
  j.results = j.bias + j.panels * VF_PANEL;
  const float *bias = j.last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  for (int64_t column = 0; column < j.panels * VF_PANEL; column++)
    j.bias[column] = bias != NULL && column < j.columns ? bias[column % j.last.outputs] : 0;
  epilogue_read(&j.epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE],
                &call->attrs[BERTH__LAST_NUMBERS]);
  for (int64_t item = call->begin; item < call->end; item++) conv_joined_kernel_run_item(&j, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_joined)[] = {
    {"conv_transpose_joined", BERTH__OP_conv_transpose_last, conv_joined_kernel_takes, conv_joined_kernel_items,
     conv_joined_kernel_grain, conv_joined_kernel_scratch, conv_joined_kernel_run, NULL, false, NULL},
    {0},
};
