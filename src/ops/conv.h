/* Shared by conv and conv_transpose. */
#ifndef BERTH_OPS_CONV_H
#define BERTH_OPS_CONV_H

#include "ops/line.h"
#include "ops/window.h"

static inline bool berth__conv_has_epilogue(const berth_attr *attr) {
  return attr[BERTH__CONV_CODE].count != 0 || attr[BERTH__CONV_ADDS].i != 0;
}
/* clang-format off */
#define BERTH__CONV_ATTR_LIST                       \
  [BERTH__CONV_STRIDES] = {.name = "strides", .kind = BERTH_ATTR_INTS},     \
  [BERTH__CONV_PADS] = {.name = "pads", .kind = BERTH_ATTR_INTS},        \
  [BERTH__CONV_DILATIONS] = {.name = "dilations", .kind = BERTH_ATTR_INTS},   \
  [BERTH__CONV_GROUP] = {.name = "group", .kind = BERTH_ATTR_INT, .i = 1}, \
  [BERTH__CONV_AUTO_PAD] = BERTH__WINDOW_AUTO_PAD
/* clang-format on */

static inline berth__window_attrs berth__conv_window(const berth_attr *attr) {
  return (berth__window_attrs){&attr[BERTH__CONV_STRIDES], &attr[BERTH__CONV_PADS], &attr[BERTH__CONV_DILATIONS],
                               &attr[BERTH__CONV_AUTO_PAD]};
}

/* Checks types, ranks, windows and group of x and weight, but not the channels. */
berth_status berth__conv_check(const berth__infer *infer, berth_error *err);
/* Checks that a weight [O, C / group, kernel...] matches the channels of x. */
berth_status berth__conv_check_channels(const berth__infer *infer, berth_error *err);
/* The bias, if there is one: [outputs]. */
berth_status berth__conv_check_bias(const berth__infer *infer, uint32_t operand, int64_t outputs, berth_error *err);

/* A call in the form that kernels need. */
typedef struct berth__conv {
  const berth__line_ops *line;
  size_t size; /* bytes per element */
  berth__window window;
  int64_t taps, area; /* elements of a kernel, and of one channel of an image */
} berth__conv;
void berth__conv_read(const berth_op_call *call, berth__conv *conv);
void berth__conv_read_transposed(const berth_op_call *call, berth__conv *conv); /* conv_transpose: computes the pads */
/* Initialises a line of an output channel's sums with its bias. */
void berth__conv_start(const berth_op_call *call, const berth__conv *conv, int64_t channel);
/* Bytes of a line of sums. */
uint64_t berth__conv_scratch(const berth_op_call *call);

#endif
