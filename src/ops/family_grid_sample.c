/* grid_sample: samples x [N, C, spatial...] at the points of grid [N, out..., d], whose coordinates (the last spatial
 * axis first) range from -1 to 1 over each axis. One to three spatial axes. */
#include <inttypes.h>
#include <math.h>

#include "ops/grid_sample.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__GRID_SAMPLE_MODE] = {.name = "mode", .kind = BERTH_ATTR_STRING, .s = "linear"},
    [BERTH__GRID_SAMPLE_PADDING] = {.name = "padding", .kind = BERTH_ATTR_STRING, .s = "zeros"},
    [BERTH__GRID_SAMPLE_ALIGN_CORNERS] = {.name = "align_corners", .kind = BERTH_ATTR_INT},
};

enum {
  ZEROS,
  BORDER,
  REFLECTION,
  N_PADDINGS
};
static const char *const padding_names[N_PADDINGS] = {"zeros", "border", "reflection"};

typedef berth__grid_sampling sampling;
typedef berth__grid_neighbours neighbours;

static berth_status grid_sample_check_names(const berth_attr *attr, berth_error *err) {
  if (berth__name_index(attr[BERTH__GRID_SAMPLE_MODE].s, berth__resample_names, BERTH__RESAMPLE_MODES) ==
      BERTH__RESAMPLE_MODES)
    return berth__fail(err, BERTH_INVALID, "mode \"%s\" is not one of nearest, linear and cubic",
                       attr[BERTH__GRID_SAMPLE_MODE].s);
  if (berth__name_index(attr[BERTH__GRID_SAMPLE_PADDING].s, padding_names, N_PADDINGS) == N_PADDINGS)
    return berth__fail(err, BERTH_INVALID, "padding \"%s\" is not one of zeros, border and reflection",
                       attr[BERTH__GRID_SAMPLE_PADDING].s);
  return BERTH_OK;
}

static berth_status grid_sample_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *grid = &infer->in_shape[1];
  int64_t same;
  BERTH__TRY(grid_sample_check_names(infer->attrs, err));
  BERTH__TRY(berth__want_numeric(infer, 0, err));
  BERTH__TRY(berth__want_float(infer, 1, err));
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  BERTH__TRY(berth__want_rank(infer, 1, x->rank, x->rank, err));
  BERTH__TRY(berth__same_dim(grid->dim[grid->rank - 1], (int64_t)x->rank - 2, "coordinates of a point", &same, err));
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){.rank = x->rank, .dim = {0, x->dim[1]}};
  BERTH__TRY(berth__same_dim(x->dim[0], grid->dim[0], "images and grids", &out->dim[0], err));
  for (uint32_t axis = 2; axis < x->rank; axis++) {
    out->dim[axis] = grid->dim[axis - 1];
    if (x->dim[axis] == 0)
      return berth__fail(err, BERTH_INVALID, "axis %" PRIu32 " of the image is empty; there is nothing to look up",
                         axis);
  }
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* Reflects between low and high. */
static double grid_sample_reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double far = fmod(fabs(x - low), 2 * range);
  return low + (far <= range ? far : 2 * range - far);
}

static int64_t grid_sample_place_of(const sampling *s, double at, int64_t extent) {
  const double last = (double)(extent - 1), low = s->align ? 0 : -0.5, high = s->align ? last : last + 0.5;
  if (at >= 0 && at <= last) return (int64_t)at;
  if (s->padding == ZEROS || !isfinite(at)) return -1;
  if (s->padding == REFLECTION) at = grid_sample_reflect(at, low, high);
  return at < 0 ? 0 : at > last ? extent - 1 : (int64_t)at;
}

/* Converts a coordinate of -1 to 1 to a position on the axis, moved inside if the padding mode says so; cubic
 * neighbours are moved one by one, which for `border` is not the same. */
static double grid_sample_position(const sampling *s, double coordinate, int64_t extent) {
  const double last = (double)(extent - 1);
  const double low = s->align ? 0 : -0.5, high = s->align ? last : last + 0.5;
  double at = s->align ? (coordinate + 1) / 2 * last : ((coordinate + 1) * (double)extent - 1) / 2;
  if (s->mode == BERTH__RESAMPLE_NEAREST) at = rint(at);
  if (at >= low && at <= high) return at;
  if (s->padding == BORDER && s->mode != BERTH__RESAMPLE_CUBIC) return at < 0 ? 0 : at > last ? last : at;
  return s->padding == REFLECTION && isfinite(at) ? grid_sample_reflect(at, low, high) : at;
}

static void find_neighbours(const sampling *s, double coordinate, int64_t extent, neighbours *out) {
  const double at = grid_sample_position(s, coordinate, extent), first = floor(at), fraction = at - first;
  switch (s->mode) {
    case BERTH__RESAMPLE_NEAREST: *out = (neighbours){.count = 1, .weight = {1}}; break;
    case BERTH__RESAMPLE_CUBIC: out->count = 4, berth__cubic_weights(-0.75, fraction, out->weight); break;
    default: *out = (neighbours){.count = 2, .weight = {1 - fraction, fraction}}; break;
  }
  const double start = s->mode == BERTH__RESAMPLE_CUBIC     ? first - 1
                       : s->mode == BERTH__RESAMPLE_NEAREST ? rint(at)
                                                            : first;
  for (int64_t k = 0; k < out->count; k++) out->place[k] = grid_sample_place_of(s, start + (double)k, extent);
}

/* Interpolates one channel, which starts at `base`, between the neighbours on all axes. */
static double grid_sample_look_up(const sampling *s, const berth_tensor *x, int64_t base, const neighbours *near) {
  int64_t combinations = 1;
  double sum = 0;
  for (uint32_t k = 0; k < s->spatial; k++) combinations *= near[k].count;
  for (int64_t c = 0; c < combinations; c++) {
    int64_t from = base, rest = c;
    double weight = 1;
    bool inside = true;
    for (uint32_t k = s->spatial; k-- > 0; rest /= near[k].count) {
      const int64_t tap = rest % near[k].count;
      inside = inside && near[k].place[tap] >= 0;
      from += near[k].place[tap] * x->stride[2 + k];
      weight *= near[k].weight[tap];
    }
    if (inside && weight != 0) sum += weight * berth__load_f64(x, from);
  }
  return sum;
}

/* Items are points of the result: all channels of a point share its neighbours. */
static int64_t grid_sample_items(const berth_op_call *call) {
  int64_t points = call->out[0].dim[0];
  for (uint32_t axis = 2; axis < call->out[0].rank; axis++) points *= call->out[0].dim[axis];
  return points;
}

void berth__grid_sample_near(const berth_op_call *call, const sampling *s, int64_t item, neighbours *near) {
  const berth_tensor *x = &call->in[0], *grid = &call->in[1];
  for (uint32_t k = 0; k < s->spatial; k++)
    find_neighbours(s, berth__load_f64(grid, item * s->spatial + (s->spatial - 1 - k)), x->dim[2 + k], &near[k]);
}

static void sample(const berth_op_call *call, const sampling *s, int64_t item) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const int64_t image = item / s->points, point = item % s->points, channels = x->dim[1];
  neighbours near[BERTH__WINDOW_AXES];
  berth__grid_sample_near(call, s, item, near);
  for (int64_t c = 0; c < channels; c++)
    berth__store_f64(out, (image * channels + c) * s->points + point,
                     grid_sample_look_up(s, x, (image * channels + c) * s->area, near));
}

void berth__grid_sample_read(const berth_op_call *call, sampling *s) {
  *s = (sampling){.mode = (berth__resample_mode)berth__name_index(call->attrs[BERTH__GRID_SAMPLE_MODE].s,
                                                                  berth__resample_names, BERTH__RESAMPLE_MODES),
                  .padding = berth__name_index(call->attrs[BERTH__GRID_SAMPLE_PADDING].s, padding_names, N_PADDINGS),
                  .align = call->attrs[BERTH__GRID_SAMPLE_ALIGN_CORNERS].i != 0,
                  .spatial = call->in[0].rank - 2,
                  .points = 1,
                  .area = 1};
  for (uint32_t axis = 2; axis < call->in[0].rank; axis++) {
    s->points *= call->out[0].dim[axis];
    s->area *= call->in[0].dim[axis];
  }
}

static berth_status grid_sample_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  sampling s;
  berth__grid_sample_read(call, &s);
  for (int64_t item = call->begin; item < call->end; item++) sample(call, &s, item);
  return BERTH_OK;
}

const berth__family berth__family_grid_sample = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = grid_sample_infer,
    .items = grid_sample_items,
    .kernel = grid_sample_kernel,
};
