/* Shared by the convolutions with channels last: conv_last, depthwise, conv_winograd and conv_transpose_last. x is [N,
 * spatial..., C], the result is [N, out..., O]; an epilogue follows (ops/epilogue.h). */
#ifndef BERTH_OPS_CONV_LAST_H
#define BERTH_OPS_CONV_LAST_H

#include "ops/epilogue.h"
#include "ops/window.h"

/* The attribute `over`: the result may overwrite x. Items are then such that none reads what another one writes, and
 * each saves what it reads of x in scratch before it writes. */
#define BERTH__OVER_ATTR \
  { .name = "over", .kind = BERTH_ATTR_INT }
/* clang-format off */
#define BERTH__LAST_ATTR_LIST                       \
  [BERTH__LAST_KERNEL] = {.name = "kernel", .kind = BERTH_ATTR_INTS},      \
  [BERTH__LAST_STRIDES] = {.name = "strides", .kind = BERTH_ATTR_INTS},     \
  [BERTH__LAST_PADS] = {.name = "pads", .kind = BERTH_ATTR_INTS},        \
  [BERTH__LAST_DILATIONS] = {.name = "dilations", .kind = BERTH_ATTR_INTS},   \
  [BERTH__LAST_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},        \
  [BERTH__LAST_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS}
/* clang-format on */
#define BERTH__LAST_REQUIRED (1u << BERTH__LAST_KERNEL)

/* With `turned` and at most that many channels, the CPU's kernel reads x where it lies with channels first. */
#define BERTH__TURNED_CHANNELS 16

/* The most taps of a cell, over all axes, with which the CPU's kernel takes `joined` weights of conv_transpose_last. */
#define BERTH__MOST_JOINED_TAPS 64
/* The most taps on a pixel with which it takes `each`. */
#define BERTH__MOST_EACH_TAPS 64

/* Checks types and ranks of x, weight and bias, and that lists match x. */
berth_status berth__last_check(const berth__infer *infer, const berth__window_attrs *window, berth_error *err);
/* The bias, if there is one, and the epilogue. */
berth_status berth__last_check_rest(const berth__infer *infer, uint32_t first_extra, const berth_attr *code,
                                    const berth_attr *numbers, berth_error *err);
/* `kernel`: at least 1 for every spatial axis. */
berth_status berth__last_check_kernel(const berth__infer *infer, berth_error *err);
/* An INT attribute of at least 1. */
berth_status berth__last_check_count(const berth_attr *attr, berth_error *err);
/* A packed weight [panels, rows, panel]. */
berth_status berth__last_check_packed(const berth__infer *infer, int64_t panels, int64_t rows, int64_t panel,
                                      berth_error *err);
/* The windows of `kernel` over x, into the output's spatial axes. */
berth_status berth__last_infer_windows(const berth__infer *infer, const berth__window_attrs *window,
                                       const int64_t *kernel, berth__shape *out, berth_error *err);

/* Whether all windows are single elements of x: a kernel of 1, strides of 1, no pads, one group. */
bool berth__last_is_pointwise(const berth_attr *attrs);
/* `over` must be 0, or 1 if the call `may` have it. */
berth_status berth__last_check_over(const berth_attr *over, bool may, const char *why, berth_error *err);

/* The window attributes of these ops; there is no auto_pad. */
berth__window_attrs berth__last_window(const berth_attr *attrs);
berth__window_attrs berth__winograd_window(const berth_attr *attrs);

/* A call in the form that kernels need, always with three spatial axes. */
typedef struct berth__last {
  berth__window window;
  int64_t images, channels, outputs;
  int64_t image_stride, channel_stride;    /* of x, in elements */
  int64_t axis_stride[BERTH__WINDOW_AXES]; /* in elements, too */
  bool has_bias;
} berth__last;
void berth__last_read(const berth_op_call *call, berth__last *last);     /* conv_last, depthwise, conv_transpose_last */
void berth__winograd_read(const berth_op_call *call, berth__last *last); /* conv_winograd */

/* The position of the result's pixel `item`. */
typedef struct berth__last_pixel {
  int64_t image, at[BERTH__WINDOW_AXES];
} berth__last_pixel;
berth__last_pixel berth__last_pixel_of(const berth__last *last, int64_t item);
/* The index of channel 0 of the element of x under tap `tap` of that pixel's window; -1: padding. */
int64_t berth__last_input(const berth__last *last, const berth__last_pixel *pixel, int64_t tap);
/* For transposed windows: the element of x whose tap `tap` is at element `at` of the result; -1: none. */
int64_t berth__last_source(const berth__window_axis *w, int64_t at, int64_t tap);
double berth__last_bias(const berth_op_call *call, const berth__last *last, int64_t output);

/* The index of row 0 of a column of a weight packed by pack_weights; further rows are stride[1] apart. There are
 * `group` equal groups of columns, each in panels. */
int64_t berth__last_column(const berth_tensor *packed, int64_t columns, int64_t group, int64_t column);

/* Winograd transforms for tiles of 2 or 4 outputs from tile + 2 inputs: of the weights (kernel_side [size][3]), of the
 * inputs (input_side [size][size]) and back (output_side [tile][size]). */
typedef struct berth__winograd {
  int64_t tile, size;
  double kernel_side[6][3], input_side[6][6], output_side[4][6];
} berth__winograd;
void berth__winograd_matrices(int64_t tile, berth__winograd *out);

#endif
