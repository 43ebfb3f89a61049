/* f16 and bf16 to and from f32: round to nearest even; correct for NaN, infinities and subnormals. */
#ifndef BERTH_BASE_HALF_H
#define BERTH_BASE_HALF_H

#include <stdint.h>

#include "berth/berth.h"

float berth__f16_to_f32(uint16_t h);
uint16_t berth__f32_to_f16(float f);
float berth__bf16_to_f32(uint16_t h);
uint16_t berth__f32_to_bf16(float f);
/* Directly from f64, so that nothing is rounded twice. */
uint16_t berth__f64_to_f16(double f);
uint16_t berth__f64_to_bf16(double f);

/* Elements of any type to and from f32. Into integers: round to nearest even, saturate, NaN becomes 0; into
 * bool: x != 0. */
void berth__convert_from_f32(berth_type type, void *dst, const float *src, uint64_t count);
void berth__convert_to_f32(berth_type type, float *dst, const void *src, uint64_t count);

#endif
