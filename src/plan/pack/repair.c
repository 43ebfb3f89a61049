/* Repair: large neighbourhood search around a placement that is already good.
 *
 * The target is a little below the best height. The items that end above it have to be repaired. One of them is picked
 * together with some that are alive at about the same time; they are removed, everything else stays in place, and the
 * exact search looks for a placement of those few below the target. The problem is small, so this takes a millisecond
 * or fails. When nothing is above the target any more, the best height has fallen and the next target is set. When a
 * repair fails, the same items are sometimes shuffled below the old height, which changes what later repairs find. */
#include "plan/pack/repair.h"

#include <string.h>

#include "plan/pack/search.h"

enum {
  LEAST_FREE = 12,
  MOST_FREE = 90,
  TICKS_PER_ITEM = 40000,
  SET_UP_TICKS = 20000,
  STEPS = 24
};

typedef struct mender {
  berth_context *ctx;
  berth__pack_part *part;
  berth__pack_budget *budget;
  uint64_t random;
  int64_t target;
  int64_t *offsets; /* the placement being repaired; below part->height */
  uint8_t *taken;   /* by item: free in this repair */
  uint32_t *group;  /* the free items */
  uint32_t n_group;
  uint32_t *pick;          /* scratch: candidates */
  berth__pack_item *items; /* for the search */
  int64_t *found;
} mender;

static berth_status mender_create(mender *m, berth_error *err) {
  size_t n = m->part->n;
  m->offsets = berth__alloc_array(m->ctx, n * 2, sizeof *m->offsets);
  m->taken = berth__alloc_array_zero(m->ctx, n, sizeof *m->taken);
  m->group = berth__alloc_array(m->ctx, n * 2, sizeof *m->group);
  m->items = berth__alloc_array(m->ctx, n, sizeof *m->items);
  if (m->offsets == NULL || m->taken == NULL || m->group == NULL || m->items == NULL)
    return berth__fail_nomem(err, "improving a packing");
  m->found = m->offsets + n;
  m->pick = m->group + n;
  memcpy(m->offsets, m->part->offsets, n * sizeof *m->offsets);
  return BERTH_OK;
}

static void mender_destroy(mender *m) {
  berth__free(m->ctx, m->items);
  berth__free(m->ctx, m->group);
  berth__free(m->ctx, m->taken);
  berth__free(m->ctx, m->offsets);
}

static uint32_t below(mender *m, uint32_t n) { return (uint32_t)((berth__pack_random(&m->random) >> 32) * n >> 32); }

static int64_t pack_repair_top_of(const mender *m, uint32_t i) {
  return m->offsets[i] + m->part->items[i].size - m->part->items[i].tail;
}

static void pack_repair_take(mender *m, uint32_t i) {
  if (m->taken[i] || m->part->items[i].fixed >= 0) return;
  m->taken[i] = 1;
  m->group[m->n_group++] = i;
}

/* One of the items above the target; UINT32_MAX if there is none. */
static uint32_t pick_culprit(mender *m) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->part->n; i++)
    if (pack_repair_top_of(m, i) > m->target && m->part->items[i].fixed < 0) m->pick[n++] = i;
  m->budget->spent += m->part->n;
  return n == 0 ? UINT32_MAX : m->pick[below(m, n)];
}

/* Takes up to `room` random items that overlap [first, last) in time and [low, high) in offset. */
static void take_some(mender *m, uint32_t first, uint32_t last, int64_t low, int64_t high, uint32_t room) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->part->n; i++) {
    const berth__pack_item *item = &m->part->items[i];
    if (m->taken[i] || item->fixed >= 0 || item->lo >= last || item->hi <= first) continue;
    if (m->offsets[i] >= high || m->offsets[i] + item->size <= low) continue;
    m->pick[n++] = i;
  }
  for (; n > 0 && m->n_group < room; n--) {
    uint32_t k = below(m, n);
    pack_repair_take(m, m->pick[k]);
    m->pick[k] = m->pick[n - 1];
  }
  m->budget->spent += m->part->n;
}

/* The culprit and part of its neighbourhood: around it in time, down to the bottom or only near the top. */
static void choose_group(mender *m, uint32_t culprit) {
  const berth__pack_item *item = &m->part->items[culprit];
  uint32_t n = m->part->n, most = n / 2 < MOST_FREE ? n / 2 : MOST_FREE;
  uint32_t room = LEAST_FREE + (most > LEAST_FREE ? below(m, most - LEAST_FREE) : 0);
  uint32_t margin = below(m, 1 + m->part->n_sections / 4);
  uint32_t first = item->lo > margin ? item->lo - margin : 0;
  uint32_t last = m->part->n_sections - item->hi > margin ? item->hi + margin : m->part->n_sections;
  m->n_group = 0;
  pack_repair_take(m, culprit);
  int64_t height = m->part->height;
  switch (below(m, 3)) {
    case 0: take_some(m, first, last, 0, height + 1, room); break;
    case 1: take_some(m, first, last, height - height / 4, height + 1, room); break;
    default: {
      int64_t from = (int64_t)below(m, 8) * (height / 8);
      take_some(m, first, last, from, from + height / 4, room * 3 / 4);
      take_some(m, item->lo, item->hi, height - height / 4, height + 1, room);
    }
  }
  for (uint32_t i = 0; i < n; i++) { /* items above the target must be free, too */
    if (pack_repair_top_of(m, i) <= m->target || m->taken[i]) continue;
    for (uint32_t k = 0; k < m->n_group; k++) {
      if (!berth__pack_conflict(&m->part->items[i], &m->part->items[m->group[k]])) continue;
      pack_repair_take(m, i);
      break;
    }
  }
}

/* The free items first, then those alive with them, as fixed items. */
static uint32_t pack_repair_build_items(mender *m, uint32_t *first, uint32_t *last) {
  uint32_t n = 0;
  *first = UINT32_MAX;
  *last = 0;
  for (uint32_t k = 0; k < m->n_group; k++) {
    m->items[n] = m->part->items[m->group[k]];
    if (m->items[n].lo < *first) *first = m->items[n].lo;
    if (m->items[n].hi > *last) *last = m->items[n].hi;
    n++;
  }
  for (uint32_t i = 0; i < m->part->n; i++) {
    berth__pack_item item = m->part->items[i];
    if (m->taken[i] || item.lo >= *last || item.hi <= *first || pack_repair_top_of(m, i) > m->target) continue;
    item.fixed = m->offsets[i];
    if (item.lo < *first) item.lo = *first;
    if (item.hi > *last) item.hi = *last;
    m->items[n++] = item;
  }
  for (uint32_t i = 0; i < n; i++) {
    m->items[i].lo -= *first;
    m->items[i].hi -= *first;
  }
  return n;
}

static berth_status pack_repair_try_group(mender *m, berth__pack_answer *answer, berth_error *err) {
  uint32_t first, last, n = pack_repair_build_items(m, &first, &last);
  berth__pack_searcher *searcher;
  BERTH__TRY(
      berth__pack_searcher_create(m->ctx, m->items, n, last - first, berth__pack_random(&m->random), &searcher, err));
  m->budget->spent += SET_UP_TICKS + (uint64_t)n * m->n_group;
  berth_status status =
      berth__pack_search(searcher, m->target, (uint64_t)m->n_group * TICKS_PER_ITEM, m->budget, m->found, answer, err);
  berth__pack_searcher_destroy(searcher);
  if (status != BERTH_OK || *answer != BERTH__PACK_FOUND) return status;
  for (uint32_t k = 0; k < m->n_group; k++) m->offsets[m->group[k]] = m->found[k];
  return BERTH_OK;
}

static void set_target(mender *m, int64_t goal) {
  int64_t step = (m->part->height - goal) / STEPS;
  m->target = m->part->height - (step > 1 ? step : 1);
}

/* Nothing is above the target: a new best placement. */
static void pack_repair_keep(mender *m) {
  int64_t height = 0;
  for (uint32_t i = 0; i < m->part->n; i++)
    if (pack_repair_top_of(m, i) > height) height = pack_repair_top_of(m, i);
  m->part->height = height;
  memcpy(m->part->offsets, m->offsets, m->part->n * sizeof *m->offsets);
}

static berth_status pack_repair_mend(mender *m, int64_t goal, uint64_t ticks, berth_error *err) {
  uint64_t stop = m->budget->spent + ticks;
  set_target(m, goal);
  while (m->part->height > goal && m->budget->spent < stop && !berth__pack_budget_over(m->budget)) {
    berth__pack_answer answer;
    uint32_t culprit = pick_culprit(m);
    if (culprit == UINT32_MAX) {
      int64_t before = m->part->height;
      pack_repair_keep(m);
      if (m->part->height == before) return BERTH_OK; /* only fixed items are left above it */
      set_target(m, goal);
      continue;
    }
    choose_group(m, culprit);
    berth_status status = pack_repair_try_group(m, &answer, err);
    if (status == BERTH_OK && answer != BERTH__PACK_FOUND && below(m, 2) == 0) {
      int64_t target = m->target;
      m->target = m->part->height;
      status = pack_repair_try_group(m, &answer, err);
      m->target = target;
    }
    for (uint32_t k = 0; k < m->n_group; k++) m->taken[m->group[k]] = 0;
    if (status != BERTH_OK) return status;
  }
  return BERTH_OK;
}

berth_status berth__pack_repair(berth_context *ctx, berth__pack_part *part, int64_t goal, uint64_t seed, uint64_t ticks,
                                berth__pack_budget *budget, berth_error *err) {
  mender m = {.ctx = ctx, .part = part, .budget = budget};
  m.random = (seed + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0x94D049BB133111EB) | 1;
  berth_status status = mender_create(&m, err);
  if (status == BERTH_OK) status = pack_repair_mend(&m, goal, ticks, err);
  mender_destroy(&m);
  return status;
}
