/* Places items one after the other, each as low as possible (or in the tightest gap), in any order. */
#ifndef BERTH_PLAN_PACK_FIRSTFIT_H
#define BERTH_PLAN_PACK_FIRSTFIT_H

#include "plan/pack/problem.h"

typedef enum berth__pack_rule {
  BERTH__PACK_FIRST_FIT, /* the lowest offset */
  BERTH__PACK_BEST_FIT   /* the smallest gap that is large enough; costs more */
} berth__pack_rule;

typedef struct berth__pack_skyline berth__pack_skyline;

berth_status berth__pack_skyline_create(berth_context *ctx, uint32_t n_sections, berth__pack_skyline **out,
                                        berth_error *err);
void berth__pack_skyline_destroy(berth__pack_skyline *sky);
void berth__pack_skyline_clear(berth__pack_skyline *sky); /* keeps the memory for the next pass */

/* Finds a position for the item and occupies it. *ticks grows by the cost. */
berth_status berth__pack_skyline_place(berth__pack_skyline *sky, const berth__pack_item *item, berth__pack_rule rule,
                                       int64_t *offset, uint64_t *ticks, berth_error *err);
/* The lowest position for the item, without occupying it. */
void berth__pack_skyline_find(const berth__pack_skyline *sky, const berth__pack_item *item, int64_t *offset,
                              uint64_t *ticks);
/* Occupies a known position. */
berth_status berth__pack_skyline_take(berth__pack_skyline *sky, const berth__pack_item *item, int64_t offset,
                                      uint64_t *ticks, berth_error *err);

#endif
