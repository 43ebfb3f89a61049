/* conv_transpose of f32 whose kernel is as large as its strides, with channels first, as in networks for volumes: every
 * element of x makes a cell of the result that no other element reaches, so the cells of neighbouring elements are a
 * product, spread out afterwards. */
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/vec.h"
#include "ops/conv.h"
#include "ops/operand.h"

#define ROWS 4       /* elements of a cell together */
#define WORTH 400000 /* products of elements that are worth a thread */

typedef struct cells {
  berth__conv c;
  int64_t channels, rows; /* rows: elements of a cell, over all outputs */
  int64_t plane;          /* of a channel of the result */
  int64_t blocks;         /* of VF_PANEL elements of a channel of x */
} cells;

static void cells_kernel_read(const berth_op_call *call, cells *k) {
  berth__conv_read_transposed(call, &k->c);
  const berth__window_axis *w = k->c.window.axis;
  k->channels = call->in[0].dim[1];
  k->rows = call->in[1].dim[1] * k->c.taps;
  k->plane = w[0].out * w[1].out * w[2].out;
  k->blocks = (k->c.area + VF_PANEL - 1) / VF_PANEL;
}

static bool cells_kernel_takes(const berth_op_call *call) {
  cells k;
  if (call->in[0].type != BERTH_F32 || call->attrs[BERTH__CONV_GROUP].i != 1 || berth__count(&call->in[0]) == 0 ||
      berth__count(&call->in[1]) == 0)
    return false;
  cells_kernel_read(call, &k);
  for (int axis = 0; axis < BERTH__WINDOW_AXES; axis++) {
    const berth__window_axis *w = &k.c.window.axis[axis];
    if (w->kernel != w->stride || (w->dilation != 1 && w->kernel > 1) || w->begin != 0 || w->out != w->in * w->stride)
      return false;
  }
  return true;
}

static int64_t cells_kernel_items(const berth_op_call *call) {
  cells k;
  cells_kernel_read(call, &k);
  return call->in[0].dim[0] * k.blocks;
}

static int64_t cells_kernel_grain(const berth_op_call *call) {
  cells k;
  cells_kernel_read(call, &k);
  return WORTH / (k.rows * k.channels * VF_PANEL + 1) + 1;
}

/* n_rows and is_whole are constants; is_whole: VF_PANEL elements of x, otherwise n. */
INLINED void cells_kernel_multiply(const cells *k, const float *x, const float *weight, const int n_rows,
                                   const bool is_whole, int64_t n, float sums[ROWS][VF_PANEL]) {
  vf sum[ROWS][2];
  UNROLL_FEW for (int r = 0; r < n_rows; r++) sum[r][0] = sum[r][1] = vf_zero();
  for (int64_t c = 0; c < k->channels; c++, x += k->c.area, weight += k->rows) {
    const vf left = is_whole ? vf_load(x) : vf_load_n(x, vf_tail(n));
    const vf right = is_whole       ? vf_load(x + VF_LANES)
                     : n > VF_LANES ? vf_load_n(x + VF_LANES, n - VF_LANES)
                                    : vf_zero();
    UNROLL_FEW for (int r = 0; r < n_rows; r++) {
      const vf by = vf_set1(weight[r]);
      sum[r][0] = vf_fma(by, left, sum[r][0]);
      sum[r][1] = vf_fma(by, right, sum[r][1]);
    }
  }
  UNROLL_FEW for (int r = 0; r < n_rows; r++) {
    vf_store(sums[r], sum[r][0]);
    vf_store(sums[r] + VF_LANES, sum[r][1]);
  }
}

/* Where the cells of n elements begin, from element `first` of a channel on. */
static void cells_kernel_find(const cells *k, int64_t first, int64_t n, int64_t *at) {
  const berth__window_axis *w = k->c.window.axis;
  for (int64_t i = 0; i < n; i++) {
    const int64_t element = first + i, line = element / w[2].in;
    at[i] = (line / w[1].in * w[0].stride * w[1].out + line % w[1].in * w[1].stride) * w[2].out +
            element % w[2].in * w[2].stride;
  }
}

static void cells_kernel_run_item(const berth_op_call *call, const cells *k, int64_t item) {
  const berth__window_axis *w = k->c.window.axis;
  const int64_t image = item / k->blocks, first = item % k->blocks * VF_PANEL, left = k->c.area - first;
  const int64_t n = left < VF_PANEL ? left : VF_PANEL;
  const float *x = (const float *)call->in[0].data + image * k->channels * k->c.area + first;
  const float *bias = berth__call_has(call, BERTH__CONV_BIAS) ? call->in[BERTH__CONV_BIAS].data : NULL;
  float *out = (float *)call->out[0].data + image * (k->rows / k->c.taps) * k->plane;
  float sums[ROWS][VF_PANEL];
  int64_t at[VF_PANEL];
  cells_kernel_find(k, first, n, at);
  for (int64_t row = 0, n_rows; row < k->rows; row += n_rows) {
    const float *weight = (const float *)call->in[1].data + row;
    n_rows = k->rows - row < ROWS ? 1 : ROWS;
    if (n_rows == ROWS && n == VF_PANEL)
      cells_kernel_multiply(k, x, weight, ROWS, true, n, sums);
    else if (n_rows == ROWS)
      cells_kernel_multiply(k, x, weight, ROWS, false, n, sums);
    else
      cells_kernel_multiply(k, x, weight, 1, false, n, sums);
    for (int64_t r = 0; r < n_rows; r++) {
      const int64_t output = (row + r) / k->c.taps, tap = (row + r) % k->c.taps, line = tap / w[2].kernel;
      float *to =
          out + output * k->plane + (line / w[1].kernel * w[1].out + line % w[1].kernel) * w[2].out + tap % w[2].kernel;
      const float add = bias != NULL ? bias[output] : 0;
      for (int64_t i = 0; i < n; i++) to[at[i]] = sums[r][i] + add;
    }
  }
}

static berth_status cells_kernel_run(const berth_op_call *call, berth_error *err) {
  cells k;
  (void)err;
  cells_kernel_read(call, &k);
  for (int64_t item = call->begin; item < call->end; item++) cells_kernel_run_item(call, &k, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_transpose_cells)[] = {
    {.name = "conv_transpose cells",
     .code = BERTH__OP_conv_transpose,
     .takes = cells_kernel_takes,
     .items = cells_kernel_items,
     .grain = cells_kernel_grain,
     .run = cells_kernel_run},
    {0},
};
