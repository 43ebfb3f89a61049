/* deform_conv, in two kernels: the samples of every tap in every channel at every output position go to scratch, and
 * are then weighted. All output channels share these samples. */
#include "kernel/lower/math.h"
#include "ops/conv.h"

/* Samples are stored in scratch as [N, C, taps, out...]. */
typedef struct deforming {
  berth__lowering *l;
  berth__kernel *k;
  const berth__window_axis *w; /* two axes */
  int64_t images, channels, taps, area;
} deforming;

static int64_t seen_count(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__DEFORM_X], *weight = &call->in[BERTH__DEFORM_WEIGHT], *out = &call->out[0];
  return x->dim[0] * x->dim[1] * weight->dim[2] * weight->dim[3] * out->dim[2] * out->dim[3];
}

uint64_t berth__scratch_of_deform_conv(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  return (uint64_t)seen_count(call) * 4;
}

/* ---- Sampling ---- */

/* The index of a thread's element in [N, C, taps, out rows, out columns]. */
enum {
  AT_IMAGE,
  AT_CHANNEL,
  AT_TAP,
  AT_ROW,
  AT_COLUMN,
  AT_RANK
};

/* Element (`each` * group's tap + `part`) of a map [N, groups * taps * each, out...]. */
static berth__x map_entry(const deforming *d, uint32_t operand, const berth__x *at, int64_t each, int64_t part) {
  berth__kernel *k = d->k;
  const int64_t channels_each = d->channels / d->l->call->attrs[BERTH__DEFORM_OFFSET_GROUP].i;
  const berth__x group = berth__x_div(k, at[AT_CHANNEL], berth__x_i32(k, channels_each));
  const berth__x tap = berth__x_add(k, berth__x_affine(k, group, d->taps, 0), at[AT_TAP]);
  const berth__x place[4] = {at[AT_IMAGE], berth__x_affine(k, tap, each, part), at[AT_ROW], at[AT_COLUMN]};
  return berth__l_load(d->l, k, operand, berth__l_place(k, &d->l->call->in[operand], place));
}

/* The position of a tap on one axis before its offset is added. */
static berth__x tap_place(const deforming *d, uint32_t axis, berth__x at, berth__x tap) {
  const berth__window_axis *w = &d->w[axis];
  const berth__x place =
      berth__x_add(d->k, berth__x_affine(d->k, at, w->stride, -w->begin), berth__x_affine(d->k, tap, w->dilation, 0));
  return berth__x_convert(d->k, BERTH__NUM_F32, place);
}

static berth__x lower_deform_conv_element_or_0(const deforming *d, const berth__x *at, berth__x row, berth__x column) {
  berth__kernel *k = d->k;
  const berth__x zero = berth__x_i32(k, 0), last_row = berth__x_i32(k, d->w[0].in - 1),
                 last_column = berth__x_i32(k, d->w[1].in - 1);
  const berth__x place[4] = {at[AT_IMAGE], at[AT_CHANNEL], berth__x_max(k, berth__x_min(k, row, last_row), zero),
                             berth__x_max(k, berth__x_min(k, column, last_column), zero)};
  const berth__x value =
      berth__l_load(d->l, k, BERTH__DEFORM_X, berth__l_place(k, &d->l->call->in[BERTH__DEFORM_X], place));
  const berth__x is_there = berth__x_and(k, berth__x_eq(k, place[2], row), berth__x_eq(k, place[3], column));
  return berth__x_select(k, is_there, value, berth__x_f32(k, 0.0f));
}

/* part * b + (1 - part) * a */
static berth__x mixed(berth__kernel *k, berth__x part, berth__x a, berth__x b) {
  const berth__x rest = berth__x_sub(k, berth__x_f32(k, 1.0f), part);
  return berth__m_fma(k, part, b, berth__x_mul(k, rest, a));
}

/* Interpolates between four elements. */
static berth__x between(const deforming *d, const berth__x *at, berth__x y, berth__x z) {
  berth__kernel *k = d->k;
  const berth__x top = berth__x1(k, BERTH__INST_floor, y), left = berth__x1(k, BERTH__INST_floor, z);
  const berth__x row = berth__x_convert(k, BERTH__NUM_I32, top), column = berth__x_convert(k, BERTH__NUM_I32, left);
  const berth__x down = berth__x_sub(k, y, top), right = berth__x_sub(k, z, left);
  const berth__x row_below = berth__x_affine(k, row, 1, 1), next = berth__x_affine(k, column, 1, 1);
  const berth__x upper = mixed(k, right, lower_deform_conv_element_or_0(d, at, row, column),
                               lower_deform_conv_element_or_0(d, at, row, next));
  const berth__x lower = mixed(k, right, lower_deform_conv_element_or_0(d, at, row_below, column),
                               lower_deform_conv_element_or_0(d, at, row_below, next));
  return mixed(k, down, upper, lower);
}

static berth__x is_near(berth__kernel *k, berth__x x, int64_t extent) {
  return berth__x_and(k, berth__m_above(k, x, -1.0f), berth__m_below(k, x, (float)extent));
}

static berth_status lower_deform_conv_look(deforming *d, berth_error *err) {
  const int64_t dim[AT_RANK] = {d->images, d->channels, d->taps, d->w[0].out, d->w[1].out};
  berth__x at[AT_RANK];
  berth__kernel *k = d->k = berth__l_begin(d->l, "look");
  const berth__x index = berth__l_each(d->l, k, seen_count(d->l->call)), width = berth__x_i32(k, d->w[1].kernel);
  berth__l_unravel(k, index, AT_RANK, dim, at);
  const berth__x y = berth__x_add(k, tap_place(d, 0, at[AT_ROW], berth__x_div(k, at[AT_TAP], width)),
                                  map_entry(d, BERTH__DEFORM_OFFSET, at, 2, 0));
  const berth__x z = berth__x_add(k, tap_place(d, 1, at[AT_COLUMN], berth__x_rem(k, at[AT_TAP], width)),
                                  map_entry(d, BERTH__DEFORM_OFFSET, at, 2, 1));
  const berth__x seen = berth__x_variable(k, berth__x_f32(k, 0.0f));
  berth__x_if(k, berth__x_and(k, is_near(k, y, d->w[0].in), is_near(k, z, d->w[1].in)));
  berth__x_set(k, seen, between(d, at, y, z));
  berth__x_end(k);
  berth__x value = berth__x_get(k, seen);
  if (berth__l_has(d->l, BERTH__DEFORM_MASK))
    value = berth__x_mul(k, value, map_entry(d, BERTH__DEFORM_MASK, at, 1, 0));
  berth__x_store(k, berth__l_scratch(k, BERTH_F32), index, value);
  return berth__l_end(d->l, k, err);
}

/* ---- Weighting ---- */

static berth_status lower_deform_conv_weigh(deforming *d, berth_error *err) {
  const berth_tensor *weight = &d->l->call->in[BERTH__DEFORM_WEIGHT], *out = &d->l->call->out[0];
  const int64_t outputs_each = weight->dim[0] / d->l->call->attrs[BERTH__CONV_GROUP].i;
  const int64_t each = weight->dim[1] * d->taps; /* taps of all channels of a group */
  berth__x at[4];
  berth__kernel *k = d->k = berth__l_begin(d->l, "weigh");
  berth__l_unravel(k, berth__l_each(d->l, k, berth__count(out)), 4, out->dim, at);
  const berth__x point = berth__x_add(k, berth__x_affine(k, at[2], d->w[1].out, 0), at[3]);
  const berth__x group = berth__x_div(k, at[1], berth__x_i32(k, outputs_each));
  const berth__x first =
      berth__x_add(k, berth__x_affine(k, at[0], d->channels * d->taps, 0), berth__x_affine(k, group, each, 0));
  const bool has_bias = berth__l_has(d->l, BERTH__DEFORM_BIAS);
  const berth__x sum =
      berth__x_variable(k, has_bias ? berth__l_load(d->l, k, BERTH__DEFORM_BIAS, at[1]) : berth__x_f32(k, 0.0f));
  const berth__x i = berth__x_loop_n(k, each);
  const berth__x seen =
      berth__x_load(k, berth__l_scratch(k, BERTH_F32),
                    berth__x_add(k, berth__x_affine(k, berth__x_add(k, first, i), d->area, 0), point));
  const berth__x factor =
      berth__l_load(d->l, k, BERTH__DEFORM_WEIGHT, berth__x_add(k, berth__x_affine(k, at[1], each, 0), i));
  berth__x_set(k, sum, berth__m_fma(k, seen, factor, berth__x_get(k, sum)));
  berth__x_end(k);
  berth__l_store(d->l, k, 0, berth__l_place(k, out, at), berth__x_get(k, sum));
  return berth__l_end(d->l, k, err);
}

berth_status berth__lower_deform_conv(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *x = &call->in[BERTH__DEFORM_X], *weight = &call->in[BERTH__DEFORM_WEIGHT], *out = &call->out[0];
  const berth__window_attrs attributes = berth__conv_window(call->attrs);
  berth__window window;
  berth__window_read(&window, &attributes, 2, x->dim + 2, weight->dim + 2, out->dim + 2);
  deforming d = {.l = l,
                 .w = window.axis + 1,
                 .images = x->dim[0],
                 .channels = x->dim[1],
                 .taps = weight->dim[2] * weight->dim[3],
                 .area = out->dim[2] * out->dim[3]};
  if (seen_count(call) > INT32_MAX)
    return berth__fail(err, BERTH_UNSUPPORTED, "its taps see more elements than the 2^31 that kernels count");
  if (seen_count(call) != 0) BERTH__TRY(lower_deform_conv_look(&d, err));
  return lower_deform_conv_weigh(&d, err);
}
