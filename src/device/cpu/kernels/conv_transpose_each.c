/* conv_transpose_last where every channel has its own kernel, one vector of channels at a time. Pixels of a line that
 * are a stride apart see the same taps: tiles of up to TILE of them share the weights, with a table of where each tap
 * of each pixel lies in x. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/vec.h"
#include "device/cpu/zeros.h"

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif
#define INLINED static inline __attribute__((always_inline))
#define TILE 8

typedef struct each {
  berth__last last;
  const float *x, *weight, *bias, *zeros;
  float *out;
  epilogue_form epilogue;
} each;

/* Some pixels of a line, `step` elements of the result apart, and the taps that fall on them. */
typedef struct pixels {
  const float *rows[BERTH__MOST_EACH_TAPS * TILE], *weights[BERTH__MOST_EACH_TAPS];
  int64_t taps, step;
  float *out;
} pixels;

static int64_t most_taps(const berth__window_axis *w) {
  const int64_t n = (w->kernel + w->stride - 1) / w->stride;
  return w->dilation == 1 ? n : w->kernel;
}

static bool conv_transpose_each_kernel_takes(const berth_op_call *call) {
  berth__last last;
  if (call->attrs[BERTH__LAST_EACH].i == 0 || !conv_takes(call) || call->in[0].rank > 4) return false;
  berth__last_read(call, &last);
  return most_taps(&last.window.axis[1]) * most_taps(&last.window.axis[2]) <= BERTH__MOST_EACH_TAPS;
}

/* Items are lines of the result. */
static int64_t conv_transpose_each_kernel_items(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return last.images * last.window.axis[1].out;
}

/* About 12 microseconds of work. */
static int64_t conv_transpose_each_kernel_grain(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const berth__window_axis *w = last.window.axis;
  return 1 + 250000 / (w[2].out * last.channels * (1 + most_taps(&w[1]) * most_taps(&w[2])) + 1);
}

static uint64_t conv_transpose_each_kernel_zeros_size(const berth__last *last) {
  return ((uint64_t)last->channels * sizeof(float) + 63) / 64 * 64;
}

static uint64_t conv_transpose_each_kernel_scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return berth__cpu_zeros_scratch(conv_transpose_each_kernel_zeros_size(&last));
}

/* `whole` is a constant when these are inlined; if it is false, `left` channels remain. */
INLINED vf each_load(const float *p, const bool whole, int64_t left) { return whole ? vf_load(p) : vf_load_n(p, left); }
INLINED void each_store(float *p, vf x, const bool whole, int64_t left) {
  if (whole)
    vf_store(p, x);
  else
    vf_store_n(p, x, left);
}

INLINED void each_channels(const each *e, const pixels *p, const int n, const bool whole, int64_t channel,
                           int64_t left) {
  const vf low = vf_set1(e->epilogue.low), high = vf_set1(e->epilogue.high);
  const vf first = e->bias != NULL ? each_load(e->bias + channel, whole, left) : vf_zero();
  vf sum[TILE];
  UNROLLED for (int r = 0; r < n; r++) sum[r] = first;
  for (int64_t tap = 0; tap < p->taps; tap++) {
    const vf w = each_load(p->weights[tap] + channel, whole, left);
    UNROLLED for (int r = 0; r < n; r++) sum[r] =
        vf_fma(each_load(p->rows[tap * n + r] + channel, whole, left), w, sum[r]);
  }
  UNROLLED for (int r = 0; r < n; r++)
      each_store(p->out + r * p->step + channel, vf_min(high, vf_max(low, sum[r])), whole, left);
}

#define INSTANCE(n)                                                                                               \
  static void each_##n(const each *e, const pixels *p) {                                                          \
    int64_t channel = 0;                                                                                          \
    for (; channel + VF_LANES <= e->last.channels; channel += VF_LANES) each_channels(e, p, n, true, channel, 0); \
    if (channel < e->last.channels) each_channels(e, p, n, false, channel, e->last.channels - channel);           \
  }
INSTANCE(1)
INSTANCE(2)
INSTANCE(3)
INSTANCE(4)
INSTANCE(5)
INSTANCE(6)
INSTANCE(7)
INSTANCE(8)

static void (*const instances[TILE])(const each *, const pixels *) = {each_1, each_2, each_3, each_4,
                                                                      each_5, each_6, each_7, each_8};

static bool falls_on(const berth__window_axis *w, int64_t at, int64_t tap) {
  return (at + w->begin - tap * w->dilation) % w->stride == 0;
}

/* The n pixels of a line from `column` on, a stride apart. */
static void each_run_tile(const each *e, int64_t image, int64_t row, int64_t column, int64_t n) {
  const berth__window_axis *w = e->last.window.axis;
  const int64_t channels = e->last.channels, *stride = e->last.axis_stride;
  pixels p; /* its tables are large, and filled as far as there are taps */
  p.step = w[2].stride * channels;
  p.taps = 0;
  p.out = e->out + ((image * w[1].out + row) * w[2].out + column) * channels;
  for (int64_t down = 0; down < w[1].kernel; down++) {
    const int64_t line = berth__last_source(&w[1], row, down);
    if (line < 0) continue;
    for (int64_t across = 0; across < w[2].kernel; across++) {
      if (!falls_on(&w[2], column, across)) continue;
      const int64_t at = (column + w[2].begin - across * w[2].dilation) / w[2].stride;
      if (at + n <= 0 || at >= w[2].in) continue;
      const float *from = e->x + image * e->last.image_stride + line * stride[1];
      for (int64_t r = 0; r < n; r++)
        p.rows[p.taps * n + r] = at + r >= 0 && at + r < w[2].in ? from + (at + r) * stride[2] : e->zeros;
      p.weights[p.taps++] = e->weight + (down * w[2].kernel + across) * channels;
    }
  }
  instances[n - 1](e, &p);
}

static void conv_transpose_each_kernel_run_line(const each *e, int64_t item) {
  const berth__window_axis *w = e->last.window.axis;
  const int64_t image = item / w[1].out, row = item % w[1].out;
  for (int64_t phase = 0; phase < w[2].stride && phase < w[2].out; phase++) {
    const int64_t count = (w[2].out - phase + w[2].stride - 1) / w[2].stride;
    for (int64_t first = 0, n; first < count; first += n) {
      n = count - first < TILE ? count - first : TILE;
      each_run_tile(e, image, row, phase + first * w[2].stride, n);
    }
  }
  epilogue_finish(&e->epilogue, item * w[2].out, w[2].out, 0, e->last.channels);
}

static berth_status conv_transpose_each_kernel_run(const berth_op_call *call, berth_error *err) {
  each e;
  (void)err;
  berth__last_read(call, &e.last);
  e.x = call->in[0].data;
  e.weight = call->in[1].data;
  e.bias = e.last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  e.out = call->out[0].data;
  e.zeros = berth__cpu_zeros_in(call->scratch, conv_transpose_each_kernel_zeros_size(&e.last));
  epilogue_read(&e.epilogue, call, BERTH__LAST_EXTRA, &call->attrs[BERTH__LAST_CODE],
                &call->attrs[BERTH__LAST_NUMBERS]);
  for (int64_t item = call->begin; item < call->end; item++) conv_transpose_each_kernel_run_line(&e, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_transpose_each)[] = {
    {"conv_transpose_each", BERTH__OP_conv_transpose_last, conv_transpose_each_kernel_takes,
     conv_transpose_each_kernel_items, conv_transpose_each_kernel_grain, conv_transpose_each_kernel_scratch,
     conv_transpose_each_kernel_run, NULL, false, NULL},
    {0},
};
