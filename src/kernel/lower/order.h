/* The order of elements, as integers: larger is better. */
#ifndef BERTH_KERNEL_LOWER_ORDER_H
#define BERTH_KERNEL_LOWER_ORDER_H

#include "kernel/lower.h"

/* Maps the elements of a line to i32 in the same order: NaN above every number, -0 equal to 0. `smallest`: in reverse;
 * then NaN is the worst, or still the best (`nan_wins`). */
berth__x berth__l_key(berth__kernel *k, berth__x value, bool smallest, bool nan_wins);

#endif
