/* max_roi_pool: regions of x [N, C, H, W], each divided into a grid of bins with integer bounds; the maximum of each
 * bin. Regions are [R, 5]: the image, then x1, y1, x2, y2. */
#include <inttypes.h>
#include <math.h>

#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__MAX_ROI_POOL_POOLED] = {.name = "pooled", .kind = BERTH_ATTR_INTS}, /* bins down and across */
    [BERTH__MAX_ROI_POOL_SPATIAL_SCALE] = {.name = "spatial_scale", .kind = BERTH_ATTR_FLOAT, .f = 1},
};

static berth_status max_roi_pool_infer(berth__infer *infer, berth_error *err) {
  const berth_attr *pooled = &infer->attrs[BERTH__MAX_ROI_POOL_POOLED];
  int64_t same;
  BERTH__TRY(berth__want_float(infer, 0, err));
  BERTH__TRY(berth__want_same_type(infer, 0, 1, err));
  BERTH__TRY(berth__want_rank(infer, 0, 4, 4, err));
  BERTH__TRY(berth__want_rank(infer, 1, 2, 2, err));
  BERTH__TRY(berth__same_dim(infer->in_shape[1].dim[1], 5, "entries of a region", &same, err));
  if (pooled->count != 2 || pooled->ints[0] < 1 || pooled->ints[1] < 1)
    return berth__fail(err, BERTH_INVALID, "`pooled` must have two entries of 1 or more: bins down and across");
  infer->out_shape[0] = (berth__shape){
      .rank = 4, .dim = {infer->in_shape[1].dim[0], infer->in_shape[0].dim[1], pooled->ints[0], pooled->ints[1]}};
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* One axis of a region, in elements. */
typedef struct bins {
  double start, length; /* of the region; of a bin */
  int64_t extent;
} bins;

static bins max_roi_pool_bins_of(const berth_op_call *call, double low, double high, int64_t count, int64_t extent) {
  const double scale = call->attrs[BERTH__MAX_ROI_POOL_SPATIAL_SCALE].f, start = round(low * scale);
  const double length = fmax(round(high * scale) - start + 1, 1);
  return (bins){.start = start, .length = length / (double)count, .extent = extent};
}

static int64_t max_roi_pool_clamped(double x, int64_t extent) {
  return !(x > 0) ? 0 : x < (double)extent ? (int64_t)x : extent;
}

/* The elements [*first, *last) of a bin that are on the axis. */
static void span(const bins *b, int64_t bin, int64_t *first, int64_t *last) {
  *first = max_roi_pool_clamped(b->start + floor((double)bin * b->length), b->extent);
  *last = max_roi_pool_clamped(b->start + ceil((double)(bin + 1) * b->length), b->extent);
}

static double max_roi_pool_largest(const berth_tensor *x, int64_t plane, const bins *rows, const bins *columns,
                                   int64_t row, int64_t column) {
  int64_t top, bottom, left, right;
  span(rows, row, &top, &bottom);
  span(columns, column, &left, &right);
  if (bottom <= top || right <= left) return 0;
  double best = -(double)INFINITY;
  for (int64_t i = top; i < bottom; i++)
    for (int64_t j = left; j < right; j++) {
      const double value = berth__load_f64(x, plane + i * x->dim[3] + j);
      if (value > best || isnan(value)) best = value;
    }
  return best;
}

/* Items are regions. */
static int64_t max_roi_pool_items(const berth_op_call *call) { return call->out[0].dim[0]; }

static berth_status max_roi_pool_region(const berth_op_call *call, int64_t region, berth_error *err) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  double entry[5];
  for (int64_t k = 0; k < 5; k++) entry[k] = berth__load_f64(&call->in[1], region * 5 + k);
  if (!(entry[0] >= 0 && entry[0] < (double)x->dim[0]))
    return berth__fail(err, BERTH_INVALID, "region %" PRId64 " is of image %g, and there are %" PRId64, region,
                       entry[0], x->dim[0]);
  const int64_t image = (int64_t)entry[0], height = out->dim[2], width = out->dim[3];
  const bins columns = max_roi_pool_bins_of(call, entry[1], entry[3], width, x->dim[3]);
  const bins rows = max_roi_pool_bins_of(call, entry[2], entry[4], height, x->dim[2]);
  for (int64_t c = 0; c < x->dim[1]; c++)
    for (int64_t at = 0; at < height * width; at++)
      berth__store_f64(out, (region * x->dim[1] + c) * height * width + at,
                       max_roi_pool_largest(x, (image * x->dim[1] + c) * x->dim[2] * x->dim[3], &rows, &columns,
                                            at / width, at % width));
  return BERTH_OK;
}

static berth_status max_roi_pool_kernel(const berth_op_call *call, berth_error *err) {
  for (int64_t region = call->begin; region < call->end; region++) BERTH__TRY(max_roi_pool_region(call, region, err));
  return BERTH_OK;
}

const berth__family berth__family_max_roi_pool = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__MAX_ROI_POOL_POOLED,
    .infer = max_roi_pool_infer,
    .items = max_roi_pool_items,
    .kernel = max_roi_pool_kernel,
};
