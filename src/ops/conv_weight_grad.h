/* A call of conv_weight_grad as its kernels see it. */
#ifndef BERTH_OPS_CONV_WEIGHT_GRAD_H
#define BERTH_OPS_CONV_WEIGHT_GRAD_H

#include "ops/conv.h"

/* The positions of the elements of x or dy, always with three spatial axes. */
typedef struct berth__weight_grad_operand {
  int64_t image, channel, axis[BERTH__WINDOW_AXES];
} berth__weight_grad_operand;

typedef struct berth__weight_grad {
  berth__window window; /* over x; out: the positions of dy */
  int64_t images, channels, outputs, group, taps;
  berth__weight_grad_operand x, dy;
} berth__weight_grad;
void berth__weight_grad_of(const berth_op_call *call, berth__weight_grad *out);

#endif
