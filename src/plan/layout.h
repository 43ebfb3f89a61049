/* Layouts: the offsets of params by name, so that several plans use the same bytes. */
#ifndef BERTH_PLAN_LAYOUT_H
#define BERTH_PLAN_LAYOUT_H

#include "base/map.h"
#include "plan/plan.h"

/* Gives every weight of the plan (params, and what the prelude makes) its offset, from the layout when there is one and
 * otherwise one after the other, and lines up the constants after them. *shared is where the weights end that other
 * plans of the layout may use, *end where the activations may begin. */
berth_status berth__layout_apply(berth_plan *plan, const berth_layout *layout, uint64_t *shared, uint64_t *end,
                                 berth_error *err);

/* One more holder, to be undone with berth_layout_destroy. Returns its argument. */
berth_layout *berth__layout_retain(berth_layout *layout);

#endif
