/* Lower bounds.
 *
 * Everything alive in a section has to be stacked, so no packing is lower than the largest load. If sizes were rounded
 * up to a common alignment, only the topmost item of a section may do without its rounding, so the largest tail in the
 * section is subtracted. If alignments differ, the items with the largest one are also considered alone, rounded up to
 * it: the others fill gaps at best. A packing as low as this bound is proven optimal without any search. */
#include "plan/pack/bound.h"

#include <stdbool.h>

#include "plan/pack/prepare.h"
#include "plan/pack/sort.h"

/* The first section at or after s without a tail; `next` is a forest with path halving. */
static uint32_t find_bare(uint32_t *next, uint32_t s) {
  while (next[s] != s) {
    next[s] = next[next[s]];
    s = next[s];
  }
  return s;
}

/* Subtracts the largest tail of every section from its load: in order of decreasing tails, each item paints the
 * sections that are still unpainted. */
static berth_status subtract_tails(berth_context *ctx, const berth__pack_item *items, uint32_t n, uint32_t n_sections,
                                   int64_t *load, berth_error *err) {
  berth_status status = BERTH_OK;
  uint32_t *lists = berth__alloc_array(ctx, (size_t)n * 2 + n_sections + 1, sizeof *lists);
  uint64_t *key = berth__alloc_array(ctx, n, sizeof *key);
  if (lists == NULL || key == NULL) {
    status = berth__fail_nomem(err, "bounding a packing");
  } else {
    uint32_t *order = lists, *scratch = lists + n, *next = lists + 2 * (size_t)n;
    for (uint32_t s = 0; s <= n_sections; s++) next[s] = s;
    for (uint32_t i = 0; i < n; i++) {
      order[i] = i;
      key[i] = UINT64_MAX - (uint64_t)items[i].tail;
    }
    berth__pack_sort(order, n, key, scratch);
    for (uint32_t k = 0; k < n; k++) {
      const berth__pack_item *item = &items[order[k]];
      for (uint32_t s = find_bare(next, item->lo); s < item->hi; s = find_bare(next, s)) {
        load[s] -= item->tail;
        next[s] = s + 1;
      }
    }
  }
  berth__free(ctx, key);
  berth__free(ctx, lists);
  return status;
}

static berth_status bound_of_loads(berth_context *ctx, const berth__pack_item *items, uint32_t n, uint32_t n_sections,
                                   int64_t *bound, berth_error *err) {
  int64_t best = 0, largest_tail = 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t end = (items[i].fixed >= 0 ? items[i].fixed : 0) + items[i].size - items[i].tail;
    if (end > best) best = end;
    if (items[i].tail > largest_tail) largest_tail = items[i].tail;
  }
  int64_t *load = berth__alloc_array(ctx, n_sections, sizeof *load);
  if (load == NULL) return berth__fail_nomem(err, "bounding a packing");
  berth__pack_loads(items, n, n_sections, load);
  berth_status status = BERTH_OK;
  if (largest_tail > 0) status = subtract_tails(ctx, items, n, n_sections, load, err);
  for (uint32_t s = 0; s < n_sections; s++)
    if (load[s] > best) best = load[s];
  berth__free(ctx, load);
  *bound = best;
  return status;
}

/* The largest alignment; 0: all are the same, or some item is fixed. */
static int64_t largest_of_several(const berth__pack_item *items, uint32_t n) {
  int64_t largest = 0;
  bool differ = false;
  for (uint32_t i = 0; i < n; i++) {
    if (items[i].fixed >= 0) return 0;
    differ = differ || items[i].align != items[0].align;
    if (items[i].align > largest) largest = items[i].align;
  }
  return differ ? largest : 0;
}

static berth_status bound_of_largest(berth_context *ctx, const berth__pack_item *items, uint32_t n, uint32_t n_sections,
                                     int64_t largest, int64_t *bound, berth_error *err) {
  uint32_t count = 0;
  berth__pack_item *some = berth__alloc_array(ctx, n, sizeof *some);
  if (some == NULL) return berth__fail_nomem(err, "bounding a packing");
  for (uint32_t i = 0; i < n; i++) {
    if (items[i].align != largest) continue;
    const int64_t size = items[i].size - items[i].tail;
    some[count] = items[i];
    some[count].size = berth__pack_align_up(size, largest);
    some[count].tail = some[count].size - size;
    count++;
  }
  const berth_status status = bound_of_loads(ctx, some, count, n_sections, bound, err);
  berth__free(ctx, some);
  return status;
}

berth_status berth__pack_lower_bound(berth_context *ctx, const berth__pack_item *items, uint32_t n, uint32_t n_sections,
                                     int64_t *bound, berth_error *err) {
  BERTH__TRY(bound_of_loads(ctx, items, n, n_sections, bound, err));
  const int64_t largest = largest_of_several(items, n);
  int64_t of_largest = 0;
  if (largest != 0) BERTH__TRY(bound_of_largest(ctx, items, n, n_sections, largest, &of_largest, err));
  if (of_largest > *bound) *bound = of_largest;
  return BERTH_OK;
}
