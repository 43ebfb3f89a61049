/* resize: one thread per element of the result. The sampling positions of an axis depend on its scale, which may be an
 * operand known only at run time: positions and weights are computed on the device, in f32 like the reference
 * kernel. */
#include "kernel/lower/copy.h"
#include "kernel/lower/math.h"
#include "kernel/lower/sample.h"
#include "ops/resample.h"

/* One axis. If it is not sampled, element i is element i. */
typedef struct axis {
  bool is_sampled;
  int64_t in, out;
  uint32_t entry;   /* index in the operands */
  berth__x scale;   /* f32 */
  berth__x at;      /* f32: the position in x */
  berth__x index;   /* i32: of the result */
  berth__x is_same; /* bool: the scale is 1, so the axis is not sampled after all */
  berth__x stretch; /* f32: of the filter */
  berth__x lowest;  /* f32: the first tap */
  berth__x count;   /* i32: taps */
  berth__x factor;  /* f32: sum of all weights; BERTH__X_NONE: 1 */
  berth__x from;    /* i32: the tap's position in x, in the loop over taps */
  berth__x weight;  /* f32 */
} axis;

typedef struct resizing {
  berth__lowering *l;
  berth__kernel *k;
  berth__resample how;
  uint32_t n_entries;
  axis axes[BERTH_MAX_RANK];
} resizing;

static berth__x lower_resize_number(const resizing *r, int64_t value) { return berth__x_f32(r->k, (float)value); }

static bool crops(const resizing *r) { return r->how.coordinates == BERTH__TF_CROP_AND_RESIZE; }

/* ---- Scales ---- */

static berth__x ratio(const resizing *r, uint32_t entry, int64_t extent) {
  const berth__x asked = berth__l_load(r->l, r->k, BERTH__RESIZE_TARGET, berth__x_i32(r->k, entry));
  return berth__x_div(r->k, berth__x_convert(r->k, BERTH__NUM_F32, asked), lower_resize_number(r, extent));
}

/* One scale for all axes, which keeps the aspect ratio. */
static berth__x lower_resize_common_scale(const resizing *r) {
  const bool largest = strcmp(r->l->call->attrs[BERTH__RESIZE_ASPECT].s, "not_smaller") == 0;
  berth__x best = BERTH__X_NONE;
  for (uint32_t i = 0; i < r->l->call->in[BERTH__RESIZE_X].rank; i++) {
    const axis *a = &r->axes[i];
    if (!a->is_sampled) continue;
    const berth__x scale = ratio(r, a->entry, a->in);
    best = best == BERTH__X_NONE ? scale : largest ? berth__x_max(r->k, best, scale) : berth__x_min(r->k, best, scale);
  }
  return best;
}

static void find_scales(resizing *r) {
  const berth_tensor *target = &r->l->call->in[BERTH__RESIZE_TARGET];
  const bool stretches = strcmp(r->l->call->attrs[BERTH__RESIZE_ASPECT].s, "stretch") == 0;
  const bool has_scales = berth__type_is_float(target->type);
  const berth__x common = has_scales || stretches ? BERTH__X_NONE : lower_resize_common_scale(r);
  for (uint32_t i = 0; i < r->l->call->in[BERTH__RESIZE_X].rank; i++) {
    axis *a = &r->axes[i];
    if (!has_scales && stretches && a->in == a->out && !crops(r)) a->is_sampled = false;
    if (a->in == 1 && a->out == 1 && !crops(r)) a->is_sampled = false; /* there is only one element */
    if (!a->is_sampled) continue;
    a->scale = has_scales  ? berth__l_load(r->l, r->k, BERTH__RESIZE_TARGET, berth__x_i32(r->k, a->entry))
               : stretches ? berth__x_f32(r->k, (float)a->out / (float)a->in)
                           : common;
  }
}

/* ---- Positions ---- */

static berth__x region(const resizing *r, const axis *a, bool end) {
  return berth__l_load(r->l, r->k, BERTH__RESIZE_ROI, berth__x_i32(r->k, a->entry + (end ? r->n_entries : 0)));
}

static berth__x crop_position(const resizing *r, const axis *a, berth__x x) {
  berth__kernel *k = r->k;
  const berth__x begin = region(r, a, false), end = region(r, a, true), last = lower_resize_number(r, a->in - 1);
  if (a->out <= 1) return berth__x_mul(k, berth__m_scale(k, berth__x_add(k, begin, end), 0.5f), last);
  const berth__x step = berth__x_mul(k, berth__x_mul(k, x, berth__x_sub(k, end, begin)), last);
  return berth__x_add(k, berth__x_mul(k, begin, last), berth__x_div(k, step, lower_resize_number(r, a->out - 1)));
}

static berth__x symmetric_position(const resizing *r, const axis *a, berth__x half_pixel) {
  berth__kernel *k = r->k;
  const berth__x in = lower_resize_number(r, a->in);
  const berth__x adjustment = berth__x_div(k, lower_resize_number(r, a->out), berth__x_mul(k, a->scale, in));
  const berth__x rest = berth__x_sub(k, berth__x_f32(k, 1.0f), adjustment);
  const berth__x moved = berth__x_mul(k, berth__x_f32(k, (float)a->in / 2), rest);
  return berth__m_plus(k, berth__x_add(k, moved, half_pixel), -0.5f);
}

static berth__x scaled_corner_position(const resizing *r, const axis *a, berth__x x) {
  berth__kernel *k = r->k;
  if (a->out <= 1) return berth__x_f32(k, 0.0f);
  const berth__x shrinks = berth__x_lt(k, a->scale, berth__x_f32(k, 1.0f));
  const berth__x extent = berth__x_select(k, shrinks, berth__x_mul(k, a->scale, lower_resize_number(r, a->in)),
                                          lower_resize_number(r, a->out));
  const berth__x last = berth__m_plus(k, extent, -1.0f);
  return berth__x_div(k, berth__x_mul(k, x, lower_resize_number(r, a->in - 1)), last);
}

static berth__x lower_resize_position(const resizing *r, const axis *a) {
  berth__kernel *k = r->k;
  const berth__x x = berth__x_convert(k, BERTH__NUM_F32, a->index);
  const berth__x half_pixel = berth__x_div(k, berth__m_plus(k, x, 0.5f), a->scale);
  switch (r->how.coordinates) {
    case BERTH__HALF_PIXEL_SYMMETRIC: return symmetric_position(r, a, half_pixel);
    case BERTH__PYTORCH_HALF_PIXEL: return a->out > 1 ? berth__m_plus(k, half_pixel, -0.5f) : berth__x_f32(k, 0.0f);
    case BERTH__ALIGN_CORNERS:
      if (a->out <= 1) return berth__x_f32(k, 0.0f);
      return berth__x_div(k, berth__x_mul(k, x, lower_resize_number(r, a->in - 1)), lower_resize_number(r, a->out - 1));
    case BERTH__ALIGN_CORNERS_SCALED: return scaled_corner_position(r, a, x);
    case BERTH__ASYMMETRIC: return berth__x_div(k, x, a->scale);
    case BERTH__TF_HALF_PIXEL_FOR_NN: return half_pixel;
    case BERTH__TF_CROP_AND_RESIZE: return crop_position(r, a, x);
    default: return berth__m_plus(k, half_pixel, -0.5f);
  }
}

static void find_positions(resizing *r) {
  for (uint32_t i = 0; i < r->l->call->in[BERTH__RESIZE_X].rank; i++) {
    axis *a = &r->axes[i];
    if (!a->is_sampled) continue;
    a->at = lower_resize_position(r, a);
    a->is_same = berth__x_bool(r->k, false);
    if (a->in == a->out && !crops(r)) a->is_same = berth__x_eq(r->k, a->scale, berth__x_f32(r->k, 1.0f));
  }
}

/* Whether the element is inside the cropped region. */
static berth__x lower_resize_is_inside(const resizing *r) {
  berth__kernel *k = r->k;
  berth__x inside = berth__x_bool(k, true);
  for (uint32_t i = 0; i < r->l->call->in[BERTH__RESIZE_X].rank; i++) {
    const axis *a = &r->axes[i];
    if (!a->is_sampled) continue;
    inside = berth__x_and(k, inside, berth__x_le(k, berth__x_f32(k, 0.0f), a->at));
    inside = berth__x_and(k, inside, berth__x_le(k, a->at, lower_resize_number(r, a->in - 1)));
  }
  return inside;
}

/* ---- The nearest element ---- */

static berth__x lower_resize_nearest(const resizing *r, const axis *a) {
  berth__kernel *k = r->k;
  const berth__x down = berth__x1(k, BERTH__INST_floor, a->at), up = berth__x1(k, BERTH__INST_ceil, a->at);
  const berth__x away = berth__l_round_away(k, a->at);
  switch (r->how.nearest) {
    case BERTH__ROUND_PREFER_CEIL: return away;
    case BERTH__NEAREST_FLOOR: return down;
    case BERTH__NEAREST_CEIL: return up;
    case BERTH__NEAREST_SIMPLE:
      return berth__x_select(k, berth__m_below(k, a->scale, 1.0f), up, berth__x1(k, BERTH__INST_trunc, a->at));
    default: return berth__x_select(k, berth__x_eq(k, a->at, berth__m_plus(k, down, 0.5f)), down, away);
  }
}

static void lower_resize_copy_nearest(resizing *r, berth__x to) {
  const berth_tensor *x = &r->l->call->in[BERTH__RESIZE_X];
  berth__x from[BERTH_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    const axis *a = &r->axes[i];
    from[i] = a->index;
    if (!a->is_sampled) continue;
    const berth__x found = berth__l_clamped_index(r->k, lower_resize_nearest(r, a), a->in);
    from[i] = a->in == a->out ? berth__x_select(r->k, a->is_same, a->index, found) : found;
  }
  berth__l_store_raw(r->l, r->k, 0, to, berth__l_load_raw(r->l, r->k, BERTH__RESIZE_X, berth__l_place(r->k, x, from)));
}

/* ---- Weighted neighbours ---- */

static berth__x lower_resize_filter(const resizing *r, berth__x distance) {
  berth__kernel *k = r->k;
  if (r->how.mode == BERTH__RESAMPLE_CUBIC) return berth__l_cubic(k, (float)r->how.cubic_a, distance);
  const berth__x near = berth__x_sub(k, berth__x_f32(k, 1.0f), berth__x1(k, BERTH__INST_abs, distance));
  return berth__x_max(k, near, berth__x_f32(k, 0.0f));
}

/* Tap `tap`: its position, and its weight before normalisation. */
static berth__x lower_resize_weigh(const resizing *r, const axis *a, berth__x tap, berth__x *place) {
  berth__kernel *k = r->k;
  const berth__x zero = berth__x_f32(k, 0.0f);
  *place = berth__x_add(k, a->lowest, berth__x_convert(k, BERTH__NUM_F32, tap));
  berth__x weight = lower_resize_filter(r, berth__x_mul(k, berth__x_sub(k, *place, a->at), a->stretch));
  if (r->how.exclude_outside) {
    const berth__x before = berth__x_lt(k, *place, zero),
                   behind = berth__x_lt(k, lower_resize_number(r, a->in - 1), *place);
    weight = berth__x_select(k, berth__x_or(k, before, behind), zero, weight);
  }
  return weight;
}

static bool shrinks(const resizing *r, const axis *a) { return r->how.antialias && a->out < a->in; }

/* A lower bound of the scale, however extents were rounded. */
static void find_stretch(const resizing *r, axis *a) {
  berth__kernel *k = r->k;
  const float radius = r->how.mode == BERTH__RESAMPLE_CUBIC ? 2.0f : 1.0f;
  const berth__x one = berth__x_f32(k, 1.0f);
  a->stretch = one;
  if (shrinks(r, a)) {
    const float least = (float)(((double)a->out - 0.5) / (double)a->in);
    a->stretch = berth__x_min(k, berth__x_max(k, a->scale, berth__x_f32(k, least)), one);
  }
  const berth__x reach = berth__x_div(k, berth__x_f32(k, radius), a->stretch);
  a->lowest = berth__m_plus(k, berth__x1(k, BERTH__INST_floor, berth__x_sub(k, a->at, reach)), 1.0f);
  if (shrinks(r, a)) {
    const berth__x wide = berth__x_convert(k, BERTH__NUM_I32, berth__m_scale(k, reach, 2.0f));
    a->count = berth__x_affine(k, wide, 1, 2);
  } else {
    a->count = berth__x_i32(k, 2 * (int64_t)radius);
  }
}

/* Weights add up to 1 unless some are left out or the filter is stretched. */
static void find_factor(const resizing *r, axis *a) {
  berth__kernel *k = r->k;
  a->factor = BERTH__X_NONE;
  if (!r->how.exclude_outside && !shrinks(r, a)) return;
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0.0f));
  berth__x place;
  const berth__x tap = berth__x_loop(k, berth__x_i32(k, 0), a->count, 1);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), lower_resize_weigh(r, a, tap, &place)));
  berth__x_end(k);
  const berth__x total = berth__x_get(k, sum), one = berth__x_f32(k, 1.0f);
  const berth__x is_none = berth__x_eq(k, total, berth__x_f32(k, 0.0f));
  a->factor = berth__x_div(k, one, berth__x_select(k, is_none, one, total));
}

/* Opens the loop over the taps of an axis. An axis whose scale is 1 at run time has one tap. */
static void lower_resize_open_taps(const resizing *r, axis *a) {
  berth__kernel *k = r->k;
  const berth__x one = berth__x_f32(k, 1.0f);
  berth__x count = a->count, place;
  if (a->in == a->out) count = berth__x_select(k, a->is_same, berth__x_i32(k, 1), count);
  const berth__x tap = berth__x_loop(k, berth__x_i32(k, 0), count, 1);
  a->weight = lower_resize_weigh(r, a, tap, &place);
  if (a->factor != BERTH__X_NONE) a->weight = berth__x_mul(k, a->weight, a->factor);
  a->from = berth__l_clamped_index(k, place, a->in);
  if (a->in != a->out) return;
  a->weight = berth__x_select(k, a->is_same, one, a->weight);
  a->from = berth__x_select(k, a->is_same, a->index, a->from);
}

static void lower_resize_blend(resizing *r, berth__x to) {
  berth__kernel *k = r->k;
  const berth_tensor *x = &r->l->call->in[BERTH__RESIZE_X];
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0.0f));
  berth__x from[BERTH_MAX_RANK], weight = berth__x_f32(k, 1.0f);
  uint32_t n_open = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (!r->axes[i].is_sampled) continue;
    find_stretch(r, &r->axes[i]);
    find_factor(r, &r->axes[i]);
  }
  for (uint32_t i = 0; i < x->rank; i++) {
    axis *a = &r->axes[i];
    from[i] = a->index;
    if (!a->is_sampled) continue;
    lower_resize_open_taps(r, a);
    n_open++;
    from[i] = a->from;
    weight = berth__x_mul(k, weight, a->weight);
  }
  const berth__x element = berth__l_load(r->l, k, BERTH__RESIZE_X, berth__l_place(k, x, from));
  const berth__x value = berth__x_convert(k, BERTH__NUM_F32, element);
  berth__x_set(k, sum, berth__m_fma(k, weight, value, berth__x_get(k, sum)));
  for (; n_open > 0; n_open--) berth__x_end(k);
  berth__l_store(r->l, k, 0, to, berth__l_cast(k, berth__x_get(k, sum), BERTH_F32, x->type));
}

/* ---- The call ---- */

static void read_attributes(resizing *r) {
  const berth_attr *attr = r->l->call->attrs;
  r->how = (berth__resample){.mode = (berth__resample_mode)berth__name_index(
                                 attr[BERTH__RESIZE_MODE].s, berth__resample_names, BERTH__RESAMPLE_MODES),
                             .coordinates = (berth__coordinates)berth__name_index(
                                 attr[BERTH__RESIZE_COORDINATES].s, berth__coordinate_names, BERTH__COORDINATES),
                             .nearest = (berth__nearest)berth__name_index(attr[BERTH__RESIZE_NEAREST].s,
                                                                          berth__nearest_names, BERTH__NEARESTS),
                             .cubic_a = attr[BERTH__RESIZE_CUBIC_A].f,
                             .exclude_outside = attr[BERTH__RESIZE_EXCLUDE_OUTSIDE].i != 0,
                             .antialias = attr[BERTH__RESIZE_ANTIALIAS].i != 0};
}

static void lower_resize_read_axes(resizing *r, const berth__x *at) {
  const berth_tensor *x = &r->l->call->in[BERTH__RESIZE_X], *out = &r->l->call->out[0];
  const berth_attr *list = &r->l->call->attrs[BERTH__RESIZE_AXES];
  r->n_entries = list->count != 0 ? list->count : x->rank;
  for (uint32_t i = 0; i < x->rank; i++) r->axes[i] = (axis){.in = x->dim[i], .out = out->dim[i], .index = at[i]};
  for (uint32_t entry = 0; entry < r->n_entries; entry++) {
    const int64_t given = list->count != 0 ? list->ints[entry] : entry;
    axis *a = &r->axes[given < 0 ? given + x->rank : given];
    a->entry = entry;
    a->is_sampled = true;
  }
}

berth_status berth__lower_resize(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  resizing r = {.l = l};
  berth__x at[BERTH_MAX_RANK];
  read_attributes(&r);
  berth__kernel *k = r.k = berth__l_begin(l, l->call->attrs[BERTH__RESIZE_MODE].s);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), out->rank, out->dim, at);
  const berth__x to = berth__l_place(k, out, at);
  lower_resize_read_axes(&r, at);
  find_scales(&r);
  find_positions(&r);
  if (crops(&r)) {
    const berth__x outside = berth__x1(k, BERTH__INST_not, lower_resize_is_inside(&r));
    const berth__x value = berth__x_f32(k, (float)l->call->attrs[BERTH__RESIZE_EXTRAPOLATION].f);
    berth__x_if(k, outside);
    berth__l_store(l, k, 0, to, berth__l_cast(k, value, BERTH_F32, out->type));
    berth__x_else(k);
  }
  if (r.how.mode == BERTH__RESAMPLE_NEAREST) {
    lower_resize_copy_nearest(&r, to);
  } else {
    lower_resize_blend(&r, to);
  }
  return berth__l_end(l, k, err);
}
