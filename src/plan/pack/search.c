/* Exact search for a placement within a capacity.
 *
 * The search builds from the bottom up. At every node it takes an item k that rests lowest and branches: either k is
 * below all its unplaced conflicts - then it is placed where it rests - or it is skipped, and something unplaced is
 * below it. In this way each orientation of the conflicts is reached at most once, and k may be chosen freely. state.c
 * derives what follows from a decision.
 *
 * Three things make it fast:
 * - Backjumping. A conflict comes with the set of decisions that caused it. Decisions that are not in the set are
 *   undone without trying their other branch, which is attributed to the rest of the set.
 * - Failure weights. Items that take part in conflicts gain weight, and of items that rest equally low the heaviest
 *   goes first: the search learns where the problem is tight and starts there.
 * - Restarts. A run that takes too long is abandoned and restarted with the learned weights and a different order for
 *   ties. The length of runs follows Luby's sequence, which grows, so that the search stays complete. */
#include "plan/pack/search.h"

#include <string.h>

#include "plan/pack/bits.h"
#include "plan/pack/order.h"
#include "plan/pack/prepare.h"
#include "plan/pack/sort.h"
#include "plan/pack/state.h"

enum {
  N_ORDERS = 3,
  LEAST_ALLOWANCE = 64,
  REPORT_NODES = 64,
  STEADINESS = 8
};

/* A decision on the stack. */
typedef struct frame {
  uint32_t item;
  int skipped; /* the second branch is being searched */
  berth__pack_mark mark;
} frame;

struct berth__pack_searcher {
  berth_context *ctx;
  berth__pack_state state;
  uint32_t *order;          /* free items: of those that rest equally low the first one is chosen */
  uint32_t *base[N_ORDERS]; /* the orders for ties, before weights */
  uint64_t *key;
  uint64_t random;
  uint32_t *scratch;
  frame *stack;
  size_t n_stack, stack_capacity;
};

static berth_status make_orders(berth__pack_searcher *s, berth_error *err);

berth_status berth__pack_searcher_create(berth_context *ctx, const berth__pack_item *items, uint32_t n,
                                         uint32_t n_sections, uint64_t seed, berth__pack_searcher **out,
                                         berth_error *err) {
  *out = NULL;
  berth__pack_searcher *s = berth__alloc_zero(ctx, sizeof *s);
  if (s == NULL) return berth__fail_nomem(err, "searching a packing");
  s->ctx = ctx;
  s->random = (seed + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9) | 1;
  berth_status status;
  BERTH__TRY_OR_FAIL(berth__pack_state_create(ctx, items, n, n_sections, &s->state, err));
  BERTH__TRY_OR_FAIL(make_orders(s, err));
  *out = s;
  return BERTH_OK;
fail:
  berth__pack_searcher_destroy(s);
  return status;
}

void berth__pack_searcher_destroy(berth__pack_searcher *s) {
  if (s == NULL) return;
  berth__free(s->ctx, s->stack);
  berth__free(s->ctx, s->key);
  berth__free(s->ctx, s->order);
  berth__pack_state_destroy(&s->state);
  berth__free(s->ctx, s);
}

/* ---- Orders ---------------------------------------------------------------------------------------------------- */

static void drop_fixed(const berth__pack_state *state, uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < state->n; k++)
    if (state->items[order[k]].fixed < 0) order[n++] = order[k];
}

static berth_status make_orders(berth__pack_searcher *s, berth_error *err) {
  static const berth__pack_order orders[N_ORDERS] = {BERTH__PACK_BY_SPAN_AREA, BERTH__PACK_BY_BREADTH_AREA,
                                                     BERTH__PACK_BY_BREADTH_SPAN};
  const berth__pack_state *state = &s->state;
  size_t n = state->n;
  s->order = berth__alloc_array(s->ctx, n * (N_ORDERS + 2), sizeof *s->order);
  s->key = berth__alloc_array(s->ctx, n, sizeof *s->key);
  if (s->order == NULL || s->key == NULL) return berth__fail_nomem(err, "searching a packing");
  s->scratch = s->order + n;
  berth__pack_sorter sorter;
  BERTH__TRY(berth__pack_sorter_create(s->ctx, state->items, state->n, state->n_sections, &sorter, err));
  for (size_t k = 0; k < N_ORDERS; k++) {
    s->base[k] = s->order + n * (k + 2);
    berth__pack_sort_items(&sorter, state->items, state->n, state->n_sections, orders[k], s->base[k]);
    drop_fixed(state, s->base[k]);
  }
  berth__pack_sorter_destroy(s->ctx, &sorter);
  return BERTH_OK;
}

/* The order of a run: heaviest first, and equally heavy ones in the base order, except for a few random moves, which
 * keep runs from always failing in the same way. */
static void make_order(berth__pack_searcher *s, uint32_t round) {
  const berth__pack_state *state = &s->state;
  uint32_t n = state->n_free;
  memcpy(s->order, s->base[round % N_ORDERS], n * sizeof *s->order);
  for (uint32_t k = 0; k < n; k++) s->key[s->order[k]] = (uint64_t)k * STEADINESS + berth__pack_random(&s->random) % n;
  berth__pack_sort(s->order, n, s->key, s->scratch);
  for (uint32_t i = 0; i < state->n; i++) s->key[i] = UINT32_MAX - state->weight[i];
  berth__pack_sort(s->order, n, s->key, s->scratch);
  s->state.ticks += (uint64_t)n * 64;
}

/* Luby's sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: mostly short runs, some long ones, none too late. */
static uint64_t luby(uint32_t round) {
  uint64_t i = (uint64_t)round + 1, power = 1;
  for (;;) {
    while (2 * power - 1 < i) power *= 2;
    if (2 * power - 1 == i) return power;
    i -= power - 1;
    power = 1;
  }
}

/* ---- The tree -------------------------------------------------------------------------------------------------- */

/* An item that may be next: not skipped, and nothing implies that it is higher than where it rests. */
static uint32_t pack_search_choose(berth__pack_searcher *s) {
  const berth__pack_state *state = &s->state;
  uint32_t best = UINT32_MAX;
  int64_t lowest = INT64_MAX;
  for (uint32_t k = 0; k < state->n_free; k++) {
    uint32_t i = s->order[k];
    const berth__pack_bounds *b = &state->bounds[i];
    if (b->rest >= lowest || b->placed || b->skipped || b->low > b->rest) continue;
    lowest = b->rest;
    best = i;
  }
  s->state.ticks += state->n_free;
  return best;
}

/* Nothing can be next, though something has to be: the causes are all decisions that hold up the unplaced items. */
static void blame_all(berth__pack_state *state) {
  berth__bits_clear(state->conflict, state->words);
  for (uint32_t i = 0; i < state->n; i++) {
    const berth__pack_bounds *b = &state->bounds[i];
    if (b->placed || state->items[i].fixed >= 0) continue;
    berth__bits_join(state->conflict, berth__pack_why(state, b->skipped ? b->why_skipped : b->why_low), state->words);
  }
}

static berth_status pack_search_push(berth__pack_searcher *s, uint32_t item, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->stack, s->stack_capacity, s->n_stack + 1, err));
  s->stack[s->n_stack++] = (frame){item, 0, berth__pack_state_mark(&s->state)};
  return BERTH_OK;
}

/* After a conflict: undoes decisions back to one that caused it and takes its other branch. *possible is false if there
 * is none, which proves that nothing fits. */
static berth_status backjump(berth__pack_searcher *s, int *possible, berth_error *err) {
  berth__pack_state *state = &s->state;
  *possible = 0;
  while (s->n_stack > 0 && !*possible) {
    frame *f = &s->stack[s->n_stack - 1];
    berth__pack_state_undo(state, f->mark);
    if (f->skipped || !berth__bits_has(state->conflict, f->item)) {
      s->n_stack--;
      continue;
    }
    berth__bits_remove(state->conflict, f->item);
    f->skipped = 1;
    BERTH__TRY(berth__pack_state_skip(state, f->item, possible, err));
  }
  return BERTH_OK;
}

static int out_of_effort(berth__pack_searcher *s, uint64_t nodes, uint64_t stop, berth__pack_budget *budget) {
  if (nodes % REPORT_NODES != 0) return 0;
  budget->spent += s->state.ticks;
  s->state.ticks = 0;
  return berth__pack_budget_over(budget) || budget->spent >= stop;
}

/* One run from the root, for at most `allowance` nodes. */
static berth_status pack_search_run(berth__pack_searcher *s, int64_t capacity, uint64_t allowance, uint64_t stop,
                                    berth__pack_budget *budget, berth__pack_answer *answer, berth_error *err) {
  berth__pack_state *state = &s->state;
  int possible;
  *answer = BERTH__PACK_UNDECIDED;
  s->n_stack = 0;
  BERTH__TRY(berth__pack_state_reset(state, capacity, &possible, err));
  for (uint64_t nodes = 1; possible; nodes++) {
    if (state->n_placed == state->n_free) {
      *answer = BERTH__PACK_FOUND;
      return BERTH_OK;
    }
    if (nodes > allowance || out_of_effort(s, nodes, stop, budget)) return BERTH_OK;
    uint32_t k = pack_search_choose(s);
    if (k != UINT32_MAX) {
      BERTH__TRY(pack_search_push(s, k, err));
      BERTH__TRY(berth__pack_state_place(state, k, &possible, err));
    } else {
      blame_all(state);
      possible = 0;
    }
    if (!possible) BERTH__TRY(backjump(s, &possible, err));
  }
  *answer = BERTH__PACK_IMPOSSIBLE;
  return BERTH_OK;
}

berth_status berth__pack_search(berth__pack_searcher *s, int64_t capacity, uint64_t ticks, berth__pack_budget *budget,
                                int64_t *offsets, berth__pack_answer *answer, berth_error *err) {
  berth__pack_state *state = &s->state;
  uint64_t stop = budget->spent + ticks, allowance = LEAST_ALLOWANCE + state->n_free / 2;
  *answer = BERTH__PACK_UNDECIDED;
  for (uint32_t round = 0;; round++) {
    if (berth__pack_budget_over(budget) || budget->spent >= stop) return BERTH_OK;
    make_order(s, round);
    BERTH__TRY(pack_search_run(s, capacity, allowance * luby(round), stop, budget, answer, err));
    budget->spent += state->ticks;
    state->ticks = 0;
    if (*answer != BERTH__PACK_UNDECIDED) break;
  }
  if (*answer == BERTH__PACK_FOUND) {
    for (uint32_t i = 0; i < state->n; i++)
      offsets[i] = state->items[i].fixed >= 0 ? state->items[i].fixed : state->bounds[i].rest;
  }
  return BERTH_OK;
}
