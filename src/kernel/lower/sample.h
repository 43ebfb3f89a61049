/* Shared by ops that interpolate. Everything is f32 unless stated otherwise. */
#ifndef BERTH_KERNEL_LOWER_SAMPLE_H
#define BERTH_KERNEL_LOWER_SAMPLE_H

#include "kernel/lower.h"

/* To the nearest whole number, halves away from 0. */
berth__x berth__l_round_away(berth__kernel *k, berth__x x);
/* An integral number as an index (i32) of an axis, clamped. NaN becomes 0. */
berth__x berth__l_clamped_index(berth__kernel *k, berth__x x, int64_t extent);
/* The weight of a neighbour at a distance in cubic interpolation. */
berth__x berth__l_cubic(berth__kernel *k, float a, berth__x distance);
/* The larger of two; if one is NaN, the other. */
berth__x berth__l_fmax(berth__kernel *k, berth__x a, berth__x b);
/* bool */
berth__x berth__l_is_finite(berth__kernel *k, berth__x x);

#endif
