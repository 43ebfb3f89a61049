/* Windows that slide over the spatial axes [.., .., spatial...] of a tensor: conv, conv_transpose and pooling. One to
 * three spatial axes; kernels always have three, the first ones with extent 1 if there are fewer. */
#ifndef BERTH_OPS_WINDOW_H
#define BERTH_OPS_WINDOW_H

#include "ops/op.h"

#define BERTH__WINDOW_AXES 3

/* Attributes as given: empty lists mean 1, 0, 1 and 0 on every axis. */
typedef struct berth__window_attrs {
  const berth_attr *strides, *pads, *dilations, *auto_pad;
} berth__window_attrs;
/* The attribute `auto_pad` of their families: with "same_upper" or "same_lower" pads depend on the input's extent, so
 * that there is one window per stride; the odd element goes to the end or to the beginning. */
#define BERTH__WINDOW_AUTO_PAD \
  { .name = "auto_pad", .kind = BERTH_ATTR_STRING, .s = "none" }
bool berth__window_is_auto(const berth__window_attrs *attrs);
/* Splits elements of padding between the two ends of an axis. */
void berth__window_split_pad(const berth__window_attrs *attrs, int64_t total, int64_t *begin, int64_t *end);

/* One spatial axis: a window of `kernel` taps, `dilation` apart, moves by `stride` over `in` elements with `begin` and
 * `end` elements of padding around them. */
typedef struct berth__window_axis {
  int64_t in, out, kernel, stride, begin, end, dilation;
} berth__window_axis;

typedef struct berth__window {
  berth__window_axis axis[BERTH__WINDOW_AXES];
} berth__window;

/* Checks that a list is empty or has `count` entries of at least `least`. */
berth_status berth__window_check_list(const berth_attr *list, uint32_t count, int64_t least, berth_error *err);
/* Checks the lengths of the lists, strides and dilations of at least 1, and pads of at least 0 and not together with
 * `auto_pad`. */
berth_status berth__window_check(const berth__window_attrs *attrs, uint32_t spatial, berth_error *err);
/* in, kernel and out may be open dimensions here; does not set out. */
berth__window_axis berth__window_axis_of(const berth__window_attrs *attrs, uint32_t spatial, uint32_t axis, int64_t in,
                                         int64_t kernel);
/* How far the last window reaches past the elements, minus padding at the beginning; negative: it does not reach their
 * end. */
int64_t berth__window_over(const berth__window_axis *axis);
/* The number of windows: open if it depends on an open dimension. `axis` is for the message. */
berth_status berth__window_count(const berth__window_axis *w, bool ceil_mode, uint32_t axis, int64_t *out,
                                 berth_error *err);
/* For kernels: every extent is fixed, and in, kernel, out have `spatial` entries. */
void berth__window_read(berth__window *window, const berth__window_attrs *attrs, uint32_t spatial, const int64_t *in,
                        const int64_t *kernel, const int64_t *out);

/* The extent of a window, holes included: (kernel - 1) * dilation + 1. False if that overflows. */
bool berth__window_reach(const berth__window_axis *w, int64_t *out);
/* The positions [*first, *last) of 0 .. n - 1 whose tap `tap` is inside an extent: windows over the input for conv (n =
 * out, extent = in), inputs over the output for conv_transpose (n = in, extent = out). */
void berth__window_span(const berth__window_axis *w, int64_t tap, int64_t n, int64_t extent, int64_t *first,
                        int64_t *last);
static inline int64_t berth__window_input(const berth__window_axis *w, int64_t window, int64_t tap) {
  return window * w->stride - w->begin + tap * w->dilation;
}

/* Items are output lines along the last axis: the position of line `item` of [N, channels, out...]. */
typedef struct berth__window_line {
  int64_t image, channel, plane, row;
} berth__window_line;
berth__window_line berth__window_line_of(const berth__window *window, int64_t channels, int64_t item);
int64_t berth__window_items(const berth_op_call *call);

/* The coordinates on the three axes of tap number `tap` of a window. */
static inline void berth__window_tap(const berth__window *window, int64_t tap, int64_t at[BERTH__WINDOW_AXES]) {
  const berth__window_axis *w = window->axis;
  at[0] = tap / w[2].kernel / w[1].kernel;
  at[1] = tap / w[2].kernel % w[1].kernel;
  at[2] = tap % w[2].kernel;
}
static inline int64_t berth__window_taps(const berth__window *window) {
  return window->axis[0].kernel * window->axis[1].kernel * window->axis[2].kernel;
}

#endif
