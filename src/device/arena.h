/* The arena: one block on one device, addressed by the slots of a plan. */
#ifndef BERTH_DEVICE_ARENA_H
#define BERTH_DEVICE_ARENA_H

#include "device/device.h"

/* What an arena must know about a plan's values; copied, so that the plan need not outlive it. */
typedef struct berth__slots berth__slots;
berth_status berth__slots_create(const berth_plan *plan, berth__slots **out, berth_error *err);
berth_status berth__slots_clone(const berth__slots *slots, berth__slots **out, berth_error *err);
void berth__slots_destroy(berth__slots *slots);                             /* NULL is fine */
uint64_t berth__slots_offset(const berth__slots *slots, berth_value value); /* BERTH_OFFSET_NONE: not in the arena */

/* A new arena at least as large as the plan needs, addressed by `slots`, which stay the caller's. The engine is the
 * caller's too; NULL: the arena opens its own. */
berth_status berth__arena_create(const berth_plan *plan, const berth__device *device, berth__engine *engine,
                                 const berth__slots *slots, const berth_arena_desc *desc, berth_arena **out,
                                 berth_error *err);
/* Grows it in place; false: it cannot, and nothing has changed. */
bool berth__arena_grow(berth_arena *arena, uint64_t size);
/* Addresses the same block by the slots of another plan, which must fit. */
void berth__arena_address(berth_arena *arena, const berth__slots *slots);
/* Bytes in the value's own type, converted if the arena stores its elements in another type (uniform plans). */
berth_status berth__arena_put(berth_arena *arena, berth_value value, uint64_t offset, const void *src, uint64_t size,
                              berth_error *err);
berth_status berth__arena_get(const berth_arena *arena, berth_value value, void *dst, uint64_t size, berth_error *err);
/* The address of a value, for other libraries that can access the memory; `type` must be the stored type. */
berth_status berth__arena_memory(const berth_arena *arena, berth_value value, berth_type type, berth_memory *out,
                                 berth_error *err);
/* Copies a whole value from and to GPU memory. It is an error if the arena stores its elements in another type, or the
 * device cannot access the memory. */
berth_status berth__arena_write_memory(berth_arena *arena, berth_value value, const berth_memory *src,
                                       berth_error *err);
berth_status berth__arena_read_memory(const berth_arena *arena, berth_value value, const berth_memory *dst,
                                      berth_error *err);
berth__block *berth__arena_block(berth_arena *arena);

#endif
