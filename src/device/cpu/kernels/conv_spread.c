/* conv_transpose_last with windows that do not overlap, and so few outputs that all taps fit into one panel: a product
 * with a column for every tap and output, whose results are spread over the lines of the window. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/gemm_tile.h"

typedef struct spread {
  berth__last last;
  int64_t columns; /* taps times outputs */
  const float *x;
  float *out;
  epilogue_form epilogue;
} spread;

/* The panel made of the weights; the bias for its columns; the results of a tile. */
typedef struct worker {
  float *panel, *bias, *results;
} worker;

static bool conv_spread_kernel_takes(const berth_op_call *call) {
  berth__last last;
  if (!conv_takes(call) || call->attrs[BERTH__LAST_PANEL].i != VF_PANEL || call->in[0].rank > 4) return false;
  berth__last_read(call, &last);
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) {
    const berth__window_axis *w = &last.window.axis[k];
    if (w->kernel != w->stride || w->dilation != 1 || w->begin != 0 || w->out != w->in * w->stride) return false;
  }
  return berth__window_taps(&last.window) * last.outputs <= VF_PANEL;
}

/* Items are lines of x. */
static int64_t conv_spread_kernel_items(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return last.images * last.window.axis[1].in;
}

static int64_t conv_spread_kernel_grain(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return 1 + 400000 / (last.window.axis[2].in * (last.channels + VF_PANEL) * VF_LANES + 1);
}

static uint64_t conv_spread_kernel_scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return (uint64_t)((last.channels + 1 + GEMM_ROWS) * VF_PANEL) * sizeof(float);
}

/* Columns are tap-major: the taps of a line of the window come out next to each other. */
static void fill_panel(const spread *s, const berth_op_call *call, const worker *w) {
  const float *weight = call->in[1].data, *bias = s->last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  const int64_t channels = s->last.channels, outputs = s->last.outputs;
  memset(w->panel, 0, (size_t)(channels * VF_PANEL) * sizeof(float));
  memset(w->bias, 0, VF_PANEL * sizeof(float));
  for (int64_t column = 0; column < s->columns; column++) {
    const int64_t tap = column / outputs, output = column % outputs;
    if (bias != NULL) w->bias[column] = bias[output];
    for (int64_t c = 0; c < channels; c++)
      w->panel[c * VF_PANEL + column] = weight[(tap * channels + c) * VF_PANEL + output];
  }
}

/* n runs of `run` elements, from results that are a panel apart. */
static void copy_runs(float *to, const float *from, int64_t run, int64_t n) {
  if (run == 2)
    for (int64_t r = 0; r < n; r++) memcpy(to + 2 * r, from + r * VF_PANEL, 2 * sizeof *to);
  else
    for (int64_t r = 0; r < n; r++)
      for (int64_t i = 0; i < run; i++) to[r * run + i] = from[r * VF_PANEL + i];
}

/* Results of n pixels from `column` of a line of x on. */
static void spread_results(const spread *s, const worker *w, int64_t line, int64_t column, int64_t n) {
  const berth__window_axis *axis = s->last.window.axis;
  const int64_t run = axis[2].kernel * s->last.outputs, width = axis[2].out * s->last.outputs;
  for (int64_t k = 0; k < axis[1].kernel; k++)
    copy_runs(s->out + (line * axis[1].stride + k) * width + column * run, w->results + k * run, run, n);
}

static void conv_spread_kernel_run_line(const spread *s, const worker *w, int64_t line) {
  const berth__window_axis *axis = s->last.window.axis;
  const float *x = s->x + line / axis[1].in * s->last.image_stride + line % axis[1].in * s->last.axis_stride[1];
  gemm_tiles tiles = gemm_tiles_of(axis[2].in, gemm_tile_height(axis[2].in, s->last.axis_stride[2]));
  const float *rows[GEMM_ROWS];
  const gemm_tile tile = {.rows = rows,
                          .taps = 1,
                          .depth = s->last.channels,
                          .panel = w->panel,
                          .bias = w->bias,
                          .out = w->results,
                          .out_stride = VF_PANEL,
                          .columns = s->columns,
                          .low = s->epilogue.low,
                          .high = s->epilogue.high};
  for (int64_t column = 0, n; column < axis[2].in; column += n) {
    n = gemm_tiles_next(&tiles);
    for (int64_t r = 0; r < n; r++) rows[r] = x + (column + r) * s->last.axis_stride[2];
    gemm_tile_run(&tile, n);
    spread_results(s, w, line, column, n);
  }
  const int64_t pixels = axis[1].stride * axis[2].out;
  epilogue_finish(&s->epilogue, line * pixels, pixels, 0, s->last.outputs);
}

static berth_status conv_spread_kernel_run(const berth_op_call *call, berth_error *err) {
  spread s;
  (void)err;
  berth__last_read(call, &s.last);
  s.columns = berth__window_taps(&s.last.window) * s.last.outputs;
  s.x = call->in[0].data;
  s.out = call->out[0].data;
  epilogue_read(&s.epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE],
                &call->attrs[BERTH__LAST_NUMBERS]);
  float *memory = call->scratch;
  const worker w = {.panel = memory,
                    .bias = memory + s.last.channels * VF_PANEL,
                    .results = memory + (s.last.channels + 1) * VF_PANEL};
  fill_panel(&s, call, &w);
  for (int64_t item = call->begin; item < call->end; item++) conv_spread_kernel_run_line(&s, &w, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_spread)[] = {
    {"conv_transpose_spread", BERTH__OP_conv_transpose_last, conv_spread_kernel_takes, conv_spread_kernel_items,
     conv_spread_kernel_grain, conv_spread_kernel_scratch, conv_spread_kernel_run, NULL, false, NULL},
    {0},
};
