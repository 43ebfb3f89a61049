/* What the ops that look between elements have in common. Everything is f32 unless it says otherwise. */
#ifndef BERTH_KERNEL_LOWER_SAMPLE_H
#define BERTH_KERNEL_LOWER_SAMPLE_H

#include "kernel/lower.h"

/* To the nearest whole number, halves away from 0. */
berth__x berth__l_round_away(berth__kernel *k, berth__x x);
/* A whole number as an index (i32) of an axis: the nearest there is. NaN is 0. */
berth__x berth__l_clamped_index(berth__kernel *k, berth__x x, int64_t extent);
/* The weight of a neighbour in cubic interpolation, at a distance. */
berth__x berth__l_cubic(berth__kernel *k, float a, berth__x distance);
/* The larger of two; the other where one is NaN. */
berth__x berth__l_fmax(berth__kernel *k, berth__x a, berth__x b);
/* bool */
berth__x berth__l_is_finite(berth__kernel *k, berth__x x);

#endif
