/* The order of elements, as integers: larger is better. */
#ifndef BERTH_KERNEL_LOWER_ORDER_H
#define BERTH_KERNEL_LOWER_ORDER_H

#include "kernel/lower.h"

/* An i32 in the order of the elements of a line: NaN above every number, -0 like 0. `smallest`: the other way round;
 * then NaN is the worst, or the best all the same (`nan_wins`). */
berth__x berth__l_key(berth__kernel *k, berth__x value, bool smallest, bool nan_wins);

#endif
