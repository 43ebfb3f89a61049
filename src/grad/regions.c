/* Gradients of pooling over regions: roi_align and max_roi_pool, expanded. */
#include "grad/grad.h"

/* A column of regions, [R, 1]. */
static berth_value grad_corner(berth__grad *d, berth_value regions, int64_t column, double scale) {
  return berth__grad_scale(d, berth__grad_narrow(d, regions, 1, column, column + 1), scale);
}

/* 0, 1, ... of a float type, with an offset and a factor. */
static berth_value grad_steps(berth__grad *d, berth_type type, int64_t n, double plus, double times) {
  const berth_value bounds[] = {berth__grad_scalar(d, type, 0), berth__grad_scalar(d, type, (double)n),
                                berth__grad_scalar(d, type, 1)};
  const berth_value count = berth__grad_op(d, BERTH__OP_range, bounds, 3, NULL, 0);
  return berth__grad_scale(d, berth__grad_num(d, BERTH__OP_add, count, plus), times);
}

/* The images of all regions, [R, C, H, W]. */
static berth_value grad_region_images(berth__grad *d, berth_value x, berth_value images) {
  return berth__grad_2(d, BERTH__OP_gather, x, images);
}

/* ---- roi_align ---- */

typedef struct grad_aligned {
  int64_t bins[2], samples, extent[2], points;      /* vertically and horizontally; points per region */
  berth_value low[2], high[2], fraction[2], inside; /* [R, points] each */
} grad_aligned;

/* Positions of all samples of an axis: [R, bins * samples]. */
static berth_value grad_aligned_positions(berth__grad *d, const grad_aligned *s, uint32_t axis) {
  const berth_value regions = berth__grad_in(d, BERTH__ROI_ALIGN_REGIONS);
  const double scale = d->node.attrs[BERTH__ROI_ALIGN_SPATIAL_SCALE].f;
  const bool shifts = d->node.attrs[BERTH__ROI_ALIGN_HALF_PIXEL].i != 0;
  const double shift = shifts ? 0.5 : 0;
  const int64_t column = axis == 0 ? 1 : 0;
  const berth_value start = berth__grad_num(d, BERTH__OP_sub, grad_corner(d, regions, column, scale), shift);
  const berth_value end = berth__grad_num(d, BERTH__OP_sub, grad_corner(d, regions, column + 2, scale), shift);
  berth_value length = berth__grad_sub(d, end, start);
  if (!shifts) length = berth__grad_num(d, BERTH__OP_max, length, 1);
  const berth_value steps = grad_steps(d, berth__grad_type(d, regions), s->bins[axis] * s->samples, 0.5,
                                       1 / (double)(s->bins[axis] * s->samples));
  return berth__grad_add(d, start, berth__grad_mul(d, length, steps));
}

/* The two elements around each sample of an axis, for every point of a region. */
static void grad_aligned_axis(berth__grad *d, grad_aligned *s, uint32_t axis) {
  const berth_value x = berth__grad_in(d, BERTH__ROI_ALIGN_X);
  const double last = (double)(s->extent[axis] - 1);
  const int64_t other = axis == 0 ? -1 : 1,
                n = berth__grad_shape(d, berth__grad_in(d, BERTH__ROI_ALIGN_REGIONS)).dim[0];
  const berth_dim all[] = {{NULL, n}, {NULL, s->bins[0] * s->samples}, {NULL, s->bins[1] * s->samples}};
  const berth_attr shape = berth_attr_dims("shape", all, 3);
  const berth__shape flat = {.rank = 2, .dim = {n, s->points}};
  berth_value at = berth__grad_unsqueeze(d, grad_aligned_positions(d, s, axis), &other, 1);
  at = berth__grad_reshape(d, berth__grad_op(d, BERTH__OP_expand, &at, 1, &shape, 1), &flat);
  at = berth__grad_cast(d, at, berth__grad_type(d, x));
  const berth_value inside = berth__grad_2(d, BERTH__OP_and, berth__grad_num(d, BERTH__OP_ge, at, -1),
                                           berth__grad_num(d, BERTH__OP_le, at, last + 1));
  s->inside = axis == 0 ? inside : berth__grad_2(d, BERTH__OP_and, s->inside, inside);
  at = berth__grad_num(d, BERTH__OP_max, at, 0);
  const berth_value low = berth__grad_num(d, BERTH__OP_min, berth__grad_1(d, BERTH__OP_floor, at), last);
  const berth_value is_last = berth__grad_num(d, BERTH__OP_ge, low, last);
  s->fraction[axis] =
      berth__grad_where(d, is_last, berth__grad_scalar(d, berth__grad_type(d, x), 0), berth__grad_sub(d, at, low));
  s->low[axis] = berth__grad_cast(d, low, BERTH_I64);
  const berth_value high = berth__grad_num(d, BERTH__OP_min, berth__grad_num(d, BERTH__OP_add, low, 1), last);
  s->high[axis] = berth__grad_cast(d, high, BERTH_I64);
}

/* One of the four elements around every sample, times its weight: [R, C, points]. */
static berth_value grad_aligned_look(berth__grad *d, const grad_aligned *s, berth_value images, uint32_t which) {
  const berth__shape shape = berth__grad_shape(d, images);
  const int64_t middle = 1;
  const bool is_down = which / 2 != 0, is_right = which % 2 != 0;
  const berth_attr along = berth_attr_int("axis", 2);
  const berth_dim spread[] = {{NULL, shape.dim[0]}, {NULL, shape.dim[1]}, {NULL, s->points}};
  const berth_attr to = berth_attr_dims("shape", spread, 3);
  berth_value place = berth__grad_scale(d, is_down ? s->high[0] : s->low[0], (double)s->extent[1]);
  place = berth__grad_unsqueeze(d, berth__grad_add(d, place, is_right ? s->high[1] : s->low[1]), &middle, 1);
  const berth_value in[] = {images, berth__grad_op(d, BERTH__OP_expand, &place, 1, &to, 1)};
  const berth_value down = is_down ? s->fraction[0] : berth__grad_num_first(d, BERTH__OP_sub, 1, s->fraction[0]);
  const berth_value right = is_right ? s->fraction[1] : berth__grad_num_first(d, BERTH__OP_sub, 1, s->fraction[1]);
  return berth__grad_mul(d, berth__grad_op(d, BERTH__OP_gather_elements, in, 2, &along, 1),
                         berth__grad_unsqueeze(d, berth__grad_mul(d, down, right), &middle, 1));
}

static berth_value grad_aligned_pool(berth__grad *d, const grad_aligned *s) {
  const bool largest = strcmp(d->node.attrs[BERTH__ROI_ALIGN_MODE].s, "max") == 0;
  const int64_t middle = 1, over[] = {3, 5};
  berth_value images =
      grad_region_images(d, berth__grad_in(d, BERTH__ROI_ALIGN_X), berth__grad_in(d, BERTH__ROI_ALIGN_IMAGES));
  const berth__shape shape = berth__grad_shape(d, images);
  const berth__shape flat = {.rank = 3, .dim = {shape.dim[0], shape.dim[1], s->extent[0] * s->extent[1]}};
  const berth__shape apart = {.rank = 6,
                              .dim = {shape.dim[0], shape.dim[1], s->bins[0], s->samples, s->bins[1], s->samples}};
  images = berth__grad_reshape(d, images, &flat);
  berth_value seen = grad_aligned_look(d, s, images, 0);
  for (uint32_t i = 1; i < 4 && berth__grad_ok(d); i++)
    seen = berth__grad_2(d, largest ? BERTH__OP_max : BERTH__OP_add, seen, grad_aligned_look(d, s, images, i));
  seen = berth__grad_where(d, berth__grad_unsqueeze(d, s->inside, &middle, 1), seen,
                           berth__grad_scalar(d, berth__grad_type(d, images), 0));
  return berth__grad_reduce(d, largest ? BERTH__OP_reduce_max : BERTH__OP_reduce_mean,
                            berth__grad_reshape(d, seen, &apart), over, 2, false);
}

void berth__grad_of_roi_align(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__ROI_ALIGN_X);
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, berth__grad_in(d, BERTH__ROI_ALIGN_REGIONS))) return;
  const berth__shape shape = berth__grad_shape(d, x);
  grad_aligned s = {
      .bins = {d->node.attrs[BERTH__ROI_ALIGN_OUTPUT_HEIGHT].i, d->node.attrs[BERTH__ROI_ALIGN_OUTPUT_WIDTH].i},
      .samples = d->node.attrs[BERTH__ROI_ALIGN_SAMPLING_RATIO].i,
      .extent = {shape.dim[2], shape.dim[3]}};
  if (s.samples <= 0) {
    berth__grad_fail(d, BERTH_UNSUPPORTED,
                     "its gradient needs a `sampling_ratio`: without one, a run finds how many "
                     "samples there are");
    return;
  }
  s.points = s.bins[0] * s.bins[1] * s.samples * s.samples;
  grad_aligned_axis(d, &s, 0);
  grad_aligned_axis(d, &s, 1);
  const berth_value y = berth__grad_ok(d) ? grad_aligned_pool(d, &s) : BERTH_VALUE_NONE;
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

/* ---- max_roi_pool ---- */

/* To the nearest integer, halves away from 0. */
static berth_value grad_rounded(berth__grad *d, berth_value a) {
  const berth_value size = berth__grad_num(d, BERTH__OP_add, berth__grad_1(d, BERTH__OP_abs, a), 0.5);
  return berth__grad_mul(d, berth__grad_1(d, BERTH__OP_sign, a), berth__grad_1(d, BERTH__OP_floor, size));
}

/* [R, bins, extent]: whether an element of an axis is in a bin. */
static berth_value grad_in_bin(berth__grad *d, int64_t column, int64_t bins, int64_t extent) {
  const berth_value regions = berth__grad_in(d, BERTH__MAX_ROI_POOL_REGIONS);
  const berth_type type = berth__grad_type(d, regions);
  const double scale = d->node.attrs[BERTH__MAX_ROI_POOL_SPATIAL_SCALE].f;
  const int64_t last = -1;
  const berth_value start = grad_rounded(d, grad_corner(d, regions, column, scale));
  const berth_value end = grad_rounded(d, grad_corner(d, regions, column + 2, scale));
  const berth_value extent_of =
      berth__grad_num(d, BERTH__OP_max, berth__grad_num(d, BERTH__OP_add, berth__grad_sub(d, end, start), 1), 1);
  const berth_value length = berth__grad_num(d, BERTH__OP_div, extent_of, (double)bins);
  const berth_value from =
      berth__grad_1(d, BERTH__OP_floor, berth__grad_mul(d, length, grad_steps(d, type, bins, 0, 1)));
  const berth_value to = berth__grad_1(d, BERTH__OP_ceil, berth__grad_mul(d, length, grad_steps(d, type, bins, 1, 1)));
  const berth_value at = grad_steps(d, type, extent, 0, 1);
  return berth__grad_2(
      d, BERTH__OP_and,
      berth__grad_2(d, BERTH__OP_ge, at, berth__grad_unsqueeze(d, berth__grad_add(d, start, from), &last, 1)),
      berth__grad_2(d, BERTH__OP_lt, at, berth__grad_unsqueeze(d, berth__grad_add(d, start, to), &last, 1)));
}

/* The maximum over each bin, first horizontally and then vertically; 0 for empty bins. */
void berth__grad_of_max_roi_pool(berth__grad *d) {
  enum {
    IMAGE,
    ACROSS,
    DOWN
  };
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__MAX_ROI_POOL_X),
                    regions = berth__grad_in(d, BERTH__MAX_ROI_POOL_REGIONS);
  const int64_t last = -1, columns[] = {1, 2}, rows[] = {1, 4}, split[] = {3}, split_rows[] = {2}, over_rows[] = {3};
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, regions)) return;
  const berth__shape shape = berth__grad_shape(d, x);
  const int64_t *pooled = d->node.attrs[BERTH__MAX_ROI_POOL_POOLED].ints;
  const berth__shape line = {.rank = 1, .dim = {berth__grad_shape(d, regions).dim[0]}};
  const berth_value which = berth__grad_reshape(d, berth__grad_narrow(d, regions, 1, IMAGE, IMAGE + 1), &line);
  const berth_value images = grad_region_images(d, x, berth__grad_cast(d, which, BERTH_I64));
  const berth_value lowest = berth__grad_scalar(d, berth__grad_type(d, x), -1e30);
  const berth_value across = berth__grad_unsqueeze(d, grad_in_bin(d, ACROSS, pooled[1], shape.dim[3]), columns, 2);
  berth_value y = berth__grad_where(d, across, berth__grad_unsqueeze(d, images, split, 1), lowest);
  y = berth__grad_reduce(d, BERTH__OP_reduce_max, y, &last, 1, false); /* [R, C, H, across] */
  const berth_value down = berth__grad_unsqueeze(d, grad_in_bin(d, DOWN, pooled[0], shape.dim[2]), rows, 2);
  y = berth__grad_where(d, down, berth__grad_unsqueeze(d, y, split_rows, 1), lowest);
  y = berth__grad_reduce(d, BERTH__OP_reduce_max, y, over_rows, 1, false);
  const berth_value some = berth__grad_2(d, BERTH__OP_gt, y, lowest);
  y = berth__grad_where(d, some, y, berth__grad_scalar(d, berth__grad_type(d, x), 0));
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}
