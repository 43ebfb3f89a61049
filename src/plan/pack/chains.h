/* Constraints between the items of a section: they have to be stacked below the capacity. */
#ifndef BERTH_PLAN_PACK_CHAINS_H
#define BERTH_PLAN_PACK_CHAINS_H

#include "plan/pack/state.h"

/* Chooses the coarse units for the state's capacity. */
void berth__pack_chains_scale(berth__pack_state *state);

/* The bound of item i has risen: its sections are checked next. */
void berth__pack_touch(berth__pack_state *state, uint32_t i);

/* Everything that follows from the bounds of the items in the touched sections, all of them in [first, last): a
 * conflict (*possible is false, and state->conflict has the reason), or higher bounds, which are queued. */
berth_status berth__pack_look_at_sections(berth__pack_state *state, uint32_t first, uint32_t last, int *possible,
                                          berth_error *err);

#endif
