/* Gradients of ops that interpolate between elements of an image: grid_sample and deform_conv. Both are expanded:
 * positions and weights of the neighbours on each axis, a gather for each combination of them, and their sum. */
#include "grad/grad.h"
#include "ops/conv.h"

#define GRAD_MOST_TAPS 4 /* per axis */

/* The neighbours of a point on one axis: [N, points] each. */
typedef struct grad_taps {
  uint32_t n;
  berth_value place[GRAD_MOST_TAPS];  /* i64, clamped to the axis */
  berth_value inside[GRAD_MOST_TAPS]; /* bool; NONE: always */
  berth_value weight[GRAD_MOST_TAPS]; /* NONE: 1 */
  int64_t extent;
} grad_taps;

static berth_value grad_bounded(berth__grad *d, berth_value a, double low, double high) {
  const berth_attr attrs[2] = {berth_attr_float("min", low), berth_attr_float("max", high)};
  return berth__grad_op(d, BERTH__OP_clamp, &a, 1, attrs, 2);
}

static berth_value grad_times(berth__grad *d, berth_value a, berth_value b) {
  return a == BERTH_VALUE_NONE ? b : b == BERTH_VALUE_NONE ? a : berth__grad_mul(d, a, b);
}

static berth_value grad_and(berth__grad *d, berth_value a, berth_value b) {
  return a == BERTH_VALUE_NONE ? b : b == BERTH_VALUE_NONE ? a : berth__grad_2(d, BERTH__OP_and, a, b);
}

/* One combination of neighbours, gathered from x [N, C, area]: [N, C, points]. */
static berth_value grad_look(berth__grad *d, berth_value x, const grad_taps *axis, uint32_t n_axes, uint32_t which) {
  const int64_t middle = 1;
  const berth_attr along = berth_attr_int("axis", 2);
  const berth__shape shape = berth__grad_shape(d, x);
  berth_value place = BERTH_VALUE_NONE, weight = BERTH_VALUE_NONE, inside = BERTH_VALUE_NONE;
  for (uint32_t k = 0; k < n_axes; k++, which /= axis[k - 1].n) {
    const uint32_t tap = which % axis[k].n;
    if (place != BERTH_VALUE_NONE) place = berth__grad_scale(d, place, (double)axis[k].extent);
    place = place == BERTH_VALUE_NONE ? axis[k].place[tap] : berth__grad_add(d, place, axis[k].place[tap]);
    weight = grad_times(d, weight, axis[k].weight[tap]);
    inside = grad_and(d, inside, axis[k].inside[tap]);
  }
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  const int64_t points = berth__grad_shape(d, place).dim[1];
  const berth_dim spread[] = {{NULL, shape.dim[0]}, {NULL, shape.dim[1]}, {NULL, points}};
  const berth_attr to = berth_attr_dims("shape", spread, 3);
  place = berth__grad_unsqueeze(d, place, &middle, 1);
  const berth_value in[] = {x, berth__grad_op(d, BERTH__OP_expand, &place, 1, &to, 1)};
  berth_value seen = berth__grad_op(d, BERTH__OP_gather_elements, in, 2, &along, 1);
  if (weight != BERTH_VALUE_NONE) seen = berth__grad_mul(d, seen, berth__grad_unsqueeze(d, weight, &middle, 1));
  if (inside == BERTH_VALUE_NONE) return seen;
  const berth_value zero = berth__grad_scalar(d, berth__grad_type(d, x), 0);
  return berth__grad_where(d, berth__grad_unsqueeze(d, inside, &middle, 1), seen, zero);
}

static berth_value grad_look_all(berth__grad *d, berth_value x, const grad_taps *axis, uint32_t n_axes) {
  uint32_t combinations = 1;
  for (uint32_t k = 0; k < n_axes; k++) combinations *= axis[k].n;
  berth_value sum = grad_look(d, x, axis, n_axes, 0);
  for (uint32_t i = 1; i < combinations && berth__grad_ok(d); i++)
    sum = berth__grad_add(d, sum, grad_look(d, x, axis, n_axes, i));
  return sum;
}

/* [N, C, spatial...] as [N, C, area]. */
static berth_value grad_flat_image(berth__grad *d, berth_value x) {
  const berth__shape shape = berth__grad_shape(d, x);
  berth__shape flat = {.rank = 3, .dim = {shape.dim[0], shape.dim[1], 1}};
  for (uint32_t i = 2; i < shape.rank; i++) flat.dim[2] *= shape.dim[i];
  return berth__grad_reshape(d, x, &flat);
}

/* A tap at an integral position that may be outside the axis, where elements are 0. */
static void grad_tap_or_zero(berth__grad *d, grad_taps *t, uint32_t tap, berth_value at) {
  const double last = (double)(t->extent - 1);
  t->inside[tap] = berth__grad_2(d, BERTH__OP_and, berth__grad_num(d, BERTH__OP_ge, at, 0),
                                 berth__grad_num(d, BERTH__OP_le, at, last));
  t->place[tap] = berth__grad_cast(d, grad_bounded(d, at, 0, last), BERTH_I64);
}

/* ---- grid_sample ---- */

typedef struct grad_grid {
  bool is_nearest, is_cubic, is_aligned, is_zeros, is_reflected;
} grad_grid;

/* Reflects between low and high. */
static berth_value grad_reflect(berth__grad *d, berth_value at, double low, double high) {
  const double range = high - low;
  if (range <= 0) return grad_bounded(d, at, low, low);
  const berth_value far = berth__grad_num(
      d, BERTH__OP_mod, berth__grad_1(d, BERTH__OP_abs, berth__grad_num(d, BERTH__OP_sub, at, low)), 2 * range);
  const berth_value back = berth__grad_num_first(d, BERTH__OP_sub, 2 * range, far);
  return berth__grad_num(d, BERTH__OP_add, berth__grad_2(d, BERTH__OP_min, far, back), low);
}

static berth_value grad_grid_position(berth__grad *d, const grad_grid *s, berth_value coordinate, int64_t extent) {
  const double last = (double)(extent - 1);
  const double slope = (s->is_aligned ? last : (double)extent) / 2, at_0 = last / 2;
  berth_value at = berth__grad_num(d, BERTH__OP_add, berth__grad_scale(d, coordinate, slope), at_0);
  if (s->is_nearest) at = berth__grad_1(d, BERTH__OP_round, at);
  if (s->is_reflected) return grad_reflect(d, at, s->is_aligned ? 0 : -0.5, s->is_aligned ? last : last + 0.5);
  return s->is_zeros || s->is_cubic ? at : grad_bounded(d, at, 0, last);
}

/* The weights of cubic interpolation, by the distance of each neighbour, with a = -0.75. */
static berth_value grad_cubic(berth__grad *d, berth_value x, bool is_far) {
  const double a = -0.75;
  const double c3 = is_far ? a : a + 2, c2 = is_far ? -5 * a : -(a + 3), c1 = is_far ? 8 * a : 0,
               c0 = is_far ? -4 * a : 1;
  berth_value sum = berth__grad_num(d, BERTH__OP_add, berth__grad_scale(d, x, c3), c2);
  sum = berth__grad_num(d, BERTH__OP_add, berth__grad_mul(d, sum, x), c1);
  return berth__grad_num(d, BERTH__OP_add, berth__grad_mul(d, sum, x), c0);
}

static void grad_grid_weights(berth__grad *d, const grad_grid *s, berth_value fraction, grad_taps *t) {
  const berth_value rest = berth__grad_num_first(d, BERTH__OP_sub, 1, fraction);
  if (s->is_nearest) {
    t->weight[0] = BERTH_VALUE_NONE;
  } else if (s->is_cubic) {
    t->weight[0] = grad_cubic(d, berth__grad_num(d, BERTH__OP_add, fraction, 1), true);
    t->weight[1] = grad_cubic(d, fraction, false);
    t->weight[2] = grad_cubic(d, rest, false);
    t->weight[3] = grad_cubic(d, berth__grad_num(d, BERTH__OP_add, rest, 1), true);
  } else {
    t->weight[0] = rest;
    t->weight[1] = fraction;
  }
}

static void grad_grid_taps(berth__grad *d, const grad_grid *s, berth_value coordinate, grad_taps *t) {
  const double last = (double)(t->extent - 1);
  const berth_value at = grad_grid_position(d, s, coordinate, t->extent);
  const berth_value first = berth__grad_1(d, s->is_nearest ? BERTH__OP_round : BERTH__OP_floor, at);
  t->n = s->is_nearest ? 1 : s->is_cubic ? 4 : 2;
  grad_grid_weights(d, s, berth__grad_sub(d, at, first), t);
  for (uint32_t i = 0; i < t->n; i++) {
    berth_value place = berth__grad_num(d, BERTH__OP_add, first, (double)i - (s->is_cubic ? 1 : 0));
    if (s->is_zeros) {
      grad_tap_or_zero(d, t, i, place);
      continue;
    }
    if (s->is_reflected) place = grad_reflect(d, place, s->is_aligned ? 0 : -0.5, s->is_aligned ? last : last + 0.5);
    t->place[i] = berth__grad_cast(d, grad_bounded(d, place, 0, last), BERTH_I64);
    t->inside[i] = BERTH_VALUE_NONE;
  }
}

void berth__grad_of_grid_sample(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__GRID_SAMPLE_X), grid = berth__grad_in(d, BERTH__GRID_SAMPLE_GRID);
  const char *mode = d->node.attrs[BERTH__GRID_SAMPLE_MODE].s, *padding = d->node.attrs[BERTH__GRID_SAMPLE_PADDING].s;
  const grad_grid s = {.is_nearest = strcmp(mode, "nearest") == 0,
                       .is_cubic = strcmp(mode, "cubic") == 0,
                       .is_aligned = d->node.attrs[BERTH__GRID_SAMPLE_ALIGN_CORNERS].i != 0,
                       .is_zeros = strcmp(padding, "zeros") == 0,
                       .is_reflected = strcmp(padding, "reflection") == 0};
  grad_taps axis[BERTH__WINDOW_AXES];
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, grid)) return;
  const berth__shape shape = berth__grad_shape(d, x), of_grid = berth__grad_shape(d, grid);
  const uint32_t n = shape.rank - 2;
  berth__shape flat = {.rank = 2, .dim = {shape.dim[0], 1}};
  for (uint32_t i = 1; i + 1 < of_grid.rank; i++) flat.dim[1] *= of_grid.dim[i];
  for (uint32_t k = 0; k < n && berth__grad_ok(d); k++) { /* the last spatial axis comes first in the grid */
    const berth_value one = berth__grad_narrow(d, grid, of_grid.rank - 1, n - 1 - k, n - k);
    axis[k].extent = shape.dim[2 + k];
    grad_grid_taps(d, &s, berth__grad_cast(d, berth__grad_reshape(d, one, &flat), berth__grad_type(d, x)), &axis[k]);
  }
  if (!berth__grad_ok(d)) return;
  const berth_value y =
      berth__grad_reshape_like(d, grad_look_all(d, grad_flat_image(d, x), axis, n), berth__grad_out(d));
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

/* ---- deform_conv ---- */

/* The positions of the taps of all windows on an axis, before offsets: [taps * points]. */
static berth_value grad_tap_positions(berth__grad *d, const berth__window_axis *w, uint32_t axis) {
  const int64_t taps = w[0].kernel * w[1].kernel, points = w[0].out * w[1].out, dim[] = {taps * points};
  double *at = berth__alloc_array(d->graph->ctx, (size_t)dim[0], sizeof *at);
  if (at == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return BERTH_VALUE_NONE;
  }
  for (int64_t i = 0; i < dim[0]; i++) {
    const int64_t tap = i / points, point = i % points;
    at[i] = (double)(axis == 0 ? berth__window_input(&w[0], point / w[1].out, tap / w[1].kernel)
                               : berth__window_input(&w[1], point % w[1].out, tap % w[1].kernel));
  }
  const berth_value out = berth__grad_tensor(d, berth__grad_type(d, berth__grad_in(d, BERTH__DEFORM_X)), 1, dim, at);
  berth__free(d->graph->ctx, at);
  return out;
}

/* The samples of the taps: [N, C, taps * points]. */
static berth_value grad_deformed(berth__grad *d, const berth__window_axis *w) {
  const int64_t groups = d->node.attrs[BERTH__DEFORM_OFFSET_GROUP].i, taps = w[0].kernel * w[1].kernel;
  const berth__shape x = berth__grad_shape(d, berth__grad_in(d, BERTH__DEFORM_X));
  const int64_t points = w[0].out * w[1].out, lines = x.dim[0] * groups;
  const berth__shape by_group = {.rank = 3, .dim = {lines, x.dim[1] / groups, x.dim[2] * x.dim[3]}};
  const berth__shape offsets = {.rank = 4, .dim = {lines, taps, 2, points}},
                     line = {.rank = 2, .dim = {lines, taps * points}};
  const berth_value offset = berth__grad_reshape(d, berth__grad_in(d, BERTH__DEFORM_OFFSET), &offsets);
  const berth__shape masks = {.rank = 3, .dim = {lines, 1, taps * points}};
  const berth__shape whole = {.rank = 3, .dim = {x.dim[0], x.dim[1], taps * points}};
  grad_taps axis[2];
  for (uint32_t k = 0; k < 2 && berth__grad_ok(d); k++) {
    const berth_value moved = berth__grad_reshape(d, berth__grad_narrow(d, offset, 2, k, k + 1), &line);
    const berth_value at = berth__grad_add(d, moved, grad_tap_positions(d, w, k));
    const berth_value first = berth__grad_1(d, BERTH__OP_floor, at);
    axis[k] = (grad_taps){.n = 2, .extent = x.dim[2 + k]};
    axis[k].weight[1] = berth__grad_sub(d, at, first);
    axis[k].weight[0] = berth__grad_num_first(d, BERTH__OP_sub, 1, axis[k].weight[1]);
    for (uint32_t i = 0; i < 2; i++)
      grad_tap_or_zero(d, &axis[k], i, berth__grad_num(d, BERTH__OP_add, first, (double)i));
  }
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  berth_value seen = grad_look_all(d, berth__grad_reshape(d, berth__grad_in(d, BERTH__DEFORM_X), &by_group), axis, 2);
  if (berth__grad_has(d, BERTH__DEFORM_MASK))
    seen = berth__grad_mul(d, seen, berth__grad_reshape(d, berth__grad_in(d, BERTH__DEFORM_MASK), &masks));
  return berth__grad_reshape(d, seen, &whole);
}

/* One product per group, with the samples. */
void berth__grad_of_deform_conv(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__DEFORM_X), weight = berth__grad_in(d, BERTH__DEFORM_WEIGHT);
  const berth__window_attrs attrs = berth__conv_window(d->node.attrs);
  const int64_t group = d->node.attrs[BERTH__CONV_GROUP].i, axes[] = {1, 2};
  berth__window_axis w[2];
  if (!berth__grad_fixed(d, x) || !berth__grad_fixed(d, weight) || !berth__grad_fixed(d, berth__grad_out(d))) return;
  const berth__shape of_x = berth__grad_shape(d, x), of_w = berth__grad_shape(d, weight);
  const berth__shape of_y = berth__grad_shape(d, berth__grad_out(d));
  for (uint32_t k = 0; k < 2; k++) {
    w[k] = berth__window_axis_of(&attrs, 2, k, of_x.dim[2 + k], of_w.dim[2 + k]);
    w[k].out = of_y.dim[2 + k];
  }
  const int64_t taps = w[0].kernel * w[1].kernel, points = w[0].out * w[1].out, each = of_w.dim[1] * taps;
  const berth__shape grouped = {.rank = 4, .dim = {of_x.dim[0], group, each, points}};
  const berth__shape weights = {.rank = 3, .dim = {group, of_w.dim[0] / group, each}};
  const berth_value seen = berth__grad_reshape(d, grad_deformed(d, w), &grouped);
  berth_value y = berth__grad_2(d, BERTH__OP_matmul, berth__grad_reshape(d, weight, &weights), seen);
  y = berth__grad_reshape_like(d, y, berth__grad_out(d));
  if (berth__grad_has(d, BERTH__DEFORM_BIAS))
    y = berth__grad_add(d, y, berth__grad_unsqueeze(d, berth__grad_in(d, BERTH__DEFORM_BIAS), axes, 2));
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}
