/* Packs into one block; the basis of berth_pack() and the heaps. */
#ifndef BERTH_PLAN_PACK_PACK_H
#define BERTH_PLAN_PACK_PACK_H

#include "plan/pack/problem.h"

/* Prepares, solves and validates. Earlier calls may have used part of the budget. */
berth_status berth__pack_one(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, uint64_t capacity,
                             uint64_t seed, int construct_only, berth__pack_budget *budget, uint64_t *offsets,
                             berth_pack_result *result, berth_error *err);

#endif
