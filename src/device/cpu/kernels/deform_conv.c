/* deform_conv of f32: for a piece of an output line, the samples of every tap in every channel are found and lie as a
 * matrix in scratch (im2col), of which the results are a product. Positions are computed in f64, as in the reference
 * kernel. */
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/vec.h"
#include "ops/conv.h"
#include "ops/operand.h"

#define ROWS 4       /* results together */
#define WORTH 100000 /* products of elements that are worth a thread */

typedef struct deformed {
  berth__window_axis w[2]; /* down, across */
  int64_t images, channels, outputs, groups, offset_groups;
  int64_t taps, each;       /* each: samples that one result sees */
  int64_t plane, out_plane; /* elements of a channel */
  int64_t pieces;           /* of a line of the result */
} deformed;

static void deform_kernel_read(const berth_op_call *call, deformed *d) {
  const berth_tensor *x = &call->in[BERTH__DEFORM_X], *weight = &call->in[BERTH__DEFORM_WEIGHT];
  berth__conv conv;
  berth__conv_read(call, &conv);
  *d = (deformed){.w = {conv.window.axis[1], conv.window.axis[2]},
                  .images = x->dim[0],
                  .channels = x->dim[1],
                  .outputs = weight->dim[0],
                  .groups = call->attrs[BERTH__CONV_GROUP].i,
                  .offset_groups = call->attrs[BERTH__DEFORM_OFFSET_GROUP].i,
                  .taps = weight->dim[2] * weight->dim[3],
                  .each = weight->dim[1] * weight->dim[2] * weight->dim[3],
                  .plane = x->dim[2] * x->dim[3]};
  d->out_plane = d->w[0].out * d->w[1].out;
  d->pieces = (d->w[1].out + VF_PANEL - 1) / VF_PANEL;
}

static bool deform_kernel_takes(const berth_op_call *call) {
  return call->in[BERTH__DEFORM_X].type == BERTH_F32 && call->in[BERTH__DEFORM_X].dim[1] > 0;
}

static int64_t deform_kernel_items(const berth_op_call *call) {
  deformed d;
  deform_kernel_read(call, &d);
  return d.images * d.w[0].out * d.pieces;
}

static int64_t deform_kernel_grain(const berth_op_call *call) {
  deformed d;
  deform_kernel_read(call, &d);
  return WORTH / (d.outputs * d.each * VF_PANEL + 1) + 1;
}

static uint64_t deform_kernel_scratch(const berth_op_call *call) {
  deformed d;
  deform_kernel_read(call, &d);
  return (uint64_t)(d.channels * d.taps) * VF_PANEL * sizeof(float);
}

/* ---- Samples ---- */

/* The samples of a tap: the elements around each (-1: outside, which counts as 0), their weights, and a factor. */
typedef struct deform_samples {
  int64_t from[VF_PANEL][4];
  float weight[VF_PANEL][4], factor[VF_PANEL];
  bool inside[VF_PANEL];
} deform_samples;

static int64_t deform_kernel_element(const deformed *d, int64_t row, int64_t column) {
  const bool inside = row >= 0 && row < d->w[0].in && column >= 0 && column < d->w[1].in;
  return inside ? row * d->w[1].in + column : -1;
}

static void deform_kernel_place(const deformed *d, double y, double z, deform_samples *s, int64_t i) {
  s->inside[i] = y > -1 && y < (double)d->w[0].in && z > -1 && z < (double)d->w[1].in;
  if (!s->inside[i]) return;
  const double top = floor(y), left = floor(z), down = y - top, right = z - left;
  const int64_t row = (int64_t)top, column = (int64_t)left;
  for (int k = 0; k < 4; k++) {
    s->from[i][k] = deform_kernel_element(d, row + k / 2, column + k % 2);
    s->weight[i][k] = (float)((k / 2 != 0 ? down : 1 - down) * (k % 2 != 0 ? right : 1 - right));
  }
}

/* Of n columns from `column` on. */
static void deform_kernel_find(const berth_op_call *call, const deformed *d, int64_t entry, int64_t tap, int64_t row,
                               int64_t column, int64_t n, deform_samples *s) {
  const bool has_mask = berth__call_has(call, BERTH__DEFORM_MASK);
  const int64_t at = row * d->w[1].out + column;
  const float *down = (const float *)call->in[BERTH__DEFORM_OFFSET].data + 2 * entry * d->out_plane + at;
  const float *mask = has_mask ? (const float *)call->in[BERTH__DEFORM_MASK].data + entry * d->out_plane + at : NULL;
  const double y = (double)berth__window_input(&d->w[0], row, tap / d->w[1].kernel);
  for (int64_t i = 0; i < n; i++) {
    const double z = (double)berth__window_input(&d->w[1], column + i, tap % d->w[1].kernel);
    deform_kernel_place(d, y + (double)down[i], z + (double)down[d->out_plane + i], s, i);
    s->factor[i] = has_mask ? mask[i] : 1;
  }
}

static void deform_kernel_look(const float *x, const deform_samples *s, int64_t n, float *seen) {
  for (int64_t i = 0; i < n; i++) {
    float sum = 0;
    for (int k = 0; k < 4 && s->inside[i]; k++) sum += s->weight[i][k] * (s->from[i][k] >= 0 ? x[s->from[i][k]] : 0);
    seen[i] = s->factor[i] * sum;
  }
  for (int64_t i = n; i < VF_PANEL; i++) seen[i] = 0;
}

static void deform_kernel_see(const berth_op_call *call, const deformed *d, int64_t image, int64_t row, int64_t column,
                              int64_t n) {
  const int64_t channels = d->channels / d->offset_groups;
  deform_samples s;
  for (int64_t group = 0; group < d->offset_groups; group++)
    for (int64_t tap = 0; tap < d->taps; tap++) {
      deform_kernel_find(call, d, (image * d->offset_groups + group) * d->taps + tap, tap, row, column, n, &s);
      for (int64_t c = group * channels; c < (group + 1) * channels; c++)
        deform_kernel_look((const float *)call->in[BERTH__DEFORM_X].data + (image * d->channels + c) * d->plane, &s, n,
                           (float *)call->scratch + (c * d->taps + tap) * VF_PANEL);
    }
}

/* ---- Products ---- */

typedef struct deform_rows {
  const float *weight, *seen, *bias; /* bias NULL: none */
  float *out;
  int64_t each, stride; /* of weights, and of results */
  int64_t n;            /* columns */
} deform_rows;

INLINED void deform_kernel_multiply(const deform_rows *p, const int n_rows) {
  vf sum[ROWS][2];
  UNROLL_FEW for (int r = 0; r < n_rows; r++) sum[r][0] = sum[r][1] = vf_set1(p->bias != NULL ? p->bias[r] : 0.0f);
  for (int64_t k = 0; k < p->each; k++) {
    const vf left = vf_load(p->seen + k * VF_PANEL), right = vf_load(p->seen + k * VF_PANEL + VF_LANES);
    UNROLL_FEW for (int r = 0; r < n_rows; r++) {
      const vf by = vf_set1(p->weight[r * p->each + k]);
      sum[r][0] = vf_fma(by, left, sum[r][0]);
      sum[r][1] = vf_fma(by, right, sum[r][1]);
    }
  }
  UNROLL_FEW for (int r = 0; r < n_rows; r++) {
    float *out = p->out + r * p->stride;
    vf_store_n(out, sum[r][0], vf_tail(p->n));
    if (p->n > VF_LANES) vf_store_n(out + VF_LANES, sum[r][1], p->n - VF_LANES);
  }
}

static void deform_kernel_weigh(const berth_op_call *call, const deformed *d, float *out, int64_t n) {
  const float *bias = berth__call_has(call, BERTH__DEFORM_BIAS) ? call->in[BERTH__DEFORM_BIAS].data : NULL;
  const int64_t outputs = d->outputs / d->groups;
  for (int64_t group = 0; group < d->groups; group++)
    for (int64_t at = 0, rows; at < outputs; at += rows) {
      const int64_t output = group * outputs + at;
      const deform_rows p = {.weight = (const float *)call->in[BERTH__DEFORM_WEIGHT].data + output * d->each,
                             .seen = (const float *)call->scratch + group * d->each * VF_PANEL,
                             .bias = bias != NULL ? bias + output : NULL,
                             .out = out + output * d->out_plane,
                             .each = d->each,
                             .stride = d->out_plane,
                             .n = n};
      rows = outputs - at < ROWS ? 1 : ROWS;
      if (rows == ROWS)
        deform_kernel_multiply(&p, ROWS);
      else
        deform_kernel_multiply(&p, 1);
    }
}

static berth_status deform_kernel_run(const berth_op_call *call, berth_error *err) {
  deformed d;
  (void)err;
  deform_kernel_read(call, &d);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t column = item % d.pieces * VF_PANEL, row = item / d.pieces % d.w[0].out;
    const int64_t image = item / d.pieces / d.w[0].out, left = d.w[1].out - column;
    const int64_t n = left < VF_PANEL ? left : VF_PANEL;
    deform_kernel_see(call, &d, image, row, column, n);
    deform_kernel_weigh(call, &d,
                        (float *)call->out[0].data + image * d.outputs * d.out_plane + row * d.w[1].out + column, n);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_deform_conv)[] = {
    {.name = "deform_conv",
     .code = BERTH__OP_deform_conv,
     .takes = deform_kernel_takes,
     .items = deform_kernel_items,
     .grain = deform_kernel_grain,
     .scratch = deform_kernel_scratch,
     .run = deform_kernel_run},
    {0},
};
