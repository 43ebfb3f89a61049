/* Chains: the unplaced items of a section, stacked in the order of their bounds.
 *
 * Each item of the chain starts at its bound or on top of the previous one, whichever is higher. The end of the chain
 * is a lower bound for every actual stacking, whatever its order. If it is above the capacity, the decisions that led
 * to the bounds contradict each other.
 *
 *        capacity ------------------------
 * |  c  |  bound of c           The conflict consists of the block after the last gap: here b and c.
 * |  b  |  bound of b           The chain exceeds the capacity by some slack, so weaker bounds of
 * gap                         b and c, which follow from fewer decisions, may suffice for the
 * |  a  |  bound of a = 0       conflict.
 *
 * A second rule considers which item can be lowest: the lowest unplaced item of a section carries all the others, so it
 * is no higher than capacity - load. An item whose bound is above that is not the lowest one, so it is on top of one
 * that can be.
 *
 * The search spends its time in these loops. They run over 32-bit arrays, one entry for each critical section (a
 * section whose load is so large that it could matter), which compilers vectorise. Positions that do not fit in 32 bits
 * are shifted to coarser units. Sizes and bounds are rounded down, so that conclusions from coarse numbers are correct,
 * if a little weaker. */
#include "plan/pack/chains.h"

#include <string.h>

#include "plan/pack/bits.h"

#define NO_ITEM UINT32_MAX

/* Sums of two coarse numbers must not overflow: the highest bound and a whole load above it. */
#define LARGEST_COARSE (INT64_C(1) << 29)

void berth__pack_chains_scale(berth__pack_state *s) {
  int64_t load = s->capacity + s->largest_tail;
  for (uint32_t c = 0; c < s->n_sections; c++)
    if (s->load[c] > load) load = s->load[c];
  for (s->shift = 0; (load >> s->shift) >= LARGEST_COARSE;) s->shift++;
}

static int64_t limit_of(const berth__pack_state *s) { return s->capacity + s->largest_tail; }

/* The unplaced items alive anywhere in [first, last), sorted by their bound. Keeps by_low nearly sorted. */
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
  s->ticks += s->n + n * 4;
  return n;
}

/* Sections whose chain could exceed the capacity, judging only by the highest bound and the load. */
static uint32_t find_critical(berth__pack_state *s, uint32_t first, uint32_t last, int64_t highest_low) {
  uint32_t n = 0;
  int64_t limit = limit_of(s) - highest_low;
  for (uint32_t c = first; c < last; c++) {
    s->critical_at[c] = n;
    s->critical[n] = c;
    n += s->load[c] > limit;
  }
  s->critical_at[last] = n;
  s->ticks += last - first;
  return n;
}

/* Keeps the items of the chain that are alive in a critical section. */
static uint32_t make_links(berth__pack_state *s, uint32_t n, uint32_t first, uint32_t last) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = s->chain[k];
    const berth__pack_item *item = &s->items[i];
    uint32_t from = s->critical_at[item->lo > first ? item->lo : first];
    uint32_t to = s->critical_at[item->hi < last ? item->hi : last];
    if (from == to) continue;
    s->chain[kept] = i;
    s->links[kept++] =
        (berth__pack_link){(int32_t)(s->bounds[i].low >> s->shift), (int32_t)(item->size >> s->shift), from, to};
  }
  s->ticks += n * 2;
  return kept;
}

static void stack_chains(berth__pack_state *s, uint32_t n, uint32_t n_critical) {
  int32_t *restrict top = s->top;
  memset(top, 0, n_critical * sizeof *top);
  for (uint32_t k = 0; k < n; k++) {
    berth__pack_link link = s->links[k];
    for (uint32_t c = link.from; c < link.to; c++) top[c] = (top[c] > link.low ? top[c] : link.low) + link.size;
    s->ticks += 3 + (link.to - link.from) / 2;
  }
}

/* Collects in `set` why the chain of a section does not fit. */
static void blame_chain(berth__pack_state *s, uint32_t n, uint32_t section, uint64_t *set) {
  int64_t top = 0, block_low = 0, limit = limit_of(s);
  uint32_t block = 0, end = 0;
  for (uint32_t k = 0; k < n && top <= limit; k++) {
    const berth__pack_item *item = &s->items[s->chain[k]];
    if (item->lo > section || item->hi <= section) continue;
    int64_t low = s->bounds[s->chain[k]].low;
    if (low > top) {
      top = block_low = low;
      block = k;
    }
    top += item->size;
    end = k + 1;
  }
  int64_t need = block_low - (top - limit - 1);
  berth__bits_clear(set, s->words);
  for (uint32_t k = block; k < end; k++) {
    uint32_t i = s->chain[k];
    if (s->items[i].lo > section || s->items[i].hi <= section) continue;
    s->weight[i]++;
    if (need > 0) berth__bits_join(set, berth__pack_why(s, berth__pack_why_at_least(s, i, need)), s->words);
  }
  s->ticks += n * 2 + (end - block) * (2 + s->words / 4);
}

/* Looks for a critical section whose chain does not fit. The first one becomes the conflict: looking for the smallest
 * conflict among several made the search slower, because it spreads the weights. */
static void check_chains(berth__pack_state *s, uint32_t n, uint32_t n_critical, int *possible) {
  int32_t limit = (int32_t)(limit_of(s) >> s->shift);
  uint32_t c = 0;
  while (c < n_critical && s->top[c] <= limit) c++;
  s->ticks += n_critical / 2;
  if (c == n_critical) return;
  blame_chain(s, n, s->critical[c], s->conflict);
  *possible = 0;
}

/* ---- The lowest item ------------------------------------------------------------------------------------------- */

/* For every critical section: the highest position of its lowest item, and the lowest top of the items that can be
 * lowest. */
static void find_least_tops(berth__pack_state *s, uint32_t n, uint32_t n_critical) {
  int32_t *restrict latest = s->latest, *restrict least_top = s->least_top, highest = INT32_MIN;
  for (uint32_t c = 0; c < n_critical; c++) {
    latest[c] = (int32_t)((limit_of(s) - s->load[s->critical[c]]) >> s->shift);
    least_top[c] = INT32_MAX;
    if (latest[c] > highest) highest = latest[c];
  }
  for (uint32_t k = 0; k < n && s->links[k].low <= highest; k++) {
    berth__pack_link link = s->links[k];
    int32_t top = link.low + link.size;
    for (uint32_t c = link.from; c < link.to; c++) {
      int32_t candidate = link.low <= latest[c] ? top : INT32_MAX;
      least_top[c] = candidate < least_top[c] ? candidate : least_top[c];
    }
    s->ticks += 3 + (link.to - link.from) / 2;
  }
  s->ticks += n_critical;
}

/* Why an item that cannot be lowest in the section is at `top` or above. */
static void blame_lowest(berth__pack_state *s, uint32_t n, uint32_t section, int64_t above, int64_t top,
                         uint64_t *set) {
  berth__bits_clear(set, s->words);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = s->chain[k];
    if (s->items[i].lo > section || s->items[i].hi <= section) continue;
    int64_t need = s->bounds[i].low >= above ? above : top - s->items[i].size;
    berth__bits_join(set, berth__pack_why(s, berth__pack_why_at_least(s, i, need)), s->words);
  }
  s->ticks += n * 3 + s->words * 8;
}

/* The highest position to which the second rule lifts the item of a link; its own bound if the rule does not apply. */
static int32_t lifted(const berth__pack_state *s, berth__pack_link link) {
  const int32_t *restrict latest = s->latest, *restrict least_top = s->least_top;
  int32_t best = link.low;
  for (uint32_t c = link.from; c < link.to; c++) {
    int32_t candidate = least_top[c] & -(int32_t)(link.low > latest[c]); /* branchless, so that it is vectorised */
    best = candidate > best ? candidate : best;
  }
  return best;
}

static berth_status raise_not_lowest(berth__pack_state *s, uint32_t n, uint32_t n_critical, berth_error *err) {
  find_least_tops(s, n, n_critical);
  int32_t lowest = INT32_MAX; /* items at or below all `latest` are not affected */
  for (uint32_t c = 0; c < n_critical; c++)
    if (s->latest[c] < lowest) lowest = s->latest[c];
  for (uint32_t k = 0; k < n; k++) {
    berth__pack_link link = s->links[k];
    uint32_t i = s->chain[k];
    if (link.low <= lowest || s->items[i].fixed >= 0) continue;
    s->ticks += 3 + (link.to - link.from) / 2;
    int32_t top = lifted(s, link);
    if (top == link.low || top == INT32_MAX) continue;
    uint32_t c = link.from;
    while (link.low <= s->latest[c] || s->least_top[c] != top) c++;
    int64_t above = ((int64_t)s->latest[c] + 1) << s->shift, place = (int64_t)top << s->shift;
    if (place <= s->bounds[i].low) continue;
    berth__pack_reason why;
    BERTH__TRY(berth__pack_new_reason(s, &why, err));
    blame_lowest(s, n, s->critical[c], above, place, berth__pack_reason_set(s, why));
    BERTH__TRY(berth__pack_raise(s, i, place, why, err));
  }
  return BERTH_OK;
}

berth_status berth__pack_look_at_sections(berth__pack_state *s, uint32_t first, uint32_t last, int *possible,
                                          berth_error *err) {
  uint32_t n = collect_chain(s, first, last);
  if (n == 0) return BERTH_OK;
  uint32_t n_critical = find_critical(s, first, last, s->bounds[s->chain[n - 1]].low);
  if (n_critical == 0) return BERTH_OK;
  n = make_links(s, n, first, last);
  stack_chains(s, n, n_critical);
  check_chains(s, n, n_critical, possible);
  if (!*possible) return BERTH_OK;
  return raise_not_lowest(s, n, n_critical, err);
}
