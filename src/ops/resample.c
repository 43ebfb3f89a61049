#include "ops/resample.h"

#include <math.h>
#include <string.h>

const char *const berth__resample_names[BERTH__RESAMPLE_MODES] = {"nearest", "linear", "cubic"};
const char *const berth__coordinate_names[BERTH__COORDINATES] = {
    "half_pixel",           "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
    "align_corners_scaled", "asymmetric",           "tf_half_pixel_for_nn", "tf_crop_and_resize"};
const char *const berth__nearest_names[BERTH__NEARESTS] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                                           "simple"};

uint32_t berth__name_index(const char *name, const char *const *names, uint32_t count) {
  uint32_t i = 0;
  while (i < count && strcmp(name, names[i]) != 0) i++;
  return i;
}

static float resample_position(const berth__resample_axis *axis, berth__coordinates coordinates, int64_t index) {
  const float x = (float)index, in = (float)axis->in, out = (float)axis->out;
  switch (coordinates) {
    case BERTH__HALF_PIXEL_SYMMETRIC: {
      const float adjustment = out / (axis->scale * in);
      return in / 2 * (1 - adjustment) + (x + 0.5f) / axis->scale - 0.5f;
    }
    case BERTH__PYTORCH_HALF_PIXEL: return axis->out > 1 ? (x + 0.5f) / axis->scale - 0.5f : 0;
    case BERTH__ALIGN_CORNERS: return axis->out > 1 ? x * (in - 1) / (out - 1) : 0;
    case BERTH__ALIGN_CORNERS_SCALED: /* if an axis shrinks, uses its extent before truncation to an integer */
      return axis->out > 1 ? x * (in - 1) / ((axis->scale < 1 ? axis->scale * in : out) - 1) : 0;
    case BERTH__ASYMMETRIC: return x / axis->scale;
    case BERTH__TF_HALF_PIXEL_FOR_NN: return (x + 0.5f) / axis->scale;
    case BERTH__TF_CROP_AND_RESIZE:
      if (axis->out > 1)
        return axis->roi_begin * (in - 1) + x * (axis->roi_end - axis->roi_begin) * (in - 1) / (out - 1);
      return 0.5f * (axis->roi_begin + axis->roi_end) * (in - 1);
    default: return (x + 0.5f) / axis->scale - 0.5f;
  }
}

static float resample_nearest(berth__nearest mode, float at, float scale) {
  switch (mode) {
    case BERTH__ROUND_PREFER_CEIL: return roundf(at);
    case BERTH__NEAREST_FLOOR: return floorf(at);
    case BERTH__NEAREST_CEIL: return ceilf(at);
    case BERTH__NEAREST_SIMPLE: return scale < 1 ? ceilf(at) : truncf(at);
    default: return at == floorf(at) + 0.5f ? floorf(at) : roundf(at);
  }
}

static int64_t resample_clamped(double x, int64_t extent) {
  return !(x > 0) ? 0 : x >= (double)(extent - 1) ? extent - 1 : (int64_t)x;
}

static double cubic(double a, double x) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

void berth__cubic_weights(double a, double fraction, double weight[4]) {
  for (int k = 0; k < 4; k++) weight[k] = cubic(a, (double)(k - 1) - fraction);
}

static double resample_filter(const berth__resample *how, double x) {
  if (how->mode == BERTH__RESAMPLE_CUBIC) return cubic(how->cubic_a, x);
  return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

static int64_t radius(const berth__resample *how) { return how->mode == BERTH__RESAMPLE_CUBIC ? 2 : 1; }

/* A lower bound of the scale, however extents were rounded; the space for weights relies on it. */
static double least_scale(int64_t in, int64_t out) { return ((double)out - 0.5) / (double)in; }

int64_t berth__resample_most(const berth__resample *how, int64_t in, int64_t out) {
  if (how->mode == BERTH__RESAMPLE_NEAREST) return 1;
  int64_t most = 2 * radius(how);
  if (!how->antialias || out < 1 || out >= in) return most;
  const double reach = ceil((double)radius(how) / least_scale(in, out));
  return 2 * (int64_t)reach + 2;
}

/* The neighbours [*first, *last] of a position that are on the axis: at least one. */
static void neighbours(double at, double reach, int64_t extent, int64_t *first, int64_t *last) {
  *first = resample_clamped(floor(at - reach) + 1, extent);
  *last = resample_clamped(ceil(at + reach) - 1, extent);
  if (*last < *first) *last = *first;
}

/* Weights of the neighbours on the axis; weight beyond an end is added there, or dropped. */
static double resample_weigh(const berth__resample *how, double at, double stretch, int64_t extent,
                             berth__resample_taps *taps, double *weight) {
  const double reach = (double)radius(how) / stretch;
  int64_t last;
  double sum = 0;
  neighbours(at, reach, extent, &taps->first, &last);
  taps->count = last - taps->first + 1;
  for (int64_t k = 0; k < taps->count; k++) weight[k] = 0;
  const double lowest = floor(at - reach) + 1;
  /* Counted, because far outside the axis a double plus one equals itself. */
  for (int64_t k = 0; k < (int64_t)(2 * reach) + 2; k++) {
    const double i = lowest + (double)k;
    if (!(i <= ceil(at + reach))) break;
    const double w = resample_filter(how, (i - at) * stretch);
    const bool outside = i < 0 || i > (double)(extent - 1);
    if (w == 0 || (outside && how->exclude_outside)) continue;
    int64_t place = resample_clamped(i, extent) - taps->first;
    place = place < 0 ? 0 : place >= taps->count ? taps->count - 1 : place;
    weight[place] += w;
    sum += w;
  }
  return sum;
}

/* Drops neighbours without weight: an axis that keeps its extent has one neighbour per element. */
static void resample_trim(berth__resample_taps *taps, double *weight) {
  int64_t lead = 0;
  while (taps->count > 1 && weight[taps->count - 1] == 0) taps->count--;
  while (lead + 1 < taps->count && weight[lead] == 0) lead++;
  if (lead == 0) return;
  taps->count -= lead;
  taps->first += lead;
  memmove(weight, weight + lead, (size_t)taps->count * sizeof *weight);
}

berth__resample_taps berth__resample_at(const berth__resample *how, const berth__resample_axis *axis, int64_t index,
                                        double *weight) {
  berth__resample_taps taps = {.first = index, .count = 1};
  const bool crops = how->coordinates == BERTH__TF_CROP_AND_RESIZE;
  weight[0] = 1;
  if (axis->in == axis->out && axis->scale == 1 && !crops) return taps;
  const float at = resample_position(axis, how->coordinates, index);
  if (crops && !(at >= 0 && at <= (float)(axis->in - 1))) return (berth__resample_taps){0, 0};
  if (how->mode == BERTH__RESAMPLE_NEAREST) {
    taps.first = resample_clamped((double)resample_nearest(how->nearest, at, axis->scale), axis->in);
    return taps;
  }
  const double scale = fmax((double)axis->scale, least_scale(axis->in, axis->out));
  const double stretch = how->antialias && axis->out < axis->in && scale < 1 ? scale : 1;
  const double sum = resample_weigh(how, (double)at, stretch, axis->in, &taps, weight);
  const bool is_whole = stretch == 1 && !how->exclude_outside;
  for (int64_t k = 0; k < taps.count && !is_whole && sum != 0; k++) weight[k] /= sum;
  resample_trim(&taps, weight);
  return taps;
}
