/* Layouts: the offsets of params by name, so that several plans can use the same bytes. */
#ifndef BERTH_PLAN_LAYOUT_H
#define BERTH_PLAN_LAYOUT_H

#include "base/map.h"
#include "plan/plan.h"

/* Gives every weight of the plan (params, and results of the prelude) its offset, from the layout if there is one and
 * otherwise one after the other, and places the constants after them. *shared is the end of the weights that other
 * plans of the layout may use, *end the beginning of the activations. */
berth_status berth__layout_apply(berth_plan *plan, const berth_layout *layout, uint64_t *shared, uint64_t *end,
                                 berth_error *err);

/* Adds a holder, to be released with berth_layout_destroy. Returns its argument. */
berth_layout *berth__layout_retain(berth_layout *layout);

#endif
