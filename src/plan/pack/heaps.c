/* Several heaps: every buffer goes into one of them, preferably the cheapest (the first).
 *
 * A pass takes the buffers in some order and first-fits each into the first heap whose limit allows it. Buffers for
 * which there was no room gain weight and go earlier in the next pass, as in portfolio.c. Of the passes that place
 * everything, the one with the most bytes in the first heaps is kept. Then each heap is packed again on its own, with
 * everything that the packer can do, and keeps the better of the two placements.
 *
 * Infeasibility is reported only if it is proven: a buffer is larger than every limit, a fixed one is above the limit
 * of the first heap (fixed buffers belong there), or the load exceeds the sum of all limits. With a single heap the
 * proof is the packer's. */
#include "plan/pack/heaps.h"

#include <string.h>

#include "plan/pack/check.h"
#include "plan/pack/firstfit.h"
#include "plan/pack/order.h"
#include "plan/pack/pack.h"
#include "plan/pack/prepare.h"

enum {
  MAX_HEAPS = 64,
  PASSES = 8
};

typedef struct spread {
  berth_context *ctx;
  const berth_pack_desc *desc;
  berth__pack_problem problem;
  berth__pack_skyline *sky[MAX_HEAPS];
  int64_t limit[MAX_HEAPS];   /* units */
  uint64_t filled[MAX_HEAPS]; /* size in units in each heap, in this pass */
  uint64_t best_filled[MAX_HEAPS];
  size_t n_heaps;
  berth__pack_sorter sorter;
  uint32_t *base, *order, *weight, *heap, *best_heap;
  int64_t *offsets, *best_offsets;
  uint64_t ticks;
  int found;
} spread;

static berth_status spread_create(spread *s, const berth_pack_buffer *buffers, size_t n, berth_error *err) {
  BERTH__TRY(berth__pack_prepare(s->ctx, buffers, n, &s->problem, err));
  const berth__pack_problem *p = &s->problem;
  size_t m = p->n;
  s->base = berth__alloc_array_zero(s->ctx, m * 5, sizeof *s->base);
  s->offsets = berth__alloc_array(s->ctx, m * 2, sizeof *s->offsets);
  if (s->base == NULL || s->offsets == NULL) return berth__fail_nomem(err, "spreading buffers over heaps");
  s->order = s->base + m;
  s->weight = s->base + 2 * m;
  s->heap = s->base + 3 * m;
  s->best_heap = s->base + 4 * m;
  s->best_offsets = s->offsets + m;
  for (size_t h = 0; h < s->n_heaps; h++) {
    uint64_t limit = s->desc->heaps[h].limit / p->unit;
    s->limit[h] = limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
    BERTH__TRY(berth__pack_skyline_create(s->ctx, p->n_sections, &s->sky[h], err));
  }
  return berth__pack_sorter_create(s->ctx, p->items, p->n, p->n_sections, &s->sorter, err);
}

static void spread_destroy(spread *s) {
  for (size_t h = 0; h < s->n_heaps; h++) berth__pack_skyline_destroy(s->sky[h]);
  berth__pack_sorter_destroy(s->ctx, &s->sorter);
  berth__free(s->ctx, s->offsets);
  berth__free(s->ctx, s->base);
  berth__pack_release(&s->problem);
}

/* The first heap with room for item i; n_heaps if there is none. */
static berth_status place_item(spread *s, uint32_t i, size_t *heap, berth_error *err) {
  const berth__pack_item *item = &s->problem.items[i];
  int64_t room = item->size - item->tail, offset;
  if (item->fixed >= 0) {
    *heap = 0;
    s->offsets[i] = item->fixed;
    return berth__pack_skyline_take(s->sky[0], item, item->fixed, &s->ticks, err);
  }
  for (*heap = 0; *heap < s->n_heaps; ++*heap) {
    if (room > s->limit[*heap]) continue;
    berth__pack_skyline_find(s->sky[*heap], item, &offset, &s->ticks);
    if (offset > s->limit[*heap] - room) continue;
    s->offsets[i] = offset;
    return berth__pack_skyline_take(s->sky[*heap], item, offset, &s->ticks, err);
  }
  return BERTH_OK;
}

/* Whether the last pass has put more into the first heaps than the best so far. */
static int pack_heaps_better(const spread *s) {
  if (!s->found) return 1;
  for (size_t h = 0; h < s->n_heaps; h++)
    if (s->filled[h] != s->best_filled[h]) return s->filled[h] > s->best_filled[h];
  return 0;
}

/* Places fixed items first, then the others in order. Those without room become heavier. */
static berth_status pack_heaps_run_pass(spread *s, uint32_t *homeless, berth_error *err) {
  const berth__pack_problem *p = &s->problem;
  *homeless = 0;
  memset(s->filled, 0, sizeof s->filled);
  for (size_t h = 0; h < s->n_heaps; h++) berth__pack_skyline_clear(s->sky[h]);
  for (int turn = 0; turn < 2; turn++) {
    for (uint32_t k = 0; k < p->n; k++) {
      uint32_t i = s->order[k];
      size_t heap;
      if ((p->items[i].fixed >= 0) != (turn == 0)) continue;
      BERTH__TRY(place_item(s, i, &heap, err));
      s->heap[i] = (uint32_t)heap;
      if (heap < s->n_heaps) {
        s->filled[heap] += (uint64_t)p->items[i].size;
      } else {
        s->weight[i]++;
        ++*homeless;
      }
    }
  }
  return BERTH_OK;
}

/* Heaviest first; PASSES bounds the weights. */
static void pack_heaps_sort_by_weight(spread *s) {
  uint32_t n = s->problem.n, at = 0;
  for (uint32_t w = PASSES + 1; w-- > 0;)
    for (uint32_t k = 0; k < n; k++)
      if (s->weight[s->base[k]] == w) s->order[at++] = s->base[k];
}

static berth_status pack_heaps_try_order(spread *s, berth__pack_order order, berth__pack_budget *budget,
                                         berth_error *err) {
  const berth__pack_problem *p = &s->problem;
  berth__pack_sort_items(&s->sorter, p->items, p->n, p->n_sections, order, s->base);
  memset(s->weight, 0, p->n * sizeof *s->weight);
  for (int pass = 0; pass < PASSES && !berth__pack_budget_over(budget); pass++) {
    uint32_t homeless;
    pack_heaps_sort_by_weight(s);
    BERTH__TRY(pack_heaps_run_pass(s, &homeless, err));
    budget->spent += s->ticks;
    s->ticks = 0;
    if (homeless > 0) continue;
    if (pack_heaps_better(s)) {
      memcpy(s->best_heap, s->heap, p->n * sizeof *s->heap);
      memcpy(s->best_offsets, s->offsets, p->n * sizeof *s->offsets);
      memcpy(s->best_filled, s->filled, sizeof s->filled);
    }
    s->found = 1;
    return BERTH_OK;
  }
  return BERTH_OK;
}

/* A lower bound for the sum of heap sizes, in units: at the fullest moment everything alive is in some heap, and in
 * each heap only the topmost item may exceed the end by its tail. */
static int64_t least_sum(const spread *s) {
  const berth__pack_problem *p = &s->problem;
  int64_t load = 0, tail = 0;
  for (uint32_t c = 0; c < p->n_sections; c++)
    if (s->sorter.load[c] > load) load = s->sorter.load[c];
  for (uint32_t i = 0; i < p->n; i++)
    if (p->items[i].tail > tail) tail = p->items[i].tail;
  if (tail > load / (int64_t)s->n_heaps) return 0;
  return load - tail * (int64_t)s->n_heaps;
}

/* Proves infeasibility by single buffers or by the load. */
static int cannot_fit(const spread *s) {
  const berth__pack_problem *p = &s->problem;
  int64_t largest = 0, sum = 0;
  uint64_t largest_bytes = 0;
  for (size_t h = 0; h < s->n_heaps; h++) {
    if (s->limit[h] > largest) largest = s->limit[h];
    if (s->desc->heaps[h].limit > largest_bytes) largest_bytes = s->desc->heaps[h].limit;
    sum = s->limit[h] > INT64_MAX - sum ? INT64_MAX : sum + s->limit[h];
  }
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t room = p->items[i].size - p->items[i].tail;
    if (p->items[i].fixed >= 0 ? p->items[i].fixed + room > s->limit[0] : room > largest) return 1;
  }
  return least_sum(s) > sum || p->least_size > largest_bytes;
}

/* Packs heap h on its own; keeps the better placement. `local` and `index` have space for all buffers. */
static berth_status polish(spread *s, const berth_pack_buffer *buffers, size_t n, uint32_t h, berth_pack_buffer *local,
                           uint64_t *local_offsets, uint32_t *index, berth__pack_budget *budget, uint64_t *offsets,
                           berth_pack_result *result, berth_error *err) {
  size_t m = 0;
  uint64_t size = 0;
  for (size_t i = 0; i < n; i++) {
    if (s->desc->heap_of[i] != h) continue;
    if (buffers[i].size > 0 && offsets[i] + buffers[i].size > size) size = offsets[i] + buffers[i].size;
    index[m] = (uint32_t)i;
    local[m++] = buffers[i];
  }
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth__pack_budget share = *budget;
  share.limit = budget->spent + (budget->limit > budget->spent ? (budget->limit - budget->spent) / 2 : 0);
  BERTH__TRY(berth__pack_one(s->ctx, local, m, UINT64_MAX, s->desc->seed, s->desc->effort == 1, &share, local_offsets,
                             &r, err));
  budget->spent = share.spent;
  budget->cancelled = share.cancelled;
  if (r.size < size)
    for (size_t k = 0; k < m; k++) offsets[index[k]] = local_offsets[k];
  berth__pack_verdict verdict;
  BERTH__TRY(berth__pack_check(s->ctx, buffers, index, m, offsets, &verdict, err));
  if (verdict.clash || verdict.size > s->desc->heaps[h].limit)
    return berth__fail(err, BERTH_INTERNAL, "pack: the placement found in heap %u is wrong; please report",
                       (unsigned)h);
  result->size += verdict.size;
  return BERTH_OK;
}

/* Writes the result of the passes, in bytes and in the caller's order. */
static void write_placement(const spread *s, const berth_pack_buffer *buffers, size_t n, uint64_t *offsets) {
  const berth__pack_problem *p = &s->problem;
  for (size_t i = 0; i < n; i++) {
    uint32_t heap = 0; /* not an item: it has no size or no lifetime. The first heap that is large enough */
    offsets[i] = buffers[i].offset == BERTH_PACK_FREE ? 0 : buffers[i].offset;
    uint64_t end = buffers[i].size > 0 ? offsets[i] + buffers[i].size : 0;
    while (heap + 1 < s->n_heaps && end > s->desc->heaps[heap].limit) heap++;
    s->desc->heap_of[i] = heap;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    s->desc->heap_of[p->items[i].id] = s->best_heap[i];
    offsets[p->items[i].id] = (uint64_t)s->best_offsets[i] * p->unit;
  }
}

static berth_status polish_all(spread *s, const berth_pack_buffer *buffers, size_t n, berth__pack_budget *budget,
                               uint64_t *offsets, berth_pack_result *result, berth_error *err) {
  berth_pack_buffer *local = berth__alloc_array(s->ctx, n, sizeof *local);
  uint64_t *local_offsets = berth__alloc_array(s->ctx, n, sizeof *local_offsets);
  uint32_t *index = berth__alloc_array(s->ctx, n, sizeof *index);
  berth_status status = BERTH_OK;
  if (local == NULL || local_offsets == NULL || index == NULL) status = berth__fail_nomem(err, "packing heaps");
  for (uint32_t h = 0; h < s->n_heaps && status == BERTH_OK; h++)
    status = polish(s, buffers, n, h, local, local_offsets, index, budget, offsets, result, err);
  berth__free(s->ctx, index);
  berth__free(s->ctx, local_offsets);
  berth__free(s->ctx, local);
  return status;
}

static berth_status pack_single(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                                const berth_pack_desc *desc, berth__pack_budget *budget, uint64_t *offsets,
                                berth_pack_result *result, berth_error *err) {
  if (n > 0) memset(desc->heap_of, 0, n * sizeof *desc->heap_of);
  return berth__pack_one(ctx, buffers, n, desc->heaps[0].limit, desc->seed, desc->effort == 1, budget, offsets, result,
                         err);
}

berth_status berth__pack_heaps(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                               const berth_pack_desc *desc, berth__pack_budget *budget, uint64_t *offsets,
                               berth_pack_result *result, berth_error *err) {
  static const berth__pack_order orders[] = {BERTH__PACK_BY_AREA, BERTH__PACK_BY_SIZE, BERTH__PACK_BY_LIFETIME,
                                             BERTH__PACK_BY_BREADTH, BERTH__PACK_BY_START};
  if (desc->n_heaps > MAX_HEAPS)
    return berth__fail(err, BERTH_UNSUPPORTED, "pack: %zu heaps; at most %d are possible", desc->n_heaps, MAX_HEAPS);
  if (desc->n_heaps == 1) return pack_single(ctx, buffers, n, desc, budget, offsets, result, err);
  spread s = {.ctx = ctx, .desc = desc, .n_heaps = desc->n_heaps};
  berth_status status;
  BERTH__TRY_OR_FAIL(spread_create(&s, buffers, n, err));
  result->infeasible = cannot_fit(&s);
  result->lower_bound = (uint64_t)least_sum(&s) * s.problem.unit;
  if (result->lower_bound < s.problem.least_size) result->lower_bound = s.problem.least_size;
  for (size_t k = 0; k < sizeof orders / sizeof *orders && !result->infeasible; k++)
    BERTH__TRY_OR_FAIL(pack_heaps_try_order(&s, orders[k], budget, err));
  if (s.found) {
    write_placement(&s, buffers, n, offsets);
    BERTH__TRY_OR_FAIL(polish_all(&s, buffers, n, budget, offsets, result, err));
  }
  result->fits = s.found;
  result->optimal = s.found && result->size == result->lower_bound;
  result->nodes = budget->spent / BERTH__PACK_STEP;
  result->cancelled = budget->cancelled;
fail:
  spread_destroy(&s);
  return status;
}
