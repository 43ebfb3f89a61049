/* roi_align: one thread per bin of a region, in each channel. Regions of images that do not exist, which the reference
 * kernel refuses, use the nearest image. */
#include "kernel/lower/math.h"
#include "kernel/lower/sample.h"

#define MAX_SAMPLES 1024 /* per bin along one axis: regions come from data, and may have any size */

typedef struct pooling {
  berth__lowering *l;
  berth__kernel *k;
  bool is_max;
  berth__x at[4];
} pooling;

/* One axis of a region: where the bin begins, the distance between its samples, and their number. */
typedef struct bins {
  berth__x begin, step, samples;
  int64_t extent;
} bins;

/* The two elements that a sample is between, and the weight of the second; or it is off the axis. */
typedef struct between {
  berth__x is_inside, low, high, fraction;
} between;

static berth__x lower_roi_align_corner(const pooling *p, int64_t entry) {
  const berth__x at[2] = {p->at[0], berth__x_i32(p->k, entry)};
  const berth__x value =
      berth__l_load(p->l, p->k, 1, berth__l_place(p->k, &p->l->call->in[BERTH__ROI_ALIGN_REGIONS], at));
  const berth__x scaled = berth__m_scale(p->k, value, (float)p->l->call->attrs[BERTH__ROI_ALIGN_SPATIAL_SCALE].f);
  return p->l->call->attrs[BERTH__ROI_ALIGN_HALF_PIXEL].i ? berth__m_plus(p->k, scaled, -0.5f) : scaled;
}

static berth__x samples_of(const pooling *p, berth__x length) {
  const int64_t given = p->l->call->attrs[BERTH__ROI_ALIGN_SAMPLING_RATIO].i;
  if (given > 0) return berth__x_i32(p->k, given);
  const berth__x natural = berth__x1(p->k, BERTH__INST_ceil, length);
  return berth__l_clamped_index(p->k, natural, MAX_SAMPLES + 1);
}

/* first: 0 for columns, 1 for rows. */
static bins lower_roi_align_bins_of(const pooling *p, int64_t first, berth__x bin, int64_t count, int64_t extent) {
  berth__kernel *k = p->k;
  const berth__x start = lower_roi_align_corner(p, first), one = berth__x_f32(k, 1.0f);
  berth__x length = berth__x_sub(k, lower_roi_align_corner(p, first + 2), start);
  if (!p->l->call->attrs[BERTH__ROI_ALIGN_HALF_PIXEL].i)
    length = berth__x_select(k, berth__x_lt(k, one, length), length, one);
  const berth__x each = berth__x_div(k, length, berth__x_f32(k, (float)count));
  bins b = {.extent = extent, .samples = samples_of(p, each)};
  b.begin = berth__x_add(k, start, berth__x_mul(k, berth__x_convert(k, BERTH__NUM_F32, bin), each));
  const berth__x at_least_1 = berth__x_max(k, b.samples, berth__x_i32(k, 1));
  b.step = berth__x_div(k, each, berth__x_convert(k, BERTH__NUM_F32, at_least_1));
  return b;
}

static between lower_roi_align_place(const pooling *p, const bins *b, berth__x sample) {
  berth__kernel *k = p->k;
  const berth__x zero = berth__x_f32(k, 0.0f), last = berth__x_i32(k, b->extent - 1);
  const berth__x middle = berth__m_plus(k, berth__x_convert(k, BERTH__NUM_F32, sample), 0.5f);
  const berth__x at = berth__x_add(k, b->begin, berth__x_mul(k, middle, b->step));
  between out = {.is_inside = berth__x_and(k, berth__x_le(k, berth__x_f32(k, -1.0f), at),
                                           berth__x_le(k, at, berth__x_f32(k, (float)b->extent)))};
  out.low = berth__l_clamped_index(k, at, b->extent);
  out.high = berth__x_min(k, berth__x_affine(k, out.low, 1, 1), last);
  const berth__x part = berth__x_sub(k, at, berth__x_convert(k, BERTH__NUM_F32, out.low));
  const berth__x is_between = berth__x_and(k, berth__x_lt(k, out.low, last), berth__x_lt(k, zero, at));
  out.fraction = berth__x_select(k, is_between, part, zero);
  return out;
}

static berth__x element(const pooling *p, berth__x image, berth__x row, berth__x column) {
  const berth__x at[4] = {image, p->at[1], row, column};
  return berth__l_load(p->l, p->k, 0, berth__l_place(p->k, &p->l->call->in[BERTH__ROI_ALIGN_X], at));
}

/* The four elements around a sample times their weights: their sum, or their maximum. */
static berth__x lower_roi_align_blend(const pooling *p, berth__x image, const between *y, const between *z) {
  berth__kernel *k = p->k;
  const berth__x one = berth__x_f32(k, 1.0f);
  berth__x result = BERTH__X_NONE;
  for (int i = 0; i < 4; i++) {
    const berth__x down = i < 2 ? berth__x_sub(k, one, y->fraction) : y->fraction;
    const berth__x right = i % 2 == 0 ? berth__x_sub(k, one, z->fraction) : z->fraction;
    const berth__x value = element(p, image, i < 2 ? y->low : y->high, i % 2 == 0 ? z->low : z->high);
    const berth__x part = berth__x_mul(k, berth__x_mul(k, down, right), value);
    result = i == 0 ? part : p->is_max ? berth__l_fmax(k, result, part) : berth__x_add(k, result, part);
  }
  return result;
}

static berth__x lower_roi_align_pool_bin(const pooling *p, berth__x image, const bins *rows, const bins *columns) {
  berth__kernel *k = p->k;
  const berth__x zero = berth__x_f32(k, 0.0f), none = berth__x_i32(k, 0);
  const berth__x result = berth__x_variable(k, zero), any = berth__x_variable(k, berth__x_bool(k, false));
  const berth__x i = berth__x_loop(k, none, rows->samples, 1);
  const between y = lower_roi_align_place(p, rows, i);
  const berth__x j = berth__x_loop(k, none, columns->samples, 1);
  const between z = lower_roi_align_place(p, columns, j);
  const berth__x is_inside = berth__x_and(k, y.is_inside, z.is_inside);
  const berth__x value = berth__x_select(k, is_inside, lower_roi_align_blend(p, image, &y, &z), zero),
                 old = berth__x_get(k, result);
  if (p->is_max) {
    berth__x_set(k, result, berth__x_select(k, berth__x_get(k, any), berth__l_fmax(k, old, value), value));
    berth__x_set(k, any, berth__x_bool(k, true));
  } else {
    berth__x_set(k, result, berth__x_add(k, old, value));
  }
  berth__x_end(k);
  berth__x_end(k);
  if (p->is_max) return berth__x_get(k, result);
  const berth__x count = berth__x_max(k, berth__x_mul(k, rows->samples, columns->samples), berth__x_i32(k, 1));
  return berth__x_div(k, berth__x_get(k, result), berth__x_convert(k, BERTH__NUM_F32, count));
}

berth_status berth__lower_roi_align(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__ROI_ALIGN_X], *images = &l->call->in[BERTH__ROI_ALIGN_IMAGES],
                     *out = &l->call->out[0];
  pooling p = {.l = l, .is_max = strcmp(l->call->attrs[BERTH__ROI_ALIGN_MODE].s, "max") == 0};
  if (berth__count(x) == 0) return berth__fail(err, BERTH_UNSUPPORTED, "its images have no elements");
  berth__kernel *k = p.k = berth__l_begin(l, l->call->attrs[BERTH__ROI_ALIGN_MODE].s);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), 4, out->dim, p.at);
  const berth__x given = berth__l_load(l, k, 2, berth__l_place(k, images, p.at));
  const berth__x last = berth__x_i32(k, x->dim[0] - 1);
  const berth__x image = berth__x_max(k, berth__x_min(k, given, last), berth__x_i32(k, 0));
  const bins columns = lower_roi_align_bins_of(&p, 0, p.at[3], out->dim[3], x->dim[3]);
  const bins rows = lower_roi_align_bins_of(&p, 1, p.at[2], out->dim[2], x->dim[2]);
  berth__l_store(l, k, 0, berth__l_place(k, out, p.at), lower_roi_align_pool_bin(&p, image, &rows, &columns));
  return berth__l_end(l, k, err);
}
