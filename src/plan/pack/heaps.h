/* Several heaps, each with a limit: assigns buffers to heaps. */
#ifndef BERTH_PLAN_PACK_HEAPS_H
#define BERTH_PLAN_PACK_HEAPS_H

#include "plan/pack/problem.h"

berth_status berth__pack_heaps(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                               const berth_pack_desc *desc, berth__pack_budget *budget, uint64_t *offsets,
                               berth_pack_result *result, berth_error *err);

#endif
