/* The constructors.
 *
 * A pass places all items by first-fit in one order. Then the squeaky wheel gets the grease: items that end above the
 * goal get more weight, the order is sorted by weight first, and the next pass places them earlier. A few such passes
 * bring most orders from tens of percent above the bound to fractions of one, or onto it.
 *
 * The classical heuristics of other compilers (largest first, fullest section first, oldest first; first-fit and
 * best-fit) are passes of the portfolio, so that its result is never worse than theirs if the effort suffices for all
 * passes. Best-fit examines every gap and is skipped for very large parts, for which first-fit with the squeaky wheel
 * was better in all measurements. */
#include "plan/pack/portfolio.h"

#include <string.h>

#include "plan/pack/firstfit.h"
#include "plan/pack/order.h"

enum {
  BEST_FIT_MAX = 40000,
  MOST_PASSES = 6
};

typedef struct builder {
  berth_context *ctx;
  berth__pack_part *part;
  berth__pack_budget *budget;
  berth__pack_skyline *sky;
  berth__pack_sorter sorter;
  uint32_t *base, *order; /* an order as sorted, and with the weights applied */
  uint32_t *weight;
  int64_t *offsets; /* of this pass */
  int64_t enough;
  uint64_t stop; /* construction ends when so many ticks are spent */
} builder;

static int64_t pack_portfolio_top_of(const berth__pack_item *item, int64_t offset) {
  return offset + item->size - item->tail;
}

/* True if there is nothing more to do here. */
static int pack_portfolio_finished(const builder *b) {
  if (b->part->height == INT64_MAX) return 0;
  return b->part->height <= b->enough || b->budget->cancelled || b->budget->spent >= b->stop;
}

static berth_status pack_portfolio_take_fixed(builder *b, int64_t *height, uint64_t *ticks, berth_error *err) {
  const berth__pack_part *part = b->part;
  for (uint32_t i = 0; i < part->n; i++) {
    const berth__pack_item *item = &part->items[i];
    if (item->fixed < 0) continue;
    BERTH__TRY(berth__pack_skyline_take(b->sky, item, item->fixed, ticks, err));
    b->offsets[i] = item->fixed;
    if (pack_portfolio_top_of(item, item->fixed) > *height) *height = pack_portfolio_top_of(item, item->fixed);
  }
  return BERTH_OK;
}

/* Places everything in b->order and keeps the placement if it is the best so far. */
static berth_status pack_portfolio_run_pass(builder *b, berth__pack_rule rule, int64_t *height, berth_error *err) {
  berth__pack_part *part = b->part;
  uint64_t ticks = part->n_sections;
  *height = 0;
  berth__pack_skyline_clear(b->sky);
  BERTH__TRY(pack_portfolio_take_fixed(b, height, &ticks, err));
  for (uint32_t k = 0; k < part->n; k++) {
    uint32_t i = b->order[k];
    const berth__pack_item *item = &part->items[i];
    if (item->fixed >= 0) continue;
    BERTH__TRY(berth__pack_skyline_place(b->sky, item, rule, &b->offsets[i], &ticks, err));
    if (pack_portfolio_top_of(item, b->offsets[i]) > *height) *height = pack_portfolio_top_of(item, b->offsets[i]);
  }
  b->budget->spent += ticks;
  if (*height < part->height) {
    part->height = *height;
    memcpy(part->offsets, b->offsets, part->n * sizeof *part->offsets);
  }
  berth__pack_budget_over(b->budget);
  return BERTH_OK;
}

/* b->order: the base order, sorted by weight, heaviest first. Weights are small, so this is a counting sort. */
static void pack_portfolio_sort_by_weight(builder *b) {
  uint32_t start[MOST_PASSES + 2] = {0};
  uint32_t n = b->part->n;
  for (uint32_t i = 0; i < n; i++) start[MOST_PASSES - b->weight[i] + 1]++;
  for (uint32_t w = 1; w < MOST_PASSES + 2; w++) start[w] += start[w - 1];
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = b->base[k];
    b->order[start[MOST_PASSES - b->weight[i]]++] = i;
  }
}

static void grease(builder *b) {
  const berth__pack_part *part = b->part;
  for (uint32_t i = 0; i < part->n; i++)
    if (pack_portfolio_top_of(&part->items[i], b->offsets[i]) > b->enough) b->weight[i]++;
}

static berth_status squeak(builder *b, berth__pack_order order, int passes, berth_error *err) {
  berth__pack_part *part = b->part;
  berth__pack_sort_items(&b->sorter, part->items, part->n, part->n_sections, order, b->base);
  memset(b->weight, 0, part->n * sizeof *b->weight);
  for (int pass = 0; pass < passes && !pack_portfolio_finished(b); pass++) {
    int64_t height;
    pack_portfolio_sort_by_weight(b);
    BERTH__TRY(pack_portfolio_run_pass(b, BERTH__PACK_FIRST_FIT, &height, err));
    grease(b);
  }
  return BERTH_OK;
}

static berth_status best_fit(builder *b, berth__pack_order order, berth_error *err) {
  berth__pack_part *part = b->part;
  int64_t height;
  berth__pack_sort_items(&b->sorter, part->items, part->n, part->n_sections, order, b->order);
  return pack_portfolio_run_pass(b, BERTH__PACK_BEST_FIT, &height, err);
}

static berth_status run_all(builder *b, berth_error *err) {
  /* Largest first is the cheapest and often sufficient. Fullest section first gains most from its second pass, oldest
   * first needs several. */
  static const struct {
    berth__pack_order order;
    int passes;
  } plan[] = {{BERTH__PACK_BY_SIZE, 2},  {BERTH__PACK_BY_BREADTH, 4}, {BERTH__PACK_BY_LIFETIME, 2},
              {BERTH__PACK_BY_START, 6}, {BERTH__PACK_BY_AREA, 4},    {BERTH__PACK_BY_SIZE_LIFETIME, 2}};
  static const berth__pack_order tight[] = {BERTH__PACK_BY_START, BERTH__PACK_BY_BREADTH, BERTH__PACK_BY_SIZE};
  for (size_t k = 0; k < sizeof plan / sizeof *plan && !pack_portfolio_finished(b); k++)
    BERTH__TRY(squeak(b, plan[k].order, plan[k].passes, err));
  if (b->part->n > BEST_FIT_MAX) return BERTH_OK;
  for (size_t k = 0; k < sizeof tight / sizeof *tight && !pack_portfolio_finished(b); k++)
    BERTH__TRY(best_fit(b, tight[k], err));
  return BERTH_OK;
}

berth_status berth__pack_construct(berth_context *ctx, berth__pack_part *part, int64_t enough, uint64_t ticks,
                                   berth__pack_budget *budget, berth_error *err) {
  builder b = {.ctx = ctx, .part = part, .budget = budget, .enough = enough, .stop = budget->spent + ticks};
  berth_status status;
  uint32_t n = part->n;
  b.base = berth__alloc_array(ctx, (size_t)n * 3, sizeof *b.base);
  b.offsets = berth__alloc_array(ctx, n, sizeof *b.offsets);
  if (b.base == NULL || b.offsets == NULL) {
    status = berth__fail_nomem(err, "constructing a packing");
    goto fail;
  }
  b.order = b.base + n;
  b.weight = b.base + 2 * (size_t)n;
  BERTH__TRY_OR_FAIL(berth__pack_sorter_create(ctx, part->items, n, part->n_sections, &b.sorter, err));
  BERTH__TRY_OR_FAIL(berth__pack_skyline_create(ctx, part->n_sections, &b.sky, err));
  BERTH__TRY_OR_FAIL(run_all(&b, err));
fail:
  berth__pack_skyline_destroy(b.sky);
  berth__pack_sorter_destroy(ctx, &b.sorter);
  berth__free(ctx, b.offsets);
  berth__free(ctx, b.base);
  return status;
}
