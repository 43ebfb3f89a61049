/* max_roi_pool: one thread per bin of a region, in each channel. Regions of images that do not exist, which the
 * reference kernel refuses, use the nearest image. */
#include <math.h>

#include "kernel/lower/math.h"
#include "kernel/lower/sample.h"

#define FARTHEST 524288.0f /* corners farther out are clamped to this: no image reaches it */

typedef struct pooling {
  berth__lowering *l;
  berth__kernel *k;
  berth__x at[4];
} pooling;

/* The elements [first, last) of a bin that are on the axis. */
typedef struct span {
  berth__x first, last;
} span;

static berth__x lower_max_roi_pool_entry(const pooling *p, int64_t i) {
  const berth__x at[2] = {p->at[0], berth__x_i32(p->k, i)};
  return berth__l_load(p->l, p->k, 1, berth__l_place(p->k, &p->l->call->in[1], at));
}

/* A corner, as an integer. */
static berth__x lower_max_roi_pool_corner(const pooling *p, int64_t i) {
  berth__kernel *k = p->k;
  const berth__x scaled =
      berth__m_scale(k, lower_max_roi_pool_entry(p, i), (float)p->l->call->attrs[BERTH__MAX_ROI_POOL_SPATIAL_SCALE].f);
  const berth__x low = berth__x_f32(k, -FARTHEST), high = berth__x_f32(k, FARTHEST);
  const berth__x above = berth__x_select(k, berth__x_lt(k, low, scaled), scaled, low);
  return berth__x_convert(k, BERTH__NUM_I32, berth__l_round_away(k, berth__x_min(k, above, high)));
}

static berth__x lower_max_roi_pool_clamped(berth__kernel *k, berth__x x, int64_t extent) {
  return berth__x_max(k, berth__x_min(k, x, berth__x_i32(k, extent)), berth__x_i32(k, 0));
}

/* first: 1 for columns, 2 for rows. Bins have integer bounds: bin * length / count, rounded down and up. */
static span span_of(const pooling *p, int64_t first, berth__x bin, int64_t count, int64_t extent) {
  berth__kernel *k = p->k;
  const berth__x start = lower_max_roi_pool_corner(p, first), one = berth__x_i32(k, 1), n = berth__x_i32(k, count);
  const berth__x length =
      berth__x_max(k, berth__x_affine(k, berth__x_sub(k, lower_max_roi_pool_corner(p, first + 2), start), 1, 1), one);
  const berth__x low = berth__x_div(k, berth__x_mul(k, bin, length), n);
  const berth__x end = berth__x_mul(k, berth__x_affine(k, bin, 1, 1), length);
  const berth__x high = berth__x_div(k, berth__x_affine(k, end, 1, count - 1), n);
  return (span){lower_max_roi_pool_clamped(k, berth__x_add(k, start, low), extent),
                lower_max_roi_pool_clamped(k, berth__x_add(k, start, high), extent)};
}

static berth__x lower_max_roi_pool_largest(const pooling *p, berth__x image, const span *rows, const span *columns) {
  berth__kernel *k = p->k;
  const berth__x best = berth__x_variable(k, berth__x_f32(k, -INFINITY));
  const berth__x row = berth__x_loop(k, rows->first, rows->last, 1);
  const berth__x column = berth__x_loop(k, columns->first, columns->last, 1);
  const berth__x at[4] = {image, p->at[1], row, column};
  const berth__x value = berth__l_load(p->l, k, 0, berth__l_place(k, &p->l->call->in[0], at));
  const berth__x old = berth__x_get(k, best);
  const berth__x is_new = berth__x_or(k, berth__x_lt(k, old, value), berth__x_is_nan(k, value));
  berth__x_set(k, best, berth__x_select(k, is_new, value, old));
  berth__x_end(k);
  berth__x_end(k);
  const berth__x is_any =
      berth__x_and(k, berth__x_lt(k, rows->first, rows->last), berth__x_lt(k, columns->first, columns->last));
  return berth__x_select(k, is_any, berth__x_get(k, best), berth__x_f32(k, 0.0f));
}

berth_status berth__lower_max_roi_pool(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *out = &l->call->out[0];
  pooling p = {.l = l};
  if (out->dim[2] > 1024 || out->dim[3] > 1024)
    return berth__fail(err, BERTH_UNSUPPORTED, "a region has more than the 1024 bins of kernels on one axis");
  if (berth__count(x) == 0) return berth__fail(err, BERTH_UNSUPPORTED, "its images have no elements");
  berth__kernel *k = p.k = berth__l_begin(l, NULL);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), 4, out->dim, p.at);
  const berth__x image = berth__l_clamped_index(k, lower_max_roi_pool_entry(&p, 0), x->dim[0]);
  const span columns = span_of(&p, 1, p.at[3], out->dim[3], x->dim[3]);
  const span rows = span_of(&p, 2, p.at[2], out->dim[2], x->dim[2]);
  berth__l_store(l, k, 0, berth__l_place(k, out, p.at), lower_max_roi_pool_largest(&p, image, &rows, &columns));
  return berth__l_end(l, k, err);
}
