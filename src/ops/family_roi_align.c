/* roi_align: regions of x [N, C, H, W], each divided into a grid of bins that are sampled by interpolation. Regions are
 * [R, 4] (x1, y1, x2, y2), and images [R] is the image of each. */
#include <inttypes.h>
#include <math.h>

#include "ops/registry.h"
#include "ops/roi_align.h"

#define MAX_SAMPLES 1024 /* per bin along one axis: regions come from data, and may have any size */

static const berth_attr attrs[] = {
    [BERTH__ROI_ALIGN_MODE] = {.name = "mode", .kind = BERTH_ATTR_STRING, .s = "avg"},
    [BERTH__ROI_ALIGN_OUTPUT_HEIGHT] = {.name = "output_height", .kind = BERTH_ATTR_INT, .i = 1},
    [BERTH__ROI_ALIGN_OUTPUT_WIDTH] = {.name = "output_width", .kind = BERTH_ATTR_INT, .i = 1},
    [BERTH__ROI_ALIGN_SAMPLING_RATIO] =
        {.name = "sampling_ratio",
         .kind = BERTH_ATTR_INT}, /* samples per bin on each axis; 0: as many as it has elements */
    [BERTH__ROI_ALIGN_SPATIAL_SCALE] = {.name = "spatial_scale", .kind = BERTH_ATTR_FLOAT, .f = 1},
    [BERTH__ROI_ALIGN_HALF_PIXEL] = {.name = "half_pixel",
                                     .kind = BERTH_ATTR_INT,
                                     .i = 1}, /* elements are at their centres, not at their corners */
};

static berth_status roi_align_check(const berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  const berth_type images = infer->in_type[BERTH__ROI_ALIGN_IMAGES];
  BERTH__TRY(berth__want_float(infer, 0, err));
  BERTH__TRY(berth__want_same_type(infer, 0, 1, err));
  if (images != BERTH_I64 && images != BERTH_I32) BERTH__TRY(berth__want_type(infer, 2, BERTH_I64, err));
  BERTH__TRY(berth__want_rank(infer, 0, 4, 4, err));
  BERTH__TRY(berth__want_rank(infer, 1, 2, 2, err));
  BERTH__TRY(berth__want_rank(infer, 2, 1, 1, err));
  if (strcmp(attr[BERTH__ROI_ALIGN_MODE].s, "avg") != 0 && strcmp(attr[BERTH__ROI_ALIGN_MODE].s, "max") != 0)
    return berth__fail(err, BERTH_INVALID, "mode \"%s\" is not one of avg and max", attr[BERTH__ROI_ALIGN_MODE].s);
  if (attr[BERTH__ROI_ALIGN_OUTPUT_HEIGHT].i < 1 || attr[BERTH__ROI_ALIGN_OUTPUT_WIDTH].i < 1 ||
      attr[BERTH__ROI_ALIGN_SAMPLING_RATIO].i < 0 || attr[BERTH__ROI_ALIGN_SAMPLING_RATIO].i > MAX_SAMPLES)
    return berth__fail(err, BERTH_INVALID,
                       "a grid of %" PRId64 " x %" PRId64 " bins with %" PRId64 " samples cannot be",
                       attr[BERTH__ROI_ALIGN_OUTPUT_HEIGHT].i, attr[BERTH__ROI_ALIGN_OUTPUT_WIDTH].i,
                       attr[BERTH__ROI_ALIGN_SAMPLING_RATIO].i);
  return BERTH_OK;
}

static berth_status roi_align_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__ROI_ALIGN_X];
  int64_t regions = 0, same;
  BERTH__TRY(roi_align_check(infer, err));
  BERTH__TRY(berth__same_dim(infer->in_shape[BERTH__ROI_ALIGN_REGIONS].dim[0],
                             infer->in_shape[BERTH__ROI_ALIGN_IMAGES].dim[0], "regions and their images", &regions,
                             err));
  BERTH__TRY(berth__same_dim(infer->in_shape[BERTH__ROI_ALIGN_REGIONS].dim[1], 4, "corners of a region", &same, err));
  infer->out_shape[0] = (berth__shape){.rank = 4,
                                       .dim = {regions, x->dim[1], infer->attrs[BERTH__ROI_ALIGN_OUTPUT_HEIGHT].i,
                                               infer->attrs[BERTH__ROI_ALIGN_OUTPUT_WIDTH].i}};
  infer->out_type[0] = infer->in_type[BERTH__ROI_ALIGN_X];
  return BERTH_OK;
}

typedef berth__roi_bins bins;

static bins roi_align_bins_of(const berth_op_call *call, double low, double high, int64_t count, int64_t extent) {
  const double scale = call->attrs[BERTH__ROI_ALIGN_SPATIAL_SCALE].f,
               shift = call->attrs[BERTH__ROI_ALIGN_HALF_PIXEL].i ? 0.5 : 0;
  bins b = {.start = low * scale - shift, .extent = extent, .samples = call->attrs[BERTH__ROI_ALIGN_SAMPLING_RATIO].i};
  double length = high * scale - shift - b.start;
  if (!call->attrs[BERTH__ROI_ALIGN_HALF_PIXEL].i && !(length > 1)) length = 1; /* a region has at least one element */
  b.length = length / (double)count;
  if (b.samples > 0) return b;
  const double natural = ceil(b.length);
  b.samples = natural > MAX_SAMPLES ? MAX_SAMPLES : natural > 0 ? (int64_t)natural : 0;
  return b;
}

/* The two elements that a sample is between, and the weight of the second; false if it is off the axis. */
typedef struct between {
  int64_t low, high;
  double fraction;
} between;

static bool roi_align_place(double at, int64_t extent, between *out) {
  if (!(at >= -1) || at > (double)extent) return false;
  at = at > 0 ? at : 0;
  const int64_t low = (int64_t)at;
  *out = low >= extent - 1 ? (between){extent - 1, extent - 1, 0} : (between){low, low + 1, at - (double)low};
  return true;
}

static double sample_at(const bins *b, int64_t bin, int64_t sample) {
  return b->start + (double)bin * b->length + ((double)sample + 0.5) * b->length / (double)b->samples;
}

void berth__roi_align_sample(const bins *rows, const bins *columns, int64_t row, int64_t column, int64_t i, int64_t j,
                             berth__roi_sample *out) {
  between y, z;
  out->inside = roi_align_place(sample_at(rows, row, i), rows->extent, &y) &&
                roi_align_place(sample_at(columns, column, j), columns->extent, &z);
  if (!out->inside) return;
  const int64_t top = y.low * columns->extent, bottom = y.high * columns->extent;
  out->from[0] = top + z.low;
  out->from[1] = top + z.high;
  out->from[2] = bottom + z.low;
  out->from[3] = bottom + z.high;
  out->weight[0] = (1 - y.fraction) * (1 - z.fraction);
  out->weight[1] = (1 - y.fraction) * z.fraction;
  out->weight[2] = y.fraction * (1 - z.fraction);
  out->weight[3] = y.fraction * z.fraction;
}

/* The four elements around a sample times their weights: their sum, or their maximum. */
static double roi_align_blend(const berth_tensor *x, int64_t plane, const berth__roi_sample *s, bool largest) {
  double part[4];
  for (int k = 0; k < 4; k++) part[k] = s->weight[k] * berth__load_f64(x, plane + s->from[k]);
  return largest ? fmax(fmax(part[0], part[1]), fmax(part[2], part[3])) : part[0] + part[1] + part[2] + part[3];
}

static double roi_align_pool_bin(const berth_op_call *call, int64_t plane, const bins *rows, const bins *columns,
                                 int64_t row, int64_t column) {
  const bool largest = strcmp(call->attrs[BERTH__ROI_ALIGN_MODE].s, "max") == 0;
  double result = 0;
  bool any = false;
  for (int64_t i = 0; i < rows->samples; i++)
    for (int64_t j = 0; j < columns->samples; j++) {
      berth__roi_sample s;
      berth__roi_align_sample(rows, columns, row, column, i, j, &s);
      const double value = s.inside ? roi_align_blend(&call->in[BERTH__ROI_ALIGN_X], plane, &s, largest) : 0;
      result = !largest ? result + value : any ? fmax(result, value) : value;
      any = true;
    }
  const double count = (double)rows->samples * (double)columns->samples;
  return largest || count < 1 ? result : result / count;
}

/* Items are regions. */
static int64_t roi_align_items(const berth_op_call *call) { return call->out[0].dim[0]; }

berth_status berth__roi_align_region(const berth_op_call *call, int64_t region, int64_t *image, bins *rows,
                                     bins *columns, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__ROI_ALIGN_X], *corners = &call->in[BERTH__ROI_ALIGN_REGIONS];
  *image = berth__load_i64(&call->in[BERTH__ROI_ALIGN_IMAGES], region);
  if (*image < 0 || *image >= x->dim[0])
    return berth__fail(err, BERTH_INVALID, "region %" PRId64 " is of image %" PRId64 ", and there are %" PRId64, region,
                       *image, x->dim[0]);
  *columns = roi_align_bins_of(call, berth__load_f64(corners, region * 4), berth__load_f64(corners, region * 4 + 2),
                               call->out[0].dim[3], x->dim[3]);
  *rows = roi_align_bins_of(call, berth__load_f64(corners, region * 4 + 1), berth__load_f64(corners, region * 4 + 3),
                            call->out[0].dim[2], x->dim[2]);
  return BERTH_OK;
}

static berth_status roi_align_pool_region(const berth_op_call *call, int64_t region, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__ROI_ALIGN_X], *out = &call->out[0];
  const int64_t height = out->dim[2], width = out->dim[3];
  bins rows, columns;
  int64_t image;
  BERTH__TRY(berth__roi_align_region(call, region, &image, &rows, &columns, err));
  for (int64_t c = 0; c < x->dim[1]; c++)
    for (int64_t at = 0; at < height * width; at++)
      berth__store_f64(out, (region * x->dim[1] + c) * height * width + at,
                       roi_align_pool_bin(call, (image * x->dim[1] + c) * x->dim[2] * x->dim[3], &rows, &columns,
                                          at / width, at % width));
  return BERTH_OK;
}

static berth_status roi_align_kernel(const berth_op_call *call, berth_error *err) {
  for (int64_t region = call->begin; region < call->end; region++) BERTH__TRY(roi_align_pool_region(call, region, err));
  return BERTH_OK;
}

const berth__family berth__family_roi_align = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = roi_align_infer,
    .items = roi_align_items,
    .kernel = roi_align_kernel,
};
