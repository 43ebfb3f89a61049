/* The arena: one block on one device, addressed by the slots of a plan. */
#ifndef BERTH_DEVICE_ARENA_H
#define BERTH_DEVICE_ARENA_H

#include "device/device.h"

/* What an arena must know of a plan's values; copied, so that the plan need not outlive it. */
typedef struct berth__slots berth__slots;
berth_status berth__slots_create(const berth_plan *plan, berth__slots **out, berth_error *err);
berth_status berth__slots_clone(const berth__slots *slots, berth__slots **out, berth_error *err);
void berth__slots_destroy(berth__slots *slots);                             /* NULL is fine */
uint64_t berth__slots_offset(const berth__slots *slots, berth_value value); /* BERTH_OFFSET_NONE: not in the arena */

/* A new arena as large as the plan needs, or larger, addressed by `slots`, which stay the caller's. The engine is the
 * caller's too; NULL: the arena opens one for itself. */
berth_status berth__arena_create(const berth_plan *plan, const berth__device *device, berth__engine *engine,
                                 const berth__slots *slots, const berth_arena_desc *desc, berth_arena **out,
                                 berth_error *err);
/* Makes it larger where it lies; false: it cannot, and nothing has changed. */
bool berth__arena_grow(berth_arena *arena, uint64_t size);
/* Address the same block by the slots of another plan, which must fit. */
void berth__arena_address(berth_arena *arena, const berth__slots *slots);
/* Bytes in the value's own type, converted where the arena holds its elements in another (uniform plans). */
berth_status berth__arena_put(berth_arena *arena, berth_value value, uint64_t offset, const void *src, uint64_t size,
                              berth_error *err);
berth_status berth__arena_get(const berth_arena *arena, berth_value value, void *dst, uint64_t size, berth_error *err);
/* Where a value lies, for other libraries that can address the memory; `type` must be what the arena holds. */
berth_status berth__arena_memory(const berth_arena *arena, berth_value value, berth_type type, berth_memory *out,
                                 berth_error *err);
/* All of a value from and to memory of a GPU. Where the arena holds its elements in another type, or the memory is not
 * what its device can reach, that is an error. */
berth_status berth__arena_write_memory(berth_arena *arena, berth_value value, const berth_memory *src,
                                       berth_error *err);
berth_status berth__arena_read_memory(const berth_arena *arena, berth_value value, const berth_memory *dst,
                                      berth_error *err);
berth__block *berth__arena_block(berth_arena *arena);

#endif
