/* conv_transpose with channels first, for f32: grouped ones, those with three spatial axes, and all others that are not
 * channels last. A line of the result is computed phase by phase: elements that are one stride apart meet the same
 * taps, so that a tap is a sum of neighbouring elements of x; in the end the phases are interleaved. Lines of x are
 * copied between zeros first, so that sums stay in registers for all taps and no tap needs border cases. */
#include "device/cpu/kernels/vec.h"
#include "ops/conv.h"
#include "ops/operand.h"

#define MOST_LINES 8 /* of x, added together */

/* A tap of the last axis: element i of its phase reads element i - shift of x. */
typedef struct across {
  int64_t tap, phase, shift;
} across;

typedef struct transposing {
  berth__conv c;
  int64_t length, room;   /* per phase: elements; rounded up to whole vectors */
  int64_t left, line;     /* per line with its zeros: those before it; the whole line */
  int64_t each, channels; /* per group: outputs and inputs */
  float *sums, *lines;    /* a line of the result, phase by phase; MOST_LINES lines of x */
  across *taps;           /* phase by phase */
} transposing;

/* The lines of x that contribute to a line of the result, and their weights. */
typedef struct falling {
  const float *from[MOST_LINES], *weight[MOST_LINES];
  int64_t n;
} falling;

static int64_t phase_length(const berth__window_axis *w) { return (w->out + w->stride - 1) / w->stride; }

static across across_of(const berth__window_axis *w, int64_t tap) {
  const int64_t place = tap * w->dilation - w->begin, phase = (place % w->stride + w->stride) % w->stride;
  return (across){tap, phase, (place - phase) / w->stride};
}

static void transposed_lines_read(const berth_op_call *call, transposing *t) {
  berth__conv_read_transposed(call, &t->c);
  const berth__window_axis *w = &t->c.window.axis[2];
  const int64_t first = across_of(w, 0).shift, last = across_of(w, w->kernel - 1).shift;
  t->length = phase_length(w);
  t->room = (t->length + 2 * VF_LANES - 1) / (2 * VF_LANES) * (2 * VF_LANES);
  t->left = last > 0 ? last : 0;
  t->line = t->left + (w->in > t->room - first ? w->in : t->room - first);
  t->each = call->in[1].dim[1];
  t->channels = call->in[0].dim[1] / call->attrs[BERTH__CONV_GROUP].i;
}

/* Scratch is a line rounded up to whole strides, and lines of x between zeros. Limited to strides and windows that
 * models have. */
static bool transposed_lines_takes(const berth_op_call *call) {
  transposing t;
  if (call->in[0].type != BERTH_F32 || berth__count(&call->in[0]) == 0 || berth__count(&call->in[1]) == 0) return false;
  transposed_lines_read(call, &t);
  const berth__window_axis *w = &t.c.window.axis[2];
  return w->stride <= 2 * w->out + 64 && t.line <= 4 * (w->in + w->out) + 256;
}

/* Lines along the last axis. */
static int64_t transposed_lines_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  return berth__count(out) / out->dim[out->rank - 1];
}

static uint64_t transposed_lines_scratch(const berth_op_call *call) {
  transposing t;
  transposed_lines_read(call, &t);
  const berth__window_axis *w = &t.c.window.axis[2];
  return (uint64_t)w->kernel * sizeof(across) + (uint64_t)(w->stride * t.room + MOST_LINES * t.line) * sizeof(float);
}

/* Tables and zeros, once for all lines of a worker. */
static void transposed_lines_prepare(const berth_op_call *call, transposing *t) {
  const berth__window_axis *w = &t->c.window.axis[2];
  int64_t n = 0;
  t->taps = call->scratch;
  t->sums = (float *)(void *)(t->taps + w->kernel);
  t->lines = t->sums + w->stride * t->room;
  for (int64_t phase = 0; phase < w->stride; phase++)
    for (int64_t tap = 0; tap < w->kernel; tap++) {
      const across a = across_of(w, tap);
      if (a.phase == phase) t->taps[n++] = a;
    }
  memset(t->lines, 0, (size_t)(MOST_LINES * t->line) * sizeof(float));
}

/* The input whose window puts tap `tap` on the element `at`; -1: none. */
static int64_t transposed_lines_input(const berth__window_axis *w, int64_t at, int64_t tap) {
  const int64_t shifted = at + w->begin - tap * w->dilation;
  return shifted < 0 || shifted % w->stride != 0 || shifted / w->stride >= w->in ? -1 : shifted / w->stride;
}

/* n taps of one phase over all lines, for one or two vectors of it: a constant when this is inlined. */
static inline __attribute__((always_inline)) void add_vectors(const transposing *t, const falling *f,
                                                              const across *taps, int64_t n, int64_t i,
                                                              const bool both) {
  float *sums = t->sums + taps->phase * t->room + i;
  vf low = vf_load(sums), high = both ? vf_load(sums + VF_LANES) : low;
  for (int64_t k = 0; k < f->n; k++)
    for (int64_t tap = 0; tap < n; tap++) {
      const float *x = t->lines + k * t->line + t->left + i - taps[tap].shift;
      const vf by = vf_set1(f->weight[k][taps[tap].tap]);
      low = vf_fma(by, vf_load(x), low);
      if (both) high = vf_fma(by, vf_load(x + VF_LANES), high);
    }
  vf_store(sums, low);
  if (both) vf_store(sums + VF_LANES, high);
}

static void add_phase(const transposing *t, const falling *f, const across *taps, int64_t n) {
  int64_t i = 0;
  for (; i + VF_LANES < t->length; i += 2 * VF_LANES) add_vectors(t, f, taps, n, i, true);
  if (i < t->length) add_vectors(t, f, taps, n, i, false);
}

/* Adds the contributions to a line, one channel of x after the other. */
static void add_lines(const transposing *t, const falling *f) {
  const berth__window_axis *w = &t->c.window.axis[2];
  falling at = *f;
  for (int64_t channel = 0; channel < t->channels && f->n > 0; channel++) {
    for (int64_t k = 0; k < f->n; k++)
      memcpy(t->lines + k * t->line + t->left, f->from[k] + channel * t->c.area, (size_t)w->in * sizeof(float));
    for (int64_t first = 0, end; first < w->kernel; first = end) {
      for (end = first + 1; end < w->kernel && t->taps[end].phase == t->taps[first].phase;) end++;
      add_phase(t, &at, t->taps + first, end - first);
    }
    for (int64_t k = 0; k < f->n; k++) at.weight[k] += t->each * t->c.taps;
  }
}

static void interleave(const transposing *t, float *out) {
  const int64_t stride = t->c.window.axis[2].stride, n = t->c.window.axis[2].out;
  const float *sums = t->sums, *odd = t->sums + t->room;
  if (stride == 1) {
    memcpy(out, sums, (size_t)n * sizeof *out);
    return;
  }
  if (stride == 2) {
    for (int64_t i = 0; i < n / 2; i++) {
      out[2 * i] = sums[i];
      out[2 * i + 1] = odd[i];
    }
    if (n % 2 != 0) out[n - 1] = sums[n / 2];
    return;
  }
  for (int64_t phase = 0; phase < stride; phase++)
    for (int64_t i = 0; i * stride + phase < n; i++) out[i * stride + phase] = sums[phase * t->room + i];
}

static void make_line(const berth_op_call *call, const transposing *t, int64_t item) {
  const berth__window_axis *w = t->c.window.axis;
  const berth__window_line at = berth__window_line_of(&t->c.window, call->out[0].dim[1], item);
  const int64_t group = at.channel / t->each;
  const float *x = (const float *)call->in[0].data + (at.image * call->in[0].dim[1] + group * t->channels) * t->c.area;
  const float *weight =
      (const float *)call->in[1].data + (group * t->channels * t->each + at.channel % t->each) * t->c.taps;
  const float bias =
      berth__call_has(call, BERTH__CONV_BIAS) ? ((const float *)call->in[BERTH__CONV_BIAS].data)[at.channel] : 0;
  falling f = {.n = 0};
  for (int64_t i = 0; i < t->room * w[2].stride; i++) t->sums[i] = bias;
  for (int64_t t0 = 0; t0 < w[0].kernel; t0++) {
    const int64_t i0 = transposed_lines_input(&w[0], at.plane, t0);
    for (int64_t t1 = 0; i0 >= 0 && t1 < w[1].kernel; t1++) {
      const int64_t i1 = transposed_lines_input(&w[1], at.row, t1);
      if (i1 < 0) continue;
      f.from[f.n] = x + (i0 * w[1].in + i1) * w[2].in;
      f.weight[f.n++] = weight + (t0 * w[1].kernel + t1) * w[2].kernel;
      if (f.n < MOST_LINES) continue;
      add_lines(t, &f);
      f.n = 0;
    }
  }
  add_lines(t, &f);
  interleave(t, (float *)call->out[0].data + item * w[2].out);
}

static berth_status transposed_lines_run(const berth_op_call *call, berth_error *err) {
  transposing t;
  (void)err;
  transposed_lines_read(call, &t);
  transposed_lines_prepare(call, &t);
  for (int64_t item = call->begin; item < call->end; item++) make_line(call, &t, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_transposed_lines)[] = {
    {.name = "conv_transpose lines",
     .code = BERTH__OP_conv_transpose,
     .takes = transposed_lines_takes,
     .items = transposed_lines_items,
     .scratch = transposed_lines_scratch,
     .run = transposed_lines_run},
    {0},
};
