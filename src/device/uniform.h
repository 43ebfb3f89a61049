/* Elements of a uniform plan (BERTH_PLAN_F32_UNIFORM): four bytes each, whatever the type is. Floats lie as f32, signed
 * integers as i32, unsigned ones and bool as u32. Weights may lie as f16, two bytes each. */
#ifndef BERTH_DEVICE_UNIFORM_H
#define BERTH_DEVICE_UNIFORM_H

#include "ops/op.h"

berth_type berth__uniform_type(berth_type type);
/* Between elements of `type` and what the slot holds: `stored` is their uniform type, or f16 for floats. Integers that
 * 32 bits do not hold are an error. */
berth_status berth__uniform_pack(berth_type type, berth_type stored, void *dst, const void *src, uint64_t count,
                                 berth_error *err);
void berth__uniform_unpack(berth_type type, berth_type stored, void *dst, const void *src, uint64_t count);

#endif
