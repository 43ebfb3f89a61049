/* Windows: exact search near the top of a large placement, with everything else fixed.
 *
 * Takes the item with the highest top, and a window in time around it. Items that live and die inside the window are
 * free; all others alive there keep their positions. The search looks for a placement of the free ones below the goal.
 * If there is none, the window grows; if there is one, the next highest item is processed. When an item cannot be
 * lowered in any window, the height of the part cannot be lowered this way, and the search ends.
 *
 * Thousands of fixed items would slow down the search, so it gets rectangles instead: the occupied ranges of offsets in
 * a section, merged where they touch, and extended over all consecutive sections with the same ranges. */
#include "plan/pack/windows.h"

#include <string.h>

#include "plan/pack/search.h"
#include "plan/pack/sort.h"

enum {
  MOST_FREE = 200,
  MOST_ITEMS = 1200,
  MOST_SECTIONS = 600,
  ATTEMPT_SHARE = 16,
  N_MARGINS = 6
};

typedef struct rectangle {
  int64_t lo, hi;
  uint32_t since; /* the section in which it begins */
} rectangle;

typedef struct improver {
  berth_context *ctx;
  berth__pack_part *part;
  berth__pack_budget *budget;
  uint64_t seed;
  uint32_t first, last; /* the window */
  uint32_t *free_item;  /* MOST_FREE entries: the free items */
  uint32_t n_free;
  uint32_t *fixed; /* by offset: the others that are alive in the window */
  uint32_t n_fixed;
  uint64_t *key;
  uint32_t *scratch;
  rectangle *open, *fresh; /* the rectangles of the previous section, and of this one */
  uint32_t n_open, n_fresh;
  berth__pack_item *items; /* for the search: the free ones, then rectangles; MOST_ITEMS entries */
  int64_t *offsets;
  uint32_t n_items;
} improver;

static berth_status improver_create(improver *m, berth_error *err) {
  size_t n = m->part->n;
  m->free_item = berth__alloc_array(m->ctx, MOST_FREE, sizeof *m->free_item);
  m->fixed = berth__alloc_array(m->ctx, n * 2, sizeof *m->fixed);
  m->key = berth__alloc_array(m->ctx, n, sizeof *m->key);
  m->open = berth__alloc_array(m->ctx, n * 2, sizeof *m->open);
  m->items = berth__alloc_array(m->ctx, MOST_ITEMS, sizeof *m->items);
  m->offsets = berth__alloc_array(m->ctx, MOST_ITEMS, sizeof *m->offsets);
  if (m->free_item == NULL || m->fixed == NULL || m->key == NULL || m->open == NULL || m->items == NULL ||
      m->offsets == NULL)
    return berth__fail_nomem(err, "improving a packing");
  m->scratch = m->fixed + n;
  m->fresh = m->open + n;
  return BERTH_OK;
}

static void improver_destroy(improver *m) {
  berth__free(m->ctx, m->offsets);
  berth__free(m->ctx, m->items);
  berth__free(m->ctx, m->open < m->fresh ? m->open : m->fresh);
  berth__free(m->ctx, m->key);
  berth__free(m->ctx, m->fixed);
  berth__free(m->ctx, m->free_item);
}

static int64_t pack_windows_top_of(const berth__pack_part *part, uint32_t i) {
  return part->offsets[i] + part->items[i].size - part->items[i].tail;
}

static uint32_t highest_item(const berth__pack_part *part) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < part->n; i++)
    if (pack_windows_top_of(part, i) > pack_windows_top_of(part, best)) best = i;
  return best;
}

/* Determines the free items. False if the window has too many of them for a search. */
static int fill_window(improver *m) {
  const berth__pack_part *part = m->part;
  m->n_free = m->n_fixed = 0;
  m->budget->spent += part->n;
  for (uint32_t i = 0; i < part->n; i++) {
    const berth__pack_item *item = &part->items[i];
    if (item->lo >= m->last || item->hi <= m->first) continue;
    if (item->lo >= m->first && item->hi <= m->last && item->fixed < 0) {
      if (m->n_free == MOST_FREE) return 0;
      m->free_item[m->n_free++] = i;
    } else {
      m->fixed[m->n_fixed++] = i;
      m->key[i] = (uint64_t)part->offsets[i];
    }
  }
  berth__pack_sort(m->fixed, m->n_fixed, m->key, m->scratch);
  return 1;
}

/* The occupied ranges of one section, merged, into fresh. */
static void occupied(improver *m, uint32_t section) {
  const berth__pack_part *part = m->part;
  m->n_fresh = 0;
  for (uint32_t k = 0; k < m->n_fixed; k++) {
    const berth__pack_item *item = &part->items[m->fixed[k]];
    if (item->lo > section || item->hi <= section) continue;
    int64_t lo = part->offsets[m->fixed[k]];
    if (m->n_fresh > 0 && m->fresh[m->n_fresh - 1].hi >= lo)
      m->fresh[m->n_fresh - 1].hi = lo + item->size;
    else
      m->fresh[m->n_fresh++] = (rectangle){lo, lo + item->size, section};
  }
  m->budget->spent += m->n_fixed;
}

/* A rectangle ends before `section`; it becomes a fixed item. False if there are too many. */
static int close_rectangle(improver *m, const rectangle *r, uint32_t section) {
  if (m->n_items == MOST_ITEMS) return 0;
  m->items[m->n_items++] = (berth__pack_item){.size = r->hi - r->lo,
                                              .align = 1,
                                              .fixed = r->lo,
                                              .span = section - r->since,
                                              .lo = r->since - m->first,
                                              .hi = section - m->first};
  return 1;
}

/* Advances from the open rectangles to those of `section`: equal ones continue, others end or begin. */
static int advance(improver *m, uint32_t section) {
  uint32_t k = 0;
  for (uint32_t j = 0; j < m->n_fresh; j++) {
    for (; k < m->n_open && m->open[k].lo < m->fresh[j].lo; k++)
      if (!close_rectangle(m, &m->open[k], section)) return 0;
    if (k >= m->n_open || m->open[k].lo != m->fresh[j].lo) continue;
    if (m->open[k].hi == m->fresh[j].hi)
      m->fresh[j].since = m->open[k].since;
    else if (!close_rectangle(m, &m->open[k], section))
      return 0;
    k++;
  }
  for (; k < m->n_open; k++)
    if (!close_rectangle(m, &m->open[k], section)) return 0;
  rectangle *swap = m->open;
  m->open = m->fresh;
  m->fresh = swap;
  m->n_open = m->n_fresh;
  return 1;
}

/* The items for the search. False if there are too many. */
static int pack_windows_build_items(improver *m) {
  const berth__pack_part *part = m->part;
  m->n_items = 0;
  for (uint32_t k = 0; k < m->n_free; k++) {
    berth__pack_item item = part->items[m->free_item[k]];
    item.lo -= m->first;
    item.hi -= m->first;
    m->items[m->n_items++] = item;
  }
  m->n_open = 0;
  for (uint32_t section = m->first; section < m->last; section++) {
    occupied(m, section);
    if (!advance(m, section)) return 0;
  }
  m->n_fresh = 0;
  return advance(m, m->last);
}

static berth_status search_window(improver *m, int64_t goal, uint64_t ticks, int *lowered, berth_error *err) {
  berth__pack_searcher *searcher;
  berth__pack_answer answer;
  uint32_t n_sections = m->last - m->first;
  BERTH__TRY(berth__pack_searcher_create(m->ctx, m->items, m->n_items, n_sections, m->seed, &searcher, err));
  berth_status status = berth__pack_search(searcher, goal, ticks, m->budget, m->offsets, &answer, err);
  berth__pack_searcher_destroy(searcher);
  if (status != BERTH_OK || answer != BERTH__PACK_FOUND) return status;
  for (uint32_t k = 0; k < m->n_free; k++) m->part->offsets[m->free_item[k]] = m->offsets[k];
  *lowered = 1;
  return BERTH_OK;
}

/* Tries to move item i below the goal, in growing windows. */
static berth_status lower_item(improver *m, uint32_t i, int64_t goal, uint64_t ticks, int *lowered, berth_error *err) {
  const berth__pack_item *item = &m->part->items[i];
  uint32_t before = UINT32_MAX;
  *lowered = 0;
  for (uint32_t step = 0; step < N_MARGINS && !*lowered && !berth__pack_budget_over(m->budget); step++) {
    uint32_t margin = UINT32_C(1) << (2 * step);
    m->first = item->lo > margin ? item->lo - margin : 0;
    m->last = m->part->n_sections - item->hi > margin ? item->hi + margin : m->part->n_sections;
    if (m->last - m->first > MOST_SECTIONS || !fill_window(m)) return BERTH_OK;
    if (m->n_free == before) continue;
    before = m->n_free;
    if (!pack_windows_build_items(m)) return BERTH_OK;
    BERTH__TRY(search_window(m, goal, ticks, lowered, err));
  }
  return BERTH_OK;
}

static void pack_windows_measure(berth__pack_part *part) {
  part->height = pack_windows_top_of(part, highest_item(part));
}

static berth_status lower_all(improver *m, int64_t goal, uint64_t ticks, berth_error *err) {
  uint64_t stop = m->budget->spent + ticks;
  while (m->part->height > goal && m->budget->spent < stop && !berth__pack_budget_over(m->budget)) {
    uint32_t i = highest_item(m->part);
    int lowered;
    if (m->part->items[i].fixed >= 0) return BERTH_OK;
    BERTH__TRY(lower_item(m, i, goal, ticks / ATTEMPT_SHARE, &lowered, err));
    if (!lowered && goal < m->part->height - 1) {
      int64_t halfway = goal + (m->part->height - goal) / 2;
      BERTH__TRY(lower_item(m, i, halfway, ticks / ATTEMPT_SHARE, &lowered, err));
    }
    if (!lowered) return BERTH_OK;
    pack_windows_measure(m->part);
  }
  return BERTH_OK;
}

berth_status berth__pack_improve(berth_context *ctx, berth__pack_part *part, int64_t goal, uint64_t seed,
                                 uint64_t ticks, berth__pack_budget *budget, berth_error *err) {
  improver m = {.ctx = ctx, .part = part, .budget = budget, .seed = seed};
  berth_status status = improver_create(&m, err);
  if (status == BERTH_OK) status = lower_all(&m, goal, ticks, err);
  improver_destroy(&m);
  return status;
}
