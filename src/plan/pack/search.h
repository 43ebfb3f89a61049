/* Exact search: is there a placement within a capacity? */
#ifndef BERTH_PLAN_PACK_SEARCH_H
#define BERTH_PLAN_PACK_SEARCH_H

#include "plan/pack/problem.h"

typedef enum berth__pack_answer {
  BERTH__PACK_UNDECIDED, /* out of effort */
  BERTH__PACK_FOUND,
  BERTH__PACK_IMPOSSIBLE /* proven */
} berth__pack_answer;

typedef struct berth__pack_searcher berth__pack_searcher;

/* The items must outlive the searcher. What it learns about them (which are hard to place) benefits later runs. */
berth_status berth__pack_searcher_create(berth_context *ctx, const berth__pack_item *items, uint32_t n,
                                         uint32_t n_sections, uint64_t seed, berth__pack_searcher **out,
                                         berth_error *err);
void berth__pack_searcher_destroy(berth__pack_searcher *searcher);

/* Searches for at most so many ticks of the budget. FOUND: offsets has one entry per item. */
berth_status berth__pack_search(berth__pack_searcher *searcher, int64_t capacity, uint64_t ticks,
                                berth__pack_budget *budget, int64_t *offsets, berth__pack_answer *answer,
                                berth_error *err);

#endif
