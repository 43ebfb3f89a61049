/* Elements that are stored in an arena in another type than their own. With BERTH_PLAN_F32_UNIFORM four bytes each:
 * floats as f32, signed integers as i32, unsigned ones and bool as u32. Weights may be stored as f16. */
#ifndef BERTH_DEVICE_UNIFORM_H
#define BERTH_DEVICE_UNIFORM_H

#include "ops/op.h"

berth_type berth__uniform_type(berth_type type);
/* Converts between elements of `type` and the stored ones: `stored` is that type, its uniform type, or f16 for floats.
 * Integers that do not fit in 32 bits are an error. */
berth_status berth__uniform_pack(berth_type type, berth_type stored, void *dst, const void *src, uint64_t count,
                                 berth_error *err);
void berth__uniform_unpack(berth_type type, berth_type stored, void *dst, const void *src, uint64_t count);

#endif
