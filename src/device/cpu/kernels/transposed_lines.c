/* conv_transpose with channels first, f32: grouped ones, those with three spatial axes, and all others that are not
 * channels last. A line of the result is made phase by phase: elements that lie one stride apart meet the same taps, so
 * that a tap is a sum of neighbouring elements of x; in the end the phases lie between each other. */
#include "device/cpu/kernels/vec.h"
#include "ops/conv.h"
#include "ops/operand.h"

/* Scratch is a line that is filled up to whole strides; a stride that is longer than that is no model's. */
static bool transposed_lines_takes(const berth_op_call *call) {
  berth__conv c;
  if (call->in[0].type != BERTH_F32 || berth__count(&call->in[0]) == 0 || berth__count(&call->in[1]) == 0) return false;
  berth__conv_read_transposed(call, &c);
  return c.window.axis[2].stride <= 2 * c.window.axis[2].out + 64;
}

/* Lines along the last axis. */
static int64_t transposed_lines_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  return berth__count(out) / out->dim[out->rank - 1];
}

static int64_t phase_length(const berth__window_axis *w) { return (w->out + w->stride - 1) / w->stride; }

static uint64_t transposed_lines_scratch(const berth_op_call *call) {
  berth__conv c;
  berth__conv_read_transposed(call, &c);
  return (uint64_t)(phase_length(&c.window.axis[2]) * c.window.axis[2].stride) * sizeof(float);
}

/* The input whose window puts tap `tap` on the element `at`; -1: none does. */
static int64_t transposed_lines_input(const berth__window_axis *w, int64_t at, int64_t tap) {
  const int64_t shifted = at + w->begin - tap * w->dilation;
  return shifted < 0 || shifted % w->stride != 0 || shifted / w->stride >= w->in ? -1 : shifted / w->stride;
}

static inline void add_scaled(float *restrict sum, const float *restrict x, float factor, int64_t n) {
  const vf by = vf_set1(factor);
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES) vf_store(sum + i, vf_fma(by, vf_load(x + i), vf_load(sum + i)));
  if (i < n) vf_store_n(sum + i, vf_fma(by, vf_load_n(x + i, n - i), vf_load_n(sum + i, n - i)), n - i);
}

/* One tap of all channels of a group into its phase. */
static void add_tap(const berth_op_call *call, const berth__conv *c, const float *x, const float *weight, int64_t each,
                    int64_t channels, int64_t tap, int64_t tap_x) {
  const berth__window_axis *w = &c->window.axis[2];
  const int64_t length = phase_length(w), place = tap_x * w->dilation - w->begin;
  const int64_t phase = (place % w->stride + w->stride) % w->stride, shift = (place - phase) / w->stride;
  const int64_t in_phase = (w->out - phase + w->stride - 1) / w->stride; /* elements of the result */
  const int64_t first = shift < 0 ? -shift : 0, end = w->in < in_phase - shift ? w->in : in_phase - shift;
  float *sum = (float *)call->scratch + phase * length + shift;
  if (end <= first) return;
  for (int64_t channel = 0; channel < channels; channel++)
    add_scaled(sum + first, x + channel * c->area + first, weight[channel * each * c->taps + tap], end - first);
}

static void interleave(const float *sums, int64_t length, int64_t stride, float *out, int64_t n) {
  if (stride == 1) {
    memcpy(out, sums, (size_t)n * sizeof *out);
    return;
  }
  for (int64_t phase = 0; phase < stride; phase++)
    for (int64_t i = 0; i * stride + phase < n; i++) out[i * stride + phase] = sums[phase * length + i];
}

static void make_line(const berth_op_call *call, const berth__conv *c, int64_t item) {
  const berth_tensor *x = &call->in[0], *weight = &call->in[1];
  const berth__window_axis *w = c->window.axis;
  const int64_t each = weight->dim[1], channels = x->dim[1] / call->attrs[BERTH__CONV_GROUP].i;
  const berth__window_line at = berth__window_line_of(&c->window, call->out[0].dim[1], item);
  const int64_t group = at.channel / each, length = phase_length(&w[2]);
  const float bias =
      berth__call_has(call, BERTH__CONV_BIAS) ? ((const float *)call->in[BERTH__CONV_BIAS].data)[at.channel] : 0;
  float *sums = call->scratch;
  for (int64_t i = 0; i < length * w[2].stride; i++) sums[i] = bias;
  for (int64_t tap = 0; tap < c->taps; tap++) {
    int64_t t[BERTH__WINDOW_AXES];
    berth__window_tap(&c->window, tap, t);
    const int64_t i0 = transposed_lines_input(&w[0], at.plane, t[0]), i1 = transposed_lines_input(&w[1], at.row, t[1]);
    if (i0 < 0 || i1 < 0) continue;
    const float *from =
        (const float *)x->data + (at.image * x->dim[1] + group * channels) * c->area + (i0 * w[1].in + i1) * w[2].in;
    add_tap(call, c, from, (const float *)weight->data + (group * channels * each + at.channel % each) * c->taps, each,
            channels, tap, t[2]);
  }
  interleave(sums, length, w[2].stride, (float *)call->out[0].data + item * w[2].out, w[2].out);
}

static berth_status transposed_lines_run(const berth_op_call *call, berth_error *err) {
  berth__conv c;
  (void)err;
  berth__conv_read_transposed(call, &c);
  for (int64_t item = call->begin; item < call->end; item++) make_line(call, &c, item);
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
