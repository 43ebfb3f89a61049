#include "ops/window.h"

#include <inttypes.h>
#include <string.h>

#include "base/math.h"

bool berth__window_is_auto(const berth__window_attrs *attrs) { return strcmp(attrs->auto_pad->s, "none") != 0; }

void berth__window_split_pad(const berth__window_attrs *attrs, int64_t total, int64_t *begin, int64_t *end) {
  const bool more_at_end = strcmp(attrs->auto_pad->s, "same_upper") == 0;
  *begin = more_at_end ? total / 2 : total - total / 2;
  *end = total - *begin;
}

berth_status berth__window_check_list(const berth_attr *list, uint32_t count, int64_t least, berth_error *err) {
  if (list->count != 0 && list->count != count)
    return berth__fail(err, BERTH_INVALID, "`%s` has %" PRIu32 " entries, expected %" PRIu32, list->name, list->count,
                       count);
  for (uint32_t k = 0; k < list->count; k++)
    if (list->ints[k] < least)
      return berth__fail(err, BERTH_INVALID, "entry %" PRIu32 " of `%s` is %" PRId64 ", expected %" PRId64 " or more",
                         k, list->name, list->ints[k], least);
  return BERTH_OK;
}

berth_status berth__window_check(const berth__window_attrs *attrs, uint32_t spatial, berth_error *err) {
  BERTH__TRY(berth__window_check_list(attrs->strides, spatial, 1, err));
  BERTH__TRY(berth__window_check_list(attrs->dilations, spatial, 1, err));
  const char *mode = attrs->auto_pad->s;
  if (berth__window_is_auto(attrs) && strcmp(mode, "same_upper") != 0 && strcmp(mode, "same_lower") != 0)
    return berth__fail(err, BERTH_INVALID, "auto_pad \"%s\" is not one of none, same_upper and same_lower", mode);
  if (berth__window_is_auto(attrs) && attrs->pads->count != 0)
    return berth__fail(err, BERTH_INVALID, "`pads` are given beside auto_pad \"%s\"; leave one of them out", mode);
  return berth__window_check_list(attrs->pads, 2 * spatial, 0, err);
}

static int64_t window_entry(const berth_attr *list, uint32_t k, int64_t otherwise) {
  return list->count == 0 ? otherwise : list->ints[k];
}

/* The padding for ceil(in / stride) windows. With a stride of 1 it is the same for every extent; otherwise it is 0 as
 * long as the extent is open, and for a kernel that is too large. */
static void pad_same(const berth__window_attrs *attrs, berth__window_axis *w) {
  int64_t reach;
  if (!berth__dim_is_fixed(w->kernel) || w->kernel == 0 || !berth__window_reach(w, &reach)) return;
  if (!berth__dim_is_fixed(w->in) && w->stride != 1) return;
  const int64_t rest = w->in > 0 ? (w->in - 1) % w->stride : 0; /* elements after the last full stride */
  berth__window_split_pad(attrs, reach - 1 > rest ? reach - 1 - rest : 0, &w->begin, &w->end);
}

berth__window_axis berth__window_axis_of(const berth__window_attrs *attrs, uint32_t spatial, uint32_t axis, int64_t in,
                                         int64_t kernel) {
  berth__window_axis w = {
      .in = in,
      .kernel = kernel,
      .stride = window_entry(attrs->strides, axis, 1),
      .begin = window_entry(attrs->pads, axis, 0),
      .end = window_entry(attrs->pads, spatial + axis, 0),
      .dilation = window_entry(attrs->dilations, axis, 1),
  };
  if (berth__window_is_auto(attrs)) pad_same(attrs, &w);
  return w;
}

bool berth__window_reach(const berth__window_axis *w, int64_t *out) {
  int64_t reach;
  return berth__mul_extent(w->kernel - 1, w->dilation, &reach) && berth__add_i64(reach, 1, out);
}

berth_status berth__window_count(const berth__window_axis *w, bool ceil_mode, uint32_t axis, int64_t *out,
                                 berth_error *err) {
  int64_t reach, padding, padded;
  if (!berth__dim_is_fixed(w->kernel)) return *out = BERTH__DIM_UNKNOWN, BERTH_OK;
  if (w->kernel == 0) return berth__fail(err, BERTH_INVALID, "the kernel has extent 0 on spatial axis %" PRIu32, axis);
  if (!berth__window_reach(w, &reach))
    return berth__fail(err, BERTH_INVALID,
                       "a kernel of %" PRId64 " with dilation %" PRId64 " on spatial axis %" PRIu32 " is too large",
                       w->kernel, w->dilation, axis);
  BERTH__TRY(berth__dim_add(w->begin, w->end, &padding, err));
  if (!berth__dim_is_fixed(w->in))
    return *out = w->stride == 1 && padding == reach - 1 ? w->in : BERTH__DIM_UNKNOWN, BERTH_OK;
  BERTH__TRY(berth__dim_add(w->in, padding, &padded, err));
  if (reach > padded)
    return berth__fail(err, BERTH_INVALID,
                       "the kernel covers %" PRId64 " elements of spatial axis %" PRIu32
                       ", but the padded input has %" PRId64,
                       reach, axis, padded);
  const int64_t room = padded - reach;
  *out = room / w->stride + 1;
  /* a truncated last window, if it starts before the padding at the end */
  if (ceil_mode && room % w->stride != 0 && *out <= (w->in + w->begin - 1) / w->stride) *out += 1;
  return BERTH_OK;
}

void berth__window_read(berth__window *window, const berth__window_attrs *attrs, uint32_t spatial, const int64_t *in,
                        const int64_t *kernel, const int64_t *out) {
  const uint32_t missing = BERTH__WINDOW_AXES - spatial;
  for (uint32_t k = 0; k < missing; k++)
    window->axis[k] = (berth__window_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
  for (uint32_t k = 0; k < spatial; k++) {
    window->axis[missing + k] = berth__window_axis_of(attrs, spatial, k, in[k], kernel[k]);
    window->axis[missing + k].out = out[k];
  }
}

/* x / n rounded up, for n >= 1 and any x. */
static int64_t window_ceil_div(int64_t x, int64_t n) { return x / n + (x % n > 0); }

void berth__window_span(const berth__window_axis *w, int64_t tap, int64_t n, int64_t extent, int64_t *first,
                        int64_t *last) {
  const int64_t shift = w->begin - tap * w->dilation; /* 0 <= position * stride - shift < extent */
  *first = window_ceil_div(shift, w->stride);
  *last = window_ceil_div(shift + extent, w->stride);
  if (*first < 0) *first = 0;
  if (*last > n) *last = n;
  if (*last < *first) *last = *first;
}

berth__window_line berth__window_line_of(const berth__window *window, int64_t channels, int64_t item) {
  const berth__window_axis *w = window->axis;
  const int64_t map = item / w[1].out / w[0].out;
  return (berth__window_line){
      .image = map / channels, .channel = map % channels, .plane = item / w[1].out % w[0].out, .row = item % w[1].out};
}

int64_t berth__window_items(const berth_op_call *call) {
  int64_t lines = 1;
  for (uint32_t axis = 0; axis + 1 < call->out[0].rank; axis++) lines *= call->out[0].dim[axis];
  return lines;
}

int64_t berth__window_over(const berth__window_axis *axis) {
  const int64_t whole = (axis->out - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1;
  return whole - axis->begin - axis->in;
}
