/* Lower bounds on the height of a packing. */
#ifndef BERTH_PLAN_PACK_BOUND_H
#define BERTH_PLAN_PACK_BOUND_H

#include "plan/pack/problem.h"

/* The largest load of a section (minus the tail that may exceed it), and the ends of fixed items. */
berth_status berth__pack_lower_bound(berth_context *ctx, const berth__pack_item *items, uint32_t n, uint32_t n_sections,
                                     int64_t *bound, berth_error *err);

#endif
