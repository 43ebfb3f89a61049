/* The driver: how much effort each part gets, and when to stop.
 *
 * Preparation has computed the lower bound. Every part is constructed first; a part no higher than another part's lower
 * bound needs nothing more. Parts above that are then improved, until the bound is reached (a proof), the capacity is
 * met, or the effort is spent. */
#include "plan/pack/solve.h"

#include <string.h>

#include "plan/pack/beam.h"
#include "plan/pack/boxes.h"
#include "plan/pack/parts.h"
#include "plan/pack/portfolio.h"
#include "plan/pack/prepare.h"
#include "plan/pack/repair.h"
#include "plan/pack/search.h"
#include "plan/pack/windows.h"

/* Shares of the effort, and thresholds. */
enum {
  WINDOWS_SHARE = 10,
  SMALL_GAP = 32,
  GOAL_SHARE = 2,
  GOAL_SHARE_BEFORE_BEAMS = 8,
  BEAM_SHARE = 5, /* of one run; at least two runs are started */
  GOAL_SHARE_BEFORE_BOXES = 16,
  BOXES_SHARE = 4, /* of one packing of boxes */
  BOXES_TRIES = 2,
  BOXES_WASTE = 0,     /* percent */
  BOXING_SHARE = 8,    /* of that, at most, for making the boxes */
  TICKS_PER_PAIR = 32, /* approximate cost of making them */
  FEWER_BOXES = 3,     /* fraction of items that boxes must eliminate: otherwise the effort is better spent elsewhere */
  FIRST_SLICE = 16,
  SMALLEST_STEP = 16,
  REPAIR_SLICES = 1,
  SEARCH_MAX = 2048,
  REPORT_STEPS = 1 << 15 /* between two reports: some tens of milliseconds, so that a stop takes effect soon */
};

int berth__pack_budget_over(berth__pack_budget *budget) {
  if (budget->spent >= budget->next_report && budget->progress != NULL && !budget->cancelled) {
    berth_pack_progress progress = {(uint32_t)sizeof progress, budget->size, budget->lower_bound,
                                    budget->spent / BERTH__PACK_STEP, budget->whole / BERTH__PACK_STEP};
    const uint64_t share = budget->limit / 256, most = (uint64_t)REPORT_STEPS * BERTH__PACK_STEP;
    budget->next_report = budget->spent + (share < most ? share : most);
    if (budget->progress(budget->user, &progress)) budget->cancelled = 1;
  }
  return budget->cancelled || budget->spent >= budget->limit;
}

int64_t berth__pack_height(const berth__pack_problem *problem) {
  int64_t height = problem->settled;
  for (uint32_t i = 0; i < problem->n_parts; i++) {
    const berth__pack_part *part = &problem->parts[i];
    if (part->height == INT64_MAX) return INT64_MAX;
    if (part->base + part->height > height) height = part->base + part->height;
  }
  return height;
}

/* The height that needs no further improvement. */
static int64_t enough_for(const berth__pack_problem *p, const berth__pack_goal *goal) {
  int64_t enough = p->lower_bound;
  int64_t least = (int64_t)(p->least_size / p->unit);
  if (least > enough) enough = least;
  if (goal->capacity != INT64_MAX && goal->capacity > enough) enough = goal->capacity;
  return enough;
}

static void pack_solve_tell(const berth__pack_problem *p, const berth__pack_goal *goal, berth__pack_budget *budget) {
  if (goal->boxed) return; /* boxes are not the caller's problem */
  int64_t height = berth__pack_height(p);
  budget->size = height == INT64_MAX ? UINT64_MAX : (uint64_t)height * p->unit;
  budget->lower_bound = (uint64_t)p->lower_bound * p->unit;
  if (budget->size < p->least_size) budget->size = p->least_size;
  if (budget->lower_bound < p->least_size) budget->lower_bound = p->least_size;
}

static berth_status construct_parts(berth__pack_problem *p, const berth__pack_goal *goal, berth__pack_budget *budget,
                                    berth_error *err) {
  int64_t enough = enough_for(p, goal);
  for (uint32_t i = 0; i < p->n_parts; i++) {
    berth__pack_part *part = &p->parts[i];
    uint64_t share = budget->limit / p->n * part->n / 4;
    share *= part->n <= SEARCH_MAX ? 2 : 3;
    BERTH__TRY(berth__pack_construct(p->ctx, part, enough - part->base, share, budget, err));
  }
  pack_solve_tell(p, goal, budget);
  return BERTH_OK;
}

/* Keeps the placement that a search has found. */
static void pack_solve_keep(berth__pack_part *part, const int64_t *offsets) {
  int64_t height = 0;
  for (uint32_t i = 0; i < part->n; i++) {
    int64_t top = offsets[i] + part->items[i].size - part->items[i].tail;
    if (top > height) height = top;
  }
  if (height >= part->height) return;
  part->height = height;
  memcpy(part->offsets, offsets, part->n * sizeof *offsets);
}

static berth_status try_capacity(berth__pack_part *part, berth__pack_searcher *searcher, int64_t capacity,
                                 uint64_t ticks, int64_t *offsets, berth__pack_budget *budget,
                                 berth__pack_answer *answer, berth_error *err) {
  BERTH__TRY(berth__pack_search(searcher, capacity, ticks, budget, offsets, answer, err));
  if (*answer == BERTH__PACK_FOUND) pack_solve_keep(part, offsets);
  if (*answer == BERTH__PACK_IMPOSSIBLE && capacity >= part->lower_bound) part->lower_bound = capacity + 1;
  return BERTH_OK;
}

static int64_t pack_solve_larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Searches at the lowest height not refuted yet, and again after each refutation, until the answer is unknown. */
static berth_status climb(berth__pack_part *part, berth__pack_searcher *searcher, int64_t enough, uint64_t ticks,
                          int64_t *offsets, berth__pack_budget *budget, berth_error *err) {
  berth__pack_answer answer = BERTH__PACK_IMPOSSIBLE;
  while (answer == BERTH__PACK_IMPOSSIBLE && part->height > pack_solve_larger(enough, part->lower_bound))
    BERTH__TRY(try_capacity(part, searcher, pack_solve_larger(enough, part->lower_bound), ticks, offsets, budget,
                            &answer, err));
  return BERTH_OK;
}

/* One round of bisection between the goal and the best height, every attempt with the same slice of effort. The time
 * that a search takes says little about how tight it is, so several short attempts at different capacities find more
 * than a long one. */
static berth_status bisect(berth__pack_part *part, berth__pack_searcher *searcher, int64_t goal, uint64_t slice,
                           int64_t *offsets, berth__pack_budget *budget, berth_error *err) {
  int64_t refused = goal, step = 1 + (part->height - goal) / SMALLEST_STEP;
  while (part->height - refused > step && !berth__pack_budget_over(budget)) {
    int64_t capacity = refused + (part->height - refused) / 2;
    berth__pack_answer answer;
    BERTH__TRY(try_capacity(part, searcher, capacity, slice, offsets, budget, &answer, err));
    if (answer != BERTH__PACK_FOUND) refused = capacity;
  }
  return BERTH_OK;
}

/* Bisection by beam search: a run takes long, but reaches capacities that the exact search does not. */
static berth_status bisect_by_beams(berth_context *ctx, berth__pack_part *part, int64_t goal, uint64_t seed,
                                    uint64_t ticks, int64_t *offsets, berth__pack_budget *budget, berth_error *err) {
  berth__pack_beam *beam;
  BERTH__TRY(berth__pack_beam_create(ctx, part, seed, ticks, &beam, err));
  uint64_t stop = budget->spent + 2 * ticks;
  int64_t refused = goal;
  berth_status status = BERTH_OK;
  while (status == BERTH_OK && part->height - refused > 1 && budget->spent < stop && !berth__pack_budget_over(budget)) {
    int64_t capacity = refused + (part->height - refused) / 2;
    int found = 0;
    status = berth__pack_beam_run(beam, capacity, budget, offsets, &found, err);
    if (found)
      pack_solve_keep(part, offsets);
    else
      refused = capacity;
  }
  berth__pack_beam_destroy(beam);
  return status;
}

/* ---- Boxes ----------------------------------------------------------------------------------------------------- */

void berth__pack_offsets(const berth__pack_problem *p, uint64_t *offsets) {
  for (uint32_t i = 0; i < p->n; i++) offsets[p->items[i].id] = (uint64_t)p->offsets[i] * p->unit;
  for (uint32_t k = 0; k < p->n_parts; k++) {
    const berth__pack_part *part = &p->parts[k];
    for (uint32_t i = 0; i < part->n; i++) offsets[part->items[i].id] += (uint64_t)part->base * p->unit;
  }
}

typedef struct attempt {
  berth_context *ctx;
  berth__pack_part *part;
  berth__pack_searcher *searcher; /* for the part's items */
  int64_t enough;
  uint64_t seed;
  int64_t *offsets; /* scratch by item */
  berth__pack_budget *budget;
} attempt;

/* Packs the boxes as a separate problem. */
static berth_status solve_boxes(berth_context *ctx, const berth__pack_boxes *boxes, int64_t enough, uint64_t seed,
                                uint64_t ticks, berth__pack_budget *budget, uint64_t *offsets, berth_error *err) {
  berth__pack_problem boxed;
  BERTH__TRY(berth__pack_prepare(ctx, boxes->buffers, boxes->n, &boxed, err));
  berth__pack_goal goal = {.capacity = enough / (int64_t)boxed.unit, .seed = seed, .boxed = 1};
  berth__pack_budget share = *budget;
  if (share.limit > share.spent + ticks) share.limit = share.spent + ticks;
  berth_status status;
  BERTH__TRY_OR_FAIL(berth__pack_split(&boxed, err));
  BERTH__TRY_OR_FAIL(berth__pack_solve(&boxed, &goal, &share, err));
  berth__pack_offsets(&boxed, offsets);
fail:
  budget->spent = share.spent;
  budget->next_report = share.next_report;
  budget->cancelled = share.cancelled;
  berth__pack_release(&boxed);
  return status;
}

static int64_t goal_of(const berth__pack_part *part, int64_t enough) {
  return pack_solve_larger(enough, part->lower_bound);
}

/* Puts the items into boxes, packs these and keeps the result, if there are few enough boxes. */
static berth_status try_boxes(const attempt *a, uint64_t k, uint64_t ticks, uint64_t ticks_before, int *few,
                              berth_error *err) {
  berth__pack_part *part = a->part;
  berth__pack_boxes boxes;
  uint64_t *box_offsets = NULL, before = a->budget->spent, shuffle = k == 0 ? 0 : a->seed * BOXES_TRIES + k;
  BERTH__TRY(berth__pack_boxes_make(a->ctx, part, BOXES_WASTE, shuffle, &boxes, &a->budget->spent, err));
  uint64_t boxing = a->budget->spent - before;
  berth_status status = BERTH_OK;
  *few = boxes.n <= part->n - part->n / FEWER_BOXES && boxing < ticks;
  if (!*few) goto fail;
  BERTH__TRY_OR_FAIL(climb(part, a->searcher, a->enough, ticks_before, a->offsets, a->budget, err));
  if (part->height <= goal_of(part, a->enough) || berth__pack_budget_over(a->budget)) goto fail;
  box_offsets = berth__alloc_array(a->ctx, boxes.n, sizeof *box_offsets);
  if (box_offsets == NULL) {
    status = berth__fail_nomem(err, "boxing a packing");
    goto fail;
  }
  BERTH__TRY_OR_FAIL(
      solve_boxes(a->ctx, &boxes, goal_of(part, a->enough), a->seed + k, ticks - boxing, a->budget, box_offsets, err));
  BERTH__TRY_OR_FAIL(berth__pack_boxes_open(&boxes, part, box_offsets, a->offsets, &a->budget->spent, err));
  pack_solve_keep(part, a->offsets);
fail:
  berth__free(a->ctx, box_offsets);
  berth__pack_boxes_release(&boxes);
  return status;
}

/* The quality of a packing of boxes depends on luck, so there are several attempts, with other boxes and another
 * search. A quick attempt with the items themselves precedes the first. */
static berth_status search_boxes(const attempt *a, berth_error *err) {
  berth__pack_budget *budget = a->budget;
  uint64_t left = budget->limit > budget->spent ? budget->limit - budget->spent : 0, share = left / BOXES_SHARE;
  if ((uint64_t)a->part->n * a->part->n * TICKS_PER_PAIR > share / BOXING_SHARE) return BERTH_OK;
  int few = 1;
  for (uint64_t k = 0; k < BOXES_TRIES && few; k++) {
    if (a->part->height <= goal_of(a->part, a->enough) || berth__pack_budget_over(budget)) break;
    BERTH__TRY(try_boxes(a, k, share, k == 0 ? left / GOAL_SHARE_BEFORE_BOXES : 0, &few, err));
  }
  return BERTH_OK;
}

/* ---- Parts ----------------------------------------------------------------------------------------------------- */

/* The goal first, because reaching it ends everything. Then rounds of bisection, repair and the goal again, with slices
 * of effort that double in every round. A part that is small enough for wide beams spends some of the effort on beams
 * at the goal; then the first bisection is quick, since it need not get far. */
static berth_status search_part(berth_context *ctx, berth__pack_part *part, berth__pack_searcher *searcher,
                                int64_t enough, const berth__pack_goal *aim, int64_t *offsets,
                                berth__pack_budget *budget, berth_error *err) {
  if (!aim->boxed) BERTH__TRY(search_boxes(&(attempt){ctx, part, searcher, enough, aim->seed, offsets, budget}, err));
  uint64_t left = budget->limit > budget->spent ? budget->limit - budget->spent : 0, slice = left / FIRST_SLICE;
  int beams = berth__pack_beam_suits(part, left / BEAM_SHARE);
  uint64_t share = beams ? left / GOAL_SHARE_BEFORE_BEAMS : left - left / GOAL_SHARE;
  BERTH__TRY(climb(part, searcher, enough, share, offsets, budget, err));
  while (part->height > pack_solve_larger(enough, part->lower_bound) && !berth__pack_budget_over(budget)) {
    int64_t goal = pack_solve_larger(enough, part->lower_bound);
    BERTH__TRY(bisect(part, searcher, goal, beams ? slice / 2 : slice, offsets, budget, err));
    if (beams) BERTH__TRY(bisect_by_beams(ctx, part, goal, aim->seed, left / BEAM_SHARE, offsets, budget, err));
    beams = 0;
    BERTH__TRY(berth__pack_repair(ctx, part, goal, aim->seed + slice, slice * REPAIR_SLICES, budget, err));
    BERTH__TRY(climb(part, searcher, enough, slice, offsets, budget, err));
    slice *= 2;
  }
  return BERTH_OK;
}

static void raise_bound(berth__pack_problem *p) {
  for (uint32_t i = 0; i < p->n_parts; i++) {
    int64_t bound = p->parts[i].base + p->parts[i].lower_bound;
    if (bound > p->lower_bound) p->lower_bound = bound;
  }
}

static berth_status improve_part(berth__pack_problem *p, berth__pack_part *part, const berth__pack_goal *goal,
                                 berth__pack_budget *budget, berth_error *err) {
  berth__pack_searcher *searcher = NULL;
  int64_t *offsets = berth__alloc_array(p->ctx, part->n, sizeof *offsets);
  if (offsets == NULL) return berth__fail_nomem(err, "searching a packing");
  berth_status status =
      berth__pack_searcher_create(p->ctx, part->items, part->n, part->n_sections, goal->seed, &searcher, err);
  if (status == BERTH_OK)
    status = search_part(p->ctx, part, searcher, enough_for(p, goal) - part->base, goal, offsets, budget, err);
  raise_bound(p);
  pack_solve_tell(p, goal, budget);
  berth__pack_searcher_destroy(searcher);
  berth__free(p->ctx, offsets);
  return status;
}

/* A small part gets only a quick attempt: if that fails, the search of the whole part will do better. */
static berth_status improve_windows(berth__pack_problem *p, berth__pack_part *part, const berth__pack_goal *goal,
                                    berth__pack_budget *budget, berth_error *err) {
  int64_t enough = enough_for(p, goal) - part->base;
  uint64_t left = budget->limit > budget->spent ? budget->limit - budget->spent : 0;
  if (part->n <= SEARCH_MAX) left /= WINDOWS_SHARE;
  BERTH__TRY(berth__pack_improve(p->ctx, part, enough, goal->seed, left, budget, err));
  pack_solve_tell(p, goal, budget);
  return BERTH_OK;
}

berth_status berth__pack_solve(berth__pack_problem *problem, const berth__pack_goal *goal, berth__pack_budget *budget,
                               berth_error *err) {
  pack_solve_tell(problem, goal, budget);
  BERTH__TRY(construct_parts(problem, goal, budget, err));
  if (goal->construct_only) return BERTH_OK;
  for (uint32_t i = 0; i < problem->n_parts; i++) {
    berth__pack_part *part = &problem->parts[i];
    int64_t enough = enough_for(problem, goal) - part->base;
    if (part->height <= enough) continue;
    if (part->n > SEARCH_MAX || part->height - enough < enough / SMALL_GAP)
      BERTH__TRY(improve_windows(problem, part, goal, budget, err));
    if (part->height > enough && part->n <= SEARCH_MAX) BERTH__TRY(improve_part(problem, part, goal, budget, err));
  }
  return BERTH_OK;
}
