/* conv_weight_grad of a depthwise convolution, channels last: vectors run over channels, and each element of dy is
 * multiplied with the elements of x that each tap sees there. */
#include "ops/conv_weight_grad.h"

#include "device/cpu/kernels/vec.h"

#define MOST_TAPS 64
#define BESIDE 4 /* independent sums */

static bool weight_grad_kernel_takes(const berth_op_call *call) {
  berth__weight_grad g;
  berth__weight_grad_of(call, &g);
  return call->in[BERTH__WEIGHT_GRAD_X].type == BERTH_F32 && g.group == g.channels && g.outputs == g.channels &&
         g.x.channel == 1 && g.dy.channel == 1 && g.taps <= MOST_TAPS;
}

static int64_t weight_grad_kernel_items(const berth_op_call *call) {
  berth__weight_grad g;
  berth__weight_grad_of(call, &g);
  return (g.channels + VF_LANES - 1) / VF_LANES;
}

/* Some channels of a line of x and of dy: n positions with these strides. */
static vf weight_grad_kernel_line(const float *x, int64_t x_step, const float *dy, int64_t dy_step, int64_t n,
                                  int64_t lanes) {
  vf sum[BESIDE] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
  int64_t i = 0;
  for (; lanes == VF_LANES && i + BESIDE <= n; i += BESIDE)
    for (int64_t k = 0; k < BESIDE; k++)
      sum[k] = vf_fma(vf_load(x + (i + k) * x_step), vf_load(dy + (i + k) * dy_step), sum[k]);
  for (; i < n; i++) sum[0] = vf_fma(vf_load_n(x + i * x_step, lanes), vf_load_n(dy + i * dy_step, lanes), sum[0]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Adds the products of one line of dy to the sums of every tap. */
static void weight_grad_kernel_add(const berth__weight_grad *g, const float *x, const float *dy, int64_t o0, int64_t o1,
                                   int64_t lanes, vf *sums) {
  const berth__window_axis *w = g->window.axis;
  for (int64_t tap = 0; tap < g->taps; tap++) {
    int64_t t[BERTH__WINDOW_AXES], first, last;
    berth__window_tap(&g->window, tap, t);
    const int64_t i0 = berth__window_input(&w[0], o0, t[0]), i1 = berth__window_input(&w[1], o1, t[1]);
    berth__window_span(&w[2], t[2], w[2].out, w[2].in, &first, &last);
    if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in || first >= last) continue;
    const int64_t i2 = berth__window_input(&w[2], first, t[2]);
    const float *seen = x + i0 * g->x.axis[0] + i1 * g->x.axis[1] + i2 * g->x.axis[2];
    sums[tap] += weight_grad_kernel_line(seen, w[2].stride * g->x.axis[2], dy + first * g->dy.axis[2], g->dy.axis[2],
                                         last - first, lanes);
  }
}

/* Sums within an image are f32, those over all images f64. */
static void weight_grad_kernel_item(const berth_op_call *call, const berth__weight_grad *g, int64_t channel) {
  const int64_t lanes = vf_tail(g->channels - channel);
  double total[MOST_TAPS][VF_LANES] = {{0}};
  for (int64_t image = 0; image < g->images; image++) {
    const float *x = (const float *)call->in[BERTH__WEIGHT_GRAD_X].data + image * g->x.image + channel;
    const float *dy = (const float *)call->in[BERTH__WEIGHT_GRAD_DY].data + image * g->dy.image + channel;
    vf sums[MOST_TAPS];
    for (int64_t tap = 0; tap < g->taps; tap++) sums[tap] = vf_zero();
    for (int64_t o0 = 0; o0 < g->window.axis[0].out; o0++)
      for (int64_t o1 = 0; o1 < g->window.axis[1].out; o1++)
        weight_grad_kernel_add(g, x, dy + o0 * g->dy.axis[0] + o1 * g->dy.axis[1], o0, o1, lanes, sums);
    for (int64_t tap = 0; tap < g->taps; tap++) {
      float some[VF_LANES];
      vf_store(some, sums[tap]);
      for (int64_t i = 0; i < VF_LANES; i++) total[tap][i] += (double)some[i];
    }
  }
  float *to = (float *)call->out[0].data + channel * g->taps;
  for (int64_t i = 0; i < lanes; i++)
    for (int64_t tap = 0; tap < g->taps; tap++) to[i * g->taps + tap] = (float)total[tap][i];
}

static berth_status weight_grad_kernel_run(const berth_op_call *call, berth_error *err) {
  berth__weight_grad g;
  (void)err;
  berth__weight_grad_of(call, &g);
  for (int64_t item = call->begin; item < call->end; item++) weight_grad_kernel_item(call, &g, item * VF_LANES);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_weight_grad)[] = {
    {.name = "conv_weight_grad",
     .code = BERTH__OP_conv_weight_grad,
     .takes = weight_grad_kernel_takes,
     .items = weight_grad_kernel_items,
     .run = weight_grad_kernel_run},
    {0},
};
