/* Bounds, their propagation, and the causes of conflicts. See state.h for the terms.
 *
 * What follows from a decision:
 * - Placing k lifts the unplaced conflicts of k onto its top.
 * - A skipped item is above some unplaced conflict, so it is no lower than the lowest possible top of these. And if all
 *   of them have been lifted above the place where it would have fit, it could drop back there without affecting
 *   anything: a conflict, because that case has been searched already.
 * - Equal items are interchangeable: the later twin is above the earlier one.
 * - In every section the unplaced items have to be stacked below the capacity: see chains.c. */
#include "plan/pack/state.h"

#include <string.h>

#include "plan/pack/bits.h"
#include "plan/pack/chains.h"
#include "plan/pack/prepare.h"

#define NO_ITEM UINT32_MAX

enum {
  LOOKS_PER_ITEM = 32
};

/* ---- Reasons and the trail ------------------------------------------------------------------------------------- */

berth_status berth__pack_new_reason(berth__pack_state *s, berth__pack_reason *out, berth_error *err) {
  size_t need = (s->n_reasons + 1) * s->words;
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->pool, s->pool_capacity, need, err));
  *out = (berth__pack_reason)s->n_reasons++;
  return BERTH_OK;
}

static berth_status save(berth__pack_state *s, uint32_t i, berth_error *err) {
  berth__pack_bounds *b = &s->bounds[i];
  if (b->stamp == s->stamp) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->trail, s->trail_capacity, s->n_trail + 1, err));
  s->trail[s->n_trail] = (berth__pack_saved){i, *b};
  b->before = (uint32_t)s->n_trail++;
  b->stamp = s->stamp;
  return BERTH_OK;
}

berth__pack_mark berth__pack_state_mark(berth__pack_state *s) {
  s->stamp++;
  return (berth__pack_mark){s->n_trail, s->n_reasons};
}

/* Item i is placed (sign -1) or removed (1): updates the load of its sections. */
static void change_load(berth__pack_state *s, uint32_t i, int64_t sign) {
  for (uint32_t c = s->items[i].lo; c < s->items[i].hi; c++) s->load[c] += sign * s->items[i].size;
  s->ticks += (s->items[i].hi - s->items[i].lo) / 4;
}

static void set_skipped(berth__pack_state *s, uint32_t i, uint8_t skipped) {
  s->bounds[i].skipped = skipped;
  if (skipped)
    berth__bits_add(s->skipped, i);
  else
    berth__bits_remove(s->skipped, i);
}

void berth__pack_state_undo(berth__pack_state *s, berth__pack_mark mark) {
  s->ticks += (s->n_trail - mark.n_trail) * 8;
  while (s->n_trail > mark.n_trail) {
    const berth__pack_saved *old = &s->trail[--s->n_trail];
    uint32_t i = old->item;
    if (s->bounds[i].placed && !old->bounds.placed) {
      s->n_placed--;
      change_load(s, i, 1);
    }
    set_skipped(s, i, old->bounds.skipped);
    s->bounds[i] = old->bounds;
  }
  s->n_reasons = mark.n_reasons;
  s->stamp++;
}

static void enqueue(berth__pack_state *s, uint32_t i) {
  if (s->queued[i]) return;
  uint32_t at = s->queue_head + s->n_queue;
  s->queued[i] = 1;
  s->queue[at < s->n ? at : at - s->n] = i;
  s->n_queue++;
}

static uint32_t dequeue(berth__pack_state *s) {
  uint32_t i = s->queue[s->queue_head];
  s->queue_head = s->queue_head + 1 < s->n ? s->queue_head + 1 : 0;
  s->n_queue--;
  s->queued[i] = 0;
  return i;
}

static void drop_queue(berth__pack_state *s) {
  while (s->n_queue > 0) dequeue(s);
}

/* ---- Positions ------------------------------------------------------------------------------------------------- */

/* The lowest offset from x on that item i's alignment and the fixed items allow. */
static int64_t lowest_allowed(const berth__pack_state *s, uint32_t i, int64_t x) {
  int64_t align = s->items[i].align;
  x = berth__pack_align_up(x, align);
  if (s->holes == NULL) return x;
  for (uint32_t k = s->holes_at[i]; k < s->holes_at[i + 1]; k++) {
    const berth__pack_hole *hole = &s->holes[k];
    if (x <= hole->lo) break;
    if (x < hole->hi) x = berth__pack_align_up(hole->hi, align);
  }
  return x;
}

static int64_t highest_allowed(const berth__pack_state *s, uint32_t i) {
  return s->capacity - (s->items[i].size - s->items[i].tail);
}

/* Item i cannot be below x, for this reason. */
berth_status berth__pack_raise(berth__pack_state *s, uint32_t i, int64_t x, berth__pack_reason why, berth_error *err) {
  x = lowest_allowed(s, i, x);
  if (x <= s->bounds[i].low) return BERTH_OK;
  BERTH__TRY(save(s, i, err));
  s->bounds[i].low = x;
  s->bounds[i].why_low = why;
  enqueue(s, i);
  return BERTH_OK;
}

/* ---- Skipped items --------------------------------------------------------------------------------------------- */

/* The lowest top, and the lowest bottom, of items that may be below the skipped item j. */
static void lowest_below(const berth__pack_state *s, uint32_t j, int64_t *top, int64_t *bottom) {
  *top = *bottom = INT64_MAX;
  for (uint32_t e = s->conflicts_at[j]; e < s->conflicts_at[j + 1]; e++) {
    uint32_t t = s->conflicts[e];
    const berth__pack_bounds *b = &s->bounds[t];
    if (b->placed) continue;
    if (b->low < *bottom) *bottom = b->low;
    if (b->low + s->items[t].size < *top) *top = b->low + s->items[t].size;
  }
}

static void join_reasons_below(berth__pack_state *s, uint32_t j, uint64_t *set) {
  for (uint32_t e = s->conflicts_at[j]; e < s->conflicts_at[j + 1]; e++) {
    const berth__pack_bounds *b = &s->bounds[s->conflicts[e]];
    if (!b->placed) berth__bits_join(set, berth__pack_why(s, b->why_low), s->words);
  }
  s->ticks += (s->conflicts_at[j + 1] - s->conflicts_at[j]) * (1 + s->words / 4);
}

/* Everything that j rests on, directly or through others: only all of these together imply that nothing is in the way
 * of j where it would rest, because without one of these decisions its item might be there. */
static void join_support(berth__pack_state *s, uint32_t j, uint64_t *set) {
  uint32_t n = 0;
  uint64_t *seen = s->candidate;
  berth__bits_clear(seen, s->words);
  s->chain[n++] = j;
  while (n > 0) {
    uint32_t p = s->chain[--n];
    for (uint32_t e = s->conflicts_at[p]; e < s->conflicts_at[p + 1]; e++) {
      uint32_t q = s->conflicts[e];
      if (!s->bounds[q].placed || s->bounds[q].rest >= s->bounds[p].rest || berth__bits_has(seen, q)) continue;
      berth__bits_add(seen, q);
      s->chain[n++] = q;
    }
    s->ticks += s->conflicts_at[p + 1] - s->conflicts_at[p];
  }
  berth__bits_join(set, seen, s->words);
}

static berth_status check_skipped(berth__pack_state *s, uint32_t j, int *possible, berth_error *err) {
  int64_t top, bottom;
  lowest_below(s, j, &top, &bottom);
  s->ticks += s->conflicts_at[j + 1] - s->conflicts_at[j];
  berth__pack_bounds *b = &s->bounds[j];
  if (top == INT64_MAX) { /* there is nothing left that could be below it */
    berth__bits_copy(s->conflict, berth__pack_why(s, b->why_skipped), s->words);
    *possible = 0;
    return BERTH_OK;
  }
  int drops_back = bottom >= b->rest + s->items[j].size;
  if (!drops_back && top <= b->low) return BERTH_OK;
  berth__pack_reason why;
  BERTH__TRY(berth__pack_new_reason(s, &why, err));
  uint64_t *set = berth__pack_reason_set(s, why);
  berth__bits_copy(set, berth__pack_why(s, b->why_skipped), s->words);
  join_reasons_below(s, j, set);
  if (drops_back) {
    join_support(s, j, set);
    berth__bits_copy(s->conflict, set, s->words);
    *possible = 0;
    return BERTH_OK;
  }
  return berth__pack_raise(s, j, top, why, err);
}

/* ---- Propagation ----------------------------------------------------------------------------------------------- */

static berth_status propagate_item(berth__pack_state *s, uint32_t i, int *possible, berth_error *err) {
  const berth__pack_bounds *b = &s->bounds[i];
  if (b->low > highest_allowed(s, i)) {
    berth__bits_copy(s->conflict, berth__pack_why(s, berth__pack_why_at_least(s, i, highest_allowed(s, i) + 1)),
                     s->words);
    *possible = 0;
    return BERTH_OK;
  }
  uint32_t next = s->next_twin[i];
  if (next != NO_ITEM && !s->bounds[next].placed)
    BERTH__TRY(berth__pack_raise(s, next, b->low + s->items[i].size, b->why_low, err));
  const uint64_t *conflicts = s->conflict_sets + i * s->words;
  for (size_t w = 0; w < s->words && *possible; w++) {
    for (uint64_t rest = conflicts[w] & s->skipped[w]; rest != 0 && *possible; rest &= rest - 1)
      BERTH__TRY(check_skipped(s, (uint32_t)(w * 64 + berth__bits_lowest(rest)), possible, err));
  }
  s->ticks += s->words;
  return BERTH_OK;
}

/* Processes the queue of items whose bound has risen, then checks the sections in which they are alive, which may raise
 * further bounds. Skipped items that hold each other up could rise to the capacity in steps as small as their sizes.
 * Stopping early is always correct, the bounds are just not as tight as possible. */
static berth_status propagate(berth__pack_state *s, int *possible, berth_error *err) {
  berth_status status = BERTH_OK;
  uint64_t patience = (uint64_t)(s->n + 8) * LOOKS_PER_ITEM;
  while (s->n_queue > 0 && patience > 0 && *possible && status == BERTH_OK) {
    uint32_t first = s->n_sections, last = 0;
    for (; s->n_queue > 0 && patience > 0 && *possible && status == BERTH_OK; patience--) {
      uint32_t i = dequeue(s);
      if (s->items[i].lo < first) first = s->items[i].lo;
      if (s->items[i].hi > last) last = s->items[i].hi;
      status = propagate_item(s, i, possible, err);
    }
    if (*possible && status == BERTH_OK) status = berth__pack_look_at_sections(s, first, last, possible, err);
  }
  drop_queue(s);
  return status;
}

berth_status berth__pack_state_place(berth__pack_state *s, uint32_t k, int *possible, berth_error *err) {
  BERTH__TRY(save(s, k, err));
  berth__pack_bounds *b = &s->bounds[k];
  b->placed = 1;
  s->n_placed++;
  change_load(s, k, -1);
  *possible = 1;
  int64_t top = b->rest + s->items[k].size;
  berth__pack_reason why;
  BERTH__TRY(berth__pack_new_reason(s, &why, err));
  berth__bits_copy(berth__pack_reason_set(s, why), berth__pack_why(s, b->why_rest), s->words);
  berth__bits_add(berth__pack_reason_set(s, why), k);
  for (uint32_t e = s->conflicts_at[k]; e < s->conflicts_at[k + 1]; e++) {
    uint32_t j = s->conflicts[e];
    berth__pack_bounds *other = &s->bounds[j];
    if (other->placed || (other->rest >= top && !other->skipped)) continue;
    BERTH__TRY(save(s, j, err));
    set_skipped(s, j, 0); /* the item that had to be below it may be this one */
    if (other->rest >= top) continue;
    other->rest = lowest_allowed(s, j, top);
    other->why_rest = why;
    BERTH__TRY(berth__pack_raise(s, j, other->rest, why, err));
  }
  s->ticks += 30 + (s->conflicts_at[k + 1] - s->conflicts_at[k]) * 4;
  return propagate(s, possible, err);
}

berth_status berth__pack_state_skip(berth__pack_state *s, uint32_t k, int *possible, berth_error *err) {
  berth__pack_reason why;
  BERTH__TRY(berth__pack_new_reason(s, &why, err));
  berth__bits_copy(berth__pack_reason_set(s, why), s->conflict, s->words);
  BERTH__TRY(save(s, k, err));
  set_skipped(s, k, 1);
  s->bounds[k].why_skipped = why;
  *possible = 1;
  BERTH__TRY(check_skipped(s, k, possible, err));
  if (!*possible) {
    drop_queue(s);
    return BERTH_OK;
  }
  return propagate(s, possible, err);
}

berth_status berth__pack_state_reset(berth__pack_state *s, int64_t capacity, int *possible, berth_error *err) {
  s->capacity = capacity;
  s->n_trail = 0;
  s->n_reasons = 1;
  s->n_placed = 0;
  s->stamp = 1;
  *possible = 1;
  for (uint32_t i = 0; i < s->n; i++) {
    int64_t low = s->items[i].fixed >= 0 ? s->items[i].fixed : lowest_allowed(s, i, 0);
    s->bounds[i] = (berth__pack_bounds){.rest = low, .low = low, .before = NO_ITEM};
    s->by_low[i] = i;
  }
  s->ticks += (uint64_t)s->n * 8 + s->n_sections * 4 + 1000;
  berth__pack_loads(s->items, s->n, s->n_sections, s->load);
  berth__pack_chains_scale(s);
  berth__bits_clear(s->skipped, s->words);
  berth__bits_clear(s->conflict, s->words);
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->twin[i] != NO_ITEM)
      BERTH__TRY(berth__pack_raise(s, i, s->bounds[s->twin[i]].low + s->items[i].size, 0, err));
    if (s->bounds[i].low > highest_allowed(s, i)) *possible = 0;
  }
  if (*possible) BERTH__TRY(berth__pack_look_at_sections(s, 0, s->n_sections, possible, err));
  return propagate(s, possible, err);
}
