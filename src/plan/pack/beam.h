/* Beam search for a placement within a capacity. */
#ifndef BERTH_PLAN_PACK_BEAM_H
#define BERTH_PLAN_PACK_BEAM_H

#include "plan/pack/problem.h"

typedef struct berth__pack_beam berth__pack_beam;

/* False: the part does not suit runs of so many ticks. It has fixed items or very large positions, or the ticks allow
 * only a beam so narrow that it would fail. */
int berth__pack_beam_suits(const berth__pack_part *part, uint64_t ticks);

/* For a suitable part; a run takes about `ticks`. What a beam learns in a failed run benefits later ones. The items
 * must outlive it. */
berth_status berth__pack_beam_create(berth_context *ctx, const berth__pack_part *part, uint64_t seed, uint64_t ticks,
                                     berth__pack_beam **out, berth_error *err);
void berth__pack_beam_destroy(berth__pack_beam *beam);

/* One run. *found: offsets has one entry per item. */
berth_status berth__pack_beam_run(berth__pack_beam *beam, int64_t capacity, berth__pack_budget *budget,
                                  int64_t *offsets, int *found, berth_error *err);

#endif
