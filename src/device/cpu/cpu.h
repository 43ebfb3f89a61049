/* The CPU: host memory, and kernels on a thread pool. */
#ifndef BERTH_DEVICE_CPU_CPU_H
#define BERTH_DEVICE_CPU_CPU_H

#include "base/thread.h"
#include "device/cpu/kernel.h"
#include "device/cpu/team.h"
#include "device/device.h"
#include "device/watch.h"

struct berth__engine {
  berth_context *ctx;
  berth__pool *pool; /* NULL: the caller's thread only */
  uint32_t n_threads;
};

/* block.c */
berth_status berth__cpu_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                     berth__block **out, berth_error *err);
berth_status berth__cpu_block_grow(berth__block *block, uint64_t size, berth_error *err);
void berth__cpu_block_destroy(berth__block *block);
void *berth__cpu_host(berth__block *block);
berth_status berth__cpu_write(berth__block *block, uint64_t offset, const void *src, uint64_t size, berth_error *err);
/* The same, by all threads: most of the time goes into page faults. */
berth_status berth__cpu_place(berth__engine *engine, berth__block *block, uint64_t offset, const void *src,
                              uint64_t size, berth_error *err);
berth_status berth__cpu_map(berth__block *block, uint64_t offset, const berth__file_bytes *file, uint64_t *begin,
                            uint64_t *count, berth_error *err);
berth_status berth__cpu_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err);
berth_status berth__cpu_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                             uint64_t size, berth_error *err);
berth_status berth__cpu_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err);

/* program.c */
/* False for steps that need no call: results that are views, and concat or choose with nothing to copy. */
bool berth__cpu_needs_kernel(const berth_plan *plan, const berth__node *node);
berth_status berth__cpu_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                       berth__program **out, berth_error *err);
void berth__cpu_program_destroy(berth__program *program);
berth_status berth__cpu_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                     berth_error *err);
berth_status berth__cpu_prepare(berth__program *program, const berth__observer *observer, berth_error *err);
berth__shape *berth__cpu_shapes(berth__program *program);
berth_status berth__cpu_submit(berth__program *program, const berth__observer *observer, berth_error *err);
berth_status berth__cpu_wait(berth__program *program, berth_error *err);

/* rewrite.c: rewrites a bound graph for the fast kernels. */
berth_status berth__cpu_rewrite(const berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err);

/* extents.c: extents that turn out smaller than planned. */
typedef struct berth__extents berth__extents;
/* *out is NULL if no extent of the plan is a bound. */
berth_status berth__extents_create(const berth_plan *plan, berth__extents **out, berth_error *err);
void berth__extents_destroy(berth__extents *extents);         /* NULL is allowed */
berth__shape *berth__extents_shapes(berth__extents *extents); /* one per value */
/* Infers the shapes of the node's results from its operands as they are now, and gives the tensors of its call
 * (operands, then results) the true extents. Allocates nothing. Fails with INFEASIBLE if a result needs more than was
 * planned. */
berth_status berth__extents_find(berth__extents *extents, const berth__node *node, berth_tensor *tensors,
                                 const berth_op_call *call, berth_error *err);

#endif
