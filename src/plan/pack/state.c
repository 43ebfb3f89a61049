/* Bounds, their propagation, and the reasons for contradictions. See state.h for the terms.
 *
 * What follows from a decision:
 * - Placing k lifts the conflicts of k that are not placed onto its top.
 * - An item that was skipped lies above some unplaced conflict, so it cannot lie lower than the lowest top that one of
 *   these can have. And if all of them have been lifted above the place where it would have fit, then it could drop
 *   back there without disturbing anything: a contradiction, because that case has been searched already.
 * - Equal items are interchangeable: the later twin lies above the earlier one.
 * - In every section the unplaced items have to be stacked below the capacity. Taken in the order of their bounds,
 *   each starts at its bound or on top of the one before; where this chain ends is a bound for every real stacking.
 *
 * Reasons for a contradiction in a chain are made small, because a smaller reason undoes more of the search: only the
 * last gapless block of the chain counts, and of each item in it only as much as needed, so an older and weaker bound
 * of an item that still suffices is blamed instead of the newest. */
#include "plan/pack/state.h"

#include <string.h>

#include "plan/pack/bits.h"
#include "plan/pack/prepare.h"

#define NO_ITEM UINT32_MAX

enum { SECTIONS_TO_BLAME = 4 };

/* ---- Reasons and the trail ------------------------------------------------------------------------------------- */

static berth_status new_reason(berth__pack_state *s, berth__pack_reason *out, berth_error *err) {
  size_t need = (s->n_reasons + 1) * s->words;
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->pool, s->pool_capacity, need, err));
  *out = (berth__pack_reason)s->n_reasons++;
  return BERTH_OK;
}

static uint64_t *reason_set(berth__pack_state *s, berth__pack_reason reason) {
  return s->pool + (size_t)reason * s->words;
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

/* Item i is placed (sign -1) or taken back (1): its sections have less or more to stack. */
static void change_load(berth__pack_state *s, uint32_t i, int64_t sign) {
  for (uint32_t c = s->items[i].lo; c < s->items[i].hi; c++) s->load[c] += sign * s->items[i].size;
  s->ticks += (s->items[i].hi - s->items[i].lo) / 4;
}

static void set_skipped(berth__pack_state *s, uint32_t i, uint8_t skipped) {
  s->bounds[i].skipped = skipped;
  if (skipped) berth__bits_add(s->skipped, i);
  else berth__bits_remove(s->skipped, i);
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

/* ---- Places ---------------------------------------------------------------------------------------------------- */

/* The lowest offset from x on that its alignment and the fixed items allow item i. */
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

/* Item i cannot lie below x, by this reason. */
static berth_status raise_low(berth__pack_state *s, uint32_t i, int64_t x, berth__pack_reason why, berth_error *err) {
  x = lowest_allowed(s, i, x);
  if (x <= s->bounds[i].low) return BERTH_OK;
  BERTH__TRY(save(s, i, err));
  s->bounds[i].low = x;
  s->bounds[i].why_low = why;
  enqueue(s, i);
  return BERTH_OK;
}

/* ---- Skipped items --------------------------------------------------------------------------------------------- */

/* The lowest top, and the lowest bottom, of what may lie below the skipped item j. */
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

/* Everything that j rests on, directly or through others: only all of these together say that nothing is in the way
 * of j where it would rest, because a decision that is left out might put its item there. */
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
  if (top == INT64_MAX) { /* nothing is left that could lie below it */
    berth__bits_copy(s->conflict, berth__pack_why(s, b->why_skipped), s->words);
    *possible = 0;
    return BERTH_OK;
  }
  int drops_back = bottom >= b->rest + s->items[j].size;
  if (!drops_back && top <= b->low) return BERTH_OK;
  berth__pack_reason why;
  BERTH__TRY(new_reason(s, &why, err));
  uint64_t *set = reason_set(s, why);
  berth__bits_copy(set, berth__pack_why(s, b->why_skipped), s->words);
  join_reasons_below(s, j, set);
  if (drops_back) {
    join_support(s, j, set);
    berth__bits_copy(s->conflict, set, s->words);
    *possible = 0;
    return BERTH_OK;
  }
  return raise_low(s, j, top, why, err);
}

/* ---- Chains ---------------------------------------------------------------------------------------------------- */

/* The unplaced items alive somewhere in [first, last), sorted by their bound. Keeps by_low nearly sorted. */
static uint32_t collect_chain(berth__pack_state *s, uint32_t first, uint32_t last) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < s->n; k++) {
    uint32_t i = s->by_low[k];
    if (s->bounds[i].placed || s->items[i].lo >= last || s->items[i].hi <= first) continue;
    int64_t low = s->bounds[i].low;
    uint32_t at = n;
    for (; at > 0 && s->bounds[s->chain[at - 1]].low > low; at--) s->chain[at] = s->chain[at - 1];
    s->chain[at] = i;
    s->chain_at[n++] = k;
  }
  for (uint32_t k = 0; k < n; k++) s->by_low[s->chain_at[k]] = s->chain[k];
  s->ticks += s->n / 2 + n * 4;
  return n;
}

/* Sections whose chain could end above the capacity even if nothing but the highest bound and the load counted. */
static uint32_t find_critical(berth__pack_state *s, uint32_t first, uint32_t last, int64_t highest_low) {
  uint32_t n = 0;
  int64_t limit = s->capacity + s->largest_tail - highest_low;
  for (uint32_t c = first; c < last; c++) {
    s->critical_at[c] = n;
    s->critical[n] = c;
    n += s->load[c] > limit;
  }
  s->critical_at[last] = n;
  s->ticks += last - first;
  return n;
}

static void stack_chains(berth__pack_state *s, uint32_t n, uint32_t first, uint32_t last, uint32_t n_critical) {
  memset(s->top, 0, n_critical * sizeof *s->top);
  for (uint32_t k = 0; k < n; k++) {
    const berth__pack_item *item = &s->items[s->chain[k]];
    int64_t low = s->bounds[s->chain[k]].low, size = item->size;
    uint32_t from = s->critical_at[item->lo > first ? item->lo : first];
    uint32_t to = s->critical_at[item->hi < last ? item->hi : last];
    for (uint32_t c = from; c < to; c++) s->top[c] = (s->top[c] > low ? s->top[c] : low) + size;
    s->ticks += to - from;
  }
}

/* The oldest bound of item i that is at least x. */
static berth__pack_reason why_at_least(const berth__pack_state *s, uint32_t i, int64_t x) {
  const berth__pack_bounds *b = &s->bounds[i];
  while (b->before != NO_ITEM && s->trail[b->before].bounds.low >= x) b = &s->trail[b->before].bounds;
  return b->why_low;
}

/* Why the chain of a section does not fit, into `set`. */
static void blame_chain(berth__pack_state *s, uint32_t n, uint32_t section, uint64_t *set) {
  int64_t top = 0, block_low = 0, limit = s->capacity + s->largest_tail;
  uint32_t block = 0, end = 0;
  for (uint32_t k = 0; k < n; k++) {
    const berth__pack_item *item = &s->items[s->chain[k]];
    if (item->lo > section || item->hi <= section) continue;
    int64_t low = s->bounds[s->chain[k]].low;
    if (low > top) {
      top = block_low = low;
      block = k;
    }
    top += item->size;
    end = k + 1;
    if (top > limit) break;
  }
  int64_t need = block_low - (top - limit - 1);
  berth__bits_clear(set, s->words);
  for (uint32_t k = block; k < end; k++) {
    uint32_t i = s->chain[k];
    if (s->items[i].lo > section || s->items[i].hi <= section) continue;
    s->weight[i]++;
    if (need > 0) berth__bits_join(set, berth__pack_why(s, why_at_least(s, i, need)), s->words);
  }
  s->ticks += (end - block) * (2 + s->words / 4);
}

/* Looks for critical sections whose chain does not fit and blames the smallest set of decisions. */
static void check_chains(berth__pack_state *s, uint32_t n, uint32_t n_critical, int *possible) {
  unsigned smallest = UINT32_MAX, tried = 0;
  for (uint32_t c = 0; c < n_critical && tried < SECTIONS_TO_BLAME; c++) {
    if (s->top[c] <= s->capacity + s->largest_tail) continue;
    blame_chain(s, n, s->critical[c], s->candidate);
    tried++;
    unsigned count = berth__bits_count(s->candidate, s->words);
    if (count >= smallest) continue;
    smallest = count;
    berth__bits_copy(s->conflict, s->candidate, s->words);
  }
  if (tried > 0) *possible = 0;
}

/* ---- Who can be lowest ----------------------------------------------------------------------------------------- */

/* The lowest unplaced item of a section carries all others, so it lies no higher than `latest` = capacity - load. An
 * item whose bound is above that is not the lowest one: it lies on top of one that can be. */
static void find_least_tops(berth__pack_state *s, uint32_t n, uint32_t first, uint32_t last, uint32_t n_critical) {
  int64_t highest = INT64_MIN;
  for (uint32_t c = 0; c < n_critical; c++) {
    s->latest[c] = s->capacity + s->largest_tail - s->load[s->critical[c]];
    s->least_top[c] = INT64_MAX;
    if (s->latest[c] > highest) highest = s->latest[c];
  }
  for (uint32_t k = 0; k < n && s->bounds[s->chain[k]].low <= highest; k++) {
    const berth__pack_item *item = &s->items[s->chain[k]];
    int64_t low = s->bounds[s->chain[k]].low, top = low + item->size;
    uint32_t from = s->critical_at[item->lo > first ? item->lo : first];
    uint32_t to = s->critical_at[item->hi < last ? item->hi : last];
    for (uint32_t c = from; c < to; c++)
      if (low <= s->latest[c] && top < s->least_top[c]) s->least_top[c] = top;
    s->ticks += to - from;
  }
}

/* Why an item that cannot be lowest in the section lies at `top` or above. */
static void blame_lowest(berth__pack_state *s, uint32_t n, uint32_t section, int64_t latest, int64_t top,
                         uint64_t *set) {
  berth__bits_clear(set, s->words);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = s->chain[k];
    if (s->items[i].lo > section || s->items[i].hi <= section) continue;
    int64_t need = s->bounds[i].low > latest ? latest + 1 : top - s->items[i].size;
    berth__bits_join(set, berth__pack_why(s, why_at_least(s, i, need)), s->words);
  }
  s->ticks += n * 2 + s->words * 8;
}

static berth_status raise_not_lowest(berth__pack_state *s, uint32_t n, uint32_t first, uint32_t last,
                                     uint32_t n_critical, berth_error *err) {
  find_least_tops(s, n, first, last, n_critical);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = s->chain[k], section = NO_ITEM;
    const berth__pack_item *item = &s->items[i];
    if (item->fixed >= 0) continue;
    int64_t low = s->bounds[i].low, best = low, latest = 0;
    uint32_t from = s->critical_at[item->lo > first ? item->lo : first];
    uint32_t to = s->critical_at[item->hi < last ? item->hi : last];
    for (uint32_t c = from; c < to; c++) {
      if (low <= s->latest[c] || s->least_top[c] <= best) continue;
      best = s->least_top[c];
      latest = s->latest[c];
      section = s->critical[c];
    }
    s->ticks += to - from;
    if (section == NO_ITEM) continue;
    berth__pack_reason why;
    BERTH__TRY(new_reason(s, &why, err));
    blame_lowest(s, n, section, latest, best, reason_set(s, why));
    BERTH__TRY(raise_low(s, i, best, why, err));
  }
  return BERTH_OK;
}

/* Everything that follows from the bounds of the items in the sections [first, last). */
static berth_status look_at_sections(berth__pack_state *s, uint32_t first, uint32_t last, int *possible,
                                     berth_error *err) {
  uint32_t n = collect_chain(s, first, last);
  if (n == 0) return BERTH_OK;
  uint32_t n_critical = find_critical(s, first, last, s->bounds[s->chain[n - 1]].low);
  if (n_critical == 0) return BERTH_OK;
  stack_chains(s, n, first, last, n_critical);
  check_chains(s, n, n_critical, possible);
  if (!*possible) return BERTH_OK;
  return raise_not_lowest(s, n, first, last, n_critical, err);
}

/* ---- Propagation ----------------------------------------------------------------------------------------------- */

static berth_status propagate_item(berth__pack_state *s, uint32_t i, int *possible, berth_error *err) {
  const berth__pack_bounds *b = &s->bounds[i];
  if (b->low > highest_allowed(s, i)) {
    berth__bits_copy(s->conflict, berth__pack_why(s, why_at_least(s, i, highest_allowed(s, i) + 1)), s->words);
    *possible = 0;
    return BERTH_OK;
  }
  uint32_t next = s->next_twin[i];
  if (next != NO_ITEM && !s->bounds[next].placed)
    BERTH__TRY(raise_low(s, next, b->low + s->items[i].size, b->why_low, err));
  const uint64_t *conflicts = s->conflict_sets + i * s->words;
  for (size_t w = 0; w < s->words && *possible; w++) {
    for (uint64_t rest = conflicts[w] & s->skipped[w]; rest != 0 && *possible; rest &= rest - 1)
      BERTH__TRY(check_skipped(s, (uint32_t)(w * 64 + berth__bits_lowest(rest)), possible, err));
  }
  s->ticks += s->words;
  return BERTH_OK;
}

/* Works off the queue of items whose bound has risen, then looks at the sections in which they live, which may raise
 * further bounds. */
static berth_status propagate(berth__pack_state *s, int *possible, berth_error *err) {
  berth_status status = BERTH_OK;
  while (s->n_queue > 0 && *possible && status == BERTH_OK) {
    uint32_t first = s->n_sections, last = 0;
    while (s->n_queue > 0 && *possible && status == BERTH_OK) {
      uint32_t i = dequeue(s);
      if (s->items[i].lo < first) first = s->items[i].lo;
      if (s->items[i].hi > last) last = s->items[i].hi;
      status = propagate_item(s, i, possible, err);
    }
    if (*possible && status == BERTH_OK) status = look_at_sections(s, first, last, possible, err);
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
  BERTH__TRY(new_reason(s, &why, err));
  berth__bits_copy(reason_set(s, why), berth__pack_why(s, b->why_rest), s->words);
  berth__bits_add(reason_set(s, why), k);
  for (uint32_t e = s->conflicts_at[k]; e < s->conflicts_at[k + 1]; e++) {
    uint32_t j = s->conflicts[e];
    berth__pack_bounds *other = &s->bounds[j];
    if (other->placed || (other->rest >= top && !other->skipped)) continue;
    BERTH__TRY(save(s, j, err));
    set_skipped(s, j, 0); /* what had to lie below it may be this one */
    if (other->rest >= top) continue;
    other->rest = lowest_allowed(s, j, top);
    other->why_rest = why;
    BERTH__TRY(raise_low(s, j, other->rest, why, err));
  }
  s->ticks += 30 + (s->conflicts_at[k + 1] - s->conflicts_at[k]) * 4;
  return propagate(s, possible, err);
}

berth_status berth__pack_state_skip(berth__pack_state *s, uint32_t k, int *possible, berth_error *err) {
  berth__pack_reason why;
  BERTH__TRY(new_reason(s, &why, err));
  berth__bits_copy(reason_set(s, why), s->conflict, s->words);
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
  berth__pack_loads(s->items, s->n, s->n_sections, s->load);
  berth__bits_clear(s->skipped, s->words);
  berth__bits_clear(s->conflict, s->words);
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->twin[i] != NO_ITEM) BERTH__TRY(raise_low(s, i, s->bounds[s->twin[i]].low + s->items[i].size, 0, err));
    if (s->bounds[i].low > highest_allowed(s, i)) *possible = 0;
  }
  if (*possible) BERTH__TRY(look_at_sections(s, 0, s->n_sections, possible, err));
  return propagate(s, possible, err);
}
