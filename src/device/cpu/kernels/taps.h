/* Tables of pointers for kernels with channels last: where every tap of the windows of some pixels lies in x. Taps
 * outside x point to a row that the caller provides (zeros, or other neutral elements), so inner loops need no border
 * cases. */
#ifndef BERTH_DEVICE_CPU_KERNELS_TAPS_H
#define BERTH_DEVICE_CPU_KERNELS_TAPS_H

#include "device/cpu/kernels/vec.h"
#include "ops/conv_last.h"

/* How many of the next n pixels are on the same line as this one. */
static inline int64_t taps_run(const berth__last *last, const berth__last_pixel *pixel, int64_t n) {
  const int64_t left = last->window.axis[2].out - pixel->at[2];
  return n < left ? n : left;
}

/* Skips a run. */
static inline void taps_skip(const berth__last *last, berth__last_pixel *pixel, int64_t run) {
  pixel->at[2] += run - 1;
  for (uint32_t k = BERTH__WINDOW_AXES; k-- > 0; pixel->at[k] = 0)
    if (++pixel->at[k] < last->window.axis[k].out) return;
  pixel->image++;
}

/* The first element of a line of taps along the last axis, as if it were inside; NULL: the line is outside. */
static inline const float *taps_line(const berth__last *last, const float *x, const berth__last_pixel *pixel,
                                     int64_t k0, int64_t k1) {
  const berth__window_axis *w = last->window.axis;
  const int64_t i0 = berth__window_input(&w[0], pixel->at[0], k0), i1 = berth__window_input(&w[1], pixel->at[1], k1);
  if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in) return NULL;
  return x + pixel->image * last->image_stride + i0 * last->axis_stride[0] + i1 * last->axis_stride[1];
}

/* One tap of a run of pixels: columns `column`, column + stride, ... of a line, which is NULL outside x. */
static inline void taps_fill_run(const berth__last *last, const float *line, const float *outside, int64_t column,
                                 int64_t run, const float **to) {
  const berth__window_axis *w = &last->window.axis[2];
  const int64_t pixel = last->axis_stride[2], step = w->stride * pixel;
  const bool is_inside = line != NULL && column >= 0 && column + (run - 1) * w->stride < w->in;
  const float *at = is_inside ? line + column * pixel : outside;
  if (is_inside || line == NULL) {
    for (int64_t r = 0; r < run; r++) to[r] = at + r * (is_inside ? step : 0);
    return;
  }
  for (int64_t r = 0; r < run; r++, column += w->stride)
    to[r] = column >= 0 && column < w->in ? line + column * pixel : outside;
}

/* Fills rows[tap * n + r] for the pixels first .. first + n - 1 of the result. */
static inline void taps_fill(const berth__last *last, const float *x, const float *outside, int64_t first, int64_t n,
                             const float **rows) {
  const berth__window_axis *w = last->window.axis;
  berth__last_pixel pixel = berth__last_pixel_of(last, first);
  for (int64_t r = 0, run; r < n; r += run, taps_skip(last, &pixel, run)) {
    const float **to = rows + r;
    run = taps_run(last, &pixel, n - r);
    for (int64_t k0 = 0; k0 < w[0].kernel; k0++)
      for (int64_t k1 = 0; k1 < w[1].kernel; k1++) {
        const float *line = taps_line(last, x, &pixel, k0, k1);
        for (int64_t k2 = 0; k2 < w[2].kernel; k2++, to += n)
          taps_fill_run(last, line, outside, berth__window_input(&w[2], pixel.at[2], k2), run, to);
      }
  }
}

/* The windows [*first, *last) of an axis that lie inside x. */
static inline void taps_inside(const berth__window_axis *w, int64_t *first, int64_t *last) {
  const int64_t room = w->in + w->begin - ((w->kernel - 1) * w->dilation + 1);
  *first = (w->begin + w->stride - 1) / w->stride;
  *last = room < 0 ? 0 : room / w->stride + 1;
  if (*last > w->out) *last = w->out;
  if (*first > *last) *first = *last;
}

static inline int64_t taps_pixels(const berth__last *last) {
  const berth__window_axis *w = last->window.axis;
  return last->images * w[0].out * w[1].out * w[2].out;
}

#endif
