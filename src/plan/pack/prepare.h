/* Converts the caller's buffers to a problem for the solver. */
#ifndef BERTH_PLAN_PACK_PREPARE_H
#define BERTH_PLAN_PACK_PREPARE_H

#include "plan/pack/problem.h"

/* Checks the input, and fills *problem with scaled items over n_sections sections, not yet split into parts (see
 * parts.h). On failure *problem is empty. Release with berth__pack_release. */
berth_status berth__pack_prepare(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                                 berth__pack_problem *problem, berth_error *err);
void berth__pack_release(berth__pack_problem *problem);

/* The load of every section into load[0..n_sections): the sum of the sizes of its items. */
void berth__pack_loads(const berth__pack_item *items, uint32_t n, uint32_t n_sections, int64_t *load);

#endif
