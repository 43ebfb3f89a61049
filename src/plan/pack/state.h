/* The state of an exact search: what is placed, how low everything else can still be, and why.
 *
 * A decision is "item k is below all its unplaced conflicts", which puts k at the lowest position that the placed items
 * leave. Every bound has a reason: the set of decisions that it follows from. When the bounds contradict the capacity,
 * the reasons tell which decisions caused the conflict. */
#ifndef BERTH_PLAN_PACK_STATE_H
#define BERTH_PLAN_PACK_STATE_H

#include "plan/pack/problem.h"

typedef uint32_t berth__pack_reason; /* a set of decisions in the state's pool; 0 is the empty set */

typedef struct berth__pack_bounds {
  int64_t rest; /* the lowest position above the placed conflicts */
  int64_t low;  /* a lower bound of its position; at least rest */
  berth__pack_reason why_rest, why_low, why_skipped;
  uint32_t stamp;  /* the last decision before which its bounds were saved */
  uint32_t before; /* position on the trail of the bounds before that decision; UINT32_MAX: none */
  uint8_t placed;
  uint8_t skipped; /* it is not next: something unplaced is below it */
} berth__pack_bounds;

typedef struct berth__pack_saved {
  uint32_t item;
  berth__pack_bounds bounds;
} berth__pack_saved;

/* Offsets that a fixed item rules out for another one: the open range (lo, hi). */
typedef struct berth__pack_hole {
  int64_t lo, hi;
} berth__pack_hole;

/* An item of a chain in coarse positions; [from, to) are the critical sections in which it is alive. */
typedef struct berth__pack_link {
  int32_t low, size;
  uint32_t from, to;
} berth__pack_link;

typedef struct berth__pack_state {
  berth_context *ctx;
  const berth__pack_item *items;
  uint32_t n, n_sections;
  uint32_t n_free; /* items to place: all except the fixed ones */
  uint32_t n_placed;
  int64_t capacity;
  int64_t largest_tail; /* the most by which a chain may exceed the capacity */
  unsigned shift;       /* coarse positions are positions shifted right by this, so that they fit in 32 bits */
  size_t words;         /* per set of items */
  /* Constant. */
  uint32_t *conflicts, *conflicts_at; /* of item i: conflicts[conflicts_at[i] .. conflicts_at[i + 1]) */
  uint64_t *conflict_sets;            /* the same as sets */
  uint32_t *twin, *next_twin;         /* the previous and the next equal item, or UINT32_MAX */
  berth__pack_hole *holes; /* of item i: holes[holes_at[i] .. holes_at[i + 1]), sorted and merged; NULL: none */
  uint32_t *holes_at;
  /* Changed by decisions, restored by undo. */
  berth__pack_bounds *bounds;
  berth__pack_saved *trail;
  size_t n_trail, trail_capacity;
  uint64_t *pool; /* reasons of `words` words each */
  size_t n_reasons, pool_capacity;
  uint64_t *skipped; /* the set of items whose `skipped` is true */
  int64_t *load;     /* by section: the sum of the unplaced sizes */
  uint32_t stamp;
  /* Scratch. */
  uint32_t *queue; /* a ring: items whose bound has risen, each at most once */
  uint32_t queue_head, n_queue;
  uint8_t *queued;
  uint32_t *by_low; /* all items, nearly sorted by low */
  uint32_t *chain, *chain_at;
  uint32_t *critical_at;             /* by section: the number of critical sections before it, see chains.c */
  uint32_t *critical;                /* these sections */
  berth__pack_link *links;           /* parallel to chain: the data that the loops of chains.c need */
  int32_t *top, *latest, *least_top; /* by critical section, coarse: see chains.c */
  uint64_t *conflict;                /* after a conflict: the decisions that caused it */
  uint64_t *candidate;
  uint32_t *weight; /* by item: how often it took part in a conflict */
  uint64_t ticks;
} berth__pack_state;

berth_status berth__pack_state_create(berth_context *ctx, const berth__pack_item *items, uint32_t n,
                                      uint32_t n_sections, berth__pack_state *state, berth_error *err);
void berth__pack_state_destroy(berth__pack_state *state);

/* Resets the state to nothing placed, for a capacity. False: even that is infeasible (state->conflict is empty
 * then). */
berth_status berth__pack_state_reset(berth__pack_state *state, int64_t capacity, int *possible, berth_error *err);

/* *possible is false after a conflict, and state->conflict has its causes; the caller has to undo. */
berth_status berth__pack_state_place(berth__pack_state *state, uint32_t k, int *possible, berth_error *err);
/* Item k is not next, because of the decisions in state->conflict. */
berth_status berth__pack_state_skip(berth__pack_state *state, uint32_t k, int *possible, berth_error *err);

typedef struct berth__pack_mark {
  size_t n_trail, n_reasons;
} berth__pack_mark;

berth__pack_mark berth__pack_state_mark(berth__pack_state *state);
void berth__pack_state_undo(berth__pack_state *state, berth__pack_mark mark);

/* For state.c and chains.c. */
berth_status berth__pack_new_reason(berth__pack_state *state, berth__pack_reason *out, berth_error *err);
/* Item i cannot be below x, for this reason. */
berth_status berth__pack_raise(berth__pack_state *state, uint32_t i, int64_t x, berth__pack_reason why,
                               berth_error *err);

/* The reason of the oldest bound of item i that is at least x: it follows from the fewest decisions. */
static inline berth__pack_reason berth__pack_why_at_least(const berth__pack_state *s, uint32_t i, int64_t x) {
  const berth__pack_bounds *b = &s->bounds[i];
  while (b->before != UINT32_MAX && s->trail[b->before].bounds.low >= x) b = &s->trail[b->before].bounds;
  return b->why_low;
}

static inline uint64_t *berth__pack_reason_set(berth__pack_state *s, berth__pack_reason reason) {
  return s->pool + (size_t)reason * s->words;
}

static inline const uint64_t *berth__pack_why(const berth__pack_state *s, berth__pack_reason reason) {
  return s->pool + (size_t)reason * s->words;
}

#endif
